#include "passes/winograd.h"

#include <algorithm>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/window.h"
#include "passes/compose.h"
#include "tir/compute.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/lanes.h"
#include "tir/rules/winograd.h"
#include "vm/file_memory.h"

namespace relaxc {

namespace {

using winograd::kTile, winograd::kPatch;

// Returns values[which]; once `which` is known, only that one is computed.
Expr choose(const Expr& which, const std::vector<Expr>& values) {
  Expr result = values.back();
  for (size_t i = values.size() - 1; i-- > 0;) {
    result = if_then_else(equal(which, int_imm(static_cast<int64_t>(i), dtype_of(which))), values[i], result);
  }
  return result;
}

Expr times(double factor, const Expr& x) { return x * float_imm(factor); }

// The transforms along one side, B^T, A^T and G of the paper, for the points 0, a, -a, b, -b and infinity. With a = 1/2
// and b = 2 squared their products are balanced: a quarter of the error of the usual 0, 1, -1, 2, -2. Products of the
// points a and -a are taken as halves, those of b and -b twice: powers of two that save factors in A^T.
constexpr double kA = 0.70710678118654752, kB = 2 * kA;

std::vector<Expr> patch_transform(const std::vector<Expr>& d) {
  Expr even_a = d[4] - times(2, d[2]), odd_a = times(kA, d[3] - times(2, d[1]));
  Expr even_b = d[4] - times(0.5, d[2]), odd_b = times(kB, d[3] - times(0.5, d[1]));
  return {(d[0] + d[4]) - times(2.5, d[2]), even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b,
          (d[1] + d[5]) - times(2.5, d[3])};
}
std::vector<Expr> result_transform(const std::vector<Expr>& m) {
  Expr sum_a = m[1] + m[2], odd_a = m[1] - m[2], sum_b = m[3] + m[4], odd_b = m[3] - m[4];
  return {m[0] + times(2, sum_a) + times(0.5, sum_b), times(kB, odd_a + times(0.5, odd_b)), sum_a + sum_b,
          m[5] + times(kB, odd_b + times(0.5, odd_a))};
}
constexpr double kG[6][3] = {{1, 0, 0},
                             {-1.0 / 3, -kA / 3, -1.0 / 6},
                             {-1.0 / 3, kA / 3, -1.0 / 6},
                             {1.0 / 3, kB / 3, 2.0 / 3},
                             {1.0 / 3, -kB / 3, 2.0 / 3},
                             {0, 0, 1}};

// Returns G g G^T for each 3x3 window g of a weight [F, C, 3, 3], as [6, 6, F / columns, C, columns]. In double: the
// transform then adds one rounding. (Operators that fold_constants runs would take five times as long.)
Tensor transform_weight(const Tensor& weight, int64_t columns) {
  int64_t filters = weight.shape()[0], channels = weight.shape()[1], windows = filters * channels;
  Tensor result = vm::tensor_in_file({kPatch, kPatch, filters / columns, channels, columns}, kFloat32);
  const float* from = weight.data<float>();
  float* to = result.data<float>();
  for (int64_t at = 0; at < windows; ++at) {
    int64_t filter = at / columns / channels * columns + at % columns, channel = at / columns % channels;
    const float* g = from + (filter * channels + channel) * 9;
    for (int64_t r = 0; r < kPatch; ++r) {
      double row[3];
      for (int64_t x = 0; x < 3; ++x) row[x] = kG[r][0] * g[x] + kG[r][1] * g[3 + x] + kG[r][2] * g[6 + x];
      for (int64_t s = 0; s < kPatch; ++s) {
        double u = kG[s][0] * row[0] + kG[s][1] * row[1] + kG[s][2] * row[2];
        to[(r * kPatch + s) * windows + at] = static_cast<float>(u);
      }
    }
  }
  vm::release_pages(weight);
  vm::release_pages(result);
  return result;
}

// Emits the same for a weight that only run time knows: as one product, of a matrix [36, 9] with all windows.
Expr transform_weight(const Expr& weight, int64_t filters, int64_t channels, int64_t columns, Builder& b) {
  constexpr int64_t kWindow = 3;
  Tensor both = Tensor::empty({kPatch * kPatch, kWindow * kWindow}, kFloat32);
  for (int64_t i = 0; i < both.size(); ++i) {
    int64_t patch = i / (kWindow * kWindow), window = i % (kWindow * kWindow);
    both.data<float>()[i] =
        static_cast<float>(kG[patch / kPatch][window / kWindow] * kG[patch % kPatch][window % kWindow]);
  }
  Expr windows = reshape(weight, int_imms({filters / columns, columns, channels, kWindow * kWindow}), b);
  windows = reshape(permute_dims(windows, {3, 0, 2, 1}, b), int_imms({kWindow * kWindow, filters * channels}), b);
  Expr product = b.op(ops::short_name(ops::kMatmul), {constant(both), windows}, {}, "transformed");
  return reshape(product, int_imms({kPatch, kPatch, filters / columns, channels, columns}), b);
}

using Exprs = std::vector<Expr>;

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
//   pixels    of the padded image, six rows for each row of patches: [6, rows, x, C]
//   columns   patches transformed along y, those side by side share a column: [6, rows, x, C]
//   patches   and along x: [6, 6, patch, C]
//   products  with the weights [6, 6, F / columns, C, columns], over channels: [6, 6, patch, F]
//   rows, result: transformed back along y and x.
// Rows of patches are counted through all images of the batch, and patches through all rows: a register tile may hold
// the end of a row and the start of the next one. Images of an unknown size have an axis each for images, rows and the
// patches of a row instead, so that these can be cut into tiles of a known size.
struct Winograd {
  Exprs data, out;    // [N, C / lanes, H, W, lanes]
  int64_t top, left;  // padding
  int64_t channels, filters, columns;

  bool is_known = as_int(out[2]) && as_int(out[3]);
  Expr rows_of_image = ceil_div(out[2], kTile), across = ceil_div(out[3], kTile);
  Exprs rows = is_known ? Exprs{out[0] * rows_of_image} : Exprs{out[0], rows_of_image};
  Expr six = int_imm(kPatch), c = int_imm(channels), f = int_imm(filters);

  static Exprs six_of(const std::function<Expr(int64_t)>& value) {
    Exprs result;
    for (int64_t i = 0; i < kPatch; ++i) result.push_back(value(i));
    return result;
  }
  Exprs with_patch(const Expr& first, const Expr& second, const Expr& last) const {
    Exprs patch = is_known ? Exprs{rows[0] * across} : Exprs{rows[0], rows[1], across};
    return joined({{first, second}, patch, {last}});
  }

  Buffer patches_of(const Buffer& x, ComputeBuilder& b) const {
    int64_t lanes = *as_int(data[4]);
    Exprs dims = joined({{six}, rows, {across * kTile + (kPatch - kTile), c}});
    Buffer pixels = b.compute(winograd::kPixels, kFloat32, dims, [&](Axes i) {
      Expr image = is_known ? floor_div(i[1], rows_of_image) : i[1];
      Expr row = is_known ? floor_mod(i[1], rows_of_image) : i[2];
      Expr channel = i.back(), py = row * kTile + i[0] - top, px = i[i.size() - 2] - left;
      Expr inside = py >= int_imm(0) && py < data[2] && px >= int_imm(0) && px < data[3];
      Expr pixel = load(x, {image, floor_div(channel, lanes), py, px, floor_mod(channel, lanes)});
      return if_then_else(inside, pixel, zero(kFloat32));
    });
    Buffer transformed = b.compute(winograd::kColumns, kFloat32, dims, [&](Axes i) {
      auto pixel = [&](int64_t y) { return load(pixels, with_first(int_imm(y), i)); };
      return choose(i[0], patch_transform(six_of(pixel)));
    });
    return b.compute(winograd::kPatches, kFloat32, with_patch(six, six, c), [&](Axes i) {
      Exprs row = is_known ? Exprs{floor_div(i[2], across)} : Exprs{i[2], i[3]};
      Expr first = is_known ? floor_mod(i[2], across) : i[4];
      auto column = [&](int64_t s) { return load(transformed, joined({{i[0]}, row, {first * kTile + s, i.back()}})); };
      return choose(i[1], patch_transform(six_of(column)));
    });
  }

  PrimFuncRef program() const {
    ComputeBuilder b;
    Buffer x = b.input("data", kFloat32, data);
    Buffer u = b.input("weight", kFloat32, int_imms({kPatch, kPatch, filters / columns, channels, columns}));
    Buffer patches = patches_of(x, b);
    Buffer products =
        b.reduce("winograd", kFloat32, with_patch(six, six, f), {c}, zero(kFloat32), combine_sum, [&](Axes i, Axes r) {
          Expr filter = i.back();
          Expr weight = load(u, {i[0], i[1], floor_div(filter, columns), r[0], floor_mod(filter, columns)});
          return load(patches, with_last(i, r[0])) * weight;
        });
    Buffer back = b.compute(winograd::kRows, kFloat32, with_patch(int_imm(kTile), six, f), [&](Axes i) {
      auto product = [&](int64_t r) { return load(products, with_first(int_imm(r), i)); };
      return choose(i[0], result_transform(six_of(product)));
    });
    Buffer result = b.compute(winograd::kResult, kFloat32, out, [&](Axes i) {
      Expr row = floor_div(i[2], kTile), at = floor_div(i[3], kTile), filter = i[1] * *as_int(data[4]) + i[4];
      Exprs patch = is_known ? Exprs{(i[0] * rows_of_image + row) * across + at} : Exprs{i[0], row, at};
      auto part = [&](int64_t s) {
        return load(back, joined({{floor_mod(i[2], kTile), int_imm(s)}, patch, {filter}}));
      };
      return choose(floor_mod(i[3], kTile), result_transform(six_of(part)));
    });
    return with_op_name(b.finish({result}), winograd::kOp);
  }
};

}  // namespace

bool winograd_gains(int64_t in_channels, int64_t out_channels, bool constant_weight, const std::vector<Expr>& out,
                    const Target& target) {
  // Transforms take time in the sum of channels and filters, products in their product (section 4 of the paper).
  using namespace cost_model;
  // Fewer patches than a register tile make reading the weights take longer than the arithmetic, unless the weights are
  // small enough to come from the cache.
  int64_t many_patches = rows_in_registers(2, kElementRegisters, target),
          small_weight_bytes = kSmallWeightsInL2 * target.l2_of_core();
  auto images = as_int(out[0]), height = as_int(out[2]), width = as_int(out[3]);
  if (std::ranges::any_of(out, [](const Expr& dim) { return is_int(dim, 0); })) return false;
  int64_t patches = std::max(many_patches, kFewestPatchesOfNewWeight);
  if (height && width) {
    int64_t of_image = ((*height + kTile - 1) / kTile) * ((*width + kTile - 1) / kTile);
    // Less than half of the patches' pixels are in the image, so little is saved.
    if (2 * *height * *width < kTile * kTile * of_image) return false;
    patches = images.value_or(1) * of_image;
  }
  int64_t weight_bytes = kPatch * kPatch * in_channels * out_channels * kFloat32.bytes();
  if (std::min(in_channels, out_channels) < kFewestWinogradChannels || weight_bytes > kMostWinogradBytes) return false;
  if (!constant_weight) return patches >= kFewestPatchesOfNewWeight;
  return patches >= many_patches || weight_bytes <= small_weight_bytes;
}

bool can_be_winograd(const Call& conv, const Binding& binding, const Target& target) {
  const auto attrs = read_attrs<ConvAttrs<2>>(conv.attrs);
  int64_t lanes = target.vector_lanes(32);
  std::string layout = fmt::format("NCHW{}c", lanes);
  bool blocked = attrs.data_layout == layout && attrs.out_layout.value_or(layout) == layout &&
                 attrs.kernel_layout == ConvAttrs<2>().kernel_layout;
  const PerDim ones = {1, 1};
  bool dense = attrs.strides == ones && attrs.dilation == ones && attrs.groups == 1;
  std::optional<std::vector<int64_t>> weight = constant_shape(conv.args[1].type());
  bool is_known = known_shape(conv.args[0].type()) && known_shape(binding.value.type()) && !binding.cast;
  if (!blocked || !dense || attrs.padding.size() != 4 || !weight || !is_known) return false;
  if (tensor_dtype(conv.args[1].type()) != kFloat32 || tensor_dtype(binding.value.type()) != kFloat32) return false;
  return weight->at(2) == 3 && weight->at(3) == 3 && weight->at(0) % lanes == 0 && weight->at(1) % lanes == 0;
}

Expr winograd_conv2d(const Call& conv, const Binding& binding, IRModule& module, const Target& target, Builder& b) {
  const PerDim padding = read_attrs<ConvAttrs<2>>(conv.attrs).padding;
  const Constant* weight = conv.args[1].as<Constant>();
  const std::vector<int64_t> shape = *constant_shape(conv.args[1].type());
  int64_t columns = choose_column_tile(shape[0], target.vector_lanes(32)).columns();
  const std::vector<Expr>&data = *known_shape(conv.args[0].type()), &out = *known_shape(binding.value.type());
  Winograd winograd{data, out, padding[0], padding[1], shape[1], shape[0], columns};
  Expr transformed = weight ? constant(transform_weight(weight->data, columns))
                            : transform_weight(conv.args[1], shape[0], shape[1], columns, b);
  return make_call_tir(module, "conv2d_winograd", winograd.program(), {conv.args[0], transformed},
                       {binding.value.type()}, binding.var.span());
}

}  // namespace relaxc
