// Decisions about single operators of the graph, which stand before there are tensor programs: the layout of an image,
// the algorithm of a convolution, the panels of a constant operand. They are taken as those of schedule rules are
// (tir/schedule/decisions.h): a formula over target and shapes chooses, and
// S.use("convolution", at="conv_12", algorithm="direct") says otherwise.
#pragma once
#include "passes/pass.h"

namespace relaxc {

struct GraphRule {
  const char* name;  // in S.use
  const char* op;    // "nn.conv2d"
  const char* doc;
  std::vector<DecisionRow> decisions;  // one so far
};
std::span<const GraphRule> graph_rules();

// The operator's name: of the model's node, else as the text names the value, else as the variable is called.
std::string operator_name(const VarRef& var);

// Takes the decision of a rule about the operator that `var` holds: the user's value for it, which must be a candidate,
// else the preferred one, if any, else the formula's. Tells who listens (PassContext::decided).
int64_t decide(std::string_view rule, const VarRef& var, const PassContext& context,
               const std::vector<int64_t>& candidates, int64_t formula);
std::string decide(std::string_view rule, const VarRef& var, const PassContext& context,
                   const std::vector<std::string>& candidates, const std::string& formula,
                   const std::optional<std::string>& preferred);

// The user's rules that name neither a rule nor a decision are a CompileError that lists what there is.
void check_rules(const std::vector<ScheduleRule>& rules);

}  // namespace relaxc
