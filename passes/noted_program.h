// Lets a kernel note the least and the greatest element of a tensor that it makes, while it stores it:
//
//   for p in T.parallel(e):                          for p in T.parallel(e):
//       for l in T.vectorized(16):                       least[p, :] = inf; greatest[p, :] = -inf
//           y[...] = value                    ->         for l in T.vectorized(16):
//                                                            y[...] = value
//                                                            least[p, l] = T.min(least[p, l], value)
//                                                            greatest[p, l] = T.max(greatest[p, l], value)
//                                                        noted[0, p, :] = least[p, :]; noted[1, p, :] = greatest[p, :]
//
// Each iteration of a parallel loop has its own notes (a slot), so that results are the same for any number of threads;
// T.min and T.max are exact, and give NaN where an element is one. Any rule may have scheduled the program: all that
// counts is that the stores of the tensor stand in vectorized loops.
#pragma once
#include <optional>
#include <vector>

#include "ir/module.h"

namespace relaxc {

struct NotedProgram {
  PrimFuncRef program;           // with the notes as its last output
  std::vector<Expr> notes = {};  // their shape: 2, slots, lanes
};

// Returns the scheduled program with notes of this result; nullopt where a store of it cannot be noted, or notes would
// be a large part of it.
std::optional<NotedProgram> with_noted_extremes(const PrimFuncRef& program, const Buffer& result);

}  // namespace relaxc
