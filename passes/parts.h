// Where the parts of joined tensors lie: what find_views plans and place_parts writes down.
#pragma once
#include "ir/kernel_call.h"

namespace relaxc {

// A tensor begins so many bytes behind the begin of another one, which holds it.
struct MemoryPlace {
  VarRef memory;
  Expr offset;
};

// Joins are added from the last one of a block to the first, so that one which is a part of another, or whose parts are
// neighbours in another, as in `join(a, b), join(a, b, c)`, lies in that one's memory.
class MemoryPlaces {
 public:
  // What adding a join would do: its own place, that of each operand that gets one, and the numbers of the operands
  // that cannot lie there, since they have another place, or none can be given to them.
  struct Plan {
    MemoryPlace place;
    std::vector<std::pair<VarRef, MemoryPlace>> parts = {};
    std::vector<size_t> elsewhere = {};
  };
  // `owners` has the variable in whose memory an operand lies; nullopt where that is not to be moved.
  Plan plan(const VarRef& join, const std::vector<Expr>& operands,
            const std::vector<std::optional<VarRef>>& owners) const;
  void add(const VarRef& join, const Plan& plan);
  // Returns null for a tensor with memory of its own.
  const MemoryPlace* of(const VarRef& tensor) const;

 private:
  std::unordered_map<const NodeHeader*, MemoryPlace> places_;
};

// Returns the size of a tensor of known shape.
Expr byte_count(const Type& tensor);
// Returns a part of a tensor's memory as a tensor of this type, which has the same dtype.
Expr memory_view(const Expr& memory, const Type& type, const Expr& offset, const Span& span);

}  // namespace relaxc
