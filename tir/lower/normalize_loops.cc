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

PrimFuncRef normalize_loops(const PrimFuncRef& function) {
  Stmt body = rewrite(
      function->body,
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
