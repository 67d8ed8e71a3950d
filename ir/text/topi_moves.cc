// Functions of topi that move elements, such as topi.nn.space_to_batch_nd(...), in terms of R.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/arith.h"
#include "ir/text/topi_call.h"

namespace relaxc::text {

namespace {

Expr index(int64_t number) { return int_imm(number, kInt64); }
Expr numbers(const std::vector<int64_t>& values) { return tuple(map_each(values, index)); }

Expr identity(TopiCall& c) {
  Expr data = c.tensor("x");
  return c.reshape(data, c.shape(data));
}
Expr logarithm(TopiCall& c, double base) {
  Expr data = c.tensor("x");
  return c.op("divide", {c.op("log", {data}), c.number(std::log(base), c.dtype_of(data))});
}
Expr log2(TopiCall& c) { return logarithm(c, 2); }
Expr log10(TopiCall& c) { return logarithm(c, 10); }

// The elements from `begin` to `end` along one axis.
Expr part_of(TopiCall& c, const Expr& data, int64_t axis, int64_t begin, int64_t end) {
  return c.op("strided_slice", {data, numbers({axis}), numbers({begin}), numbers({end}), numbers({1})});
}
Expr joined(TopiCall& c, const std::vector<Expr>& parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : c.op("concat", {tuple(parts)}, {{"axis", axis}});
}

// The buffer without its oldest elements, and the data behind them.
Expr fifo_buffer(TopiCall& c) {
  Expr data = c.tensor("data"), buffer = c.tensor("buffer");
  const int64_t axis = c.axis("axis", 0, buffer), count = c.dim(data, axis), size = c.dim(buffer, axis);
  if (count > size) c.fail(fmt::format("{} elements for a buffer of {}", count, size));
  if (count == size) return data;
  return joined(c, {part_of(c, buffer, axis, count, size), data}, axis);
}

// Returns pads or crops of the axes behind the batch: a number for each of the blocks.
std::vector<int64_t> of_blocks(TopiCall& c, std::string_view name, size_t count) {
  std::vector<int64_t> result = c.wholes(name, std::vector<int64_t>(count, 0));
  if (result.size() != count)
    c.fail(fmt::format("argument '{}' has {} numbers for {} blocks", name, result.size(), count));
  return result;
}

Expr batch_to_space_nd(TopiCall& c) {
  Expr data = c.tensor("data");
  const std::vector<int64_t> blocks = c.wholes("block_shape");
  const size_t count = blocks.size();
  std::vector<int64_t> from = of_blocks(c, "crop_begin_list", count), behind = of_blocks(c, "crop_end_list", count);
  const std::vector<Expr> dims = c.shape(data);
  const int64_t all = std::accumulate(blocks.begin(), blocks.end(), int64_t{1}, std::multiplies<>());
  if (dims.size() <= count || all < 1 || c.dim(data, 0) % all != 0) c.fail("the batch does not divide by the blocks");
  std::vector<Expr> apart = map_each(blocks, index), together = {index(c.dim(data, 0) / all)};
  apart.push_back(together[0]);
  apart.insert(apart.end(), dims.begin() + 1, dims.end());
  std::vector<int64_t> order = {static_cast<int64_t>(count)};
  for (size_t i = 1; i < dims.size(); ++i) {
    order.push_back(static_cast<int64_t>(count + i));
    if (i <= count) order.push_back(static_cast<int64_t>(i) - 1);
    together.push_back(i <= count ? simplify(dims[i] * blocks[i - 1]) : dims[i]);
  }
  Expr result = c.reshape(c.permute(c.reshape(data, apart), order), together);
  for (size_t i = 0; i < count; ++i) {
    const auto axis = static_cast<int64_t>(i) + 1;
    if (from[i] == 0 && behind[i] == 0) continue;
    result = part_of(c, result, axis, from[i], c.dim(result, axis) - behind[i]);
  }
  return result;
}

Expr space_to_batch_nd(TopiCall& c) {
  Expr data = c.tensor("data");
  const std::vector<int64_t> blocks = c.wholes("block_shape");
  const size_t count = blocks.size();
  std::vector<int64_t> before = of_blocks(c, "pad_before", count), behind = of_blocks(c, "pad_after", count);
  const int64_t rank = c.rank(data);
  if (rank <= static_cast<int64_t>(count)) c.fail(fmt::format("{} blocks for a tensor of rank {}", count, rank));
  std::vector<int64_t> widths(2 * static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < count; ++i) {
    widths[2 * i + 2] = before[i];
    widths[2 * i + 3] = behind[i];
  }
  data = c.op("nn.pad", {data}, {{"pad_width", widths}, {"pad_value", c.real("pad_value", 0)}});
  std::vector<Expr> apart = {c.shape(data)[0]}, together = {c.shape(data)[0]};
  std::vector<int64_t> order, rest = {0};
  for (int64_t axis = 1; axis < rank; ++axis) {
    rest.push_back(static_cast<int64_t>(apart.size()));
    if (axis > static_cast<int64_t>(count)) {
      apart.push_back(c.shape(data)[static_cast<size_t>(axis)]);
      together.push_back(apart.back());
      continue;
    }
    const int64_t block = blocks[static_cast<size_t>(axis) - 1], size = c.dim(data, axis);
    if (block < 1 || size % block != 0)
      c.fail(fmt::format("dim {} of size {} does not divide by {}", axis, size, block));
    apart.insert(apart.end(), {index(size / block), index(block)});
    order.push_back(static_cast<int64_t>(apart.size()) - 1);
    together[0] = simplify(together[0] * block);
    together.push_back(index(size / block));
  }
  order.insert(order.end(), rest.begin(), rest.end());
  return c.reshape(c.permute(c.reshape(data, apart), order), together);
}

// Pads with the elements beside: REFLECT leaves out the outermost one, SYMMETRIC does not.
Expr mirror_pad(TopiCall& c) {
  Expr data = c.tensor("data");
  const std::string mode = c.text("mode", "SYMMETRIC");
  if (mode != "SYMMETRIC" && mode != "REFLECT") c.fail(fmt::format("'{}' is not SYMMETRIC or REFLECT", mode));
  const std::vector<int64_t> before = c.wholes("pad_before"), behind = c.wholes("pad_after", before);
  if (before.size() != static_cast<size_t>(c.rank(data)) || behind.size() != before.size())
    c.fail(fmt::format("{} and {} pads for a tensor of rank {}", before.size(), behind.size(), c.rank(data)));
  const int64_t skipped = mode == "REFLECT" ? 1 : 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    const int64_t size = c.dim(data, axis);
    if (std::max(before[i], behind[i]) > size - skipped || std::min(before[i], behind[i]) < 0)
      c.fail(fmt::format("pads of {} and {} for dim {} of size {}", before[i], behind[i], axis, size));
    auto mirrored = [&](int64_t from, int64_t to) {
      return c.op("flip", {part_of(c, data, axis, from, to)}, {{"axis", axis}});
    };
    std::vector<Expr> parts;
    if (before[i] > 0) parts.push_back(mirrored(skipped, skipped + before[i]));
    parts.push_back(data);
    if (behind[i] > 0) parts.push_back(mirrored(size - skipped - behind[i], size - skipped));
    data = joined(c, parts, axis);
  }
  return data;
}

Expr unpack_nchwc(TopiCall& c) {
  Expr data = c.tensor("packed_out");
  const std::vector<Expr> dims = c.shape(data);
  if (dims.size() != 5) c.fail("expected a tensor NCHWc");
  Expr result = c.reshape(c.permute(data, {0, 1, 4, 2, 3}), {dims[0], simplify(dims[1] * dims[4]), dims[2], dims[3]});
  return c.astype(result, c.dtype("out_dtype", c.dtype_of(data)));
}

Expr scale_shift_nchwc(TopiCall& c) {
  auto spread = [&](std::string_view name) { return c.expand(c.tensor(name), {0, 2, 3}); };
  return c.op("add", {c.op("multiply", {c.tensor("Input"), spread("Scale")}), spread("Shift")});
}

// The positions 0, 1, ... along a dim.
Expr positions(TopiCall& c, const Expr& size, DType dtype) {
  return c.op("arange", {index(0), size, index(1)}, {{"dtype", dtype}});
}

Expr invert_permutation(TopiCall& c) {
  Expr data = c.tensor("data");
  return c.op("scatter_elements", {data, c.astype(data, kInt64), positions(c, c.shape(data).at(0), c.dtype_of(data))},
              {{"axis", int64_t{0}}});
}

Expr matrix_set_diag(TopiCall& c) {
  Expr data = c.tensor("data"), diagonal = c.tensor("diagonal");
  const std::vector<Expr> dims = c.shape(data);
  const AttrValue offset = c.value("k");
  if (dims.size() < 2 || (!offset.is_none() && c.whole("k", 0) != 0)) c.fail("the diagonal is known here with k=0");
  Expr rows = c.expand(positions(c, dims[dims.size() - 2], kInt64), {1}), columns = positions(c, dims.back(), kInt64);
  if (c.dim(data, c.rank(data) - 2) != c.dim(data, c.rank(data) - 1)) c.fail("the matrix is square here");
  Expr spread = c.expand(diagonal, {c.rank(data) - 1});
  return c.op("where", {c.op("equal", {rows, columns}), spread, data});
}

Expr expand_like(TopiCall& c) {
  Expr data = c.tensor("a"), like = c.tensor("shape_like");
  std::vector<int64_t> axes = c.wholes("axis");
  for (int64_t& axis : axes) axis = axis < 0 ? axis + c.rank(like) : axis;
  std::ranges::sort(axes);
  return c.op("broadcast_to", {c.expand(data, axes), shape_expr(c.shape(like))});
}

Expr collapse_sum(TopiCall& c) {
  return c.op("collapse_sum_to", {c.tensor("data"), shape_expr(map_each(c.wholes("target_shape"), index))});
}

Expr adv_index(TopiCall& c) { return c.op("index_tensor", {c.tensor("data"), tuple(c.tensors("indices"))}); }

constexpr TopiComposition kMoves[] = {
    {"adv_index", "data indices", adv_index},
    {"collapse_sum", "data target_shape", collapse_sum},
    {"expand_like", "a shape_like axis", expand_like},
    {"identity", "x", identity},
    {"invert_permutation", "data", invert_permutation},
    {"log10", "x", log10},
    {"log2", "x", log2},
    {"matrix_set_diag", "data diagonal k align", matrix_set_diag},
    {"nn.batch_to_space_nd", "data block_shape crop_begin_list crop_end_list", batch_to_space_nd},
    {"nn.fifo_buffer", "data buffer axis", fifo_buffer},
    {"nn.mirror_pad", "data pad_before pad_after mode", mirror_pad},
    {"nn.scale_shift_nchwc", "Input Scale Shift", scale_shift_nchwc},
    {"nn.space_to_batch_nd", "data block_shape pad_before pad_after pad_value", space_to_batch_nd},
    {"nn.unpack_NCHWc_to_nchw", "packed_out out_dtype", unpack_nchwc}};

}  // namespace

std::span<const TopiComposition> topi_moves() { return kMoves; }

}  // namespace relaxc::text
