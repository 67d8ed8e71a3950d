// Helpers that treat members of nodes by their C++ types, for the algorithms that derive from fields().
#pragma once
#include "ir/visit.h"

namespace relaxc {

// is_a<V, std::vector>
template <class V, template <class...> class Template>
constexpr bool is_a = false;
template <class... Args, template <class...> class Template>
constexpr bool is_a<Template<Args...>, Template> = true;
template <class V>
constexpr bool is_handle = std::derived_from<V, NodeRef>;
template <class V>
constexpr bool is_exact = requires { typename V::Target; };

inline bool is_binding(Role role) { return role == Role::kBinds || role == Role::kBindsDeep; }

}  // namespace relaxc
