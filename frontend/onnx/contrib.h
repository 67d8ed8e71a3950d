// What the operators of com.microsoft have in common.
#pragma once
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

// Converts a node to the operator of ai.onnx of the same meaning: {same_as_standard, "Trilu"}.
Expr same_as_standard(Node& n, const Expr& x, const char* op);
std::vector<std::optional<Expr>> optional_tensors(Node& n);
// Returns x through an activation function of that name; "" is none. The params are its attributes in order.
Expr activated(Node& n, const Expr& x, const std::string& name, const std::vector<double>& params);
// These move the channels of an image from the last axis behind the batch, and back.
Expr channels_first(Node& n, const Expr& x);
Expr channels_last(Node& n, const Expr& x);
// Returns the numbers of `bits` bits in the bytes of the last axis, which begin with the low ones.
Expr unpacked(Node& n, const Expr& bytes, int64_t bits);

struct AttentionCall;
// Takes the scale of the attribute; 0 stands for the default.
void set_scale(Node& n, AttentionCall& call);
// Returns a list with a number for each batch element as [batch, 1, 1, 1].
Expr as_column(Node& n, const Expr& list);
// Returns cos or sin for the positions [batch, length], for all heads.
Expr angles_at(Node& n, const Expr& cache, const Expr& positions);
// Returns keys or values [batch, heads, length, size] of that number of heads, which the run checks.
Expr with_heads(Node& n, const Expr& x, const Expr& heads);
// The caches with the new rows, and the number of rows before these.
struct Caches {
  Expr key, value, past = int_imm(0);
};
// Lets the call attend to the rows in inputs `first` and the next one, if they are there, before its own. With `shared`
// past and present share a buffer, of which that many rows count. Input `indirection`, if it is there, says which beam
// each row comes from: [b, w, j] for row j of beam w; the batch has those beams in order.
Caches with_caches(Node& n, AttentionCall& call, size_t first, const std::optional<Expr>& shared, size_t indirection);

}  // namespace relaxc::onnx_import
