// Matrix products and the determinant.
#include "ir/builder.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/fold.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace relaxc {

namespace {

// The shapes of numpy's matmul. An operand of rank 1 is a row (left) or a column (right), whose dim of 1 the result
// does not have.
struct MatmulShape {
  std::vector<Expr> batch;
  std::optional<Expr> rows, columns;
  Expr depth;

  std::vector<Expr> result() const {
    std::vector<Expr> dims = batch;
    if (rows) dims.push_back(*rows);
    if (columns) dims.push_back(*columns);
    return dims;
  }
};
MatmulShape matmul_shape(const OpCall& op) {
  const std::vector<Expr>&a = op.shape(0), &b = op.shape(1);
  if (a.empty() || b.empty()) op.fail("an operand is a scalar, expected at least rank 1");
  const Expr& depth_a = a.back();
  const Expr& depth_b = b.size() == 1 ? b[0] : b[b.size() - 2];
  op.require_equal(depth_a, depth_b, "the contracted dims differ");
  MatmulShape shape{{}, std::nullopt, std::nullopt, as_int(depth_b) ? depth_b : depth_a};
  auto batch_of = [](const std::vector<Expr>& dims) {
    return std::vector<Expr>(dims.begin(), dims.end() - std::min<int64_t>(2, std::ssize(dims)));
  };
  shape.batch = broadcast_shapes(op, batch_of(a), batch_of(b));
  if (a.size() > 1) shape.rows = a[a.size() - 2];
  if (b.size() > 1) shape.columns = b.back();
  return shape;
}
DType matmul_dtype(const OpCall& op) { return product_dtype(op, op.attrs<MatmulAttrs>().out_dtype); }
PrimFuncRef lower_matmul(const OpCall& op) {
  MatmulShape shape = matmul_shape(op);
  DType out_dtype = matmul_dtype(op), dtype = accumulation_dtype(out_dtype);
  auto [b, x] = OpProgram(op);
  // Batch axes broadcast; `inner` are the last one or two indices.
  auto element = [&](const Buffer& operand, Axes i, const std::vector<Expr>& inner) {
    const std::vector<Expr>& dims = buffer_type(operand).shape;
    size_t batch = dims.size() - inner.size(), skipped = shape.batch.size() - batch;
    std::vector<Expr> indices;
    for (size_t d = 0; d < batch; ++d) indices.push_back(is_int(dims[d], 1) ? int_imm(0) : i[skipped + d]);
    return cast_to(load(operand, followed_by(indices, inner)), dtype);
  };
  size_t row_at = shape.batch.size(), column_at = row_at + (shape.rows ? 1 : 0);
  auto product_at = [&](Axes i, Axes r) {
    std::vector<Expr> left = {r[0]}, right = {r[0]};
    if (shape.rows) left.insert(left.begin(), i[row_at]);
    if (shape.columns) right.push_back(i[column_at]);
    return element(x[0], i, left) * element(x[1], i, right);
  };
  Buffer out = b.reduce("matmul", dtype, shape.result(), {shape.depth}, zero(dtype), combine_sum, product_at);
  return b.finish({as_dtype(b, out, out_dtype, "matmul_cast")});
}

Type infer_det(const OpCall& op) {
  std::vector<Expr> shape = op.shape(0);
  if (shape.size() < 2) op.fail("expected at least rank 2, got {}", shape.size());
  kFloats.check(op, op.dtype(0));
  op.require_equal(shape[shape.size() - 2], shape.back(), "the matrices are not square");
  return tensor_type({shape.begin(), shape.end() - 2}, op.dtype(0));
}
// Computes the determinant by Gaussian elimination with row pivoting on a copy, one matrix per iteration of the batch.
PrimFuncRef lower_det(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  const std::vector<Expr>& shape = op.shape(0);
  Expr n = shape.back();
  std::vector<Expr> batch(shape.begin(), shape.end() - 2);
  DType dtype = accumulation_dtype(op.dtype(0));
  Buffer m = b.buffer("work", dtype, shape), out = b.buffer("T_det", dtype, batch);
  Buffer pivot = b.buffer("pivot", kInt64, batch), kept = b.buffer("kept", dtype, batch);
  b.block("T_det", batch, {}, [&](Axes i, Axes) {
    auto cell = [&](const Expr& r, const Expr& c) { return followed_by(i, {r, c}); };
    auto get = [&](const Expr& r, const Expr& c) { return load(m, cell(r, c)); };
    auto magnitude = [&](const Expr& v) { return intrinsic(ops::kScalarAbs, {v}, dtype); };
    VarRef r0 = make_dim("r"), c0 = make_dim("c"), k = make_dim("k"), p = make_dim("r"), s = make_dim("c");
    VarRef r1 = make_dim("r"), c1 = make_dim("c");
    Stmt copy = loop(r0, n, loop(c0, n, store(m, cast_to(load(x[0], cell(r0, c0)), dtype), cell(r0, c0))));
    Expr is_larger = magnitude(get(p + k + 1, k)) > magnitude(get(at(pivot, i), k));
    Stmt search = loop(p, n - 1 - k, when(is_larger, store(pivot, p + k + 1, i)));
    Stmt swap = loop(s, n,
                     seq({store(kept, get(k, s), i), store(m, get(at(pivot, i), s), cell(k, s)),
                          store(m, at(kept, i), cell(at(pivot, i), s))}));
    Stmt negate = store(out, at(out, i) * scalar_imm(-1, dtype), i);
    Expr below = r1 + k + 1, right = c1 + k + 1, factor = binary(BinaryOp::kDiv, get(below, k), get(k, k));
    Stmt subtract = store(m, get(below, right) - factor * get(k, right), cell(below, right));
    Stmt eliminate = loop(r1, n - 1 - k, loop(c1, n - 1 - k, subtract));
    Stmt step = seq({store(pivot, k, i), search, when(not_equal(at(pivot, i), k), seq({swap, negate})),
                     store(out, at(out, i) * get(k, k), i), when(not_equal(get(k, k), zero(dtype)), eliminate)});
    return ComputeBuilder::Bodies{std::nullopt, seq({copy, store(out, one(dtype), i), loop(k, n, step)})};
  });
  return b.finish({as_dtype(b, out, op.dtype(0), "T_det_cast")});
}

Type infer_outer(const OpCall& op) {
  for (size_t i : {0, 1}) require_rank(op, i, 1);
  require_same_dtype(op, 0, 1);
  return tensor_type({op.shape(0)[0], op.shape(1)[0]}, op.dtype(0));
}
Expr outer_element(const OpCall&, Inputs x, Axes i) { return load(x[0], {i[0]}) * load(x[1], {i[1]}); }
Type infer_linear(const OpCall& op) {
  if (op.rank(0) < 1) op.fail("data is a scalar, expected at least rank 1");
  if (op.rank(1) < 1 || op.rank(1) > 2) op.fail("weight has rank {}, expected 1 or 2", op.rank(1));
  DType dtype = matmul_dtype(op);
  std::vector<Expr> shape(op.shape(0).begin(), op.shape(0).end() - 1);
  op.require_equal(op.shape(0).back(), op.shape(1).back(), "the contracted dims differ");
  if (op.rank(1) == 2) shape.push_back(op.shape(1)[0]);
  if (op.size() > 2) shape = broadcast_shapes(op, shape, op.shape(2));
  return tensor_type(std::move(shape), dtype);
}

// A weight of rank 1 is one row, whose axis the result does not have.
Expr decompose_linear(const OpCall& op, Builder& b) {
  Expr weight = op.rank(1) == 1 ? op.arg(1) : b.op("permute_dims", {op.arg(1)});
  Expr result = b.op("matmul", {op.arg(0), weight}, op.attrs<MatmulAttrs>());
  if (op.size() == 2) return result;
  DType dtype = matmul_dtype(op);
  Expr bias = op.dtype(2) == dtype ? op.arg(2) : b.op("astype", {op.arg(2)}, CastAttrs{dtype});
  return b.op("add", {result, bias});
}

reference::Tensors outer_products(const ReferenceCall& c) {
  return {reference::tensor_of({c.x[0].size(), c.x[1].size()}, c.x[0].dtype(), [&](const reference::Index& i) {
    return c.x[0].as_double(i[0]) * c.x[1].as_double(i[1]);
  })};
}

}  // namespace

std::vector<OpRow> linear_algebra_ops() {
  return {{.name = "relax.matmul",
           .doc = "matrix product with numpy's rules for batches and vectors; integers accumulate in out_dtype",
           .inputs = {{"x1", "left operand"}, {"x2", "right operand"}},
           .attrs = op_attrs<MatmulAttrs>(),
           .pattern = OpPattern::kAnchor,
           .infer = [](const OpCall& op) { return tensor_type(matmul_shape(op).result(), matmul_dtype(op)); },
           .infer_partial = infer_stated_dtype,
           .legalize = lower_matmul},
          {.name = "relax.linalg.det",
           .doc = "determinant of the matrices in the last two dims",
           .inputs = {{"x", "tensor [..., n, n]"}},
           .infer = infer_det,
           .legalize = lower_det},
          by_element({.name = "relax.outer",
                      .doc = "the products of all pairs of elements of two vectors",
                      .inputs = {{"x1", "vector"}, {"x2", "vector"}},
                      .infer = infer_outer,
                      .reference = outer_products},
                     outer_element, OpPattern::kBroadcast),
          {.name = "relax.linear",
           .doc = "data . weight^T + bias",
           .inputs = {{"data", "tensor [..., k]"},
                      {"weight", "tensor [n, k]"},
                      {"bias", "broadcasts to the result", OpInput::Arity::kOptional}},
           .attrs = op_attrs<MatmulAttrs>(),
           .infer = infer_linear,
           .infer_partial = infer_stated_dtype,
           .decompose = decompose_linear}};
}

}  // namespace relaxc
