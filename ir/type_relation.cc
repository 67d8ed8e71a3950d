#include "ir/type_relation.h"

#include <algorithm>

namespace relaxc {

namespace {

// Returns the least certain of claims that must all hold.
Verdict least_certain(Verdict a, Verdict b) { return std::max(a, b); }

// Compares a rank or dtype; the verdict is kPossible where the given one is not known.
template <class T>
Verdict fits_known(const std::optional<T>& wanted, const std::optional<T>& given) {
  if (!wanted || (given && *wanted == *given)) return Verdict::kProven;
  return given ? Verdict::kContradicted : Verdict::kPossible;
}
std::optional<int64_t> rank_of(const Type& type) {
  int64_t rank = known_rank(type);
  return rank < 0 ? std::nullopt : std::optional(rank);
}

Verdict fits_shape(const Type& wanted, const Type& given, const Analyzer& facts) {
  Verdict result = fits_known(rank_of(wanted), rank_of(given));
  const std::vector<Expr>* dims = known_shape(wanted);
  const std::vector<Expr>* others = known_shape(given);
  if (!dims || result == Verdict::kContradicted) return result;
  if (!others) return Verdict::kPossible;
  for (size_t d = 0; d < dims->size() && result != Verdict::kContradicted; ++d)
    result = least_certain(result, equal_dims((*dims)[d], (*others)[d], facts));
  return result;
}

Verdict fits_scalar(const PrimType& wanted, const PrimType& given, const Analyzer& facts) {
  if (wanted.dtype != given.dtype) return Verdict::kContradicted;
  if (!wanted.value) return Verdict::kProven;
  return given.value ? equal_dims(*wanted.value, *given.value, facts) : Verdict::kPossible;
}

Verdict fits_tuple(const TupleType& wanted, const TupleType& given, const Analyzer& facts) {
  if (wanted.items.size() != given.items.size()) return Verdict::kContradicted;
  Verdict result = Verdict::kProven;
  for (size_t i = 0; i < wanted.items.size() && result != Verdict::kContradicted; ++i)
    result = least_certain(result, fits(wanted.items[i], given.items[i], facts));
  return result;
}

// The dims of each are local to it: those of `given` take the values that the params of `wanted` pass them.
Verdict fits_function(const FuncType& wanted, const FuncType& given, const Analyzer& facts) {
  if (wanted.pure && !given.pure) return Verdict::kContradicted;
  if (!wanted.params || !given.params) return Verdict::kPossible;
  if (wanted.params->size() != given.params->size()) return Verdict::kContradicted;
  VarMap dims;
  Verdict result = Verdict::kProven;
  for (size_t i = 0; i < wanted.params->size(); ++i) {
    bind_dims((*given.params)[i], (*wanted.params)[i], dims);
    result = least_certain(result, fits(substitute((*given.params)[i], dims), (*wanted.params)[i], facts));
  }
  return least_certain(result, fits(wanted.result, substitute(given.result, dims), facts));
}

Verdict fits_distributed(const DTensorType& wanted, const DTensorType& given, const Analyzer& facts) {
  bool same_place = wanted.mesh == given.mesh && wanted.placement == given.placement;
  return same_place ? fits(wanted.tensor, given.tensor, facts) : Verdict::kContradicted;
}

}  // namespace

Verdict equal_dims(const Expr& a, const Expr& b, const Analyzer& facts) {
  bool comparable = dtype_of(a) == dtype_of(b);
  return comparable ? facts.decide_equal(a, b) : facts.decide_equal(cast_to(a, kInt64), cast_to(b, kInt64));
}

Verdict equal_shapes(const Type& a, const Type& b, const Analyzer& facts) {
  return least_certain(fits_shape(a, b, facts), known_shape(a) ? Verdict::kProven : Verdict::kPossible);
}

Verdict fits(const Type& wanted, const Type& given, const Analyzer& facts) {
  if (wanted.is<ObjectType>() || same_node(wanted, given)) return Verdict::kProven;
  if (given.is<ObjectType>()) return Verdict::kPossible;
  if (wanted.kind() != given.kind()) return Verdict::kContradicted;
  return match(
      wanted, [&](const PrimType& type) { return fits_scalar(type, *given.as<PrimType>(), facts); },
      [&](const TupleType& type) { return fits_tuple(type, *given.as<TupleType>(), facts); },
      [&](const FuncType& type) { return fits_function(type, *given.as<FuncType>(), facts); },
      [&](const DTensorType& type) { return fits_distributed(type, *given.as<DTensorType>(), facts); },
      [&](const TensorType& type) {
        return least_certain(fits_known(type.dtype, tensor_dtype(given)), fits_shape(wanted, given, facts));
      },
      [&](const ShapeType&) { return fits_shape(wanted, given, facts); },
      [&](const BufferType&) { return structural_equal(wanted, given) ? Verdict::kProven : Verdict::kPossible; },
      [&](const ObjectType&) { return Verdict::kProven; });
}

void bind_dims(const Type& pattern, const Type& type, VarMap& dims) {
  const TupleType* items = pattern.as<TupleType>();
  const TupleType* others = type.as<TupleType>();
  if (items && others && items->items.size() == others->items.size()) {
    for (size_t i = 0; i < items->items.size(); ++i) bind_dims(items->items[i], others->items[i], dims);
  }
  const std::vector<Expr>* wanted = known_shape(pattern);
  const std::vector<Expr>* given = known_shape(type);
  if (!wanted || !given || wanted->size() != given->size()) return;
  for (size_t d = 0; d < wanted->size(); ++d) {
    if ((*wanted)[d].is<Var>()) dims.emplace((*wanted)[d].get(), (*given)[d]);
  }
}

}  // namespace relaxc
