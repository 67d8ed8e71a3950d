// Records the values that each kernel call of a run computes, and finds the first call where two runs differ.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "tools/compare.h"
#include "vm/program.h"

namespace relaxc::tools {

// One call of a kernel.
struct ObservedCall {
  std::string kernel;
  std::string nodes;            // of the model that it comes from, "/conv1/Conv, /relu/Relu"; "" for a text
  std::vector<Tensor> tensors;  // copies of what it wrote, or of all of its tensors (observe)
  std::vector<uint64_t> read;   // hashes of the contents that it read
  std::string not_finite = {};  // "a NaN at [0, 3]", where its inputs have none: what it made first
  bool has_nan = false;         // whether that is a NaN, and not an infinity
};
struct ObservedRun {
  std::vector<ObservedCall> calls;
  vm::Value result;
  bool is_complete = true;  // false: later calls are left out, because their values take too much memory
};

struct ObserveOptions {
  std::string kernel = {};             // of which all tensors are copied, and of no others; "": what each kernel writes
  std::string pieces = "kernels run";  // what the progress of the run counts
};
// Runs the function and copies tensors of its kernels. `module` has the programs that these were made from.
ObservedRun observe(const Program& program, const IRModule& module, const std::vector<vm::Value>& inputs,
                    const std::string& function, const ObserveOptions& options = {});

// The place where two runs part.
struct Parting {
  std::string kernel, nodes, difference;
};
// Returns the first kernel of `actual` whose result no kernel of the same nodes has in `expected`, in any layout. A
// kernel whose reader has the expected result is right: it computes in another way. Kernels of fused nodes may have
// results that are no node's; what cannot be compared is passed over.
std::optional<Parting> first_parting(const ObservedRun& expected, const ObservedRun& actual,
                                     const Closeness& closeness);
// Returns the nodes in the label of a kernel, "/conv1/Conv, /relu/Relu".
std::vector<std::string_view> nodes_in(std::string_view label);
// Returns "a NaN at [0, 3]" or "an infinity at [2]" for the first such element; "" where all are finite.
std::string not_finite(const Tensor& tensor);
// Returns whether it is a tensor with a NaN.
bool has_nan(const vm::Value& value);

}  // namespace relaxc::tools
