#include "builtins/properties.h"

#include "vm/dlpack.h"
#include "vm/error.h"

namespace relaxc::vm::properties {

static std::span<const int64_t> dims_from(Arguments arguments) {
  const Tensor& tensor = arguments[0].tensor();
  int64_t axis = arguments[1].integer();
  if (axis < 0 || axis >= tensor.ndim()) throw_runtime_error("{} has no axis {}", describe(tensor), axis);
  return std::span(tensor.shape()).subspan(static_cast<size_t>(axis));
}

Value view(BuiltinContext&, Arguments arguments) {
  const Tensor& source = arguments[0].tensor();
  const Shape& shape = arguments[1].shape();
  auto dtype = parse_dtype(arguments[2].string());
  if (!dtype || dtype->lanes != 1) throw_runtime_error("'{}' is not a dtype", arguments[2].string());
  if (dtype->is_string() || source.dtype().is_string()) throw_runtime_error("strings have no views");
  int64_t offset = arguments[3].integer(), bytes = checked_tensor_bytes(shape, *dtype);
  if (offset < 0 || offset > source.bytes() || bytes > source.bytes() - offset)
    throw_runtime_error("a view of {} bytes at offset {} ends behind {}, which has {} bytes", bytes, offset,
                        describe(source), source.bytes());
  return Tensor::view(shape, *dtype, static_cast<char*>(source.raw()) + offset, source.owner());
}

Value dtype_code(BuiltinContext&, Arguments arguments) { return dlpack_code(arguments[0].tensor().dtype()); }
Value dtype_bits(BuiltinContext&, Arguments arguments) { return int64_t{arguments[0].tensor().dtype().bits}; }
Value dtype_lanes(BuiltinContext&, Arguments arguments) { return int64_t{arguments[0].tensor().dtype().lanes}; }
Value no_offset(BuiltinContext&, Arguments arguments) { return arguments[0].tensor().size() * 0; }
Value tensor_dim(BuiltinContext&, Arguments arguments) { return dims_from(arguments).front(); }
Value tensor_stride(BuiltinContext&, Arguments arguments) {
  return element_count(dims_from(arguments).subspan(1)).value_or(0);
}

}  // namespace relaxc::vm::properties
