// Attention and rotary positions, which several ONNX operators have in their own forms.
#pragma once
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

// softmax(query . key^T * scale, capped, + bias, where allowed) . value
struct AttentionCall {
  Expr query, key, value;                          // [batch, heads, length, size]; a key or value may have fewer heads
  std::optional<Expr> bias = {}, allowed = {};     // both broadcast to the scores [batch, heads, queries, keys]
  std::optional<Expr> sink = {};                   // one more score of each row, without a value: [1, heads or 1, 1, 1]
  std::optional<double> scale = {}, softcap = {};  // absent: 1 / sqrt(size), none
  bool causal = false;                             // query i sees the keys up to i
  bool empty_rows = false;                         // a row may allow no key at all; it then gives 0
  bool shows_scores = false;                       // whether the steps are results, too
  DType softmax_dtype = kFloat32;                  // at least
};
struct AttentionSteps {
  Expr output;  // [batch, heads, queries, size of a value]
  // In the query's dtype, if the call shows them: after the scale, the cap, bias and mask, and the softmax.
  std::optional<Expr> products = {}, capped = {}, masked = {}, weights = {};
};
AttentionSteps attend(Node& n, const AttentionCall& call);

// Returns [batch, length, heads * size] as [batch, heads, length, size], and back.
Expr split_heads(Node& n, const Expr& x, int64_t heads);
Expr join_heads(Node& n, const Expr& x);
// Returns first, first + 1, ... as int64.
Expr positions_from(Node& n, const Expr& first, const Expr& count);
// Returns where key k is not after query q + offset, as [..., queries, keys]. Offsets are int64, of shape [..., 1, 1].
Expr causal_mask(Node& n, const Expr& queries, const Expr& keys, const Expr& offset);

// Lets the run check that the least of the integers is at least that.
void require_each_at_least(Node& n, const Expr& numbers, int64_t least, const char* what);

// Turns the first 2 * [dim of cos] numbers of each row of x by the angles whose cosine and sine broadcast to
// [..., half]. The pairs are neighbours (interleaved), else halves (Su et al., "RoFormer", 2021).
Expr rotate(Node& n, const Expr& x, const Expr& cos, const Expr& sin, bool interleaved);

}  // namespace relaxc::onnx_import
