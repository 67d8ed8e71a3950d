// `for i in n: for j in m: x[i, j] = ...` runs only where m > 0: a tensor of shape [n, 0] may have any n, and counting
// to it would take years. The test stands once around the nest, and only where no fact about the dims decides it.
#include <algorithm>

#include "ir/undefined.h"
#include "support/temporarily.h"
#include "tir/analysis/conditions.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/program.h"

namespace relaxc {

namespace {

bool is_listed(const std::vector<Expr>& conditions, const Expr& condition) {
  return std::ranges::any_of(conditions, [&](const Expr& each) { return structural_equal(each, condition); });
}

void drop_conditions_on(const VarRef& var, std::vector<Expr>& conditions) {
  std::erase_if(conditions, [&](const Expr& condition) { return uses_var(condition, VarSet{var.get()}); });
}

// Returns the conditions that hold in both cases: those of both lists, and that the rest of one list or the other
// holds.
std::vector<Expr> needed_by_either(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  std::vector<Expr> common, only_a, only_b;
  for (const Expr& condition : a) (is_listed(b, condition) ? common : only_a).push_back(condition);
  for (const Expr& condition : b) {
    if (!is_listed(a, condition)) only_b.push_back(condition);
  }
  if (!only_a.empty() && !only_b.empty()) common.push_back(*conjunction(only_a) || *conjunction(only_b));
  return common;
}

// Returns conditions, each of which holds wherever the statement does something.
std::vector<Expr> needed_by(const Stmt& stmt) {
  if (const For* loop = stmt.as<For>()) {
    std::vector<Expr> result = needed_by(loop->body);
    drop_conditions_on(loop->var, result);
    if (!as_int(loop->extent)) result.push_back(loop->extent > int_imm(0, dtype_of(loop->extent)));
    return result;
  }
  if (const AttrStmt* attr = stmt.as<AttrStmt>()) return needed_by(attr->body);
  if (const IfThenElse* branch = stmt.as<IfThenElse>(); branch && !branch->else_body)
    return needed_by(branch->then_body);
  const Seq* list = stmt.as<Seq>();
  if (!list) return {};
  std::optional<std::vector<Expr>> result;
  for (const Stmt& each : list->stmts) {
    if (does_nothing(each)) continue;
    result = result ? needed_by_either(*result, needed_by(each)) : needed_by(each);
    if (result->empty()) return {};
  }
  for (const Stmt& each : list->stmts) {
    if (const Bind* bind = each.as<Bind>(); bind && result) drop_conditions_on(bind->var, *result);
  }
  return result.value_or(std::vector<Expr>());
}

class EmptyLoopSkipper final : public Rewriter {
 public:
  explicit EmptyLoopSkipper(Analyzer facts) : facts_(std::move(facts)) {}

  Stmt stmt(const Stmt& s) override {
    const For* loop = s.as<For>();
    if (!loop) return Rewriter::stmt(s);
    std::vector<Expr> conditions = conditions_before(*loop);
    Temporarily facts(facts_, facts_);
    for (const Expr& condition : conditions) facts_.assume(condition);
    assume_runs(facts_, *loop);
    Stmt kept = Rewriter::stmt(s);
    if (conditions.empty()) return kept;
    return make(IfThenElse{*conjunction(conditions), kept, std::nullopt}, s.span());
  }

 private:
  // Returns the conditions to test before the loop. One whose number of iterations is a constant needs none.
  std::vector<Expr> conditions_before(const For& loop) const {
    if (as_int(loop.extent)) return {};
    std::vector<Expr> inner = needed_by(loop.body), result;
    drop_conditions_on(loop.var, inner);
    for (const Expr& each : inner) {
      Expr condition = facts_.simplify(each);
      if (condition.is<IntImm>() || holds<BufferLoad, Call>(condition) || may_be_undefined(condition, facts_)) continue;
      if (!is_listed(result, condition)) result.push_back(condition);
    }
    return result;
  }

  Analyzer facts_;
};

}  // namespace

// Puts nests of loops into a branch that tests whether the inner loops have iterations.
PrimFuncRef skip_empty_loops(const PrimFuncRef& function) {
  return with_body(function, EmptyLoopSkipper(facts_of_params(function))(function->body));
}

}  // namespace relaxc
