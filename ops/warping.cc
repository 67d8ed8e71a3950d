// Dynamic time warping: the cheapest way through a matrix of costs, from its first element to its last one.
#include <limits>

#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/fold.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

enum Step : int8_t { kBoth = 0, kRow = 1, kColumn = 2 };  // what the last step to an element has moved along

Type infer_warp_path(const OpCall& op) {
  if (op.rank(0) != 2) op.fail("the costs have rank {}, expected 2", op.rank(0));
  kFloats.check(op, op.dtype(0));
  return tensor_type({int_imm(2), op.run_size(0)}, kInt32);
}
// The most steps that a path has.
Expr longest_path(const OpCall& op) { return simplify(op.shape(0)[0] + op.shape(0)[1]); }
std::vector<Type> infer_steps_back(const OpCall& op) { return {tensor_type({int_imm(2), longest_path(op)}, kInt32)}; }

// Returns the loops that give each element, which a border precedes, the least cost of a path to it and its last step.
Stmt least_costs(const Buffer& x, const Buffer& cost, const Buffer& trace, const std::vector<Expr>& shape) {
  DType dtype = buffer_type(cost).dtype;
  auto real = [&](double value) { return float_imm(value, dtype); };
  auto step = [](Step kind) { return int_imm(kind, DType::int_(8)); };
  return loop_nest({simplify(shape[0] + 1), simplify(shape[1] + 1)}, [&](Axes i) {
    auto arrive = [&](const Expr& total, const Expr& kind) {
      return seq({store(cost, total, {i[0], i[1]}), store(trace, kind, {i[0], i[1]})});
    };
    VarRef both = make_var("both", prim_type(dtype)), row = make_var("row", prim_type(dtype)),
           column = make_var("column", prim_type(dtype)), own = make_var("own", prim_type(dtype));
    Expr is_both = both < row && both < column, is_row = row < both && row < column;
    Stmt inner = seq({make(Bind{both, load(cost, {i[0] - 1, i[1] - 1})}), make(Bind{row, load(cost, {i[0] - 1, i[1]})}),
                      make(Bind{column, load(cost, {i[0], i[1] - 1})}),
                      make(Bind{own, cast_to(load(x, {i[0] - 1, i[1] - 1}), dtype)}),
                      arrive(own + select(is_both, both, select(is_row, row, column)),
                             select(is_both, step(kBoth), select(is_row, step(kRow), step(kColumn))))});
    Expr is_first = equal(i[0], int_imm(0)) && equal(i[1], int_imm(0));
    Stmt border = arrive(select(is_first, real(0), real(std::numeric_limits<double>::infinity())),
                         select(equal(i[0], int_imm(0)), step(kColumn), step(kRow)));
    return make(IfThenElse{equal(i[0], int_imm(0)) || equal(i[1], int_imm(0)), border, inner});
  });
}

// Counts the steps of the path, and leaves them from the last one back.
PrimFuncRef count_steps(const OpCall& op) {
  auto [b, inputs] = OpProgram(op);
  const std::vector<Expr>& shape = op.shape(0);
  const std::vector<Expr> bordered = {simplify(shape[0] + 1), simplify(shape[1] + 1)};
  const DType dtype = accumulation_dtype(op.dtype(0)), narrow = kInt32;
  Buffer cost = b.buffer("cost", dtype, bordered), trace = b.buffer("trace", DType::int_(8), bordered);
  Buffer steps = b.buffer("T_steps", kInt64, {int_imm(1)}),
         back = b.buffer("T_back", narrow, {int_imm(2), longest_path(op)});
  Buffer where = b.buffer("where", kInt64, {int_imm(2)});
  const Expr row = load(where, {int_imm(0)}), column = load(where, {int_imm(1)}), number = load(steps, {int_imm(0)});
  VarRef kind = make_var("kind", prim_type(kInt64)), k = make_dim("k");
  Stmt take =
      seq({store(back, cast_to(row - 1, narrow), {int_imm(0), number}),
           store(back, cast_to(column - 1, narrow), {int_imm(1), number}), store(steps, number + 1, {int_imm(0)}),
           make(Bind{kind, cast_to(load(trace, {row, column}), kInt64)}),
           store(where, row - select(equal(kind, int_imm(kColumn)), int_imm(0), int_imm(1)), {int_imm(0)}),
           store(where, column - select(equal(kind, int_imm(kRow)), int_imm(0), int_imm(1)), {int_imm(1)})});
  Stmt walk_back =
      loop(k, longest_path(op), make(IfThenElse{row > int_imm(0) || column > int_imm(0), take, std::nullopt}));
  b.extern_block("warp",
                 seq({least_costs(inputs[0], cost, trace, shape), store(where, shape[0], {int_imm(0)}),
                      store(where, shape[1], {int_imm(1)}), store(steps, int_imm(0), {int_imm(0)}), walk_back}));
  return b.finish({steps, back});
}
// Turns the steps around. A number of steps that was not counted reads nothing beyond them.
PrimFuncRef fill_warp_path(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  const Buffer back = x[1];
  const Expr steps = op.run_size(0), longest = longest_path(op);
  return b.finish({b.compute("T_path", kInt32, {int_imm(2), steps}, [&](Axes i) {
    Expr at = steps - 1 - i[1];
    return if_then_else(at < longest, load(back, {i[0], at}), int_imm(0, kInt32));
  })});
}

}  // namespace

std::vector<OpRow> warping_ops() {
  return {{.name = "relax.dyn.warp_path",
           .doc = "the cheapest path through a matrix of costs (dynamic time warping): its rows, and its columns",
           .inputs = {{"costs", "matrix of floats"}},
           .infer = infer_warp_path,
           .infer_partial = [](const OpCall&) { return tensor_type_of_rank(2, kInt32); },
           .legalize = fill_warp_path,
           .sizes = RunSizes{.names = {"steps"},
                             .count = count_steps,
                             .left = {{"back", "the steps from the last one back"}},
                             .infer_left = infer_steps_back}}};
}

}  // namespace relaxc
