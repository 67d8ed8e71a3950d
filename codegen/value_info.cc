#include "codegen/value_info.h"

#include "ir/arith.h"
#include "ir/text/names.h"
#include "ir/text/printer.h"
#include "support/lists.h"

namespace relaxc::codegen {

static vm::DimInfo dim_info(const Expr& dim) {
  auto number = as_int(dim);
  if (number) return {*number, ""};
  // A model's dim may have a name that texts reserve, such as T.
  const Var* var = dim.as<Var>();
  bool is_word = var && text::identifier(var->name) == var->name;
  return {-1, is_word ? var->name : print_expr(dim)};
}

vm::ValueInfo value_info(std::string name, const Type& type) {
  vm::ValueInfo info;
  info.name = std::move(name);
  info.dtype = tensor_dtype(type);
  if (type.is<ObjectType>()) info.kind = vm::ValueKind::kNone;
  if (type.is<ShapeType>()) info.kind = vm::ValueKind::kShape;
  if (type.is<FuncType>()) info.kind = vm::ValueKind::kClosure;
  if (const PrimType* scalar = type.as<PrimType>()) {
    info.kind = scalar->dtype.is_float() ? vm::ValueKind::kDouble : vm::ValueKind::kInt;
    info.dtype = scalar->dtype;
    if (scalar->value) info.dims = {dim_info(*scalar->value)};
  }
  if (const OptionalType* optional = type.as<OptionalType>()) {
    info = value_info(info.name, optional->item);
    info.is_optional = true;
  }
  if (const SequenceType* sequence = type.as<SequenceType>()) {
    info.kind = vm::ValueKind::kSequence;
    info.fields = {value_info("", sequence->item)};
  }
  if (const MapType* map = type.as<MapType>()) {
    info.kind = vm::ValueKind::kMap;
    info.fields = {value_info("", tensor_type({}, map->key)), value_info("", map->value)};
  }
  if (const TupleType* tuple = type.as<TupleType>()) {
    info.kind = vm::ValueKind::kTuple;
    info.fields = map_each(tuple->items, [](const Type& item) { return value_info("", item); });
  }
  if (const std::vector<Expr>* shape = known_shape(type)) {
    info.dims = map_each(*shape, dim_info);
  } else if (int64_t rank = known_rank(type); rank >= 0) {
    info.dims = std::vector<vm::DimInfo>(static_cast<size_t>(rank), {-1, "?"});  // dims without a name
  }
  return info;
}

}  // namespace relaxc::codegen
