// Gradients of operators that move, repeat, join or cut: each element's gradient goes back to where it came from.
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/gradient.h"

namespace relaxc::gradients {

namespace {

using T = const Term&;
using G = const GradientCall&;

Expr reshaped_back(G g) { return g.dy().reshaped(g.x().shape()).expr; }
Expr permuted_back(G g) {
  std::vector<int64_t> axes = g.attrs<AxesAttrs>().permutation(static_cast<size_t>(g.x().rank())), back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) back[axes[i]] = static_cast<int64_t>(i);
  return g.dy().permuted(back).expr;
}
Expr flip(G g) { return g.dy().op("flip", g.attrs<AxisAttrs>()).expr; }
Expr triangle(G g) { return g.builder.op(g.op.name(), {g.dy().expr, g.op.arg(1)}, g.op.call.attrs); }

// A dim that may be 1 when the model runs, and stretch, sums where it is: position 0 gets all.
Expr broadcast_to(G g) {
  Term dy = g.dy();
  const std::vector<Expr> from = g.x().shape();
  for (int64_t d = 0; d < std::ssize(from); ++d) {
    const int64_t axis = dy.rank() - std::ssize(from) + d;
    const Expr extent = dy.dim(axis);
    if (as_int(from[d]) || is_int(simplify(equal(from[d], extent)), 1)) continue;
    Term positions = g.term(g.builder.op("arange", {int_imm(0), extent, int_imm(1)}, DTypeAttrs{kInt64}));
    positions = positions.op("minimum", simplify(from[d] - 1));
    dy = scattered(dy, with_item(dy.shape(), axis, from[d]), axis, positions);
  }
  return dy.expr;
}

std::vector<Type> items_of(const Expr& values) { return values.type().as<TupleType>()->items; }

Expr concat(G g) {
  const std::vector<Type> items = items_of(g.op.arg(0));
  const int64_t axis = normalize_axis(g.op, g.attrs<ConcatAttrs>().axis.value_or(0), g.y().rank());
  std::vector<Expr> parts;
  Expr begin = int_imm(0);
  for (const Type& item : items) {
    Expr end = simplify(begin + known_shape(item)->at(axis));
    parts.push_back(sliced(g.dy(), axis, begin, end).expr);
    begin = end;
  }
  return tuple(parts);
}
Expr stack(G g) {
  const std::vector<Type> items = items_of(g.op.arg(0));
  const int64_t axis = normalize_axis(g.op, g.attrs<AxisAttrs>().axis, g.y().rank());
  std::vector<Expr> parts;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto position = static_cast<int64_t>(i);
    Term part = sliced(g.dy(), axis, int_imm(position), int_imm(position + 1));
    parts.push_back(part.reshaped(*known_shape(items[i])).expr);
  }
  return tuple(parts);
}
Expr split(G g) {
  auto attrs = g.attrs<SplitAttrs>();
  std::vector<Expr> parts;
  for (size_t i = 0; i < g.gradients.size(); ++i) parts.push_back(g.dy(i).expr);
  return g.builder.op("concat", {tuple(parts)}, ConcatAttrs{normalize_axis(g.op, attrs.axis, g.x().rank())});
}

// tile has its counts as an attribute, dyn.tile as an argument.
Expr tile(G g) {
  std::vector<Expr> counts = g.op.size() > 1 ? g.op.shape(1) : int_imms(g.attrs<TileAttrs>().repeats);
  std::vector<Expr> dims = g.x().shape(), split;
  const size_t rank = std::max(counts.size(), dims.size());
  counts.insert(counts.begin(), rank - counts.size(), int_imm(1));
  dims.insert(dims.begin(), rank - dims.size(), int_imm(1));
  std::vector<int64_t> axes;
  for (size_t d = 0; d < rank; ++d) {
    axes.push_back(std::ssize(split));
    split.insert(split.end(), {counts[d], dims[d]});
  }
  return g.dy().reshaped(split).over("sum", axes).reshaped(g.x().shape()).expr;
}
Expr repeat(G g) {
  auto [repeats, axis] = g.attrs<RepeatAttrs>();
  std::vector<Expr> dims = axis ? g.x().shape() : std::vector<Expr>{simplify(product(g.x().shape()))};
  const int64_t inside = axis ? normalize_axis(g.op, *axis, g.x().rank()) + 1 : 1;
  Term split = g.dy().reshaped(with_new_item(dims, inside, int_imm(repeats)));
  return split.over("sum", {inside}).reshaped(g.x().shape()).expr;
}

// ---- Slices

// Returns where a slice of stride 1 begins.
Expr first_of_slice(const Expr& begin, const Expr& dim, bool is_inbound) {
  if (is_inbound) return begin;
  return simplify(max(min(select(begin < int_imm(0), begin + dim, begin), dim), int_imm(0)));
}
// Zeros go around what a slice of stride 1 took; other slices put each element back.
Expr strided_slice(G g) {
  Term dy = g.dy();
  const std::vector<Expr> dims = g.x().shape();
  const bool is_inbound = g.attrs<SliceAttrs>().assume_inbound;
  std::vector<Expr> widths(2 * dims.size(), int_imm(0)), one(1, int_imm(1));
  const std::vector<Expr> axes = scalar_list(g.op, 1), begins = scalar_list(g.op, 2), ends = scalar_list(g.op, 3);
  const std::vector<Expr> strides = g.op.size() > 4 ? scalar_list(g.op, 4) : std::vector<Expr>(axes.size(), int_imm(1));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = normalize_axis(g.op, *as_int(axes[i]), std::ssize(dims));
    if (is_int(strides[i], 1)) {
      widths[2 * axis] = first_of_slice(begins[i], dims[axis], is_inbound);
      widths[2 * axis + 1] = simplify(dims[axis] - widths[2 * axis] - dy.dim(axis));
      continue;
    }
    Expr all = g.builder.op("arange", {int_imm(0), dims[axis], int_imm(1)}, DTypeAttrs{kInt64});
    std::vector<Expr> taken = {all, tuple({int_imm(0)}), tuple({begins[i]}), tuple({ends[i]}), tuple({strides[i]})};
    Term positions = g.term(g.builder.op("strided_slice", taken, SliceAttrs{is_inbound}));
    dy = scattered(dy, with_item(dy.shape(), axis, dims[axis]), axis, positions);
  }
  if (std::ranges::all_of(widths, [](const Expr& width) { return is_int(width, 0); })) return dy.expr;
  return dy.op("dyn.pad", shape_expr(widths)).expr;
}
Expr slice_scatter(G g) {
  std::vector<Expr> args = g.op.call.args;
  args[0] = g.dy().expr;
  args[1] = g.x(1).zeros().expr;
  return g.builder.op("slice_scatter", args, g.op.call.attrs);
}
Expr slice_scatter_of_source(G g) {
  const Expr axis = int_imm(normalize_axis(g.op, g.attrs<AxisAttrs>().axis, g.x().rank()));
  std::vector<Expr> args = {g.dy().expr, tuple({axis})};
  for (size_t i = 2; i < 5; ++i) args.push_back(tuple({cast_to(g.op.arg(i), kInt64)}));
  return g.builder.op("strided_slice", args);
}

// ---- Pads

// Pads of the opposite sign cut off what was added, and put zeros where something was cut off.
Expr pad(G g) {
  const auto attrs = g.attrs<PadAttrs>();
  const std::vector<Expr> widths = g.op.size() > 1 ? g.op.shape(1) : int_imms(attrs.pad_width);
  if (attrs.pad_mode == "constant") {
    std::vector<Expr> opposite = map_each(widths, [](const Expr& width) { return simplify(int_imm(0) - width); });
    return g.dy().op("dyn.pad", shape_expr(opposite)).expr;
  }
  Term dy = g.dy();
  for (int64_t axis = 0; axis < g.x().rank(); ++axis) {
    const Expr &before = widths[2 * axis], &after = widths[2 * axis + 1], &dim = g.x().dim(axis);
    if (is_int(before, 0) && is_int(after, 0)) continue;
    Expr all = g.builder.op("arange", {int_imm(0), dim, int_imm(1)}, DTypeAttrs{kInt64});
    PadAttrs same{.pad_mode = attrs.pad_mode};
    Expr positions = g.builder.op("dyn.pad", {all, shape_expr({before, after})}, same);
    dy = scattered(dy, with_item(dy.shape(), axis, dim), axis, g.term(positions));
  }
  return dy.expr;
}
Expr pad_of_value(G g) {
  auto all = [](T x) { return x.op("sum", ReduceAttrs{}); };
  return (all(g.dy()) - all(g.term(pad(g)))).expr;
}

Expr pixel_shuffle(const OpCall& op, Builder& b) {
  const Expr factor = int_imm(op.attrs<PixelShuffleAttrs>().upscale_factor);
  Term x{op.arg(0), &b};
  std::vector<Expr> dims = x.shape(), batch(dims.begin(), dims.end() - 3);
  const int64_t c = std::ssize(batch);
  const Expr channels = simplify(floor_div(dims[c], factor * factor));
  Term split = x.reshaped(followed_by(batch, {channels, factor, factor, dims[c + 1], dims[c + 2]}));
  std::vector<int64_t> order = int_range(0, c);
  order.insert(order.end(), {c, c + 3, c + 1, c + 4, c + 2});
  std::vector<Expr> joined = {channels, simplify(dims[c + 1] * factor), simplify(dims[c + 2] * factor)};
  return split.permuted(order).reshaped(followed_by(batch, joined)).expr;
}

}  // namespace

std::vector<GradientRow> layout_gradients() {
  return {
      {"reshape", {{reshaped_back}}},
      {"flatten", {{reshaped_back}}},
      {"nn.batch_flatten", {{reshaped_back}}},
      {"squeeze", {{reshaped_back}}},
      {"expand_dims", {{reshaped_back}}},
      {"permute_dims", {{permuted_back}}},
      {"flip", {{flip}}},
      {"tril", {{triangle}}},
      {"triu", {{triangle}}},
      {"broadcast_to", {{broadcast_to}}},
      {"full", {{nullptr, pass}}},
      {"full_like", {{nullptr, pass}}},
      {"zeros_like", {}},
      {"ones_like", {}},
      {"eye_like", {}},
      {"concat", {{concat}}},
      {"stack", {{stack}}},
      {"split", {{split}}},
      {"tile", {{tile}}},
      {"dyn.tile", {{tile}}},
      {"repeat", {{repeat}}},
      {"strided_slice", {{strided_slice}}},
      {"slice_scatter", {{slice_scatter, slice_scatter_of_source}}},
      {"nn.pad", {{pad}}},
      {"dyn.pad", {{pad, nullptr, pad_of_value}}},
      {"nn.pixel_shuffle", written(pixel_shuffle)},
  };
}

}  // namespace relaxc::gradients
