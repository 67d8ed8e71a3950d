// Loop-invariant conditions leave the loop (loop unswitching): `for i: x[i] = if_then_else(c and d(i), ...)` becomes a
// branch on c around two loops, in each of which c is known. The conditions on the row of a padded image in a loop over
// its columns are an example.
#include "ir/undefined.h"
#include "tir/analysis/linear.h"
#include "tir/lower/lower.h"
#include "tir/lower/replace.h"

namespace relaxc {

namespace {

// Bounds the stores that copies of loops may add to a function.
constexpr int64_t kMostNewStores = 2048;

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
          if (op_name(call) == "tir.if_then_else") look(call->args[0]);
        });
  }

  // Returns the invariant conjuncts of the first condition that has any. Empty unless each other condition has all or
  // none of them.
  const std::vector<Expr>& common() const { return common_; }
  // Returns the nodes that are equal to one of them.
  const std::vector<Expr>& nodes() const { return nodes_; }

 private:
  bool is_invariant(const Expr& condition) const {
    // A condition that could fail where the loop would not have run stays in it.
    return dtype_of(condition).lanes == 1 && !mentions(condition, inside_) && !holds<BufferLoad, Call>(condition) &&
           !condition.is<IntImm>() && !may_be_undefined(condition, facts_);
  }

  void look(const Expr& condition) {
    std::vector<Expr> found;
    for (const Expr& conjunct : conjuncts(condition)) {
      if (is_invariant(conjunct)) found.push_back(conjunct);
    }
    if (found.empty() || mixed_) return;
    if (common_.empty()) common_ = found;
    mixed_ = found.size() != common_.size();
    for (size_t i = 0; i < found.size() && !mixed_; ++i) mixed_ = !structural_equal(found[i], common_[i]);
    nodes_.insert(nodes_.end(), found.begin(), found.end());
    if (mixed_) common_.clear();
  }

  const Analyzer& facts_;
  NodeSet inside_;
  std::vector<Expr> common_, nodes_;
  bool mixed_ = false;
};

class Hoister final : public Rewriter {
 public:
  explicit Hoister(Analyzer facts) : facts_(std::move(facts)) {}

  Stmt stmt(const Stmt& s) override {
    const For* loop = s.as<For>();
    if (!loop || (loop->kind != ForKind::kSerial && loop->kind != ForKind::kUnrolled)) return Rewriter::stmt(s);
    InvariantFinder found(*loop, facts_);
    int64_t size = code_size(loop->body);
    if (found.common().empty() || size > budget_) return Rewriter::stmt(s);
    budget_ -= size;
    auto with = [&](bool value) {
      VarMap values;
      for (const Expr& node : found.nodes()) values.emplace(node.get(), bool_imm(value));
      return simplify(replace_nodes(s, values), facts_);
    };
    Stmt holds = with(true);
    // The second loop needs its own variables and memory.
    Stmt fails = instantiate(with(false), {});
    std::optional<Stmt> otherwise;
    if (!does_nothing(fails)) otherwise = (*this)(fails);
    return make(IfThenElse{*conjunction(found.common()), (*this)(holds), otherwise}, s.span());
  }

 private:
  Analyzer facts_;
  int64_t budget_ = kMostNewStores;
};

}  // namespace

PrimFuncRef hoist_conditions(const PrimFuncRef& function) {
  return with_body(function, Hoister(facts_of_params(function))(function->body));
}

}  // namespace relaxc
