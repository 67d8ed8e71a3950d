// Attention of com.microsoft in which several heads of the query share those of the key and value, with caches of past
// rows: GroupQueryAttention, and SparseAttention, in which a query sees some blocks of keys only.
#include "frontend/onnx/attention.h"
#include "frontend/onnx/contrib.h"

namespace relaxc::onnx_import {

namespace {

// Where the inputs of a node are that both operators have. The lengths of batch elements count their new rows, too;
// those of GroupQueryAttention are less by `short_by`.
struct Places {
  size_t lengths, total, cos, sin;
  int64_t short_by;
};
constexpr Places kGroupQuery = {5, 6, 7, 8, 1}, kSparse = {8, 7, 9, 10, 0};

void refuse_options_of_gqa(Node& n) {
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    if (n.attr_string(name, "NONE") != "NONE") n.unsupported("attribute '{}': caches of few bits", name);
  }
  if (n.attr_int("sliding_window_cache", 0) != 0) n.unsupported("attribute 'sliding_window_cache'");
}
// The query, key and value of the new positions, as [batch, heads, length, size].
AttentionCall new_rows(Node& n) {
  const int64_t heads = n.required_int("num_heads"), kv_heads = n.required_int("kv_num_heads");
  Expr q = n.tensor(0);
  AttentionCall call{q, q, q};
  if (n.has(1) != n.has(2)) n.fail("key and value: expected both or none");
  if (n.has(1)) {
    call = {split_heads(n, q, heads), split_heads(n, n.tensor(1), kv_heads), split_heads(n, n.tensor(2), kv_heads)};
  } else {
    Expr all = split_heads(n, q, heads + 2 * kv_heads);
    auto part = [&](int64_t begin, int64_t count) { return n.slice(all, 1, int_imm(begin), int_imm(begin + count)); };
    call = {part(0, heads), part(heads, kv_heads), part(heads + kv_heads, kv_heads)};
  }
  if (n.has(14) != n.has(15)) n.fail("q_norm_weight and k_norm_weight: expected both or none");
  if (n.has(14)) {
    const std::vector<OnnxAttribute> attrs = {{"axis", int64_t{-1}},
                                              {"epsilon", n.attr_float("qk_norm_epsilon", 1e-6)}};
    call.query = n.standard("RMSNormalization", {call.query, n.tensor(14)}, attrs);
    call.key = n.standard("RMSNormalization", {call.key, n.tensor(15)}, attrs);
  }
  return call;
}

// New rows behind those of the caches, turned by their positions.
class CachedAttention {
 public:
  CachedAttention(Node& n, const Places& at) : call(new_rows(n)), n_(n), at_(at) {
    if (n.has(3) != n.has(4)) n.fail("past_key and past_value: expected both or none");
    length = n.shape_of(call.query)[2];
    total = n.has(at.total) ? n.scalar_int(at.total) : length;
    // A prompt begins at position 0, whatever its length without padding. Else the new rows are the last ones.
    Expr lengths = n.cast(n.reshape(n.tensor(at.lengths), {n.simplify(product(n.shape(at.lengths)))}), kInt64);
    require_each_at_least(n, lengths, 1 - at.short_by,
                          at.short_by > 0 ? "seqlens_k below 0" : "key_total_sequence_lengths below 1");
    Expr before = n.add(lengths, n.op("scalar_to_tensor", {n.simplify(int_imm(at.short_by) - length)}));
    Expr is_prompt = n.op("equal", {n.op("scalar_to_tensor", {total}), n.op("scalar_to_tensor", {length})});
    past = n.op("where", {is_prompt, n.scalar(0, kInt64), before});
  }

  // Returns the output and the caches.
  Outputs convert(std::optional<size_t> position_ids) {
    if (n_.attr_int("do_rotary", 0) != 0) turn(position_ids);
    Expr key = with_past(3, call.key), value = with_past(4, call.value);
    call.key = n_.slice(key, 2, int_imm(0), total);
    call.value = n_.slice(value, 2, int_imm(0), total);
    set_scale(n_, call);
    steps = attend(n_, call);
    return {n_.of(join_heads(n_, steps->output)), n_.of(key), n_.of(value)};
  }
  // Returns the position of the first new row, as [batch, 1, 1, 1].
  Expr offset() { return as_column(n_, past); }

  AttentionCall call;
  Expr length = int_imm(0), total = int_imm(0);  // the new rows, and all that the longest batch element has then
  Expr past = int_imm(0);                        // the rows of each batch element before the new ones
  std::optional<AttentionSteps> steps = {};

 private:
  void turn(std::optional<size_t> position_ids) {
    if (!n_.has(at_.cos) || !n_.has(at_.sin)) n_.fail("do_rotary needs cos_cache and sin_cache");
    Expr at = position_ids && n_.has(*position_ids)
                  ? n_.tensor(*position_ids)
                  : n_.add(n_.with_new_axis(past, 1), positions_from(n_, int_imm(0), length));
    Expr cos = angles_at(n_, n_.tensor(at_.cos), at), sin = angles_at(n_, n_.tensor(at_.sin), at);
    const bool interleaved = n_.attr_int("rotary_interleaved", 0) != 0;
    call.query = rotate(n_, call.query, cos, sin, interleaved);
    call.key = rotate(n_, call.key, cos, sin, interleaved);
  }
  // Returns the cache with the new rows behind what each batch element has of it, and zeros behind these.
  Expr with_past(size_t i, const Expr& rows) {
    if (!n_.has(i)) return rows;
    Expr cache = with_heads(n_, n_.tensor(i), n_.dim_of(rows, 1));
    const Expr have = n_.dim_of(cache, 2);
    Expr at = n_.reshape(positions_from(n_, int_imm(0), have), {have, int_imm(1)});
    cache = n_.op("where", {n_.op("less", {at, as_column(n_, past)}), cache, n_.scalar_like(0, rows)});
    std::vector<Expr> more = n_.shape_of(rows);
    more[2] = named_if_long(n_, n_.simplify(max(total - have, int_imm(0))), "more");
    if (!is_int(more[2], 0)) cache = join(n_, {cache, n_.broadcast_to(n_.scalar_like(0, rows), more)}, 2);
    return n_.standard("TensorScatter", {cache, rows, past}, {{"axis", int64_t{2}}});
  }

  Node& n_;
  const Places& at_;
};

// ---- GroupQueryAttention

// Returns where a query sees a key: not after it, and within the window before it.
Expr seen_keys(Node& n, CachedAttention& attention) {
  const int64_t window = n.attr_int("local_window_size", -1);
  if (n.attr_int("causal", 1) == 0) {
    Expr ends = n.add(attention.offset(), n.op("scalar_to_tensor", {attention.length}));
    return n.op("less", {positions_from(n, int_imm(0), attention.total), ends});
  }
  Expr mask = causal_mask(n, attention.length, attention.total, attention.offset());
  if (window <= 0) return mask;
  Expr begin = n.sub(attention.offset(), n.scalar(static_cast<double>(window), kInt64));
  Expr before = causal_mask(n, attention.length, attention.total, begin);
  return n.op("logical_and", {mask, n.op("logical_not", {before})});
}
Outputs group_query_attention(Node& n) {
  refuse_options_of_gqa(n);
  CachedAttention attention(n, kGroupQuery);
  AttentionCall& call = attention.call;
  if (double softcap = n.attr_float("softcap", 0); softcap > 0) call.softcap = softcap;
  if (n.has(10)) call.bias = n.tensor(10);
  if (n.has(11)) call.sink = n.reshape(n.tensor(11), {int_imm(1), n.dim(11, 0), int_imm(1), int_imm(1)});
  if (!n.has(11) && n.attr_int("smooth_softmax", 0) == 1)
    call.sink = n.reshape(n.scalar(0, n.dtype(0)), int_imms({1, 1, 1, 1}));
  call.allowed = seen_keys(n, attention);
  const int64_t shown = n.attr_int("qk_output", 0);
  call.shows_scores = n.has_output(3) && shown != 0;
  Outputs outputs = attention.convert(9);
  if (call.shows_scores) outputs.push_back(n.of(shown == 1 ? *attention.steps->masked : *attention.steps->weights));
  return outputs;
}

// ---- SparseAttention (Child et al., "Generating long sequences with sparse transformers", 2019)

// Returns the layouts [layouts, blocks of queries, blocks of keys] that the compressed rows in inputs 5 and 6 say.
Expr block_layouts_of_the_run(Node& n) {
  if (n.rank(5) != 2 || n.rank(6) != 2)
    n.fail("block_row_indices and block_col_indices: expected matrices with a row for each layout");
  const Expr layouts = n.dim(5, 0), blocks = n.simplify(n.dim(5, 1) - 1), most = n.dim(6, 1), one = int_imm(1);
  n.require_equal(layouts, n.dim(6, 0), "rows of block_row_indices and block_col_indices");
  auto number = [&](const Expr& value) { return n.op("scalar_to_tensor", {n.simplify(value)}); };
  Expr begins = n.cast(n.tensor(5), kInt64), columns = n.cast(n.tensor(6), kInt64);
  // An entry is in the row whose begin is the last one at or before it.
  Expr entries = n.reshape(positions_from(n, int_imm(0), most), {one, one, most});
  Expr is_behind = n.cast(n.op("less_equal", {n.with_new_axis(begins, 2), entries}), kInt64);
  Expr row = n.sub(n.reduce("sum", is_behind, {1}, false), n.scalar(1, kInt64));
  auto within = [&](const Expr& x) {
    return n.op("logical_and", {n.op("greater_equal", {x, n.scalar(0, kInt64)}), n.op("less", {x, number(blocks)})});
  };
  Expr is_used = n.op("logical_and", {within(row), within(columns)});
  // Entries that no row has, which fill up the list, go to a place behind the blocks.
  const Expr places = n.simplify(blocks * blocks);
  Expr place = n.op("where", {is_used, n.add(n.mul(row, number(blocks)), columns), number(places)});
  Expr none = n.op("zeros", {shape_expr({layouts, n.simplify(places + 1)})}, FillAttrs{DType::uint(8)});
  Expr ones = n.op("ones", {shape_expr({layouts, most})}, FillAttrs{DType::uint(8)});
  Expr flags = n.op("scatter_elements", {none, place, ones}, ScatterElementsAttrs{.axis = 1});
  flags = n.cast(n.slice(flags, 1, int_imm(0), places), kBool);
  return n.reshape(flags, {layouts, blocks, blocks});
}
// Returns the same of lists that are constants.
Tensor block_layouts(Node& n, const Tensor& rows, const Tensor& columns) {
  if (rows.shape().size() != 2 || columns.shape().size() != 2 || rows.shape()[0] != columns.shape()[0] ||
      rows.shape()[0] < 1 || rows.shape()[1] < 1)
    n.fail("block_row_indices and block_col_indices: expected matrices with a row for each layout");
  const int64_t layouts = rows.shape()[0], blocks = rows.shape()[1] - 1, most = columns.shape()[1];
  constexpr int64_t kMostElements = int64_t{1} << 28;
  if (blocks > 0 && layouts > kMostElements / blocks / blocks) n.unsupported("{} blocks of queries", blocks);
  std::vector<uint8_t> mask(static_cast<size_t>(layouts * blocks * blocks), 0);
  for (int64_t layout = 0; layout < layouts; ++layout) {
    for (int64_t row = 0; row < blocks; ++row) {
      const int64_t begin = rows.as_int(layout * (blocks + 1) + row),
                    end = rows.as_int(layout * (blocks + 1) + row + 1);
      if (begin < 0 || end > most) n.fail("block_row_indices: {} to {}, expected 0 to {}", begin, end, most);
      for (int64_t e = begin; e < end; ++e) {
        const int64_t column = columns.as_int(layout * most + e);
        if (column < 0 || column >= blocks) n.fail("block_col_indices: {}, expected 0 to {}", column, blocks - 1);
        mask[static_cast<size_t>((layout * blocks + row) * blocks + column)] = 1;
      }
    }
  }
  return Tensor::of<uint8_t>({layouts, blocks, blocks}, kBool, mask);
}
// Returns where the layout of a head allows a key: [batch, heads, queries, keys]. The heads have the layouts in turn.
Expr allowed_blocks(Node& n, CachedAttention& attention) {
  auto rows = n.constant(5), columns = n.constant(6);
  Expr layouts = rows && columns ? constant(block_layouts(n, *rows, *columns), n.span()) : block_layouts_of_the_run(n);
  const Expr count = n.dim_of(layouts, 0), heads = int_imm(n.required_int("num_heads"));
  n.require_equal(n.simplify(floor_mod(heads, max(count, int_imm(1)))), int_imm(0), "heads that layouts leave over");
  Expr size = n.scalar(static_cast<double>(n.required_int("sparse_block_size")), kInt64);
  Expr queries = n.add(n.with_new_axis(attention.past, 1), positions_from(n, int_imm(0), attention.length));
  auto of_blocks = [&](const Expr& x, const Expr& positions, int64_t axis) {
    return n.op("take", {x, n.op("floor_divide", {positions, size})}, TakeAttrs{.axis = axis, .mode = "clip"});
  };
  Expr mask = of_blocks(layouts, queries, 1);  // [layouts, batch, queries, blocks]
  mask = of_blocks(mask, positions_from(n, int_imm(0), attention.total), 3);
  std::vector<Expr> dims = n.shape_of(n.transpose(mask, {1, 0, 2, 3}));
  std::vector<Expr> repeated = {dims[0], n.simplify(floor_div(heads, max(count, int_imm(1)))), dims[1], dims[2],
                                dims[3]};
  mask = n.broadcast_to(n.with_new_axis(n.transpose(mask, {1, 0, 2, 3}), 1), repeated);
  dims[1] = heads;
  return n.reshape(mask, dims);
}
Outputs sparse_attention(Node& n) {
  if (n.required_int("sparse_block_size") < 1) n.fail("sparse_block_size: expected at least 1");
  CachedAttention attention(n, kSparse);
  Expr causal = causal_mask(n, attention.length, attention.total, attention.offset());
  attention.call.allowed = n.op("logical_and", {causal, allowed_blocks(n, attention)});
  attention.call.empty_rows = true;  // those behind the end of a batch element
  return attention.convert(std::nullopt);
}

}  // namespace

std::vector<ConverterRow> contrib_group_query_converters() {
  return in_domain(
      "com.microsoft",
      {
          {"GroupQueryAttention", 1, 7, 16, group_query_attention,
           "causal do_rotary k_quant_type kv_cache_bit_width kv_num_heads local_window_size num_heads qk_norm_epsilon "
           "qk_output rotary_interleaved scale sliding_window_cache smooth_softmax softcap v_quant_type",
           "", 0b0011110},
          {"SparseAttention", 1, 9, 11, sparse_attention,
           "do_rotary kv_num_heads num_heads rotary_interleaved scale sparse_block_size", "", 0b110},
      });
}

}  // namespace relaxc::onnx_import
