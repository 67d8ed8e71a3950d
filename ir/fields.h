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

inline bool is_binding(Role role) { return role == Role::kBinds || role == Role::kBindsDeep; }

}  // namespace relaxc
