#include "tir/lower/lower.h"

#include "support/diagnostic.h"

namespace relaxc {

PrimFuncRef simplify_program(const PrimFuncRef& function) {
  return with_body(function, simplify(function->body, facts_of_params(function)));
}

namespace {

PrimFuncRef checked(const PrimFuncRef& function) {
  check_lowerable(function);
  return function;
}

// In the order in which they run.
const LoweringStep kSteps[] = {
    {"normalize_loops", normalize_loops},
    // Loops that count in int32 would hide from the vectorizer, behind casts, that lanes are neighbours.
    {"promote_indices", promote_indices},
    {"check_lowerable", checked},
    {"explicit_scalars", explicit_scalars},
    {"initialize_empty_reductions", initialize_empty_reductions},
    {"align_storage", align_storage},
    {"check_bounds", check_bounds, &LoweringOptions::check_bounds},
    {"lower_blocks", lower_blocks},
    {"simplify", simplify_program},
    {"compact_buffers", compact_buffers},
    {"double_buffer", double_buffer},
    {"partition_loops", partition_loops},
    {"hoist_conditions", hoist_conditions},
    {"prefetch", prefetch},
    {"flatten_buffers", flatten_buffers},
    {"simplify", simplify_program},
    {"vectorize_loops", vectorize_loops},
    {"narrow_indices", narrow_indices},
    {"share_storage", share_storage},
    {"merge_subexpressions", merge_subexpressions},
};

}  // namespace

std::span<const LoweringStep> lowering_steps() { return kSteps; }

PrimFuncRef lower_program(const PrimFuncRef& function, const LoweringOptions& options) {
  PrimFuncRef result = function;
  for (const LoweringStep& step : kSteps) {
    if (!step.wanted || options.*step.wanted) result = step.run(result);
  }
  return result;
}

}  // namespace relaxc
