// How the values of a block's axes come from the loops around it. A value is a sum of digits: a digit of a loop (or of
// a sum of digits that runs over all of 0, 1, ...) in mixed radix, (source // lower) % extent, times a scale.
// Splitting, fusing and tiling loops give such sums; from them follows whether each iteration meets other axis values,
// and how values divide into an outer and an inner part.
#pragma once
#include "ir/arith.h"
#include "ir/module.h"

namespace relaxc {

struct IterDigit {
  size_t source;  // in IterMap::sources
  Expr lower, extent, scale;
  Expr value;           // (source // lower) % extent as an expression
  bool highest = true;  // all of source // lower: a symbolic extent need not be known to reach the source's
};
struct IterSum {
  std::vector<IterDigit> digits;  // by scale, largest first
  Expr base;                      // what does not depend on the loops
  Expr extent;                    // the values are base + [0, extent), not all of them perhaps
};
struct IterSource {
  Expr value;  // the loop's variable, or the sum that counts on its own
  Expr extent;
  std::vector<IterDigit> parts;  // of a sum
};
struct IterMap {
  std::vector<IterSource> sources;
  std::vector<IterSum> sums;  // one per value
};

struct LoopRange {
  VarRef var;
  Range range;
};
// The values as sums of digits of the loops' variables; nullopt (`why` says where) when one has another form.
std::optional<IterMap> find_iter_map(const std::vector<Expr>& values, const std::vector<LoopRange>& loops,
                                     const Analyzer& facts, std::string* why = nullptr);
// Whether two iterations of the loops, among those for which the conditions hold, never give all values alike; `why`
// says for which loop they do.
bool is_injective(const IterMap& map, const std::vector<Expr>& conditions, const Analyzer& facts,
                  std::string* why = nullptr);

}  // namespace relaxc
