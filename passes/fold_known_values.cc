// Expects: operators on leaves. Guarantees: a small tensor whose elements are known (ops/known_values.h) is a constant,
// or made of scalars at once; what reads its elements or takes it for a shape has the scalars. Dims that a cast takes
// from a shape that is known are expressions over the dims before it, and types say what follows from that.
#include <algorithm>

#include "ir/op_names.h"
#include "ir/type_relation.h"
#include "ops/attributes.h"
#include "ops/known_values.h"
#include "passes/graph_rewriter.h"
#include "support/lists.h"

namespace relaxc {

namespace {

// Returns whether the scalar may stand for a dim wherever that occurs.
bool is_short(const Expr& scalar) {
  constexpr int kMostOperands = 4;
  int operands = 0;
  walk(scalar, [&](const Var&) { ++operands; });
  walk(scalar, [&](const IntImm&) { ++operands; });
  return operands <= kMostOperands;
}

class KnownValueFolder final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;
  FunctionRef fold(const FunctionRef& function) {
    for (const VarRef& param : function->params) {
      add_free_vars(param.type(), dims_);
      dims_.insert(param.get());
      facts_.assume_dims(param.type());
    }
    return run(function);
  }

 protected:
  void enter_scope() override { facts_outside_.push_back(facts_); }
  void leave_scope() override {
    facts_ = std::move(facts_outside_.back());
    facts_outside_.pop_back();
  }
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    if (binding.cast) return cast_of(binding, builder);
    dims_.insert(binding.var.get());
    if (auto scalars = scalars_of(binding.value)) return scalars;
    const KnownTensor* known = values_.learn(binding.var, binding.value, ops_, facts_);
    if (!known || is_leaf(binding.value)) return with_better_type(binding);
    if (as_call(binding.value, ops::kShapeToTensor) || as_call(binding.value, ops::kScalarToTensor))
      if (!known->as_tensor()) return std::nullopt;
    KnownTensor contents = *known;
    Expr tensor = tensor_of(contents, builder);
    values_.set(tensor, std::move(contents));
    return tensor;
  }

 private:
  // Returns what a call that reads a tensor, or its dims, gives: a shape or a scalar.
  std::optional<Expr> scalars_of(const Expr& value) {
    const Call* call = value.as<Call>();
    if (!call || call->args.empty()) return std::nullopt;
    const Expr& x = call->args[0];
    if (as_call(value, ops::kShapeOf)) {
      const std::vector<Expr>* dims = known_shape(x.type());
      return dims ? std::optional(shape_expr(*dims)) : std::nullopt;
    }
    bool is_item = as_call(value, ops::kTensorItem), is_shape = as_call(value, ops::kTensorToShape);
    const KnownTensor* known = is_item || is_shape ? values_.find(x) : nullptr;
    if (!known) return std::nullopt;
    if (is_shape) return shape_expr(known->elements);
    return integer_of(known->elements.at(static_cast<size_t>(read_attrs<TensorItemAttrs>(call->attrs).index)));
  }

  // Replaces the dims that the cast binds.
  std::optional<Expr> cast_of(const Binding& binding, Builder& builder) {
    const ShapeExpr* shape = binding.value.as<ShapeExpr>();
    const std::vector<Expr>* values = shape ? &shape->values : known_shape(binding.value.type());
    const std::vector<Expr>* dims = known_shape(*binding.cast);
    if (!values || !dims || values->size() != dims->size()) return keep(binding);
    for (size_t d = 0; d < dims->size(); ++d) {  // behind a cast of max(n, 0) to n, that is not negative
      if (facts_.can_prove(int_imm(0) <= (*values)[d])) facts_.assume(int_imm(0) <= (*dims)[d]);
    }
    VarMap found;
    for (size_t d = 0; d < dims->size(); ++d) {
      auto dim = try_cast<Var>((*dims)[d]);
      if (!dim || dims_.contains(dim->get()) || !is_short((*values)[d])) continue;
      if (found.emplace(dim->get(), (*values)[d]).second) replace(*dim, (*values)[d]);
    }
    if (found.empty()) return keep(binding);
    Type type = substitute(*binding.cast, found);
    add_free_vars(type, dims_);
    if (fits(type, binding.value.type(), facts_) == Verdict::kProven) return binding.value;
    return builder.match_cast(binding.value, type, binding.var->name);
  }
  std::optional<Expr> keep(const Binding& binding) {
    add_free_vars(*binding.cast, dims_);
    if (!binding.cast->is<ShapeType>()) facts_.assume_dims(*binding.cast);  // which may be a check of a scalar
    return std::nullopt;
  }

  // The type of a call may follow from operands that are known by now.
  std::optional<Expr> with_better_type(const Binding& binding) {
    const Type& declared = binding.value.type();
    if (!declared.is<TensorType>()) return std::nullopt;
    if (known_shape(declared)) return with_simple_dims(binding.value);
    return relaxc::with_better_type(binding.value, declared, ops_);
  }
  // An operator that takes scalars does not know which of them are dims, which are not negative: arange(n) has
  // max(n, 0) elements.
  std::optional<Expr> with_simple_dims(const Expr& value) const {
    const Call* call = value.as<Call>();
    if (!call || !call->callee.is<OpRef>()) return std::nullopt;
    const std::vector<Expr>& dims = *known_shape(value.type());
    const std::vector<Expr> simple = map_each(dims, [&](const Expr& dim) { return facts_.simplify(dim); });
    auto is_same = [](const Expr& a, const Expr& b) { return structural_equal(a, b); };
    if (std::ranges::equal(dims, simple, is_same)) return std::nullopt;
    return relaxc::call(call->callee, call->args, call->attrs, tensor_type(simple, *tensor_dtype(value.type())),
                        value.span());
  }

  KnownValues values_;
  Analyzer facts_;
  std::vector<Analyzer> facts_outside_;  // of the branches and local functions around
  VarSet dims_;                          // the variables so far, of dims and scalars among others
};

}  // namespace

IRModule fold_known_values(IRModule module, PassContext& context) {
  return map_functions(std::move(module),
                       [&](const FunctionRef& function) { return KnownValueFolder(context.ops).fold(function); });
}

}  // namespace relaxc
