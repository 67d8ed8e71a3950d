// Finds the elements of buffers that a statement reads and writes.
#pragma once
#include "ir/arith.h"
#include "ir/visit.h"

namespace relaxc {

struct Accesses {
  std::vector<BufferRegion> reads, writes;  // in order of first access
};
// Returns the regions that `body` (and `init`) reads and writes, as ranges over the variables in scope outside of it.
// An index that is linear in loop variables covers the range between its ends. Any other index that depends on a
// variable bound inside, or on loaded data, covers the whole dim. Several accesses cover their hull when they are a
// constant distance from each other. A buffer allocated inside does not count, and neither does the read of an
// accumulator by its update (a buffer that is written and has an init). A range may be undefined where a guard in the
// body keeps the access from running: code that evaluates it uses with_defined_operands() of ir/undefined.h. TVM's
// region analysis (GetBlockAccessRegion) answers the same question.
Accesses find_accesses(const Stmt& body, const std::optional<Stmt>& init = std::nullopt);

// Returns whether a vector access covers whole rows of a dense buffer, from the start of one. Only such an access may
// have lanes beyond the last dim. Tile instructions use it: 64 lanes of B[0, 0:64] of an int8[16, 4].
bool covers_rows(const std::vector<Expr>& indices, const std::vector<Expr>& shape, const Analyzer& facts);

}  // namespace relaxc
