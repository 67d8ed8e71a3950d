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

// A cache in a function: the input `param` is the first operand of a concatenation, which is the result `output`.
struct FoundCache {
  size_t param, output;
  VarRef present;  // the concatenation
  Expr rows;       // its other operand
  size_t axis;
  VarRef length;  // the dim of the tokens in the past
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
        fail({}, "there is no input '{}'; the inputs are {}", printable(past), printable(joined(inputs_)));
    }
  }

  // Returns nullopt, and says why, where the output is not the concatenation of the input and new rows.
  std::optional<FoundCache> find(size_t param, const std::string& present, std::string& why) const {
    const VarRef& past = function_.params[param];
    const auto output = static_cast<size_t>(std::ranges::find(outputs_, present) - outputs_.begin());
    if (output >= results_.size()) {
      why = fmt::format("there is no output '{}'; the outputs are {}", printable(present), printable(joined(outputs_)));
      return std::nullopt;
    }
    const Expr* value = find_value(values_, results_[output].get());
    const Call* concat = value ? as_call(*value, ops::kConcat) : nullptr;
    const Tuple* parts = concat ? concat->args[0].as<Tuple>() : nullptr;
    if (!parts || parts->items.size() != 2 || !same_node(parts->items[0], past) || same_node(parts->items[1], past)) {
      why = fmt::format("expected that the output '{}' is a Concat of it and the new tokens", printable(present));
      return std::nullopt;
    }
    const bool is_result = std::ranges::any_of(results_, [&](const Expr& each) { return same_node(each, past); });
    if (uses_.at(past.get()) != 1 || is_result) {
      why = "the model reads it in other places than the Concat, too";
      return std::nullopt;
    }
    const std::vector<Expr>* dims = known_shape(past.type());
    const std::vector<Expr>* new_dims = known_shape(parts->items[1].type());
    if (!dims || !new_dims || !known_shape(results_[output].type())) {
      why = "the shapes are not known";
      return std::nullopt;
    }
    const int64_t stated = read_attrs<ConcatAttrs>(concat->attrs).axis.value_or(0);
    const auto axis = static_cast<size_t>(stated < 0 ? stated + std::ssize(*dims) : stated);
    const auto length = try_cast<Var>((*dims)[axis]);
    if (!length) {
      why = fmt::format("its number of tokens is {}, expected a symbolic dim", print_expr((*dims)[axis]));
      return std::nullopt;
    }
    return FoundCache{param, output, cast<Var>(results_[output]), parts->items[1], axis, *length};
  }

  // The program writes the new rows behind the others.
  static PrimFuncRef append_program(const FoundCache& cache, const Type& type) {
    ComputeBuilder b;
    const DType dtype = *tensor_dtype(type);
    Buffer memory = b.input("cache", dtype, *known_shape(type));
    Buffer rows = b.input("rows", dtype, *known_shape(cache.rows.type()));
    b.block("T_append", *known_shape(cache.rows.type()), {}, [&](Axes i, Axes) {
      std::vector<Expr> at(i.begin(), i.end());
      at[cache.axis] = cache.length + at[cache.axis];
      return ComputeBuilder::Bodies{std::nullopt, store(memory, load(rows, i), at)};
    });
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
    expect_equal(max(cache.length, int_imm(0)), cache.length, "a negative number of tokens in the cache", span, result);
    expect_equal(min(total, capacity), total, "more tokens than the cache has room for", span, result);
    const Expr append = make_call_tir(module_, "append_to_cache", append_program(cache, memory.type()),
                                      {memory, cache.rows}, {memory.type()}, span);
    const Expr extended =
        call(op_ref(ops::kCallTirInplace), append.as<Call>()->args,
             Attrs().with(attr_names::kInplaceIndices, AttrList{int64_t{0}}), memory.type(), span, {memory.type()});
    result.push_back({extended, std::nullopt, updated});
    const Expr rows = make_call_tir(module_, "rows_of_cache", rows_program(cache, memory.type()), {updated},
                                    {cache.present.type()}, span);
    result.push_back({rows, std::nullopt, cache.present});
    return result;
  }

  FunctionRef rebuilt(const Span& span) {
    Function copy = function_;
    const VarRef capacity = make_var("capacity", prim_type(kInt64));
    std::unordered_map<const NodeHeader*, std::vector<Binding>> replaced;  // by the concatenation
    for (const FoundCache& cache : caches_) {
      const VarRef& past = function_.params[cache.param];
      std::vector<Expr> dims = *known_shape(past.type());
      dims[cache.axis] = capacity;
      const Type type = tensor_type(std::move(dims), tensor_dtype(past.type()));
      const VarRef memory = make_var(past->name, type, past.span());
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
      auto known =
          std::ranges::find_if(function.params, [&](const VarRef& param) { return same_node(param, cache.length); });
      const auto place = static_cast<size_t>(known - function.params.begin());
      if (known == function.params.end()) {
        function.params.push_back(cache.length);
        inputs_.push_back(cache.length->name);
      }
      lines.push_back(to_string(vm::CacheInfo{cache.param, cache.output, place, cache.axis}));
      updated.push_back(static_cast<int64_t>(cache.param));
    }
    function.attrs.set(attr_names::kInputNames, to_attr(inputs_));
    function.attrs.set(attr_names::kCaches, joined(lines, "\n"));
    function.attrs.set(attr_names::kUpdatedInputs, to_attr(updated));
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
