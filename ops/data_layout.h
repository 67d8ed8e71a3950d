// Data layouts: the orders of dims that attributes such as data_layout="NCHW16c" state.
#pragma once
#include "ir/arith.h"
#include "ops/common.h"

namespace relaxc {

// The order of a tensor's dims: "NHWC", or blocked as in "NCHW4c", whose dims are [N, C / 4, H, W, 4].
class Layout {
 public:
  // `plain` has the same axes in the plain order, in which the code works. An empty text means that order.
  Layout(const OpCall& op, const std::string& text, std::string_view plain, const char* what);
  int64_t rank() const { return std::ssize(axes_); }
  // Returns the size of the blocks into which a plain axis is split, or 1 when it is not split.
  int64_t block_of(size_t plain) const;
  // Makes the layout that is the plain order.
  explicit Layout(size_t rank);
  // These convert a tensor's dims to the plain order, without blocks, and back. Blocks must divide their axis.
  std::vector<Expr> to_plain(const std::vector<Expr>& dims) const;
  std::vector<Expr> from_plain(const OpCall& op, const std::vector<Expr>& dims) const;
  // These convert an element's indices to the plain order, and back. The facts bound the variables of the indices.
  std::vector<Expr> to_plain_index(const std::vector<Expr>& indices) const;
  std::vector<Expr> from_plain_index(const std::vector<Expr>& indices, const Analyzer& facts) const;

 private:
  struct Axis {
    size_t plain;   // position in the plain order
    int64_t block;  // 0: the axis itself, else an inner part of that size
  };
  std::vector<Axis> axes_;
  size_t plain_rank_;
};
// Returns the layout of the result of a window operator, which is that of the data where out_layout is absent.
Layout result_layout(const OpCall& op, const std::optional<std::string>& out_layout, const std::string& data_layout,
                     std::string_view plain);
// Returns the layout of images whose channels are in blocks, such as "NCHW16c", and the blocks' size in such a layout.
std::string blocked_layout(int64_t block);
std::optional<int64_t> block_of_layout(const std::string& layout);
// Returns the facts that each axis is in [0, extent).
Analyzer facts_of_axes(Axes axes, const std::vector<Expr>& extents);
// Reports any other layout as unsupported, for operators that are lowered in one layout only.
void require_layout(const OpCall& op, const std::string& layout, std::string_view wanted, const char* what);

}  // namespace relaxc
