// Expects: any module. Guarantees: where a call needs two dims to be equal, or a declared type says more than its value
// is known to be, the program proves it by its types or tests it before the call: a match_cast of shapes, or of the
// value. So no kernel is entered with dims that contradict each other, and later passes may take declared types as
// true.
#include "passes/graph.h"

namespace relaxc {

namespace {

class DimChecker final : public GraphRewriter {
 public:
  DimChecker(const IRModule& module, const OpTable& ops) : GraphRewriter(ops), module_(module) {}

  FunctionRef check(const FunctionRef& function) {
    facts_.assign(1, Analyzer());
    for (const VarRef& param : function->params) facts_.back().assume_dims(param.type());
    return run(function);
  }

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    if (binding.cast) {
      learn_from_cast(binding);
      return std::nullopt;
    }
    std::vector<DimCheck> checks;
    Type known = known_type(binding, checks);
    if (auto kernel = match_call_tir(binding.value)) check_kernel(*kernel, checks);
    for (const DimCheck& check : checks) require(check, builder);
    if (!needs_cast(known, binding)) return std::nullopt;
    if (binding.var.type().is<TupleType>()) {
      unproven_.insert(binding.var.get());  // its items are cast where they are taken out
      return std::nullopt;
    }
    VarRef value = builder.emit(binding.value, binding.var->name);
    return builder.match_cast(value, binding.var.type(), binding.var->name);
  }
  void enter_branch() override { facts_.push_back(facts_.back()); }
  void leave_branch() override { facts_.pop_back(); }

 private:
  bool proven(const Expr& a, const Expr& b) const { return facts_.back().can_prove_equal(a, b); }

  void require(const DimCheck& check, Builder& builder) {
    if (proven(check.a, check.b)) return;
    const Expr a = facts_.back().simplify(check.a), b = facts_.back().simplify(check.b);
    builder.match_cast(shape_expr({a}), shape_type({b}), "check");
    learn(a, b);
  }
  // The importer and the user state equalities in the same form.
  void learn_from_cast(const Binding& binding) {
    const ShapeExpr* values = binding.value.as<ShapeExpr>();
    const std::vector<Expr>* dims = known_shape(*binding.cast);
    if (!values || !dims || dims->size() != values->values.size()) return;
    for (size_t d = 0; d < dims->size(); ++d)
      learn(facts_.back().simplify(values->values[d]), facts_.back().simplify((*dims)[d]));
  }
  // From here on a == b, both simplified.
  void learn(const Expr& a, const Expr& b) {
    auto stands_for = [&](const Expr& dim, const Expr& value) {
      auto var = try_cast<Var>(dim);
      if (!var) return false;
      for (const VarRef& used : free_vars(value)) {
        if (same_node(used, *var)) return false;
      }
      facts_.back().bind(*var, value);
      return true;
    };
    if (!stands_for(b, a) && !stands_for(a, b)) facts_.back().assume(equal(a, b));
  }

  // Each dim of a buffer that repeats a variable, or computes with some, against the tensor that stands for it.
  void check_kernel(const CallTir& call, std::vector<DimCheck>& checks) {
    const GlobalVar* name = call.callee.as<GlobalVar>();
    const Expr* target = name ? module_.find(name->name) : nullptr;
    auto program = target ? try_cast<PrimFunc>(*target) : std::nullopt;
    if (!program) return;
    VarMap dims = bind_scalars(*program, call);
    std::vector<Type> types;
    for (const Expr& tensor : call.tensors) types.push_back(tensor.type());
    types.insert(types.end(), call.outputs.begin(), call.outputs.end());
    std::vector<Buffer> buffers = buffer_params(*program);
    for (size_t i = 0; i < std::min(types.size(), buffers.size()); ++i) {
      const std::vector<Expr>& wanted = buffer_type(buffers[i]).shape;
      const std::vector<Expr>* given = known_shape(types[i]);
      if (!given || given->size() != wanted.size()) continue;  // the verifier's business
      for (size_t d = 0; d < wanted.size(); ++d) {
        Expr expected = substitute(wanted[d], dims);
        if (!structural_equal(expected, (*given)[d]))
          checks.push_back({cast_to((*given)[d], kInt64), cast_to(expected, kInt64)});
      }
    }
  }

  // The value's type as its parts tell it; object when only a declaration does: of what a function gives, and of the
  // items of such a tuple.
  Type known_type(const Binding& binding, std::vector<DimCheck>& checks) const {
    if (const TupleGetItem* item = binding.value.as<TupleGetItem>())
      return unproven_.contains(item->tuple.get()) ? object_type() : binding.value.type();
    const Call* call = binding.value.as<Call>();
    if (!call) return binding.value.type();
    if (!call->callee.is<OpRef>() || op_name(binding.value) == "relax.call_pure_packed") return object_type();
    return infer_call_type(*call, binding.var.span(), ops_, &checks);
  }
  // Whether the variable's declared type claims more than is known of its value.
  bool needs_cast(const Type& known, const Binding& binding) const {
    const Type& declared = binding.var.type();
    if (binding.value.is<If>()) {
      const If& choice = *binding.value.as<If>();
      return claims_more(declared, choice.then_branch.type()) || claims_more(declared, choice.else_branch.type());
    }
    return claims_more(declared, known);
  }
  bool claims_more(const Type& declared, const Type& known) const {
    if (declared.is<ObjectType>() || declared.is<PrimType>() || declared.is<FuncType>()) return false;
    if (const TupleType* items = declared.as<TupleType>()) {
      const TupleType* others = known.as<TupleType>();
      if (!others || others->items.size() != items->items.size()) return !items->items.empty();
      for (size_t i = 0; i < items->items.size(); ++i) {
        if (claims_more(items->items[i], others->items[i])) return true;
      }
      return false;
    }
    if (known.kind() != declared.kind()) return true;
    if (tensor_dtype(declared) && !tensor_dtype(known)) return true;
    if (known_rank(declared) >= 0 && known_rank(known) < 0) return true;
    const std::vector<Expr>*wanted = known_shape(declared), *given = known_shape(known);
    if (!wanted) return false;
    if (!given || given->size() != wanted->size()) return true;
    for (size_t d = 0; d < wanted->size(); ++d) {
      if (!proven((*wanted)[d], (*given)[d])) return true;
    }
    return false;
  }

  const IRModule& module_;
  std::vector<Analyzer> facts_;  // of each branch that is open
  std::unordered_set<const NodeHeader*> unproven_;
};

}  // namespace

IRModule check_dims(IRModule module, PassContext& context) {
  return map_functions(module,
                       [&](const FunctionRef& function) { return DimChecker(module, context.ops).check(function); });
}

}  // namespace relaxc
