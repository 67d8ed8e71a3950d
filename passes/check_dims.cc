// Expects: any module. Guarantees: where a call needs two dims to be equal, or a declared type says more than its value
// is known to be, the program proves it by its types or tests it before the call: a match_cast of shapes, or of the
// value. So no kernel is entered with dims that contradict each other or do not fit into the integers that its program
// counts in, and later passes may trust declared types. Indices that are not known to be in range pass through
// relax.check_indices on their way to a gather or scatter.
#include <algorithm>
#include <limits>
#include <ranges>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "passes/graph_rewriter.h"
#include "passes/loop_facts.h"
#include "support/lists.h"
#include "tir/lower/lower.h"
#include "vm/index_check.h"

namespace relaxc {

namespace {

// ---- Indices

// Operators whose elements are elements of their first argument.
constexpr OpName kMoves[] = {ops::kReshape,        ops::kExpandDims,   ops::kSqueeze,     ops::kPermuteDims,
                             ops::kFlatten,        ops::kBroadcastTo,  ops::kTake,        ops::kGatherNd,
                             ops::kGatherElements, ops::kCheckIndices, ops::kStridedSlice};
constexpr int kDeepest = 16;  // bindings through which a range is traced back

// Returns the operand whose values must be in [-dim, dim); nullopt where there is none, or gathers clamp it.
std::optional<IndexOperand> find_index_operand(const Expr& value, const OpTable& ops, OutOfRange gather) {
  const OpRow* row = ops.find(op_name(value));
  if (!row || !row->indexed) return std::nullopt;
  auto indexed = row->indexed(OpCall{*value.as<Call>(), value.span()});
  return indexed && indexed->reads && gather == OutOfRange::kClamp ? std::nullopt : indexed;
}

// Collects the facts that the bindings so far give about their variables.
class IndexFacts {
 public:
  void note(const Binding& binding) { values_.emplace(binding.var.get(), binding.value); }

  // Returns whether all elements are known to be in range. Fails at the span when a constant has one that is not.
  bool prove(const Expr& indices, const std::vector<Expr>& dims, const Analyzer& facts, const Span& span) const {
    const Constant* constant = indices.as<Constant>();
    std::optional<std::vector<int64_t>> sizes = constant_shape(shape_type(dims));
    if (constant && sizes) {
      auto bad = vm::find_bad_index(constant->data, *sizes);
      if (bad) fail(span, "indices{}", vm::describe(*bad, constant->data));
      return true;
    }
    const Expr* value = value_of(indices);
    const Call* check = value ? as_call(*value, ops::kCheckIndices) : nullptr;
    if (check && structural_equal(check->args[1], shape_expr(dims))) return true;
    std::optional<Range> range = range_of(indices);
    auto holds = [&](const Expr& dim) {
      return facts.can_prove(int_imm(0) - dim <= range->least) && facts.can_prove(range->most < dim);
    };
    return range && std::ranges::all_of(dims, holds);
  }

 private:
  struct Range {
    Expr least, most;
  };

  const Expr* value_of(const Expr& leaf) const { return find_value(values_, leaf.get()); }

  // Returns the range of positions along the axis of the call.
  template <class Attrs>
  std::optional<Range> range_of_position(const Call& node) const {
    std::optional<int64_t> axis = read_attrs<Attrs>(node.attrs).axis;
    const std::vector<Expr>* shape = known_shape(node.args[0].type());
    if (!shape || shape->empty() || !axis) return std::nullopt;
    size_t d = static_cast<size_t>(*axis < 0 ? *axis + static_cast<int64_t>(shape->size()) : *axis);
    return Range{int_imm(0), (*shape)[d] - 1};
  }

  std::optional<Range> range_of(const Expr& tensor, int depth = 0) const {
    if (depth > kDeepest) return std::nullopt;
    if (tensor.type().is<PrimType>()) return Range{tensor, tensor};
    if (const Constant* constant = tensor.as<Constant>()) {
      if (constant->data.size() == 0) return std::nullopt;
      auto element = [&](int64_t i) { return constant->data.as_int(i); };
      auto [least, most] =
          std::ranges::minmax(std::views::iota(int64_t{0}, constant->data.size()) | std::views::transform(element));
      return Range{int_imm(least), int_imm(most)};
    }
    if (const Expr* value = value_of(tensor)) {
      if (auto range = range_of_call(*value, depth + 1)) return range;
      const TupleGetItem* item = value->as<TupleGetItem>();
      const Expr* whole = item && item->index == 1 ? value_of(item->tuple) : nullptr;
      if (whole && as_call(*whole, ops::kTopK)) return range_of_position<TopKAttrs>(*whole->as<Call>());
      if (whole && as_call(*whole, ops::kDynTopK)) return range_of_position<DynamicTopKAttrs>(*whole->as<Call>());
    }
    auto dtype = tensor_dtype(tensor.type());
    if (!dtype || !dtype->is_integral() || dtype->bits > 16) return std::nullopt;
    int64_t values = int64_t{1} << dtype->bits;
    if (dtype->is_uint()) return Range{int_imm(0), int_imm(values - 1)};
    return Range{int_imm(-values / 2), int_imm(values / 2 - 1)};
  }

  std::optional<Range> range_of_call(const Expr& value, int depth) const {
    const std::string& op = op_name(value);
    if (op.empty()) return std::nullopt;
    const Call& node = *value.as<Call>();
    if (find_item(kMoves, op, &OpName::text)) return range_of(node.args[0], depth);
    if (op == ops::kScalarToTensor) return Range{node.args[0], node.args[0]};
    if (op == ops::kAstype) {
      auto from = tensor_dtype(node.args[0].type()), to = tensor_dtype(value.type());
      bool keeps = from && to && from->is_int() && to->is_int() && from->bits <= to->bits;
      return keeps ? range_of(node.args[0], depth) : std::nullopt;
    }
    if (op == ops::kArange) {
      auto step = node.args.size() > 2 ? as_int(node.args[2]) : std::optional<int64_t>(1);
      bool is_integer = node.args.size() > 1 && dtype_of(node.args[0]).is_int() && dtype_of(node.args[1]).is_int();
      if (!is_integer || !step || *step < 1) return std::nullopt;
      return Range{node.args[0], node.args[1] - 1};
    }
    if (op == ops::kArgmax || op == ops::kArgmin) return range_of_position<ArgReduceAttrs>(node);
    return op == ops::kArgsort ? range_of_position<ArgsortAttrs>(node) : std::nullopt;
  }

  std::unordered_map<const NodeHeader*, Expr> values_;
};

// ---- Dims

class DimChecker final : public GraphRewriter {
 public:
  DimChecker(const IRModule& module, const PassContext& context)
      : GraphRewriter(context.ops), module_(module), gather_(context.gather) {}

  // The fact, if any, is about the function as the body of a loop.
  FunctionRef check(const FunctionRef& function, const LoopFact* loop) {
    facts_.assign(1, Analyzer());
    params_ = function->params;
    for (const VarRef& param : function->params) facts_.back().assume_dims(param.type());
    if (loop && loop->below) facts_.back().bind(loop->iteration, int_imm(0), *loop->below);
    if (loop && !loop->below) facts_.back().bind(loop->iteration, Interval{0, std::numeric_limits<int64_t>::max()});
    return run(with_checked_result(function));
  }

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    if (facts_.size() == 1) {  // the outermost scope
      for (const VarRef& param : std::exchange(params_, {})) require_value(param.type(), param, builder);
    }
    if (binding.value.type().is<PrimType>())
      require_value(binding.cast.value_or(binding.var.type()), binding.value, builder);
    if (binding.cast) {
      learn_from_cast(binding);
      // The check of a scalar is a cast of a shape, too.
      if (!binding.cast->is<ShapeType>()) facts_.back().assume_dims(*binding.cast);
      return std::nullopt;
    }
    indices_.note(binding);
    std::vector<DimCheck> checks;
    Type known = known_type(binding, checks);
    Expr checked = check_indices(binding.value, builder);
    if (auto kernel = as_spread_kernel_call(checked, module_))
      checked = check_kernel(*kernel, checked, builder, checks);
    for (const DimCheck& check : checks) require(check, builder);
    if (!known.is<ShapeType>()) facts_.back().assume_dims(known);  // a tensor that is there has no negative dim
    if (!needs_cast(known, binding)) return same_node(checked, binding.value) ? std::nullopt : std::optional(checked);
    VarRef value = builder.emit(checked, binding.var->name);
    return builder.match_cast(value, binding.var.type(), binding.var->name);
  }
  void enter_scope() override { facts_.push_back(facts_.back()); }
  void leave_scope() override { facts_.pop_back(); }

 private:
  // Adds a cast of the returned value where the declared result says more.
  FunctionRef with_checked_result(const FunctionRef& function) const {
    SeqExpr seq = *cast<SeqExpr>(function->body);
    if (!claims_more(function->result, seq.body.type())) return function;
    VarRef returned = make_var("returned", function->result, seq.body.span());
    seq.blocks.push_back({false, {{seq.body, function->result, returned}}, {}});
    Function copy = *function;
    copy.body = seq_expr(std::move(seq.blocks), returned, function->body.span());
    return make_function(std::move(copy), function.span());
  }
  void require(const DimCheck& check, Builder& builder) {
    if (equal_dims(check.a, check.b, facts_.back()) == Verdict::kProven) return;
    const Expr a = facts_.back().simplify(check.a), b = facts_.back().simplify(check.b);
    builder.match_cast(shape_expr({a}), shape_type({b}), name_of_check(check.what));
    learn(a, b);
  }
  // Tests a scalar whose type states its value.
  void require_value(const Type& type, const Expr& scalar, Builder& builder) {
    const PrimType* stated = type.as<PrimType>();
    if (stated && stated->value) require({cast_to(scalar, kInt64), cast_to(*stated->value, kInt64)}, builder);
  }
  // The importer and users state equalities as casts of shapes, too.
  void learn_from_cast(const Binding& binding) {
    const ShapeExpr* values = binding.value.as<ShapeExpr>();
    const std::vector<Expr>* dims = known_shape(*binding.cast);
    if (!values || !dims || dims->size() != values->values.size()) return;
    for (size_t d = 0; d < dims->size(); ++d)
      learn(facts_.back().simplify(values->values[d]), facts_.back().simplify((*dims)[d]));
  }
  // Returns the call with a test of its indices, unless the operator takes any or they are known to be in range.
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

  // Takes a == b as a fact from here on; both are simplified.
  void learn(const Expr& a, const Expr& b) {
    auto stands_for = [&](const Expr& dim, const Expr& value) {
      auto var = try_cast<Var>(dim);
      if (!var || uses_var(value, *var)) return false;
      facts_.back().bind(*var, value);
      return true;
    };
    if (!stands_for(b, a) && !stands_for(a, b)) facts_.back().assume(equal(a, b));
  }

  // Gathers what the kernel's buffers demand of the tensors. Those of which too little is known are cast to the
  // buffer's type; the result is the call with the casts in their place.
  Expr check_kernel(const KernelCall& kernel, const Expr& value, Builder& builder, std::vector<DimCheck>& checks) {
    std::optional<PrimFuncRef> called = called_program(kernel.callee, module_);
    if (!called) return value;
    PrimFuncRef program = promote_indices(*called);  // its dims and scalars in int64, as the caller has them
    KernelMatch match = match_kernel(kernel, program);
    Expr result = cast_unknown(value, kernel.tensors, match, builder);
    if (!same_node(result, value)) match = match_kernel(*as_kernel_call(result, module_), program);
    for (const std::string& contradiction : match.contradictions) fail(builder.span(), "{}", contradiction);
    for (const KernelDim& dim : unproven_dims(match)) {
      const KernelOperand& operand = *dim.operand;
      const Expr& declared = buffer_type(operand.param).shape[dim.dim];
      checks.push_back({dim.given, dim.wanted,
                        fmt::format("dim {} of {} and {} of kernel {}", dim.dim, operand.param->name,
                                    declared.is<Var>() ? text_of_dim(declared) : "the size", kernel.name())});
    }
    require_narrow(*called, program, match.dims, kernel.name(), builder);
    return result;
  }

  Expr cast_unknown(const Expr& value, std::vector<Expr> tensors, const KernelMatch& match, Builder& builder) {
    bool changed = false;
    VarMap known = match.dims;
    for (const KernelOperand& operand : match.operands) {
      if (operand.is_output || (known_shape(operand.type) && tensor_dtype(operand.type))) continue;
      const BufferType& buffer = buffer_type(operand.param);
      std::vector<Expr> dims;
      for (const Expr& dim : buffer.shape) {
        for (const VarRef& var : free_vars(dim)) known.emplace(var.get(), make_dim(var->name));
        dims.push_back(cast_to(substitute(dim, known), kInt64));
      }
      Expr& tensor = tensors[operand.number];
      tensor = builder.match_cast(tensor, tensor_type(std::move(dims), buffer.dtype));
      changed = true;
    }
    return changed ? with_tensors(value, tensors) : value;
  }

  // The numbers that the kernel takes must fit the types that it was written with.
  void require_narrow(const PrimFuncRef& written, const PrimFuncRef& promoted, const VarMap& dims,
                      const std::string& name, Builder& builder) {
    std::vector<VarRef> narrow = scalar_arguments(written), wide = scalar_arguments(promoted);
    for (size_t i = 0; i < wide.size(); ++i) {
      const Expr* dim = find_value(dims, wide[i].get());
      DType dtype = dtype_of(narrow[i]);
      if (!dim || !dtype.is_integral() || dtype == kInt64) continue;
      DimCheck check = in_range(cast_to(*dim, kInt64), dtype);
      check.what = fmt::format("{} of {} does not fit into {}", wide[i]->name, name, to_string(dtype));
      require(check, builder);
    }
  }

  // Returns a test that the number fits the dtype. That of a dim compares it with the nearest number that fits; that of
  // a scalar, which may be negative and so cannot stand in a shape, compares 1 with 1 or 0.
  DimCheck in_range(const Expr& number, DType dtype) const {
    int value_bits = dtype.is_int() ? dtype.bits - 1 : dtype.bits;
    Expr nearest = number;
    if (value_bits < 63) nearest = min(nearest, int_imm((int64_t{1} << value_bits) - 1));
    if (facts_.back().bounds(number).min >= 0) return {nearest, number};
    nearest = max(nearest, int_imm(dtype.is_int() ? -(int64_t{1} << value_bits) : 0));
    return {select(equal(nearest, number), int_imm(1), int_imm(0)), int_imm(1)};
  }

  // Returns the value's type as its parts give it; object where only a declaration does, as for a function's result.
  Type known_type(const Binding& binding, std::vector<DimCheck>& checks) const {
    const Call* call = binding.value.as<Call>();
    if (!call) return binding.value.type();
    if (!call->callee.is<OpRef>() || op_name(binding.value) == ops::kCallPurePacked) return object_type();
    return infer_call_type(*call, binding.var.span(), ops_, &checks);
  }
  // Returns whether the variable's declared type claims more than is known of its value.
  bool needs_cast(const Type& known, const Binding& binding) const {
    const Type& declared = binding.var.type();
    const If* choice = binding.value.as<If>();
    if (!choice) return claims_more(declared, known);
    return claims_more(declared, choice->then_branch.type()) || claims_more(declared, choice->else_branch.type());
  }
  bool claims_more(const Type& declared, const Type& known) const {
    if (declared.is<PrimType>() || declared.is<FuncType>()) return false;  // casts test neither
    if (is_container(declared)) return false;                              // what is taken out of it is tested
    const TupleType* items = declared.as<TupleType>();
    if (!items) return fits(declared, known, facts_.back()) != Verdict::kProven;
    const TupleType* others = known.as<TupleType>();
    if (!others || others->items.size() != items->items.size()) return !items->items.empty();
    return !std::ranges::equal(items->items, others->items,
                               [&](const Type& a, const Type& b) { return !claims_more(a, b); });
  }

  const IRModule& module_;
  OutOfRange gather_;
  IndexFacts indices_;
  std::vector<Analyzer> facts_;  // of each scope that is open
  std::vector<VarRef> params_;   // those that are not checked yet
};

}  // namespace

IRModule check_dims(IRModule module, PassContext& context) {
  const auto loops = find_loop_facts(module);
  return map_functions(module, [&](const FunctionRef& function) {
    return DimChecker(module, context).check(function, find_value(loops, function.get()));
  });
}

}  // namespace relaxc
