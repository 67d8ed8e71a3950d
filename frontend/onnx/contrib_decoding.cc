// Attention of com.microsoft over packed rows and shared caches, and the biases of relative positions. The forms are
// those of onnxruntime/docs/ContribOperators.md.
#include <cmath>

#include "frontend/onnx/attention.h"
#include "frontend/onnx/contrib.h"
#include "ir/text/printer.h"

namespace relaxc::onnx_import {

namespace {

// Returns the cache [batch, heads, most rows, size] with the rows behind its first `past` ones.
Expr with_new_rows(Node& n, const Expr& cache, const Expr& rows, const Expr& past) {
  Expr at = n.broadcast_to(n.op("scalar_to_tensor", {past}), {n.dim_of(cache, 0)});
  return n.standard("TensorScatter", {cache, rows, at}, {{"axis", int64_t{2}}});
}
// Returns the first `total` rows of the cache. The first `past` ones come from the beams that the input says; those
// behind them are the beam's own, whatever the input has there.
Expr rows_of_beams(Node& n, const Expr& cache, const Expr& past, const Expr& total, size_t indirection) {
  Expr rows = n.slice(cache, 2, int_imm(0), total);
  if (!n.has(indirection)) return rows;
  const std::vector<Expr> dims = n.shape_of(rows);
  const Expr one = int_imm(1);
  Expr from = n.reshape(n.cast(n.tensor(indirection), kInt64), {dims[0], n.dim(indirection, 2)});
  from = n.slice(from, 1, int_imm(0), dims[2]);
  Expr numbers = positions_from(n, int_imm(0), dims[0]), beams = n.op("scalar_to_tensor", {n.dim(indirection, 1)});
  Expr first = n.mul(n.op("floor_divide", {numbers, beams}), beams);
  Expr is_past = n.op("less", {positions_from(n, int_imm(0), dims[2]), n.op("scalar_to_tensor", {past})});
  from = n.op("where", {is_past, n.add(from, n.with_new_axis(first, 1)), n.with_new_axis(numbers, 1)});
  from = n.reshape(from, {dims[0], one, dims[2], one});
  return n.op("gather_elements", {rows, n.broadcast_to(from, dims)}, AxisAttrs{0});
}

}  // namespace

Expr with_heads(Node& n, const Expr& x, const Expr& heads) {
  std::vector<Expr> dims = n.shape_of(x);
  if (dims.size() != 4) n.fail("keys or values of rank {}, expected 4", dims.size());
  if (n.provably_equal(dims[1], heads)) return x;
  n.require_equal(dims[1], heads, "heads of a cache and of the rows");
  dims[1] = heads;
  return n.reshape(x, dims);
}

Caches with_caches(Node& n, AttentionCall& call, size_t first, const std::optional<Expr>& shared, size_t indirection) {
  if (n.has(first) != n.has(first + 1)) n.fail("past_key and past_value: expected both or none");
  Caches caches{call.key, call.value};
  if (!n.has(first)) return caches;
  caches.past = shared ? *shared : n.dim(first, 2);
  const Expr total = n.simplify(caches.past + n.dim_of(call.key, 2)), heads = n.dim_of(call.key, 1);
  auto extend = [&](size_t i, Expr& present, Expr& rows) {
    Expr cache = with_heads(n, n.tensor(i), heads);
    present = shared ? with_new_rows(n, cache, rows, caches.past) : join(n, {cache, rows}, 2);
    rows = rows_of_beams(n, present, caches.past, total, indirection);
  };
  extend(first, caches.key, call.key);
  extend(first + 1, caches.value, call.value);
  return caches;
}

namespace {

// ---- Packed rows: those of all sequences of a batch, one behind the other

// Returns where row i and row j belong to the same sequence: [rows, rows]. Sequence b has the rows from ends[b] to
// ends[b + 1].
Expr same_sequence(Node& n, size_t ends, const Expr& rows) {
  Expr begins = n.cast(n.slice(n.tensor(ends), 0, int_imm(1), n.dim(ends, 0)), kInt64);
  Expr is_behind = n.op("less_equal", {n.with_new_axis(begins, 1), positions_from(n, int_imm(0), rows)});
  Expr sequence = n.reduce("sum", n.cast(is_behind, kInt32), {0}, false);
  return n.op("equal", {n.with_new_axis(sequence, 1), sequence});
}
// Attends within each sequence. The operands are [rows, heads * size].
Expr packed_rows(Node& n, const Expr& query, const Expr& key, const Expr& value, size_t ends, size_t bias) {
  if (n.has(bias)) n.unsupported("input attention_bias of packed rows");
  const int64_t heads = n.required_int("num_heads");
  auto split = [&](const Expr& x) { return split_heads(n, n.with_new_axis(x, 0), heads); };
  AttentionCall call{split(query), split(key), split(value)};
  set_scale(n, call);
  call.allowed = same_sequence(n, ends, n.dim_of(query, 0));
  Expr result = join_heads(n, attend(n, call).output);
  return n.reshape(result, {n.dim_of(result, 1), n.dim_of(result, 2)});
}
Expr packed_attention(Node& n) {
  Expr projected = n.add(n.standard("MatMul", {n.tensor(0), n.tensor(1)}), n.tensor(2));
  const Expr total = n.dim_of(projected, -1), third = n.simplify(floor_div(total, 3));
  std::vector<Expr> sizes = {third, third, third}, parts;
  if (n.has_attr("qkv_hidden_sizes")) sizes = int_imms(n.attr_ints("qkv_hidden_sizes", 3, 0));
  Expr end = int_imm(0);
  for (const Expr& size : sizes) {
    Expr begin = end;
    end = n.simplify(end + size);
    parts.push_back(n.slice(projected, 1, begin, end));
  }
  n.require_equal(end, total, "sizes of query, key and value and columns of the weights");
  return packed_rows(n, parts[0], parts[1], parts[2], 4, 5);
}
Expr packed_multi_head_attention(Node& n, const Expr& query) {
  std::vector<Expr> parts;
  if (n.rank(0) == 4) {  // [rows, heads, 3, size]
    for (int64_t i : {0, 1, 2})
      parts.push_back(n.reshape(n.pick(query, 2, i), {n.dim(0, 0), n.simplify(n.dim(0, 1) * n.dim(0, 3))}));
  } else {
    if (!n.has(1) || !n.has(2)) n.fail("key and value are missing: the query is not packed");
    parts = {query, n.tensor(1), n.tensor(2)};
  }
  Expr begin = int_imm(0);
  for (Expr& part : parts) {
    if (!n.has(3)) break;
    Expr end = n.simplify(begin + n.dim_of(part, 1));
    part = n.add(part, n.slice(n.tensor(3), 0, begin, end));
    begin = end;
  }
  return packed_rows(n, parts[0], parts[1], parts[2], 5, 6);
}

// ---- One new row behind a cache

Outputs decoder_masked_attention(Node& n) {
  const int64_t heads = n.required_int("num_heads");
  Expr begin = int_imm(0);
  auto with_bias = [&](const Expr& x) {
    if (!n.has(10)) return split_heads(n, x, heads);
    Expr end = n.simplify(begin + n.dim_of(x, 2));
    Expr sum = n.add(x, n.slice(n.tensor(10), 0, begin, end));
    begin = end;
    return split_heads(n, sum, heads);
  };
  const bool is_packed = !n.has(1), is_cross = n.has(1) && n.rank(1) == 4;
  const Expr third = n.simplify(floor_div(n.dim(0, 2), 3));
  auto packed = [&](int64_t i) { return n.slice(n.tensor(0), 2, n.simplify(third * i), n.simplify(third * (i + 1))); };
  AttentionCall call{with_bias(is_packed ? packed(0) : n.tensor(0)), int_imm(0), int_imm(0)};
  call.key = is_cross ? with_heads(n, n.tensor(1), int_imm(heads)) : with_bias(is_packed ? packed(1) : n.tensor(1));
  call.value = is_cross ? with_heads(n, n.tensor(2), int_imm(heads)) : with_bias(is_packed ? packed(2) : n.tensor(2));
  const bool shares = n.attr_int("past_present_share_buffer", 0) != 0 && n.has(5) && !is_cross;
  if (shares && !n.has(7)) n.fail("past_present_share_buffer needs past_sequence_length");
  Caches caches{call.key, call.value};
  if (!is_cross) caches = with_caches(n, call, 5, shares ? std::optional(n.scalar_int(7)) : std::nullopt, 9);
  set_scale(n, call);
  if (n.has(4)) call.bias = n.tensor(4);
  if (n.has(3)) {
    const DType dtype = n.dtype(0);
    if (n.rank(3) != 2) n.unsupported("a mask of rank {}, expected 2", n.rank(3));
    Expr mask = n.reshape(n.tensor(3), {n.dim(3, 0), int_imm(1), int_imm(1), n.dim(3, 1)});
    Expr filter = n.scalar(n.attr_float("mask_filter_value", -10000), dtype);
    Expr hidden = n.op("where", {n.op("greater", {mask, n.scalar_like(0, mask)}), n.scalar(0, dtype), filter});
    call.bias = call.bias ? n.add(*call.bias, hidden) : hidden;
  }
  call.shows_scores = n.has_output(3);
  AttentionSteps steps = attend(n, call);
  Outputs outputs = {n.of(join_heads(n, steps.output)), n.of(caches.key), n.of(caches.value)};
  if (call.shows_scores) outputs.push_back(n.of(*steps.products));
  return outputs;
}

// ---- Biases of relative positions

// The buckets of T5 (Raffel et al., "Exploring the limits of transfer learning", 2020): near distances have one each,
// far ones share buckets by the logarithm of the distance. The table's rows are the heads, whatever its shape says.
Expr relative_position_bias(Node& n) {
  const bool is_bidirectional = n.attr_int("is_bidirectional", 0) != 0;
  const Expr buckets = n.dim(0, 0), most = int_imm(n.required_int("max_distance"));
  const Expr count = is_bidirectional ? n.simplify(floor_div(buckets, 2)) : buckets;
  const Expr near = n.simplify(floor_div(count, 2));
  n.require_at_most(int_imm(1), near, "buckets of near distances");
  n.require_at_most(n.simplify(near + 1), most, "max_distance and the buckets of near distances");
  const Expr queries = n.scalar_int(1), keys = n.scalar_int(2);
  auto number = [&](const Expr& value) {
    auto known = as_int(value);
    return known ? n.scalar(static_cast<double>(*known), kInt64) : n.op("scalar_to_tensor", {n.simplify(value)});
  };
  Expr distance =
      n.sub(positions_from(n, int_imm(0), keys), n.with_new_axis(positions_from(n, int_imm(0), queries), 1));
  Expr zero = number(int_imm(0)), bucket = zero;
  if (is_bidirectional) {
    bucket = n.mul(n.cast(n.op("greater", {distance, zero}), kInt64), number(count));
    distance = n.op("abs", {distance});
  } else {
    distance = n.op("negative", {n.binary("minimum", distance, zero)});
  }
  auto real = [&](const Expr& value) { return n.cast(number(value), kFloat64); };
  Expr per_octave = n.div(real(count - near), n.op("log", {n.div(real(most), real(near))}));
  Expr ratio = n.div(n.cast(n.binary("maximum", distance, number(near)), kFloat32), n.cast(number(near), kFloat32));
  Expr steps = n.mul(n.op("log", {ratio}), n.cast(per_octave, kFloat32));
  Expr far = n.binary("minimum", n.add(n.cast(steps, kInt64), number(near)), number(count - 1));
  bucket = n.add(bucket, n.op("where", {n.op("less", {distance, number(near)}), distance, far}));
  Expr table = n.reshape(n.tensor(0), {n.dim(0, 1), n.dim(0, 0)});
  return n.with_new_axis(n.op("take", {table, bucket}, TakeAttrs{.axis = 1}), 0);
}
// The gate of WavLM (Chen et al., "WavLM", 2022): rel_pos * (u * (r * eco_a - 1) + 2), where u and r are sigmoids of
// sums over the halves of query . weight.
Expr gated_relative_position_bias(Node& n) {
  if (n.has(6)) n.unsupported("input token_offset");
  Expr query = split_heads(n, n.add(n.tensor(0), n.tensor(1)), n.required_int("num_heads"));
  Expr gates = n.add(n.op("matmul", {query, n.tensor(3)}), n.tensor(4));
  std::vector<Expr> dims = n.shape_of(gates);
  dims.back() = n.simplify(floor_div(n.dim(3, 1), 2));
  dims.insert(dims.end() - 1, int_imm(2));
  gates = n.op("sigmoid", {n.reduce("sum", n.reshape(gates, dims), {4}, false)});  // [batch, heads, queries, 2]
  Expr u = n.slice(gates, 3, int_imm(0), int_imm(1)), r = n.slice(gates, 3, int_imm(1), int_imm(2));
  Expr factor = n.sub(n.mul(r, n.tensor(5)), n.scalar_like(1, r));
  return n.mul(n.add(n.mul(u, factor), n.scalar_like(2, u)), n.tensor(2));
}

}  // namespace

std::vector<ConverterRow> contrib_decoding_converters() {
  return in_domain("com.microsoft",
                   {
                       {"PackedAttention", 1, 5, 6, packed_attention, "num_heads qkv_hidden_sizes scale"},
                       {"PackedMultiHeadAttention", 1, 6, 7, packed_multi_head_attention,
                        "mask_filter_value num_heads scale", "", 0b1110},
                       {"DecoderMaskedMultiHeadAttention", 1, 1, 11, decoder_masked_attention,
                        "mask_filter_value num_heads output_qk past_present_share_buffer scale"},
                       {"RelativePositionBias", 1, 3, 3, relative_position_bias, "is_bidirectional max_distance"},
                       {"GatedRelativePositionBias", 1, 6, 7, gated_relative_position_bias, "num_heads"},
                   });
}

}  // namespace relaxc::onnx_import
