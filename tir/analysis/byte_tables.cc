#include "tir/analysis/byte_tables.h"

#include "ir/module.h"

namespace relaxc {

bool has_byte_tables(const Target& target) { return target.dot_forms.contains(kByteTables); }

std::optional<Expr> byte_table_index(const BufferLoad& load) {
  const BufferType& type = buffer_type(load.buffer);
  if (load.predicate || load.indices.size() != 1 || type.shape.size() != 1 || !is_int(type.shape[0], 256) ||
      !type.dtype.is_integral() || type.dtype.is_bool() || type.dtype.bits != 8 || type.dtype.lanes != 1)
    return std::nullopt;
  const Cast* cast = load.indices[0].as<Cast>();
  if (!cast || dtype_of(cast->value).element() != DType::uint(8)) return std::nullopt;
  return cast->value;
}

}  // namespace relaxc
