// Attention, rotary positions and caches of ai.onnx.
#include "frontend/onnx/attention.h"

#include <cmath>

#include "frontend/onnx/graph_importer.h"
#include "ir/text/printer.h"

namespace relaxc::onnx_import {

namespace {

using Ints = std::vector<int64_t>;

Expr with_rank_4(Node& n, const Expr& x) {
  std::vector<Expr> dims = n.shape_of(x);
  if (dims.size() > 4) n.fail("a mask or bias has rank {}, expected at most 4", dims.size());
  while (dims.size() < 4) dims.insert(dims.begin(), int_imm(1));
  return n.reshape(x, dims);
}
// Returns what is added to the scores: the bias where a key is allowed, else -inf.
std::optional<Expr> additive(Node& n, const AttentionCall& call, DType dtype) {
  std::optional<Expr> bias = call.bias ? std::optional(with_rank_4(n, n.cast(*call.bias, dtype))) : std::nullopt;
  if (!call.allowed) return bias;
  return n.op("where", {with_rank_4(n, *call.allowed), bias.value_or(n.scalar(0, dtype)), n.scalar(-INFINITY, dtype)});
}
Expr zero_where(Node& n, const Expr& condition, const Expr& x) {
  return n.op("where", {condition, n.scalar_like(0, x), x});
}
// Returns whether a row of scores has no key, as [batch or 1, heads or 1, queries or 1, 1].
Expr is_empty_row(Node& n, const Expr& added) {
  Expr largest = n.reduce("max", added, {3}, true);
  return n.op("equal", {largest, n.scalar_like(-INFINITY, largest)});
}
// Gives a key or a value as many heads as the query, each for a group of neighbours.
Expr per_query_head(Node& n, const Expr& x, const Expr& query) {
  const Expr &wanted = n.dim_of(query, 1), &given = n.dim_of(x, 1);
  if (n.provably_equal(wanted, given)) return x;
  auto all = as_int(wanted), shared = as_int(given);
  if (!all || !shared) {  // the run knows how many share one
    const Expr group = n.named(floor_div(wanted, max(given, int_imm(1))), "group");
    n.require_equal(n.simplify(group * given), wanted,
                    "heads of the query, expected a multiple of those of key or value");
    Expr heads = positions_from(n, int_imm(0), wanted);
    Expr sharer = n.op("floor_divide", {heads, n.op("scalar_to_tensor", {max(group, int_imm(1))}, DTypeAttrs{kInt64})});
    Expr all_heads = n.op("take", {x, sharer}, TakeAttrs{.axis = 1});
    return n.match_cast(all_heads, tensor_type(with_item(n.shape_of(x), 1, wanted), n.dtype_of_tensor(x)));
  }
  if (*shared < 1 || *all % *shared != 0)
    n.fail("{} heads of the query and {} of key or value, expected a multiple", print_expr(wanted), print_expr(given));
  return n.op("repeat", {x}, RepeatAttrs{.repeats = *all / *shared, .axis = 1});
}

AttentionSteps step_by_step(Node& n, const AttentionCall& call, const std::optional<Expr>& added, DType dtype) {
  const DType outer = n.dtype_of_tensor(call.query);
  Expr key = per_query_head(n, call.key, call.query), value = per_query_head(n, call.value, call.query);
  Expr products = n.op("matmul", {call.query, n.transpose(key, {0, 1, 3, 2})}, MatmulAttrs{dtype});
  if (call.scale) {
    products = n.scaled(products, *call.scale);
  } else {
    Expr size = n.cast(n.op("scalar_to_tensor", {n.simplify(n.shape_of(call.query)[3])}), dtype);
    products = n.div(products, n.op("sqrt", {size}));
  }
  Expr capped = products;
  if (call.softcap) capped = n.scaled(n.op("tanh", {n.scaled(products, 1 / *call.softcap)}), *call.softcap);
  Expr masked = added ? n.add(capped, *added) : capped, scores = masked;
  std::vector<Expr> dims = n.shape_of(scores);
  if (call.sink) {
    dims[3] = int_imm(1);
    scores = join(n, {scores, n.broadcast_to(n.cast(*call.sink, dtype), dims)}, 3);
  }
  Expr weights = n.op("nn.softmax", {scores}, LastAxisAttrs{-1});
  if (call.sink) weights = n.slice(weights, 3, int_imm(0), n.dim_of(masked, 3));
  if (call.empty_rows) weights = zero_where(n, is_empty_row(n, *added), weights);
  weights = n.cast(weights, outer);
  AttentionSteps steps{n.op("matmul", {weights, value})};
  steps.products = n.cast(products, outer);
  steps.capped = n.cast(capped, outer);
  steps.masked = n.cast(masked, outer);
  steps.weights = weights;
  return steps;
}

}  // namespace

void require_each_at_least(Node& n, const Expr& numbers, int64_t least, const char* what) {
  Expr smallest = n.reduce("min", n.cast(numbers, kInt64), int_range(0, std::ssize(n.shape_of(numbers))), false);
  n.require_at_most(int_imm(least), n.ints_of(n.of(smallest)).at(0), what);
}
Expr positions_from(Node& n, const Expr& first, const Expr& count) {
  return n.op("arange", {first, n.simplify(first + count), int_imm(1)}, DTypeAttrs{kInt64});
}
Expr causal_mask(Node& n, const Expr& queries, const Expr& keys, const Expr& offset) {
  Expr query = n.with_new_axis(positions_from(n, int_imm(0), queries), 1);
  return n.op("less_equal", {positions_from(n, int_imm(0), keys), n.add(query, offset)});
}

AttentionSteps attend(Node& n, const AttentionCall& given) {
  AttentionCall call = given;
  const DType dtype = n.dtype_of_tensor(call.query);
  const DType scores_dtype = dtype == kFloat64 || call.softmax_dtype == kFloat64 ? kFloat64 : kFloat32;
  call.value = n.cast(call.value, dtype);
  const bool is_fused =
      !call.softcap && !call.sink && !call.shows_scores && (scores_dtype == kFloat32 || dtype == kFloat64);
  if (call.causal && (!is_fused || call.empty_rows)) {
    Expr mask = causal_mask(n, n.shape_of(call.query)[2], n.shape_of(call.key)[2], n.scalar(0, kInt64));
    call.allowed = call.allowed ? n.op("logical_and", {*call.allowed, mask}) : mask;
    call.causal = false;
  }
  std::optional<Expr> added = additive(n, call, scores_dtype);
  call.empty_rows = call.empty_rows && added;
  if (!is_fused) return step_by_step(n, call, added, scores_dtype);
  for (Expr* operand : {&call.key, &call.value}) {  // numbers of heads that are constants are left to the operator
    if (!as_int(n.dim_of(*operand, 1)) || !as_int(n.dim_of(call.query, 1)))
      *operand = per_query_head(n, *operand, call.query);
  }
  const Ints swapped = {0, 2, 1, 3};
  std::vector<Expr> args = {n.transpose(call.query, swapped), n.transpose(call.key, swapped),
                            n.transpose(call.value, swapped)};
  if (added) args.push_back(*added);
  AttentionAttrs attrs{.scale = call.scale};
  if (call.causal) attrs.causal_mask = "TopLeft";
  Expr output = n.transpose(n.op(added ? "nn.attention_bias" : "nn.attention", args, attrs), swapped);
  return {call.empty_rows ? zero_where(n, is_empty_row(n, *added), output) : output};
}

Expr split_heads(Node& n, const Expr& x, int64_t heads) {
  const std::vector<Expr> dims = n.shape_of(x);
  if (dims.size() != 3) n.fail("an operand has rank {}, expected 3", dims.size());
  if (heads < 1) n.fail("{} heads, expected at least 1", heads);
  if (auto size = as_int(dims[2]); size && *size % heads != 0)
    n.fail("{} columns do not divide by {} heads", *size, heads);
  Expr rows = n.reshape(x, {dims[0], dims[1], int_imm(heads), n.simplify(floor_div(dims[2], heads))});
  return n.transpose(rows, {0, 2, 1, 3});
}
Expr join_heads(Node& n, const Expr& x) {
  const std::vector<Expr> dims = n.shape_of(x);
  return n.reshape(n.transpose(x, {0, 2, 1, 3}), {dims[0], dims[2], n.simplify(dims[1] * dims[3])});
}

Expr rotate(Node& n, const Expr& x, const Expr& cos, const Expr& sin, bool interleaved) {
  const std::vector<Expr> dims = n.shape_of(x);
  const int64_t last = std::ssize(dims) - 1;
  const Expr half = n.dim_of(cos, -1), turned = n.simplify(half * 2);
  n.require_equal(n.dim_of(sin, -1), half, "angles of sine and cosine");
  n.require_at_most(turned, dims[last], "rotated numbers and the head size");
  Expr part = n.slice(x, last, int_imm(0), turned);
  std::vector<Expr> pairs = dims;
  pairs[last] = interleaved ? half : int_imm(2);
  pairs.push_back(interleaved ? int_imm(2) : half);
  const int64_t pair_axis = interleaved ? last + 1 : last;
  part = n.reshape(part, pairs);
  Expr a = n.pick(part, pair_axis, 0), b = n.pick(part, pair_axis, 1);
  Expr real = n.sub(n.mul(cos, a), n.mul(sin, b)), imaginary = n.add(n.mul(sin, a), n.mul(cos, b));
  Expr result = join(n, {n.with_new_axis(real, pair_axis), n.with_new_axis(imaginary, pair_axis)}, pair_axis);
  pairs = with_item(dims, last, turned);
  result = n.reshape(result, pairs);
  return n.provably_equal(turned, dims[last]) ? result : join(n, {result, n.slice(x, last, turned, dims[last])}, last);
}

namespace {

// Returns an operand as [batch, heads, length, size].
Expr operand(Node& n, size_t i, const char* heads) {
  if (n.rank(i) == 4) return n.tensor(i);
  if (n.rank(i) != 3) n.fail("input {} has rank {}, expected 3 or 4", i, n.rank(i));
  return split_heads(n, n.tensor(i), n.required_int(heads));
}
// Returns a mask of rank 3 as one per head, or where that does not fit, per batch element.
Expr with_heads_of_mask(Node& n, const Expr& mask, const Expr& query) {
  const std::vector<Expr>& dims = n.shape_of(mask);
  if (dims.size() != 3 || is_int(dims[0], 1) || n.provably_equal(dims[0], n.dim_of(query, 1)) ||
      !n.provably_equal(dims[0], n.dim_of(query, 0)))
    return mask;
  return n.with_new_axis(mask, 1);
}
// A mask may have fewer columns than there are keys; the others are not seen.
void add_mask(Node& n, AttentionCall& call) {
  if (n.rank(3) == 0) n.fail("the mask has rank 0, expected at least 1");
  Expr mask = with_heads_of_mask(n, n.tensor(3), call.query);
  const std::vector<Expr> dims = n.shape_of(mask);
  const Expr& keys = n.shape_of(call.key)[2];
  const bool is_bool = n.dtype(3).is_bool();
  if (!n.provably_equal(dims.back(), keys)) {
    std::vector<Expr> width(2 * dims.size(), int_imm(0));
    width.back() = n.simplify(keys - dims.back());
    n.require_at_most(int_imm(0), width.back(), "columns of the mask and keys");
    mask = n.cast(mask, is_bool ? DType::int_(8) : n.dtype(3));
    mask = n.op("dyn.pad", {mask, shape_expr(width), n.scalar_like(is_bool ? 0 : -INFINITY, mask)});
    if (is_bool) mask = n.cast(mask, kBool);
  }
  const std::vector<Expr>&query = n.shape_of(call.query), scores{query[0], query[1], query[2], keys};
  if (dims.size() <= scores.size()) mask = n.stretched_into(mask, scores, "dims of the mask and the scores");
  (is_bool ? call.allowed : call.bias) = mask;
  call.empty_rows = true;
}
void also(Node& n, AttentionCall& call, const Expr& allowed) {
  call.allowed = call.allowed ? n.op("logical_and", {*call.allowed, allowed}) : allowed;
}

// Lets queries see the keys that count, not those after them and, with a window, only the last ones before them.
void hide_keys(Node& n, AttentionCall& call, const Expr& past) {
  const Expr queries = n.shape_of(call.query)[2], keys = n.shape_of(call.key)[2];
  const int64_t window = n.row().has_attribute("local_window_size") ? n.attr_int("local_window_size", -1) : -1;
  const bool is_causal = n.attr_int("is_causal", 0) != 0 || window > 0, has_past = n.has(4), has_lengths = n.has(6);
  Expr offset = n.cast(n.op("scalar_to_tensor", {past}), kInt64);  // the position of the first query
  if (has_lengths) {  // the keys of each batch element that count; the queries are the last ones of them
    Expr lengths = n.reshape(n.cast(n.tensor(6), kInt64), {n.dim(6, 0), int_imm(1), int_imm(1), int_imm(1)});
    also(n, call, n.op("less", {positions_from(n, int_imm(0), keys), lengths}));
    if (!has_past) offset = n.sub(lengths, n.cast(n.op("scalar_to_tensor", {queries}), kInt64));
    call.empty_rows = true;
  }
  call.causal = is_causal && !has_past && !has_lengths;
  if (is_causal && !call.causal) also(n, call, causal_mask(n, queries, keys, offset));
  if (window <= 0) return;
  Expr before = causal_mask(n, queries, keys, n.sub(offset, n.scalar(static_cast<double>(window), kInt64)));
  also(n, call, n.op("logical_not", {before}));
  call.empty_rows = true;
}

Outputs attention(Node& n) {
  AttentionCall call{operand(n, 0, "q_num_heads"), operand(n, 1, "kv_num_heads"), operand(n, 2, "kv_num_heads")};
  if (n.has(4) != n.has(5)) n.fail("past_key and past_value: expected both or none");
  Expr past = int_imm(0);
  if (n.has(4)) {
    past = n.dim(4, 2);
    call.key = join(n, {n.tensor(4), call.key}, 2);
    call.value = join(n, {n.tensor(5), call.value}, 2);
  }
  const AttentionCall caches = call;
  if (n.has_attr("scale")) call.scale = n.attr_float("scale", 1);
  if (double softcap = n.attr_float("softcap", 0); softcap > 0) call.softcap = softcap;
  call.softmax_dtype = n.attr_dtype("softmax_precision", kFloat32);
  const int64_t mode = n.attr_int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) n.fail("qk_matmul_output_mode is {}, expected 0 to 3", mode);
  call.shows_scores = n.has_output(3);
  if (n.has(3)) add_mask(n, call);
  hide_keys(n, call, past);
  AttentionSteps steps = attend(n, call);
  Outputs outputs = {n.of(n.rank(0) == 3 ? join_heads(n, steps.output) : steps.output), n.of(caches.key),
                     n.of(caches.value)};
  // Until 2026 the specification had the scores with the mask as mode 1, as ONNX 1.21 still does. Without a cap nobody
  // needs the mode of today, whose scores are the products.
  const std::optional<Expr>& first = call.softcap ? steps.capped : steps.masked;
  const std::optional<Expr> shown[] = {steps.products, first, steps.masked, steps.weights};
  if (call.shows_scores) outputs.push_back(n.of(*shown[mode]));
  return outputs;
}

// ai.onnx.preview: graphs of the model change the scores and the weights, which are in the precision of the softmax.
Expr flex_attention(Node& n) {
  AttentionCall call{n.tensor(0), n.tensor(1), n.tensor(2)};
  for (size_t i = 0; i < 3; ++i) {
    if (n.rank(i) != 4) n.fail("input {} has rank {}, expected 4", i, n.rank(i));
  }
  const DType dtype = n.dtype(0);
  Expr key = per_query_head(n, call.key, call.query), value = per_query_head(n, call.value, call.query);
  Expr scores = n.op("matmul", {call.query, n.transpose(key, {0, 1, 3, 2})});
  if (n.has_attr("scale")) {
    scores = n.scaled(scores, n.attr_float("scale", 1));
  } else {
    Expr size = n.cast(n.op("scalar_to_tensor", {n.simplify(n.shape_of(call.query)[3])}), dtype);
    scores = n.div(scores, n.op("sqrt", {size}));
  }
  auto modified = [&](const char* name, const Expr& x) {
    if (!n.has_attr(name)) return x;
    const onnx::GraphProto& graph = n.attr_graph(name);
    if (graph.input_size() != 1 || graph.output_size() != 1)
      n.fail("{} has {} inputs and {} outputs, expected one each", name, graph.input_size(), graph.output_size());
    Value result = GraphImporter(n.graph(), n.builder()).import_subgraph(graph, {n.of(x)})[0];
    if (result->poisoned) throw CompileError({});  // reported where it is
    return n.tensor(result);
  };
  const DType precision = n.attr_dtype("softmax_precision", dtype == kFloat64 ? kFloat64 : kFloat32);
  Expr weights = n.op("nn.softmax", {modified("score_mod", n.cast(scores, precision))}, LastAxisAttrs{-1});
  return n.cast(n.op("matmul", {modified("prob_mod", weights), n.cast(value, precision)}), dtype);
}

// The caches have an angle per position, or per batch element and position when there are no position_ids.
Expr rotary_embedding(Node& n) {
  const bool is_4d = n.rank(0) == 4;
  Expr x = is_4d ? n.tensor(0) : split_heads(n, n.tensor(0), n.required_int("num_heads"));
  auto angles = [&](size_t i) {
    Expr cache = n.has(3) ? n.op("take", {n.tensor(i), n.tensor(3)}, TakeAttrs{.axis = 0}) : n.tensor(i);
    if (n.shape_of(cache).size() != 3)
      n.fail("input {} has rank {}, expected {}", i, n.rank(i), n.has(3) ? "2" : "3 without position_ids");
    return n.with_new_axis(cache, 1);  // for all heads
  };
  const int64_t turned = n.attr_int("rotary_embedding_dim", 0);
  Expr cos = angles(1), sin = angles(2);
  if (turned) n.require_equal(n.simplify(n.dim_of(cos, -1) * 2), int_imm(turned), "rotary_embedding_dim and the cache");
  Expr result = rotate(n, x, cos, sin, n.attr_int("interleaved", 0) != 0);
  return is_4d ? result : join_heads(n, result);
}

// Writes the update into a copy of the cache, from write_indices[batch] on along the axis.
Expr tensor_scatter(Node& n) {
  Expr cache = n.tensor(0), update = n.tensor(1);
  const std::vector<Expr> dims = n.shape(0), updates = n.shape(1);
  if (dims.size() != updates.size()) n.fail("the cache has rank {}, the update {}", dims.size(), updates.size());
  const int64_t rank = n.rank(0), axis = n.axis(n.attr_int("axis", -2), rank);
  if (axis == 0) n.fail("axis is 0, which is the batch");
  for (int64_t d = 0; d < rank; ++d) {
    if (d == axis) n.require_at_most(updates[d], dims[d], "size of the update and the cache");
    if (d != axis) n.require_equal(updates[d], dims[d], "dims of the update and the cache");
  }
  std::string mode = n.attr_string("mode", "linear");
  if (mode != "linear" && mode != "circular") n.fail("mode is '{}', expected linear or circular", mode);
  std::vector<Expr> row(static_cast<size_t>(rank), int_imm(1)), column = row;
  row[axis] = updates[axis];
  Expr at = n.reshape(positions_from(n, int_imm(0), updates[axis]), row);
  if (n.has(2)) {
    if (mode == "linear") require_each_at_least(n, n.tensor(2), 0, "write_indices below 0");
    column[0] = n.dim(2, 0);
    at = n.add(at, n.reshape(n.cast(n.tensor(2), kInt64), column));
  }
  if (mode == "circular") at = n.op("floor_mod", {at, n.cast(n.op("scalar_to_tensor", {dims[axis]}), kInt64)});
  return n.op("scatter_elements", {cache, n.broadcast_to(at, updates), update}, ScatterElementsAttrs{.axis = axis});
}

}  // namespace

std::vector<ConverterRow> attention_converters() {
  constexpr const char* kAttention =
      "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision";
  return {
      {"Attention", 23, 3, 6, attention, kAttention},
      {"Attention", 24, 3, 7, attention, kAttention},
      {"Attention", 25, 3, 7, attention,
       "is_causal kv_num_heads local_window_size q_num_heads qk_matmul_output_mode scale softcap softmax_precision"},
      {"FlexAttention", 1, 3, 3, flex_attention, "prob_mod scale score_mod softmax_precision", "ai.onnx.preview"},
      {"RotaryEmbedding", 23, 3, 4, rotary_embedding, "interleaved num_heads rotary_embedding_dim"},
      {"TensorScatter", 24, 2, 3, tensor_scatter, "axis mode"},
  };
}

}  // namespace relaxc::onnx_import
