// `for i: x[i] = if_then_else(c and d(i), ...)` becomes a branch on c around two loops, in each of which c is known.
// The conditions on the row of a padded image in a loop over its columns are an example.
#include <algorithm>

#include "ir/arith.h"
#include "ir/op_names.h"
#include "ir/undefined.h"
#include "support/temporarily.h"
#include "tir/analysis/conditions.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/program.h"

namespace relaxc {

namespace {

// Bounds the stores that copies of loops may add to a function.
constexpr int64_t kMostSwitchedStores = 2048;

// Finds the conjuncts of each condition in a loop that are loop-invariant.
class InvariantFinder {
 public:
  InvariantFinder(const For& loop, const Analyzer& facts) : facts_(facts) {
    inside_.insert(loop.var.get());
    walk(
        loop.body, [&](const For& inner) { inside_.insert(inner.var.get()); },
        [&](const Bind& bind) { inside_.insert(bind.var.get()); },
        [&](const Let& let) { inside_.insert(let.var.get()); });
    walk(
        loop.body, [&](const IfThenElse& branch) { look(branch.condition); },
        [&](const Ref<Call>& call) {
          if (as_call(call, ops::kIfThenElse)) look(call->args[0]);
        });
    if (mixed_) common.clear();
  }

  // The invariant conjuncts of the first condition that has any; empty unless each other one has all or none of them.
  std::vector<Expr> common;
  // The nodes that are equal to one of them.
  std::vector<Expr> nodes;

 private:
  bool is_invariant(const Expr& condition) const {
    bool is_plain =
        dtype_of(condition).lanes == 1 && !uses_var(condition, inside_) && !holds<BufferLoad, Call>(condition);
    // A condition that may be undefined where the loop does not run stays in the loop.
    return is_plain && !condition.is<IntImm>() && !may_be_undefined(condition, facts_);
  }

  void look(const Expr& condition) {
    std::vector<Expr> found = conjuncts(condition);
    std::erase_if(found, [&](const Expr& conjunct) { return !is_invariant(conjunct); });
    if (found.empty()) return;
    if (common.empty()) common = found;
    mixed_ = mixed_ ||
             !std::ranges::equal(found, common, [](const Expr& a, const Expr& b) { return structural_equal(a, b); });
    nodes.insert(nodes.end(), found.begin(), found.end());
  }

  const Analyzer& facts_;
  std::unordered_set<const NodeHeader*> inside_;
  bool mixed_ = false;
};

class Hoister final : public Rewriter {
 public:
  explicit Hoister(Analyzer facts) : facts_(std::move(facts)) {}

  Stmt stmt(const Stmt& s) override {
    const For* loop = s.as<For>();
    if (!loop) return Rewriter::stmt(s);
    const bool is_plain = loop->kind == ForKind::kSerial || loop->kind == ForKind::kUnrolled;
    InvariantFinder found(*loop, facts_);
    int64_t size = code_size(loop->body);
    if (!is_plain || found.common.empty() || size > budget_) {
      Temporarily facts(facts_, facts_);
      assume_runs(facts_, *loop);
      return Rewriter::stmt(s);
    }
    budget_ -= size;
    Expr all = bool_imm(true);
    for (const Expr& condition : found.common) all = all && condition;
    auto with = [&](bool value) {
      Replacements known;
      for (const Expr& node : found.nodes) known.emplace(node.get(), bool_imm(value));
      return simplify(replace_exprs(s, known), facts_);
    };
    Stmt holds = with(true);
    // The second loop needs its own variables and memory.
    Stmt fails = instantiate(with(false), {});
    std::optional<Stmt> otherwise;
    if (!does_nothing(fails)) otherwise = (*this)(fails);
    return make(IfThenElse{all, (*this)(holds), otherwise}, s.span());
  }

 private:
  Analyzer facts_;
  int64_t budget_ = kMostSwitchedStores;
};

}  // namespace

// Loop unswitching: turns a serial loop whose conditions are partly loop-invariant into a branch around two such loops.
PrimFuncRef hoist_conditions(const PrimFuncRef& function) {
  return with_body(function, Hoister(facts_of_params(function))(function->body));
}

}  // namespace relaxc
