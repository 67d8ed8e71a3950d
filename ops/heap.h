// Programs that need the first few of many elements in order: a binary heap of positions, whose root comes before all
// others, and the selection that it serves.
#pragma once
#include <functional>

#include "ops/common.h"

namespace relaxc {

// The heap's positions are the first elements of the row of a buffer that `place` gives. `comes_before` tells of two
// different positions, strictly, which one is nearer to the root; ties need an order, too, for results that are the
// same on any machine.
class PositionHeap {
 public:
  using Place = std::function<std::vector<Expr>(const Expr& slot)>;
  using Order = std::function<Expr(const Expr& a, const Expr& b)>;
  PositionHeap(Buffer positions, Place place, Order comes_before)
      : positions_(std::move(positions)), place_(std::move(place)), comes_before_(std::move(comes_before)) {}

  Stmt declared() const;
  Expr get(const Expr& slot) const { return load(positions_, place_(slot)); }
  Stmt set(const Expr& slot, const Expr& position) const { return store(positions_, position, place_(slot)); }
  // Makes a heap of the first `size` positions.
  Stmt build(const Expr& size) const;
  // Moves the position in a slot down to its place, where all below it are heaps.
  Stmt sift_down(const Expr& slot, const Expr& size) const;

 private:
  Buffer positions_;
  Place place_;
  Order comes_before_;
  LocalScalar hole_{"hole", kInt64}, child_{"child", kInt64}, item_{"item", kInt64};
};

// Adds the block that finds the positions of the first k elements of an axis, in order; the other axes are treated
// independently. Where elements are equal the first one comes first.
Buffer selected_positions(ComputeBuilder& b, const Buffer& x, int64_t axis, const Expr& k, bool descending);

}  // namespace relaxc
