#include "tir/analysis/byte_tables.h"

#include "ir/module.h"

namespace relaxc {

namespace {

// Returns whether four bits hold every value of the uint8.
bool is_nibble(const Expr& byte) {
  const Binary* op = byte.as<Binary>();
  if (!op) return false;
  const Broadcast* all = op->b.as<Broadcast>();
  const auto count = as_int(all ? all->value : op->b);
  if (!count) return false;
  if (op->op == BinaryOp::kBitAnd) return *count >= 0 && *count < kNibbleTableSize;
  return op->op == BinaryOp::kShiftRight && *count >= 4 && *count < 8;
}

}  // namespace

bool has_byte_tables(const Target& target) { return target.dot_forms.contains(kByteTables); }
bool has_nibble_tables(const Target& target) { return target.dot_forms.contains(kNibbleTables); }

std::optional<Expr> byte_table_index(const BufferLoad& load) {
  const BufferType& type = buffer_type(load.buffer);
  if (load.predicate || load.indices.size() != 1 || type.shape.size() != 1 || !type.dtype.is_integral() ||
      type.dtype.is_bool() || type.dtype.bits != 8 || type.dtype.lanes != 1)
    return std::nullopt;
  const Cast* cast = load.indices[0].as<Cast>();
  if (!cast || dtype_of(cast->value).element() != DType::uint(8)) return std::nullopt;
  const bool is_in_range =
      is_int(type.shape[0], 256) || (is_int(type.shape[0], kNibbleTableSize) && is_nibble(cast->value));
  return is_in_range ? std::optional(cast->value) : std::nullopt;
}

}  // namespace relaxc
