// How a tensor program uses the buffers that it is given: what a caller who knows nothing but the program has to pass,
// and what it gets.
#pragma once
#include "ir/module.h"

namespace relaxc {

struct BufferUse {
  Buffer buffer;
  bool is_read = false;     // before the program has written the element itself, as far as is known
  bool is_written = false;  // somewhere
  bool is_filled = false;   // every element is written in every run; false when that is not provable
};
// Returns one item per buffer param, in order. The init of a reduction counts as a write before the block's reads. A
// call that gets a buffer's pointer reads and writes what the block around it declares, or both where there is none.
std::vector<BufferUse> buffer_uses(const PrimFuncRef& program);

}  // namespace relaxc
