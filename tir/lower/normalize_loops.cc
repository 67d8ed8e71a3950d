#include "ir/op_names.h"
#include "tir/lower/lower.h"

namespace relaxc {

// Rewrites `for i in [min, min + extent) by step`: k counts the iterations, and i is min + k * step.
static Stmt without_step(const Ref<For>& loop) {
  const Expr& step = *loop->step;
  VarRef count = make_var(loop->var->name, loop->var.type(), loop->var.span());
  For copy = *loop;
  copy.var = count;
  copy.min = int_imm(0, dtype_of(loop->var));
  copy.extent = simplify(floor_div(loop->extent + step - 1, step));
  copy.step.reset();
  copy.body = substitute(loop->body, {{loop->var.get(), loop->min + count * step}});
  return make(std::move(copy), loop.span());
}

// Writes in each block the axis that is a loop's variable in place of that variable, so that the loop can change.
static Stmt with_axes(const Stmt& body, const VarSet& loops) {
  return rewrite(body, [&](const Ref<Block>& block) -> std::optional<Stmt> {
    VarMap axes;
    for (const IterVar& axis : block->iter_vars) {
      if (axis.value.is<Var>() && loops.contains(axis.value.get())) axes.emplace(axis.value.get(), axis.var);
    }
    if (axes.empty()) return std::nullopt;
    Block inside = *substitute(Stmt(block), axes).as<Block>();
    inside.iter_vars = block->iter_vars;
    inside.predicate = block->predicate;
    inside.body = with_axes(inside.body, loops);
    return make(std::move(inside), block.span());
  });
}

PrimFuncRef normalize_loops(const PrimFuncRef& function) {
  VarSet loops;
  walk(function->body, [&](const For& loop) { loops.insert(loop.var.get()); });
  Stmt body = rewrite(
      with_axes(function->body, loops),
      [](const Ref<For>& loop) -> std::optional<Stmt> {
        return loop->step ? std::optional(without_step(loop)) : std::nullopt;
      },
      [](const Ref<Evaluate>& node) -> std::optional<Stmt> {
        return as_call(node->value, ops::kAssume) ? std::optional(no_op()) : std::nullopt;
      },
      [](const Ref<Call>& call) -> std::optional<Expr> {
        return as_call(call, ops::kLikely) ? std::optional(call->args[0]) : std::nullopt;
      });
  if (same_node(body, function->body)) return function;
  return with_body(function,
                   rewrite(body, [](const Ref<Seq>& node) -> std::optional<Stmt> { return seq(node->stmts); }));
}

}  // namespace relaxc
