// Pads: elements around a tensor, or cut off where a pad is negative. What is cut off is not repeated elsewhere.
#include <algorithm>

#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/layouts.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace relaxc {

namespace {

// Returns (before, after) of each axis in turn, from an attribute of pad or a shape of dyn.pad.
std::vector<Expr> pad_width(const OpCall& op) {
  return op.size() > 1 ? op.shape(1) : int_imms(op.attrs<PadAttrs>().pad_width);
}
Type infer_pad(const OpCall& op) {
  const std::vector<Expr>&shape = op.shape(0), width = pad_width(op);
  if (width.size() != 2 * shape.size()) op.fail("{} pads for a tensor of rank {}", width.size(), shape.size());
  if (op.size() > 2 && (op.rank(2) != 0 || op.dtype(2) != op.dtype(0)))
    op.fail("the pad value must be a scalar of {}", to_string(op.dtype(0)));
  Analyzer analyzer;
  analyzer.assume_dims(op.arg(0).type());
  std::vector<Expr> result;
  for (size_t d = 0; d < shape.size(); ++d) {
    Expr dim = analyzer.simplify(size_sum(op, size_sum(op, shape[d], width[2 * d]), width[2 * d + 1]));
    auto before = as_int(width[2 * d]), after = as_int(width[2 * d + 1]);
    op.require_at_most(int_imm(0), dim, fmt::format("pads crop axis {} to less than nothing", d));
    bool grows = before && after && *before >= 0 && *after >= 0;
    result.push_back(grows ? dim : analyzer.simplify(max(dim, int_imm(0))));
  }
  return tensor_type(std::move(result), op.dtype(0));
}
// Returns the position in [0, dim) that a padded position mirrors, repeats or clamps to.
Expr padded_source(const std::string& mode, const Expr& position, const Expr& dim) {
  if (mode == "edge" || mode == "replicate") return max(min(position, dim - 1), int_imm(0));
  if (mode == "wrap" || mode == "circular") return floor_mod(position, max(dim, int_imm(1)));
  Expr period = max(dim * 2 - 2, int_imm(1));
  Expr phase = floor_mod(position, period);
  return max(min(phase, dim * 2 - 2 - phase), int_imm(0));
}
Expr pad_element(const OpCall& op, Inputs x, Axes i) {
  const std::vector<Expr>&shape = op.shape(0), width = pad_width(op);
  PadAttrs attrs = op.attrs<PadAttrs>();
  bool is_constant = attrs.pad_mode == "constant";
  std::vector<Expr> source, kept = shape;  // the dims without what is cut off
  Expr inside = bool_imm(true);
  for (size_t d = 0; d < shape.size(); ++d) {
    const Expr &before = width[2 * d], &after = width[2 * d + 1];
    Expr position = i[d] - before;
    bool padded = !is_int(before, 0) || !is_int(after, 0);
    if (padded && is_constant) inside = inside && (int_imm(0) <= position) && (position < shape[d]);
    if (padded && !is_constant) {
      Expr first = simplify(max(int_imm(0) - before, int_imm(0)));
      kept[d] = simplify(shape[d] - first - max(int_imm(0) - after, int_imm(0)));
      Expr plain = simplify(position - first), source = padded_source(attrs.pad_mode, plain, kept[d]);
      // Neighbours are copied as vectors from inside of the tensor, which lowering parts from the border by this
      // condition (partition_loops). Along other axes a source is found once for a row.
      bool are_neighbours = d + 1 == shape.size();
      if (are_neighbours) source = if_then_else(int_imm(0) <= plain && plain < kept[d], plain, source);
      position = first + source;
    }
    source.push_back(position);
  }
  if (!is_constant) inside = has_elements(kept);  // an empty axis has nothing to repeat
  Expr fill = x.size() > 1 ? load(x[1], {}) : scalar_imm(attrs.pad_value, op.dtype(0));
  return if_then_else(inside, load(x[0], source), fill);
}

// The position that one beyond a border stands for: pads of "reflect" do not repeat the border, those of "wrap" go on
// at the other end.
int64_t padded_position(const std::string& mode, int64_t i, int64_t dim) {
  while (mode == "reflect" && dim > 1 && (i < 0 || i >= dim)) i = i < 0 ? -i : 2 * (dim - 1) - i;
  while (mode == "wrap" && (i < 0 || i >= dim)) i += i < 0 ? dim : -dim;
  return std::clamp<int64_t>(i, 0, dim - 1);
}
reference::Tensors padded(const ReferenceCall& c) {
  PadAttrs attrs = c.attrs<PadAttrs>();
  reference::Index from = c.x[0].shape(), shape = from;
  for (size_t d = 0; d < from.size(); ++d) shape[d] += attrs.pad_width[2 * d] + attrs.pad_width[2 * d + 1];
  return {reference::tensor_of(shape, c.x[0].dtype(), [&](reference::Index i) {
    bool is_inside = true;
    for (size_t d = 0; d < from.size(); ++d) {
      i[d] -= attrs.pad_width[2 * d];
      is_inside = is_inside && i[d] >= 0 && i[d] < from[d];
      int64_t first = std::max<int64_t>(-attrs.pad_width[2 * d], 0);
      int64_t kept = from[d] - first - std::max<int64_t>(-attrs.pad_width[2 * d + 1], 0);
      if (attrs.pad_mode != "constant") i[d] = first + padded_position(attrs.pad_mode, i[d] - first, kept);
    }
    return is_inside || attrs.pad_mode != "constant" ? reference::element(c.x[0], i) : attrs.pad_value;
  })};
}

}  // namespace

std::vector<OpRow> pad_ops() {
  const std::vector<OpAttr> pad =
      with_choices(op_attrs<PadAttrs>(), "pad_mode", {"constant", "reflect", "replicate", "circular", "edge", "wrap"});
  return {
      by_element({.name = "relax.nn.pad",
                  .doc = "the tensor with elements added around it (or cut off where pads are negative)",
                  .inputs = {{"data", "the tensor"}},
                  .attrs = pad,
                  .moves = true,
                  .infer = infer_pad,
                  .layouts = layout_of_pad,
                  .reference = padded},
                 pad_element),
      by_element({.name = "relax.dyn.pad",
                  .doc = "pad by widths that may be symbolic",
                  .inputs = {{"data", "the tensor"},
                             {"width", "shape: before and after of each axis in turn"},
                             {"value", "scalar tensor; the attribute pad_value otherwise", OpInput::Arity::kOptional}},
                  .attrs = pad,
                  .moves = true,
                  .infer = infer_pad},
                 pad_element),
  };
}

}  // namespace relaxc
