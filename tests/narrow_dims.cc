#include "tests/narrow_dims.h"

#include "ir/op_names.h"
#include "ir/visit.h"

namespace relaxc::test {

namespace {

class Narrower final : public Rewriter {
 public:
  Narrower(const PrimFuncRef& function, DType dtype) : dtype_(dtype) {
    auto narrow = [&](const VarRef& var) {
      if (is_wide(var)) renamed_.try_emplace(var.get(), make_var(var->name, prim_type(dtype_), var.span()));
    };
    for (const VarRef& var : scalar_arguments(function)) narrow(var);
    walk(
        function, [&](const For& loop) { narrow(loop.var); },
        [&](const Block& block) {
          for (const IterVar& axis : block.iter_vars) narrow(axis.var);
        });
    counts_ = renamed_;
  }

  Type type(const Type& t) override {
    const BufferType* buffer = t.as<BufferType>();
    if (!buffer) return Rewriter::type(t);
    BufferType copy = *buffer;
    for (Expr& dim : copy.shape) dim = narrow(dim);
    return make(std::move(copy), t.span());
  }
  Expr expr(const Expr& e) override {
    if (counts(e)) return cast_to(counts_.at(e.get()), kInt64);
    const Binary* node = e.as<Binary>();
    if (node && info(node->op).compares && is_wide(node->a) && fits(node->a) && fits(node->b) && !has_elements(e))
      return binary(node->op, narrow(node->a), narrow(node->b), e.span());
    if (const BufferLoad* load = e.as<BufferLoad>()) {
      BufferLoad copy = *load;
      copy.buffer = var(load->buffer);
      for (Expr& index : copy.indices) index = narrow(index);
      return make(std::move(copy), e.type(), e.span());
    }
    return Rewriter::expr(e);
  }
  Stmt stmt(const Stmt& s) override {
    if (const BufferStore* node = s.as<BufferStore>()) {
      std::vector<Expr> at;
      for (const Expr& index : node->indices) at.push_back(narrow(index));
      return store(var(node->buffer), expr(node->value), std::move(at), s.span());
    }
    if (const For* node = s.as<For>()) {
      For copy = *node;
      copy.var = var(node->var);
      copy.min = bound(node->min, copy.var);
      copy.extent = bound(node->extent, copy.var);
      copy.body = stmt(node->body);
      return make(std::move(copy), s.span());
    }
    if (!s.is<Block>()) return Rewriter::stmt(s);
    Block copy = *s.as<Block>();
    for (IterVar& axis : copy.iter_vars) {
      axis.value = bound(axis.value, var(axis.var));
      axis.domain = {bound(axis.domain.min, var(axis.var)), bound(axis.domain.extent, var(axis.var))};
    }
    for (auto* regions : {&copy.reads, &copy.writes}) {
      for (BufferRegion& region : *regions) {
        for (Range& range : region.ranges) range = {narrow(range.min), narrow(range.extent)};
      }
    }
    return Rewriter::stmt(make(std::move(copy), s.span()));
  }

 private:
  static bool is_wide(const Expr& e) {
    const PrimType* scalar = e.type().as<PrimType>();
    return scalar && scalar->dtype == kInt64;
  }
  bool counts(const Expr& e) const { return e.is<Var>() && counts_.contains(e.get()); }
  Expr bound(const Expr& e, const VarRef& var) { return dtype_of(var) == dtype_ ? narrow(e) : expr(e); }

  // Returns whether every constant in the expression fits in int32. Products of the sizes that tests draw do.
  bool fits(const Expr& e) const {
    bool result = true;
    walk(e,
         [&](const Ref<IntImm>& number) { result = result && number->value == static_cast<int32_t>(number->value); });
    return result;
  }
  // Elements, and variables that may hold some, may be as large as their dtype; only those that are indices are small.
  bool has_elements(const Expr& e) const {
    bool result = false;
    walk(e, [&](const BufferLoad&) { result = true; }, [&](const Ref<Var>& var) { result = result || !counts(var); });
    return result;
  }
  Expr narrow(const Expr& e) {
    if (const Ramp* node = e.as<Ramp>(); node && is_wide(node->base))
      return ramp(narrow(node->base), narrow(node->stride), node->lanes, e.span());
    if (!is_wide(e)) return expr(e);  // done already
    if (counts(e)) return counts_.at(e.get());
    if (!fits(e)) return cast_to(expr(e), dtype_);
    if (const Binary* node = e.as<Binary>()) return binary(node->op, narrow(node->a), narrow(node->b), e.span());
    if (const Select* node = e.as<Select>()) return select(expr(node->condition), narrow(node->a), narrow(node->b));
    if (const Call* node = as_call(e, ops::kIfThenElse))
      return if_then_else(expr(node->args[0]), narrow(node->args[1]), narrow(node->args[2]));
    return cast_to(expr(e), dtype_);
  }

  DType dtype_;
  std::unordered_map<const NodeHeader*, VarRef> counts_;
};

}  // namespace

PrimFuncRef counted_in(const PrimFuncRef& program, DType dtype) {
  PrimFuncRef result = cast<PrimFunc>(Narrower(program, dtype)(static_cast<const Expr&>(program)));
  return make_prim_func(PrimFunc(*result), program.span());
}
IRModule counted_in(IRModule module, DType dtype) {
  for (auto& [name, function] : module.functions) {
    if (auto program = try_cast<PrimFunc>(function)) function = counted_in(*program, dtype);
  }
  return module;
}

}  // namespace relaxc::test
