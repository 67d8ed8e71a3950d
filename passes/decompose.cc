// Expects: operators on written tuples (spread_tuples). Guarantees: no call is left of an operator that its row writes
// with others (OpRow::decompose), and none that does not run here (OpRow::why), but for operators that the user's
// kernels name. apply_kernels comes between, and decompose_rest does the same for what they left. The requirements of
// such a call on dims are tested before it. Where a result's type becomes more precise by that, because its size is now
// a scalar that is read from a tensor, the types of the operators that use it are inferred again. A dim that a function
// of the runtime decides is a variable from there on.
#include <set>

#include "ir/op_names.h"
#include "ir/sequence.h"
#include "ir/type_relation.h"
#include "passes/graph_rewriter.h"
#include "passes/kernel_rules.h"
#include "support/lists.h"

namespace relaxc {

namespace {

class Decomposer final : public GraphRewriter {
 public:
  Decomposer(const OpTable& ops, const IRModule& module, std::set<std::string> kept)
      : GraphRewriter(ops), module_(module), kept_(std::move(kept)) {}

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    if (binding.cast) return std::nullopt;
    if (op_name(binding.value) == ops::kDequantize) dequantized_.insert(binding.var.get());
    if (const TupleGetItem* item = binding.value.as<TupleGetItem>()) {
      if (!open_tuples_.contains(item->tuple.get())) return written_item(*item);
      return measured(builder.emit(binding.value, binding.var->name), binding.var->name, builder);
    }
    const OpRow* row = ops_.find(op_name(binding.value));
    if (!row || kept_.contains(row->name)) return std::nullopt;
    const Span& span = span_of(binding);
    if (!row->why.empty()) fail_unsupported(span, "{} does not run here: {}", row->name, row->why);
    const Call& node = *binding.value.as<Call>();
    if (averages_numbers(*row, node)) return std::nullopt;
    if (row->decompose) return decomposed(*row, node, binding, builder);
    return has_new_types_ ? with_better_type(binding.value, binding.var.type(), ops_) : std::nullopt;
  }

 private:
  // Returns whether integer_regions sums integers for the average, which has no other form for it.
  bool averages_numbers(const OpRow& row, const Call& node) const {
    return row.name.starts_with("relax.nn.avg_pool") && dequantized_.contains(node.args[0].get());
  }
  static std::optional<Expr> written_item(const TupleGetItem& item) {
    const Tuple* tuple = item.tuple.as<Tuple>();
    return tuple ? std::optional(tuple->items.at(static_cast<size_t>(item.index))) : std::nullopt;
  }

  Expr decomposed(const OpRow& row, const Call& node, const Binding& binding, Builder& builder) {
    std::vector<DimCheck> checks;
    infer_call_type(node, builder.span(), ops_, &checks);
    for (const DimCheck& check : checks)
      builder.match_cast(shape_expr({check.a}), shape_type({check.b}), name_of_check(check.what));
    Expr result = with_all_scalars(row.decompose(OpCall{node, builder.span()}, builder), builder.span());
    Expr value = builder.leaf(result);
    if (as_kernel_call(result, module_)) value = tuple({});  // it writes to its arguments
    if (value.type().is<TupleType>()) open_tuples_.insert(value.get());
    value = measured(value, binding.var->name, builder);
    has_new_types_ = has_new_types_ || !structural_equal(value.type(), binding.var.type());
    return as_declared(value, binding.var.type(), binding.var->name, builder);
  }
  // Gives the dims that only the run can tell names.
  Expr measured(const Expr& value, const std::string& name, Builder& builder) {
    const TensorType* type = value.type().as<TensorType>();
    if (!type || type->shape || known_rank(value.type()) < 1 || !value.is<Var>()) return value;
    std::vector<Expr> dims;
    for (int64_t d = 0; d < known_rank(value.type()); ++d) dims.push_back(make_dim(fmt::format("{}_{}", name, d)));
    has_new_types_ = true;
    return builder.match_cast(value, tensor_type(std::move(dims), tensor_dtype(value.type())), name);
  }
  // A call that gives all arguments of a tensor program may leave out the scalars that its tensors' dims give.
  Expr with_all_scalars(const Expr& value, const Span& span) const {
    std::optional<KernelCall> kernel = as_kernel_call(value, module_);
    auto program = kernel ? called_program(kernel->callee, module_) : std::nullopt;
    if (!program || !kernel->has_destinations) return value;
    kernel->has_destinations = false;
    KernelMatch match = match_kernel(*kernel, *program);
    for (const std::string& contradiction : match.contradictions) fail(span, "{}", contradiction);
    std::vector<Expr> scalars;
    for (const VarRef& var : scalar_arguments(*program)) {
      const Expr* dim = find_value(match.dims, var.get());
      if (!dim) fail(span, "the value of '{}' of '{}' does not follow from the arguments", var->name, kernel->name());
      scalars.push_back(simplify(cast_to(*dim, kInt64)));
    }
    return call_with_destinations(kernel->callee, kernel->tensors, std::move(scalars), span);
  }
  // The variable may be declared with a type that says more than is known of the value.
  Expr as_declared(const Expr& value, const Type& declared, const std::string& name, Builder& builder) {
    const TupleType *items = declared.as<TupleType>(), *given = value.type().as<TupleType>();
    const Tuple* written = value.as<Tuple>();
    if (items && given && written && items->items.size() == given->items.size()) {
      std::vector<Expr> result;
      for (size_t i = 0; i < written->items.size(); ++i)
        result.push_back(as_declared(written->items[i], items->items[i], name, builder));
      return tuple(std::move(result));
    }
    bool is_cast = declared.is<TensorType>() || declared.is<ShapeType>();
    if (!is_cast || fits(declared, value.type()) == Verdict::kProven) return value;
    return builder.match_cast(value, declared, name);
  }

  const IRModule& module_;
  std::set<std::string> kept_;
  std::unordered_set<const NodeHeader*> open_tuples_;  // results of operators that were decomposed
  std::unordered_set<const NodeHeader*> dequantized_;  // values of relax.dequantize
  bool has_new_types_ = false;
};

void add_operators(const PatternNode& node, std::set<std::string>& to) {
  to.insert(node.ops.begin(), node.ops.end());
  for (const PatternRef& arg : node.args) add_operators(*arg, to);
}
// Returns the operators that the patterns of the user's kernels name.
std::set<std::string> named_by_kernels(const PassContext& context) {
  std::set<std::string> result;
  if (!context.kernels) return result;
  for (const KernelRule& rule : *context.kernels) {
    if (!rule.pattern) continue;
    for (const PatternRef& root : rule.pattern->results) add_operators(*root, result);
  }
  return result;
}

}  // namespace

IRModule decompose_operators(const IRModule& module, const OpTable& ops, const std::set<std::string>& kept) {
  return map_functions(module,
                       [&](const FunctionRef& function) { return Decomposer(ops, module, kept).run(function); });
}

IRModule decompose(IRModule module, PassContext& context) {
  return decompose_operators(module, context.ops, named_by_kernels(context));
}

}  // namespace relaxc
