#include "codegen/grow_caches.h"

#include <algorithm>

#include "codegen/bind_values.h"
#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "ir/text/printer.h"
#include "ops/attributes.h"
#include "passes/graph_rewriter.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"
#include "tir/compute.h"
#include "vm/caches.h"

namespace relaxc {

namespace {

constexpr OpName kScatterElements{"relax.scatter_elements"}, kWhere{"relax.where"};

// A cache in a function: the input `param` is the first operand of a concatenation or of a scatter, which is the result
// `output`.
struct FoundCache {
  size_t param, output;
  VarRef present;  // the concatenation or scatter
  Expr rows;       // that it adds
  size_t axis;
  std::optional<VarRef> length;   // of a concatenation: the dim of the tokens in the past
  std::optional<Expr> positions;  // of a scatter: where the rows go
};

std::vector<std::string> names_in(const Function& function, const char* attr) {
  std::vector<std::string> names;
  if (const AttrValue* shown = function.attrs.find(attr)) from_attr(*shown, names);
  return names;
}

class CacheGrower {
 public:
  CacheGrower(IRModule& module, const Function& function) : module_(module), function_(function) {
    inputs_ = names_in(function, attr_names::kInputNames);
    if (inputs_.empty()) inputs_ = map_each(function.params, [](const VarRef& param) { return param->name; });
    outputs_ = names_in(function, attr_names::kOutputNames);
    const SeqExpr& body = *function.body.as<SeqExpr>();
    if (const Tuple* several = body.body.as<Tuple>()) results_ = several->items;
    if (results_.empty()) results_ = {body.body};
    for (const Binding& binding : bindings_of(function.body)) values_.emplace(binding.var.get(), binding.value);
    for (const Binding& binding : bindings_of(function.body)) {
      for (const VarRef& var : free_vars(binding.value)) ++uses_[var.get()];
    }
  }

  FunctionRef run(const CacheNames& names, const Span& span) {
    expect_inputs(names);
    for (size_t i = 0; i < function_.params.size(); ++i) {
      const std::string* named = find_value(names.named, inputs_.at(i));
      const auto present = named           ? std::optional(*named)
                           : names.by_name ? vm::name_of_present(inputs_[i], outputs_)
                                           : std::nullopt;
      if (!present) continue;
      std::string why;
      if (auto cache = find(i, *present, why)) {
        caches_.push_back(*cache);
      } else if (named || !names.may_be_missing) {
        fail(function_.params[i].span(), "the cache '{}' cannot be extended in place: {}", printable(inputs_[i]), why);
      }
    }
    if (caches_.empty() && !names.may_be_missing)
      fail(span, "there is no cache to extend in place; the inputs are {} and the outputs {}",
           printable(joined(inputs_)), printable(joined(outputs_)));
    return caches_.empty() ? make_function(function_, span) : rebuilt(span);
  }

 private:
  void expect_inputs(const CacheNames& names) const {
    for (const auto& [past, present] : names.named) {
      if (!std::ranges::count(inputs_, past))
        fail_usage({}, "there is no input '{}'; the inputs are {}", printable(past), printable(joined(inputs_)));
    }
  }

  // Returns nullopt, and says why, where the output is neither the concatenation of the input and new rows, nor the
  // input with new rows in places that the run decides.
  std::optional<FoundCache> find(size_t param, const std::string& present, std::string& why) const {
    const VarRef& past = function_.params[param];
    const auto output = static_cast<size_t>(std::ranges::find(outputs_, present) - outputs_.begin());
    if (output >= results_.size()) {
      why = fmt::format("there is no output '{}'; the outputs are {}", printable(present), printable(joined(outputs_)));
      return std::nullopt;
    }
    const Expr* value = find_value(values_, results_[output].get());
    const Call* scatter = value ? as_call(*value, kScatterElements) : nullptr;
    if (!scatter && !rows_behind(value, past)) {
      why =
          fmt::format("expected that the output '{}' is a Concat of it and the new tokens, or a TensorScatter of these",
                      printable(present));
      return std::nullopt;
    }
    const bool is_result = std::ranges::any_of(results_, [&](const Expr& each) { return same_node(each, past); });
    if (uses_.at(past.get()) != 1 || is_result) {
      why = fmt::format("the model reads it in other places than the {}, too", scatter ? "TensorScatter" : "Concat");
      return std::nullopt;
    }
    const Expr rows = scatter ? scatter->args[2] : *rows_behind(value, past);
    if (!known_shape(past.type()) || !known_shape(rows.type()) || !known_shape(results_[output].type())) {
      why = "the shapes are not known";
      return std::nullopt;
    }
    FoundCache cache{param, output, cast<Var>(results_[output]), rows, 0, {}, {}};
    return scatter ? with_positions(cache, *scatter, past, why) : with_length(cache, *value->as<Call>(), past, why);
  }
  // Returns the rows that the value has behind the past.
  static std::optional<Expr> rows_behind(const Expr* value, const VarRef& past) {
    const Call* concat = value ? as_call(*value, ops::kConcat) : nullptr;
    const Tuple* parts = concat ? concat->args[0].as<Tuple>() : nullptr;
    const bool fits =
        parts && parts->items.size() == 2 && same_node(parts->items[0], past) && !same_node(parts->items[1], past);
    return fits ? std::optional(parts->items[1]) : std::nullopt;
  }
  static size_t axis_of(int64_t stated, const VarRef& past) {
    return static_cast<size_t>(stated < 0 ? stated + std::ssize(*known_shape(past.type())) : stated);
  }
  static std::optional<FoundCache> with_length(FoundCache cache, const Call& concat, const VarRef& past,
                                               std::string& why) {
    cache.axis = axis_of(read_attrs<ConcatAttrs>(concat.attrs).axis.value_or(0), past);
    const Expr& dim = (*known_shape(past.type()))[cache.axis];
    cache.length = try_cast<Var>(dim);
    if (cache.length) return cache;
    why = fmt::format("its number of tokens is {}, expected a symbolic dim", print_expr(dim));
    return std::nullopt;
  }
  // Accepts a scatter into the past itself, and into what the importer makes of it for GroupQueryAttention: zeros in
  // place of rows that the past does not have, which nothing reads, and room for rows beyond it, which a run in place
  // refuses to need.
  std::optional<FoundCache> with_positions(FoundCache cache, const Call& scatter, const VarRef& past,
                                           std::string& why) const {
    const auto attrs = read_attrs<ScatterElementsAttrs>(scatter.attrs);
    cache.axis = axis_of(attrs.axis, past);
    cache.positions = scatter.args[1];
    Expr target = scatter.args[0];
    const Expr* value = find_value(values_, target.get());
    const Call* longer = value ? as_call(*value, ops::kConcat) : nullptr;
    const Tuple* parts = longer ? longer->args[0].as<Tuple>() : nullptr;
    const bool has_room = parts && read_attrs<ConcatAttrs>(longer->attrs).axis == static_cast<int64_t>(cache.axis);
    if (has_room) target = parts->items[0];
    value = find_value(values_, target.get());
    if (const Call* where = value ? as_call(*value, kWhere) : nullptr) target = where->args[1];
    const bool is_update = attrs.reduction == "update" || attrs.reduction == "none";
    if (same_node(target, past) && is_update) return cache;
    why = "expected that it is the data of the TensorScatter";
    return std::nullopt;
  }

  // The program writes the new rows behind the others, or where the positions say.
  static PrimFuncRef append_program(const FoundCache& cache, const Type& type) {
    ComputeBuilder b;
    const DType dtype = *tensor_dtype(type);
    const std::vector<Expr> dims = *known_shape(type), shape = *known_shape(cache.rows.type());
    Buffer memory = b.input("cache", dtype, dims);
    if (cache.length) {
      Buffer rows = b.input("rows", dtype, shape);
      b.block("T_append", shape, {}, [&](Axes i, Axes) {
        std::vector<Expr> at(i.begin(), i.end());
        at[cache.axis] = *cache.length + at[cache.axis];
        return ComputeBuilder::Bodies{std::nullopt, store(memory, load(rows, i), at)};
      });
      return b.finish({});
    }
    Buffer positions = b.input("positions", *tensor_dtype(cache.positions->type()), shape);
    Buffer rows = b.input("rows", dtype, shape);
    std::vector<Expr> at;
    for (size_t d = 0; d < shape.size(); ++d) at.push_back(make_dim(fmt::format("i{}", d)));
    const std::vector<Expr> axes = at;
    const Expr index = cast_to(load(positions, axes), kInt64);
    at[cache.axis] = select(index < int_imm(0), index + dims[cache.axis], index);
    Stmt nest = store(memory, load(rows, axes), at);
    // One after the other, since positions may repeat.
    for (size_t d = shape.size(); d-- > 0;) nest = loop(cast<Var>(axes[d]), shape[d], nest);
    b.extern_block("T_scatter", nest);
    return b.finish({});
  }
  static PrimFuncRef rows_program(const FoundCache& cache, const Type& type) {
    ComputeBuilder b;
    Buffer memory = b.input("cache", *tensor_dtype(type), *known_shape(type));
    return b.finish({b.compute("T_cache_rows", *tensor_dtype(type), *known_shape(cache.present.type()),
                               [&](Axes i) { return load(memory, i); })});
  }

  // Appends a test that the two are equal when the function runs; `what` is its message.
  static void expect_equal(const Expr& a, const Expr& b, const char* what, const Span& span,
                           std::vector<Binding>& bindings) {
    const Type type = shape_type({b});
    bindings.push_back({shape_expr({simplify(a)}, span), type, make_var(name_of_check(what), type, span)});
  }

  std::vector<Binding> in_place(const FoundCache& cache, const VarRef& memory, const VarRef& updated) {
    const Span& span = cache.present.span();
    const Expr total = (*known_shape(cache.present.type()))[cache.axis];
    const Expr& capacity = (*known_shape(memory.type()))[cache.axis];
    std::vector<Binding> result;
    if (cache.length)
      expect_equal(max(*cache.length, int_imm(0)), *cache.length, "a negative number of tokens in the cache", span,
                   result);
    if (!structural_equal(total, capacity))
      expect_equal(min(total, capacity), total, "more tokens than the cache has room for", span, result);
    std::vector<Expr> operands = {memory, cache.rows};
    if (cache.positions) operands.insert(operands.begin() + 1, tested_positions(cache, capacity, result));
    const Expr append = make_call_tir(module_, "append_to_cache", append_program(cache, memory.type()), operands,
                                      {memory.type()}, span);
    const Expr extended =
        call(op_ref(ops::kCallTirInplace), append.as<Call>()->args,
             Attrs().with(attr_names::kInplaceIndices, AttrList{int64_t{0}}), memory.type(), span, {memory.type()});
    result.push_back({extended, std::nullopt, updated});
    const Expr rows = make_call_tir(module_, "rows_of_cache", rows_program(cache, memory.type()), {updated},
                                    {cache.present.type()}, span);
    result.push_back({rows, std::nullopt, cache.present});
    return result;
  }
  // Appends a test of the positions, so that a run that refuses them leaves the cache as it was.
  static Expr tested_positions(const FoundCache& cache, const Expr& capacity, std::vector<Binding>& bindings) {
    const Expr& positions = *cache.positions;
    const Span& span = cache.present.span();
    const VarRef tested = make_var("positions", positions.type(), span);
    const Expr test = call(op_ref(ops::kCheckIndices), {positions, shape_expr({capacity}, span)},
                           write_attrs(CheckIndicesAttrs{}), positions.type(), span);
    bindings.push_back({test, std::nullopt, tested});
    return tested;
  }

  FunctionRef rebuilt(const Span& span) {
    Function copy = function_;
    const VarRef capacity = make_var("capacity", prim_type(kInt64));
    std::unordered_map<const NodeHeader*, std::vector<Binding>> replaced;  // by the concatenation
    for (const FoundCache& cache : caches_) {
      const VarRef& past = function_.params[cache.param];
      std::vector<Expr> dims = *known_shape(past.type());
      if (cache.length) dims[cache.axis] = capacity;
      const Type type = tensor_type(std::move(dims), tensor_dtype(past.type()));
      const VarRef memory = cache.length ? make_var(past->name, type, past.span()) : past;
      const VarRef updated = make_var(past->name + "_extended", type, past.span());
      copy.params[cache.param] = memory;
      results_[cache.output] = updated;
      replaced.emplace(cache.present.get(), in_place(cache, memory, updated));
    }
    add_lengths(copy);
    SeqExpr body = *function_.body.as<SeqExpr>();
    for (BindingBlock& block : body.blocks) {
      std::vector<Binding> bindings;
      for (Binding& binding : block.bindings) {
        const std::vector<Binding>* others = find_value(replaced, binding.var.get());
        if (!others) bindings.push_back(std::move(binding));
        if (others) bindings.insert(bindings.end(), others->begin(), others->end());
      }
      block.bindings = std::move(bindings);
    }
    const bool has_tuple = body.body.is<Tuple>();
    const Expr results = has_tuple ? tuple(results_, body.body.span()) : results_[0];
    // It also finds out which values a block gives to others.
    copy.body = rewrite_blocks(seq_expr(std::move(body.blocks), results, function_.body.span()),
                               [](const BindingBlock& block, const VarSet&) { return block.bindings; });
    copy.result = result_type(has_tuple);
    return make_function(std::move(copy), span);
  }

  // Returns the declared type of the results with those of the caches in it.
  Type result_type(bool has_tuple) const {
    if (!has_tuple) return results_[0].type();
    const TupleType* declared = function_.result.as<TupleType>();
    if (!declared || declared->items.size() != results_.size()) return function_.result;
    std::vector<Type> items = declared->items;
    for (const FoundCache& cache : caches_) items[cache.output] = results_[cache.output].type();
    return tuple_type(std::move(items));
  }

  // Adds the numbers of tokens as params, and notes what belongs together.
  void add_lengths(Function& function) {
    std::vector<std::string> lines;
    std::vector<int64_t> updated;
    for (const FoundCache& cache : caches_) {
      const size_t length = cache.length ? place_of_length(function, *cache.length) : cache.param;
      lines.push_back(to_string(vm::CacheInfo{cache.param, cache.output, length, cache.axis}));
      updated.push_back(static_cast<int64_t>(cache.param));
    }
    function.attrs.set(attr_names::kInputNames, to_attr(inputs_));
    function.attrs.set(attr_names::kCaches, joined(lines, "\n"));
    function.attrs.set(attr_names::kUpdatedInputs, to_attr(updated));
  }

  // Returns the place of the param that has the number of tokens, and adds it where there is none.
  size_t place_of_length(Function& function, const VarRef& length) {
    auto known = std::ranges::find_if(function.params, [&](const VarRef& param) { return same_node(param, length); });
    const auto place = static_cast<size_t>(known - function.params.begin());
    if (known != function.params.end()) return place;
    function.params.push_back(length);
    inputs_.push_back(length->name);
    return place;
  }

  IRModule& module_;
  const Function& function_;
  std::vector<std::string> inputs_, outputs_;
  std::vector<Expr> results_;
  std::vector<FoundCache> caches_;
  std::unordered_map<const NodeHeader*, Expr> values_;
  std::unordered_map<const NodeHeader*, size_t> uses_;  // the number of bindings that use a variable
};

}  // namespace

IRModule with_growing_caches(IRModule module, const std::string& function, const CacheNames& caches) {
  std::string name = function_with_params(module, function);
  while (module.functions.contains(name)) {
    const FunctionRef found = cast<Function>(module.functions.at(name));
    const FunctionRef grown = CacheGrower(module, *found).run(caches, found.span());
    module.functions.insert_or_assign(name, grown);
    const std::string otherwise = found->attrs.get_string(attr_names::kOtherwise, "");
    if (otherwise == name) break;
    name = otherwise;
  }
  return module;
}

}  // namespace relaxc
