// In which layouts operators compute (OpRow::layouts): a row answers for one call, by the target and the layouts in
// which its operands may be had. The functions below are the answers that several operators share; those of
// convolutions are in convolution_layouts.cc. passes/choose_layouts.cc chooses among the answers for a whole graph.
//
// Costs are estimates in cycles of one core: a transform by the bytes that it moves, an operator by how much faster it
// is in the other layout. They decide between layouts, so only their proportions matter.
#pragma once
#include "ir/builder.h"
#include "ir/layout.h"
#include "tir/target.h"

namespace relaxc {

// A call, on tensors in the plain order, of which it is asked whether other layouts would do.
struct LayoutQuestion {
  const OpCall& op;
  const Type& result;  // the call's type
  const Target& target;
  // By tensor argument (tensors_of): the other layout in which it may be had.
  std::vector<std::optional<Layout>> layouts;
  const VarMap& sizes;  // guesses for symbolic dims: guessed_sizes()
};

// Another form of the call, on tensors in these layouts. Padded places of its result hold any values.
struct LayoutOffer {
  std::vector<std::optional<Layout>> operands;  // by tensor argument; none: the plain order
  Layout result;
  // Emits it on such tensors and returns the result.
  std::function<Expr(const std::vector<Expr>& tensors, Builder& builder)> emit;
  double gain = 0;  // cycles by which it is faster
  // It gains by itself, whatever the layouts of its operands: users may decide about it (S.use("image_layout")).
  bool is_decision = false;
  std::string becomes = {};  // the operator that it calls, where that is another one
};
using LayoutsOf = std::optional<LayoutOffer>(const LayoutQuestion&);

// Element by element, operands broadcast: the layout of an operand of the result's shape.
LayoutsOf same_layout;
// Reductions over whole axes.
LayoutsOf layout_without_reduced;
// Windows over spatial axes, which an attribute "layout" describes: pools.
LayoutsOf layout_of_windows;
LayoutsOf layout_of_concat, layout_of_resize, layout_of_pad;

// Returns whether each channel has one filter: `channels` are those of a filter.
constexpr bool is_depthwise(int64_t groups, int64_t filters, int64_t channels) {
  return groups > 1 && groups == filters && channels == 1;
}
// A convolution whose images may lie in blocks of channels.
struct ConvolutionSizes {
  DType dtype;
  int64_t channels, filters, groups;  // channels: of a filter
  int64_t height, width;              // of the window
  bool may_use_tiles;                 // the weight is constant, and there are pixels for rows of tiles
};
// Returns the channels of a block: a vector of float32 of the target, or those in a row of a tile of matrix registers,
// which then reads it where it lies, if they divide the channels and filters. Returns nullopt where vectors are too
// short to gain by it.
std::optional<int64_t> channels_in_block(const Target& target, const ConvolutionSizes& of);
// Returns how many zeros make a row of the window as long as an instruction needs it: of a picture, of four channels,
// the row of a tile, where it fills enough of that; of one filter for each channel, the products that are summed in one
// lane. They are multiplied with pixels beyond, which is exact for bytes alone: infinity times zero is not zero.
int64_t zeros_in_window(const Target& target, const ConvolutionSizes& of);
constexpr int64_t kPictureChannels = 4;  // the most of a picture, which are too few for a block
// Returns guesses for the symbolic sizes of a function's images: the more channels an input has, the smaller it is.
VarMap guessed_sizes(const Function& function);
// Return an extent and the number of elements. For a symbolic dim without a guess in `sizes` stands the side of a
// picture, for the first of several a batch of one.
double guessed_extent(const Expr& dim, const VarMap& sizes = {});
double guessed_elements(const std::vector<Expr>& dims, const VarMap& sizes = {});
// Returns the cycles that moving such a tensor into another layout takes.
double cycles_of_transform(const std::vector<Expr>& dims, DType dtype, const Target& target, const VarMap& sizes);

// Returns the order in which the kernel of a convolution of images in channel blocks reads its weight, "OIHW16i16o", or
// "OIHW16o" where channels are not in blocks or do not divide by them; nullopt for any other convolution. Where an
// instruction sums the products of `group` channels and the blocks divide by it, these are innermost: "OIHW4i16o4i"; or
// pixels of a row of the window, where each channel has one filter: "OIHW16o4w".
std::optional<Layout> weight_layout_of(const Call& conv2d, int64_t group = 1);

// Emit the transforms. Padding is zeros, and is dropped again.
Expr to_layout(const Expr& x, const Layout& layout, Builder& builder, std::string hint = {});
Expr to_plain_order(const Expr& x, const Layout& layout, const std::vector<Expr>& plain, Builder& builder,
                    std::string hint = {});

}  // namespace relaxc
