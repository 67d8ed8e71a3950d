// Types. One per expression; they carry what is known and no more. Symbolic dims are int64 expressions.
#pragma once
#include <functional>

#include "ir/node.h"
#include "vm/dtype.h"

namespace relaxc {

// Nothing is known about the value (R.Object).
struct ObjectType {
  static constexpr auto fields() { return list(); }
};

// A scalar (or a vector of `lanes`) in a register; handle for pointers, which are opaque unless `pointee` says what
// they point to, in memory of `scope` (empty: "global").
struct PrimType {
  DType dtype;
  std::optional<DType> pointee = {};
  std::string scope = {};
  std::optional<Expr> value = {};  // the value of a scalar of the graph, when known
  RELAXC_FIELDS(PrimType, dtype, pointee, scope, value);
};

// The type of a shape value: its dims when known, else its rank (-1: unknown).
struct ShapeType {
  std::optional<std::vector<Expr>> values;
  int64_t ndim = -1;  // equals values->size() when values are known
  RELAXC_FIELDS(ShapeType, values, ndim);
};

// A tensor value of the graph. shape is a ShapeExpr, a Var of ShapeType, or absent.
struct TensorType {
  std::optional<Expr> shape;
  std::optional<DType> dtype;
  int64_t ndim = -1;    // -1: unknown; equals the shape's rank when that is known
  std::string vdevice;  // "llvm:0:global"; empty: the default device
  RELAXC_FIELDS(TensorType, shape, dtype, ndim, vdevice);
};

// The type of a tensor program's buffer variable: memory seen as a dense array, or strided when strides are given.
// Strides and elem_offset count elements. A buffer over `data`, a pointer, is a view: no memory is allocated for it.
struct BufferType {
  DType dtype;
  std::vector<Expr> shape;
  std::vector<Expr> strides;        // empty: dense, row-major
  std::optional<Expr> elem_offset;  // absent: 0
  std::string scope = "global";     // "global", "local" (registers or stack), "shared", ...
  int64_t data_alignment = 64;      // bytes
  int64_t offset_factor = 0;        // elem_offset is a multiple of it when > 0
  std::optional<Expr> data = {};
  std::vector<int64_t> axis_separators = {};  // the dims before which flattening starts a new dim
  bool auto_broadcast = false;                // a stride is 0 where the extent is 1 (buffer_type="auto")
  RELAXC_FIELDS(BufferType, dtype, shape, strides, elem_offset, scope, data_alignment, offset_factor, data,
                axis_separators, auto_broadcast);
};

struct TupleType {
  std::vector<Type> items;
  RELAXC_FIELDS(TupleType, items);
};

// Any number of values of one type. Dims in it are those of all items; where items differ, their type leaves the dims
// open. A type of items binds no dims.
struct SequenceType {
  Type item;
  RELAXC_FIELDS(SequenceType, item);
};

// A value of the type, or none. A value of the type fits; an optional of an optional does not exist.
struct OptionalType {
  Type item;
  RELAXC_FIELDS(OptionalType, item);
};

// Keys, of which no two are equal, and a value for each: a scalar as a tensor of rank 0, or a tensor.
struct MapType {
  DType key;
  Type value;
  RELAXC_FIELDS(MapType, key, value);
};

// A grid of devices, numbered row by row.
struct DeviceMesh {
  std::vector<int64_t> shape;
  std::vector<int64_t> devices;
  RELAXC_FIELDS(DeviceMesh, shape, devices);
  friend bool operator==(const DeviceMesh&, const DeviceMesh&) = default;
};

// A tensor that is spread over a mesh. The placement has an item per axis of the mesh: "S[0], R" splits dim 0 of the
// tensor along the mesh's first axis and repeats it along the second.
struct DTensorType {
  Type tensor;  // a TensorType
  DeviceMesh mesh;
  std::string placement;
  RELAXC_FIELDS(DTensorType, tensor, mesh, placement);
};

// A function: params absent means opaque. Symbolic dims of the params scope over the result.
struct FuncType {
  std::optional<std::vector<Type>> params;
  Type result;
  bool pure = true;
  std::string derive_func = {};  // the function that derives an opaque function's result type; empty: none
  RELAXC_FIELDS(FuncType, (binds_deep)params, result, pure, derive_func);
};

Type object_type();
Type prim_type(DType dtype);
Type pointer_type(DType pointee, std::string scope = "global");
Type shape_type(std::vector<Expr> values);
Type shape_type_of_rank(int64_t ndim);
// Returns a tensor type of known shape.
Type tensor_type(std::vector<Expr> shape, std::optional<DType> dtype, const Span& span = {});
Type tensor_type_of_rank(int64_t ndim, std::optional<DType> dtype);
Type tuple_type(std::vector<Type> items);
Type sequence_type(Type item);
Type optional_type(Type item);  // the type itself when it is an optional
Type map_type(DType key, Type value);
// Returns a tuple type with fn applied to its items, nested ones included, or fn(type) for any other type.
Type map_items(const Type& type, const std::function<Type(const Type&)>& fn);
// Returns the type with fn applied to the types that it is made of: those of the items of a tuple or sequence, of an
// optional's value, of a map's values. Any other type stays.
Type map_parts(const Type& type, const std::function<Type(const Type&)>& fn);

// Returns whether the type is of sequences, optionals or maps.
inline bool is_container(const Type& type) {
  return type.is<SequenceType>() || type.is<OptionalType>() || type.is<MapType>();
}

// Returns the most specific type that holds for values of either type, such as the two that an If may give.
Type common_type(const Type& a, const Type& b);

// Returns the dims of a tensor or shape type when they are known, else null.
const std::vector<Expr>* known_shape(const Type& type);
// Returns the dims when all of them are numbers.
std::optional<std::vector<int64_t>> constant_shape(const Type& type);
// Returns the rank of a tensor or shape type; -1 when unknown or another type.
int64_t known_rank(const Type& type);
std::optional<DType> tensor_dtype(const Type& type);

}  // namespace relaxc
