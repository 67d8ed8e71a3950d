#include "passes/winograd.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/layouts.h"
#include "ops/window.h"
#include "passes/compose.h"
#include "passes/winograd_transforms.h"
#include "tir/compute.h"
#include "tir/dot_forms.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/lanes.h"
#include "tir/rules/winograd.h"
#include "vm/file_memory.h"

namespace relaxc {

namespace {

using winograd::MinimalFiltering;
using Exprs = std::vector<Expr>;

constexpr DType kBytes = DType::int_(8), kWords = DType::int_(16);  // words: transformed bytes
// Of F(2 x 2, 3x3). Sums of more channels, 4 times as large, might leave int32.
constexpr int64_t kPointsOfIntegers = 16, kMostChannelsOfIntegers = 1024;
// Of more transformed weights, writing and reading them takes as long as the products that they save.
constexpr int64_t kMostBytesOfIntegers = int64_t{2} << 20;

// Returns values[which]; once `which` is known, only that one is computed.
Expr choose(const Expr& which, const std::vector<Expr>& values) {
  Expr result = values.back();
  for (size_t i = values.size() - 1; i-- > 0;) {
    result = if_then_else(equal(which, int_imm(static_cast<int64_t>(i), dtype_of(which))), values[i], result);
  }
  return result;
}

// Returns G g G^T for each 3x3 window g of a weight [F, C, 3, 3], as [m + 2, m + 2, F / columns, C, columns]. In
// double: the transform then adds one rounding. (Operators that fold_constants runs would take five times as long.)
Tensor transform_weight(const Tensor& weight, const MinimalFiltering& filtering, int64_t columns) {
  const int64_t filters = weight.shape()[0], channels = weight.shape()[1], windows = filters * channels;
  const int64_t patch = filtering.patch();
  const std::vector<std::array<double, 3>> matrix = filtering.of_window();
  Tensor result = vm::tensor_in_file({patch, patch, filters / columns, channels, columns}, kFloat32);
  const float* from = weight.data<float>();
  float* to = result.data<float>();
  for (int64_t at = 0; at < windows; ++at) {
    int64_t filter = at / columns / channels * columns + at % columns, channel = at / columns % channels;
    const float* g = from + (filter * channels + channel) * 9;
    float* point = to + at;
    for (const std::array<double, 3>& along_y : matrix) {
      double row[3];
      for (int64_t x = 0; x < 3; ++x) row[x] = along_y[0] * g[x] + along_y[1] * g[3 + x] + along_y[2] * g[6 + x];
      for (const std::array<double, 3>& along_x : matrix) {
        *point = static_cast<float>(along_x[0] * row[0] + along_x[1] * row[1] + along_x[2] * row[2]);
        point += windows;
      }
    }
  }
  vm::release_pages(weight);
  vm::release_pages(result);
  return result;
}

// Emits the same for a weight that only run time knows: as one product, of a matrix [(m + 2)^2, 9] with all windows.
Expr transform_weight(const Expr& weight, const MinimalFiltering& filtering, int64_t columns, Builder& b) {
  constexpr int64_t kWindow = 9;
  const std::vector<int64_t> dims = *constant_shape(weight.type());
  const int64_t filters = dims[0], channels = dims[1], patch = filtering.patch();
  const std::vector<std::array<double, 3>> matrix = filtering.of_window();
  Tensor both = Tensor::empty({patch * patch, kWindow}, kFloat32);
  float* element = both.data<float>();
  for (const std::array<double, 3>& along_y : matrix) {
    for (const std::array<double, 3>& along_x : matrix) {
      for (double y : along_y) {
        for (double x : along_x) *element++ = static_cast<float>(y * x);
      }
    }
  }
  Expr windows = reshape(weight, int_imms({filters / columns, columns, channels, kWindow}), b);
  windows = reshape(permute_dims(windows, {3, 0, 2, 1}, b), int_imms({kWindow, filters * channels}), b);
  Expr product = b.op(ops::short_name(ops::kMatmul), {constant(both), windows}, {}, "transformed");
  return reshape(product, int_imms({patch, patch, filters / columns, channels, columns}), b);
}

// Emits the windows of a weight [F, C, 3, 3] as [F / columns, C / group, 3, 3, columns, group].
Expr windows_in_panels(const Expr& weight, int64_t columns, int64_t group, Builder& b) {
  const std::vector<int64_t> dims = *constant_shape(weight.type());
  const Expr parts = reshape(weight, int_imms({dims[0] / columns, columns, dims[1] / group, group, 3, 3}), b);
  return permute_dims(parts, {0, 2, 4, 5, 1, 3}, b);
}

Exprs joined(const std::vector<Exprs>& parts) {
  Exprs result;
  for (const Exprs& part : parts) result.insert(result.end(), part.begin(), part.end());
  return result;
}
Exprs with_first(const Expr& first, Exprs axes) {
  axes.front() = first;
  return axes;
}
Exprs with_last(Exprs axes, const Expr& last) {
  axes.back() = last;
  return axes;
}

// In stages, each a block:
//   pixels    of the padded image, p = m + 2 rows for each row of patches: [p, rows, x, C]
//   columns   patches transformed along y, those side by side share a column: [p, rows, x, C]
//   patches   and along x: [p, p, patch, C]
//   products  with the weights [p, p, F / columns, C, columns], over channels: [p, p, patch, F]
//   rows      transformed back along y: [m, p, patch, F]
//   result    and along x.
// Rows of patches are counted through all images of the batch, and patches through all rows: a register tile may hold
// the end of a row and the start of the next one. Images of an unknown size have an axis each for images, rows and the
// patches of a row instead, so that these can be cut into tiles of a known size.
//
// Of bytes, patches are int16: four of them, added or subtracted. Weights are, too, 4 times as large, so that they are
// integers, and so are the results, which are divided by 4 at the end. The kernel transforms them in each run, which
// takes little time beside the products, for a file of the same size. An instruction sums products of `group` channels:
//   weights   from bytes [F / columns, C / group, 3, 3, columns, group]: [p, p, F / columns, C / group, columns, group]
struct Winograd {
  MinimalFiltering filtering;
  Exprs data, out;    // [N, C / lanes, H, W, lanes]
  int64_t top, left;  // padding
  int64_t channels, filters, columns;
  DType of_data = kFloat32, of_patches = kFloat32, of_sums = kFloat32;
  int64_t group = 1;

  int64_t tile = filtering.tile(), points = filtering.patch();  // along a side
  bool is_known = as_int(out[2]) && as_int(out[3]);
  Expr rows_of_image = ceil_div(out[2], tile), across = ceil_div(out[3], tile);
  Exprs rows = is_known ? Exprs{out[0] * rows_of_image} : Exprs{out[0], rows_of_image};
  Expr p = int_imm(points), c = int_imm(channels), f = int_imm(filters);

  Exprs each_point(const std::function<Expr(int64_t)>& value) const {
    Exprs result;
    for (int64_t i = 0; i < points; ++i) result.push_back(value(i));
    return result;
  }
  Exprs with_patch(const Expr& first, const Expr& second, const Expr& last) const {
    Exprs patch = is_known ? Exprs{rows[0] * across} : Exprs{rows[0], rows[1], across};
    return joined({{first, second}, patch, {last}});
  }

  Buffer patches_of(const Buffer& x, ComputeBuilder& b) const {
    int64_t lanes = *as_int(data[4]);
    Exprs dims = joined({{p}, rows, {across * tile + (points - tile), c}});
    Buffer pixels = b.compute(winograd::kPixels, of_patches, dims, [&](Axes i) {
      Expr image = is_known ? floor_div(i[1], rows_of_image) : i[1];
      Expr row = is_known ? floor_mod(i[1], rows_of_image) : i[2];
      Expr channel = i.back(), py = row * tile + i[0] - top, px = i[i.size() - 2] - left;
      Expr inside = py >= int_imm(0) && py < data[2] && px >= int_imm(0) && px < data[3];
      Expr pixel = load(x, {image, floor_div(channel, lanes), py, px, floor_mod(channel, lanes)});
      return if_then_else(inside, cast_to(pixel, of_patches), zero(of_patches));
    });
    Buffer transformed = b.compute(winograd::kColumns, of_patches, dims, [&](Axes i) {
      auto pixel = [&](int64_t y) { return load(pixels, with_first(int_imm(y), i)); };
      return choose(i[0], filtering.of_patch(each_point(pixel)));
    });
    return b.compute(winograd::kPatches, of_patches, with_patch(p, p, c), [&](Axes i) {
      Exprs row = is_known ? Exprs{floor_div(i[2], across)} : Exprs{i[2], i[3]};
      Expr first = is_known ? floor_mod(i[2], across) : i[4];
      auto column = [&](int64_t s) { return load(transformed, joined({{i[0]}, row, {first * tile + s, i.back()}})); };
      return choose(i[1], filtering.of_patch(each_point(column)));
    });
  }

  Buffer weights_of_bytes(ComputeBuilder& b) const {
    constexpr int64_t kSide = 3;
    const Exprs panels = int_imms({filters / columns, channels / group, kSide, kSide, columns, group});
    const Buffer w = b.input("weight", kBytes, panels);
    const std::vector<std::array<double, kSide>> matrix = filtering.of_window();
    // Returns the points of a row or column of a window, times 2.
    auto transformed = [&](const Exprs& window) {
      return map_each(matrix, [&](const std::array<double, kSide>& factors) {
        std::optional<Expr> sum;
        for (size_t k = 0; k < window.size(); ++k) {
          if (factors[k] == 0) continue;
          const Expr term = window[k] * int_imm(static_cast<int64_t>(2 * factors[k]), of_patches);
          sum = sum ? *sum + term : term;
        }
        return *sum;
      });
    };
    const Exprs dims = {p, p, panels[0], panels[1], panels[4], panels[5]};
    return b.compute(winograd::kWeights, of_patches, dims, [&](Axes i) {
      Exprs rows;
      for (int64_t x = 0; x < kSide; ++x) {
        Exprs column;
        for (int64_t y = 0; y < kSide; ++y)
          column.push_back(cast_to(load(w, {i[2], i[3], int_imm(y), int_imm(x), i[4], i[5]}), of_patches));
        rows.push_back(choose(i[0], transformed(column)));
      }
      return choose(i[1], transformed(rows));
    });
  }

  PrimFuncRef program() const {
    ComputeBuilder b;
    Buffer x = b.input("data", of_data, data);
    Exprs sums = {int_imm(channels / group)};
    if (group > 1) sums.push_back(int_imm(group));
    Buffer u = group > 1
                   ? weights_of_bytes(b)
                   : b.input("weight", kFloat32, int_imms({points, points, filters / columns, channels, columns}));
    Buffer patches = patches_of(x, b);
    Buffer products =
        b.reduce("winograd", of_sums, with_patch(p, p, f), sums, zero(of_sums), combine_sum, [&](Axes i, Axes r) {
          Expr filter = i.back();
          Exprs at = {i[0], i[1], floor_div(filter, columns), r[0], floor_mod(filter, columns)};
          if (group > 1) at.push_back(r[1]);
          Expr pixel = load(patches, with_last(i, group > 1 ? r[0] * group + r[1] : r[0]));
          return cast_to(pixel, of_sums) * cast_to(load(u, at), of_sums);
        });
    Buffer back = b.compute(winograd::kRows, of_sums, with_patch(int_imm(tile), p, f), [&](Axes i) {
      auto product = [&](int64_t r) { return load(products, with_first(int_imm(r), i)); };
      return choose(i[0], filtering.of_products(each_point(product)));
    });
    Buffer result = b.compute(winograd::kResult, of_sums, out, [&](Axes i) {
      Expr row = floor_div(i[2], tile), at = floor_div(i[3], tile), filter = i[1] * *as_int(data[4]) + i[4];
      Exprs patch = is_known ? Exprs{(i[0] * rows_of_image + row) * across + at} : Exprs{i[0], row, at};
      auto part = [&](int64_t s) { return load(back, joined({{floor_mod(i[2], tile), int_imm(s)}, patch, {filter}})); };
      Expr sum = choose(floor_mod(i[3], tile), filtering.of_products(each_point(part)));
      return of_sums == kInt32 ? binary(BinaryOp::kShiftRight, sum, int_imm(2, kInt32)) : sum;
    });
    return with_op_name(b.finish({result}), winograd::kOp);
  }
};

// ---- Estimates of time, in cycles of a core. Fitted to 50 convolutions of 16 to 512 channels and 3 to 224 pixels.

// The sizes that the estimates are about.
struct Images {
  double number, height, width;
};
Images images_of(const std::vector<Expr>& out) {
  return {static_cast<double>(as_int(out[0]).value_or(1)), guessed_extent(out[2]), guessed_extent(out[3])};
}

// Returns the cycles of `patches` products with a weight of so many elements. While one panel of it is used the next
// one is fetched, so that the longer of both counts.
double product_cycles(double patches, double elements, const Target& target) {
  const double bytes = elements * kFloat32.bytes(), l2 = static_cast<double>(target.l2_of_core());
  double bytes_per_cycle = target.memory_bytes_per_cycle * cost_model::kOneReaderOfMemory;
  if (bytes <= l2 * cost_model::kSmallWeightsInL2) bytes_per_cycle = target.l2_bytes_per_cycle / cost_model::kL2OverL3;
  if (2 * bytes <= l2) bytes_per_cycle = target.l2_bytes_per_cycle;
  // Sums of fewer patches than this wait for each other.
  const double fewest = static_cast<double>(target.fma_latency * target.fma_ports) / cost_model::kSideBySide;
  return std::max(std::max(patches, fewest) * elements / static_cast<double>(target.products_per_cycle()),
                  bytes / bytes_per_cycle);
}

// Direct convolutions leave out the products with padding, here one pixel.
double direct_cycles(const WindowSums& sums, const Target& target) {
  const auto [number, height, width] = images_of(sums.out);
  const auto pairs = static_cast<double>(sums.channels * sums.filters);
  const double used = std::max(0.0, 3 * height - 2) * std::max(0.0, 3 * width - 2) / 9;
  return product_cycles(number * used, 9 * pairs, target) + (sums.has_constant_weight ? 0 : 9 * pairs);
}

// Transforms take time in the sum of channels and filters, products in their product (section 4 of the paper).
// `of_transforms`: their operations in the time of one product.
double winograd_cycles(const WindowSums& sums, const MinimalFiltering& filtering, const Target& target,
                       double of_transforms = 1) {
  const auto [number, height, width] = images_of(sums.out);
  const auto tile = static_cast<double>(filtering.tile()), side = static_cast<double>(filtering.patch());
  const double patches = number * std::ceil(height / tile) * std::ceil(width / tile), points = side * side;
  const double weights = points * static_cast<double>(sums.channels * sums.filters);
  const double transformed = patches * points * static_cast<double>(sums.channels + sums.filters);
  // Of both sides, a point takes about half as many operations as a patch has pixels along a side.
  return product_cycles(patches, weights, target) +
         of_transforms * transformed * (side - 1) / static_cast<double>(target.products_per_cycle()) +
         (sums.has_constant_weight ? 0 : weights);
}

}  // namespace

WinogradChoice choose_winograd(const WindowSums& sums, double most_error, const Target& target) {
  using namespace cost_model;
  std::optional<WinogradChoice> best;
  const double direct = direct_cycles(sums, target);
  double fewest = std::numeric_limits<double>::infinity();
  for (int64_t tile : MinimalFiltering::tiles()) {
    const MinimalFiltering filtering(tile);
    if (filtering.error(sums.channels) > most_error) continue;
    const double cycles = winograd_cycles(sums, filtering, target);
    const int64_t bytes = filtering.patch() * filtering.patch() * sums.channels * sums.filters * kFloat32.bytes();
    const bool may_be_used =
        std::min(sums.channels, sums.filters) >= kFewestWinogradChannels && bytes <= kMostWinogradBytes;
    if (cycles < fewest) best = {.gains = may_be_used && cycles < direct, .tile = tile};
    fewest = std::min(cycles, fewest);
  }
  if (!best && most_error < kWinogradError)
    return {.gains = false, .tile = choose_winograd(sums, kWinogradError, target).tile};
  return best.value_or(WinogradChoice{.gains = false, .tile = MinimalFiltering::tiles().front()});
}

namespace {

// Returns whether all sums of a 3x3 convolution of bytes are integers of 16 and 32 bits in Winograd's algorithm, too,
// and the target has an instruction for these, but none that sums products of bytes exactly.
bool is_for_integers(const Call& conv, const Type& result, const Target& target) {
  const Constant* weight = conv.args[1].as<Constant>();
  const DType data = tensor_dtype(conv.args[0].type()).value_or(kFloat32);
  if (!weight || weight->data.dtype() != kBytes || !data.is_integral() || data.bits != 8) return false;
  if (tensor_dtype(result) != kInt32 || weight->data.shape()[1] > kMostChannelsOfIntegers) return false;
  const DotForm* direct = find_dot_form(data, weight->data.dtype(), kInt32, target);
  return (!direct || direct->clamps()) && find_dot_form(kWords, kWords, kInt32, target);
}

bool is_dense_window(const Call& conv, const Target& target) {
  const auto attrs = read_attrs<ConvAttrs<2>>(conv.attrs);
  const PerDim ones = {1, 1};
  const std::optional<std::vector<int64_t>> weight = constant_shape(conv.args[1].type());
  const int64_t lanes = target.vector_lanes(32);
  return attrs.strides == ones && attrs.dilation == ones && attrs.groups == 1 && weight && weight->at(2) == 3 &&
         weight->at(3) == 3 && weight->at(0) % lanes == 0 && weight->at(1) % lanes == 0;
}

}  // namespace

bool gains_by_integers(const Call& conv, const Type& result, double most_error, const Target& target) {
  const std::vector<Expr>* out = known_shape(result);
  if (!out || most_error <= 0 || !is_for_integers(conv, result, target) || !is_dense_window(conv, target)) return false;
  const std::vector<int64_t> filters = *constant_shape(conv.args[1].type());
  const WindowSums sums{.channels = filters[1], .filters = filters[0], .has_constant_weight = true, .out = *out};
  const int64_t bytes = kPointsOfIntegers * sums.channels * sums.filters * kWords.bytes();
  return std::min(sums.channels, sums.filters) >= cost_model::kFewestWinogradChannels &&
         bytes <= kMostBytesOfIntegers &&
         winograd_cycles(sums, MinimalFiltering(kTileOfIntegers), target, 2) < direct_cycles(sums, target);
}

bool can_be_winograd(const Call& conv, const Binding& binding, const Target& target) {
  const auto attrs = read_attrs<ConvAttrs<2>>(conv.attrs);
  std::string layout = fmt::format("NCHW{}c", target.vector_lanes(32));
  bool blocked = attrs.data_layout == layout && attrs.out_layout.value_or(layout) == layout &&
                 attrs.kernel_layout == ConvAttrs<2>().kernel_layout;
  bool is_known = known_shape(conv.args[0].type()) && known_shape(binding.value.type()) && !binding.cast;
  if (!blocked || attrs.padding.size() != 4 || !is_known || !is_dense_window(conv, target)) return false;
  return (tensor_dtype(conv.args[1].type()) == kFloat32 && tensor_dtype(binding.value.type()) == kFloat32) ||
         is_for_integers(conv, binding.value.type(), target);
}

Expr winograd_conv2d(const Call& conv, const Binding& binding, int64_t tile, IRModule& module, const Target& target,
                     Builder& b) {
  const MinimalFiltering filtering(tile);
  const PerDim padding = read_attrs<ConvAttrs<2>>(conv.attrs).padding;
  const Constant* weight = conv.args[1].as<Constant>();
  const std::vector<int64_t> shape = *constant_shape(conv.args[1].type());
  int64_t columns = choose_column_tile(shape[0], target.vector_lanes(32)).columns();
  const std::vector<Expr>&data = *known_shape(conv.args[0].type()), &out = *known_shape(binding.value.type());
  Winograd winograd{filtering, data, out, padding[0], padding[1], shape[1], shape[0], columns};
  if (tensor_dtype(conv.args[1].type()) == kBytes) {
    winograd.of_data = *tensor_dtype(conv.args[0].type());
    winograd.of_patches = kWords, winograd.of_sums = kInt32;
    winograd.group = find_dot_form(kWords, kWords, kInt32, target)->group;
  }
  Expr transformed = winograd.group > 1 ? windows_in_panels(conv.args[1], columns, winograd.group, b)
                     : weight           ? constant(transform_weight(weight->data, filtering, columns))
                                        : transform_weight(conv.args[1], filtering, columns, b);
  return make_call_tir(module, "conv2d_winograd", winograd.program(), {conv.args[0], transformed},
                       {binding.value.type()}, binding.var.span());
}

}  // namespace relaxc
