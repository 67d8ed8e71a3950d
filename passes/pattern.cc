#include "passes/pattern.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <set>

#include "ir/op_names.h"
#include "ir/type_relation.h"
#include "ops/user_kernel.h"
#include "passes/read_pattern.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/compute.h"

namespace relaxc {

namespace {

// The depth of a reason against a match of the whole pattern.
constexpr int kWholeDepth = 1000;

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

// Returns the operands that are not tensors, under the names of the operator's inputs: min and max of clip.
Attrs scalar_operands(const Call& call, const OpRow& row) {
  auto value_of = [](const Expr& e) -> AttrValue {
    if (std::optional<int64_t> number = as_int(e)) return *number;
    const FloatImm* number = e.as<FloatImm>();
    return number ? AttrValue(number->value) : AttrValue(e);
  };
  Attrs result;
  for (size_t i = 0; i < call.args.size() && i < row.inputs.size(); ++i) {
    const Expr& arg = call.args[i];
    const Tuple* items = arg.as<Tuple>();
    const ShapeExpr* shape = arg.as<ShapeExpr>();
    bool is_list = shape || (items && std::ranges::all_of(items->items,
                                                          [](const Expr& item) { return item.type().is<PrimType>(); }));
    if (arg.type().is<PrimType>()) result.set(row.inputs[i].name, value_of(arg));
    if (is_list) result.set(row.inputs[i].name, map_each(shape ? shape->values : items->items, value_of));
  }
  return result;
}

// Returns the value of an attribute that a call leaves out; null where it has no default, or none that is a value.
const AttrValue* default_of(std::string_view name, const OpRow& row) {
  const OpAttr* attr = find_item(row.attrs, name, [](const OpAttr& each) { return std::string_view(each.name); });
  return attr && !attr->otherwise.is_none() ? &attr->otherwise : nullptr;
}

// Returns whether the attribute does not change what the call computes. An optional dtype that is not set is "void",
// and then the result has that of the operands.
bool is_default(const OpAttr& attr, const AttrValue& value, const Attrs& all, const std::vector<Expr>& args) {
  const int64_t rank = args.empty() ? -1 : known_rank(args[0].type());
  const AttrValue* same = attr.default_from ? all.find(attr.default_from) : nullptr;
  std::optional<DType> dtype;
  if (attr.kind == AttrKind::kDType && attr.otherwise.is_none() && from_attr(value, dtype))
    return !dtype || (!args.empty() && dtype == tensor_dtype(args[0].type()));
  return value == attr.otherwise || attribute_is(attr.name, value, attr.otherwise, rank) || (same && value == *same);
}

}  // namespace

// The state of one attempt, which is copied where there are alternatives.
class PatternMatcher {
 public:
  PatternMatcher(const PatternScope& scope, const Pattern& pattern) : scope_(scope), pattern_(pattern) {}

  std::optional<PatternMatch> run(size_t at, PatternRefusal& refused) {
    // The other results are found from the operands that they share with the last one, or as its operands.
    if (!matches(*pattern_.results.back(), scope_.bindings_[at].var, 0) || !find_other_results(at)) {
      refused = state_.refused;
      return std::nullopt;
    }
    std::optional<PatternMatch> result = collect();
    if (!result) refused = state_.refused;
    return result;
  }

 private:
  struct State {
    std::unordered_map<const PatternNode*, Expr> values;
    std::set<size_t> inside;
    VarMap dims;
    PatternRefusal refused;
  };

  template <class... Args>
  bool refuse(int depth, fmt::format_string<Args...> format, Args&&... args) {
    if (depth > state_.refused.depth) state_.refused = {fmt::format(format, std::forward<Args>(args)...), depth};
    return false;
  }

  // Tries one way; undoes all but the reason when it does not match.
  template <class F>
  bool attempt(F&& fn) {
    if (steps_ > kMostSteps) return false;
    State before = state_;
    if (fn()) return true;
    before.refused = state_.refused;
    state_ = std::move(before);
    return false;
  }

  // Alternatives inside of alternatives may take a number of steps that doubles with each operator of the pattern.
  static constexpr int64_t kMostSteps = 20000;

  bool matches(const PatternNode& node, const Expr& value, int depth) {
    if (++steps_ > kMostSteps)
      return refuse(kWholeDepth + 1, "there are too many ways to try, more than {} steps; use fewer alternatives",
                    kMostSteps);
    if (const Expr* known = find_value(state_.values, &node)) {
      if (same_node(*known, value)) return true;
      const Constant *a = known->as<Constant>(), *b = value.as<Constant>();
      return (a && b && structural_equal(*known, value)) || refuse(depth, "{} are two different values", title(node));
    }
    if (!matches_kind(node, value, depth) || !matches_type(node, value, depth)) return false;
    state_.values.emplace(&node, value);
    return true;
  }

  std::string title(const PatternNode& node) const {
    if (!node.name.empty()) return fmt::format("'{}'", node.name);
    if (path_.empty()) return "the result";
    return path_.back();
  }

  // Says what the value is where it is not the call that is asked for.
  std::string text_of_value(const Expr& value) const {
    if (value.is<Constant>()) return "a constant";
    const size_t* position = find_value(scope_.position_, value.get());
    if (!position) return "an input of the graph";
    if (scope_.replaced_[*position]) return fmt::format("part of '{}'", scope_.replaced_by_[*position]);
    const Expr& bound = scope_.bindings_[*position].value;
    std::string op = op_name(bound);
    return bound.is<Constant>() ? "a constant" : op.empty() ? "not made by an operator" : ops::short_name(op);
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
        return items ? matches_all(node.args, *items, depth + 1, "the tuple")
                     : refuse(depth, "{} is not a tuple", title(node));
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

  // Returns the number that an operand which is not a tensor is, such as the bounds of clip.
  static std::optional<double> number_of(const Expr& value) {
    if (const FloatImm* real = value.as<FloatImm>()) return real->value;
    std::optional<int64_t> whole = as_int(value);
    return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
  }

  bool matches_constant(const PatternNode& node, const Expr& value, int depth) {
    const Constant* constant = value.as<Constant>();
    if (!constant) {
      const Expr* bound = bound_value(value);
      constant = bound ? bound->as<Constant>() : nullptr;
    }
    if (std::optional<double> scalar = number_of(value); scalar && node.number)
      return *scalar == *node.number || *scalar == static_cast<double>(static_cast<float>(*node.number)) ||
             refuse(depth, "{} is {}, expected {}", title(node), *scalar, *node.number);
    if (!constant) return refuse(depth, "{} is not constant", title(node));
    if (!node.number) return true;
    if (constant->data.dtype().is_complex())
      return refuse(depth, "{} is complex, expected {}", title(node), *node.number);
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
      return refuse(depth, "{} is {}, expected {}{}", title(node), text_of_value(value), wanted,
                    node.span ? fmt::format(" (line {})", node.span.line) : "");
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
    const std::string name = ops::short_name(op);
    if (!is_commutative(op) || operands.size() != 2 || node.args.size() != 2)
      return matches_all(node.args, operands, depth + 1, name);
    auto in_order = [&] { return matches_all(node.args, operands, depth + 1, name, Order::kAny); };
    if (node.args[0] == node.args[1] || same_node(operands[0], operands[1])) return in_order();
    return attempt(in_order) || matches_all(node.args, {operands[1], operands[0]}, depth + 1, name, Order::kAny);
  }

  bool matches_attrs(const PatternNode& node, const Call& call, int depth) {
    int64_t rank = call.args.empty() ? -1 : known_rank(call.args[0].type());
    Attrs attrs = call.attrs;
    const OpRow* row = scope_.ops_.find(op_name_of(call));
    if (node.any_operands && row) {
      for (const auto& [name, value] : scalar_operands(call, *row)) attrs.set(name, value);
    }
    for (const auto& [name, wanted] : node.attrs) {
      const AttrValue* value = attrs.find(name);
      if (!value && row) value = default_of(name, *row);
      if (!value || !attribute_is(name, *value, wanted, rank))
        return refuse(depth, "attribute {} of {} is {}, expected {}", name, ops::short_name(op_name_of(call)),
                      value ? to_string(*value) : "absent", to_string(wanted));
    }
    return true;
  }
  static const std::string& op_name_of(const Call& call) { return call.callee.as<OpRef>()->name; }

  enum class Order : uint8_t { kGiven, kAny };
  // `of`: what the values are operands of.
  bool matches_all(const std::vector<PatternRef>& nodes, const std::vector<Expr>& values, int depth,
                   std::string_view of, Order order = Order::kGiven) {
    if (nodes.size() != values.size())
      return refuse(depth, "{} has {} operands, expected {}", of, values.size(), nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      path_.push_back(order == Order::kAny ? fmt::format("an operand of {}", of)
                                           : fmt::format("operand {} of {}", i, of));
      bool fits = matches(*nodes[i], values[i], depth);
      path_.pop_back();
      if (!fits) return false;
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
      auto try_at = [&](size_t i) {
        found = !state_.inside.contains(i) && !scope_.replaced_[i] &&
                attempt([&] { return matches(node, scope_.bindings_[i].var, 0); });
      };
      for (size_t i = at; i-- > 0 && !found;) try_at(i);
      for (size_t i = at + 1; i < scope_.bindings_.size() && !found; ++i) try_at(i);
      if (!found) return refuse(kWholeDepth, "no value fits result {} of the pattern", r);
    }
    return true;
  }

  std::optional<PatternMatch> collect() {
    PatternMatch result;
    result.dims = state_.dims;
    for (const PatternRef& param : pattern_.params) {
      const Expr* value = find_value(state_.values, param.get());
      if (!value && pattern_.is_loose) continue;
      if (!value) {
        const bool is_unused = std::ranges::count(unused_params(pattern_), param->name) > 0;
        refuse(kWholeDepth, "'{}' is not part of the {}", param->name,
               is_unused ? "pattern, so that it matches nothing" : "alternative that matches");
        return std::nullopt;
      }
      result.operands.push_back(*value);
    }
    const PatternNode& last = *pattern_.results.back();
    if (last.any_operands) result.operands = tensors_of(*bound_value(state_.values.at(&last))->as<Call>());
    for (const PatternRef& node : pattern_.results) result.results.push_back(cast<Var>(state_.values.at(node.get())));
    std::vector<size_t> inside(state_.inside.begin(), state_.inside.end());
    std::ranges::sort(inside, {}, [&](size_t i) { return scope_.rank_[i]; });
    result.at = inside.back();
    for (size_t i : inside) {
      result.inside.push_back(scope_.bindings_[i]);
      if (scope_.bindings_[i].value.is<Call>()) add_attrs(scope_.bindings_[i], result);
    }
    for (const auto& [node, value] : state_.values) {
      if (!node->name.empty()) result.values.insert_or_assign(node->name, value);
    }
    std::set<size_t> replaced = check_uses(inside, result);
    check_operands(replaced);
    if (state_.refused.depth >= kWholeDepth) return std::nullopt;
    std::string why;
    std::optional<std::vector<size_t>> late = scope_.late_users(replaced, result.at, why);
    if (!late) {
      refuse(kWholeDepth, "{}", why);
      return std::nullopt;
    }
    result.late = std::move(*late);
    return result;
  }

  // Adds the attributes of a call; of two operators that have one, the last counts. Those that the pattern does not
  // name, and that are not defaults, are open.
  void add_attrs(const Binding& binding, PatternMatch& result) const {
    const Call& call = *binding.value.as<Call>();
    const std::string op = op_name(binding.value);
    Attrs named;
    bool is_result =
        std::ranges::any_of(result.results, [&](const VarRef& var) { return same_node(var, binding.var); });
    bool is_alone = false;  // an operator on any operands, without a pattern around it
    for (const auto& [node, value] : state_.values) {
      if (node->kind != PatternNode::Kind::kCall || !same_node(value, binding.var)) continue;
      is_alone = is_alone || node->any_operands;
      for (const auto& [name, wanted] : node->attrs) named.set(name, wanted);
    }
    for (const auto& [name, value] : call.attrs) result.attrs.set(name, value);
    const OpRow* row = scope_.ops_.find(op);
    if (!row) return;
    const std::string title = is_alone ? "" : ops::short_name(op);
    for (const OpAttr& attr : row->attrs) {
      const AttrValue* value = call.attrs.find(attr.name);
      if (is_result && attr.kind == AttrKind::kDType) continue;  // the kernel's buffer has the dtype
      if (value && !named.has(attr.name) && !is_default(attr, *value, call.attrs, call.args))
        result.open.push_back({attr.name, *value, title});
      const AttrValue* otherwise = value || result.attrs.has(attr.name) ? nullptr : default_of(attr.name, *row);
      if (otherwise) result.attrs.set(attr.name, *otherwise);
    }
    if (!is_alone) return;
    const std::vector<Expr>* shape = known_shape(binding.value.type());
    for (const auto& [name, value] : scalar_operands(call, *row)) {
      result.attrs.set(name, value);
      if (!named.has(name) && !is_shape(value, shape)) result.open.push_back({name, value, title});
    }
  }

  // Returns whether the list is the shape of the result, which the kernel's buffer declares.
  static bool is_shape(const AttrValue& value, const std::vector<Expr>* shape) {
    const AttrList* list = value.as<AttrList>();
    return list && shape && std::ranges::equal(*list, *shape, [](const AttrValue& item, const Expr& dim) {
             std::optional<Expr> given;
             if (const int64_t* number = item.as<int64_t>()) given = int_imm(*number);
             if (const Expr* expr = item.as<Expr>()) given = *expr;
             return given && equal_dims(*given, dim) == Verdict::kProven;
           });
  }

  // Refuses a match of which a value inside is used elsewhere, or notes it as shared, with all that it is made of.
  // Returns the positions of the others.
  std::set<size_t> check_uses(const std::vector<size_t>& inside, PatternMatch& result) {
    std::set<size_t> replaced = state_.inside;
    VarSet outputs;
    for (const VarRef& var : result.results) outputs.insert(var.get());
    for (size_t i : std::views::reverse(inside)) {
      const Binding& binding = scope_.bindings_[i];
      auto stays = [&](size_t user) { return !replaced.contains(user); };
      bool is_used = scope_.used_after_.contains(binding.var.get()) ||
                     std::ranges::any_of(scope_.users_.at(binding.var.get()), stays);
      if (!is_used || outputs.contains(binding.var.get())) continue;
      if (!pattern_.is_loose || !is_cheap(binding))
        refuse(kWholeDepth, "'{}' is used outside of the pattern, too", binding.var->name);
      result.shared.push_back(binding.var);
      replaced.erase(i);
    }
    return replaced;
  }

  // Refuses a match of which an operand is computed inside, as where the pattern's result is its operand, too.
  void check_operands(const std::set<size_t>& replaced) {
    for (const PatternRef& param : pattern_.params) {
      const Expr* value = find_value(state_.values, param.get());
      const size_t* position = value ? find_value(scope_.position_, value->get()) : nullptr;
      if (position && replaced.contains(*position))
        refuse(kWholeDepth, "operand '{}' is computed by the pattern itself", param->name);
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
  std::vector<std::string> path_ = {};  // how messages call the operand that is looked at
  int64_t steps_ = 0;
};

PatternScope::PatternScope(const std::vector<Binding>& bindings, const VarSet& used_after, const OpTable& ops)
    : bindings_(bindings),
      used_after_(used_after),
      ops_(ops),
      replaced_(bindings.size()),
      replaced_by_(bindings.size()),
      rank_(bindings.size()),
      unit_(bindings.size()) {
  std::iota(rank_.begin(), rank_.end(), size_t{0});
  std::iota(unit_.begin(), unit_.end(), size_t{0});
  for (size_t i = 0; i < bindings.size(); ++i) {
    members_.push_back({i});
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

std::optional<PatternMatch> PatternScope::match(const Pattern& pattern, size_t at, PatternRefusal& refused) const {
  return PatternMatcher(*this, pattern).run(at, refused);
}

void PatternScope::find_all(const Pattern& pattern, const std::string& by, PatternUser& user) {
  const std::vector<std::string> operators = result_operators(pattern);
  for (size_t i = bindings_.size(); i-- > 0;) {
    bool is_candidate = operators.empty() || std::ranges::count(operators, op_name(bindings_[i].value));
    if (bindings_[i].cast || !is_candidate || !user.wants(i)) continue;
    if (replaced_[i]) {
      user.is_taken(i);
      continue;
    }
    PatternRefusal refused;
    std::optional<PatternMatch> found = match(pattern, i, refused);
    if (found) {
      std::optional<std::string> why = user.take(*found);
      if (!why) {
        replace(*found, by);
        continue;
      }
      refused = {*why, kWholeDepth};
    }
    if (!operators.empty()) user.is_refused(i, refused);
  }
}

void PatternScope::replace(const PatternMatch& match, const std::string& by) {
  members_[match.at].clear();
  for (const Binding& binding : match.inside) {
    if (std::ranges::any_of(match.shared, [&](const VarRef& var) { return same_node(var, binding.var); })) continue;
    size_t i = position_.at(binding.var.get());
    replaced_[i] = true;
    replaced_by_[i] = by;
    unit_[i] = match.at;
    members_[match.at].push_back(i);
  }
  for (const Expr& operand : match.operands) {
    if (auto* users = find_value(users_, operand.get())) users->push_back(match.at);
  }
  if (match.late.empty()) return;
  std::vector<size_t> before = order(), after;
  auto is_late = [&](size_t i) { return std::ranges::count(match.late, i) > 0; };
  for (size_t i : before) {
    if (!is_late(i)) after.push_back(i);
    if (i == match.at) std::ranges::copy_if(before, std::back_inserter(after), is_late);
  }
  for (size_t rank = 0; rank < after.size(); ++rank) rank_[after[rank]] = rank;
}

std::vector<size_t> PatternScope::order() const {
  std::vector<size_t> result(rank_.size());
  for (size_t i = 0; i < rank_.size(); ++i) result[rank_[i]] = i;
  return result;
}

// Others keep their order: the effects and casts among them.
bool PatternScope::may_move(size_t i) const {
  const Expr& value = bindings_[i].value;
  if (replaced_[i]) return true;
  if (bindings_[i].cast) return false;
  const Call* call = value.as<Call>();
  return call ? is_pure(*call, ops_) : value.is<Tuple>() || value.is<TupleGetItem>() || value.is<Var>();
}

std::optional<std::vector<size_t>> PatternScope::late_users(const std::set<size_t>& inside, size_t at,
                                                            std::string& refused) const {
  std::set<size_t> late;
  std::vector<size_t> work(inside.begin(), inside.end());
  while (!work.empty()) {
    const size_t i = work.back();
    work.pop_back();
    for (size_t member : members_[i]) {
      const VarRef& var = bindings_[member].var;
      for (size_t user : users_.at(var.get())) {
        const size_t unit = unit_[user];
        if (inside.contains(user)) {
          if (!late.contains(i)) continue;
          refused = fmt::format("'{}' is computed from a result of the pattern, and the pattern reads it", var->name);
          return std::nullopt;
        }
        if (unit == i || rank_[unit] > rank_[at] || late.contains(unit)) continue;
        if (!may_move(unit)) {
          refused =
              fmt::format("'{}' reads '{}' before the pattern's last result is computed, and cannot move behind it",
                          bindings_[unit].var->name, var->name);
          return std::nullopt;
        }
        late.insert(unit);
        work.push_back(unit);
      }
    }
  }
  return std::vector<size_t>(late.begin(), late.end());
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
