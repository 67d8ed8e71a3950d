// Tables of 256 bytes, one for each value of a byte. Some processors take as many elements as a vector has in a few
// instructions.
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

// Returns the uint8, a scalar or a vector, by which a load takes an element of such a table; nullopt for other loads.
std::optional<Expr> byte_table_index(const BufferLoad& load);

}  // namespace relaxc
