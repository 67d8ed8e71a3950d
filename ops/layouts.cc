#include "ops/layouts.h"

#include <algorithm>
#include <cmath>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "support/checked_math.h"
#include "tir/dot_forms.h"
#include "tir/index_map.h"
#include "tir/tile_forms.h"

namespace relaxc {

namespace {

// Figures of the estimates, fitted on x86-64 with AVX-512.
constexpr int64_t kFewestLanes = 4;          // of a block
constexpr int64_t kWideWindow = 7;           // of a picture: copies of shorter rows cost less than products with zeros
constexpr int64_t kGuessedBatch = 1;         // a symbolic first extent: what one image costs decides for all
constexpr int64_t kGuessedSide = 224;        // of a picture
constexpr int64_t kLeastSide = 7;            // of an image of many channels
constexpr double kSideTimesChannels = 7168;  // of images inside of networks: 32 x 224, 256 x 28, 1024 x 7
constexpr double kSlownessOfMoves = 3;       // how much longer moving bytes takes than reading them from the L2 cache

// Returns the call's arguments with other tensors in place of its own.
std::vector<Expr> with_tensors(const Call& call, const std::vector<Expr>& tensors) {
  size_t next = 0;
  return map_each(call.args, [&](const Expr& arg) -> Expr {
    const Tuple* items = arg.as<Tuple>();
    if (items && !items->items.empty() && items->items[0].type().is<TensorType>()) {
      std::vector<Expr> parts(tensors.begin() + static_cast<ptrdiff_t>(next),
                              tensors.begin() + static_cast<ptrdiff_t>(next + items->items.size()));
      next += items->items.size();
      return tuple(std::move(parts));
    }
    return arg.type().is<TensorType>() ? tensors.at(next++) : arg;
  });
}
std::function<Expr(const std::vector<Expr>&, Builder&)> emitter(const LayoutQuestion& q, Attrs attrs) {
  return [call = q.op.call, name = q.op.name(), attrs = std::move(attrs)](
             const std::vector<Expr>& tensors, Builder& b) { return b.op(name, with_tensors(call, tensors), attrs); };
}

// Returns whether the layout splits none of these axes.
bool keeps_whole(const Layout& layout, const std::vector<int64_t>& axes) {
  return std::ranges::all_of(axes, [&](int64_t axis) { return layout.block_of(static_cast<size_t>(axis)) == 1; });
}
std::vector<int64_t> places_of(const Layout& layout, const std::vector<int64_t>& axes) {
  return map_each(axes, [&](int64_t axis) { return static_cast<int64_t>(layout.outer_of(static_cast<size_t>(axis))); });
}
std::vector<int64_t> counted_from_start(std::vector<int64_t> axes, size_t rank) {
  for (int64_t& axis : axes) axis += axis < 0 ? static_cast<int64_t>(rank) : 0;
  std::ranges::sort(axes);
  return axes;
}

// Returns whether the blocks of the layout split constant dims, of which these tensors have the same.
bool has_same_blocks(const Layout& layout, const std::vector<Expr>& a, const std::vector<Expr>& b) {
  for (size_t axis = 0; axis < a.size(); ++axis) {
    const auto known = as_int(a[axis]);
    if (layout.block_of(axis) > 1 && (!known || !is_int(b[axis], *known))) return false;
  }
  return true;
}

}  // namespace

std::optional<LayoutOffer> same_layout(const LayoutQuestion& q) {
  const std::vector<Expr> tensors = tensors_of(q.op.call);
  const std::vector<Expr>* result = known_shape(q.result);
  std::optional<Layout> layout;
  for (size_t i = 0; result && i < tensors.size() && !layout; ++i) {
    const std::vector<Expr>& dims = *known_shape(tensors[i].type());
    if (q.layouts[i] && dims.size() == result->size() && has_same_blocks(*q.layouts[i], dims, *result))
      layout = q.layouts[i];
  }
  if (!layout) return std::nullopt;
  std::vector<std::optional<Layout>> operands;
  for (const Expr& tensor : tensors) {
    const std::vector<Expr>& dims = *known_shape(tensor.type());
    const bool is_number = std::ranges::all_of(dims, [](const Expr& dim) { return is_int(dim, 1); });
    operands.push_back(is_number ? std::nullopt : std::optional(layout->of_broadcast(dims)));
  }
  return LayoutOffer{std::move(operands), *layout, emitter(q, q.op.call.attrs)};
}

std::optional<LayoutOffer> layout_without_reduced(const LayoutQuestion& q) {
  const std::optional<Layout>& layout = q.layouts[0];
  auto attrs = q.op.attrs<ReduceAttrs>();
  if (!layout || !attrs.axis) return std::nullopt;
  const std::vector<int64_t> axes = counted_from_start(*attrs.axis, layout->axes().size());
  if (!keeps_whole(*layout, axes)) return std::nullopt;
  Layout result = *layout;
  for (int64_t axis : axes) {
    if (!attrs.keepdims) result = result.without(layout->axes()[static_cast<size_t>(axis)]);
  }
  attrs.axis = places_of(*layout, axes);
  return LayoutOffer{{layout}, result, emitter(q, write_attrs(attrs))};
}

std::optional<LayoutOffer> layout_of_windows(const LayoutQuestion& q) {
  const std::optional<Layout>& layout = q.layouts[0];
  const Attrs& attrs = q.op.call.attrs;
  const std::string plain = attrs.get_string("layout", ""), out = attrs.get_string("out_layout", plain);
  if (!layout || plain != layout->axes() || out != plain || !keeps_whole(*layout, int_range(2, std::ssize(plain))))
    return std::nullopt;
  return LayoutOffer{
      {layout}, *layout, emitter(q, attrs.with("layout", layout->text()).with("out_layout", layout->text()))};
}

// Parts that are joined along an axis in blocks fill these.
std::optional<LayoutOffer> layout_of_concat(const LayoutQuestion& q) {
  const std::vector<Expr> parts = tensors_of(q.op.call);
  auto layout = std::ranges::find_if(q.layouts, [](const auto& known) { return known.has_value(); });
  auto attrs = q.op.attrs<ConcatAttrs>();
  if (layout == q.layouts.end() || !attrs.axis) return std::nullopt;
  const size_t axis = static_cast<size_t>(counted_from_start({*attrs.axis}, (*layout)->axes().size())[0]);
  for (const Expr& part : parts) {
    const std::vector<Expr>* dims = known_shape(part.type());
    const int64_t block = (*layout)->block_of(axis);
    if (!dims || dims->size() != (*layout)->axes().size() ||
        (block > 1 && as_int((*dims)[axis]).value_or(1) % block != 0))
      return std::nullopt;
  }
  attrs.axis = static_cast<int64_t>((*layout)->outer_of(axis));
  return LayoutOffer{std::vector(parts.size(), *layout), **layout, emitter(q, write_attrs(attrs))};
}

std::optional<LayoutOffer> layout_of_resize(const LayoutQuestion& q) {
  const std::optional<Layout>& layout = q.layouts[0];
  auto attrs = q.op.attrs<ResizeAttrs>();
  const ShapeExpr* shape = q.op.size() == 2 ? q.op.arg(1).as<ShapeExpr>() : nullptr;
  if (!layout || !shape || !attrs.roi.empty() || attrs.axes.empty() || !keeps_whole(*layout, attrs.axes))
    return std::nullopt;
  if (!attrs.scales.empty()) {
    std::vector<double> scales;
    for (const Layout::Dim& dim : layout->dims())
      scales.push_back(dim.axis && dim.block == 0 ? attrs.scales[*dim.axis] : 1);
    attrs.scales = scales;
  }
  attrs.axes = places_of(*layout, attrs.axes);
  const Expr dims = shape_expr(layout->from_plain(shape->values));
  auto emit = [name = q.op.name(), attrs, dims](const std::vector<Expr>& tensors, Builder& b) {
    return b.op(name, {tensors[0], dims}, attrs);
  };
  return LayoutOffer{{layout}, *layout, emit};
}

std::optional<LayoutOffer> layout_of_pad(const LayoutQuestion& q) {
  const std::optional<Layout>& layout = q.layouts[0];
  auto attrs = q.op.attrs<PadAttrs>();
  if (!layout || q.op.size() != 1 || attrs.pad_width.size() != 2 * layout->axes().size()) return std::nullopt;
  std::vector<int64_t> widths, padded;
  for (size_t axis = 0; axis < layout->axes().size(); ++axis) {
    if (attrs.pad_width[2 * axis] != 0 || attrs.pad_width[2 * axis + 1] != 0)
      padded.push_back(static_cast<int64_t>(axis));
  }
  if (!keeps_whole(*layout, padded)) return std::nullopt;
  for (const Layout::Dim& dim : layout->dims()) {
    for (size_t side : {0, 1}) widths.push_back(dim.axis && dim.block == 0 ? attrs.pad_width[2 * *dim.axis + side] : 0);
  }
  attrs.pad_width = widths;
  return LayoutOffer{{layout}, *layout, emitter(q, write_attrs(attrs))};
}

static bool has_tiles(const Target& target, const ConvolutionSizes& of) {
  const bool has =
      of.dtype.bits == 8 ? target.has_int8_tiles : of.dtype == DType::bfloat16() && target.has_bfloat16_tiles;
  return has && of.may_use_tiles;
}

std::optional<int64_t> channels_in_block(const Target& target, const ConvolutionSizes& of) {
  const int64_t in_tile = kTileBytes / of.dtype.bytes();
  const bool is_picture = of.channels <= kPictureChannels;
  const int64_t depth = (is_picture ? kPictureChannels : of.channels) * of.height * of.width;
  const bool fills_tiles =
      of.groups == 1 && of.filters % in_tile == 0 && (is_picture ? depth >= in_tile : of.channels % in_tile == 0);
  if (fills_tiles && has_tiles(target, of)) return in_tile;
  const int64_t lanes = target.vector_lanes(kFloat32.bits);
  return lanes >= kFewestLanes ? std::optional(lanes) : std::nullopt;
}

int64_t zeros_in_window(const Target& target, const ConvolutionSizes& of) {
  if (is_depthwise(of.groups, of.filters, of.channels)) {
    const DotForm* dot = find_dot_form(of.dtype, DType::int_(8), kInt32, target);
    return dot && of.width > 1 ? round_up(of.width, dot->group) - of.width : 0;
  }
  const int64_t pixels = kTileBytes / kPictureChannels;
  const bool gains = of.channels <= kPictureChannels && of.dtype.bits == 8 && of.width >= kWideWindow &&
                     of.filters % kTileBytes == 0 && has_tiles(target, of);
  return gains ? round_up(of.width, pixels) - of.width : 0;
}

VarMap guessed_sizes(const Function& function) {
  VarMap result;
  for (const VarRef& param : function.params) {
    const std::vector<Expr>* dims = known_shape(param.type());
    const auto channels = dims && dims->size() > 2 ? as_int((*dims)[1]) : std::nullopt;
    if (!channels || *channels <= kPictureChannels) continue;
    const double side = kSideTimesChannels / static_cast<double>(*channels);
    // A line or a volume has as many points as an image of these channels.
    const double extent = std::pow(side, 2.0 / static_cast<double>(dims->size() - 2));
    const int64_t guess = std::max(kLeastSide, static_cast<int64_t>(extent));
    for (size_t d = 2; d < dims->size(); ++d) {
      if ((*dims)[d].is<Var>()) result.emplace((*dims)[d].get(), int_imm(guess, dtype_of((*dims)[d])));
    }
  }
  return result;
}

static double extent_with(const Expr& dim, int64_t guess, VarMap sizes) {
  if (auto known = as_int(dim)) return static_cast<double>(*known);
  for (const VarRef& var : free_vars(dim)) sizes.emplace(var.get(), int_imm(guess, dtype_of(var)));
  const int64_t extent = as_int(simplify(substitute(dim, sizes))).value_or(guess);
  return static_cast<double>(std::max<int64_t>(1, extent));
}
double guessed_extent(const Expr& dim, const VarMap& sizes) { return extent_with(dim, kGuessedSide, sizes); }
double guessed_elements(const std::vector<Expr>& dims, const VarMap& sizes) {
  double count = dims.empty() ? 1 : extent_with(dims[0], kGuessedBatch, sizes);
  for (size_t d = 1; d < dims.size(); ++d) count *= guessed_extent(dims[d], sizes);
  return count;
}

double cycles_of_transform(const std::vector<Expr>& dims, DType dtype, const Target& target, const VarMap& sizes) {
  const double bytes = 2 * guessed_elements(dims, sizes) * static_cast<double>(dtype.bytes());
  const bool in_cache = bytes <= static_cast<double>(target.l3.bytes);
  return in_cache ? bytes * kSlownessOfMoves / target.l2_bytes_per_cycle : bytes / target.memory_bytes_per_cycle;
}

Expr to_layout(const Expr& x, const Layout& layout, Builder& b, std::string hint) {
  if (layout.is_plain()) return x;
  const std::vector<Expr>& dims = *known_shape(x.type());
  std::vector<int64_t> widths(2 * dims.size(), 0);
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const auto size = as_int(dims[axis]);
    if (size) widths[2 * axis + 1] = round_up(*size, layout.block_of(axis)) - *size;
  }
  const bool is_padded = std::ranges::any_of(widths, [](int64_t width) { return width > 0; });
  const Expr whole = is_padded ? b.op("nn.pad", {x}, PadAttrs{.pad_width = widths}) : x;
  return b.op("layout_transform", {whole}, Attrs{{"index_map", index_map_attr(*layout.index_map())}}, std::move(hint));
}
Expr to_plain_order(const Expr& x, const Layout& layout, const std::vector<Expr>& plain, Builder& b, std::string hint) {
  if (layout.is_plain()) return x;
  const bool is_padded = layout.is_padded(plain);
  Expr result = b.op("layout_transform", {x}, Attrs{{"index_map", index_map_attr(*layout.inverse_map())}},
                     is_padded ? std::string() : hint);
  if (!is_padded) return result;
  std::vector<Expr> lists[4];  // axes, begins, ends, steps
  for (size_t axis = 0; axis < plain.size(); ++axis) {
    if (layout.block_of(axis) == 1 || structural_equal(plain[axis], (*known_shape(result.type()))[axis])) continue;
    int64_t numbers[] = {static_cast<int64_t>(axis), 0, 0, 1};
    for (size_t i = 0; i < 4; ++i) lists[i].push_back(i == 2 ? plain[axis] : int_imm(numbers[i]));
  }
  std::vector<Expr> args = {result};
  for (std::vector<Expr>& list : lists) args.push_back(shape_expr(std::move(list)));
  return b.op("strided_slice", args, SliceAttrs{.assume_inbound = true}, std::move(hint));
}

}  // namespace relaxc
