// Tensor intrinsics: what an instruction computes (a description that tensorize looks for) and how it is called (the
// implementation that it puts there). Both are tensor programs of the same params; the description is one block in its
// loops, the implementation any body, usually calls of LLVM intrinsics on windows of the params.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "ir/module.h"
#include "tir/target.h"

namespace relaxc {

struct TensorIntrin {
  std::string name;
  PrimFuncRef description, implementation;
  std::vector<TensorIntrin> other_layouts = {};  // of the same name; tried in turn where this one does not match
};

// The intrinsics that a schedule knows, by name. The built-in ones (builtin_intrins.cc) and what users add.
class TensorIntrins {
 public:
  // Throws a CompileError when the two do not fit each other.
  void add(TensorIntrin intrin);
  const TensorIntrin* find(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  std::map<std::string, TensorIntrin, std::less<>> rows_;
};

// Describes to a person the buffers of each intrinsic, its statement, and the processor features that it needs.
std::string describe_intrins(const TensorIntrins& intrins);

// Reads a module of the programs `description`, whose attribute tensor_intrin is the name, and `implementation`.
TensorIntrin parse_tensor_intrin(std::string_view text, const std::string& filename);

// For x86-64 (AVX2, AVX-512, VNNI, bf16) and AArch64; the list is in builtin_intrins.cc.
const TensorIntrins& builtin_tensor_intrins();

// A built-in intrinsic in the form c[n] += a[k] * b[n, k]: `lanes` sums of `group` products.
struct DotForm {
  std::string name;
  int lanes, group;
  DType a, b, result;
  std::string instruction;          // LLVM's intrinsic, whose features tir/dot_intrinsics.h knows
  bool Target::* figure = nullptr;  // rules and passes use the form where this holds; null: only users' schedules do
};
const std::vector<DotForm>& dot_forms();
// Returns the form that rules use for these operands and full vectors of the target; null: there is none.
const DotForm* find_dot_form(DType a, DType b, DType result, const Target& target);

// Matrix registers: a tile has that many rows of that many bytes.
inline constexpr int kTileRows = 16, kTileBytes = 64;
// The scope of buffers that are tiles, and how many there are.
inline constexpr const char* kTileScope = "amx.tmm";
inline constexpr int kTiles = 8;

// A built-in intrinsic in the form c[i, j] += a[i, k] * b[k / group, j, k % group]: 16 x 16 sums of `depth` products,
// of operands and results in tiles. A tile of b has the `group` elements of a column whose bytes fill an int32 side by
// side. Others load and store tiles: "amx_load_16x64_u8" a tile of a, "amx_load_16x16x4_s8" one of b,
// "amx_zero_16x16_s32" and "amx_store_16x16_s32" those of results (tile_intrins.cc).
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
std::vector<TensorIntrin> tile_intrins();
// Returns the name of a dtype in the names of intrinsics, such as "u8" and "bf16".
std::string short_name(DType dtype);

}  // namespace relaxc
