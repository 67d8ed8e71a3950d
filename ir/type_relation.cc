#include "ir/type_relation.h"

#include <algorithm>

namespace relaxc {

namespace {

// Claims that must all hold are as certain as the least certain of them: the maximum.
static_assert(Verdict::kProven < Verdict::kPossible && Verdict::kPossible < Verdict::kContradicted);

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
    result = std::max(result, equal_dims((*dims)[d], (*others)[d], facts));
  return result;
}

Verdict fits_tuple(const TupleType& wanted, const TupleType& given, const Analyzer& facts) {
  if (wanted.items.size() != given.items.size()) return Verdict::kContradicted;
  Verdict result = Verdict::kProven;
  for (size_t i = 0; i < wanted.items.size() && result != Verdict::kContradicted; ++i)
    result = std::max(result, fits(wanted.items[i], given.items[i], facts));
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
    result = std::max(result, fits(substitute((*given.params)[i], dims), (*wanted.params)[i], facts));
  }
  return std::max(result, fits(wanted.result, substitute(given.result, dims), facts));
}

}  // namespace

Verdict equal_dims(const Expr& a, const Expr& b, const Analyzer& facts) {
  return dtype_of(a) == dtype_of(b) ? facts.decide_equal(a, b)
                                    : facts.decide_equal(cast_to(a, kInt64), cast_to(b, kInt64));
}

Verdict equal_shapes(const Type& a, const Type& b, const Analyzer& facts) {
  return std::max(fits_shape(a, b, facts), known_shape(a) ? Verdict::kProven : Verdict::kPossible);
}

Verdict fits(const Type& wanted, const Type& given, const Analyzer& facts) {
  if (wanted.is<ObjectType>() || same_node(wanted, given)) return Verdict::kProven;
  if (given.is<ObjectType>()) return Verdict::kPossible;
  const OptionalType *maybe = wanted.as<OptionalType>(), *other = given.as<OptionalType>();
  if (maybe) return fits(maybe->item, other ? other->item : given, facts);
  if (other) return std::max(fits(wanted, other->item, facts), Verdict::kPossible);
  if (wanted.kind() != given.kind()) return Verdict::kContradicted;
  return match(
      wanted,
      [&](const PrimType& type) {
        const PrimType& other = *given.as<PrimType>();
        if (type.dtype != other.dtype) return Verdict::kContradicted;
        if (!type.value) return Verdict::kProven;
        return other.value ? equal_dims(*type.value, *other.value, facts) : Verdict::kPossible;
      },
      [&](const TupleType& type) { return fits_tuple(type, *given.as<TupleType>(), facts); },
      [&](const SequenceType& type) { return fits(type.item, given.as<SequenceType>()->item, facts); },
      [&](const OptionalType&) { return Verdict::kProven; },
      [&](const MapType& type) {
        const MapType& map = *given.as<MapType>();
        return type.key == map.key ? fits(type.value, map.value, facts) : Verdict::kContradicted;
      },
      [&](const FuncType& type) { return fits_function(type, *given.as<FuncType>(), facts); },
      [&](const DTensorType& type) {
        const DTensorType& other = *given.as<DTensorType>();
        bool same_place = type.mesh == other.mesh && type.placement == other.placement;
        return same_place ? fits(type.tensor, other.tensor, facts) : Verdict::kContradicted;
      },
      [&](const TensorType& type) {
        return std::max(fits_known(type.dtype, tensor_dtype(given)), fits_shape(wanted, given, facts));
      },
      [&](const ShapeType&) { return fits_shape(wanted, given, facts); },
      [&](const BufferType&) { return structural_equal(wanted, given) ? Verdict::kProven : Verdict::kPossible; },
      [&](const ObjectType&) { return Verdict::kProven; });
}

void bind_dims(const Type& pattern, const Type& type, VarMap& dims) {
  const TupleType *items = pattern.as<TupleType>(), *others = type.as<TupleType>();
  if (items && others && items->items.size() == others->items.size()) {
    for (size_t i = 0; i < items->items.size(); ++i) bind_dims(items->items[i], others->items[i], dims);
  }
  const std::vector<Expr>*wanted = known_shape(pattern), *given = known_shape(type);
  if (!wanted || !given || wanted->size() != given->size()) return;
  for (size_t d = 0; d < wanted->size(); ++d) {
    if ((*wanted)[d].is<Var>()) dims.emplace((*wanted)[d].get(), (*given)[d]);
  }
}

}  // namespace relaxc
