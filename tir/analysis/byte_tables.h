// Tables of 256 bytes, one for each value of a byte, and of 16, one for each value of four bits. Some processors take
// as many elements as a vector has in a few instructions.
#pragma once
#include <optional>
#include <string_view>

#include "ir/stmt.h"
#include "tir/target.h"

namespace relaxc {

// Says among the names in Target::dot_forms that the processor has such instructions: vpermi2b of AVX-512, AArch64's
// tbl.
inline constexpr std::string_view kByteTables = "byte_tables";
bool has_byte_tables(const Target& target);
// The same of tables of 16 bytes, from which one instruction takes a vector: vpshufb of x86, tbl. All processors with
// dot products of bytes have it.
inline constexpr std::string_view kNibbleTables = "nibble_tables";
inline constexpr int64_t kNibbleTableSize = 16;
bool has_nibble_tables(const Target& target);

// Returns the uint8, a scalar or a vector, by which a load takes an element of such a table; nullopt for other loads.
// That of a table of 16 is less than 16 by its form: x & 15, x >> 4.
std::optional<Expr> byte_table_index(const BufferLoad& load);

}  // namespace relaxc
