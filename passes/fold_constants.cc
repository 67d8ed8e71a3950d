// Expects: operators on leaves. Guarantees: a pure operator whose arguments are all constants is a constant, unless its
// result is much larger than they are (a broadcast or fill stays code), or a matrix of few bits becomes real for
// products that read it as it is (quantized_products.h).
#include "passes/fold_constants.h"

#include <algorithm>
#include <functional>
#include <ranges>
#include <utility>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "passes/graph_rewriter.h"
#include "passes/quantized_products.h"
#include "support/lists.h"
#include "vm/file_memory.h"

namespace relaxc {

namespace {

bool is_constant(const Expr& arg) {
  if (const Tuple* items = arg.as<Tuple>()) return std::ranges::all_of(items->items, is_constant);
  if (const ShapeExpr* shape = arg.as<ShapeExpr>())
    return std::ranges::all_of(shape->values, [](const Expr& dim) { return dim.is<IntImm>(); });
  return arg.is<Constant>() || arg.is<IntImm>() || arg.is<FloatImm>() || arg.is<DTypeImm>() || arg.is<StringImm>();
}

// Returns the bytes of a tensor of constant shape; nullopt for other values.
std::optional<int64_t> bytes_of(const Type& type) {
  std::optional<std::vector<int64_t>> shape = type.is<TensorType>() ? constant_shape(type) : std::nullopt;
  std::optional<DType> dtype = tensor_dtype(type);
  return shape && dtype ? tensor_bytes(*shape, *dtype) : std::nullopt;
}

// Returns the bytes of a tensor, as if elements of less than a byte had one: a weight of int4 grows by as much as one
// of int8.
int64_t unpacked_bytes(const std::vector<int64_t>& shape, DType dtype) {
  return dtype.is_packed() ? *element_count(shape) : *tensor_bytes(shape, dtype);
}
int64_t constant_bytes(const Expr& arg) {
  if (const Constant* constant = arg.as<Constant>())
    return unpacked_bytes(constant->data.shape(), constant->data.dtype());
  int64_t total = 0;
  if (const Tuple* items = arg.as<Tuple>()) {
    for (const Expr& item : items->items) total += constant_bytes(item);
  }
  return total;
}

// The first run collects the bindings that can be folded, and the second one replaces them by their results.
class Folder final : public GraphRewriter {
 public:
  Folder(const OpTable& ops, bool keeps_weights, VarSet kept)
      : GraphRewriter(ops), keeps_weights_(keeps_weights), kept_(std::move(kept)) {}
  std::vector<Binding> todo;  // in order, closed
  VarMap results;             // variable -> constant

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder&) override {
    if (const Expr* result = find_value(results, binding.var.get())) return *result;
    if (!results.empty() || binding.cast || kept_.contains(binding.var.get())) return std::nullopt;
    const Call* node = binding.value.as<Call>();
    const OpRow* row = ops_.find(op_name(binding.value));
    bool runs = row && (row->legalize || row->view);
    if (!node || !runs || !row->pure || (keeps_weights_ && is_wide_weight(*node))) return std::nullopt;
    int64_t operand_bytes = 0;
    for (const Expr& arg : node->args) {
      if (!is_constant(arg) && !known(arg)) return std::nullopt;
      operand_bytes += constant_bytes(arg);
      operand_bytes += copy_value(computed_, arg.get()).value_or(0);
    }
    auto bytes = bytes_of(binding.value.type());
    if (!bytes || is_much_larger(*bytes, operand_bytes)) return std::nullopt;
    todo.push_back(binding);
    computed_.emplace(binding.var.get(),
                      unpacked_bytes(*constant_shape(binding.value.type()), *tensor_dtype(binding.value.type())));
    return std::nullopt;
  }

 private:
  // Returns whether the call converts a weight of 8 bits: a constant with more than one axis, unlike scales.
  static bool is_wide_weight(const Call& call) {
    const Constant* weight = call.args.empty() ? nullptr : call.args[0].as<Constant>();
    const std::string& op = call.callee.as<OpRef>()->name;
    if (op == ops::kDequantize) return true;
    bool is_cast = op == ops::kAstype;
    return is_cast && weight && weight->data.dtype().is_integral() && weight->data.dtype().bits == 8 &&
           std::ranges::count_if(weight->data.shape(), [](int64_t dim) { return dim != 1; }) > 1;
  }
  bool known(const Expr& arg) const {
    if (arg.is<Var>()) return computed_.contains(arg.get());
    const Tuple* items = arg.as<Tuple>();
    auto is_known = [&](const Expr& item) { return is_constant(item) || known(item); };
    return items && std::ranges::all_of(items->items, is_known);
  }
  bool keeps_weights_;
  VarSet kept_;                                              // not to be folded
  std::unordered_map<const NodeHeader*, int64_t> computed_;  // bytes
};

// Splits the foldable bindings into groups that share no variable. Small groups are computed together, as one batch;
// the operands and results of a large weight are in memory only while its group is computed.
std::vector<std::vector<Binding>> batches_of(const std::vector<Binding>& todo) {
  constexpr int64_t kMostBytes = int64_t{64} << 20;  // of results, unless one group has more
  std::unordered_map<const NodeHeader*, const NodeHeader*> parents;
  std::function<const NodeHeader*(const NodeHeader*)> root = [&](const NodeHeader* var) {
    const NodeHeader*& parent = parents.at(var);
    if (parent != var) parent = root(parent);
    return parent;
  };
  for (const Binding& binding : todo) {
    const NodeHeader* var = binding.var.get();
    parents.emplace(var, var);
    for (const VarRef& used : free_vars(binding.value)) {
      if (parents.contains(used.get())) parents[root(used.get())] = root(var);
    }
  }
  std::unordered_map<const NodeHeader*, size_t> group_of;
  std::vector<std::vector<Binding>> groups, batches;
  for (const Binding& binding : todo) {
    auto [it, is_new] = group_of.emplace(root(binding.var.get()), groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].push_back(binding);
  }
  int64_t bytes = 0;
  for (const std::vector<Binding>& group : groups) {
    int64_t more = 0;
    for (const Binding& binding : group) more += bytes_of(binding.value.type()).value_or(0);
    if (batches.empty() || bytes + more > kMostBytes) {
      batches.emplace_back();
      bytes = 0;
    }
    bytes += more;
    batches.back().insert(batches.back().end(), group.begin(), group.end());
  }
  return batches;
}

// Returns the bindings on which a wanted one depends.
std::vector<Binding> needed_for(VarSet needed, const std::vector<Binding>& todo) {
  std::vector<Binding> result;
  for (const Binding& binding : std::views::reverse(todo)) {
    if (!needed.contains(binding.var.get())) continue;
    add_free_vars(binding.value, needed);
    result.push_back(binding);
  }
  std::ranges::reverse(result);
  return result;
}

// Returns a module whose "main" computes the bindings and returns the outputs.
IRModule closed_module(const std::vector<Binding>& bindings, const std::vector<VarRef>& outputs) {
  Expr result = tuple(std::vector<Expr>(outputs.begin(), outputs.end()));
  VarRef result_var = make_var("result", result.type());
  std::vector<BindingBlock> blocks = {{true, bindings, {}}, {false, {{result, std::nullopt, result_var}}, {}}};
  Expr body = with_dataflow_outputs(seq_expr(std::move(blocks), result_var));
  return {
      {{"main", make_function({{}, body, result.type(), true, Attrs{{attr_names::kGlobalSymbol, "main"}}})}}, {}, {}};
}

void compute(const std::vector<Binding>& batch, const VarSet& wanted, PassContext& context, VarMap& results) {
  std::vector<VarRef> outputs;
  for (const Binding& binding : batch) {
    if (wanted.contains(binding.var.get())) outputs.push_back(binding.var);
  }
  if (outputs.empty()) return;
  std::vector<Tensor> values = context.evaluate(closed_module(batch, outputs));
  RELAXC_CHECK(values.size() == outputs.size(), "{} constants for {} bindings", values.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    results.emplace(outputs[i].get(),
                    constant(vm::moved_to_file(std::exchange(values[i], Tensor::empty({}, kBool))), outputs[i].span()));
  for (const Binding& binding : batch) {
    walk(binding.value, [](const Constant& node) { vm::release_pages(node.data); });
  }
}

}  // namespace

Expr computed(const PrimFuncRef& program, const Expr& operand, const Type& result, const PassContext& context) {
  IRModule module;
  Builder builder(context.ops);
  VarRef value = builder.emit(make_call_tir(module, "compute", program, {operand}, {result}, operand.span()));
  Function main{{}, builder.finish(value), result, true, Attrs{{attr_names::kGlobalSymbol, "main"}}};
  module.functions.emplace("main", make_function(std::move(main)));
  std::vector<Tensor> values = context.evaluate(module);
  return constant(vm::moved_to_file(std::move(values.at(0))), operand.span());
}

bool is_much_larger(int64_t bytes, int64_t operand_bytes) {
  constexpr int64_t kMostGrowth = int64_t{64} << 20;
  return bytes > 4 * operand_bytes + 65536 || bytes - operand_bytes > kMostGrowth;
}

IRModule fold(IRModule module, PassContext& context, bool keeps_weights) {
  if (!context.evaluate) return module;
  return map_functions(std::move(module), [&](const FunctionRef& original) {
    FunctionRef function = fold_layout(original, context.ops);
    Folder folder(context.ops, keeps_weights, operands_of_quantized_products(function));
    folder.run(function);
    if (folder.todo.empty()) return function;
    VarSet folded;
    for (const Binding& binding : folder.todo) folded.insert(binding.var.get());
    // Values that only folded bindings use need not be results.
    VarSet wanted = used_outside(function, [&](const Binding& binding) { return folded.contains(binding.var.get()); });
    for (const std::vector<Binding>& batch : batches_of(needed_for(wanted, folder.todo)))
      compute(batch, wanted, context, folder.results);
    return folder.results.empty() ? function : folder.run(function);
  });
}

IRModule fold_constants(IRModule module, PassContext& context) { return fold(std::move(module), context, false); }

}  // namespace relaxc
