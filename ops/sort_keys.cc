#include "ops/sort_keys.h"

#include <limits>

#include "ir/op_names.h"

namespace relaxc {

constexpr int64_t kPositions = int64_t{1} << 32;

bool has_sort_key(DType dtype, const Expr& dim) {
  return (dtype.is_float() || dtype.is_integral()) && dtype.bits <= 32 && as_int(dim).value_or(0) < kPositions;
}

// The bits of a float without its sign grow with its magnitude. Those of negative ones are turned around, and -0 and
// all NaNs become one number each.
static Expr ordered_bits(const Expr& element) {
  const Expr x = cast_to(element, kFloat32), none = float_imm(0, kFloat32);
  Expr bits = intrinsic(ops::kReinterpret, {select(equal(x, none), none, x)}, kInt32);
  Expr magnitude = int_imm(0x7fffffff, kInt32), nan = int_imm(0x7fc00000, kInt32);
  Expr sign = binary(BinaryOp::kShiftRight, bits, int_imm(31, kInt32));
  bits = binary(BinaryOp::kBitXor, bits, binary(BinaryOp::kBitAnd, sign, magnitude));
  return select(intrinsic(ops::kScalarIsNan, {x}, kBool), nan, bits);
}

Expr sort_key(const Expr& element, const Expr& position, bool descending) {
  Expr order = cast_to(dtype_of(element).is_float() ? ordered_bits(element) : element, kInt64);
  if (dtype_of(element) == DType::uint(32)) order = order + int_imm(std::numeric_limits<int32_t>::min());
  if (descending) order = int_imm(-1) - order;
  return order * int_imm(kPositions) + position;
}

Expr position_of_key(const Expr& key) { return binary(BinaryOp::kBitAnd, key, int_imm(kPositions - 1)); }

Expr behind_equal_keys(const Expr& key) { return binary(BinaryOp::kBitOr, key, int_imm(kPositions - 1)); }

namespace {

constexpr int64_t kRun = 32;  // keys that are sorted by counting, for each one, those that come before it

// A merge sort of the keys along one row of `keys`, from runs that vectors have sorted.
struct KeySort {
  Buffer keys, merged;
  std::function<std::vector<Expr>(const Expr& along)> place;
  Expr n;

  Stmt run() const {
    LocalScalar width("width", kInt64);
    VarRef number = make_dim("run"), copy = make_dim("copy");
    Expr runs = floor_div(n + width.get() * 2 - 1, width.get() * 2);
    Stmt pass = seq({loop(number, runs, merge_runs(number * 2 * width.get(), width.get())),
                     loop(copy, n, set(keys, copy, get(merged, copy))), width.set(width.get() * 2)});
    return seq({width.declared(), sort_runs(), width.set(int_imm(kRun)), make(While{width.get() < n, pass})});
  }

 private:
  Expr get(const Buffer& from, const Expr& along) const { return load(from, place(along)); }
  Stmt set(const Buffer& to, const Expr& along, const Expr& key) const { return store(to, key, place(along)); }

  // Sorts each run by the ranks of its keys, all of which differ. The last run may be short: the places it lacks hold a
  // number above all keys.
  Stmt sort_runs() const {
    auto local = [](const char* name) { return make_buffer(name, kInt64, {int_imm(kRun)}, "local"); };
    Buffer own = local("own"), rank = local("rank");
    VarRef number = make_dim("run"), fill = make_dim("fill"), other = make_dim("other"), first = make_dim("first"),
           lane = make_dim("lane"), put = make_dim("put"), start = make_dim("start");
    Expr key = if_then_else(start + fill < n, get(keys, start + fill), highest(kInt64));
    Stmt count = store(
        rank, load(rank, {lane}) + select(load(own, {other}) < load(own, {lane}), int_imm(1), int_imm(0)), {lane});
    Stmt place_one = when(start + put < n, set(keys, start + load(rank, {put}), load(own, {put})));
    Stmt sort_run = seq({make(Bind{start, number * kRun}), loop(fill, int_imm(kRun), store(own, key, {fill})),
                         loop(first, int_imm(kRun), store(rank, int_imm(0), {first}), ForKind::kVectorized),
                         loop(other, int_imm(kRun), loop(lane, int_imm(kRun), count, ForKind::kVectorized)),
                         loop(put, int_imm(kRun), place_one)});
    return seq({make(AllocBuffer{own, {}}), make(AllocBuffer{rank, {}}),
                loop(number, floor_div(n + kRun - 1, kRun), sort_run)});
  }

  // Merges two neighbouring runs: without a branch while both have keys, which come in no order that could be guessed.
  Stmt merge_runs(const Expr& low, const Expr& width) const {
    LocalScalar left("left", kInt64), right("right", kInt64), to("to", kInt64);
    VarRef begin = make_dim("low"), middle = make_dim("middle"), high = make_dim("high"), a = make_dim("a"),
           c = make_dim("c"), is_right = make_var("is_right", prim_type(kBool)), rest = make_dim("rest"),
           more = make_dim("more");
    Expr from_right = cast_to(is_right, kInt64);
    Stmt take = seq({make(Bind{a, get(keys, left.get())}), make(Bind{c, get(keys, right.get())}),
                     make(Bind{is_right, Expr(c) < Expr(a)}), set(merged, to.get(), min(a, c)),
                     left.set(left.get() + 1 - from_right), right.set(right.get() + from_right), to.set(to.get() + 1)});
    auto copy_rest = [&](const VarRef& k, const LocalScalar& from, const Expr& end) {
      return seq({loop(k, end - from.get(), set(merged, to.get() + k, get(keys, from.get() + k))),
                  to.set(to.get() + end - from.get())});
    };
    return seq({make(Bind{begin, low}), make(Bind{middle, min(begin + width, n)}),
                make(Bind{high, min(begin + width * 2, n)}), left.declared(), right.declared(), to.declared(),
                left.set(begin), right.set(middle), to.set(begin),
                make(While{left.get() < middle && right.get() < high, take}), copy_rest(rest, left, middle),
                copy_rest(more, right, high)});
  }
};

}  // namespace

Stmt sort_row(const Buffer& keys, const Buffer& scratch, const std::function<std::vector<Expr>(const Expr&)>& place,
              const Expr& n) {
  return KeySort{keys, scratch, place, n}.run();
}

Buffer sorted_keys(ComputeBuilder& b, const Buffer& x, int64_t axis, bool descending) {
  const std::vector<Expr>& shape = buffer_type(x).shape;
  Buffer keys = b.buffer("keys", kInt64, shape), merged = b.buffer("merged", kInt64, shape);
  b.block("merge_sort", without_item(shape, axis), {}, [&](Axes i, Axes) {
    auto place = [=](const Expr& along) { return with_new_item(i, axis, along); };
    VarRef fill = make_dim("fill");
    Stmt make_keys =
        loop(fill, shape[axis], store(keys, sort_key(load(x, place(fill)), fill, descending), place(fill)));
    return ComputeBuilder::Bodies{std::nullopt, seq({make_keys, sort_row(keys, merged, place, shape[axis])})};
  });
  return keys;
}

}  // namespace relaxc
