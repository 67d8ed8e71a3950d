// Follows the bytecode of a function without running it: its calls in order, the tensors that they read and write, and
// the memory in which these lie.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vm/executable.h"

namespace relaxc::tools {

enum class Place : uint8_t {
  kInput,
  kConstant,
  kArena,  // a part of the storage that the compiler has planned
  kOwn,    // an allocation of its own
  kValue,  // what a function returned, of a size that only the run knows
};

struct WalkedTensor {
  Place place;
  std::string type;                    // "float32[n, 4]", with numbers where the dims are known
  std::optional<int64_t> bytes;        // nullopt where the dims are not known
  std::optional<int64_t> offset = {};  // in the arena
  std::optional<size_t> writer = {};   // the call that writes it first
  // The calls from the first to the last one that touches it or a view of it, inclusive.
  size_t first_use = 0, last_use = 0;
  bool is_result = false;
  std::string name = {};         // of an input
  std::string result_name = {};  // of an output, "a, b" where one value is two; "" where values other than tensors are
};

struct WalkedCall {
  enum class Kind : uint8_t { kKernel, kRuntime, kFunction } kind;
  std::string name, nodes;            // as profiles call it, and the nodes of the model
  std::vector<size_t> reads, writes;  // tensors
};

struct WalkedFunction {
  std::vector<WalkedTensor> tensors;
  std::vector<WalkedCall> calls;
  std::optional<int64_t> arena_bytes = 0;  // of all storages together; nullopt: not known
  bool has_branches = false;               // then both sides of a branch are among the calls
};

// Walks the code once, from its first to its last word. `inputs`, unless they are empty, tell the dims.
WalkedFunction walk_bytecode(const vm::Executable& executable, const vm::Function& function,
                             std::span<const vm::Value> inputs = {});

}  // namespace relaxc::tools
