// The accesses of loops, in terms of the loops around them, and what keeps the iterations of a loop in their order.
#pragma once
#include "tir/analysis/dependence.h"
#include "tir/edit/tree.h"

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

// A load or a store. Bindings and axes of blocks are written out in its box.
struct LoopedAccess {
  Buffer buffer;
  std::vector<Expr> indices;  // as the program has them
  LoopAccess at;              // with all loops around it
  bool is_store = false;
  size_t statement = 0;                         // the number of the store that it belongs to
  std::optional<Expr> value = {};               // of a store, with bindings and axes written out
  const scheduling::TreeNode* block = nullptr;  // that holds it

  bool is_in(const VarRef& loop) const;
};

struct LoopedAccesses {
  std::vector<LoopedAccess> all;
  std::vector<Ref<For>> loops;  // those of statements, outer ones before inner ones
  std::unordered_map<const NodeHeader*, std::vector<LoopRange>> allocated;  // by buffer, the loops around it
  std::vector<std::pair<std::vector<LoopRange>, const char*>>
      opaque;  // why loops around it (none: all loops) keep their order
};
LoopedAccesses accesses_of(const Stmt& stmt);
// Returns those of all blocks and statements below the node.
LoopedAccesses accesses_of(const scheduling::TreeNode* root);

// What is known of the order of a loop's iterations.
struct IterationOrder {
  std::vector<CarriedAccess> carried = {};
  std::vector<std::string> updates = {};    // "sum into s", of elements that several iterations combine
  std::optional<std::string> unknown = {};  // why nothing is known of some accesses
};
// Compares the accesses in the loop; `facts` has the ranges of all loops. Accesses of one of the `reductions` to an
// element that the block combines are left out.
IterationOrder find_order(const LoopedAccesses& accesses, const VarRef& loop, const Analyzer& facts,
                          const scheduling::Nodes& reductions = {});
// Returns the strides of the accesses in the loop, each once.
std::vector<AccessStride> strides_in(const LoopedAccesses& accesses, const VarRef& loop, const Analyzer& facts);
// Returns why the order of the loop's iterations may matter for more than its loads and stores.
std::optional<std::string> effect_in(const LoopedAccesses& accesses, const VarRef& loop);

}  // namespace relaxc
