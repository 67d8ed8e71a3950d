// A heap of positions as statements, and the selection of the first k elements with a heap of k. Of elements with sort
// keys most are passed over in groups, whose least keys vectors find.
#include "ops/heap.h"

#include "ir/op_names.h"
#include "ops/sort.h"
#include "ops/sort_keys.h"

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

namespace {

using Item = std::function<Expr(const Expr& position)>;
using Place = PositionHeap::Place;

// Selects the first k of n items in the order of `is_before`; `items` is as long, and holds the heap. Its root is the
// last of those that are the first so far: each item that comes before it takes its place.
class Selection {
 public:
  Selection(Buffer items, Place place, PositionHeap::Order is_before, Expr k)
      : is_before_(std::move(is_before)),
        k_(std::move(k)),
        heap_(std::move(items), std::move(place), [this](const Expr& a, const Expr& c) { return is_before_(c, a); }) {}
  Selection(const Selection&) = delete;
  Selection& operator=(const Selection&) = delete;

  Stmt declared() const { return seq({heap_.declared(), bound_.declared()}); }
  // Leaves a heap of the first k items, and its root in `bound`.
  Stmt run(const Item& item, const Expr& n) const {
    VarRef fill = make_dim("fill"), more = make_dim("more"), candidate = make_dim("candidate");
    Stmt find_bound = bound_.set(heap_.get(int_imm(0)));
    Stmt replace = seq({heap_.set(int_imm(0), candidate), heap_.sift_down(int_imm(0), k_), find_bound});
    Stmt consider = seq({make(Bind{candidate, item(k_ + more)}), when(is_before_(candidate, bound_.get()), replace)});
    return seq({loop(fill, k_, heap_.set(fill, item(fill))), heap_.build(k_), find_bound,
                loop(more, max(n - k_, int_imm(0)), consider)});
  }
  Expr bound() const { return bound_.get(); }
  // Brings the heap's items in order: the roots leave it from the last to the first.
  Stmt in_order() const {
    VarRef round = make_dim("round"), first = make_dim("first");
    Expr last = k_ - 1 - round;
    return loop(round, k_ - 1,
                seq({make(Bind{first, heap_.get(int_imm(0))}), heap_.set(int_imm(0), heap_.get(last)),
                     heap_.set(last, first), heap_.sift_down(int_imm(0), last)}));
  }

 private:
  PositionHeap::Order is_before_;
  Expr k_;
  PositionHeap heap_;
  LocalScalar bound_{"bound", kInt64};
};

// A row's elements as groups of kGroup, which lie as far apart as there are groups, so that vectors run along them.
constexpr int64_t kGroup = 16, kFewestGroups = 4;
Expr groups_of(const Expr& n) { return simplify(floor_div(n, kGroup)); }

// Returns whether a group's least key may be unknown: a NaN hides the other elements of its group where it comes last.
bool has_unknown_keys(DType dtype, bool descending) { return dtype.is_float() && !descending; }

// Adds the stages that tell of each group a key with its first element, if that is known, and a position that is not
// behind the element's own.
Buffer least_keys(ComputeBuilder& b, const Buffer& x, int64_t axis, bool descending) {
  const std::vector<Expr>& shape = buffer_type(x).shape;
  const DType dtype = buffer_type(x).dtype;
  const Expr count = groups_of(shape[axis]);
  const std::vector<Expr> groups = with_item(shape, axis, count);
  Buffer best = b.reduce("T_best", dtype, groups, {int_imm(kGroup)}, descending ? lowest(dtype) : highest(dtype),
                         descending ? combine_max : combine_min,
                         [&](Axes i, Axes r) { return load(x, with_item(i, axis, i[axis] + r[0] * count)); });
  return stored(b, "T_least", kInt64, groups, [&](Axes i) {
    Expr element = at(best, i), key = sort_key(element, i[axis], descending);
    if (!has_unknown_keys(dtype, descending)) return key;
    return select(intrinsic(ops::kScalarIsNan, {element}, kBool), lowest(kInt64), key);
  });
}

// The selection of the first k keys of each row, with its buffers.
struct KeyRows {
  Buffer keys;  // the result
  Expr n, k;
  std::optional<Buffer> least = {};  // of each group
  std::optional<Buffer> few = {};    // keys of candidates, and one that is not
  std::optional<Buffer> all = {}, scratch = {};

  // Returns the statements that select from a row.
  Stmt of_row(const Place& place, const Item& key) const {
    Selection selection(keys, place, [](const Expr& a, const Expr& c) { return a < c; }, k);
    Stmt result = seq({selection.run(key, n), selection.in_order()});
    if (few) {
      Expr has_groups = k <= groups_of(n);
      Stmt by_groups = from_groups(selection, place, key);
      result = is_int(simplify(has_groups), 1) ? by_groups : make(IfThenElse{has_groups, by_groups, result});
    }
    if (all) result = make(IfThenElse{k > floor_div(n, kMostSelected), sorted(place, key), result});
    return seq({selection.declared(), when(k > int_imm(0), result)});
  }
  static constexpr int64_t kMostSelected = 4;  // a quarter of the elements: of more all are sorted

 private:
  // There are k elements up to the k-th least one of groups, the bound: whatever their positions are, so those with an
  // equal element count, too. All are in groups whose least element is not behind the bound, or is unknown.
  Stmt from_groups(const Selection& selection, const Place& place, const Item& key) const {
    LocalScalar found("found", kInt64), bound("bound", kInt64);
    VarRef group = make_dim("group"), within = make_dim("within"), rest = make_dim("rest");
    const Expr count = groups_of(n);
    auto collect = [&](const Expr& position) {
      VarRef own = make_dim("own");
      return seq({make(Bind{own, key(position)}), store(*few, own, place(found.get())),
                  found.set(found.get() + cast_to(Expr(own) <= bound.get(), kInt64))});
    };
    Stmt of_group = loop(within, int_imm(kGroup), collect(group + within * count));
    Stmt of_rest = loop(rest, n - count * kGroup, collect(count * kGroup + rest));
    auto known_least = [&](const Expr& g) {
      Expr key_of_group = load(*least, place(g));
      return select(equal(key_of_group, lowest(kInt64)), highest(kInt64), key_of_group);
    };
    return seq({selection.run(known_least, count), found.declared(), bound.declared(), found.set(int_imm(0)),
                bound.set(behind_equal_keys(selection.bound())),
                loop(group, count, when(load(*least, place(group)) <= bound.get(), of_group)), of_rest,
                selection.run([&](const Expr& c) { return load(*few, place(c)); }, found.get()), selection.in_order()});
  }
  Stmt sorted(const Place& place, const Item& key) const {
    VarRef fill = make_dim("fill"), take = make_dim("take");
    return seq({loop(fill, n, store(*all, key(fill), place(fill))), sort_row(*all, *scratch, place, n),
                loop(take, k, store(keys, load(*all, place(take)), place(take)))});
  }
};

// Adds the stages of the first k keys of an axis, in order.
Buffer selected_keys(ComputeBuilder& b, const Buffer& x, int64_t axis, const Expr& k, bool descending) {
  const std::vector<Expr>& shape = buffer_type(x).shape;
  const Expr& n = shape[axis];
  const std::vector<Expr> result = with_item(shape, axis, k);
  auto key = [&](Axes i) { return sort_key(at(x, i), i[axis], descending); };
  if (is_int(k, 1)) {
    return b.reduce("T_first", kInt64, result, {n}, highest(kInt64), combine_min,
                    [&](Axes i, Axes r) { return key(with_item(i, axis, r[0])); });
  }
  KeyRows rows{.keys = b.buffer("keys", kInt64, result), .n = n, .k = k};
  auto known = as_int(n), wanted = as_int(k);
  const bool is_known = known && wanted;
  if (is_known ? *known >= kGroup * kFewestGroups && *wanted <= *known / kGroup : true) {
    rows.least = least_keys(b, x, axis, descending);
    rows.few = b.buffer("few", kInt64, with_item(shape, axis, simplify(n + 1)));
  }
  if (!is_known) {  // the run tells which way takes less
    rows.all = b.buffer("all", kInt64, shape);
    rows.scratch = b.buffer("merged", kInt64, shape);
  }
  b.block("select", without_item(shape, axis), {}, [&](Axes i, Axes) {
    auto place = [=](const Expr& along) { return with_new_item(i, axis, along); };
    return ComputeBuilder::Bodies{std::nullopt,
                                  rows.of_row(place, [&](const Expr& position) { return key(place(position)); })};
  });
  return rows.keys;
}

}  // namespace

Buffer selected_positions(ComputeBuilder& b, const Buffer& x, int64_t axis, const Expr& k, bool descending) {
  const std::vector<Expr>& shape = buffer_type(x).shape;
  const std::vector<Expr> result = with_item(shape, axis, k);
  if (has_sort_key(buffer_type(x).dtype, shape[axis])) {
    Buffer keys = selected_keys(b, x, axis, k, descending);
    return b.compute("order", kInt64, result, [&](Axes i) { return position_of_key(at(keys, i)); });
  }
  Buffer order = b.buffer("order", kInt64, result);
  b.block("select", without_item(shape, axis), {}, [&](Axes i, Axes) {
    auto place = [=](const Expr& along) { return with_new_item(i, axis, along); };
    auto value = [=](const Expr& position) { return load(x, place(position)); };
    auto by_value = [=](const Expr& a, const Expr& c) {
      Expr is_less = precedes(value(a), value(c), descending), is_more = precedes(value(c), value(a), descending);
      return is_less || (!is_more && a < c);
    };
    Selection selection(order, place, by_value, k);
    Stmt select =
        seq({selection.run([](const Expr& position) { return position; }, shape[axis]), selection.in_order()});
    return ComputeBuilder::Bodies{std::nullopt, seq({selection.declared(), when(k > int_imm(0), select)})};
  });
  return order;
}

}  // namespace relaxc
