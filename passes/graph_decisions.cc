#include "passes/graph_decisions.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "support/check.h"
#include "tir/rules/builtin_rules.h"

namespace relaxc {

namespace {

const std::vector<GraphRule>& table() {
  static const std::vector<GraphRule> kRules = {
      {"image_layout",
       "nn.conv2d",
       "float32 convolutions with constant weights",
       {{"block", "channels in a block of the image that it makes; 0: a plain image",
         "a vector, where half of the last block is filled"}}},
      {"convolution_algorithm",
       "nn.conv2d",
       "3x3 convolutions of stride 1 over images in channel blocks",
       {{"algorithm", "\"direct\", or \"winograd\": F(4x4, 3x3) of Lavin and Gray",
         "\"winograd\" for 16 channels or more, and a register tile of patches or weights of up to 4 L2"}}},
      {"constant_operand",
       "matmul",
       "products with a constant right operand",
       {{"panel", "columns in a panel of it; 0: it stays as it is", "vectors of 2, 3 or 1 that divide the columns"}}},
  };
  return kRules;
}

template <class Row>
void check_names(const ScheduleRule& rule, const Row& row) {
  for (const auto& [name, value] : rule.given) {
    std::string_view last = std::string_view(name).substr(name.rfind('.') + 1);
    std::vector<std::string_view> known;
    for (const DecisionRow& decision : row.decisions) {
      std::string_view text = decision.name;
      known.push_back(text.substr(text.starts_with("*.") ? 2 : 0));
    }
    // The default rule schedules products in panels, too, and each block under its name.
    if (std::find(known.begin(), known.end(), last) != known.end() || rule.uses == "default") continue;
    fail(rule.span, "rule '{}' has no decision '{}'; it has: {}", rule.uses, name, fmt::join(known, ", "));
  }
}

}  // namespace

std::span<const GraphRule> graph_rules() { return table(); }

const GraphRule& graph_rule(std::string_view name) {
  auto row = std::find_if(table().begin(), table().end(), [&](const GraphRule& r) { return name == r.name; });
  RELAXC_CHECK(row != table().end(), "there is no graph rule '{}'", name);
  return *row;
}

std::string operator_name(const VarRef& var) {
  const Span& span = var.span();
  if (!span || (span.origin->node.empty() && (!span.origin->text || span.length == 0))) return var->name;
  if (!span.origin->node.empty()) return span.origin->node;
  // Passes give values other names; the text still has the one that its author wrote.
  const std::string& text = *span.origin->text;
  size_t begin = 0;
  for (uint32_t line = 1; line < span.line && begin != std::string::npos; ++line) {
    begin = text.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (begin == std::string::npos || begin + span.column > text.size()) return var->name;
  return text.substr(begin + span.column - 1, span.length);
}

Decisions decisions_for(const GraphRule& rule, const VarRef& var, const PassContext& context, const Attrs& preferred) {
  std::string name = operator_name(var);
  Attrs given;
  Span place;
  for (const ScheduleRule& use : context.schedules) {
    if (use.uses != rule.name || (!use.at.empty() && use.at != name)) continue;
    for (const auto& [decision, value] : use.given) {
      if (given.has(decision)) continue;  // the first one counts
      given.set(decision, value);
      place = use.span;
    }
  }
  for (const auto& [decision, value] : preferred) {
    if (!given.has(decision)) given.set(decision, value);
  }
  return Decisions(std::move(given), place, name);
}

void report_decisions(const GraphRule& rule, const VarRef& var, const Decisions& decisions,
                      const PassContext& context) {
  if (!context.decided) return;
  for (const Decision& decision : decisions.all()) context.decided(rule.name, operator_name(var), decision);
}

void check_rules(const std::vector<ScheduleRule>& rules) {
  for (const ScheduleRule& rule : rules) {
    if (rule.uses.empty()) continue;
    auto graph = std::find_if(table().begin(), table().end(), [&](const GraphRule& r) { return rule.uses == r.name; });
    const ScheduleRule* built_in = find_builtin_rule(rule.uses);
    if (graph == table().end() && !built_in) {
      std::vector<std::string> names;
      for (const ScheduleRule& known : builtin_schedule_rules()) names.push_back(known.name);
      for (const GraphRule& known : table()) names.push_back(known.name);
      fail(rule.span, "there is no rule '{}'; there are: {}", rule.uses, fmt::join(names, ", "));
    }
    if (built_in ? !rule.at.empty() : !rule.function.empty())
      fail(rule.span, "rule '{}' is chosen with {}", rule.uses,
           built_in ? "op= or function=, a tensor program; at= is for decisions about the graph"
                    : "at=, an operator's name in the graph; function= is for tensor programs");
    built_in ? check_names(rule, *built_in) : check_names(rule, *graph);
  }
}

}  // namespace relaxc
