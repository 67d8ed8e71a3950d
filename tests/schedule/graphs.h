// Graphs, weights and one rule at a time, for the tests of schedule rules.
#pragma once
#include "ir/text/parser.h"
#include "passes/runner.h"
#include "support/diagnostic.h"
#include "tir/lower/lower.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/choose.h"

namespace relaxc::test {

inline IRModule parse_graph(const char* text) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "module.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return module;
}

inline Tensor small_numbers(std::vector<int64_t> shape, int64_t step) {
  Tensor tensor = Tensor::empty(std::move(shape), kFloat32);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, static_cast<double>((i * step) % 7 - 3));
  return tensor;
}

// The built-in rule schedules its operator's function in the module; throws why it does not.
inline void schedule_by_rule(IRModule module, const ScheduleRule& rule, const Target& target,
                             const std::vector<ScheduleRule>& uses = {}) {
  PassContext context(op_table(), target);
  context.winograd_error = 0;
  context.schedules = uses;
  for (const Pass* pass : parse_passes("simplify,legalize,fuse,remove_dead_code,pack_weights"))
    module = run_pass(*pass, std::move(module), context);
  bool found = false;
  for (const auto& [name, function] : module.functions) {
    auto program = try_cast<PrimFunc>(function);
    if (!program) continue;
    std::vector<std::string> ops = operators_of(*program);
    if (std::find(ops.begin(), ops.end(), rule.op) == ops.end()) continue;
    found = true;
    RuleResult result = schedule_by_rule(rule, name, promote_indices(normalize_loops(*program)), target, false);
    if (!result.program) throw std::runtime_error(result.refusal);
  }
  if (!found) throw std::runtime_error("there is no " + rule.op);
}

}  // namespace relaxc::test
