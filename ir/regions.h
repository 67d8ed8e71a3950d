// Which elements of which buffers a statement touches.
#pragma once
#include "ir/arith.h"
#include "ir/visit.h"

namespace relaxc {

struct Accesses {
  std::vector<BufferRegion> reads, writes;  // in order of first access
};
// The regions that `body` (and `init`) reads and writes, as ranges over the variables in scope outside of it: an index
// that is linear in loop variables covers what lies between its ends; any other that depends on a variable bound
// inside, or on loaded data, the whole dim; several accesses the range around them when they are a constant apart. A
// buffer allocated inside does not count; nor does the read of an accumulator by its own update (a buffer that is
// written and has an init). A range may be undefined where a guard in the body keeps the access from running: whoever
// evaluates it uses with_defined_operands() in ir/undefined.h.
Accesses find_accesses(const Stmt& body, const std::optional<Stmt>& init = std::nullopt);

// Whether a vector access covers whole rows of a dense buffer, from the start of one: the only one whose lanes may run
// over the end of the last dim. Instructions take tiles of rows so: 64 lanes of B[0, 0:64] of an int8[16, 4].
bool covers_rows(const std::vector<Expr>& indices, const std::vector<Expr>& shape, const Analyzer& facts);

}  // namespace relaxc
