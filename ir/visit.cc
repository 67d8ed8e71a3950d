#include "ir/visit.h"

#include <bit>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace relaxc {

namespace {

// ---- Generic traversal of a member, by its C++ type

template <class V>
struct IsVector : std::false_type {};
template <class E>
struct IsVector<std::vector<E>> : std::true_type {};
template <class V>
struct IsOptional : std::false_type {};
template <class E>
struct IsOptional<std::optional<E>> : std::true_type {};
template <class V>
constexpr bool is_handle = std::derived_from<V, NodeRef>;
template <class V>
constexpr bool is_exact = !std::is_void_v<typename RefTarget<V>::type>;

template <class V>
void visit_member(const V& value, Role role, const ChildFn& fn) {
  if constexpr (is_handle<V>) {
    fn(value, {role, is_exact<V>});
  } else if constexpr (IsVector<V>::value) {
    for (const auto& item : value) visit_member(item, role, fn);
  } else if constexpr (std::is_same_v<V, Attrs>) {
    for (const auto& [key, item] : value) item.visit_exprs([&](const Expr& expr) { fn(expr, {role, false}); });
  } else if constexpr (IsOptional<V>::value) {
    if (value) visit_member(*value, role, fn);
  } else if constexpr (HasFields<V>) {
    for_each_field<V>([&](const auto& f) { visit_member(value.*f.member, f.role, fn); });
  }
}

// Returns whether the member changed.
template <class V>
bool map_member(V& value, Role role, const MapFn& fn) {
  if constexpr (is_handle<V>) {
    NodeRef mapped = fn(value, {role, is_exact<V>});
    if (same_node(mapped, value)) return false;
    value = cast_handle<V>(mapped);
    return true;
  } else if constexpr (IsVector<V>::value) {
    bool changed = false;
    if constexpr (is_handle<typename V::value_type> || HasFields<typename V::value_type>) {
      for (auto& item : value) changed |= map_member(item, role, fn);
    }
    return changed;
  } else if constexpr (std::is_same_v<V, Attrs>) {
    AttrValue all(std::move(value));
    bool changed = all.map_exprs([&](const Expr& expr) { return cast_handle<Expr>(fn(expr, {role, false})); });
    value = *all.as<Attrs>();
    return changed;
  } else if constexpr (IsOptional<V>::value) {
    return value && map_member(*value, role, fn);
  } else if constexpr (HasFields<V>) {
    bool changed = false;
    for_each_field<V>([&](const auto& f) { changed |= map_member(value.*f.member, f.role, fn); });
    return changed;
  } else {
    return false;
  }
}

// dispatch(node, f) calls f with the payload.
template <class F>
decltype(auto) dispatch(const NodeRef& node, F&& f) {
  switch (node.kind()) {
#define X(name)           \
  case NodeKind::k##name: \
    return f(*node.as<name>());
    RELAXC_NODE_KINDS(X)
#undef X
  }
  CHECK(false, "unknown node kind");
}

template <class T>
NodeRef rebuild(const NodeRef& node, T payload) {
  if constexpr (is_expr_kind(KindOf<T>::value)) {
    return make(std::move(payload), cast_handle<Expr>(node).type(), node.span());
  } else {
    return make(std::move(payload), node.span());
  }
}

bool is_binding(Role role) { return role == Role::kBinds || role == Role::kBindsDeep; }

}  // namespace

void visit_children(const NodeRef& node, const ChildFn& fn) {
  dispatch(node, [&](const auto& payload) { visit_member(payload, Role::kField, fn); });
}

NodeRef map_children(const NodeRef& node, const MapFn& fn) {
  return dispatch(node, [&](const auto& payload) -> NodeRef {
    auto copy = payload;
    if (!map_member(copy, Role::kField, fn)) return node;
    return rebuild(node, std::move(copy));
  });
}

Expr with_type(const Expr& expr, const Type& type) {
  if (same_node(expr.type(), type)) return expr;
  return dispatch(expr, [&](const auto& payload) -> Expr {
    using T = std::remove_cvref_t<decltype(payload)>;
    if constexpr (is_expr_kind(KindOf<T>::value)) {
      return make(T(payload), type, expr.span());
    } else {
      CHECK(false, "not an expression");
    }
  });
}

void walk_nodes(const NodeRef& root, const std::function<bool(const NodeRef&)>& fn) {
  if (!fn(root)) return;
  visit_children(root, [&](const NodeRef& child, Slot slot) {
    walk_nodes(child, fn);
    if (is_binding(slot.role) && is_expr_kind(child.kind())) walk_nodes(cast_handle<Expr>(child).type(), fn);
  });
}

// ---- Rewriter

VarRef Rewriter::var(const VarRef& node) {
  if (auto it = renamed_.find(node.get()); it != renamed_.end()) return it->second;
  Type old_type = node.type();
  Type new_type = type(old_type);
  VarRef result = same_node(old_type, new_type) ? node : make_var(node->name, new_type, node.span());
  renamed_.emplace(node.get(), result);
  kept_.push_back(node);
  return result;
}

NodeRef Rewriter::children(const NodeRef& node) {
  if (node.is<Var>()) return var(cast<Var>(node));
  NodeRef result = map_children(node, [&](const NodeRef& child, Slot slot) -> NodeRef {
    if (is_type_kind(child.kind())) return type(cast_handle<Type>(child));
    if (is_stmt_kind(child.kind())) return stmt(cast_handle<Stmt>(child));
    if (slot.exact && child.is<Var>()) return var(cast<Var>(child));
    return visit_expr(cast_handle<Expr>(child));
  });
  if (const Seq* sequence = result.as<Seq>(); sequence && !same_node(result, node)) {
    // A statement that became several, or none, joins the sequence around it.
    return seq(std::vector<Stmt>(sequence->stmts), node.span());
  }
  if (!is_expr_kind(node.kind())) return result;
  // Dims in the type follow the rewritten variables; scalar types have none.
  Expr expr = cast_handle<Expr>(result);
  const PrimType* scalar = expr.type().as<PrimType>();
  if ((scalar && !scalar->value) || expr.type().is<ObjectType>()) return result;
  return with_type(expr, type(expr.type()));
}

Expr Rewriter::visit_expr(const Expr& node) { return expr(node); }

void Substitution::add(const VarRef& var, const Expr& value) {
  keys_.push_back(var);
  map_.insert_or_assign(var.get(), value);
}
Expr Substitution::expr(const Expr& node) {
  if (node.is<Var>()) {
    if (auto it = map_.find(node.get()); it != map_.end()) return it->second;
  }
  return Rewriter::expr(node);
}
VarRef Substitution::var(const VarRef& node) {
  if (auto it = map_.find(node.get()); it != map_.end()) {
    if (auto replacement = try_cast<Var>(it->second)) return *replacement;
    CHECK(false, "variable '{}' is defined or names a buffer here and cannot become an expression", node->name);
  }
  return Rewriter::var(node);
}

namespace {

// Gives every bound variable a new node.
class Refresher final : public Rewriter {
 public:
  explicit Refresher(const NodeRef& root) {
    walk_nodes(root, [&](const NodeRef& node) {
      visit_children(node, [&](const NodeRef& child, Slot slot) {
        if (!is_binding(slot.role) || !child.is<Var>()) return;
        bound_.insert(child.get());
        if (slot.role != Role::kBindsDeep) return;
        walk_nodes(cast_handle<Expr>(child).type(), [&](const NodeRef& inner) {
          if (inner.is<Var>()) bound_.insert(inner.get());
          return true;
        });
      });
      return true;
    });
  }
  VarRef var(const VarRef& node) override {
    auto it = renamed_.find(node.get());
    if (it != renamed_.end() || !bound_.contains(node.get()))
      return it != renamed_.end() ? it->second : Rewriter::var(node);
    VarRef fresh = make_var(node->name, type(node.type()), node.span());
    renamed_.emplace(node.get(), fresh);
    return fresh;
  }

 private:
  std::unordered_set<const NodeHeader*> bound_;
};

}  // namespace

Expr substitute(const Expr& node, const VarMap& map) { return map.empty() ? node : Substitution(map)(node); }
Stmt substitute(const Stmt& node, const VarMap& map) { return map.empty() ? node : Substitution(map)(node); }
Type substitute(const Type& node, const VarMap& map) { return map.empty() ? node : Substitution(map)(node); }

PrimFuncRef with_fresh_variables(const PrimFuncRef& function) {
  return cast<PrimFunc>(Refresher(function)(static_cast<const Expr&>(function)));
}

// ---- Free variables

std::vector<VarRef> free_vars(const NodeRef& root) {
  std::unordered_set<const NodeHeader*> bound, seen;
  std::vector<VarRef> used;
  auto use = [&](const VarRef& var) {
    if (seen.insert(var.get()).second) used.push_back(var);
  };
  if (root.is<Var>()) use(cast<Var>(root));
  walk_nodes(root, [&](const NodeRef& node) {
    visit_children(node, [&](const NodeRef& child, Slot slot) {
      if (slot.role == Role::kBindsDeep) {
        NodeRef type = child.is<Var>() ? NodeRef(cast<Var>(child).type()) : child;
        walk_nodes(type, [&](const NodeRef& inner) {
          // Only a bare occurrence as a dim defines; a compound dim uses.
          visit_children(inner, [&](const NodeRef& dim, Slot) {
            if (dim.is<Var>() && (is_type_kind(inner.kind()) || inner.is<ShapeExpr>())) bound.insert(dim.get());
          });
          return true;
        });
      }
      if (!child.is<Var>()) return;
      if (is_binding(slot.role)) bound.insert(child.get());
      use(cast<Var>(child));
    });
    return true;
  });
  std::erase_if(used, [&](const VarRef& var) { return bound.contains(var.get()); });
  return used;
}

Type without_unbound_dims(const Type& type, const std::vector<VarRef>& params) {
  std::unordered_set<const NodeHeader*> bound;
  for (const VarRef& param : params) {
    bound.insert(param.get());
    walk_nodes(param.type(), [&](const NodeRef& node) {
      if (node.is<Var>()) bound.insert(node.get());
      return true;
    });
  }
  auto is_bound = [&](const NodeRef& node) {
    for (const VarRef& var : free_vars(node)) {
      if (!bound.contains(var.get())) return false;
    }
    return true;
  };
  if (const TupleType* tuple = type.as<TupleType>()) {
    std::vector<Type> items;
    for (const Type& item : tuple->items) items.push_back(without_unbound_dims(item, params));
    return make(TupleType{std::move(items)}, type.span());
  }
  if (const TensorType* tensor = type.as<TensorType>(); tensor && tensor->shape && !is_bound(*tensor->shape)) {
    TensorType copy = *tensor;
    copy.shape.reset();
    return make(std::move(copy), type.span());
  }
  if (const ShapeType* shape = type.as<ShapeType>(); shape && shape->values && !is_bound(type))
    return shape_type_of_rank(shape->ndim);
  return type;
}

// ---- Equality and hash

namespace {

class EqualVisitor {
 public:
  explicit EqualVisitor(const EqualOptions& options) : options_(options) {}

  bool node(const NodeRef& a, const NodeRef& b, Role role) {
    if (a.kind() != b.kind()) return differ();
    if (a.is<Var>()) return var(cast<Var>(a), cast<Var>(b), role);
    if (same_node(a, b) && left_.empty()) return true;
    if (is_expr_kind(a.kind())) {
      Expr x = cast_handle<Expr>(a), y = cast_handle<Expr>(b);
      const PrimType* p = x.type().as<PrimType>();
      const PrimType* q = y.type().as<PrimType>();
      if ((p != nullptr) != (q != nullptr) || (p && p->dtype != q->dtype)) return differ("type");
    }
    // Dims that a function's type introduces are its own.
    size_t outer = a.is<FuncType>() ? introduced_.size() : SIZE_MAX;
    bool equal = dispatch(a, [&](const auto& payload) {
      using T = std::remove_cvref_t<decltype(payload)>;
      return members(payload, *b.as<T>(), role == Role::kBindsDeep);
    });
    for (; outer < introduced_.size(); introduced_.pop_back()) {
      left_.erase(introduced_.back().first);
      right_.erase(introduced_.back().second);
    }
    return equal;
  }

 private:
  bool differ(std::string_view last = {}) {
    if (options_.difference && options_.difference->empty()) {
      for (const std::string& part : path_) *options_.difference += part;
      if (!last.empty()) *options_.difference += fmt::format(".{}", last);
      if (options_.difference->starts_with('.')) options_.difference->erase(0, 1);
    }
    return false;
  }

  // Inside a type that introduces dims, a variable met first is introduced by it.
  template <class T>
  bool members(const T& a, const T& b, bool deep) {
    bool equal = true;
    for_each_field<T>([&](const auto& f) {
      if (!equal || f.role == Role::kHint) return;
      path_.push_back(fmt::format(".{}", f.name));
      Role role = deep && f.role == Role::kField ? Role::kBindsDeep : f.role;
      equal = member(a.*f.member, b.*f.member, role);
      path_.pop_back();
    });
    return equal;
  }

  template <class V>
  bool member(const V& a, const V& b, Role role) {
    if constexpr (is_handle<V>) {
      return node(a, b, role);
    } else if constexpr (IsVector<V>::value) {
      if (a.size() != b.size()) return differ(fmt::format("size: {} and {}", a.size(), b.size()));
      for (size_t i = 0; i < a.size(); ++i) {
        path_.push_back(fmt::format("[{}]", i));
        bool equal = member(a[i], b[i], role);
        path_.pop_back();
        if (!equal) return false;
      }
      return true;
    } else if constexpr (IsOptional<V>::value) {
      if (a.has_value() != b.has_value()) return differ();
      return !a || member(*a, *b, role);
    } else if constexpr (HasFields<V>) {
      // A local function may call itself.
      if constexpr (std::is_same_v<V, Binding>) {
        if (a.value.template is<Function>() && !node(a.var, b.var, Role::kBinds)) return false;
      }
      return members(a, b, false);
    } else if constexpr (std::is_same_v<V, Attrs>) {
      return attributes(AttrValue(a), AttrValue(b)) || differ();
    } else if constexpr (std::is_same_v<V, Tensor>) {
      return same_contents(a, b) || differ();
    } else if constexpr (std::is_same_v<V, double>) {
      return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || differ();
    } else {
      return a == b || differ();
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
    for (size_t i = 0; i < left.size(); ++i) {
      if (!node(left[i], right[i], Role::kField)) return false;
    }
    return true;
  }

  bool var(const VarRef& a, const VarRef& b, Role role) {
    auto left = left_.find(a.get());
    auto right = right_.find(b.get());
    if (left != left_.end() || right != right_.end()) {
      bool same = left != left_.end() && right != right_.end() && left->second == b.get() && right->second == a.get();
      return same || differ();
    }
    if (!is_binding(role) && !options_.map_free_vars) return same_node(a, b) || differ();
    left_.emplace(a.get(), b.get());
    right_.emplace(b.get(), a.get());
    introduced_.emplace_back(a.get(), b.get());
    return node(a.type(), b.type(), role);
  }

  EqualOptions options_;
  std::vector<std::string> path_;
  std::unordered_map<const NodeHeader*, const NodeHeader*> left_, right_;
  std::vector<std::pair<const NodeHeader*, const NodeHeader*>> introduced_;
};

class HashVisitor {
 public:
  explicit HashVisitor(const EqualOptions& options) : options_(options) {}

  void node(const NodeRef& a, Role role) {
    mix(static_cast<uint64_t>(a.kind()));
    if (a.is<Var>()) return var(cast<Var>(a), role);
    if (is_expr_kind(a.kind())) {
      if (const PrimType* prim = cast_handle<Expr>(a).type().as<PrimType>()) leaf(prim->dtype);
    }
    size_t outer = a.is<FuncType>() ? introduced_.size() : SIZE_MAX;
    dispatch(a, [&](const auto& payload) { members(payload, role == Role::kBindsDeep); });
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
    } else if constexpr (IsVector<V>::value) {
      mix(a.size());
      for (const auto& item : a) member(item, role);
    } else if constexpr (IsOptional<V>::value) {
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
  void leaf(const Tensor& tensor) {
    leaf(tensor.dtype());
    bytes(tensor.shape().data(), tensor.shape().size() * sizeof(int64_t));
    bytes(tensor.raw(), tensor.bytes());
  }
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
  return EqualVisitor(options).node(a, b, Role::kField);
}

bool structural_equal(const IRModule& a, const IRModule& b, const EqualOptions& options) {
  auto differ = [&](std::string where) {
    if (options.difference) *options.difference = std::move(where);
    return false;
  };
  if (!(a.attrs == b.attrs)) return differ("module attrs");
  if (!(a.global_infos == b.global_infos)) return differ("module global infos");
  for (const auto& [name, function] : a.functions) {
    const Expr* other = b.find(name);
    if (!other) return differ(fmt::format("function '{}' is missing on the right", name));
    if (!structural_equal(function, *other, options)) {
      if (options.difference) *options.difference = fmt::format("{}: {}", name, *options.difference);
      return false;
    }
  }
  for (const auto& [name, function] : b.functions) {
    if (!a.find(name)) return differ(fmt::format("function '{}' is missing on the left", name));
  }
  return true;
}

uint64_t structural_hash(const NodeRef& node, const EqualOptions& options) {
  HashVisitor visitor(options);
  visitor.node(node, Role::kField);
  return visitor.result();
}

// ---- Fallback print

namespace {

template <class V>
std::string debug_member(const V& value) {
  if constexpr (is_handle<V>) {
    return debug_print(value);
  } else if constexpr (IsVector<V>::value) {
    std::string text = "[";
    for (const auto& item : value) text += (text.size() > 1 ? ", " : "") + debug_member(item);
    return text + "]";
  } else if constexpr (IsOptional<V>::value) {
    return value ? debug_member(*value) : "none";
  } else if constexpr (HasFields<V>) {
    std::string text;
    for_each_field<V>([&](const auto& f) {
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", f.name, debug_member(value.*f.member));
    });
    return "{" + text + "}";
  } else if constexpr (std::is_same_v<V, Tensor>) {
    return describe(value);
  } else if constexpr (std::is_same_v<V, DType>) {
    return to_string(value);
  } else if constexpr (std::is_same_v<V, Attrs>) {
    return to_string(AttrValue(value));
  } else if constexpr (std::is_enum_v<V>) {
    return std::to_string(static_cast<int>(value));
  } else {
    return to_string(AttrValue(value));
  }
}

}  // namespace

std::string debug_print(const NodeRef& node) {
  if (node.is<Var>()) return node.as<Var>()->name;
  return dispatch(node, [&](const auto& payload) {
    std::string body = debug_member(payload);
    return fmt::format("{}({})", kind_name(node.kind()), body.substr(1, body.size() - 2));
  });
}

}  // namespace relaxc
