#include "tir/lower/lower.h"

namespace relaxc {

namespace {

bool is_narrow(const Type& type) {
  const PrimType* prim = type.as<PrimType>();
  return prim && prim->dtype == kInt32;
}

class Promoter final : public Rewriter {
 public:
  explicit Promoter(const PrimFuncRef& function) {
    auto promote = [&](const VarRef& var) {
      if (!is_narrow(var.type()) || renamed_.contains(var.get())) return;
      renamed_.emplace(var.get(), make_dim(var->name, var.span()));
      found_ = true;
    };
    for (const VarRef& var : scalar_arguments(function)) {
      bool is_param = false;
      for (const VarRef& param : function->params) is_param = is_param || same_node(param, var);
      if (!is_param) promote(var);  // explicit scalar params keep their declared dtype
    }
    walk(
        function, [&](const For& loop) { promote(loop.var); },
        [&](const Block& block) {
          for (const IterVar& axis : block.iter_vars) promote(axis.var);
        });
  }
  bool found() const { return found_; }

  // Dims that are numbers go with the indices they bound.
  Type type(const Type& t) override {
    const BufferType* buffer = t.as<BufferType>();
    if (!buffer) return Rewriter::type(t);
    BufferType copy = *cast_handle<Type>(Rewriter::type(t)).as<BufferType>();
    bool changed = false;
    for (Expr& dim : copy.shape) {
      if (!dim.is<IntImm>() || !is_narrow(dim.type())) continue;
      dim = int_imm(*as_int(dim), kInt64, dim.span());
      changed = true;
    }
    return changed ? make(std::move(copy)) : Rewriter::type(t);
  }
  Expr expr(const Expr& e) override {
    if (e.is<Var>()) return var(cast<Var>(e));
    if (const Binary* node = e.as<Binary>()) {
      Expr a = expr(node->a), b = expr(node->b);
      match(a, b);
      if (same_node(a, node->a) && same_node(b, node->b)) return e;
      return binary(node->op, a, b, e.span());
    }
    if (const Select* node = e.as<Select>()) {
      Expr a = expr(node->a), b = expr(node->b);
      match(a, b);
      return select(expr(node->condition), a, b, e.span());
    }
    if (const Cast* node = e.as<Cast>()) return cast_to(expr(node->value), dtype_of(e), e.span());
    if (const Ramp* node = e.as<Ramp>()) {
      Expr base = expr(node->base), stride = expr(node->stride);
      match(base, stride);
      return ramp(base, stride, node->lanes, e.span());
    }
    if (const Broadcast* node = e.as<Broadcast>()) return broadcast(expr(node->value), node->lanes, e.span());
    if (const Let* node = e.as<Let>())
      return let(node->var, back(expr(node->value), dtype_of(node->value)), expr(node->body), e.span());
    if (const Call* node = e.as<Call>()) {
      Call copy = *node;
      for (Expr& arg : copy.args) {
        if (arg.type().is<PrimType>()) arg = back(expr(arg), dtype_of(arg));
      }
      return make(std::move(copy), e.type(), e.span());
    }
    return Rewriter::expr(e);
  }

  Stmt stmt(const Stmt& s) override {
    if (const BufferStore* node = s.as<BufferStore>()) {
      BufferStore copy = *node;
      copy.buffer = var(node->buffer);
      copy.value = back(expr(node->value), dtype_of(node->value));
      for (Expr& index : copy.indices) index = expr(index);
      return make(std::move(copy), s.span());
    }
    if (const Bind* node = s.as<Bind>())
      return make(Bind{node->var, back(expr(node->value), dtype_of(node->value))}, s.span());
    Stmt result = Rewriter::stmt(s);
    if (const For* node = result.as<For>()) {
      For copy = *node;
      copy.min = back(node->min, dtype_of(node->var));
      copy.extent = back(node->extent, dtype_of(node->var));
      return make(std::move(copy), s.span());
    }
    if (const Block* node = result.as<Block>()) {
      Block copy = *node;
      for (IterVar& axis : copy.iter_vars) {
        DType dtype = dtype_of(axis.var);
        axis.value = back(axis.value, dtype);
        axis.domain = {back(axis.domain.min, dtype), back(axis.domain.extent, dtype)};
      }
      for (auto* regions : {&copy.reads, &copy.writes}) {
        for (BufferRegion& region : *regions) {
          for (Range& range : region.ranges) match(range.min, range.extent);
        }
      }
      return make(std::move(copy), s.span());
    }
    return result;
  }

 private:
  static Expr back(const Expr& e, DType dtype) { return cast_to(e, dtype); }
  static void match(Expr& a, Expr& b) {
    if (!a.type().is<PrimType>() || dtype_of(a) == dtype_of(b)) return;
    if (dtype_of(a).bits < dtype_of(b).bits) {
      a = cast_to(a, dtype_of(b));
    } else {
      b = cast_to(b, dtype_of(a));
    }
  }
  bool found_ = false;
};

}  // namespace

PrimFuncRef promote_indices(const PrimFuncRef& function) {
  Promoter promoter(function);
  if (!promoter.found()) return function;
  return cast<PrimFunc>(promoter(static_cast<const Expr&>(function)));
}

}  // namespace relaxc
