#include "passes/graph_decisions.h"

#include <algorithm>

#include "ir/op_names.h"
#include "ir/sequence.h"
#include "support/check.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/choose.h"
#include "tir/rules/cost_model.h"

namespace relaxc {

std::span<const GraphRule> graph_rules() {
  static const std::vector<GraphRule> kRules = {
      {"image_layout",
       "nn.conv2d",
       "float32 convolutions with constant weights",
       {{"block", "channels in a block of the image that it makes; 0: a plain image",
         "a vector, where half of the last block is filled and the whole graph gains by it"}}},
      {"convolution_algorithm",
       "nn.conv2d",
       "3x3 convolutions of stride 1 over images in channel blocks",
       {{"algorithm", "\"direct\", or \"winograd\": F(m x m, 3x3) of Lavin and Gray",
         "the faster one by estimate, as far as --winograd-error allows"},
        {"tile", "m of Winograd's algorithm, results along a side of a tile",
         "the fastest one by estimate, as far as --winograd-error allows"}}},
      {"constant_operand",
       "matmul",
       "products with a constant right operand",
       {{"panel", "columns in a panel of it; 0: it stays as it is",
         fmt::format("vectors of {}, 3 or 1 that divide the columns", cost_model::kSideBySide)}}},
      {"packed_product",
       "matmul",
       "products with a constant matrix of 2, 4 or 8 bits",
       {{"activations",
         "\"float\", or \"int8\": each row is rounded to 8 bits, with a scale for as many elements as have one in the "
         "matrix, which is faster for many rows",
         "\"float\""}}},
      {"attention_algorithm",
       "nn.softmax",
       "a product, a softmax of its rows and a product with that, in float32",
       {{"algorithm",
         "\"fused\": one kernel, which never has all scores in memory; \"direct\": products that read keys and values "
         "where they lie; \"by_length\": the run chooses of these two; or \"separate\"",
         fmt::format("\"direct\" for less than {} queries, \"fused\" for more, or symbolic ones, \"by_length\" where "
                     "there may be more keys than these; \"separate\" for less than {} keys",
                     cost_model::kFewestQueries, cost_model::kFewestKeys)}}},
  };
  return kRules;
}

namespace {

const GraphRule* find_graph_rule(std::string_view name) { return find_item(graph_rules(), name, &GraphRule::name); }

}  // namespace

std::string operator_name(const VarRef& var) {
  const Span& span = var.span();
  if (!span || (span.origin->node.empty() && (!span.origin->text || span.length == 0))) return var->name;
  if (!span.origin->node.empty()) return span.origin->node;
  // Passes give values other names; the text still has the one that its author wrote.
  std::string_view rest = *span.origin->text;
  for (uint32_t line = 1; line < span.line; ++line) rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  return span.column > rest.size() ? var->name : std::string(rest.substr(span.column - 1, span.length));
}

std::optional<AttrValue> given_decision(std::string_view name, const std::string& decision, const VarRef& var,
                                        const PassContext& context) {
  const std::string op = operator_name(var);
  for (const ScheduleRule& rule : context.schedules) {
    if (rule.uses == name && (rule.at.empty() || rule.at == op) && rule.given.has(decision))
      return *rule.given.find(decision);
  }
  return std::nullopt;
}

AttrValue decide(std::string_view name, const std::string& decision, const VarRef& var, const PassContext& context,
                 const AttrList& candidates, const AttrValue& formula, const std::optional<AttrValue>& preferred) {
  const GraphRule* rule = find_graph_rule(name);
  RELAXC_CHECK(rule, "there is no graph rule '{}'", name);
  std::string op = operator_name(var);
  const std::vector<ScheduleRule>& uses = context.schedules;
  auto use = std::ranges::find_if(uses, [&](const ScheduleRule& candidate) {
    return candidate.uses == name && (candidate.at.empty() || candidate.at == op) && candidate.given.has(decision);
  });
  bool is_used = use != uses.end();
  Attrs given;
  if (is_used || preferred) given.set(decision, is_used ? *use->given.find(decision) : *preferred);
  Decisions decisions(rule->name, rule->decisions, std::move(given), is_used ? use->span : Span(), op);
  AttrValue result = decisions.decide(decision, candidates, formula);
  if (context.decided) context.decided(rule->name, op, decisions.all().at(0));
  return result;
}

void warn_of_unused(const ScheduleRule& rule, const PassContext& context, const std::string& why) {
  if (context.report)
    context.report(to_string(Diagnostics().warning(rule.span, "{}; rule '{}' is not used", why, rule.name)));
}

void warn_of_late_use(const ScheduleRule& rule, const ScheduleRule& first, const PassContext& context) {
  if (context.report)
    context.report(to_string(Diagnostics().warning(
        rule.span,
        "S.use(\"{}\") of line {} comes first wherever this one could be used, so that this one is not; give all "
        "decisions in one S.use, and those for one program or operator before those for all",
        rule.uses, first.span.line)));
}

void check_rules(const std::vector<ScheduleRule>& rules, const std::vector<ScheduleRule>& added) {
  for (const ScheduleRule& rule : rules) {
    if (rule.uses.empty()) continue;
    const GraphRule* graph = find_graph_rule(rule.uses);
    const ScheduleRule* of_programs = find_rule(rule.uses, added);
    if (!graph && !of_programs) {
      std::vector<std::string> names = map_each(builtin_schedule_rules(), &ScheduleRule::name);
      for (const ScheduleRule& known : added) names.push_back(known.name);
      for (const GraphRule& known : graph_rules()) names.push_back(known.name);
      fail(rule.span, "there is no rule '{}'; there are: {}", rule.uses, joined(names));
    }
    if (of_programs ? !rule.at.empty() : !rule.function.empty() || !rule.op.empty())
      fail(rule.span, "rule '{}' is chosen with {}", rule.uses,
           of_programs ? "op= or function=, a tensor program; at= is for decisions about the graph"
                       : "at=, an operator's name in the graph; op= and function= are for tensor programs");
    auto known = map_each(of_programs ? of_programs->decisions : graph->decisions,
                          [](const DecisionRow& row) { return row.name.substr(row.name.starts_with("*.") ? 2 : 0); });
    for (const auto& [name, value] : rule.given) {
      if (!std::ranges::count(known, name.substr(name.rfind('.') + 1)))
        fail(rule.span, "rule '{}' has no decision '{}'; it has: {}", rule.uses, name, joined(known));
    }
  }
}

void check_places(const IRModule& module, const PassContext& context, std::initializer_list<std::string_view> rules) {
  for (const ScheduleRule& rule : context.schedules) {
    const GraphRule* known = find_graph_rule(rule.uses);
    if (!known || !std::ranges::count(rules, rule.uses)) continue;
    std::vector<std::string> names;
    for (const auto& [_, function] : module.functions) {
      const Function* graph = function.as<Function>();
      if (!graph) continue;
      for_each_binding(graph->body, [&](const Binding& binding) {
        if (op_name(binding.value) == ops::full_name(known->op)) names.push_back(operator_name(binding.var));
      });
    }
    if (!rule.at.empty() && !std::ranges::count(names, rule.at))
      fail(rule.span, "no {} is called '{}'; there are: {}", known->op, rule.at,
           names.empty() ? "none" : joined(names));
    auto comes_first = [&](const ScheduleRule& other) {
      auto has = [&](const auto& given) { return other.given.has(given.first); };
      return &other < &rule && other.uses == rule.uses && (other.at.empty() || other.at == rule.at) &&
             std::ranges::all_of(rule.given, has);
    };
    auto first = std::ranges::find_if(context.schedules, comes_first);
    if (first != context.schedules.end()) warn_of_late_use(rule, *first, context);
    if (names.empty()) warn_of_unused(rule, context, fmt::format("the graph holds no operator '{}'", known->op));
  }
}

}  // namespace relaxc
