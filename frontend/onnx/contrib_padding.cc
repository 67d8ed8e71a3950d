// Operators of com.microsoft around attention over packed rows: those that pack the rows of sequences and unpack them,
// and attention in a window along the sequence.
#include "frontend/onnx/attention.h"
#include "frontend/onnx/contrib.h"

namespace relaxc::onnx_import {

namespace {

// Tokens stand before padding in each sequence. The offsets of all tokens, and behind them those of the padding, count
// through [batch, sequence].
Outputs remove_padding(Node& n) {
  if (n.rank(0) != 3 || n.rank(1) != 1) n.fail("ranks are {} and {}, expected 3 and 1", n.rank(0), n.rank(1));
  const Expr batch = n.dim(0, 0), length = n.dim(0, 1), size = n.dim(0, 2), all = n.simplify(batch * length);
  n.require_equal(n.dim(1, 0), batch, "batch and number of counts");
  Expr counts = n.cast(n.tensor(1), kInt64);
  Expr is_token = n.op("less", {positions_from(n, int_imm(0), length), n.with_new_axis(counts, 1)});
  is_token = n.reshape(is_token, {all});
  Expr tokens = n.op("nonzero", {is_token});
  tokens = n.reshape(tokens, {n.dim_of(tokens, 1)});
  Expr packed = n.op("take", {n.reshape(n.tensor(0), {all, size}), tokens}, TakeAttrs{.axis = 0});
  Expr offsets = positions_from(n, int_imm(0), all);
  Expr order = n.op("where", {is_token, offsets, n.add(offsets, n.op("scalar_to_tensor", {all}))});
  order = n.op("argsort", {order}, ArgsortAttrs{.axis = 0, .descending = false, .dtype = kInt32});
  Expr sums = n.cast(n.standard("CumSum", {counts, n.scalar(0, kInt64)}), kInt32);
  Expr zero = n.reshape(n.scalar(0, kInt32), {int_imm(1)});
  return {n.of(packed), n.of(n.reshape(order, {batch, length})), n.of(join(n, {zero, sums}, 0)),
          n.of(n.reduce("max", n.cast(counts, kInt32), {0}, true))};
}
Expr restore_padding(Node& n, const Expr& packed) {
  if (n.rank(0) != 2 || n.rank(1) != 2) n.fail("ranks are {} and {}, expected 2", n.rank(0), n.rank(1));
  const Expr tokens = n.dim(0, 0), size = n.dim(0, 1), all = n.simplify(n.dim(1, 0) * n.dim(1, 1));
  n.require_at_most(tokens, all, "number of tokens and of offsets");
  Expr offsets = n.slice(n.reshape(n.cast(n.tensor(1), kInt64), {all}), 0, int_imm(0), tokens);
  Expr empty = n.broadcast_to(n.scalar(0, n.dtype(0)), {all, size});
  Expr rows = n.standard("ScatterND", {empty, n.with_new_axis(offsets, 1), packed});
  return n.reshape(rows, {n.dim(1, 0), n.dim(1, 1), size});
}

// Longformer (Beltagy et al., 2020): a token sees those within the window around it and the global ones; a global token
// sees all, by projections of its own. All scores are computed here, and a mask leaves those out that a token does not
// see.
Expr longformer_attention(Node& n, const Expr& x) {
  const int64_t heads = n.required_int("num_heads"), window = n.required_int("window");
  if (n.rank(0) != 3 || n.rank(6) != 2) n.fail("ranks are {} and {}, expected 3 and 2", n.rank(0), n.rank(6));
  const Expr batch = n.dim(0, 0), length = n.dim(0, 1), one = int_imm(1);
  Expr flags = n.cast(n.tensor(6), kInt32), is_global = n.op("greater", {flags, n.scalar(0, kInt32)});
  // Attends to all tokens by the weights in input i and the bias behind it.
  auto attention = [&](size_t i, const std::optional<Expr>& allowed) {
    Expr projected = n.add(n.standard("MatMul", {x, n.tensor(i)}), n.tensor(i + 1));
    const Expr third = n.simplify(floor_div(n.dim_of(projected, 2), 3));
    auto part = [&](int64_t k) {
      return split_heads(n, n.slice(projected, 2, n.simplify(third * k), n.simplify(third * (k + 1))), heads);
    };
    AttentionCall call{part(0), part(1), part(2)};
    call.bias = n.reshape(n.tensor(3), {batch, one, one, length});
    call.allowed = allowed;
    return join_heads(n, attend(n, call).output);
  };
  Expr at = positions_from(n, int_imm(0), length);
  Expr distance = n.op("abs", {n.sub(at, n.with_new_axis(at, 1))});
  Expr is_near = n.op("less_equal", {distance, n.scalar(static_cast<double>(window), kInt64)});
  Expr seen = n.op("logical_or", {is_near, n.reshape(is_global, {batch, one, one, length})});
  return n.op("where", {n.with_new_axis(is_global, 2), attention(4, std::nullopt), attention(1, seen)});
}

}  // namespace

std::vector<ConverterRow> contrib_padding_converters() {
  return in_domain("com.microsoft", {
                                        {"RemovePadding", 1, 2, 2, remove_padding},
                                        {"RestorePadding", 1, 2, 2, restore_padding},
                                        {"LongformerAttention", 1, 7, 7, longformer_attention, "num_heads window"},
                                    });
}

}  // namespace relaxc::onnx_import
