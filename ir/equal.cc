// Structural equality, the hash, and the search for the first difference (difference.h puts it into words).
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ir/attr_names.h"
#include "ir/difference.h"
#include "ir/fields.h"
#include "support/joined.h"
#include "vm/file_memory.h"

namespace relaxc {

namespace {

std::optional<DType> scalar_dtype(const NodeRef& node) {
  if (!is_expr_kind(node.kind())) return std::nullopt;
  const PrimType* type = static_cast<const ExprHeader*>(node.get())->type.as<PrimType>();
  return type ? std::optional(type->dtype) : std::nullopt;
}

class EqualVisitor {
 public:
  explicit EqualVisitor(const EqualOptions& options) : options_(options), in_words_{options.print} {}

  bool node(const NodeRef& a, const NodeRef& b, Role role) {
    Entered entered(*this, {.left = a.get(), .right = b.get(), .defines = is_binding(role)});
    if (a.kind() != b.kind()) {
      // One side is a single statement and the other is several.
      bool lists = is_stmt_kind(a.kind()) && is_stmt_kind(b.kind()) && (a.is<Seq>() || b.is<Seq>());
      if (lists) lengths(statements(a), statements(b), role);
      return same(false, a, b);
    }
    if (a.is<Var>()) return var(cast<Var>(a), cast<Var>(b), role);
    if (a.is<OpRef>()) return same(a.as<OpRef>()->name == b.as<OpRef>()->name, a, b);
    if (same_node(a, b) && left_.empty()) return true;
    if (scalar_dtype(a) != scalar_dtype(b)) {
      auto typed = [&](const NodeRef& e) {
        return fmt::format("{} of type {}", in_words_(e), in_words_(cast_handle<Expr>(e).type()));
      };
      return differ([&] { return fmt::format("{} and {}", typed(a), typed(b)); });
    }
    // Dims that a function's type introduces are local to it.
    size_t outer = a.is<FuncType>() ? introduced_.size() : SIZE_MAX;
    bool equal = match(a, [&](const auto& payload) {
      using T = std::remove_cvref_t<decltype(payload)>;
      return members(payload, *b.as<T>(), role == Role::kBindsDeep);
    });
    forget(outer);
    return equal;
  }

 private:
  using Step = DifferenceStep;
  // The path is kept only when the caller asks for the difference.
  struct Entered {
    Entered(EqualVisitor& v, Step step) : visitor(v) {
      if (v.options_.difference) v.steps_.push_back(step);
    }
    ~Entered() {
      if (visitor.options_.difference) visitor.steps_.pop_back();
    }
    EqualVisitor& visitor;
  };

  // Only the first difference is reported; `values` returns the text for both values.
  template <class F>
  bool differ(F&& values) {
    bool tell = options_.difference && options_.difference->text.empty() && trials_ == 0;
    if (tell) *options_.difference = describe_difference(steps_, values());
    return false;
  }
  template <class V>
  bool same(bool equal, const V& a, const V& b) {
    if (equal) return true;
    if constexpr (std::is_same_v<V, Tensor> || std::is_same_v<V, VarRef>) {
      return differ([&] { return both(a, b); });
    } else {
      return differ([&] { return fmt::format("{} and {}", one(a), one(b)); });
    }
  }
  template <class V>
  std::string one(const V& value) const {
    if constexpr (is_a<V, std::optional>) {
      return value ? one(*value) : "nothing";
    } else if constexpr (is_a<V, std::vector>) {
      return fmt::format("[{}]", joined(value, [&](const auto& item) { return one(item); }));
    } else if constexpr (requires(InWords words) { words(value); }) {
      return in_words_(value);
    } else if constexpr (HasFields<V>) {
      // A region, an axis or a window is named by its variable.
      if constexpr (requires { value.buffer; }) return value.buffer->name;
      if constexpr (requires { value.var; }) return value.var->name;
      return "another";
    } else if constexpr (std::is_same_v<V, DType>) {
      return to_string(value);
    } else if constexpr (std::is_enum_v<V>) {  // the kind of a loop or an axis
      return std::string(info(value).name);
    } else {
      return to_string(AttrValue(value));
    }
  }

  // Inside a type that introduces dims, a variable met first is introduced by it.
  template <class T>
  bool members(const T& a, const T& b, bool deep) {
    // The regions of a block are compared last: they mostly follow from the body, where a difference is easier to find.
    auto late = [](std::string_view name) { return std::is_same_v<T, Block> && (name == "reads" || name == "writes"); };
    bool equal = fields(a, b, deep, [&](std::string_view name) { return !late(name); });
    if constexpr (std::is_same_v<T, Block>) equal = equal && fields(a, b, deep, late);
    return equal;
  }
  template <class T, class Wanted>
  bool fields(const T& a, const T& b, bool deep, Wanted wanted) {
    bool equal = true;
    for_each_field<T>([&](const auto& f) {
      if (!equal || f.role == Role::kHint || !wanted(f.name)) return;
      Entered entered(*this, {.kind = Step::Kind::kField, .field = f.name});
      Role role = deep && f.role == Role::kField ? Role::kBindsDeep : f.role;
      equal = member(a.*f.member, b.*f.member, role);
    });
    return equal;
  }

  template <class V>
  bool member(const V& a, const V& b, Role role) {
    if constexpr (is_handle<V>) {
      return node(a, b, role);
    } else if constexpr (is_a<V, std::vector>) {
      return a.size() == b.size() ? items(a, b, role) : lengths(a, b, role);
    } else if constexpr (is_a<V, std::optional>) {
      return same(a.has_value() == b.has_value(), a, b) && (!a || member(*a, *b, role));
    } else if constexpr (std::is_same_v<V, Binding>) {
      Entered entered(*this, {.kind = Step::Kind::kBinding, .left_binding = &a, .right_binding = &b});
      // A local function may call itself.
      if (a.value.template is<Function>() && !node(a.var, b.var, Role::kBinds)) return false;
      return members(a, b, false);
    } else if constexpr (HasFields<V>) {
      return members(a, b, false);
    } else if constexpr (std::is_same_v<V, Attrs>) {
      return attributes(AttrValue(a), AttrValue(b)) || differ([&] { return both(a, b, steps_.back().field); });
    } else if constexpr (std::is_same_v<V, Tensor>) {
      return same(same_contents(a, b), a, b);
    } else if constexpr (std::is_same_v<V, double>) {
      return same(std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b), a, b);
    } else {
      return same(a == b, a, b);
    }
  }

  // Expressions in attributes may name variables that are bound around them.
  bool attributes(const AttrValue& a, const AttrValue& b) {
    std::vector<Expr> left, right;
    a.visit_exprs([&](const Expr& expr) { left.push_back(expr); });
    b.visit_exprs([&](const Expr& expr) { right.push_back(expr); });
    if (left.empty() && right.empty()) return a == b;
    auto shape = [](AttrValue value) {
      value.map_exprs([](const Expr&) { return int_imm(0); });
      return value;
    };
    if (left.size() != right.size() || !(shape(a) == shape(b))) return false;
    return std::ranges::equal(left, right, [&](const Expr& x, const Expr& y) { return node(x, y, Role::kField); });
  }

  // Returns the variable of a parameter, an axis or a region.
  template <class V>
  static std::string_view item_name(const V& item, Role role) {
    if constexpr (std::is_same_v<V, VarRef>) return is_binding(role) ? std::string_view(item->name) : "";
    if constexpr (requires { item.var->name; }) return item.var->name;
    if constexpr (requires { item.buffer->name; }) return item.buffer->name;
    return {};
  }
  template <class V>
  bool items(const V& a, const V& b, Role role) {
    for (size_t i = 0; i < a.size(); ++i) {
      Entered entered(*this, {.kind = Step::Kind::kItem, .index = i, .item = item_name(a[i], role)});
      if (!member(a[i], b[i], role)) return false;
    }
    return true;
  }

  static std::vector<Stmt> statements(const NodeRef& node) {
    if (const Seq* several = node.as<Seq>()) return several->stmts;
    return {cast_handle<Stmt>(node)};
  }
  // Names, for lists of different length, the item that only one of them has, or the earlier item that differs.
  template <class V>
  bool lengths(const V& a, const V& b, Role role) {
    if (!options_.difference || trials_ > 0) return false;
    const V &longer = a.size() > b.size() ? a : b, &shorter = a.size() > b.size() ? b : a;
    size_t i = 0;
    while (i < shorter.size() && would_equal(a[i], b[i], role, Keep::kYes)) ++i;
    auto added = [&] {
      if (i == shorter.size()) return true;
      const auto &x = a.size() > b.size() ? a[i + 1] : a[i], &y = a.size() > b.size() ? b[i] : b[i + 1];
      if (would_equal(x, y, role, Keep::kNo)) return true;
      // A binding that uses the added one differs, but still has the same name as its counterpart.
      if constexpr (std::is_same_v<typename V::value_type, Binding>)
        return x.var->name == y.var->name && a[i].var->name != b[i].var->name;
      return false;
    };
    if (!added()) {
      Entered entered(*this, {.kind = Step::Kind::kItem, .index = i, .item = item_name(a[i], role)});
      return member(a[i], b[i], role);
    }
    const char* side = a.size() > b.size() ? "left" : "right";
    differ([&] { return fmt::format("{} stands only on the {}", one(longer[i]), side); });
    // Shows the item that the other side has in its place.
    auto show = [&](const V& list, Span& place) {
      if (list.empty()) return;
      const auto& item = list[std::min(i, list.size() - 1)];
      Span found;
      if constexpr (std::is_same_v<typename V::value_type, Binding>) found = item.var.span();
      if constexpr (is_handle<typename V::value_type>) {
        if (!item.template is<Var>() || is_binding(role)) found = item.span();
      }
      if (found) place = found;
    };
    show(a, options_.difference->left);
    show(b, options_.difference->right);
    return false;
  }
  // Forgets the pairs of variables after the first `count`.
  void forget(size_t count) {
    for (; introduced_.size() > count; introduced_.pop_back()) {
      left_.erase(introduced_.back().first);
      right_.erase(introduced_.back().second);
    }
  }
  // Compares without reporting a difference. The mapping of variables stays when `keep` says so and the two are equal.
  enum class Keep : uint8_t { kNo, kYes };
  template <class V>
  bool would_equal(const V& a, const V& b, Role role, Keep keep) {
    size_t before = introduced_.size();
    ++trials_;
    bool equal = member(a, b, role);
    --trials_;
    if (equal && keep == Keep::kYes) return true;
    forget(before);
    return equal;
  }

  bool var(const VarRef& a, const VarRef& b, Role role) {
    auto *left = find_value(left_, a.get()), *right = find_value(right_, b.get());
    if (left || right) return same(left && *left == b.get(), a, b);  // each map is the inverse of the other
    if (!is_binding(role) && !options_.map_free_vars) return same(same_node(a, b), a, b);
    left_.emplace(a.get(), b.get());
    right_.emplace(b.get(), a.get());
    introduced_.emplace_back(a.get(), b.get());
    return node(a.type(), b.type(), role);
  }

  EqualOptions options_;
  InWords in_words_;
  std::vector<Step> steps_;
  int trials_ = 0;
  std::unordered_map<const NodeHeader*, const NodeHeader*> left_, right_;
  std::vector<std::pair<const NodeHeader*, const NodeHeader*>> introduced_;  // in order
};

class HashVisitor {
 public:
  explicit HashVisitor(const EqualOptions& options) : options_(options) {}

  void node(const NodeRef& a, Role role) {
    mix(static_cast<uint64_t>(a.kind()));
    if (a.is<Var>()) return var(cast<Var>(a), role);
    if (auto dtype = scalar_dtype(a)) leaf(*dtype);
    size_t outer = a.is<FuncType>() ? introduced_.size() : SIZE_MAX;
    match(a, [&](const auto& payload) { members(payload, role == Role::kBindsDeep); });
    for (; outer < introduced_.size(); introduced_.pop_back()) numbers_.erase(introduced_.back());
  }
  uint64_t result() const { return state_; }

 private:
  void mix(uint64_t value) { state_ = XXH3_64bits_withSeed(&value, sizeof value, state_); }
  void bytes(const void* data, size_t size) { mix(XXH3_64bits(data, size)); }

  template <class T>
  void members(const T& a, bool deep) {
    for_each_field<T>([&](const auto& f) {
      if (f.role == Role::kHint) return;
      member(a.*f.member, deep && f.role == Role::kField ? Role::kBindsDeep : f.role);
    });
  }
  template <class V>
  void member(const V& a, Role role) {
    if constexpr (is_handle<V>) {
      node(a, role);
    } else if constexpr (is_a<V, std::vector>) {
      mix(a.size());
      for (const auto& item : a) member(item, role);
    } else if constexpr (is_a<V, std::optional>) {
      mix(a.has_value());
      if (a) member(*a, role);
    } else if constexpr (HasFields<V>) {
      if constexpr (std::is_same_v<V, Binding>) {
        if (a.value.template is<Function>()) node(a.var, Role::kBinds);
      }
      members(a, false);
    } else {
      leaf(a);
    }
  }
  void leaf(const Tensor& tensor) { mix(vm::sampled_hash(tensor)); }
  void leaf(DType dtype) {
    mix(static_cast<uint64_t>(dtype.code) << 32 | static_cast<uint64_t>(dtype.bits) << 16 | dtype.lanes);
  }
  void leaf(const Attrs& attrs) {
    std::string text = to_string(AttrValue(attrs), [](const Expr&) { return "?"; });
    bytes(text.data(), text.size());
    AttrValue(attrs).visit_exprs([&](const Expr& expr) { node(expr, Role::kField); });
  }
  void leaf(const std::string& text) { bytes(text.data(), text.size()); }
  void leaf(double value) { mix(std::bit_cast<uint64_t>(value)); }
  template <class E>
    requires(std::integral<E> || std::is_enum_v<E>)
  void leaf(E value) {
    mix(static_cast<uint64_t>(value));
  }

  void var(const VarRef& a, Role role) {
    auto [it, added] = numbers_.emplace(a.get(), numbers_.size());
    if (!added) return mix(it->second);
    if (!is_binding(role) && !options_.map_free_vars) {
      numbers_.erase(it);
      return leaf(a->name);
    }
    mix(it->second);
    introduced_.push_back(a.get());
    node(a.type(), role);
  }

  EqualOptions options_;
  std::vector<const NodeHeader*> introduced_;
  uint64_t state_ = 0x9e3779b97f4a7c15;
  std::unordered_map<const NodeHeader*, uint64_t> numbers_;
};

}  // namespace

bool structural_equal(const NodeRef& a, const NodeRef& b, const EqualOptions& options) {
  if (same_node(a, b)) return true;
  if (a.kind() != b.kind() && !options.difference) return false;
  return EqualVisitor(options).node(a, b, Role::kField);
}

// Returns the function without the attribute that repeats its name.
static Expr nameless(const Expr& function) {
  auto without = [&](auto node) -> Expr {
    node.attrs = node.attrs.without(attr_names::kGlobalSymbol);
    return make(std::move(node), function.type(), function.span());
  };
  if (const Function* graph = function.as<Function>()) return without(*graph);
  if (const PrimFunc* program = function.as<PrimFunc>()) return without(*program);
  return function;
}

// Reports a function that only `a` has; the other side may have it under another name.
static Difference missing(const IRModule& a, const IRModule& b, const std::string& name, bool on_left) {
  const Expr& function = a.functions.at(name);
  Difference result{fmt::format("function '{}' is missing on the {}", name, on_left ? "left" : "right"), {}, {}};
  (on_left ? result.right : result.left) = function.span();
  for (const auto& [twin, candidate] : b.functions) {
    if (a.find(twin) || !structural_equal(nameless(function), nameless(candidate))) continue;
    result.text += fmt::format("; '{}' there is equal to it", twin);
    (on_left ? result.left : result.right) = candidate.span();
    return result;
  }
  return result;
}

bool structural_equal(const IRModule& a, const IRModule& b, const EqualOptions& options) {
  auto differ = [&](Difference found) {
    if (options.difference) *options.difference = std::move(found);
    return false;
  };
  if (!(a.attrs == b.attrs)) return differ({"module, " + both(a.attrs, b.attrs, "attrs"), {}, {}});
  if (!(a.global_infos == b.global_infos))
    return differ({"the module's devices and meshes (module_global_infos)", {}, {}});
  // Names are compared first: a caller of a renamed function differs only because of the new name.
  for (const auto& [name, function] : a.functions) {
    if (!b.find(name)) return differ(missing(a, b, name, false));
  }
  for (const auto& [name, function] : b.functions) {
    if (!a.find(name)) return differ(missing(b, a, name, true));
  }
  for (const auto& [name, function] : a.functions) {
    if (structural_equal(function, *b.find(name), options)) continue;
    if (options.difference) options.difference->text = fmt::format("{}: {}", name, options.difference->text);
    return false;
  }
  return true;
}

uint64_t structural_hash(const NodeRef& node, const EqualOptions& options) {
  HashVisitor visitor(options);
  visitor.node(node, Role::kField);
  return visitor.result();
}

}  // namespace relaxc
