// A heap of positions as statements, and the selection of the first k elements with a heap of k: n log k steps at most,
// and hardly more than n where the elements have no order.
#include "ops/heap.h"

#include "ops/sort.h"

namespace relaxc {

Stmt PositionHeap::declared() const { return seq({hole_.declared(), child_.declared(), item_.declared()}); }

Stmt PositionHeap::sift_down(const Expr& slot, const Expr& size) const {
  VarRef left = make_dim("left"), right = make_dim("right"), best = make_dim("best");
  VarRef is_right = make_var("is_right", prim_type(kBool));
  Stmt rise = seq(
      {set(hole_.get(), best), hole_.set(child_.get() + cast_to(is_right, kInt64)), child_.set(hole_.get() * 2 + 1)});
  Stmt step = seq({make(Bind{left, get(child_.get())}), make(Bind{right, get(min(child_.get() + 1, size - 1))}),
                   make(Bind{is_right, comes_before_(right, left)}), make(Bind{best, select(is_right, right, left)}),
                   make(IfThenElse{comes_before_(best, item_.get()), rise, child_.set(size)})});
  return seq({hole_.set(slot), item_.set(get(slot)), child_.set(slot * 2 + 1), make(While{child_.get() < size, step}),
              set(hole_.get(), item_.get())});
}

Stmt PositionHeap::build(const Expr& size) const {
  VarRef parent = make_dim("parent");
  Expr parents = floor_div(size, 2);
  return loop(parent, parents, sift_down(parents - 1 - parent, size));
}

// The root is the last of the k positions that are the first so far: each element that comes before it takes its place.
// In the end the roots leave the heap from the last to the first.
Buffer selected_positions(ComputeBuilder& b, const Buffer& x, int64_t axis, const Expr& k, bool descending) {
  const std::vector<Expr>& shape = buffer_type(x).shape;
  const Expr& n = shape[axis];
  Buffer order = b.buffer("order", kInt64, with_item(shape, axis, k));
  b.block("select", without_item(shape, axis), {}, [&](Axes i, Axes) {
    auto place = [=](const Expr& along) { return with_new_item(i, axis, along); };
    auto value = [=](const Expr& position) { return load(x, place(position)); };
    PositionHeap heap(order, place, [=](const Expr& a, const Expr& c) {
      Expr is_later = precedes(value(c), value(a), descending), is_earlier = precedes(value(a), value(c), descending);
      return is_later || (!is_earlier && a > c);
    });
    LocalScalar bound("bound", dtype_of(value(int_imm(0))));
    VarRef fill = make_dim("fill"), more = make_dim("more"), round = make_dim("round"), first = make_dim("first");
    Expr root = heap.get(int_imm(0)), candidate = k + more, last = k - 1 - round;
    Stmt find_bound = bound.set(value(root));
    Stmt replace = seq({heap.set(int_imm(0), candidate), heap.sift_down(int_imm(0), k), find_bound});
    Stmt scan = loop(more, n - k, when(precedes(value(candidate), bound.get(), descending), replace));
    Stmt leave = seq({make(Bind{first, root}), heap.set(int_imm(0), heap.get(last)), heap.set(last, first),
                      heap.sift_down(int_imm(0), last)});
    Stmt body = seq({heap.declared(), bound.declared(), loop(fill, k, heap.set(fill, fill)), heap.build(k),
                     when(k > int_imm(0), seq({find_bound, scan, loop(round, k - 1, leave)}))});
    return ComputeBuilder::Bodies{std::nullopt, body};
  });
  return order;
}

}  // namespace relaxc
