// <relaxc/pass.h>: what a pass is: a free function from module to module, and one table row {name, doc, function}. The
// runner alone verifies, times, dumps and bisects; passes contain none of it.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "ir/op.h"
#include "tir/schedule/rule.h"
#include "tir/target.h"
#include "vm/tensor.h"

namespace relaxc {

// Computes the results of a closed graph function ("main", without params). Installed by who can run code; folding
// leaves everything as it is when there is none.
using EvaluateModule = std::function<std::vector<Tensor>(const IRModule&)>;

// A gather that meets an index out of range ends the run with an error that names it, or takes the nearest element.
enum class OutOfRange : uint8_t { kError, kClamp };

struct PassContext {
  const OpTable& ops;
  Target target;
  EvaluateModule evaluate = nullptr;
  int64_t fold_limit = int64_t{64} << 20;    // bytes of a folded constant that is larger than its operands together
  std::vector<ScheduleRule> schedules = {};  // the user's; the first that fits a tensor program is taken
  // What the user should hear: a rule that was applied, or why it was not.
  std::function<void(const std::string&)> report = nullptr;
  bool winograd = true;       // passes/winograd.h
  bool check_bounds = false;  // tir/lower/lower.h
  OutOfRange gather = OutOfRange::kError;
};

struct Pass {
  const char* name;  // on the command line; also the file (passes/<name>.cc), the function and the test folder
  const char* doc;   // one line
  IRModule (*run)(IRModule module, PassContext& context);
};
std::span<const Pass> passes();
const Pass* find_pass(std::string_view name);

// A named list of passes, so that every pipeline can be typed: relaxc opt --passes=a,b,c.
struct Pipeline {
  const char* name;
  const char* doc;
  std::vector<const char*> passes;
};
std::span<const Pipeline> pipelines();
// "default", "a,b,c", or a mix of both; unknown names are a CompileError that lists what there is.
std::vector<const Pass*> parse_passes(std::string_view text);

// One row a pass, in pipeline order: the name on the command line, which is also the function, the file
// (passes/<name>.cc) and the test (tests/passes/<name>.test), and its doc. To add a pass, add the file and a row.
#define RELAXC_PASSES(X)                                                                                          \
  X(spread_tuples, "write out the items of tuple values that operators and tensor programs take")                 \
  X(check_dims, "test at run time what operators and kernels demand of dims and types and nothing proves")        \
  X(canonicalize, "apply the table of algebraic and structural rules to the graph until none applies")            \
  X(fold_batch_norm, "turn inference batch norms into a scale and shift, and those into the convolution before")  \
  X(block_channels, "lay images out with their channels in blocks of a vector, from one convolution to the next") \
  X(pack_weights, "store constant weights of convolutions and products in the order that kernels read them")      \
  X(fold_constants, "compute what depends on constants only")                                                     \
  X(merge_common_subexpressions, "compute equal pure values once")                                                \
  X(remove_dead_code, "drop bindings and functions that nothing uses")                                            \
  X(legalize, "turn each operator into a call_tir of its tensor program")                                         \
  X(fuse, "group call_tirs (elementwise chains, epilogues of reductions) into one tensor program each")           \
  X(schedule, "give every unscheduled tensor program parallel, vectorized, register-tiled loops")                 \
  X(merge_kernels, "keep one of several equal tensor programs")                                                   \
  X(destination_passing, "allocate each call_tir's outputs explicitly and pass them to the kernel")               \
  X(plan_memory, "place all temporaries in one arena by their lifetimes, with symbolic offsets")                  \
  X(lower_kernels, "lower tensor programs to flat buffers, plain loops and vectors")

#define RELAXC_PASS(name, doc) IRModule name(IRModule module, PassContext& context);
RELAXC_PASSES(RELAXC_PASS)
#undef RELAXC_PASS

}  // namespace relaxc
