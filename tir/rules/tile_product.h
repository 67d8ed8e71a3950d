// A product that tiles of matrix registers can compute: what tir/rules/tiles.cc schedules.
#pragma once
#include <variant>

#include "support/checked_math.h"
#include "tir/rules/lanes.h"
#include "tir/tile_forms.h"

namespace relaxc {

// The blocks that are products, by the operator that they come from.
inline constexpr const char* kMatmul = "matmul";

using Positions = std::vector<size_t>;

// Axes of a block that become one. The first one is the outermost.
struct MergedAxes {
  Positions axes;
  std::vector<Expr> extents;

  void add(size_t position, const Expr& extent) {
    axes.push_back(position);
    extents.push_back(extent);
  }
  Expr extent() const {
    Expr result = int_imm(1);
    for (const Expr& each : extents) result = simplify(result * each);
    return result;
  }
  Expr merged(const Exprs& at) const {
    Expr result = int_imm(0);
    for (size_t i = 0; i < axes.size(); ++i) result = result * extents[i] + at[axes[i]];
    return result;
  }
};

// The windows of a stored image that are read where they lie.
struct Windows {
  // A dim of the image, and the axis of the results that runs along it.
  struct Dim {
    size_t axis;
    int64_t results, stride;
    int64_t last;    // the place in the image of the last element of the first window
    int64_t pixels;  // of the image
  };
  Dim height, width;
  // The results that are computed in a row of pixels, and the columns of the stored image.
  int64_t results() const { return ceil_div(width.pixels, width.stride); }
  int64_t columns() const { return results() * width.stride; }
  // The rows of the image that so many rows of the product need.
  int64_t image_rows(int64_t rows) const {
    const int64_t last = (rows - 1) * width.stride + height.last / height.stride * columns() + width.last;
    return std::max(last / columns() + 1, ceil_div(height.pixels, height.stride)) * height.stride;
  }
};

struct TileProduct : Stage {
  std::string op;
  const TileForm* form;
  Ref<BufferLoad> left, right;
  MergedAxes rows, columns, depth;
  // Spatial axes around the rows, which are one with these only where the extents inside of them are constant.
  Positions batch = {};
  // The left operand is an image in blocks of channels, with a border, and windows of it overlap: it is stored with the
  // border, and all channels of a pixel side by side. So rows of the left operand are copies of long pieces, without
  // conditions.
  bool stores_image = false;
  std::optional<Windows> windows = std::nullopt;  // of the stored image, where they can be read in place

  std::optional<int64_t> num_rows() const { return as_int(rows.extent()); }
  int64_t num_columns() const { return *as_int(columns.extent()); }
  int64_t depth_of_sum() const { return *as_int(depth.extent()); }
};

constexpr size_t kRankOfBlocks = 5;  // of an image: images, blocks of channels, height, width, channels in a block

// Returns the product of the program, or why it is none.
std::variant<TileProduct, std::string> find_tile_product(const PrimFuncRef& program, const Target& target, Decisions&);
// Returns whether a block before the product makes the buffer.
bool is_made(const TileProduct& product, const Buffer& buffer);
// Returns whether the rows of the left operand are in memory, evenly apart and as many as fill tiles, with the elements
// of a tile's row side by side.
bool has_even_rows(const TileProduct& product);
// Returns the extents of the parts of the axes: of those in which neighbours of the left operand are not neighbours in
// memory, and then of all others.
std::vector<int64_t> parts_of(const MergedAxes& merged, const std::vector<IterVar>& axes, const BufferLoad& left);

}  // namespace relaxc
