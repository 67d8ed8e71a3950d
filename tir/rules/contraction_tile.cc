// The formulas of contractions.
#include <algorithm>
#include <cmath>

#include "support/checked_math.h"
#include "tir/analysis/conditions.h"
#include "tir/dot_intrinsics.h"
#include "tir/intrin/tensor_intrin.h"
#include "tir/rules/contraction.h"
#include "tir/rules/cost_model.h"

namespace relaxc {

using namespace cost_model;

namespace {

int most_rows(int64_t vectors, const Target& target) {
  int64_t spare = target.num_vector_registers >= kManyRegisters ? kSpareOfMany : kSpareOfFew;
  return static_cast<int>(rows_in_registers(vectors, spare, target));
}

// Returns whether a block of several dims reads a vector, such as a bias.
bool has_bias(const Ref<Block>& block) {
  auto is_vector = [](const Ref<BufferLoad>& load) { return load->indices.size() == 1 && load->indices[0].is<Var>(); };
  return block->iter_vars.size() > 1 && std::ranges::any_of(loads_of(block->body), is_vector);
}

// Returns the most rows of a block (BLIS's mc). Their part of the operand without lanes stays in the L2 cache while all
// panels are read. There are at least so many rows that their arithmetic, one product per float32 of a panel and row,
// takes as long as loading the panel from memory. Short rows count as half a way of the L1 cache: rows of results at
// such a stride fall into few of its sets.
int64_t most_rows_in_block(int64_t row_bytes, const Target& target) {
  int64_t half_way = target.l1.bytes / target.l1.ways / 2, block_bytes = target.l2_of_core() * kBlockEighthsOfL2 / 8;
  double products = static_cast<double>(target.products_per_cycle()) * kFloat32.bytes();
  auto least = static_cast<int64_t>(std::ceil(products / target.memory_bytes_per_cycle));
  return std::max({least, block_bytes / std::max(row_bytes, half_way), int64_t{1}});
}

// Returns the iterations of the axes beside rows and columns, such as the images of a batch.
int64_t num_products(const Stage& product, const ContractionTile& tile) {
  int64_t count = 1;
  const std::vector<IterVar>& axes = product.block->iter_vars;
  for (size_t a = 0; a < axes.size(); ++a) {
    const bool is_beside = axes[a].kind == IterKind::kSpatial && a != tile.column_axis && a != tile.band_axis &&
                           !(tile.has_rows && a == tile.row_axis);
    if (is_beside) count *= std::clamp<int64_t>(product.extent(a).value_or(1), 1, kMostProducts);
    count = std::min(count, kMostProducts);
  }
  return count;
}

// Returns how many cores shorten a product of so many multiply-adds per lane and port: waking one takes a while, too.
int64_t useful_cores(double cycles, const Target& target) {
  const double most = cycles / static_cast<double>(kWakesOfShare * target.wake_cycles);
  return static_cast<int64_t>(std::clamp(most, 1.0, static_cast<double>(assumed_cores(target))));
}

// Returns the number of row tiles in a block of rows. Blocks are distributed over threads, so the last one should not
// be smaller. Returns 0 if there are few rows, so that panels are distributed instead, or the other axes are.
int64_t row_tiles_in_block(std::optional<int64_t> rows, int64_t panels, int64_t products, const ContractionTile& tile,
                           int64_t row_bytes, const Target& target) {
  int64_t most = std::max<int64_t>(1, most_rows_in_block(row_bytes, target) / tile.rows);
  if (!rows) return most;
  const double columns = static_cast<double>(panels * tile.panels * tile.columns() * products);
  const double depth = static_cast<double>(row_bytes) / kFloat32.bytes();
  const double cycles = static_cast<double>(*rows) * columns * depth / static_cast<double>(target.products_per_cycle());
  int64_t tiles = ceil_div(*rows, tile.rows), shares = kSharesPerCore * useful_cores(cycles, target);
  if (tiles < shares && panels * products >= shares / kSharesOfPanels) return 0;
  most = std::min(most, ceil_div(tiles * panels, shares));
  int64_t best = most;
  auto missing = [&](int64_t in_block) { return ceil_div(tiles, in_block) * in_block - tiles; };
  for (int64_t fewer = most; fewer > most / 2; --fewer) {
    if (missing(fewer) < missing(best)) best = fewer;
  }
  return best;
}

// Returns the number of parts of the reduction. There are several if a block of rows and two panels (the next one is
// being fetched) far exceed the L2 cache. Then all rows use one part of a panel before the next part.
int64_t reduction_parts(const std::vector<int64_t>& candidates, const ContractionTile& tile,
                        std::optional<int64_t> rows, int64_t row_bytes, const Target& target) {
  int64_t panel_bytes = 2 * tile.panels * tile.columns() * row_bytes, l2 = target.l2_of_core();
  if (tile.reads_panels_once(rows) || tile.bands > 1) return 1;
  int64_t block_rows = most_rows_in_block(row_bytes, target);
  if (std::min(rows.value_or(block_rows), block_rows) * row_bytes + panel_bytes <= kBlockAndPanelsInL2 * l2) return 1;
  int64_t least = ceil_div(panel_bytes, std::max<int64_t>(1, l2 * kPanelQuartersOfL2 / 4));
  auto found = std::ranges::find_if(candidates, [&](int64_t parts) { return parts >= least; });
  return found == candidates.end() ? 1 : *found;
}

// Returns the bytes that the reduction reads in a row of the operand without lanes.
int64_t bytes_of_row(const Block& block) {
  int64_t bytes = dtype_of(operands_of(block)[0]).bytes();
  for (const IterVar& axis : axes_of(block, IterKind::kReduce)) bytes *= as_int(axis.domain.extent).value_or(1);
  return bytes;
}

constexpr const char* kOtherForm =
    "the right operand is neither in panels of a tile's columns nor a float32 matrix of constant size";

// Matches y[j // columns, k, band, j % columns] and y[0, k, band, j] (passes/product_bands.h). All bands have the same
// rows; where the rows have a band, too, as heads of attention do, each is a product of its own.
ContractionMatch match_bands(const Block& block, const BufferLoad& x, const BufferLoad& y, ContractionTile tile) {
  const std::vector<Expr>& at = y.indices;
  const std::vector<Expr>& shape = buffer_type(y.buffer).shape;
  const Binary* in_panel = at[3].as<Binary>();
  auto bands = as_int(shape[2]), columns = as_int(shape[3]);
  bool in_panels = in_panel && in_panel->op == BinaryOp::kFloorMod && columns && is_int(in_panel->b, *columns);
  if (!bands || !columns || !same_node(at[1], x.indices.back()) || uses_var(x.indices, cast<Var>(at[2])) ||
      (!in_panels && !(is_int(at[0], 0) && at[3].is<Var>())))
    return kOtherForm;
  tile.band_axis = position_of_axis(block.iter_vars, at[2]);
  tile.column_axis = position_of_axis(block.iter_vars, in_panels ? in_panel->a : at[3]);
  if (std::max(*tile.band_axis, tile.column_axis) >= block.iter_vars.size()) return kOtherForm;
  tile.bands = static_cast<int>(*bands);
  while (in_panels ? *columns % tile.lanes != 0 : tile.lanes > kFewestLanes && *columns < tile.lanes) tile.lanes /= 2;
  tile.vectors = in_panels ? static_cast<int>(*columns) / tile.lanes : 1;
  if (in_panels) tile.num_panels = as_int(shape[0]);
  if (!in_panels && *columns % tile.lanes == 0) tile.num_panels = *columns / tile.lanes;
  return tile;
}

// Matches a float32 right operand y[k, n] or y[n, k] that can be copied into panels, as constants are at compile time,
// also one for each product of a batch.
ContractionMatch match_plain_operand(const Block& block, const BufferLoad& x, const BufferLoad& y,
                                     ContractionTile tile) {
  const size_t last = y.indices.size() - 1;
  const size_t column_dim = same_node(y.indices[last - 1], x.indices.back()) ? last : last - 1;
  const size_t depth_dim = column_dim == last ? last - 1 : last;
  const BufferType& type = buffer_type(y.buffer);
  tile.vectors = kSideBySide;
  auto width = as_int(type.shape[column_dim]), length = as_int(type.shape[depth_dim]);
  bool is_matrix = type.dtype == kFloat32 && width && length && *length > 1;
  // In the sum of x[i, k] * y[i, k] over k the rows of one are those of the other: it has no columns.
  const Expr& column = y.indices[column_dim];
  bool is_product = same_node(y.indices[depth_dim], x.indices.back()) && x.indices[x.indices.size() - 2].is<Var>() &&
                    column.is<Var>() && !uses_var(x.indices, cast<Var>(column));
  if (!is_matrix || !is_product) return kOtherForm;
  for (size_t d = 0; d + 2 < y.indices.size(); ++d) {
    const bool is_batch =
        is_int(y.indices[d], 0) || (y.indices[d].is<Var>() && uses_var(x.indices, cast<Var>(y.indices[d])));
    if (!is_batch || !as_int(type.shape[d])) return kOtherForm;
  }
  if (*width % tile.columns() != 0)
    return fmt::format("the right operand is not in panels, and its {} columns are not a multiple of {} (a panel)",
                       *width, tile.columns());
  tile.column_axis = position_of_axis(block.iter_vars, column);
  tile.copies_operand = true;
  tile.num_panels = *width / tile.columns();
  return tile;
}

// Returns the axis of rows: the innermost one of x[..., i, k] that is longer than 1, or one before it that is longer
// where that is too short for a tile.
size_t row_axis_of(const Block& block, const std::vector<Expr>& x) {
  size_t best = block.iter_vars.size();
  int64_t longest = 1;
  for (size_t d = x.size() - 1; d-- > 0 && longest < kFewestRows;) {
    const size_t axis = position_of_axis(block.iter_vars, x[d]);
    if (axis == block.iter_vars.size() || block.iter_vars[axis].kind != IterKind::kSpatial) break;
    const int64_t length = as_int(block.iter_vars[axis].domain.extent).value_or(kFewestRows);
    if (length <= longest) continue;
    longest = length, best = axis;
  }
  return best;
}

// Matches y[j // columns, k // group, j % columns, k % group] and x[..., i, k], also with such panels for each product
// of a batch.
ContractionMatch match_panels(const Block& block, const Target& target) {
  std::vector<Ref<BufferLoad>> operands = operands_of(block);
  if (operands.size() != 2 || operands[0]->indices.size() < 2) return kOtherForm;
  const std::vector<Expr>&x = operands[0]->indices, &y = operands[1]->indices;
  ContractionTile tile{0, row_axis_of(block, x), false, 1, target.vector_lanes(32), 1};
  if (x.size() == y.size() && y.back().is<Var>()) {
    ContractionMatch plain = match_plain_operand(block, *operands[0], *operands[1], tile);
    if (y.size() == 2 || plain.index() == 0) return plain;
  }
  const BufferType &left = buffer_type(operands[0]->buffer), &right = buffer_type(operands[1]->buffer);
  if (right.shape.size() < 3) return kOtherForm;
  const bool has_groups = right.shape.size() > 3 && !same_node(y[y.size() - 2], x.back());
  const size_t batch = right.shape.size() - (has_groups ? 4 : 3);
  auto is_spatial = [&](const Expr& index) {
    const size_t axis = position_of_axis(block.iter_vars, index);
    return axis < block.iter_vars.size() && block.iter_vars[axis].kind == IterKind::kSpatial;
  };
  if (!std::all_of(y.begin(), y.begin() + static_cast<ptrdiff_t>(batch), is_spatial)) return kOtherForm;
  if (has_groups && batch == 0 && y[2].is<Var>()) return match_bands(block, *operands[0], *operands[1], tile);
  const Binary* column = y[batch + 2].as<Binary>();
  auto columns = as_int(right.shape[batch + 2]);
  if (!columns || !column || column->op != BinaryOp::kFloorMod || !is_int(column->b, *columns)) return kOtherForm;
  if (has_groups) {
    const Binary* group = y[batch + 3].as<Binary>();
    auto size = as_int(right.shape[batch + 3]);
    if (!group || !size || group->op != BinaryOp::kFloorMod || !same_node(group->a, x.back())) return kOtherForm;
    const DotForm* form = dot_form_of(block, left.dtype, right.dtype, target);
    if (!form || form->group != *size || *columns % tile.lanes != 0)
      return fmt::format("the target has no instruction that sums {} products in each lane of panels of {} columns",
                         *size, *columns);
    tile.group = form->group;
    tile.intrin = form->name;
    tile.adds_products = !find_dot_intrinsic(form->instruction)->accumulates;
  } else if (!same_node(y[batch + 1], x.back())) {
    return kOtherForm;
  }
  while (*columns % tile.lanes != 0) tile.lanes /= 2;
  tile.vectors = static_cast<int>(*columns) / tile.lanes;
  tile.column_axis = position_of_axis(block.iter_vars, column->a);
  tile.num_panels = as_int(right.shape[batch]);
  return tile;
}

// Returns the block that unpacks the product's right operand from words (passes/pack_quantized.cc).
std::optional<Ref<Block>> unpacking_block(const Stage& product) {
  std::vector<Ref<BufferLoad>> operands = operands_of(*product.block);
  for (const Ref<Block>& block : product.prologue) {
    const bool makes_operand = operands.size() == 2 && stores_to(block, operands[1]->buffer);
    if (makes_operand && block->annotations.has(annotation<"unpacked_columns">())) return block;
  }
  return std::nullopt;
}

// Matches y[k, n] and x[..., i, k], where `unpacking` makes y. A vector of each number in a word makes the width of a
// tile that has all rows, which unpacks each word once. Otherwise a panel is read by all row tiles, as a stored one is.
ContractionMatch match_unpacked(const Stage& product, const Block& unpacking, const Target& target,
                                Decisions& decisions) {
  const Block& block = *product.block;
  std::vector<Ref<BufferLoad>> operands = operands_of(block);
  const std::vector<Expr>&x = operands[0]->indices, &y = operands[1]->indices;
  if (x.size() < 2 || y.size() != 2 || !same_node(y[0], x.back()) || !y[1].is<Var>()) return kOtherForm;
  ContractionTile tile{0, row_axis_of(block, x), false, 1, target.vector_lanes(32), 1};
  const int64_t columns = unpacking.annotations.get_int(annotation<"unpacked_columns">(), 0);
  const auto width = as_int(buffer_type(operands[1]->buffer).shape[1]);
  tile.column_axis = position_of_axis(block.iter_vars, y[1]);
  if (tile.column_axis == block.iter_vars.size() || !width || columns <= 0 || *width % columns != 0 ||
      columns % tile.lanes != 0)
    return kOtherForm;
  const bool is_axis = tile.row_axis < block.iter_vars.size();
  const auto rows = is_axis ? product.extent(tile.row_axis) : 1;
  tile.vectors = static_cast<int>(columns) / tile.lanes;
  tile.unpacked_lanes = static_cast<int>(unpacking.annotations.get_int(annotation<"unpacked_lanes">(), tile.lanes));
  // For more rows a tile has one vector of the numbers in a word, and the next tile finds the words in a cache.
  const int fewer_vectors = std::max(1, tile.unpacked_lanes / tile.lanes);
  if (rows && *rows > most_rows(tile.vectors, target) && *rows <= most_rows(fewer_vectors, target))
    tile.vectors = fewer_vectors;
  const bool has_few_rows = rows && *rows <= most_rows(tile.vectors, target);
  const bool in_registers =
      decisions.word("unpack", {"registers", "panel"}, has_few_rows ? "registers" : "panel") == "registers";
  tile.unpacks = in_registers ? ContractionTile::Unpacks::kInRegisters : ContractionTile::Unpacks::kIntoPanel;
  if (!in_registers) tile.vectors = std::min(tile.vectors, kSideBySide);
  tile.unpacked_rows = std::max<int64_t>(1, unpacking.annotations.get_int(annotation<"unpacked_rows">(), 1));
  tile.scaled_rows = std::max<int64_t>(1, unpacking.annotations.get_int(annotation<"scaled_rows">(), 1));
  const auto depth = product.extent(block.iter_vars.size() - 1);
  // Rounded to 16 bits, a number times its scale is not a factor of sums.
  const Binary* scaled = unpacking.body.as<BufferStore>()->value.as<Binary>();
  tile.sums_before_scaling =
      in_registers && scaled && scaled->op == BinaryOp::kMul && depth && *depth % tile.scaled_rows == 0;
  tile.num_panels = *width / tile.columns();
  return tile;
}

// Returns the number of panels side by side. A single row is bound by memory and reads several, each a stream.
// Otherwise two need the fewest loads per multiply-add, unless all rows fit a tile on one panel, which reads it once.
int64_t panels_side_by_side(const ContractionTile& tile, std::optional<int64_t> rows, const Target& target) {
  if (tile.bands > 1) {  // each is a stream of its own; as many vectors as without bands
    int64_t vectors = tile.has_rows ? kSideBySide * kSideBySide : kStreams * kSideBySide, panels = 1;
    if (tile.has_rows && most_rows(vectors, target) < kFewestWideRows) vectors = kSideBySide;
    while (2 * panels * tile.row_vectors() <= vectors && tile.num_panels.value_or(1) % (2 * panels) == 0) panels *= 2;
    return panels;
  }
  if (tile.vectors != kSideBySide || !tile.num_panels) return 1;
  if (!tile.has_rows) return *tile.num_panels % kStreams == 0 ? kStreams : 1;
  int narrow = most_rows(tile.vectors, target), wide = most_rows(kSideBySide * tile.vectors, target);
  bool read_once = rows && *rows > wide && *rows <= narrow;
  return wide >= kFewestWideRows && *tile.num_panels % kSideBySide == 0 && !read_once ? kSideBySide : 1;
}

// Returns whether a bias may take registers from accumulators: LLVM loads its vectors once for all row tiles.
bool holds_bias(const ContractionTile& tile, std::optional<int64_t> rows, const std::vector<Ref<Block>>& epilogue) {
  return tile.rows > 1 && tile.panels == kSideBySide && !tile.reads_panels_once(rows) &&
         std::ranges::any_of(epilogue, has_bias);
}

// Returns how many iterations of the innermost reduce loop are unrolled, for fewer branches and earlier loads. With
// more accumulators there are no registers for these. If the number of rows is symbolic, there is a copy of the tile
// for every number of rows that the last one may have, so less is unrolled.
int64_t step_of_reduction(const std::vector<int64_t>& candidates, int64_t depth, const ContractionTile& tile,
                          std::optional<int64_t> rows) {
  if (tile.reads_panels_once(rows)) return 1;
  if (tile.adds_products) return std::min(candidates.back(), kMostStepOfProducts);
  bool is_wide = tile.row_vectors() > kSideBySide;
  int64_t most = !rows || (is_wide && depth < kLongSum) ? kMostWideStep : kMostStep;
  int64_t best = 1;
  for (int64_t step : candidates) best = step <= most && step != depth ? step : best;
  return best;
}

// Chooses the rows of the tile, and the row tiles of a block.
void choose_tile_rows(ContractionTile& tile, const Stage& product, std::optional<int64_t> num_rows, int64_t row_bytes,
                      const Target& target, Decisions& decisions) {
  if (!tile.has_rows) return;
  int64_t rows = tile.rows - (tile.parts == 1 && holds_bias(tile, num_rows, product.epilogue) ? 1 : 0);
  // Rows that lie a multiple of a way of the L1 cache apart drive each other out of it.
  const int64_t operand_bytes = row_bytes * tile.num_panels.value_or(0) * tile.columns();
  const bool share_a_set = row_bytes % std::max<int64_t>(1, target.l1.bytes / target.l1.ways) == 0;
  if (share_a_set && operand_bytes > 0 && operand_bytes <= target.l2_of_core())
    rows = std::min<int64_t>(rows, target.l1.ways);
  if (num_rows && *num_rows > 0) rows = ceil_div(*num_rows, ceil_div(*num_rows, rows));  // the last tile is as large
  std::vector<int64_t> candidates = numbers_between(1, most_rows(tile.row_vectors(), target));
  tile.rows = static_cast<int>(decisions.number("rows", candidates, rows));
  int64_t columns = product.extent(tile.column_axis).value_or(INT32_MAX);
  int64_t panels = ceil_div(columns, tile.panels * tile.columns());
  int64_t products = num_products(product, tile);
  int64_t tiles = row_tiles_in_block(num_rows, panels, products, tile, row_bytes, target);
  tile.row_tiles = decisions.number("row_tiles", numbers_between(0, std::max(tiles, kMostRowTiles)), tiles);
  // A panel is loaded for each product, the elements of its rows for each tile of columns. What is reused less stays.
  const bool few_rows = num_rows && *num_rows < tile.panels * tile.columns();
  const bool fits = columns * row_bytes <= target.l2_of_core() / 2;
  if (tile.row_tiles == 0 && tile.bands == 1 && products > 1)
    tile.columns_first = decisions.flag("columns_first", few_rows && !fits);
}

}  // namespace

// Returns whether the right operand is a constant matrix, which is copied when the program is compiled.
static bool is_copied_before(const Block& product) {
  const std::string& constant = product.annotations.get_string(annotation<"constant_operand">(), "");
  const Ref<BufferLoad> right = operands_of(product)[1];
  return right->indices.size() == 2 && constant == right->buffer->name;
}

ContractionMatch match_contraction(const Stage& product, const Target& target, Decisions& decisions) {
  const std::optional<Ref<Block>> unpacking = unpacking_block(product);
  ContractionMatch match =
      unpacking ? match_unpacked(product, **unpacking, target, decisions) : match_panels(*product.block, target);
  auto* tile = std::get_if<ContractionTile>(&match);
  if (!tile) return match;
  bool is_axis = tile->row_axis < product.block->iter_vars.size();
  auto num_rows = is_axis ? product.extent(tile->row_axis) : 1;
  if (tile->copies_operand) {
    // The matrices of a batch are so small that copies pay only where the L1 cache does not hold them.
    const Ref<BufferLoad> right = operands_of(*product.block)[1];
    const std::vector<Expr>& dims = buffer_type(right->buffer).shape;
    int64_t bytes = kFloat32.bytes();
    for (const Expr& dim : std::span(dims).last(2)) bytes *= std::min(as_int(dim).value_or(kMostSum), kMostSum);
    const bool is_large = dims.size() == 2 || bytes > target.l1_of_core();
    bool is_worth_copying = is_copied_before(*product.block) ||
                            (is_large && num_rows.value_or(0) >= kCopyCycles * target.products_per_cycle());
    if (!decisions.flag("copy_operand", is_worth_copying))
      return "the right operand is not in panels, and not worth copying into panels (decision 'copy_operand')";
  }
  tile->has_rows = is_axis && num_rows != 1;
  if (!tile->has_rows) tile->row_axis = 0;
  return match;
}

ContractionTile choose_contraction(const Stage& product, ContractionTile tile, const Target& target,
                                   Decisions& decisions) {
  const Block& block = *product.block;
  auto num_rows = tile.has_rows ? product.extent(tile.row_axis) : 1;
  std::vector<int64_t> columns = doublings_between(tile.columns(), kStreams * tile.columns());
  std::erase_if(columns, [&](int64_t width) {
    return width > tile.columns() && tile.num_panels.value_or(1) * tile.columns() % width != 0;
  });
  int64_t formula = panels_side_by_side(tile, num_rows, target) * tile.columns();
  tile.panels = static_cast<int>(decisions.number("columns", columns, formula) / tile.columns());

  int64_t row_bytes = bytes_of_row(block);
  int most = most_rows(tile.row_vectors(), target);
  // There is code for each number of rows that the last tile may have.
  int64_t symbolic = std::min<int64_t>(most, tile.bands > 1 ? kMostBandedRows : kMostSymbolicRows);
  tile.rows = tile.has_rows ? static_cast<int>(std::clamp<int64_t>(num_rows.value_or(symbolic), 1, most)) : 1;
  bool reduces_last = block.iter_vars.back().kind == IterKind::kReduce;
  auto depth = reduces_last ? product.extent(block.iter_vars.size() - 1) : std::nullopt;
  bool divides = tile.has_rows && depth && *depth % tile.group == 0;
  std::vector<int64_t> parts = divides ? divisors_between(1, kMostParts, *depth / tile.group) : std::vector<int64_t>{1};
  tile.parts = decisions.number("reduction_parts", parts, reduction_parts(parts, tile, num_rows, row_bytes, target));
  choose_tile_rows(tile, product, num_rows, row_bytes, target, decisions);
  if (depth) {
    int64_t steps = *depth / tile.parts / tile.group;
    if (tile.unpacks_scaled_rows(steps)) steps = tile.scaled_rows;
    std::vector<int64_t> candidates = doublings_between(1, kMostStep);
    std::erase_if(candidates, [&](int64_t step) { return steps % step != 0; });
    tile.step = decisions.number("step", candidates, step_of_reduction(candidates, steps, tile, num_rows));
  }
  bool loops = tile.parts == 1 && tile.has_rows && any_is_expensive(product.epilogue);
  tile.unrolls_epilogue = decisions.word("epilogue", {"unrolled", "loop"}, loops ? "loop" : "unrolled") == "unrolled";
  // A panel that was unpacked before is in a cache.
  const bool is_in_memory = tile.unpacks != ContractionTile::Unpacks::kIntoPanel;
  if (tile.reads_panels_once(num_rows) && is_in_memory && !axes_of(block, IterKind::kReduce).empty()) {
    std::vector<int64_t> candidates = doublings_between(kFewestRowsAhead, kMostRowsAhead);
    candidates.insert(candidates.begin(), 0);
    // Few rows read a panel so fast that the processor fetches it by itself, earlier than instructions would. Unpacking
    // takes about as long as memory does, so that both have to go on at the same time.
    const bool unpacks = tile.unpacks == ContractionTile::Unpacks::kInRegisters;
    const int64_t formula_ahead = unpacks ? kUnpackedRowsAhead : tile.rows < kFewestFetchedRows ? 0 : kRowsAhead;
    tile.rows_ahead = decisions.number("rows_ahead", candidates, formula_ahead);
  }
  return tile;
}

std::optional<Versions> choose_specialized_rows(const Stage& product, const ContractionTile& tile, const Target& target,
                                                Decisions& decisions) {
  if (!tile.has_rows || tile.group > 1) return std::nullopt;
  auto rows = try_cast<Var>(product.block->iter_vars[tile.row_axis].domain.extent);
  if (!rows) return std::nullopt;
  // Numbers of rows just above a tile have separate code: a second tile of the general form would read each panel again
  // for few rows. Each number costs 8 ms of compile time. The formula counts from a whole tile, without the register
  // that a bias would take.
  int64_t whole = most_rows(tile.row_vectors(), target);
  std::vector<int64_t> formula = {1};
  for (int64_t few :
       numbers_between(whole + 1, std::min<int64_t>(whole + 2, most_rows(tile.bands * tile.vectors, target))))
    formula.push_back(few);
  // Each version would copy an operand by itself that is not constant.
  if (tile.copies_operand && !is_copied_before(*product.block)) formula.clear();
  decisions.list(kSpecialize, numbers_between(1, most_rows(1, target)), formula);
  return Versions{*rows, kSpecialize};
}

std::vector<DecisionRow> contraction_decisions() {
  return {
      {"copy_operand", "copy the right operand into panels first",
       fmt::format("rows >= {} * products per cycle, of a batch where L1 does not hold it; or it is constant",
                   kCopyCycles)},
      {"columns", "columns of a register tile, one panel or several",
       fmt::format("{} panels; of a single row {}", kSideBySide, kStreams)},
      {"rows", "rows of a register tile",
       fmt::format(
           "(vector registers - vectors of columns - spare) / vectors of columns; spare are {}, of {} or more {}",
           kSpareOfFew, kManyRegisters, kSpareOfMany)},
      {"row_tiles", "row tiles in a block of rows; 0: threads share panels",
       fmt::format("rows * row bytes = {}/8 L2 (BLIS's mc)", kBlockEighthsOfL2)},
      {"columns_first", "all products of a batch use a panel before the next one",
       "a product has fewer rows than the tile columns, and the panels fill more than half of L2"},
      {"reduction_parts", "parts of the reduction, one after the other",
       fmt::format("a part of a panel = {}/4 L2 (BLIS's kc)", kPanelQuartersOfL2)},
      {"step", "iterations of the reduction unrolled",
       fmt::format("{}; with more accumulators {}, of a depth of {} or more {}; {} where an instruction's products are "
                   "added by another",
                   kMostStep, kMostWideStep, kLongSum, kMostStep, kMostStepOfProducts)},
      {"epilogue", "the blocks that follow are \"unrolled\" in the tile, or a \"loop\" over its rows",
       "\"loop\" where the blocks call functions such as exp"},
      {"rows_ahead", "rows of a panel from a prefetch to its use, where the panel is read once; 0: none",
       fmt::format("{}; none for a tile of fewer rows than {}; {} where it is unpacked in registers", kRowsAhead,
                   kFewestFetchedRows, kUnpackedRowsAhead)},
      {"unpack", "where the numbers of few bits of a right operand become floats, in \"registers\" or a \"panel\"",
       "\"registers\" where a tile with a vector of each number of a word has all rows"}};
}

}  // namespace relaxc
