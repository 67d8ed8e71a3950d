#include "ir/type.h"

#include "ir/visit.h"
#include "support/lists.h"

namespace relaxc {

Type object_type() { return make(ObjectType{}); }
// Every scalar expression has a type, so scalars share one node per dtype.
Type prim_type(DType dtype) {
  constexpr size_t kCodes = static_cast<size_t>(DTypeCode::kFloat4E2M1FN) + 1, kWidths = 129;
  static const std::vector<Type>& scalars = *[] {
    auto* types = new std::vector<Type>;  // never freed: other static objects may hold types
    types->reserve(kCodes * kWidths);
    for (size_t i = 0; i < kCodes * kWidths; ++i)
      types->push_back(make(PrimType{{static_cast<DTypeCode>(i / kWidths), static_cast<uint8_t>(i % kWidths), 1}}));
    return types;
  }();
  bool shared = dtype.lanes == 1 && dtype.bits < kWidths && static_cast<size_t>(dtype.code) < kCodes;
  return shared ? scalars[static_cast<size_t>(dtype.code) * kWidths + dtype.bits] : make(PrimType{dtype});
}
Type pointer_type(DType pointee, std::string scope) {
  return make(PrimType{DType::handle(), pointee, scope == "global" ? std::string() : std::move(scope)});
}

Type shape_type(std::vector<Expr> values) {
  int64_t ndim = static_cast<int64_t>(values.size());
  return make(ShapeType{std::move(values), ndim});
}
Type shape_type_of_rank(int64_t ndim) { return make(ShapeType{std::nullopt, ndim}); }

Type tensor_type(std::vector<Expr> shape, std::optional<DType> dtype, const Span& span) {
  int64_t ndim = static_cast<int64_t>(shape.size());
  return make(TensorType{shape_expr(std::move(shape)), dtype, ndim, {}}, span);
}
Type tensor_type_of_rank(int64_t ndim, std::optional<DType> dtype) {
  return make(TensorType{std::nullopt, dtype, ndim, {}});
}
Type tuple_type(std::vector<Type> items) { return make(TupleType{std::move(items)}); }
Type map_items(const Type& type, const std::function<Type(const Type&)>& fn) {
  const TupleType* tuple = type.as<TupleType>();
  if (!tuple) return fn(type);
  return make(TupleType{map_each(tuple->items, [&](const Type& item) { return map_items(item, fn); })}, type.span());
}

Type sequence_type(Type item) { return make(SequenceType{std::move(item)}); }
Type optional_type(Type item) { return item.is<OptionalType>() ? item : make(OptionalType{std::move(item)}); }
Type map_type(DType key, Type value) { return make(MapType{key, std::move(value)}); }
Type map_parts(const Type& type, const std::function<Type(const Type&)>& fn) {
  if (const TupleType* tuple = type.as<TupleType>()) return make(TupleType{map_each(tuple->items, fn)}, type.span());
  if (const SequenceType* sequence = type.as<SequenceType>())
    return make(SequenceType{fn(sequence->item)}, type.span());
  if (const OptionalType* optional = type.as<OptionalType>())
    return make(OptionalType{fn(optional->item)}, type.span());
  if (const MapType* map = type.as<MapType>()) return make(MapType{map->key, fn(map->value)}, type.span());
  return type;
}

Type common_type(const Type& a, const Type& b) {
  if (structural_equal(a, b)) return a;
  if (a.is<OptionalType>() || b.is<OptionalType>()) {
    auto item = [](const Type& type) { return type.is<OptionalType>() ? type.as<OptionalType>()->item : type; };
    return optional_type(common_type(item(a), item(b)));
  }
  if (a.kind() != b.kind()) return object_type();
  if (const SequenceType* x = a.as<SequenceType>())
    return sequence_type(common_type(x->item, b.as<SequenceType>()->item));
  if (const MapType *x = a.as<MapType>(), *y = b.as<MapType>(); x && x->key == y->key)
    return map_type(x->key, common_type(x->value, y->value));
  if (const TensorType* x = a.as<TensorType>()) {
    TensorType result = *x;
    const TensorType& y = *b.as<TensorType>();
    if (!x->shape || !y.shape || !structural_equal(*x->shape, *y.shape)) result.shape.reset();
    if (x->ndim != y.ndim) result.ndim = -1;
    if (x->dtype != y.dtype) result.dtype.reset();
    if (x->vdevice != y.vdevice) result.vdevice = {};
    return make(std::move(result));
  }
  if (a.is<ShapeType>()) return shape_type_of_rank(known_rank(a) == known_rank(b) ? known_rank(a) : -1);
  const TupleType* x = a.as<TupleType>();
  const TupleType* y = b.as<TupleType>();
  if (!x || x->items.size() != y->items.size()) return object_type();
  std::vector<Type> items;
  for (size_t i = 0; i < x->items.size(); ++i) items.push_back(common_type(x->items[i], y->items[i]));
  return tuple_type(std::move(items));
}

const std::vector<Expr>* known_shape(const Type& type) {
  if (const ShapeType* shape = type.as<ShapeType>()) return shape->values ? &*shape->values : nullptr;
  const TensorType* tensor = type.as<TensorType>();
  if (!tensor || !tensor->shape) return nullptr;
  const ShapeExpr* shape = tensor->shape->as<ShapeExpr>();
  return shape ? &shape->values : nullptr;
}

std::optional<std::vector<int64_t>> constant_shape(const Type& type) {
  const std::vector<Expr>* dims = known_shape(type);
  return dims ? all_or_none(*dims, as_int) : std::nullopt;
}

int64_t known_rank(const Type& type) {
  if (const ShapeType* shape = type.as<ShapeType>()) return shape->ndim;
  if (const TensorType* tensor = type.as<TensorType>()) return tensor->ndim;
  return -1;
}

std::optional<DType> tensor_dtype(const Type& type) {
  const TensorType* tensor = type.as<TensorType>();
  return tensor ? tensor->dtype : std::nullopt;
}

}  // namespace relaxc
