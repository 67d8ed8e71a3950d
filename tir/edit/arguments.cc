#include "tir/edit/arguments.h"

#include <fmt/format.h>

#include "ir/visit.h"
#include "support/diagnostic.h"

namespace relaxc {

const VarRef& no_variable() {
  static const VarRef kNone = make_var("unset", object_type());
  return kNone;
}

IndexMap::IndexMap() : map(make(Lambda{{}, {}}, object_type())) {}

IndexMap::IndexMap(size_t rank, const std::function<Exprs(const Exprs&)>& fn)
    : map([&] {
        std::vector<VarRef> params;
        for (size_t i = 0; i < rank; ++i) params.push_back(make_dim(fmt::format("i{}", i)));
        std::vector<Expr> results = fn({params.begin(), params.end()});
        return make(Lambda{params, results}, object_type());
      }()) {}

// Returns the expression in the dtype of the indices; the map's numbers may have any width.
static Expr in_dtype(const Expr& e, DType dtype, const VarMap& values) {
  if (auto it = values.find(e.get()); it != values.end()) return it->second;
  if (const IntImm* number = e.as<IntImm>()) return int_imm(number->value, dtype);
  const Binary* node = e.as<Binary>();
  if (node && dtype_of(node->a) == dtype_of(e))
    return binary(node->op, in_dtype(node->a, dtype, values), in_dtype(node->b, dtype, values));
  return cast_to(e.is<Var>() ? e : substitute(e, values), dtype);
}

Exprs IndexMap::operator()(const Exprs& indices) const {
  if (indices.size() != map->params.size())
    fail({}, "a map of {} positions is given {}", map->params.size(), indices.size());
  VarMap values;
  DType dtype = indices.empty() ? kInt64 : dtype_of(indices[0]);
  for (size_t i = 0; i < map->params.size(); ++i) values.emplace(map->params[i].get(), cast_to(indices[i], dtype));
  return map_each(map->results, [&](const Expr& e) { return in_dtype(e, dtype, values); });
}

}  // namespace relaxc
