// Helpers that treat members of nodes by their C++ types, for the algorithms that derive from fields().
#pragma once
#include "ir/visit.h"

namespace relaxc {

template <class V>
constexpr bool is_vector = false;
template <class E>
constexpr bool is_vector<std::vector<E>> = true;
template <class V>
constexpr bool is_optional = false;
template <class E>
constexpr bool is_optional<std::optional<E>> = true;
template <class V>
constexpr bool is_handle = std::derived_from<V, NodeRef>;
template <class V>
constexpr bool is_exact = !std::is_void_v<typename RefTarget<V>::type>;

// dispatch(node, f) calls f with the payload.
template <class F>
decltype(auto) dispatch(const NodeRef& node, F&& f) {
  switch (node.kind()) {
#define RELAXC_KIND(name) \
  case NodeKind::k##name: \
    return f(*node.as<name>());
    RELAXC_NODE_KINDS(RELAXC_KIND)
#undef RELAXC_KIND
  }
  RELAXC_CHECK(false, "unknown node kind");
}

inline bool is_binding(Role role) { return role == Role::kBinds || role == Role::kBindsDeep; }

}  // namespace relaxc
