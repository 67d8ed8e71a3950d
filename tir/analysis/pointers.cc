#include "tir/analysis/pointers.h"

#include <algorithm>

#include "ir/intrinsics.h"
#include "ir/op_names.h"

namespace relaxc {

namespace {

bool takes_memory(const Call& call) {
  const OpRef* op = call.callee.as<OpRef>();
  const Builtin* row = op ? find_builtin(op->name) : nullptr;
  bool has_buffer = std::ranges::any_of(call.args, [](const Expr& arg) { return arg.type().is<BufferType>(); });
  bool names_place = op && op->name == ops::kAddressOf;
  bool has_effects = row && !row->pure && op->name != ops::kPrefetch && op->name != ops::kAssume;
  return has_buffer || names_place || has_effects || !op;
}

}  // namespace

bool uses_pointers(const PrimFuncRef& function) {
  bool found = false;
  walk(
      function->body, [&](const AllocBuffer& alloc) { found = found || buffer_type(alloc.buffer).data; },
      [&](const Ref<Call>& call) {
        // The address of what is prefetched is not used otherwise, nor are LLVM's instructions on registers.
        bool is_plain = as_call(call, ops::kPrefetch) || as_call(call, ops::kCallLlvmIntrin);
        found = found || (!is_plain && takes_memory(*call));
        return !as_call(call, ops::kPrefetch);
      });
  return found;
}

}  // namespace relaxc
