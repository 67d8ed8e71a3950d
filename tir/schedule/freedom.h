// What the loops of a program allow: which steps of a schedule would fit, and what stands against the others. The
// answers are those of the conditions that the primitives themselves ask.
#pragma once
#include "tir/edit/workspace.h"

namespace relaxc {

// An access of one iteration, and how far the next iteration is from it in memory (in elements, row by row).
struct AccessStride {
  Buffer buffer;
  std::optional<Expr> stride;  // absent: it differs from iteration to iteration
};

// How an access meets a store of another iteration of a loop.
enum class Meets : uint8_t {
  kCarried,  // it loads what that iteration stores
  kStored,   // it stores to an element to which that iteration stores, too
  kShared,   // all iterations use the same elements, and each stores them before it loads them
  kMayLoad,  // it loads an element that is not known to be another one than the store's
  kMayStore  // it stores to one
};

// An access that keeps the iterations of a loop from running in any order.
struct CarriedAccess {
  Buffer buffer;
  std::vector<Expr> indices;
  std::optional<int64_t> distance;  // in iterations; absent: it is not a constant
  Meets how = Meets::kCarried;
};

// A block that combines values of several iterations.
struct LoopReduction {
  scheduling::TreeNode* block;
  std::string kind;  // "sum", "product", "max", "min"; "choice" as in argmax; "update"
  bool in_order;     // in another order of the iterations the result would be another one
};

struct LoopFreedom {
  scheduling::TreeNode* loop;
  // Why `parallel` and `vectorize` refuse the loop; absent: its iterations are independent.
  std::optional<std::string> dependence = {};
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
  std::optional<std::string> effect = {};    // why nothing is known of the iterations
  std::vector<std::string> reductions = {};  // "sum into s"
  std::vector<CarriedAccess> carried = {};
  std::vector<AccessStride> strides = {};
  std::vector<Ref<For>> exchanged = {};
};
// Returns an entry for each loop of the statement, outer loops before inner ones. `facts` holds those of the loops and
// axes around it.
std::vector<PlainLoopFreedom> find_plain_freedoms(const Stmt& stmt, const Analyzer& facts);

}  // namespace relaxc
