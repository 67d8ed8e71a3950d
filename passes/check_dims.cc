// Expects: any module. Guarantees: where a call needs two dims to be equal, or a declared type says more than its value
// is known to be, the program proves it by its types or tests it before the call: a match_cast of shapes, or of the
// value. So no kernel is entered with dims that contradict each other or do not fit into the integers that its program
// counts in, and later passes may take declared types as true. Indices that are not known to be in range pass through
// relax.check_indices on their way to a gather or scatter.
#include <algorithm>

#include "passes/graph.h"
#include "passes/index_facts.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

class DimChecker final : public GraphRewriter {
 public:
  DimChecker(const IRModule& module, const PassContext& context)
      : GraphRewriter(context.ops), module_(module), gather_(context.gather) {}

  FunctionRef check(const FunctionRef& function) {
    facts_.assign(1, Analyzer());
    params_ = function->params;
    for (const VarRef& param : function->params) facts_.back().assume_dims(param.type());
    return run(function);
  }

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    for (const VarRef& param : std::exchange(params_, {})) require_value(param.type(), param, builder);
    if (binding.value.type().is<PrimType>())
      require_value(binding.cast.value_or(binding.var.type()), binding.value, builder);
    if (binding.cast) {
      learn_from_cast(binding);
      return std::nullopt;
    }
    indices_.note(binding);
    std::vector<DimCheck> checks;
    Type known = known_type(binding, checks);
    Expr checked = check_indices(binding.value, builder);
    if (auto kernel = match_kernel_call(checked)) checked = check_kernel(*kernel, checked, builder, checks);
    for (const DimCheck& check : checks) require(check, builder);
    if (!needs_cast(known, binding)) return same_node(checked, binding.value) ? std::nullopt : std::optional(checked);
    VarRef value = builder.emit(checked, binding.var->name);
    return builder.match_cast(value, binding.var.type(), binding.var->name);
  }
  void enter_branch() override { facts_.push_back(facts_.back()); }
  void leave_branch() override { facts_.pop_back(); }

 private:
  bool proven(const Expr& a, const Expr& b) const { return facts_.back().can_prove_equal(a, b); }

  void require(const DimCheck& check, Builder& builder) {
    if (proven(check.a, check.b)) return;
    const Expr a = facts_.back().simplify(check.a), b = facts_.back().simplify(check.b);
    builder.match_cast(shape_expr({a}), shape_type({b}), name_of_check(check.what));
    learn(a, b);
  }
  // A scalar whose type says what it equals.
  void require_value(const Type& type, const Expr& scalar, Builder& builder) {
    const PrimType* stated = type.as<PrimType>();
    if (stated && stated->value) require({cast_to(scalar, kInt64), cast_to(*stated->value, kInt64)}, builder);
  }
  // The importer and the user state equalities in the same form.
  void learn_from_cast(const Binding& binding) {
    const ShapeExpr* values = binding.value.as<ShapeExpr>();
    const std::vector<Expr>* dims = known_shape(*binding.cast);
    if (!values || !dims || dims->size() != values->values.size()) return;
    for (size_t d = 0; d < dims->size(); ++d)
      learn(facts_.back().simplify(values->values[d]), facts_.back().simplify((*dims)[d]));
  }
  // The call with its indices tested, where the operator does not take any and they are not known to be in range.
  Expr check_indices(const Expr& value, Builder& builder) {
    std::optional<IndexOperand> operand = find_index_operand(value, ops_, gather_);
    if (!operand) return value;
    Call node = *value.as<Call>();
    Expr& indices = node.args[operand->position];
    if (indices_.prove(indices, operand->dims, facts_.back(), builder.span())) return value;
    if (indices.type().is<PrimType>()) indices = builder.op("scalar_to_tensor", {indices});
    indices = builder.op("check_indices", {indices, shape_expr(operand->dims)}, {}, "indices");
    return make(std::move(node), value.type(), value.span());
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

  // A call of a tensor program, by call_tir or with its destinations.
  struct KernelCall {
    std::string name;
    PrimFuncRef program;         // with its dims and scalars in int64, as the caller has them
    std::vector<DType> written;  // the types of scalar_arguments(program) as they were written
    std::vector<Expr> tensors;
    std::vector<Type> outputs;
    VarMap dims;  // the program's variables in the caller's terms
  };
  std::optional<KernelCall> match_kernel_call(const Expr& value) const {
    const Call* node = value.as<Call>();
    std::optional<CallTir> call_tir = match_call_tir(value);
    const GlobalVar* name = call_tir ? call_tir->callee.as<GlobalVar>() : node ? node->callee.as<GlobalVar>() : nullptr;
    const Expr* target = name ? module_.find(name->name) : nullptr;
    std::optional<PrimFuncRef> program;
    if (target) program = try_cast<PrimFunc>(*target);
    if (!program) return std::nullopt;
    KernelCall result{name->name, promote_indices(*program), {}, {}, {}, {}};
    for (const VarRef& var : scalar_arguments(*program)) result.written.push_back(dtype_of(var));
    if (call_tir) {
      result.tensors = call_tir->tensors;
      result.outputs = call_tir->outputs;
      result.dims = bind_scalars(result.program, *call_tir);
      return result;
    }
    result.tensors = node->args;
    if (node->args.empty() || !node->args.back().is<ShapeExpr>()) return result;
    result.tensors.pop_back();
    const std::vector<Expr>& scalars = node->args.back().as<ShapeExpr>()->values;
    std::vector<VarRef> vars = scalar_arguments(result.program);
    for (size_t i = 0; i < std::min(vars.size(), scalars.size()); ++i) result.dims.emplace(vars[i].get(), scalars[i]);
    return result;
  }

  // Gathers what the kernel's buffers demand of the tensors. Those of which too little is known are cast to the
  // buffer's type; the result is the call with the casts in their place.
  Expr check_kernel(KernelCall call, const Expr& value, Builder& builder, std::vector<DimCheck>& checks) {
    std::vector<Buffer> buffers = buffer_params(call.program);
    bool changed = false;
    for (size_t i = 0; i < buffers.size() && i < call.tensors.size() + call.outputs.size(); ++i) {
      bool is_input = i < call.tensors.size();
      const Type& type = is_input ? call.tensors[i].type() : call.outputs[i - call.tensors.size()];
      const BufferType& wanted = buffer_type(buffers[i]);
      const std::vector<Expr>* given = known_shape(type);
      if (given && given->size() == wanted.shape.size() && tensor_dtype(type)) {
        if (*tensor_dtype(type) != wanted.dtype)
          fail(builder.span(), "{} is {} where buffer '{}' wants {}", is_input ? "an argument" : "an output",
               to_string(*tensor_dtype(type)), buffers[i]->name, to_string(wanted.dtype));
        for (size_t d = 0; d < given->size(); ++d) {
          Expr expected = substitute(wanted.shape[d], call.dims);
          if (!structural_equal(expected, (*given)[d]))
            checks.push_back({cast_to((*given)[d], kInt64), cast_to(expected, kInt64)});
        }
      } else if (is_input) {
        std::vector<Expr> dims;
        for (const Expr& dim : wanted.shape) {
          for (const VarRef& var : free_vars(dim)) call.dims.emplace(var.get(), make_dim(var->name));
          dims.push_back(cast_to(substitute(dim, call.dims), kInt64));
        }
        call.tensors[i] = builder.match_cast(call.tensors[i], tensor_type(std::move(dims), wanted.dtype));
        changed = true;
      }
    }
    std::vector<VarRef> scalars = scalar_arguments(call.program);
    for (size_t i = 0; i < scalars.size(); ++i) {
      auto dim = call.dims.find(scalars[i].get());
      DType dtype = call.written[i];
      if (dim == call.dims.end() || !dtype.is_integral() || dtype == kInt64) continue;
      DimCheck check = fits(cast_to(dim->second, kInt64), dtype);
      check.what = fmt::format("{} of {} fits {}", scalars[i]->name, call.name, to_string(dtype));
      require(check, builder);
    }
    if (!changed) return value;
    Call copy = *value.as<Call>();
    if (match_call_tir(value)) {
      copy.args[1] = tuple(call.tensors);
    } else {
      std::copy(call.tensors.begin(), call.tensors.end(), copy.args.begin());
    }
    return make(std::move(copy), value.type(), value.span());
  }

  // A dim is the largest one that fits, or less. Scalars may be negative, which no shape can hold: theirs is a yes or
  // no.
  DimCheck fits(const Expr& number, DType dtype) const {
    int value_bits = dtype.is_int() ? dtype.bits - 1 : dtype.bits;
    Expr nearest = number;
    if (value_bits < 63) nearest = min(nearest, int_imm((int64_t{1} << value_bits) - 1));
    if (facts_.back().bounds(number).min >= 0) return {nearest, number};
    nearest = max(nearest, int_imm(dtype.is_int() ? -(int64_t{1} << value_bits) : 0));
    return {select(equal(nearest, number), int_imm(1), int_imm(0)), int_imm(1)};
  }

  // The value's type as its parts tell it; object when only a declaration does: of what a function gives.
  Type known_type(const Binding& binding, std::vector<DimCheck>& checks) const {
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
  OutOfRange gather_;
  IndexFacts indices_;
  std::vector<Analyzer> facts_;  // of each branch that is open
  std::vector<VarRef> params_;   // those that are not checked yet
};

}  // namespace

IRModule check_dims(IRModule module, PassContext& context) {
  return map_functions(module,
                       [&](const FunctionRef& function) { return DimChecker(module, context).check(function); });
}

}  // namespace relaxc
