// The order of a tensor's elements in memory, as a value: which part of which axis each dim in memory is.
//
// An operator works on plain axes, whose order its formulas state: [N, C, H, W] of images, [O, I, H, W] of a weight,
// [K, N] of a product's right operand. A layout lists the dims in memory, each a part of a plain axis: an inner part
// has a size, the block, and the outer part is what the inner ones leave.
//
//   NCHW         the plain order                            n, c, h, w
//   NHWC         a permutation                              n, h, w, c
//   NCHW16c      channels in blocks of a vector             n, c // 16, h, w, c % 16
//   NC_W16c      a sequence NCW as an image of one row      n, c // 16, 0, w, c % 16
//   OIHW16i16o   a weight in the order of a register tile   o // 16, i // 16, h, w, i % 16, o % 16
//   NK32n4k      panels of a right operand KN, for sums     n // 32, k // 4, n % 32, k % 4
//                of four products of bytes
//   OI4i16o4i    several blocks of one axis, the outer one  o // 16, i // 16, i // 4 % 4, o % 16, i % 4
//                first: tiles of processors and GPUs
//
// The notation is oneDNN's and TVM's: an upper-case letter is an outer part, a number with a lower-case letter an inner
// one; `_` is a dim of one that no axis has. The bits of an element are no part of a layout: a packed dtype (int4)
// packs neighbours of the innermost dim.
//
// Everything about a layout follows from this list: dims and indices in both directions, the index map that
// R.layout_transform takes, and whether an axis is padded. Who uses it:
//
//   OpRow::layouts (ir/op.h)     says in which layouts an operator can compute, and how much faster (ops/layouts.h)
//   passes/choose_layouts.cc     chooses for a whole graph, by the cost of each edge, and writes the transforms
//   passes/fold_layout.cc        moves constants to their layouts, byte by byte, for any target
//   tir/analysis/block_layouts.h tells the rules of tir/rules/ which axis of a kernel's block has which role
#pragma once
#include <string_view>

#include "ir/arith.h"

namespace relaxc {

class Layout {
 public:
  // A dim of the tensor in memory.
  struct Dim {
    std::optional<size_t> axis;  // the plain axis that it is a part of; none: a dim of one
    int64_t block = 0;           // the size of an inner part; 0: the outer part
    friend bool operator==(const Dim&, const Dim&) = default;
  };

  // The plain order of these axes, each an upper-case letter.
  explicit Layout(std::string axes);
  // The plain order of so many axes that have no names.
  static Layout of_rank(size_t rank);
  // The dims in that order; each axis has one outer part.
  Layout(std::string axes, std::vector<Dim> dims);
  // Reads a text such as "NCHW16c". `axes` is the plain order; when empty, the order in which the text has them.
  static std::optional<Layout> parse(std::string_view text, std::string axes = {});
  std::string text() const;

  const std::string& axes() const { return axes_; }
  const std::vector<Dim>& dims() const { return dims_; }
  int64_t rank() const { return std::ssize(dims_); }
  bool is_plain() const;
  // Returns the size of all inner parts of a plain axis; 1 where it is not split.
  int64_t block_of(size_t axis) const;
  // Returns the positions of the axis' parts among the dims, the outer part first.
  std::vector<size_t> parts_of(size_t axis) const;
  size_t outer_of(size_t axis) const { return parts_of(axis).front(); }

  // Return the dims of the plain tensor, and those in memory. A constant axis that its blocks do not divide is padded
  // at the end; a symbolic one must be a multiple of them.
  std::vector<Expr> to_plain(const std::vector<Expr>& dims) const;
  std::vector<Expr> from_plain(const std::vector<Expr>& plain) const;
  // Returns whether such a tensor has a place for padding. A symbolic axis that is not known to be a multiple may.
  bool is_padded(const std::vector<Expr>& plain) const;
  // Return an element's indices. The facts bound their variables.
  std::vector<Expr> to_plain_index(const std::vector<Expr>& indices) const;
  std::vector<Expr> from_plain_index(const std::vector<Expr>& plain, const Analyzer& facts = {}) const;
  // Return the same as functions, "lambda n, c, h, w: (n, c // 16, h, w, c % 16)" and its inverse.
  Ref<Lambda> index_map() const;
  Ref<Lambda> inverse_map() const;
  // Returns the layout of which this is the index map, or the inverse; nullopt for any other map.
  static std::optional<Layout> of_index_map(const Lambda& map);
  static std::optional<Layout> of_inverse_map(const Lambda& map);

  // Returns the layout of the tensor without an axis.
  Layout without(char axis) const;
  // Returns the layout in which an operand of these dims is broadcast over tensors of this layout. It has the last
  // axes; those of extent 1 are not split.
  Layout of_broadcast(const std::vector<Expr>& plain) const;

  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  // Returns the size of the axis' parts behind this dim: what a step along it means for the index in the axis.
  int64_t stride_of(size_t dim) const;

  std::string axes_;
  std::vector<Dim> dims_;
};

}  // namespace relaxc
