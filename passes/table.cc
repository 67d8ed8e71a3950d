#include <algorithm>

#include "passes/pass.h"
#include "support/diagnostic.h"

namespace relaxc {

namespace {

constexpr Pass kPasses[] = {
#define X(name, doc) {#name, doc, name},
    RELAXC_PASSES(X)
#undef X
};

const std::vector<Pipeline>& pipeline_table() {
  static const std::vector<Pipeline> kPipelines = {
      {"simplify",
       "the graph made small, still operators",
       {"spread_tuples", "check_dims", "canonicalize", "fold_batch_norm", "fold_constants", "block_channels",
        "remove_dead_code", "pack_weights", "fold_constants", "canonicalize", "merge_common_subexpressions",
        "remove_dead_code"}},
      {"kernels",
       "operators to scheduled tensor programs",
       {"spread_tuples", "legalize", "fuse", "remove_dead_code", "merge_kernels", "schedule"}},
      {"lower",
       "call_tir to kernels and planned memory",
       {"destination_passing", "plan_memory", "lower_kernels", "remove_dead_code"}},
  };
  return kPipelines;
}

}  // namespace

std::span<const Pass> passes() { return kPasses; }

const Pass* find_pass(std::string_view name) {
  auto it = std::find_if(std::begin(kPasses), std::end(kPasses), [&](const Pass& pass) { return name == pass.name; });
  return it == std::end(kPasses) ? nullptr : it;
}

std::span<const Pipeline> pipelines() { return pipeline_table(); }

std::vector<const Pass*> parse_passes(std::string_view text) {
  std::vector<const Pass*> result;
  auto add = [&](std::string_view name) {
    if (name == "default") {
      for (const Pipeline& pipeline : pipelines()) {
        for (const char* pass : pipeline.passes) result.push_back(find_pass(pass));
      }
      return;
    }
    for (const Pipeline& pipeline : pipelines()) {
      if (name != pipeline.name) continue;
      for (const char* pass : pipeline.passes) result.push_back(find_pass(pass));
      return;
    }
    if (const Pass* pass = find_pass(name)) {
      result.push_back(pass);
      return;
    }
    std::string names = "default";
    for (const Pipeline& pipeline : pipelines()) names += fmt::format(", {}", pipeline.name);
    for (const Pass& pass : passes()) names += fmt::format(", {}", pass.name);
    fail({}, "unknown pass '{}'; there are: {}", name, names);
  };
  while (!text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) add(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return result;
}

}  // namespace relaxc
