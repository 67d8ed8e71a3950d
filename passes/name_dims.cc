#include <algorithm>
#include <map>

#include "passes/graph_rewriter.h"
#include "support/lists.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

constexpr int kRoot = -1;  // the program, which uses the outermost dims

// One entry for each distinct expression over the program's dims, operands before their users.
struct Dim {
  Expr expr;
  std::vector<int> operands;
  std::optional<int> dominator = {};  // the last entry on all paths from the root to this one
  int depth = 0;                      // in the tree of dominators
  int highest_below = INT32_MAX;      // the least depth of a dominator of an expression in it
};

class DimGraph {
 public:
  explicit DimGraph(const PrimFuncRef& program) {
    for (const VarRef& var : free_vars(program)) leaves_.insert(var.get());
    for (const VarRef& dim : symbolic_dims(program)) leaves_.insert(dim.get());
    for (const Buffer& buffer : buffer_params(program)) {
      for (const Expr& dim : buffer_type(buffer).shape) {
        if (auto known = find(dim)) bare_.insert(*known);
      }
    }
    walk_nodes(program, [&](const NodeRef& node) {
      std::optional<int> known = is_expr_kind(node.kind()) ? find(cast_handle<Expr>(node)) : std::nullopt;
      if (known) dominate(*known, kRoot);
      return !known;
    });
    for (int i = static_cast<int>(dims_.size()) - 1; i >= 0; --i) {
      if (!at(i).dominator) continue;  // looked up, but not part of the program
      at(i).depth = depth(*at(i).dominator) + 1;
      for (int operand : at(i).operands) dominate(operand, i);
    }
    for (Dim& dim : dims_) {
      for (int i : dim.operands) {
        if (at(i).expr.is<IntImm>()) continue;
        dim.highest_below = std::min({dim.highest_below, at(i).highest_below, depth(*at(i).dominator)});
      }
    }
  }

  // Returns the number of the expression; nullopt unless it is made of dims, constants and arithmetic only.
  std::optional<int> find(const Expr& e) {
    auto [it, is_new] = known_.try_emplace(e.get());
    if (!is_new) return it->second;
    kept_.push_back(e);
    std::optional<int> result = number(e);
    known_[e.get()] = result;
    return result;
  }

  // Returns the outermost expressions that `accepts` takes and whose variables occur only below them.
  std::vector<int> outermost(const std::function<bool(const Expr&)>& accepts) const {
    std::vector<int> result;
    std::vector<bool> is_reached(dims_.size());
    for (size_t i = dims_.size(); i-- > 0;) {
      const Dim& dim = dims_[i];
      if (!dim.dominator || (*dim.dominator != kRoot && !is_reached[static_cast<size_t>(*dim.dominator)])) continue;
      bool is_whole = !dim.operands.empty() && dim.highest_below >= dim.depth && dim.highest_below < INT32_MAX;
      is_reached[i] = !is_whole || !accepts(dim.expr);
      if (!is_reached[i]) result.push_back(static_cast<int>(i));
    }
    return result;
  }
  const Expr& expr(int i) const { return dims_[static_cast<size_t>(i)].expr; }
  bool is_dim_of_param(const Expr& e) { return bare_.contains(find(e).value_or(kRoot)); }

 private:
  Dim& at(int i) { return dims_[static_cast<size_t>(i)]; }
  int depth(int i) const { return i == kRoot ? 0 : dims_[static_cast<size_t>(i)].depth; }

  std::optional<int> number(const Expr& e) {
    std::vector<int64_t> key = {static_cast<int64_t>(e.kind())};
    std::vector<int> operands;
    auto add = [&](const Expr& operand) {
      auto known = find(operand);
      if (known) operands.push_back(*known);
      return known.has_value();
    };
    const PrimType* type = e.type().as<PrimType>();
    if (!type || type->dtype != kInt64) return std::nullopt;
    if (const IntImm* imm = e.as<IntImm>()) {
      key.push_back(imm->value);
    } else if (e.is<Var>()) {
      if (!leaves_.contains(e.get())) return std::nullopt;
      key.push_back(reinterpret_cast<int64_t>(e.get()));
    } else if (const Binary* node = e.as<Binary>()) {
      if (!add(node->a) || !add(node->b)) return std::nullopt;
      key.push_back(static_cast<int64_t>(node->op));
      key.insert(key.end(), operands.begin(), operands.end());
    } else {
      return std::nullopt;
    }
    auto [it, is_new] = numbers_.try_emplace(std::move(key), static_cast<int>(dims_.size()));
    if (is_new) dims_.push_back({e, std::move(operands)});
    return it->second;
  }

  // Records a use: the nearest common dominator of the earlier uses and of `user` dominates the expression (the
  // algorithm of Cooper, Harvey and Kennedy, 2001; a graph without cycles needs one round).
  void dominate(int i, int user) {
    std::optional<int>& dominator = at(i).dominator;
    if (!dominator) dominator = user;
    while (*dominator != user) {
      int& deeper = depth(*dominator) >= depth(user) ? *dominator : user;
      deeper = *at(deeper).dominator;
    }
  }

  std::unordered_set<const NodeHeader*> leaves_;
  std::vector<Dim> dims_;
  std::map<std::vector<int64_t>, int> numbers_;  // only looked up, as its order depends on addresses
  std::unordered_map<const NodeHeader*, std::optional<int>> known_;
  std::unordered_set<int> bare_;
  std::vector<Expr> kept_;  // keeps the keys of known_ alive
};

// Returns whether the sum has a term without a constant factor, so that nothing is known of its residues.
bool has_unit_factor(const Expr& e) {
  const Binary* node = e.as<Binary>();
  if (!node) return e.is<Var>();
  switch (node->op) {
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return true;
    case BinaryOp::kMul:
      return has_unit_factor(node->a) && has_unit_factor(node->b);
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
      return has_unit_factor(node->a) || has_unit_factor(node->b);
    default:
      return false;
  }
}

class Namer final : public Rewriter {
 public:
  Namer(DimGraph& graph, std::unordered_map<int, VarRef> names) : graph_(graph), names_(std::move(names)) {}
  Expr expr(const Expr& node) override {
    const VarRef* name = find_value(names_, graph_.find(node).value_or(kRoot));
    return name ? Expr(*name) : Rewriter::expr(node);
  }

 private:
  DimGraph& graph_;
  std::unordered_map<int, VarRef> names_;
};

}  // namespace

NamedDims name_dims(const PrimFuncRef& program) {
  DimGraph graph(program);
  Analyzer facts = facts_of_params(program);
  // Only a variable that is a dim of a buffer is known not to be negative. No variable has an upper bound: a small one
  // decides how loops are unrolled, and a large one nothing.
  constexpr int64_t kLargeBound = 128;
  std::vector<int> chosen = graph.outermost([&](const Expr& e) {
    if (!has_unit_factor(e)) return false;
    Interval bounds = facts.bounds(e), all;
    return bounds.max >= kLargeBound && (bounds.min == all.min || (bounds.min <= 0 && graph.is_dim_of_param(e)));
  });
  NamedDims result{program, {}};
  if (chosen.empty()) return result;
  std::unordered_map<int, VarRef> names;
  for (int i : chosen) {
    // All variables of the expression disappear, so the name of one is free.
    VarRef var = make_var(free_vars(graph.expr(i)).at(0)->name, graph.expr(i).type());
    names.emplace(i, var);
    result.values.emplace(var.get(), graph.expr(i));
  }
  result.program = cast<PrimFunc>(Namer(graph, std::move(names))(static_cast<const Expr&>(program)));
  return result;
}

}  // namespace relaxc
