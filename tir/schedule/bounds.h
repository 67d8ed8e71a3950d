// The range of an index expression, or the region of an access, over all iterations of some loops.
#pragma once
#include "tir/schedule/tree.h"

namespace relaxc::scheduling {

// Variables that run over a range while the others stand still.
using RunningVars = std::unordered_map<const NodeHeader*, Range>;
RunningVars running(const std::vector<TreeNode*>& loops);

// First and last value, as expressions over the other variables; nullopt when it has no bounds that can be written so.
// Never too narrow; exact for sums of variables with constant factors.
struct Bounds {
  Expr min, max;
};
std::optional<Bounds> bounds_over(const Expr& e, const RunningVars& vars, const Analyzer& facts);

// A constant that the expression never exceeds; also under min and max, of which one side is enough. INT64_MAX: none is
// known.
int64_t constant_above(const Expr& e, const Analyzer& facts);

// The range that covers [min, min + extent) over all iterations; the buffer's whole dim when nothing better is known.
Range range_over(const Range& range, const Expr& dim, const RunningVars& vars, const Analyzer& facts);
// A range around both.
Range hull(const Range& a, const Range& b, const Expr& dim, const Analyzer& facts);
bool covers(const Range& outer, const Range& inner, const Analyzer& facts);

// The region of the block's access (in terms of its axes) over the iterations of the loops up to `below`, which do not
// count themselves; in terms of the loops above. `below` null: all loops of the scope.
std::vector<Range> region_at(const TreeNode* block, const BufferRegion& region, const TreeNode* below);
// The hull of what these blocks access of the buffer.
enum class AccessKind : uint8_t { kRead, kWrite };
std::optional<std::vector<Range>> region_at(const std::vector<TreeNode*>& blocks, const Buffer& buffer, AccessKind kind,
                                            const TreeNode* below);

}  // namespace relaxc::scheduling
