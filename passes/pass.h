// What a pass is: a free function from module to module, and one table row {name, doc, function}. The runner alone
// verifies, times, dumps and bisects; passes contain none of it.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "ir/op.h"
#include "tir/target.h"
#include "vm/tensor.h"

namespace relaxc {

// Computes the results of a closed graph function ("main", without params). Installed by who can run code; folding
// leaves everything as it is when there is none.
using EvaluateModule = std::function<std::vector<Tensor>(const IRModule&)>;

struct PassContext {
  const OpTable& ops;
  Target target;
  EvaluateModule evaluate = nullptr;
  int64_t fold_limit = int64_t{64} << 20;  // bytes of a folded constant that is larger than its operands together
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

// ---- The passes, in pipeline order
// -----------------------------------------------------------------------------------

IRModule canonicalize(IRModule module, PassContext& context);
IRModule fold_batch_norm(IRModule module, PassContext& context);
IRModule pack_weights(IRModule module, PassContext& context);
IRModule fold_constants(IRModule module, PassContext& context);
IRModule merge_common_subexpressions(IRModule module, PassContext& context);
IRModule remove_dead_code(IRModule module, PassContext& context);
IRModule legalize(IRModule module, PassContext& context);
IRModule fuse(IRModule module, PassContext& context);
IRModule schedule(IRModule module, PassContext& context);
IRModule merge_kernels(IRModule module, PassContext& context);
IRModule destination_passing(IRModule module, PassContext& context);
IRModule plan_memory(IRModule module, PassContext& context);
IRModule lower_kernels(IRModule module, PassContext& context);

}  // namespace relaxc
