// Tensor programs that compute element by element, for tensors in other layouts (passes/choose_layouts.cc).
#pragma once
#include <variant>
#include <vector>

#include "ir/kernel_call.h"
#include "ir/layout.h"

namespace relaxc {

// Which tensors of a call lie in the layout. They have the shape `dims`, as all results do, which lie in it, too.
struct LaidOut {
  Layout layout;
  std::vector<Expr> dims;
  std::vector<bool> tensors;  // by tensor of the call
};
// Returns the program that computes the same elements there, or why there is none. A program can be changed so whose
// blocks store elements [n, c, h, w] of its results, or of tensors like these that it keeps to itself, from the same
// elements of these tensors and of what it has stored. Others are read where they lie.
std::variant<PrimFuncRef, std::string> program_in_layout(const KernelCall& call, const PrimFuncRef& program,
                                                         const LaidOut& laid_out);

}  // namespace relaxc
