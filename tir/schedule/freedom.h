// What the loops of a program allow: which steps of a schedule would fit, and what stands against the others. The
// answers are those of the conditions that the primitives themselves ask.
#pragma once
#include "tir/edit/workspace.h"
#include "tir/schedule/carried.h"

namespace relaxc {

// A combination of values of several iterations.
struct LoopReduction {
  scheduling::TreeNode* block;  // that combines them by reduce axes; null: a statement does
  std::string what;             // "sum into C": a sum, product, max or min; a choice as in argmax; another update
  bool in_order;                // in another order of the iterations the result would be another one
};

struct LoopFreedom {
  scheduling::TreeNode* loop;
  // Why `parallel` and `vectorize` refuse the loop; absent: its iterations are independent.
  std::optional<std::string> dependence = {};
  std::optional<std::string> effect = {};  // why nothing is known of some accesses
  std::vector<LoopReduction> reductions = {};
  std::vector<CarriedAccess> carried = {};
  std::vector<AccessStride> strides = {};
  scheduling::Nodes exchanged = {};  // the loops with which `reorder` would exchange it, outermost first
};

// Returns an entry for each loop around blocks, in program order, outer loops before inner ones.
std::vector<LoopFreedom> find_freedoms(scheduling::Workspace& workspace);

// The same of a loop around statements without blocks, which primitives do not look into: what may be written there by
// hand. (tir/schedule/plain_loops.cc)
struct PlainLoopFreedom {
  Ref<For> loop;
  std::optional<std::string> dependence = {};
  std::optional<std::string> effect = {};  // why nothing is known of the iterations
  std::vector<LoopReduction> reductions = {};
  std::vector<CarriedAccess> carried = {};
  std::vector<AccessStride> strides = {};
  std::vector<Ref<For>> exchanged = {};
};
// Returns an entry for each loop of the statement, the body of a block with these windows if it is one, outer loops
// before inner ones. `facts` holds those of the loops and axes around it.
std::vector<PlainLoopFreedom> find_plain_freedoms(const Stmt& stmt, const std::vector<MatchBuffer>& windows,
                                                  const Analyzer& facts);

}  // namespace relaxc
