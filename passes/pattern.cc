#include "passes/pattern.h"

#include <algorithm>
#include <ranges>
#include <set>

#include "ir/op_names.h"
#include "ir/type_relation.h"
#include "ops/user_kernel.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/compute.h"

namespace relaxc {

namespace {

// Operators whose operands may be given in either order.
constexpr OpName kCommutative[] = {ops::kAdd, ops::kMultiply, ops::kMaximum, ops::kMinimum};
bool is_commutative(const std::string& op) {
  return std::ranges::any_of(kCommutative, [&](OpName name) { return op == name; });
}

// Returns the tensors and other operands of a call; those of a kernel's call without the kernel.
std::vector<Expr> operands_of(const Call& call, bool is_kernel) {
  if (!is_kernel) return call.args;
  const Tuple* tensors = call.args.size() > 1 ? call.args[1].as<Tuple>() : nullptr;
  return tensors ? tensors->items : std::vector<Expr>(call.args.begin() + 1, call.args.end());
}

std::string callee_of(const Expr& callee) {
  if (const GlobalVar* global = callee.as<GlobalVar>()) return global->name;
  const ExternFunc* external = callee.as<ExternFunc>();
  return external ? external->symbol : "";
}

}  // namespace

// The state of one attempt, which is copied where there are alternatives.
class PatternMatcher {
 public:
  PatternMatcher(const PatternScope& scope, const Pattern& pattern) : scope_(scope), pattern_(pattern) {}

  std::optional<PatternMatch> run(size_t at, std::string& refused) {
    // The other results are found from the operands that they share with the last one, or as its operands.
    if (!matches(*pattern_.results.back(), scope_.bindings_[at].var, 0) || !find_other_results(at)) {
      refused = state_.refused;
      return std::nullopt;
    }
    std::optional<PatternMatch> result = collect(at);
    if (!result) refused = state_.refused;
    return result;
  }

 private:
  struct State {
    std::unordered_map<const PatternNode*, Expr> values;
    std::set<size_t> inside;
    VarMap dims;
    std::string refused;
    int depth = -1;  // of the condition that failed: the innermost one says most
  };

  template <class... Args>
  bool refuse(int depth, fmt::format_string<Args...> format, Args&&... args) {
    if (depth > state_.depth) {
      state_.depth = depth;
      state_.refused = fmt::format(format, std::forward<Args>(args)...);
    }
    return false;
  }

  // Tries one way; undoes all but the reason when it does not match.
  template <class F>
  bool attempt(F&& fn) {
    State before = state_;
    if (fn()) return true;
    before.refused = state_.refused;
    before.depth = state_.depth;
    state_ = std::move(before);
    return false;
  }

  bool matches(const PatternNode& node, const Expr& value, int depth) {
    if (const Expr* known = find_value(state_.values, &node)) {
      if (same_node(*known, value)) return true;
      const Constant *a = known->as<Constant>(), *b = value.as<Constant>();
      return (a && b && structural_equal(*known, value)) || refuse(depth, "{} are two different values", title(node));
    }
    if (!matches_kind(node, value, depth) || !matches_type(node, value, depth)) return false;
    state_.values.emplace(&node, value);
    return true;
  }

  static std::string title(const PatternNode& node) {
    if (!node.name.empty()) return fmt::format("'{}'", node.name);
    return node.ops.empty() ? "an operand" : fmt::format("the operands of {}", ops::short_name(node.ops[0]));
  }

  bool matches_kind(const PatternNode& node, const Expr& value, int depth) {
    switch (node.kind) {
      case PatternNode::Kind::kAny:
        return !node.dim || matches_dim(*node.dim, value, depth, [&] { return title(node); });
      case PatternNode::Kind::kConstant:
        return matches_constant(node, value, depth);
      case PatternNode::Kind::kCall:
        return matches_call(node, value, depth);
      case PatternNode::Kind::kTuple: {
        const Expr* bound = bound_value(value);
        const Tuple* tuple = bound && !value.is<Tuple>() ? bound->as<Tuple>() : value.as<Tuple>();
        const ShapeExpr* shape = value.as<ShapeExpr>();
        const std::vector<Expr>* items = tuple ? &tuple->items : shape ? &shape->values : nullptr;
        return items ? matches_all(node.args, *items, depth + 1) : refuse(depth, "{} is not a tuple", title(node));
      }
      case PatternNode::Kind::kItem: {
        const Expr* bound = bound_value(value);
        const TupleGetItem* item = bound ? bound->as<TupleGetItem>() : nullptr;
        if (!item || item->index != node.index)
          return refuse(depth, "{} is not item {} of a tuple", title(node), node.index);
        note_inside(value);
        return matches(*node.args[0], item->tuple, depth);
      }
      case PatternNode::Kind::kEither:
        return std::ranges::any_of(node.args, [&](const PatternRef& choice) {
          return attempt([&] { return matches(*choice, value, depth); });
        });
      case PatternNode::Kind::kIsnt: {
        State before = state_;
        bool is = matches(*node.args[0], value, depth);
        state_ = std::move(before);
        return !is || refuse(depth, "{} is what the pattern excludes", title(node));
      }
    }
    return false;
  }

  bool matches_constant(const PatternNode& node, const Expr& value, int depth) {
    const Constant* constant = value.as<Constant>();
    if (!constant) {
      const Expr* bound = bound_value(value);
      constant = bound ? bound->as<Constant>() : nullptr;
    }
    auto scalar = as_int(value);
    if (scalar && node.number)
      return static_cast<double>(*scalar) == *node.number ||
             refuse(depth, "{} is {}, expected {}", title(node), *scalar, *node.number);
    if (!constant) return refuse(depth, "{} is not constant", title(node));
    if (!node.number) return true;
    for (int64_t i = 0; i < constant->data.size(); ++i) {
      double element = constant->data.as_double(i);
      if (element != *node.number && element != static_cast<double>(static_cast<float>(*node.number)))
        return refuse(depth, "{} is {}, expected {}", title(node), element, *node.number);
    }
    return true;
  }

  bool matches_call(const PatternNode& node, const Expr& value, int depth) {
    const Expr* bound = bound_value(value);
    const Call* call = bound ? bound->as<Call>() : nullptr;
    std::string op = call ? op_name(*bound) : "";
    if (!call || !std::ranges::count(node.ops, op)) {
      std::string wanted =
          joined(node.ops, [](const std::string& name) { return std::string(ops::short_name(name)); }, " or ");
      return refuse(depth, "{} is {}, expected {}", node.name.empty() ? "an operand" : fmt::format("'{}'", node.name),
                    op.empty() ? "not made by an operator of this block" : ops::short_name(op), wanted);
    }
    const bool is_kernel = !node.callee.empty();
    if (is_kernel && (call->args.empty() || callee_of(call->args[0]) != node.callee))
      return refuse(depth, "it calls '{}', expected '{}'", call->args.empty() ? "" : callee_of(call->args[0]),
                    node.callee);
    if (!matches_attrs(node, *call, depth)) return false;
    if (!is_pure(*call, scope_.ops_)) return refuse(depth, "{} has side effects", ops::short_name(op));
    note_inside(value);
    if (node.any_operands) return true;
    std::vector<Expr> operands = operands_of(*call, is_kernel);
    if (is_commutative(op) && operands.size() == 2 && node.args.size() == 2)
      return attempt([&] { return matches_all(node.args, operands, depth + 1); }) ||
             matches_all(node.args, {operands[1], operands[0]}, depth + 1);
    return matches_all(node.args, operands, depth + 1);
  }

  bool matches_attrs(const PatternNode& node, const Call& call, int depth) {
    int64_t rank = call.args.empty() ? -1 : known_rank(call.args[0].type());
    for (const auto& [name, wanted] : node.attrs) {
      const AttrValue* value = call.attrs.find(name);
      if (!value || !attribute_is(name, *value, wanted, rank))
        return refuse(depth, "attribute {} of {} is {}, expected {}", name, ops::short_name(op_name_of(call)),
                      value ? to_string(*value) : "absent", to_string(wanted));
    }
    return true;
  }
  static const std::string& op_name_of(const Call& call) { return call.callee.as<OpRef>()->name; }

  bool matches_all(const std::vector<PatternRef>& nodes, const std::vector<Expr>& values, int depth) {
    if (nodes.size() != values.size())
      return refuse(depth, "there are {} operands, expected {}", values.size(), nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (!matches(*nodes[i], values[i], depth)) return false;
    }
    return true;
  }

  template <class Title>
  bool matches_dim(const Expr& wanted, const Expr& value, int depth, const Title& what) {
    if (!value.type().is<PrimType>()) return refuse(depth, "{} is not a scalar", what());
    if (wanted.is<Var>() && state_.dims.emplace(wanted.get(), value).second) return true;
    Expr expected = simplify(substitute(wanted, state_.dims));
    return equal_dims(expected, value) == Verdict::kProven ||
           refuse(depth, "{} is {}, expected {}", what(), text_of_dim(value), text_of_dim(expected));
  }

  bool matches_type(const PatternNode& node, const Expr& value, int depth) {
    if (node.dtype && tensor_dtype(value.type()) != *node.dtype) {
      auto dtype = tensor_dtype(value.type());
      return refuse(depth, "{} is {}, expected {}", title(node), dtype ? to_string(*dtype) : "of unknown dtype",
                    to_string(*node.dtype));
    }
    if (!node.shape) return true;
    const std::vector<Expr>* shape = known_shape(value.type());
    if (!shape || shape->size() != node.shape->size())
      return refuse(depth, "{} has rank {}, expected {}", title(node), known_rank(value.type()), node.shape->size());
    for (size_t d = 0; d < shape->size(); ++d) {
      auto name = [&] { return fmt::format("dim {} of {}", d, title(node)); };
      if (!matches_dim((*node.shape)[d], (*shape)[d], depth, name)) return false;
    }
    return true;
  }

  // Returns the value that a variable of this block is bound to; null for other leaves.
  const Expr* bound_value(const Expr& leaf) const {
    const size_t* position = find_value(scope_.position_, leaf.get());
    return position && !scope_.replaced_[*position] && !scope_.bindings_[*position].cast
               ? &scope_.bindings_[*position].value
               : nullptr;
  }
  void note_inside(const Expr& leaf) { state_.inside.insert(scope_.position_.at(leaf.get())); }

  bool find_other_results(size_t at) {
    for (size_t r = 0; r + 1 < pattern_.results.size(); ++r) {
      const PatternNode& node = *pattern_.results[r];
      if (state_.values.contains(&node)) continue;
      bool found = false;
      for (size_t i = at; i-- > 0 && !found;)
        found = !state_.inside.contains(i) && attempt([&] { return matches(node, scope_.bindings_[i].var, 0); });
      if (!found) return refuse(1000, "result {} is not there", r);
    }
    return true;
  }

  std::optional<PatternMatch> collect(size_t at) {
    PatternMatch result;
    result.at = at;
    result.dims = state_.dims;
    for (const PatternRef& param : pattern_.params) {
      const Expr* value = find_value(state_.values, param.get());
      if (!value && pattern_.is_loose) continue;
      if (!value) {
        refuse(1000, "'{}' is not part of the alternative that matches", param->name);
        return std::nullopt;
      }
      result.operands.push_back(*value);
    }
    const PatternNode& last = *pattern_.results.back();
    if (last.any_operands) result.operands = tensors_of(*bound_value(state_.values.at(&last))->as<Call>());
    for (const PatternRef& node : pattern_.results) result.results.push_back(cast<Var>(state_.values.at(node.get())));
    for (size_t i : state_.inside) {
      result.inside.push_back(scope_.bindings_[i]);
      if (const Call* call = scope_.bindings_[i].value.as<Call>()) {
        for (const auto& [name, value] : call->attrs) result.attrs.set(name, value);  // the last one counts
      }
    }
    check_uses(result);
    for (const auto& [node, value] : state_.values) {
      if (!node->name.empty()) result.values.insert_or_assign(node->name, value);
    }
    return state_.depth >= 1000 ? std::nullopt : std::optional(std::move(result));
  }

  // Refuses a match of which a value inside is used elsewhere, or notes it as shared, with all that it is made of.
  void check_uses(PatternMatch& result) {
    VarSet outputs, shared;
    for (const VarRef& var : result.results) outputs.insert(var.get());
    for (size_t i : std::views::reverse(state_.inside)) {
      const Binding& binding = scope_.bindings_[i];
      bool is_used = scope_.used_after_.contains(binding.var.get());
      for (size_t user : scope_.users_.at(binding.var.get())) {
        bool is_inside = state_.inside.contains(user);
        is_used = is_used || !is_inside || shared.contains(scope_.bindings_[user].var.get());
        if (!is_inside && outputs.contains(binding.var.get()) && user < result.at)
          refuse(1000, "result '{}' is used before the last one is computed", binding.var->name);
      }
      if (!is_used || outputs.contains(binding.var.get())) continue;
      if (!pattern_.is_loose || !is_cheap(binding))
        refuse(1000, "'{}' is used outside of the pattern, too", binding.var->name);
      shared.insert(binding.var.get());
      result.shared.push_back(binding.var);
    }
  }

  // Returns whether elementwise operators alone lead from operands of the match to the value.
  bool is_cheap(const Binding& binding) const {
    const OpRow* row = scope_.ops_.find(op_name(binding.value));
    if (!row || row->pattern > OpPattern::kBroadcast) return false;
    return std::ranges::all_of(free_vars(binding.value), [&](const VarRef& var) {
      const size_t* position = find_value(scope_.position_, var.get());
      return !position || !state_.inside.contains(*position) || is_cheap(scope_.bindings_[*position]);
    });
  }

  const PatternScope& scope_;
  const Pattern& pattern_;
  State state_ = {};
};

PatternScope::PatternScope(const std::vector<Binding>& bindings, const VarSet& used_after, const OpTable& ops)
    : bindings_(bindings), used_after_(used_after), ops_(ops), replaced_(bindings.size()) {
  for (size_t i = 0; i < bindings.size(); ++i) {
    position_.emplace(bindings[i].var.get(), i);
    users_.try_emplace(bindings[i].var.get());
    auto note = [&](const NodeRef& value) {
      for (const VarRef& var : free_vars(value)) {
        if (auto* users = find_value(users_, var.get())) users->push_back(i);
      }
    };
    note(bindings[i].value);
    if (bindings[i].cast) note(*bindings[i].cast);
  }
}

std::optional<PatternMatch> PatternScope::match(const Pattern& pattern, size_t at, std::string& refused) const {
  return PatternMatcher(*this, pattern).run(at, refused);
}

void PatternScope::replace(const PatternMatch& match) {
  for (const Binding& binding : match.inside) replaced_[position_.at(binding.var.get())] = true;
  for (const VarRef& var : match.shared) replaced_[position_.at(var.get())] = false;
  for (const Expr& operand : match.operands) {
    if (auto* users = find_value(users_, operand.get())) users->push_back(match.at);
  }
}

std::vector<std::string> result_operators(const Pattern& pattern) {
  std::vector<std::string> result;
  std::function<bool(const PatternNode&)> collect = [&](const PatternNode& node) {
    if (node.kind == PatternNode::Kind::kEither)
      return std::ranges::all_of(node.args, [&](const PatternRef& each) { return collect(*each); });
    if (node.kind == PatternNode::Kind::kItem) return false;
    result.insert(result.end(), node.ops.begin(), node.ops.end());
    return node.kind == PatternNode::Kind::kCall;
  };
  if (!collect(*pattern.results.back())) result.clear();
  return result;
}

}  // namespace relaxc
