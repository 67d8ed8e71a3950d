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
  std::vector<DecisionRow> decisions;
};
std::span<const GraphRule> graph_rules();

// The operator's name: of the model's node, else as the text names the value, else as the variable is called.
std::string operator_name(const VarRef& var);

// The decisions of the rule for that operator, before any is taken: with the values that the user gives for it, else
// with the preferred ones.
Decisions decisions_for(const GraphRule& rule, const VarRef& var, const PassContext& context,
                        const Attrs& preferred = {});
// Tells who listens (PassContext::decided) of those that were taken.
void report_decisions(const GraphRule& rule, const VarRef& var, const Decisions& decisions, const PassContext& context);
const GraphRule& graph_rule(std::string_view name);

// The user's rules that name neither a rule nor a decision are a CompileError that lists what there is.
void check_rules(const std::vector<ScheduleRule>& rules);

}  // namespace relaxc
