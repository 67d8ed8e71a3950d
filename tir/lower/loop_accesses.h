// The elements of flat buffers that a loop's body accesses, and whether they differ.
#pragma once
#include <algorithm>
#include <unordered_set>

#include "ir/arith.h"
#include "ir/module.h"
#include "ir/stmt.h"

namespace relaxc {

using NodeSet = std::unordered_set<const NodeHeader*>;

// The loads and stores of one element, or vector, in each iteration of the loops around them.
struct Access {
  Expr index;  // as the loops' variables give it
  Type value;
  std::vector<Ref<For>> loops;  // in the body, outermost first
  bool is_loaded = false, is_stored = false;
  bool is_certain = false;  // a store runs in each iteration
  // The conditions of the first one, if that stores a value which does not depend on the buffer.
  std::optional<std::vector<Expr>> set_if = {};
};
// The accesses to one buffer in a loop's body.
struct BufferAccesses {
  Buffer buffer;
  std::vector<Access> each = {};
  bool is_masked = false;  // one has a predicate, or several indices
};

struct LoopAccesses {
  std::vector<BufferAccesses> buffers;  // in the order of the program
  NodeSet defined;                      // variables and buffers of the body, and the loop's variable
  bool is_plain = true;                 // there are loads, stores, loops, branches and bindings only
};
LoopAccesses accesses_of(const For& loop);

// One digit of an index: `count` values that are `stride` elements apart.
struct Digit {
  int64_t stride, count;
  friend bool operator==(const Digit&, const Digit&) = default;
};
// Returns the digits of an element's index or, first, of a vector's lanes; each loop must have a constant extent, and
// the index a constant stride in it.
std::optional<std::vector<Digit>> digits_of(const Expr& index, const std::vector<Ref<For>>& loops,
                                            const Analyzer& facts);
// Returns whether the sums of the digits differ for all their values.
bool are_distinct(std::vector<Digit> digits);
// Returns whether all these accesses are of different elements, in all iterations of their loops.
bool are_disjoint(const std::vector<Access>& each, const Analyzer& facts);

// Returns whether an access to one buffer may be of the memory of another.
bool may_alias(const PrimFuncRef& function);

// ---- Loops as vectors

// Returns the bits of the widest element that the body loads or stores.
int widest_bits(const Stmt& body);
// Returns whether the body has vectors, or loops that become vectors.
bool has_vectors(const Stmt& body);
// Returns the loop's extent, or 0 where that is negative.
Expr iterations_of(const For& loop, const Analyzer& facts);
// Fewer lanes than this share of a vector are not worth one.
constexpr int64_t kLeastShareOfVector = 4;
// Splits a loop into vectorized loops of that many lanes, in a loop of the kind `around`, and a rest, which is a
// shorter vector, or serial if it is short or its extent is not known.
Stmt in_vectors(const Stmt& loop, int64_t lanes, ForKind around, const Analyzer& facts);

}  // namespace relaxc
