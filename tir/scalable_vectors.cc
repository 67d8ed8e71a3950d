#include "tir/scalable_vectors.h"

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/visit.h"

namespace relaxc {

namespace {

bool is_scalable(const Type& type) {
  const PrimType* prim = type.as<PrimType>();
  return prim && prim->dtype.is_scalable();
}

class FixedLength final : public Rewriter {
 public:
  explicit FixedLength(int vscale) : vscale_(vscale) {}

  Expr expr(const Expr& e) override {
    if (op_name(e) == ops::kVscale) return int_imm(vscale_, dtype_of(e));
    if (e.is<Var>()) return var(cast<Var>(e));
    if (!is_scalable(e.type())) return Rewriter::expr(e);
    // A vector of one lane is a scalar.
    if (const Ramp* node = e.as<Ramp>()) {
      Expr base = Rewriter::operator()(node->base), stride = Rewriter::operator()(node->stride);
      int lanes = fixed(node->lanes);
      return lanes == 1 ? base : ramp(base, stride, lanes, base.span());
    }
    if (const Broadcast* node = e.as<Broadcast>()) {
      Expr value = Rewriter::operator()(node->value);
      int lanes = fixed(node->lanes);
      return lanes == 1 ? value : broadcast(value, lanes, value.span());
    }
    return with_type(Rewriter::expr(e), type(e.type()));
  }
  VarRef var(const VarRef& v) override {
    if (!is_scalable(v.type())) return Rewriter::var(v);
    auto known = renamed_.find(v.get());
    if (known == renamed_.end()) known = renamed_.emplace(v.get(), make_var(v->name, type(v.type()), v.span())).first;
    return known->second;
  }
  Type type(const Type& t) override {
    if (!is_scalable(t)) return Rewriter::type(t);
    DType dtype = t.as<PrimType>()->dtype;
    return prim_type(dtype.with_lanes(fixed(DType::kScalable - dtype.lanes)));
  }

 private:
  int fixed(int64_t lanes) const { return static_cast<int>(lanes < 0 ? -lanes * vscale_ : lanes); }
  int vscale_;
};

}  // namespace

Expr vscale(DType dtype) { return cast_to(intrinsic(ops::kVscale, {}, kInt32), dtype); }

std::optional<int64_t> vector_lanes(const Expr& extent) {
  if (auto known = as_int(extent)) return known;
  if (is_vscale(extent)) return -1;
  const Binary* product = extent.as<Binary>();
  if (!product || product->op != BinaryOp::kMul) return std::nullopt;
  auto left = as_int(product->a), right = as_int(product->b);
  if (left && is_vscale(product->b)) return -*left;
  if (right && is_vscale(product->a)) return -*right;
  return std::nullopt;
}

Expr index_in_dtype(const Expr& index, DType dtype) {
  if (dtype_of(index) == dtype) return index;
  if (const Cast* cast = index.as<Cast>(); cast && dtype_of(cast->value) == dtype) return cast->value;
  const Binary* node = index.as<Binary>();
  bool is_arithmetic = node && dtype_of(node->a) == dtype_of(index) && dtype_of(index).is_integral();
  if (!is_arithmetic) return cast_to(index, dtype);
  return binary(node->op, index_in_dtype(node->a, dtype), index_in_dtype(node->b, dtype), index.span());
}

PrimFuncRef with_vscale(const PrimFuncRef& function, int vscale) {
  bool depends = any_node(function, [](const NodeRef& node) {
    if (!is_expr_kind(node.kind())) return false;
    Expr e = cast_handle<Expr>(node);
    return op_name(e) == ops::kVscale || is_scalable(e.type());
  });
  return depends ? cast<PrimFunc>(FixedLength(vscale)(static_cast<const Expr&>(function))) : function;
}

}  // namespace relaxc
