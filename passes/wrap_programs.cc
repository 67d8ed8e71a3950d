// Expects: any module. Guarantees: a tensor program that is to be run by itself has a graph function that calls it:
// each program of a module without graph functions, and the one that the settings name. The function takes the scalars
// and the buffers whose elements the program reads, in order and by name, then the dims that these do not give. It
// returns the buffers that the program writes, or else the scalar that it returns; a buffer that is also read is copied
// first. A program without such a function is in the module's attribute `refused`, with the reason, or is an error when
// the settings name it.
#include <algorithm>
#include <ranges>
#include <set>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "passes/graph_rewriter.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/analysis/buffer_uses.h"
#include "tir/analysis/nests.h"
#include "tir/analysis/windows.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

// The reason why a program has no such function.
struct Refusal {
  Span span;
  std::string reason;
};

class ProgramWrapper {
 public:
  ProgramWrapper(const std::string& name, const PrimFuncRef& program, const OpTable& ops)
      : name_(name), original_(program), program_(promote_indices(program)), builder_(ops) {}

  // Throws a Refusal.
  FunctionRef run(const std::string& symbol) {
    uses_ = buffer_uses(program_);
    name_params();
    make_params();
    if (is_function_of_inputs()) return call_tir(symbol);
    std::vector<Expr> tensors, scalars, results;
    AttrList names;
    for (const BufferUse& use : uses_) {
      tensors.push_back(argument(use));
      if (!use.is_written) continue;
      results.push_back(tensors.back());
      names.emplace_back(names_.at(use.buffer.get()));
    }
    for (const VarRef& var : scalar_arguments(program_)) scalars.push_back(scalar_of(var));
    Expr callee = global_var(name_, original_.type());
    if (results.empty()) {
      results.push_back(returned_value(callee));
      names.emplace_back("result");
    } else {
      builder_.emit(call_with_destinations(callee, std::move(tensors), std::move(scalars), original_.span()), "_");
    }
    return finish(symbol, results.size() == 1 ? results[0] : tuple(results), std::move(names));
  }

 private:
  // Returns whether the program reduces, has no scalars, and its last buffer alone is written, all of it. Such a
  // program may be a convolution or another operator, which passes find in calls that have a value (call_tir).
  bool is_function_of_inputs() const {
    auto blocks = find_nests(program_);
    auto reduces = [](const Ref<Block>& block) { return !axes_of(*block, IterKind::kReduce).empty(); };
    return blocks && std::ranges::any_of(*blocks, reduces) && uses_.size() == program_->params.size() &&
           std::ranges::count_if(uses_, &BufferUse::is_written) == 1 && uses_.back().is_filled &&
           !is_input(uses_.back());
  }
  FunctionRef call_tir(const std::string& symbol) {
    std::vector<Expr> inputs;
    for (const BufferUse& use : uses_) {
      if (!use.is_written) inputs.push_back(inputs_.at(use.buffer.get()));
    }
    Type type = type_of(uses_.back().buffer);
    builder_.begin_dataflow();
    VarRef result = builder_.emit(call(op_ref(ops::kCallTir), {global_var(name_, original_.type()), tuple(inputs)}, {},
                                       type, original_.span(), {type}),
                                  uses_.back().buffer->name);
    builder_.end_dataflow({result});
    return finish(symbol, result, {names_.at(uses_.back().buffer.get())});
  }
  FunctionRef finish(const std::string& symbol, const Expr& result, AttrList names) {
    Attrs attrs{{attr_names::kGlobalSymbol, symbol},
                {attr_names::kEntryName, name_},
                {attr_names::kOutputNames, std::move(names)}};
    return make_function({params_, builder_.finish(result), result.type(), false, std::move(attrs)}, original_.span());
  }

  static bool is_input(const BufferUse& use) { return use.is_read || !use.is_written; }

  // Of params with the same name the later ones get numbers, as when the program is printed: T_relu, T_relu_1.
  void name_params() {
    std::set<std::string> taken;
    for (const VarRef& param : program_->params) taken.insert(param->name);
    std::set<std::string> given;
    for (const VarRef& param : program_->params) {
      std::string name = param->name;
      for (int i = 1; given.contains(name) || (name != param->name && taken.contains(name)); ++i)
        name = fmt::format("{}_{}", param->name, i);
      given.insert(name);
      names_.emplace(param.get(), name);
    }
  }
  void make_params() {
    for (const VarRef& param : program_->params) {
      if (param.type().is<BufferType>()) {
        check_layout(param);
        continue;
      }
      DType dtype = dtype_of(param);
      if (dtype.is_handle())
        throw Refusal{param.span(), fmt::format("its param '{}' is a pointer without a T.match_buffer", param->name)};
      add_scalar(param);
    }
    for (const BufferUse& use : uses_) {
      if (!is_input(use)) continue;
      // Dims that stand bare in the shape of an input are new variables, which the input binds.
      for (const Expr& dim : buffer_type(use.buffer).shape) {
        if (dim.is<Var>() && !values_.contains(dim.get())) values_.emplace(dim.get(), make_dim(dim.as<Var>()->name));
      }
    }
    for (const VarRef& dim : scalar_arguments(program_)) {
      if (!values_.contains(dim.get()) && !strides_.contains(dim.get())) add_scalar(dim);
    }
    // Inputs come in the order of the program, between the scalars before and after them.
    std::vector<VarRef> scalars = std::exchange(params_, {});
    for (const VarRef& param : program_->params) {
      const BufferUse* use = find_item(uses_, param.get(), [](const BufferUse& item) { return item.buffer.get(); });
      if (!use) {
        params_.push_back(cast<Var>(values_.at(param.get())));
      } else if (is_input(*use)) {
        params_.push_back(make_var(names_.at(param.get()), type_of(param), param.span()));
        inputs_.emplace(param.get(), params_.back());
      }
    }
    for (const VarRef& scalar : scalars) {
      if (!std::ranges::any_of(params_, [&](const VarRef& known) { return same_node(known, scalar); }))
        params_.push_back(scalar);
    }
  }
  void add_scalar(const VarRef& var) {
    bool is_float = dtype_of(var).is_float();
    VarRef param = make_var(var->name, prim_type(is_float ? dtype_of(var) : kInt64), var.span());
    values_.emplace(var.get(), param);
    params_.push_back(param);
  }

  // A tensor is dense, and so must be the buffer; strides that are variables take the values of a dense one.
  void check_layout(const VarRef& param) {
    const BufferType& buffer = buffer_type(param);
    BufferType dense = buffer;
    dense.strides.clear();
    std::vector<Expr> strides = strides_of(dense);
    for (size_t d = 0; d < buffer.strides.size(); ++d) note_layout(param, "stride", buffer.strides[d], strides[d]);
    if (buffer.elem_offset) note_layout(param, "elem_offset", *buffer.elem_offset, int_imm(0));
  }
  void note_layout(const VarRef& param, const char* what, const Expr& given, const Expr& dense) {
    if (given.is<Var>()) {
      strides_.emplace(given.get(), dense);
    } else if (equal_dims(cast_to(given, kInt64), dense) != Verdict::kProven) {
      throw Refusal{param.span(), fmt::format("buffer '{}' is not dense ({})", param->name, what)};
    }
  }

  Expr in_graph(const Expr& dim) const { return simplify(cast_to(substitute(dim, values_), kInt64)); }
  Type type_of(const Buffer& buffer) const {
    const BufferType& type = buffer_type(buffer);
    return tensor_type(map_each(type.shape, [&](const Expr& dim) { return in_graph(dim); }), type.dtype);
  }
  Expr scalar_of(const VarRef& var) const {
    const Expr* stride = find_value(strides_, var.get());
    if (dtype_of(var).is_float()) return values_.at(var.get());
    Expr value = in_graph(stride ? *stride : var);
    return dtype_of(var).is_bool() ? cast_to(not_equal(value, int_imm(0)), kInt64) : value;
  }

  // Returns the scalar that a program without written buffers returns.
  Expr returned_value(const Expr& callee) {
    if (!original_->result) throw Refusal{original_.span(), "it writes none of its buffers and returns nothing"};
    std::vector<Expr> args;
    for (const VarRef& param : program_->params) {
      const VarRef* input = find_value(inputs_, param.get());
      args.push_back(input ? Expr(*input) : scalar_of(param));
    }
    return builder_.emit(call(callee, std::move(args), {}, prim_type(*original_->result), original_.span()), "result");
  }

  Expr argument(const BufferUse& use) {
    Type type = type_of(use.buffer);
    const VarRef* input = find_value(inputs_, use.buffer.get());
    if (input && !use.is_written) return *input;
    const std::string& name = use.buffer->name;
    Expr shape = shape_expr(*known_shape(type)), dtype = make(DTypeImm{*tensor_dtype(type)}, object_type());
    if (input) return builder_.emit(call(extern_func("vm.builtin.copy"), {*input}, {}, type, {}, {type}), name);
    if (use.is_filled) return builder_.emit(call(op_ref(ops::kBuiltinAllocTensor), {shape, dtype}, {}, type), name);
    return builder_.emit(call(extern_func("vm.builtin.zeros"), {shape, dtype}, {}, type, {}, {type}), name);
  }

  const std::string& name_;
  PrimFuncRef original_, program_;  // program_ counts in int64
  Builder builder_;
  std::vector<BufferUse> uses_;
  std::unordered_map<const NodeHeader*, std::string> names_;  // of the params
  VarMap values_, strides_;                                   // of the program's scalars and dims, in the graph's terms
  std::unordered_map<const NodeHeader*, VarRef> inputs_;
  std::vector<VarRef> params_;
};

}  // namespace

IRModule wrap_programs(IRModule module, PassContext& context) {
  const std::string& wanted = context.function;
  const bool has_graph =
      std::ranges::any_of(std::views::values(module.functions), [](const Expr& f) { return f.is<Function>(); });
  if (wanted.empty() && has_graph) return module;
  if (!wanted.empty() && !module.find(wanted))
    fail_usage({}, "the module has no function '{}'; it has: {}", wanted, joined(std::views::keys(module.functions)));
  std::vector<std::string> roots;
  Attrs refused;
  const IRModule before = module;
  for (const auto& [name, function] : before.functions) {
    auto program = try_cast<PrimFunc>(function);
    if (!program || (!wanted.empty() && name != wanted)) continue;
    std::string symbol = module.fresh_name("run_" + name);
    try {
      module.functions.emplace(symbol, ProgramWrapper(name, *program, context.ops).run(symbol));
      roots.push_back(symbol);
    } catch (const Refusal& refusal) {
      if (!wanted.empty()) fail_unsupported(refusal.span, "'{}' cannot be run: {}", name, refusal.reason);
      refused.set(name, refusal.reason);
    }
  }
  if (!refused.empty()) module.attrs.set(attr_names::kRefused, refused);
  if (wanted.empty()) return module;
  if (roots.empty()) {
    roots.push_back(wanted);
    Function copy = *module.graph_function(wanted);
    copy.attrs.set(attr_names::kGlobalSymbol, wanted);
    module.functions.at(wanted) = make_function(std::move(copy), before.find(wanted)->span());
  }
  keep_reached(module, roots);
  return map_functions(std::move(module), [&](const FunctionRef& function) {
    std::string symbol = function->attrs.get_string(attr_names::kGlobalSymbol, "");
    if (symbol.empty() || symbol == roots[0]) return function;
    Function copy = *function;
    copy.attrs = copy.attrs.without(attr_names::kGlobalSymbol);
    return make_function(std::move(copy), function.span());
  });
}

}  // namespace relaxc
