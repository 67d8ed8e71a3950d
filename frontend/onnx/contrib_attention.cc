// Attention and rotary positions of com.microsoft.
#include "frontend/onnx/attention.h"
#include "frontend/onnx/contrib.h"
#include "ir/text/printer.h"

namespace relaxc::onnx_import {

void set_scale(Node& n, AttentionCall& call) {
  if (double scale = n.has_attr("scale") ? n.attr_float("scale", 0) : 0; scale != 0) call.scale = scale;
}
Expr as_column(Node& n, const Expr& list) {
  return n.reshape(list, {n.dim_of(list, 0), int_imm(1), int_imm(1), int_imm(1)});
}
// Returns cos or sin for the positions [batch, length], for all heads.
Expr angles_at(Node& n, const Expr& cache, const Expr& positions) {
  return n.with_new_axis(n.op("take", {cache, positions}, TakeAttrs{.axis = 0}), 1);
}

namespace {

void add_bias(Node& n, AttentionCall& call, const Expr& bias) {
  call.bias = call.bias ? n.add(*call.bias, bias) : bias;
}

// Adds mask_filter_value to the scores of keys that input `mask` leaves out: it has a flag for each batch element and
// key, or for each query, too; or where the keys of a batch element end, and perhaps where they begin.
void add_key_mask(Node& n, AttentionCall& call, size_t mask, const Expr& past) {
  if (!n.has(mask)) return;
  const std::vector<Expr> dims = n.shape(mask), query = n.shape_of(call.query);
  const Expr batch = query[0], queries = query[2], keys = n.shape_of(call.key)[2];
  Expr x = n.tensor(mask), one = int_imm(1), allowed = x;
  if (dims.size() == 1) {
    Expr lengths = n.cast(x, kInt64), positions = positions_from(n, int_imm(0), keys);
    allowed = n.op("less", {positions, as_column(n, n.slice(lengths, 0, int_imm(0), batch))});
    if (!n.provably_equal(dims[0], batch)) {
      const Expr more = n.simplify(dims[0] - batch);
      n.require_equal(n.simplify(more * (more - batch)), int_imm(0), "lengths of the mask, once or twice the batch");
      // Without starts the keys begin at 0, as behind the end of the list.
      Expr starts = n.op("dyn.pad", {n.slice(lengths, 0, batch, dims[0]),
                                     shape_expr({int_imm(0), n.simplify(batch - more)}), n.scalar(0, kInt64)});
      allowed = n.op("logical_and", {allowed, n.op("greater_equal", {positions, as_column(n, starts)})});
    }
  } else {
    Expr wide = dims.size() == 2   ? n.reshape(x, {dims[0], one, one, dims[1]})
                : dims.size() == 3 ? n.reshape(x, {dims[0], one, dims[1], dims[2]})
                                   : x;
    if (dims.size() == 4) wide = n.slice(n.slice(x, 2, past, n.simplify(past + queries)), 3, int_imm(0), keys);
    allowed = n.op("greater", {wide, n.scalar_like(0, wide)});
  }
  const DType dtype = n.dtype_of_tensor(call.query);
  Expr filter = n.scalar(n.attr_float("mask_filter_value", -10000), dtype);
  add_bias(n, call, n.op("where", {allowed, n.scalar(0, dtype), filter}));
}
void set_causal(Node& n, AttentionCall& call, const Expr& past) {
  if (n.attr_int("unidirectional", 0) == 0) return;
  if (is_int(n.shape_of(call.query)[2], 1)) return;  // ONNX Runtime lets a single query see all keys
  if (is_int(past, 0)) {
    call.causal = true;
    return;
  }
  Expr offset = n.op("scalar_to_tensor", {past});
  call.allowed = causal_mask(n, n.shape_of(call.query)[2], n.shape_of(call.key)[2], offset);
}

// ---- Attention and QAttention

struct SelfAttentionInputs {
  size_t mask, past;
  std::optional<size_t> bias = {};  // of the scores
};
// Attends to the rows of `projected`, which are query, key and value.
Outputs self_attention(Node& n, const Expr& projected, const SelfAttentionInputs& at) {
  for (const char* name : {"do_rotary", "past_present_share_buffer"}) {
    if (n.attr_int(name, 0) != 0) n.unsupported("attribute '{}'", name);
  }
  const int64_t heads = n.required_int("num_heads");
  const Expr total = n.dim_of(projected, -1), third = n.simplify(floor_div(total, 3));
  std::vector<Expr> sizes = {third, third, third};
  if (n.row().has_attribute("qkv_hidden_sizes") && n.has_attr("qkv_hidden_sizes"))
    sizes = int_imms(n.attr_ints("qkv_hidden_sizes", 3, 0));
  std::vector<Expr> parts;
  Expr end = int_imm(0);
  for (const Expr& size : sizes) {
    Expr begin = end;
    end = n.simplify(end + size);
    parts.push_back(split_heads(n, n.slice(projected, 2, begin, end), heads));
  }
  n.require_equal(end, total, "sizes of query, key and value and columns of the weights");
  AttentionCall call{parts[0], parts[1], parts[2]};
  Expr past = int_imm(0);
  if (n.has(at.past)) {
    past = n.dim(at.past, 3);
    call.key = join(n, {n.pick(n.tensor(at.past), 0, 0), call.key}, 2);
    call.value = join(n, {n.pick(n.tensor(at.past), 0, 1), call.value}, 2);
  }
  set_scale(n, call);
  set_causal(n, call, past);
  if (at.bias && n.has(*at.bias)) add_bias(n, call, n.tensor(*at.bias));
  add_key_mask(n, call, at.mask, past);
  Outputs outputs = {n.of(join_heads(n, attend(n, call).output))};
  if (n.has_output(1))
    outputs.push_back(n.of(join(n, {n.with_new_axis(call.key, 0), n.with_new_axis(call.value, 0)}, 0)));
  return outputs;
}
Outputs contrib_self_attention(Node& n) {
  if (n.has(6)) n.unsupported("input past_sequence_length");
  Expr projected = n.standard("MatMul", {n.tensor(0), n.tensor(1)});
  if (n.has(2)) projected = n.add(projected, n.tensor(2));
  return self_attention(n, projected, {.mask = 3, .past = 4, .bias = 5});
}
Outputs qattention(Node& n) {
  Expr sum = n.standard("MatMulInteger", {n.tensor(0), n.tensor(1), n.optional_tensor(6), n.optional_tensor(7)});
  Expr scale = n.mul(n.reshape(n.tensor(3), {}), n.tensor(4));
  Expr projected = n.add(n.mul(n.cast(sum, n.dtype(3)), scale), n.tensor(2));
  return self_attention(n, projected, {.mask = 5, .past = 8});
}

// ---- MultiHeadAttention

// Returns x[..., index, ...] of packed [batch, length, heads, parts, size], as [batch, heads, length, size].
Expr unpacked_heads(Node& n, const Expr& packed, int64_t index) {
  return n.transpose(n.pick(packed, 3, index), {0, 2, 1, 3});
}
Outputs multi_head_attention(Node& n) {
  const int64_t heads = n.required_int("num_heads");
  Expr begin = int_imm(0);
  // Returns the operand with its part of the bias, which lists those of query, key and value.
  auto rows = [&](size_t i) {
    Expr x = n.tensor(i);
    if (!n.has(3)) return split_heads(n, x, heads);
    Expr end = n.simplify(begin + n.dim(i, 2));
    x = n.add(x, n.slice(n.tensor(3), 0, begin, end));
    begin = end;
    return split_heads(n, x, heads);
  };
  auto packed = [&](size_t i, int64_t index, int64_t part) {
    Expr x = unpacked_heads(n, n.tensor(i), index);
    if (!n.has(3)) return x;
    const std::vector<Expr> dims = n.shape_of(x);
    Expr size = n.simplify(dims[1] * dims[3]), from = n.simplify(size * part);
    return n.add(x, n.reshape(n.slice(n.tensor(3), 0, from, n.simplify(from + size)), {dims[1], int_imm(1), dims[3]}));
  };
  AttentionCall call{int_imm(0), int_imm(0), int_imm(0)};
  if (n.rank(0) == 5) {
    call = {packed(0, 0, 0), packed(0, 1, 1), packed(0, 2, 2)};
  } else {
    if (!n.has(1)) n.fail("input 1 is missing: the query is not packed");
    call.query = rows(0);
    if (n.rank(1) == 5) {
      call.key = packed(1, 0, 1);
      call.value = packed(1, 1, 2);
    } else if (n.rank(1) == 4) {  // those of another sequence, projected before
      call.key = with_heads(n, n.tensor(1), int_imm(heads));
      call.value = with_heads(n, n.tensor(2), int_imm(heads));
    } else {
      call.key = rows(1);
      call.value = rows(2);
    }
  }
  if (n.has(8) && !n.has(6)) n.fail("past_sequence_length without past_key and past_value");
  const Caches caches = with_caches(n, call, 6, n.has(8) ? std::optional(n.scalar_int(8)) : std::nullopt, 9);
  set_scale(n, call);
  set_causal(n, call, caches.past);
  if (n.has(5)) add_bias(n, call, n.tensor(5));
  add_key_mask(n, call, 4, caches.past);
  call.shows_scores = n.has_output(3);
  AttentionSteps steps = attend(n, call);
  Outputs outputs = {n.of(join_heads(n, steps.output)), n.of(caches.key), n.of(caches.value)};
  if (call.shows_scores) outputs.push_back(n.of(*steps.masked));
  return outputs;
}

// ---- RotaryEmbedding

// position_ids are those of each batch element, or the first one of all.
Expr contrib_rotary_embedding(Node& n, const Expr& x) {
  if (n.attr_int("is_packed_batching", 0) != 0) n.unsupported("attribute 'is_packed_batching'");
  const bool is_4d = n.rank(0) == 4;
  const Expr half = n.dim(2, 1), length = n.dim(0, is_4d ? 2 : 1);
  int64_t heads = n.attr_int("num_heads", 0);
  if (!is_4d && heads == 0) {
    auto known = as_int(n.simplify(floor_div(n.dim(0, 2), half * 2)));
    if (!known) n.unsupported("num_heads is missing, and the sizes are not constants");
    heads = *known;
  }
  Expr at = n.tensor(1);
  if (n.rank(1) == 1)
    at = n.reshape(n.add(n.cast(at, kInt64), positions_from(n, int_imm(0), length)), {int_imm(1), length});
  Expr result = rotate(n, is_4d ? x : split_heads(n, x, heads), angles_at(n, n.tensor(2), at),
                       angles_at(n, n.tensor(3), at), n.attr_int("interleaved", 0) != 0);
  return is_4d ? result : join_heads(n, result);
}

// Turns query and key, whose turned halves are given, by the angles [batch, length, size].
Outputs gemma_rotary_embedding(Node& n) {
  const DType dtype = n.dtype(1);
  auto of_angles = [&](const char* function) {
    return n.with_new_axis(n.cast(n.op(function, {n.tensor(0)}), dtype), 1);
  };
  Expr sin = of_angles("sin"), cos = of_angles("cos");
  auto turned = [&](size_t i) { return n.of(n.add(n.mul(n.tensor(i), cos), n.mul(n.tensor(i + 1), sin))); };
  return {turned(1), turned(3)};
}

}  // namespace

std::vector<ConverterRow> contrib_attention_converters() {
  return in_domain(
      "com.microsoft",
      {
          {"Attention", 1, 2, 7, contrib_self_attention,
           "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes rotary_embedding_dim "
           "scale "
           "unidirectional"},
          {"QAttention", 1, 5, 9, qattention,
           "do_rotary mask_filter_value num_heads past_present_share_buffer scale unidirectional"},
          {"MultiHeadAttention", 1, 1, 10, multi_head_attention, "mask_filter_value num_heads scale unidirectional"},
          {"GemmaRotaryEmbedding", 1, 5, 5, gemma_rotary_embedding},
          {"RotaryEmbedding", 1, 4, 4, contrib_rotary_embedding,
           "interleaved is_packed_batching num_heads rotary_embedding_dim scale"},
      });
}

}  // namespace relaxc::onnx_import
