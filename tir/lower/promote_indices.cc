// A program may use any integer type for its dims and loops; a graph's dims are int64. This file is the only place
// where the two meet. Each scalar parameter, dim, loop variable and axis is replaced by an int64 variable, and each
// expression is rewritten in one of two ways. expr() keeps the dtype: a replaced variable is cast back. wide() gives
// the same value in int64; it is for indices, bounds, dims and comparisons. It descends into signed arithmetic of at
// least 32 bits, whose overflow is undefined, as in TVM. Other arithmetic may wrap, so only its result is cast.
#include "ir/op_names.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

bool cannot_wrap(DType dtype) { return dtype.is_int() && dtype.bits >= 32; }

class Promoter final : public Rewriter {
 public:
  explicit Promoter(const PrimFuncRef& function) {
    auto promote = [&](const VarRef& var) {
      DType dtype = scalar_dtype(var);
      if (dtype.is_integral() && dtype.lanes == 1 && dtype != kInt64)
        renamed_.try_emplace(var.get(), make_dim(var->name, var.span()));
    };
    for (const VarRef& var : scalar_arguments(function)) promote(var);
    walk(
        function, [&](const For& loop) { promote(loop.var); },
        [&](const Block& block) {
          for (const IterVar& axis : block.iter_vars) promote(axis.var);
          for (const MatchBuffer& window : block.match_buffers) {
            for (const VarRef& var : window.defines) promote(var);
          }
        });
    promoted_ = renamed_;
  }
  bool found() const { return !promoted_.empty(); }

  Type type(const Type& t) override {
    const BufferType* buffer = t.as<BufferType>();
    if (!buffer) return Rewriter::type(t);
    BufferType copy = *buffer;
    for (auto* dims : {&copy.shape, &copy.strides}) {
      for (Expr& dim : *dims) dim = wide(dim);
    }
    if (copy.elem_offset) copy.elem_offset = wide(*copy.elem_offset);
    Type result = make(std::move(copy), t.span());
    return Rewriter::type(structural_equal(result, t) ? t : result);
  }

  Expr expr(const Expr& e) override {
    if (is_promoted(e)) return cast_to(promoted_.at(e.get()), dtype_of(e), e.span());
    if (const Binary* node = e.as<Binary>(); node && info(node->op).compares && (widens(node->a) || widens(node->b)))
      return binary(node->op, wide(node->a), wide(node->b), e.span());
    if (e.is<Cast>() && widens(e)) return wide(e);
    if (const BufferLoad* node = e.as<BufferLoad>()) {
      BufferLoad copy = *node;
      for (Expr& index : copy.indices) index = wide(index);
      return Rewriter::expr(make(std::move(copy), e.type(), e.span()));
    }
    return Rewriter::expr(e);
  }

  Stmt stmt(const Stmt& s) override {
    if (const BufferStore* node = s.as<BufferStore>()) {
      BufferStore copy = *node;
      for (Expr& index : copy.indices) index = wide(index);
      return Rewriter::stmt(make(std::move(copy), s.span()));
    }
    if (const For* node = s.as<For>()) {
      For copy = *node;
      copy.min = wide(node->min);
      copy.extent = wide(node->extent);
      if (copy.step) copy.step = wide(*copy.step);
      return Rewriter::stmt(make(std::move(copy), s.span()));
    }
    if (const Block* node = s.as<Block>()) return Rewriter::stmt(make(with_wide_bounds(*node), s.span()));
    return Rewriter::stmt(s);
  }

 private:
  static DType scalar_dtype(const Expr& e) {
    const PrimType* scalar = e.type().as<PrimType>();
    return scalar ? scalar->dtype : DType::handle();
  }
  bool is_promoted(const Expr& e) const { return e.is<Var>() && promoted_.contains(e.get()); }

  // Returns whether wide() reaches a promoted variable.
  bool widens(const Expr& e) const {
    if (is_promoted(e)) return true;
    if (!cannot_wrap(scalar_dtype(e))) return false;
    auto any = [&](auto&... parts) { return (widens(parts) || ...); };
    if (const Binary* node = e.as<Binary>()) return any(node->a, node->b);
    if (const Select* node = e.as<Select>()) return any(node->a, node->b);
    if (const Call* node = as_call(e, ops::kIfThenElse)) return any(node->args[1], node->args[2]);
    if (const Ramp* node = e.as<Ramp>()) return any(node->base, node->stride);
    if (const Broadcast* node = e.as<Broadcast>()) return any(node->value);
    if (const Cast* node = e.as<Cast>()) return scalar_dtype(e).element() == kInt64 && any(node->value);
    return false;
  }

  // Returns the value of an integer expression in int64.
  Expr wide(const Expr& e) {
    DType dtype = scalar_dtype(e);
    if (!dtype.is_integral()) return expr(e);  // not a valid program
    if (is_promoted(e)) return promoted_.at(e.get());
    DType result = kInt64.with_lanes(dtype.lanes);
    // Later steps recognize vectors of neighbouring elements by their Ramp, which a cast around it would hide.
    bool is_vector = cannot_wrap(dtype) && (e.is<Ramp>() || e.is<Broadcast>());
    if (!is_vector && !widens(e)) return cast_to(expr(e), result, e.span());
    if (const Binary* node = e.as<Binary>()) return binary(node->op, wide(node->a), wide(node->b), e.span());
    if (const Select* node = e.as<Select>())
      return select(expr(node->condition), wide(node->a), wide(node->b), e.span());
    if (const Call* node = as_call(e, ops::kIfThenElse))
      return if_then_else(expr(node->args[0]), wide(node->args[1]), wide(node->args[2]), e.span());
    if (const Ramp* node = e.as<Ramp>()) return ramp(wide(node->base), wide(node->stride), node->lanes, e.span());
    if (const Broadcast* node = e.as<Broadcast>()) return broadcast(wide(node->value), node->lanes, e.span());
    return wide(e.as<Cast>()->value);
  }
  void widen(Range& range) { range = {wide(range.min), wide(range.extent)}; }
  void widen(BufferRegion& region) {
    for (Range& range : region.ranges) widen(range);
  }

  Block with_wide_bounds(Block block) {
    for (IterVar& axis : block.iter_vars) {
      widen(axis.domain);
      axis.value = wide(axis.value);
    }
    for (BufferRegion& region : block.reads) widen(region);
    for (BufferRegion& region : block.writes) widen(region);
    for (MatchBuffer& window : block.match_buffers) widen(window.source);
    return block;
  }

  std::unordered_map<const NodeHeader*, VarRef> promoted_;
};

}  // namespace

PrimFuncRef promote_indices(const PrimFuncRef& function) {
  Promoter promoter(function);
  if (!promoter.found()) return function;
  PrimFuncRef result = cast<PrimFunc>(promoter(static_cast<const Expr&>(function)));
  return make_prim_func(PrimFunc(*result), function.span());
}

}  // namespace relaxc
