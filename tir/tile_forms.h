// Matrix registers (Intel's AMX), and the products of tiles in them.
#pragma once
#include <span>
#include <string>

#include "tir/target.h"
#include "vm/dtype.h"

namespace relaxc {

// Matrix registers: a tile has that many rows of that many bytes.
inline constexpr int kTileRows = 16, kTileBytes = 64;
// The scope of buffers that are tiles, and how many there are.
inline constexpr const char* kTileScope = "amx.tmm";
inline constexpr int kTiles = 8;

// A built-in intrinsic in the form c[i, j] += a[i, k] * b[k / group, j, k % group]: 16 x 16 sums of `depth` products,
// of operands and results in tiles. A tile of b has the `group` elements of a column whose bytes fill an int32 side by
// side. Others load and store tiles: "amx_load_16x64_u8" a tile of a, "amx_load_16x16x4_s8" one of b,
// "amx_zero_16x16_s32" and "amx_store_16x16_s32" those of results (tir/intrin/tile_intrins.cc).
struct TileForm {
  std::string name;
  int depth;
  DType a, b, result;
  std::string instruction;  // LLVM's intrinsic
  bool Target::* figure;
  int group() const { return depth / kTileRows; }
};
std::span<const TileForm> tile_forms();
const TileForm* find_tile_form(DType a, DType b, DType result, const Target& target);

// Returns the name of a dtype in the names of intrinsics, such as "u8" and "bf16".
std::string short_name(DType dtype);

}  // namespace relaxc
