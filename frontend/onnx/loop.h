// Loops of the graph (R.loop), for the operators that iterate.
#pragma once
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

struct LoopStep {
  std::optional<Expr> condition = {};  // a bool tensor of rank 0: whether there is a next iteration
  std::vector<Expr> carried, rows;     // rows are tensors, also of strings, which are stacked along a new axis 0
};
// Builds an iteration. `body` is a view of the node that builds inside of the loop, `i` the iteration's number. It is
// called again where an iteration changes the dims of a carried value, which then has dims of its own.
using LoopBody = std::function<LoopStep(Node& body, const Expr& i, const std::vector<Expr>& carried)>;

// Returns the carried values after at most `trips` iterations, then the stacked rows. Tensors of
// known dtype and rank can be carried, and sequences and optionals. `first` gives the condition of the first iteration,
// where steps have one.
std::vector<Expr> emit_loop(Node& n, const Expr& trips, const std::vector<Expr>& carried, const LoopBody& body,
                            const std::function<Expr()>& first = nullptr);

// Is thrown by emit_loop for a carried tensor whose rank an iteration changes, which no loop of the graph can carry.
struct CarriedRankChanges : CompileError {
  CarriedRankChanges(size_t which, int64_t before, int64_t after, const Span& span);
  size_t which;
  int64_t before, after;
};
// Refuses the node for the carried value of this name. Loops of at most so many iterations are written out.
[[noreturn]] void refuse_ranks(Node& n, const CarriedRankChanges& found, const std::string& name, int64_t most_written);

// Returns a new dim about which nothing is known but that it is one.
VarRef unknown_dim(Node& n, std::string name);
// Gives a tensor with unknown dims new variables for them, which are measured when the model runs, but for those that
// are known. Functions of the runtime (strings, sequences) make such tensors.
Expr with_measured_dims(Node& n, const Expr& x, const std::vector<std::optional<Expr>>& known = {},
                        const char* name = "d");

}  // namespace relaxc::onnx_import
