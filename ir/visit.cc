// Children, rebuilding, free variables, the fallback print, derived from fields(). equal.cc has equality and the hash.
#include <fmt/format.h>

#include <algorithm>

#include "ir/fields.h"
#include "support/joined.h"

namespace relaxc {

namespace {

// ---- Generic traversal of a member, by its C++ type

template <class V>
void visit_member(const V& value, Role role, const ChildFn& fn) {
  if constexpr (is_handle<V>) {
    fn(value, {role, is_exact<V>});
  } else if constexpr (is_a<V, std::vector>) {
    for (const auto& item : value) visit_member(item, role, fn);
  } else if constexpr (std::is_same_v<V, Attrs>) {
    for (const auto& [key, item] : value) item.visit_exprs([&](const Expr& expr) { fn(expr, {role, false}); });
  } else if constexpr (is_a<V, std::optional>) {
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
  } else if constexpr (is_a<V, std::vector>) {
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
  } else if constexpr (is_a<V, std::optional>) {
    return value && map_member(*value, role, fn);
  } else if constexpr (HasFields<V>) {
    bool changed = false;
    for_each_field<V>([&](const auto& f) { changed |= map_member(value.*f.member, f.role, fn); });
    return changed;
  } else {
    return false;
  }
}

}  // namespace

void visit_children(const NodeRef& node, const ChildFn& fn) {
  match(node, [&](const auto& payload) { visit_member(payload, Role::kField, fn); });
}

NodeRef map_children(const NodeRef& node, const MapFn& fn) {
  return match(node, [&](const auto& payload) -> NodeRef {
    auto copy = payload;
    if (!map_member(copy, Role::kField, fn)) return node;
    if constexpr (is_expr_kind(KindOf<decltype(copy)>::value)) {
      return make(std::move(copy), cast_handle<Expr>(node).type(), node.span());
    } else {
      return make(std::move(copy), node.span());
    }
  });
}

Expr with_type(const Expr& expr, const Type& type) {
  if (same_node(expr.type(), type)) return expr;
  return match(expr, [&](const auto& payload) -> Expr { return make(payload, type, expr.span()); });
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
  if (const VarRef* known = find_value(renamed_, node.get())) return *known;
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
    return expr(cast_handle<Expr>(child));
  });
  if (const Seq* sequence = result.as<Seq>(); sequence && !same_node(result, node)) {
    // A rewrite that returns several statements, or none, is merged into the sequence around it.
    return seq(std::vector<Stmt>(sequence->stmts), node.span());
  }
  if (!is_expr_kind(node.kind())) return result;
  // Dims in the type follow the rewritten variables; scalar types have none.
  const Type& old_type = cast_handle<Expr>(result).type();
  const PrimType* scalar = old_type.as<PrimType>();
  if ((scalar && !scalar->value) || old_type.is<ObjectType>()) return result;
  return with_type(cast_handle<Expr>(result), type(old_type));
}

void Substitution::add(const VarRef& var, const Expr& value) {
  keys_.push_back(var);
  map_.insert_or_assign(var.get(), value);
}
Expr Substitution::expr(const Expr& node) {
  const Expr* value = node.is<Var>() ? find_value(map_, node.get()) : nullptr;
  return value ? *value : Rewriter::expr(node);
}
VarRef Substitution::var(const VarRef& node) {
  if (const Expr* value = find_value(map_, node.get())) {
    if (auto replacement = try_cast<Var>(*value)) return *replacement;
    RELAXC_CHECK(false, "variable '{}' is defined or names a buffer here and cannot become an expression", node->name);
  }
  return Rewriter::var(node);
}

namespace {

// Gives every bound variable a new node.
class Refresher final : public Substitution {
 public:
  Refresher(const NodeRef& root, const VarMap& replaced) : Substitution(replaced) {
    walk_children(root, [&](const NodeRef& child, Slot slot, const NodeRef&) {
      if (!is_binding(slot.role) || !child.is<Var>()) return;
      bound_.insert(child.get());
      if (slot.role != Role::kBindsDeep) return;
      walk(cast_handle<Expr>(child).type(), [&](const Ref<Var>& inner) { bound_.insert(inner.get()); });
    });
  }
  VarRef var(const VarRef& node) override {
    if (renamed_.contains(node.get()) || !bound_.contains(node.get())) return Substitution::var(node);
    VarRef fresh = make_var(node->name, type(node.type()), node.span());
    renamed_.emplace(node.get(), fresh);
    return fresh;
  }

 private:
  VarSet bound_;
};

}  // namespace

Expr substitute(const Expr& node, const VarMap& map) { return map.empty() ? node : Substitution(map)(node); }
Stmt substitute(const Stmt& node, const VarMap& map) { return map.empty() ? node : Substitution(map)(node); }
Type substitute(const Type& node, const VarMap& map) { return map.empty() ? node : Substitution(map)(node); }

PrimFuncRef with_fresh_variables(const PrimFuncRef& function) {
  return cast<PrimFunc>(Refresher(function, {})(static_cast<const Expr&>(function)));
}
FunctionRef with_fresh_variables(const FunctionRef& function) {
  return cast<Function>(Refresher(function, {})(static_cast<const Expr&>(function)));
}
Stmt instantiate(const Stmt& stmt, const VarMap& replaced) { return Refresher(stmt, replaced)(stmt); }

// ---- Free variables

std::vector<VarRef> free_vars(const NodeRef& root) {
  VarSet bound, seen;
  std::vector<VarRef> used;
  auto use = [&](const VarRef& var) {
    if (seen.insert(var.get()).second) used.push_back(var);
  };
  if (root.is<Var>()) use(cast<Var>(root));
  walk_children(root, [&](const NodeRef& child, Slot slot, const NodeRef&) {
    if (slot.role == Role::kBindsDeep) {
      NodeRef type = child.is<Var>() ? NodeRef(cast<Var>(child).type()) : child;
      walk_children(type, [&](const NodeRef& dim, Slot, const NodeRef& parent) {
        // Only a bare occurrence as a dim defines; a compound dim uses.
        if (dim.is<Var>() && (is_type_kind(parent.kind()) || parent.is<ShapeExpr>())) bound.insert(dim.get());
      });
    }
    if (!child.is<Var>()) return;
    if (is_binding(slot.role)) bound.insert(child.get());
    use(cast<Var>(child));
  });
  std::erase_if(used, [&](const VarRef& var) { return bound.contains(var.get()); });
  return used;
}

void add_free_vars(const NodeRef& node, VarSet& to) {
  for (const VarRef& var : free_vars(node)) to.insert(var.get());
}

bool uses_var(const NodeRef& root, const VarRef& var) {
  return any_node(root, [&](const NodeRef& node) { return node.get() == var.get(); });
}
bool uses_var(const NodeRef& root, const VarSet& vars) {
  return any_node(root, [&](const NodeRef& node) { return vars.contains(node.get()); });
}
bool any_node(const NodeRef& root, const std::function<bool(const NodeRef&)>& is_wanted) {
  bool found = false;
  walk_nodes(root, [&](const NodeRef& node) { return !(found = found || is_wanted(node)); });
  return found;
}

uint64_t value_hash(const Expr& value) {
  uint64_t hash = structural_hash(value);
  for (const VarRef& var : free_vars(value)) hash = hash * 0x9e3779b97f4a7c15 + reinterpret_cast<uintptr_t>(var.get());
  return hash;
}

Type without_unbound_dims(const Type& whole, const std::vector<VarRef>& params) {
  VarSet bound;
  for (const VarRef& param : params) {
    bound.insert(param.get());
    walk(param.type(), [&](const Ref<Var>& var) { bound.insert(var.get()); });
  }
  return without_dims(whole, [&](const VarRef& var) { return !bound.contains(var.get()); });
}

Type without_dims(const Type& whole, const std::function<bool(const VarRef&)>& is_unknown) {
  return map_items(whole, [&](const Type& type) {
    if (is_container(type)) return map_parts(type, [&](const Type& part) { return without_dims(part, is_unknown); });
    const TensorType* tensor = type.as<TensorType>();
    if (tensor && tensor->shape && std::ranges::any_of(free_vars(*tensor->shape), is_unknown)) {
      TensorType copy = *tensor;
      copy.shape.reset();
      return Type(make(std::move(copy), type.span()));
    }
    const ShapeType* shape = type.as<ShapeType>();
    bool is_hidden = shape && shape->values && std::ranges::any_of(free_vars(type), is_unknown);
    return is_hidden ? shape_type_of_rank(shape->ndim) : type;
  });
}

// ---- Fallback print

template <class V>
static std::string debug_member(const V& value) {
  if constexpr (is_handle<V>) {
    return debug_print(value);
  } else if constexpr (is_a<V, std::vector>) {
    return "[" + joined(value, [](const auto& item) { return debug_member(item); }) + "]";
  } else if constexpr (is_a<V, std::optional>) {
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
  } else if constexpr (std::is_enum_v<V>) {
    return std::to_string(static_cast<int>(value));
  } else {
    return to_string(AttrValue(value));
  }
}

std::string debug_print(const NodeRef& node) {
  if (node.is<Var>()) return node.as<Var>()->name;
  return match(node, [&](const auto& payload) {
    std::string body = debug_member(payload);
    return fmt::format("{}({})", kind_name(node.kind()), body.substr(1, body.size() - 2));
  });
}

#define X(name) static_assert(lists_all_members<name>(), "fields() does not list each member once, under its name");
RELAXC_NODE_KINDS(X)
#undef X

const char* kind_name(NodeKind kind) {
#define X(name) #name,
  static constexpr const char* kNames[] = {RELAXC_NODE_KINDS(X)};
#undef X
  return kNames[static_cast<size_t>(kind)];
}

void destroy_node(const NodeHeader* node) {
  switch (node->kind) {
#define X(name)                                 \
  case NodeKind::k##name:                       \
    delete static_cast<const Box<name>*>(node); \
    return;
    RELAXC_NODE_KINDS(X)
#undef X
  }
}

}  // namespace relaxc
