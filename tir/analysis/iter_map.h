// Writes the values of a block's axes in terms of the loops around it, as TVM's iter_affine_map does. A value is a sum
// of digits. A digit is a part of a loop variable (or of a sum of digits that takes all of the values 0, 1, ...) in
// mixed radix, (source // lower) % extent, times a scale. Splitting, fusing and tiling loops give such sums, and so
// does subtracting a loop variable, whose digit then counts down. They tell whether different iterations give different
// axis values, and how values divide into an outer and an inner part.
#pragma once
#include "ir/arith.h"
#include "ir/module.h"

namespace relaxc {

struct IterDigit {
  size_t source;  // in IterMap::sources
  Expr lower, extent, scale;
  Expr value;             // (source // lower) % extent as an expression, or extent - 1 minus that if it is reversed
  bool highest = true;    // the digit is all of source // lower: a symbolic extent need not be known to reach it
  bool reversed = false;  // the digit counts down while the source counts up
};
struct IterSum {
  std::vector<IterDigit> digits;  // sorted by scale, largest first
  Expr base;                      // the loop-invariant part
  Expr extent;                    // the values are in base + [0, extent), and need not be all of it
};
struct IterSource {
  Expr value;  // the loop's variable, or the dense sum that serves as a source
  Expr extent;
  std::vector<IterDigit> parts;  // the digits, if the source is a sum
};
struct IterMap {
  std::vector<IterSource> sources;
  std::vector<IterSum> sums;  // one per value
};

struct LoopRange {
  VarRef var;
  Range range;
};
// Returns whether the sum of these digits descends along some loop.
bool counts_down(const IterMap& map, const std::vector<IterDigit>& digits);
// Returns the values as sums of digits of the loops' variables, or nullopt if one has another form (`why` names it).
std::optional<IterMap> find_iter_map(const std::vector<Expr>& values, const std::vector<LoopRange>& loops,
                                     const Analyzer& facts, std::string* why = nullptr);
// Returns such sums if two iterations of the loops, among those for which the conditions hold, always differ in some
// value; otherwise `why` says for which loop they do not.
std::optional<IterMap> find_injective_map(const std::vector<Expr>& values, const std::vector<LoopRange>& loops,
                                          const std::vector<Expr>& conditions, const Analyzer& facts,
                                          std::string* why = nullptr);

}  // namespace relaxc
