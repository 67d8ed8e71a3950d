// Decisions about single operators of the graph, which are taken before there are tensor programs: the layout of an
// image, the algorithm of a convolution, the panels of a constant operand. They are taken as those of schedule rules
// are (tir/schedule/decisions.h): a formula over target and shapes chooses, unless S.use("convolution_algorithm",
// at="conv_12", algorithm="direct") does.
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

// Returns the name of an operator of the graph, by which `at` calls it: that of the model's node, else of the value in
// the text, else of the variable.
std::string operator_name(const VarRef& var);

// Takes a decision of a rule about the operator that `var` holds: the user's value for it, which must be a candidate,
// else the preferred one, if any, else the formula's. Reports it to PassContext::decided.
AttrValue decide(std::string_view rule, const std::string& decision, const VarRef& var, const PassContext& context,
                 const AttrList& candidates, const AttrValue& formula, const std::optional<AttrValue>& preferred = {});

// Returns the user's value for the decision about that operator, which decide() has yet to check.
std::optional<AttrValue> given_decision(std::string_view rule, const std::string& decision, const VarRef& var,
                                        const PassContext& context);

// Throws a CompileError, which lists the known ones, where a rule of the user's names an unknown rule or decision.
// `added`: the rules of plug-ins.
void check_rules(const std::vector<ScheduleRule>& rules, const std::vector<ScheduleRule>& added = {});

// Throws a CompileError, which lists those that there are, where `at` of such a rule names no operator of the graph.
// Reports a rule about an operator that the graph does not hold. A pass asks for its own rules, before it changes the
// graph.
void check_places(const IRModule& module, const PassContext& context, std::initializer_list<std::string_view> rules);

// Reports that a use of a rule comes too late wherever it could be used: `first` stands before it.
void warn_of_late_use(const ScheduleRule& rule, const ScheduleRule& first, const PassContext& context);

// Reports that a rule of the user's concerns nothing.
void warn_of_unused(const ScheduleRule& rule, const PassContext& context, const std::string& why);

}  // namespace relaxc
