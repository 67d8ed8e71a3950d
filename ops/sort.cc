// Sorts along an axis. A bottom-up merge sort (stable; n log n; scratch of two int64 per element), of keys or, where
// elements have none (sort_keys.h), of positions, gives the positions from which sort, argsort and unique take their
// results; topk takes those of a selection unless it wants most of the elements. NaN sorts as the largest value, as in
// numpy.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/builder.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/heap.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/sort.h"
#include "ops/sort_keys.h"

namespace relaxc {

Expr precedes(const Expr& b, const Expr& a, bool descending) {
  Expr result = descending ? b > a : b < a;
  if (!dtype_of(a).is_float()) return result;
  auto is_nan = [](const Expr& x) { return intrinsic(ops::kScalarIsNan, {x}, kBool); };
  return result || (descending ? is_nan(b) && !is_nan(a) : !is_nan(b) && is_nan(a));
}

namespace {

// Tells whether what stands at position b must come before what stands at a, and the statements that find it out.
struct Comparison {
  std::vector<Stmt> statements;
  Expr comes_before;
};
using Compare = std::function<Comparison(const std::vector<Expr>& b, const std::vector<Expr>& a)>;

// Returns the positions along `axis` in sorted order. The other axes of the shape are sorted independently.
Buffer sorted_positions(ComputeBuilder& b, const std::vector<Expr>& shape, int64_t axis, const Compare& compare) {
  Expr n = shape[axis];
  Buffer order = b.buffer("order", kInt64, shape), merged = b.buffer("merged", kInt64, shape);
  b.block("merge_sort", without_item(shape, axis), {}, [&](Axes i, Axes) {
    auto position = [&](const Expr& along) { return with_new_item(i, axis, along); };
    auto local = [](const char* name) { return make_buffer(name, kInt64, {int_imm(1)}, "local"); };
    auto get = [](const Buffer& scalar) { return load(scalar, {int_imm(0)}); };
    auto set = [](const Buffer& scalar, const Expr& value) { return store(scalar, value, {int_imm(0)}); };
    Buffer width = local("width"), left = local("left"), right = local("right");
    VarRef fill = make_dim("fill"), run = make_dim("run"), k = make_dim("k"), copy = make_dim("copy");
    VarRef low = make_dim("low"), middle = make_dim("middle"), high = make_dim("high");
    VarRef a = make_dim("a"), c = make_dim("c"), from_right = make_var("from_right", prim_type(kBool));
    Expr last = n - 1;
    Comparison right_first = compare(position(c), position(a));
    std::vector<Stmt> merge_one = {make(Bind{a, load(order, position(min(get(left), last)))}),
                                   make(Bind{c, load(order, position(min(get(right), last)))})};
    merge_one.insert(merge_one.end(), right_first.statements.begin(), right_first.statements.end());
    merge_one.push_back(make(Bind{from_right, get(right) < high && (get(left) >= middle || right_first.comes_before)}));
    merge_one.push_back(store(merged, select(from_right, c, a), position(low + k)));
    merge_one.push_back(make(IfThenElse{from_right, set(right, get(right) + 1), set(left, get(left) + 1)}));
    Stmt merge_run = seq({
        make(Bind{low, run * 2 * get(width)}),
        make(Bind{middle, min(low + get(width), n)}),
        make(Bind{high, min(low + get(width) * 2, n)}),
        set(left, low),
        set(right, middle),
        loop(k, high - low, seq(merge_one)),
    });
    Expr runs = floor_div(n + get(width) * 2 - 1, get(width) * 2);
    Stmt pass = seq({
        loop(run, runs, merge_run),
        loop(copy, n, store(order, load(merged, position(copy)), position(copy))),
        set(width, get(width) * 2),
    });
    Stmt body = seq({
        make(AllocBuffer{width, {}}),
        make(AllocBuffer{left, {}}),
        make(AllocBuffer{right, {}}),
        loop(fill, n, store(order, fill, position(fill))),
        set(width, int_imm(1)),
        make(While{get(width) < n, pass}),
    });
    return ComputeBuilder::Bodies{std::nullopt, body};
  });
  return order;
}
}  // namespace

Buffer sorted_positions(ComputeBuilder& b, const Buffer& x, int64_t axis, bool descending) {
  const std::vector<Expr>& shape = buffer_type(x).shape;
  if (has_sort_key(buffer_type(x).dtype, shape[axis])) {
    Buffer keys = sorted_keys(b, x, axis, descending);
    return b.compute("order", kInt64, shape, [&](Axes i) { return position_of_key(at(keys, i)); });
  }
  return sorted_positions(b, buffer_type(x).shape, axis, [&](const auto& second, const auto& first) {
    return Comparison{{}, precedes(load(x, second), load(x, first), descending)};
  });
}

namespace {

// ---- Distinct rows

// Compares two rows of a matrix from left to right: 1 where row b comes before row a, -1 where it comes after, else 0.
Comparison compare_rows(const Buffer& x, const Expr& b, const Expr& a, const Buffer& outcome) {
  const Expr& columns = buffer_type(x).shape[1];
  if (is_int(columns, 1)) return {{}, precedes(load(x, {b, int_imm(0)}), load(x, {a, int_imm(0)}), false)};
  VarRef k = make_dim("column");
  Expr mine = load(x, {b, k}), other = load(x, {a, k}), found = load(outcome, {int_imm(0)});
  Expr difference =
      select(precedes(mine, other, false), int_imm(1), select(precedes(other, mine, false), int_imm(-1), int_imm(0)));
  Stmt scan = loop(k, columns,
                   make(IfThenElse{equal(found, int_imm(0)), store(outcome, difference, {int_imm(0)}), std::nullopt}));
  return {{make(AllocBuffer{outcome, {}}), store(outcome, int_imm(0), {int_imm(0)}), scan}, found > int_imm(0)};
}
// The flags and the axis of unique are constants; without an axis the elements are compared.
struct UniqueCall {
  bool flags[4];  // sorted, and which of positions, numbers and counts are results
  std::optional<int64_t> axis;
};
UniqueCall read_unique(const OpCall& op) {
  auto constant = [&](size_t i) {
    auto known = as_int(op.arg(i));
    if (!known) op.fail("argument {} must be a constant", i);
    return *known;
  };
  UniqueCall result{{true, false, false, false}, {}};
  for (size_t i = 1; i < std::min<size_t>(op.size(), 5); ++i) result.flags[i - 1] = constant(i) != 0;
  if (op.size() > 5) result.axis = normalize_axis(op, constant(5), op.rank(0));
  return result;
}
// Returns how many elements, or slices along the axis, are compared.
Expr number_of_rows(const OpCall& op, const UniqueCall& call) {
  return call.axis ? op.shape(0)[static_cast<size_t>(*call.axis)] : simplify(product(op.shape(0)));
}
Type infer_unique(const OpCall& op) {
  UniqueCall call = read_unique(op);
  const Expr& number = op.run_size(0);
  std::vector<Expr> shape = {number};
  if (call.axis) shape = with_item(op.shape(0), *call.axis, number);
  std::vector<Type> results = {tensor_type(std::move(shape), op.dtype(0))};
  for (size_t i = 1; i < 4; ++i) {
    if (call.flags[i]) results.push_back(tensor_type({i == 2 ? number_of_rows(op, call) : number}, kInt64));
  }
  return results.size() == 1 ? results[0] : tuple_type(std::move(results));
}
std::vector<Type> infer_distinct(const OpCall& op) {
  return std::vector<Type>(3, tensor_type({number_of_rows(op, read_unique(op))}, kInt64));
}

// Copies what is compared to the rows of a matrix.
Buffer compared_rows(ComputeBuilder& b, const OpCall& op, const UniqueCall& call, const Buffer& x) {
  const std::vector<Expr>& shape = op.shape(0);
  std::vector<Expr> others;
  if (call.axis) others = without_item(shape, *call.axis);
  return b.compute("rows", op.dtype(0), {number_of_rows(op, call), simplify(product(others))}, [&](Axes i) {
    if (!call.axis) return load(x, unflatten_index(i[0], shape));
    return load(x, with_new_item(unflatten_index(i[1], others), *call.axis, i[0]));
  });
}
// Gives each distinct row, in place of its number in the order of rows, the one in the order of first positions.
void number_by_position(ComputeBuilder& b, const Expr& rows, const Expr& count, const Buffer& first,
                        const Buffer& inverse, const Buffer& counts) {
  Buffer place = b.buffer("place", kInt64, {rows}), by_place = b.buffer("by_place", kInt64, {rows});
  Buffer ordered = b.buffer("ordered", kInt64, {rows}), next = b.buffer("next", kInt64, {int_imm(1)});
  VarRef i = make_dim("i"), j = make_dim("j"), c = make_dim("c");
  Expr mine = load(inverse, {i}), at_next = load(next, {int_imm(0)});
  Stmt meet = seq({store(place, at_next, {mine}), store(by_place, i, {at_next}),
                   store(ordered, load(counts, {mine}), {at_next}), store(next, at_next + 1, {int_imm(0)})});
  Stmt number_rows = loop(i, rows, make(IfThenElse{equal(load(first, {mine}), i), meet, std::nullopt}));
  Stmt rename = loop(j, rows, store(inverse, load(place, {load(inverse, {j})}), {j}));
  Stmt copy = loop(c, count, seq({store(first, load(by_place, {c}), {c}), store(counts, load(ordered, {c}), {c})}));
  b.extern_block("by_position", seq({store(next, int_imm(0), {int_imm(0)}), number_rows, rename, copy}));
}
// Finds how many rows are distinct; the first position of each, for each row its number among them, and how often each
// occurs. As many elements of the second and the last result count as there are distinct rows.
PrimFuncRef count_distinct(const OpCall& op) {
  UniqueCall call = read_unique(op);
  auto [b, inputs] = OpProgram(op);
  const Buffer x = compared_rows(b, op, call, inputs[0]);
  const Expr rows = buffer_type(x).shape[0];
  auto outcome = [] { return make_buffer("outcome", kInt64, {int_imm(1)}, "local"); };
  Buffer order = sorted_positions(b, {rows}, 0, [&](const auto& second, const auto& first) {
    return compare_rows(x, second[0], first[0], outcome());
  });
  Buffer number = b.buffer("T_number", kInt64, {int_imm(1)}), first = b.buffer("T_first", kInt64, {rows});
  Buffer inverse = b.buffer("T_inverse", kInt64, {rows}), counts = b.buffer("T_counts", kInt64, {rows});
  Expr count = load(number, {int_imm(0)}), last = count - 1;
  // Equal rows follow each other, the first one in front, since the sort is stable.
  VarRef k = make_dim("k"), row = make_dim("row"), before = make_dim("before");
  Comparison is_larger = compare_rows(x, before, row, outcome());
  std::vector<Stmt> step = {make(Bind{row, load(order, {k})}),
                            make(Bind{before, load(order, {max(k - 1, int_imm(0))})})};
  step.insert(step.end(), is_larger.statements.begin(), is_larger.statements.end());
  Stmt start =
      seq({store(first, row, {count}), store(counts, int_imm(0), {count}), store(number, count + 1, {int_imm(0)})});
  step.push_back(make(IfThenElse{equal(k, int_imm(0)) || is_larger.comes_before, start, std::nullopt}));
  step.push_back(store(counts, load(counts, {last}) + 1, {last}));
  step.push_back(store(inverse, last, {row}));
  b.extern_block("distinct", seq({store(number, int_imm(0), {int_imm(0)}), loop(k, rows, seq(step))}));
  if (!call.flags[0]) number_by_position(b, rows, count, first, inverse, counts);
  return b.finish({number, first, inverse, counts});
}
// Takes the distinct rows from their first positions. A size or a position that was not counted reads nothing.
PrimFuncRef fill_unique(const OpCall& op) {
  UniqueCall call = read_unique(op);
  auto [b, x] = OpProgram(op);
  const Buffer data = x[0], first = x[1], inverse = x[2], counts = x[3];
  const std::vector<Expr>& shape = op.shape(0);
  const Expr rows = number_of_rows(op, call), number = op.run_size(0);
  auto element_of = [&](const Buffer& of, const Expr& i) { return if_then_else(i < rows, load(of, {i}), int_imm(0)); };
  std::vector<Expr> values = {number};
  if (call.axis) values = with_item(shape, *call.axis, number);
  std::vector<Buffer> results = {b.compute("T_unique", op.dtype(0), values, [&](Axes i) {
    const Expr& k = i[static_cast<size_t>(call.axis.value_or(0))];
    Expr at = max(min(element_of(first, k), rows - 1), int_imm(0));
    Expr element = load(data, call.axis ? with_item(i, *call.axis, at) : unflatten_index(at, shape));
    return if_then_else(k < rows, element, zero(op.dtype(0)));
  })};
  auto add = [&](const char* name, const Expr& size, const Buffer& of) {
    results.push_back(b.compute(name, kInt64, {size}, [&](Axes i) { return element_of(of, i[0]); }));
  };
  if (call.flags[1]) add("T_positions", number, first);
  if (call.flags[2]) add("T_numbers", rows, inverse);
  if (call.flags[3]) add("T_occurrences", number, counts);
  return b.finish(results);
}

// ---- Sorts

// sort, argsort and topk differ in how many elements they take and in which results they give. Each is a topk; a k
// below 1 stands for all elements.
TopKAttrs sort_attrs(const OpCall& op) {
  SortAttrs attrs = op.attrs<SortAttrs>();
  return {.k = 0, .axis = attrs.axis, .ret_type = "values", .largest = attrs.descending};
}
TopKAttrs argsort_attrs(const OpCall& op) {
  ArgsortAttrs attrs = op.attrs<ArgsortAttrs>();
  return {.k = 0, .axis = attrs.axis, .ret_type = "indices", .largest = attrs.descending, .dtype = attrs.dtype};
}
// topk has k as an attribute, and dyn.topk has it as an argument.
TopKAttrs topk_attrs(const OpCall& op) {
  TopKAttrs attrs = op.attrs<TopKAttrs>();
  if (op.size() > 1) attrs.dtype = op.attrs<DynamicTopKAttrs>().dtype;
  return attrs;
}
int64_t sorted_axis(const OpCall& op, const TopKAttrs& attrs) {
  if (op.rank(0) == 0) op.fail("expected at least one axis, got a scalar");
  return normalize_axis(op, attrs.axis, op.rank(0));
}
std::vector<Expr> sorted_shape(const OpCall& op, const TopKAttrs& attrs) {
  int64_t axis = sorted_axis(op, attrs);
  const Expr& dim = op.shape(0)[axis];
  if (op.size() > 1) require_scalar(op, 1);
  Expr k = op.size() > 1 ? op.arg(1) : attrs.k < 1 ? dim : int_imm(attrs.k);
  op.require_at_most(int_imm(0), k, "k is negative");
  op.require_at_most(k, dim, fmt::format("k is larger than axis {}", axis));
  return with_item(op.shape(0), axis, k);
}
template <TopKAttrs (*attrs_of)(const OpCall&)>
Type infer_sorted(const OpCall& op) {
  TopKAttrs attrs = attrs_of(op);
  std::vector<Expr> shape = sorted_shape(op, attrs);
  Type indices = tensor_type(shape, attrs.dtype);
  if (attrs.ret_type == "indices") return indices;
  Type values = tensor_type(shape, op.dtype(0));
  return attrs.ret_type == "values" ? values : tuple_type({values, indices});
}
// Returns whether sorting all elements is less work than a selection: where nearly all of them, or all, are wanted.
bool wants_most(const Expr& k, const Expr& dim) {
  std::optional<int64_t> wanted = as_int(k), all = as_int(dim);
  if (wanted && all) return *wanted > *all / 4;
  return is_int(simplify(dim - k), 0);
}
template <TopKAttrs (*attrs_of)(const OpCall&)>
PrimFuncRef lower_sorted(const OpCall& op) {
  TopKAttrs attrs = attrs_of(op);
  int64_t axis = sorted_axis(op, attrs);
  std::vector<Expr> shape = sorted_shape(op, attrs);
  auto [b, x] = OpProgram(op);
  Buffer order = wants_most(shape[axis], op.shape(0)[axis])
                     ? sorted_positions(b, x[0], axis, attrs.largest)
                     : selected_positions(b, x[0], axis, shape[axis], attrs.largest);
  auto value = [&](Axes i) { return load(x[0], with_item(i, axis, at(order, i))); };
  auto index = [&](Axes i) { return cast_to(at(order, i), attrs.dtype); };
  std::vector<Buffer> results;
  if (attrs.ret_type != "indices") results.push_back(b.compute("T_values", op.dtype(0), shape, value));
  if (attrs.ret_type != "values") results.push_back(b.compute("T_indices", attrs.dtype, shape, index));
  return b.finish(results);
}

// ---- References. A NaN is the largest value, and equal elements keep their order.

using reference::Tensors, reference::element, reference::moved, reference::with_position;
using Index = reference::Index;

bool comes_before(double a, double b, bool descending) {
  if (std::isnan(a) || std::isnan(b)) return descending ? std::isnan(a) && !std::isnan(b) : !std::isnan(a);
  return descending ? a > b : a < b;
}
template <TopKAttrs (*attrs_of)(const OpCall&)>
Tensors in_order(const ReferenceCall& c) {
  Span nowhere;
  TopKAttrs attrs = attrs_of({c.call, nowhere});
  const Tensor& x = c.x[0];
  int64_t axis = attrs.axis < 0 ? attrs.axis + x.ndim() : attrs.axis;
  Index shape = x.shape();
  int64_t dim = std::exchange(shape[axis], attrs.k < 1 ? shape[axis] : attrs.k);
  auto position = [&](const Index& i) {
    Index order(static_cast<size_t>(dim));
    auto value = [&](int64_t p) { return element(x, with_position(i, axis, p)); };
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order,
                             [&](int64_t a, int64_t b) { return comes_before(value(a), value(b), attrs.largest); });
    return order[i[axis]];
  };
  Tensor values = moved(x, shape, [&](const Index& i) { return with_position(i, axis, position(i)); });
  if (attrs.ret_type == "values") return {values};
  Tensor indices = reference::tensor_of(shape, attrs.dtype, [&](const Index& i) { return position(i); });
  return attrs.ret_type == "indices" ? Tensors{indices} : Tensors{values, indices};
}

}  // namespace

std::vector<OpRow> sort_ops() {
  return {
      {.name = "relax.sort",
       .doc = "elements in order along an axis; stable, NaN last in ascending order",
       .inputs = {{"data", "the tensor"}},
       .attrs = op_attrs<SortAttrs>(),
       .infer = infer_sorted<sort_attrs>,
       .legalize = lower_sorted<sort_attrs>,
       .reference = in_order<sort_attrs>},
      {.name = "relax.argsort",
       .doc = "the positions that sort an axis; stable",
       .inputs = {{"data", "the tensor"}},
       .attrs = op_attrs<ArgsortAttrs>(),
       .infer = infer_sorted<argsort_attrs>,
       .infer_partial = infer_stated_dtype,
       .legalize = lower_sorted<argsort_attrs>,
       .reference = in_order<argsort_attrs>},
      {.name = "relax.topk",
       .doc = "the k largest (or smallest) elements of an axis in order, and their positions",
       .inputs = {{"data", "the tensor"}},
       .attrs = with_choices(op_attrs<TopKAttrs>(), "ret_type", {"both", "values", "indices"}),
       .infer = infer_sorted<topk_attrs>,
       .infer_partial = infer_unknown,
       .legalize = lower_sorted<topk_attrs>,
       .reference = in_order<topk_attrs>},
      {.name = "relax.dyn.topk",
       .doc = "topk of a k that may be symbolic",
       .inputs = {{"data", "the tensor"}, {"k", "int64 scalar"}},
       .attrs = op_attrs<DynamicTopKAttrs>(),
       .infer = infer_sorted<topk_attrs>,
       .infer_partial = infer_unknown,
       .legalize = lower_sorted<topk_attrs>},
      {.name = "relax.unique",
       .doc = "the distinct elements, and on demand their first positions, each element's index among them, and counts",
       .inputs = {{"x", "the tensor"},
                  {"sorted", "bool scalar", OpInput::Arity::kOptional},
                  {"return_index", "bool scalar", OpInput::Arity::kOptional},
                  {"return_inverse", "bool scalar", OpInput::Arity::kOptional},
                  {"return_counts", "bool scalar", OpInput::Arity::kOptional},
                  {"axis", "of the slices that differ; the flattened tensor otherwise", OpInput::Arity::kOptional}},
       .infer = infer_unique,
       .infer_partial = infer_unknown,
       .legalize = fill_unique,
       .sizes = RunSizes{.names = {"distinct"},
                         .count = count_distinct,
                         .left = {{"first", "the first position of each distinct row"},
                                  {"inverse", "the number of each row among them"},
                                  {"counts", "how often each occurs"}},
                         .infer_left = infer_distinct}},
  };
}

}  // namespace relaxc
