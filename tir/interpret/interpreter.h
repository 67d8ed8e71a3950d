// Runs a tensor program statement by statement: the reference that schedules, lowering passes and the code generator
// are tested against, and the evaluator of small constants. Any PrimFunc runs, scheduled or not, lowered or not; loops
// of all kinds run serially. Floats are rounded to their dtype after every operation.
//
// Behaviour that the semantics leave undefined is an error here: an index out of range, division by zero, a shift by
// the width or more, a block axis outside of its domain, and a read of an element of fresh memory (an allocation, an
// output) that the program never wrote. Fresh memory is filled with 0xff (NaN for floats), so that what is left
// unwritten shows.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ir/module.h"
#include "vm/kernel_abi.h"

namespace relaxc {

struct InterpretOptions {
  int64_t max_steps = INT64_MAX;               // stores, loop iterations and other statements; more is an error
  int64_t max_alloc_bytes = int64_t{4} << 30;  // all allocations of a program together
  bool reverse_parallel_loops = false;  // parallel loops run from the last iteration: shows a forbidden dependence
  int vscale = 2;                       // T.vscale(): with twice the shortest vectors their length matters
  bool check_regions = false;           // a block that accesses what its `reads` and `writes` leave out is an error
  // A read of an element that was never written is an error. Not for scheduled programs: they may compute whole tiles
  // and vectors of which they store a part, so that what they read beyond it does not matter.
  bool check_unwritten = true;
  // Finds a C function that the process does not have; returns null where there is none.
  std::function<void*(const std::string& name)> find_function = nullptr;
};

// Calls a function of the host (T.call_packed) as relaxc_kernel_context::call_packed does.
using PackedFunctions =
    std::function<int32_t(const char* name, std::span<const relaxc_value> args, relaxc_value& result)>;

// One flag per byte of a buffer: 1 where something has been written.
using WrittenBytes = std::vector<uint8_t>;

// A program made ready to run many times. Not thread-safe: it holds the values of its variables.
class Interpreter {
 public:
  // Throws a CompileError for an unbound variable or a construct without scalar semantics.
  explicit Interpreter(PrimFuncRef function, InterpretOptions options = {});
  ~Interpreter();
  // One tensor per buffer param (inputs, then outputs, which are written in place); one value per scalar param, floats
  // as the bits of a double. Bare dims are bound by the first buffer that has them; the others are checked. Errors are
  // CompileErrors at the statement's span that name buffer, index and extent. `written` (may be shorter than buffers)
  // has the flags of buffers whose contents are not all known, null for the others; they are kept up to date.
  void run(std::span<const Tensor> buffers, std::span<const int64_t> scalars = {},
           std::span<WrittenBytes* const> written = {});
  // Without this a call of a function of the host is an error.
  void set_packed_functions(PackedFunctions functions);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace relaxc
