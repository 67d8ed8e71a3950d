#include "tir/rules/tile_product.h"

#include <algorithm>
#include <utility>

#include "ir/op_names.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/conditions.h"
#include "tir/rules/cost_model.h"

namespace relaxc {

namespace {

bool is_symbolic(const Expr& extent) { return !as_int(extent); }

// Takes the axes around a symbolic one out of the rows: the places of elements would be quotients by symbolic numbers.
// Takes the symbolic one itself where its extent is a quotient or the like, about which less can be proven.
void set_batch_apart(TileProduct& product) {
  const MergedAxes all = std::exchange(product.rows, {});
  const auto last = std::ranges::find_if(all.extents.rbegin(), all.extents.rend(), is_symbolic);
  auto first_of_rows = static_cast<size_t>(all.extents.rend() - last);  // 0 or one behind it
  const bool is_inner = first_of_rows == all.axes.size();
  if (first_of_rows > 0 && (is_inner || (*last).is<Var>())) --first_of_rows;
  for (size_t i = 0; i < all.axes.size(); ++i) {
    const bool is_around = i < first_of_rows && !is_int(all.extents[i], 1);
    if (is_around) product.batch.push_back(all.axes[i]);
    if (!is_around) product.rows.add(all.axes[i], all.extents[i]);
  }
}

// Sorts the axes of a product; returns why it is none.
std::optional<std::string> sort_axes(TileProduct& product) {
  const std::vector<IterVar>& axes = product.block->iter_vars;
  for (size_t a = 0; a < axes.size(); ++a) {
    const IterVar& axis = axes[a];
    const bool in_left = uses_var(product.left->indices, axis.var),
               in_right = uses_var(product.right->indices, axis.var);
    const bool is_reduced = axis.kind == IterKind::kReduce;
    if (is_reduced ? !in_left || !in_right : in_left && in_right && !is_int(axis.domain.extent, 1))
      return fmt::format("axis '{}' is none of rows, columns and depth", axis.var->name);
    (is_reduced ? product.depth : in_right ? product.columns : product.rows).add(a, axis.domain.extent);
  }
  set_batch_apart(product);
  for (const MergedAxes* known : {&product.columns, &product.depth}) {
    if (known->axes.empty() || !as_int(known->extent())) return "its columns or its depth are symbolic";
  }
  return std::nullopt;
}

// Returns whether the image is stored before windows of it are copied or read; then puts the axes of the depth into the
// order in which it is.
bool find_stored_image(TileProduct& product) {
  const std::vector<Expr>& indices = product.left->indices;
  const bool is_image = std::ranges::all_of(product.prologue, [&](const Ref<Block>& block) {
    return block->iter_vars.size() == kRankOfBlocks || !same_node(block->writes[0].buffer, product.left->buffer);
  });
  if (indices.size() != kRankOfBlocks || !is_image) return false;
  const std::vector<IterVar>& axes = product.block->iter_vars;
  MergedAxes window, channels;
  for (size_t i = 0; i < product.depth.axes.size(); ++i) {
    const size_t axis = product.depth.axes[i];
    const bool is_of_window = uses_var(indices[2], axes[axis].var) || uses_var(indices[3], axes[axis].var);
    (is_of_window ? window : channels).add(axis, product.depth.extents[i]);
  }
  if (is_int(window.extent(), 1)) return false;
  for (size_t i = 0; i < channels.axes.size(); ++i) window.add(channels.axes[i], channels.extents[i]);
  product.depth = window;
  return true;
}

// Returns what is known of a dim of the image, if windows move along it with one axis of the results.
std::optional<Windows::Dim> find_dim(const TileProduct& product, size_t dim) {
  const std::vector<IterVar>& axes = product.block->iter_vars;
  const Expr& index = product.left->indices[dim];
  RunningVars window;
  for (size_t axis : product.depth.axes) window.emplace(axes[axis].var.get(), axes[axis].domain);
  std::optional<Windows::Dim> found;
  for (size_t a : product.rows.axes) {
    const IterVar& axis = axes[a];
    if (!uses_var(index, VarSet{axis.var.get()})) continue;
    const auto bounds = bounds_over(substitute(index, {{axis.var.get(), int_imm(0, dtype_of(axis.var))}}), window, {});
    const auto results = as_int(axis.domain.extent), stride = coefficient(index, axis.var, {}),
               last = bounds ? as_int(bounds->max) : std::nullopt,
               pixels = as_int(buffer_type(product.left->buffer).shape[dim]);
    if (found || !results || !stride || *stride < 1 || !is_int(bounds->min, 0) || !last || !pixels) return std::nullopt;
    found = Windows::Dim{a, *results, *stride, *last, *pixels};
  }
  return found;
}

// Returns how many elements of the depth are side by side in the stored image: the channels of a pixel, and of a row of
// the window where its pixels are neighbours.
int64_t depth_in_stored_image(const TileProduct& product) {
  const std::vector<IterVar>& axes = product.block->iter_vars;
  const std::vector<Expr>& indices = product.left->indices;
  int64_t channels = 1, columns = 1;
  for (size_t a : product.depth.axes) {
    const int64_t extent = *as_int(axes[a].domain.extent);
    if (coefficient(indices[3], axes[a].var, {}) == 1) columns *= extent;
    if (uses_var(std::vector{indices[1], indices[4]}, axes[a].var)) channels *= extent;
  }
  const std::vector<Expr>& shape = buffer_type(product.left->buffer).shape;
  if (!is_int(simplify(shape[1] * shape[4]), channels)) return 0;  // some of the channels
  return channels % product.form->depth == 0 ? channels : channels * columns;
}

// Finds the windows of the stored image, if they can be read in place and few results beyond its width are computed;
// then each row of results has so many more.
void find_windows(TileProduct& product) {
  const auto height = find_dim(product, 2), width = find_dim(product, 3);
  if (!height || !width) return;
  const Windows windows{*height, *width};
  const bool is_wasteful = windows.results() * 2 > width->results * 3;
  const bool has_pieces = depth_in_stored_image(product) % product.form->depth == 0;
  if (is_wasteful || !has_pieces || product.num_columns() % kTileRows != 0) return;
  product.windows = windows;
  const MergedAxes all = std::exchange(product.rows, {});
  for (size_t i = 0; i < all.axes.size(); ++i) {
    const size_t axis = all.axes[i];
    if (axis == width->axis) {
      product.rows.add(axis, int_imm(windows.results()));
    } else if (axis == height->axis || is_int(all.extents[i], 1)) {
      product.rows.add(axis, all.extents[i]);
    } else {
      product.batch.push_back(axis);
    }
  }
}

}  // namespace

bool is_made(const TileProduct& product, const Buffer& buffer) {
  return std::ranges::any_of(product.prologue,
                             [&](const Ref<Block>& block) { return same_node(block->writes[0].buffer, buffer); });
}

std::vector<int64_t> parts_of(const MergedAxes& merged, const std::vector<IterVar>& axes, const BufferLoad& left) {
  std::vector<int64_t> parts;
  for (size_t i = merged.axes.size(); i-- > 0;) {
    const int64_t extent = *as_int(merged.extents[i]);
    const bool joins = parts.size() == 1 && is_one_axis(left, axes[merged.axes[i]], axes[merged.axes[i + 1]], {});
    if (joins || (!parts.empty() && extent == 1)) {
      parts.front() *= extent;
    } else {
      parts.insert(parts.begin(), extent);
    }
  }
  return parts;
}

bool has_even_rows(const TileProduct& product) {
  const std::vector<IterVar>& axes = product.block->iter_vars;
  const auto rows = product.num_rows();
  if (is_made(product, product.left->buffer) || !product.batch.empty() || !rows || *rows % kTileRows != 0) return false;
  const auto inner = std::ranges::find_if(product.depth.axes.rbegin(), product.depth.axes.rend(),
                                          [&](size_t axis) { return !is_int(axes[axis].domain.extent, 1); });
  const auto stride = access_stride(product.left->buffer, product.left->indices, axes[*inner].var, {});
  return stride && is_int(*stride, 1) && parts_of(product.rows, axes, *product.left).size() == 1 &&
         parts_of(product.depth, axes, *product.left).back() % product.form->depth == 0;
}

std::variant<TileProduct, std::string> find_tile_product(const PrimFuncRef& program, const Target& target, Decisions&) {
  if (!target.has_int8_tiles && !target.has_bfloat16_tiles) return "the target has no matrix registers";
  const std::string conv2d = ops::short_name(ops::kConv2d);
  for (const std::string& op : {std::string(kMatmul), conv2d}) {
    std::optional<Stage> stage = find_stage(program, op);
    if (!stage) continue;
    std::vector<Ref<BufferLoad>> operands = operands_of(*stage->block);
    const BufferStore* store = stage->block->body.as<BufferStore>();
    if (operands.size() != 2 || !store) return "it is not a product of two operands";
    const TileForm* form =
        find_tile_form(dtype_of(Expr(operands[0])), dtype_of(Expr(operands[1])), dtype_of(store->value), target);
    if (!form) return "no tiles have its dtypes";
    const std::string& constant = stage->block->annotations.get_string(annotation<"constant_operand">(), "");
    if (constant != operands[1]->buffer->name) return "its right operand is not constant";
    TileProduct product{*stage, op, form, operands[0], operands[1], {}, {}, {}};
    if (auto why = sort_axes(product)) return *why;
    if (product.num_rows().value_or(cost_model::kFewestTileRows) < cost_model::kFewestTileRows ||
        product.num_columns() < kTileRows || product.depth_of_sum() < form->depth)
      return "tiles would be mostly padding";
    product.stores_image = op == conv2d && find_stored_image(product);
    if (product.stores_image) find_windows(product);
    return product;
  }
  return fmt::format("it is not a list of plain nests with a block of '{}' or '{}'", kMatmul, conv2d);
}

}  // namespace relaxc
