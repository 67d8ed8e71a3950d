// The constants of an executable while it is made.
#pragma once
#include <unordered_map>

#include "vm/builder.h"
#include "vm/file_memory.h"

namespace relaxc::codegen {

// Merges constants of equal dtype, shape and bytes.
class ConstantTable {
 public:
  explicit ConstantTable(vm::ExecutableBuilder& executable) : executable_(executable) {}

  vm::ConstantIndex index(const Tensor& tensor) {
    auto& candidates = known_[vm::sampled_hash(tensor)];
    for (const auto& [other, index] : candidates) {
      bool same = same_contents(other, tensor);
      vm::release_pages(other);
      vm::release_pages(tensor);
      if (same) return index;
    }
    candidates.emplace_back(tensor, executable_.constant(tensor));
    return candidates.back().second;
  }

 private:
  vm::ExecutableBuilder& executable_;
  std::unordered_map<uint64_t, std::vector<std::pair<Tensor, vm::ConstantIndex>>> known_;
};

}  // namespace relaxc::codegen
