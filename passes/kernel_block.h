// The kernels of a block of bindings and who uses them: what passes that group kernels ask.
#pragma once
#include "passes/compose.h"

namespace relaxc {

// A call_tir of one result in a dataflow block.
struct BlockKernel {
  Binding binding;
  KernelCall call;
  PrimFuncRef program;  // with indices in int64
  OpPattern pattern;
};

class KernelBlock {
 public:
  static constexpr size_t kOther = SIZE_MAX;  // a user that is not one of the kernels

  // `used_outside` has the variables that are used behind the block.
  KernelBlock(const std::vector<Binding>& bindings, const IRModule& module, const VarSet& used_outside,
              bool is_dataflow);

  const std::vector<BlockKernel>& kernels() const { return kernels_; }
  // Returns the number of the kernel that makes the tensor; null for other values.
  const size_t* number_of(const Expr& tensor) const;
  // Returns the kernels that use a value of the block, or kOther, for each use.
  const std::vector<size_t>& users_of(const Expr& value) const { return users_.at(value.get()); }
  bool is_used_outside(const Expr& value) const { return used_outside_.contains(value.get()); }
  // Returns whether the kernel belongs into the epilogue of a reduction or contraction: it is elementwise on that one's
  // result, directly or through others, and they are the only uses.
  bool finishes_heavy(const BlockKernel& kernel) const;

 private:
  std::vector<BlockKernel> kernels_;
  std::unordered_map<const NodeHeader*, size_t> numbers_;  // by the bindings' variables
  std::unordered_map<const NodeHeader*, std::vector<size_t>> users_;
  const VarSet& used_outside_;
};

}  // namespace relaxc
