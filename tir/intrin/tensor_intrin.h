// Tensor intrinsics: what an instruction computes (a description that tensorize looks for) and how it is called (the
// implementation that it puts there). Both are tensor programs of the same params; the description is one block in its
// loops, the implementation any body, usually calls of LLVM intrinsics on windows of the params.
#pragma once
#include <map>
#include <vector>

#include "ir/module.h"
#include "tir/dot_forms.h"

namespace relaxc {

struct TensorIntrin {
  std::string name;
  PrimFuncRef description, implementation;
  std::vector<TensorIntrin> other_layouts = {};  // of the same name; tried in turn where this one does not match
};

// The intrinsics that a schedule knows, by name. The built-in ones (builtin_intrins.cc) and what users add.
class TensorIntrins {
 public:
  // Throws a CompileError when the two do not fit each other.
  void add(TensorIntrin intrin);
  const TensorIntrin* find(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  std::map<std::string, TensorIntrin, std::less<>> rows_;
};

// Describes to a person the buffers of each intrinsic, its statement, and the processor features that it needs.
std::string describe_intrins(const TensorIntrins& intrins);

// Reads a module of the programs `description`, whose attribute tensor_intrin is the name, and `implementation`.
TensorIntrin parse_tensor_intrin(std::string_view text, const std::string& filename);

// For x86-64 (AVX2, AVX-512, VNNI, bf16) and AArch64; the list is in builtin_intrins.cc.
const TensorIntrins& builtin_tensor_intrins();

// Returns the intrinsics of matrix registers (tir/tile_forms.h).
std::vector<TensorIntrin> tile_intrins();

}  // namespace relaxc
