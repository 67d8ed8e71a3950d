#include "tir/schedule/trace.h"

#include <algorithm>

#include "ir/text/printer.h"
#include "ir/visit.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/primitives/enter_postproc.h"
#include "tir/schedule/schedule.h"
#include "tir/schedule/trace_names.h"

namespace relaxc {

using namespace scheduling;

std::string scheduling::RVNames::operator()(const VarRef& var) {
  if (const std::string* known = find_value(names_, var.get())) return *known;
  std::string name = var->name;
  for (int i = 1; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", var->name, i);
  names_.emplace(var.get(), name);
  return name;
}

static std::string lambda_text(const Lambda& lambda) {
  // Params keep their hints, which differ by construction.
  std::string params = joined(lambda.params, [](const VarRef& var) { return var->name; });
  std::string results = joined(lambda.results, [](const Expr& e) { return print_expr(e); });
  return fmt::format("lambda {}: ({}{})", params, results, lambda.results.size() == 1 ? "," : "");
}

std::string scheduling::value_text(const AttrValue& value, RVNames& names) {
  return to_string(value, [&](const Expr& e) -> std::string {
    if (const Lambda* lambda = e.as<Lambda>()) return lambda_text(*lambda);
    // Sampled numbers print by their names, also in expressions.
    if (e.is<Var>()) return names(cast<Var>(e));
    VarMap named;
    walk(e, [&](const Ref<Var>& var) { named.emplace(var.get(), make_var(names(var), var.type())); });
    std::string text = print_expr(substitute(e, named));
    // vscale is of any dtype in a schedule.
    constexpr std::string_view kWide = "T.Cast(\"int64\", T.vscale())";
    for (size_t at; (at = text.find(kWide)) != std::string::npos;) text.replace(at, kWide.size(), "T.vscale()");
    return text;
  });
}

std::string Trace::text() const {
  RVNames names;
  std::string out;
  for (const TraceStep& step : steps) {
    const Primitive& primitive = *step.primitive;
    std::vector<std::string> arguments, results;
    bool by_name = false;
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      const Param& param = primitive.params[i];
      if (param.kind.is_variadic) {
        for (const AttrValue& loop : *step.arguments[i].as<AttrList>()) arguments.push_back(value_text(loop, names));
      } else if (param.otherwise != step.arguments[i]) {
        arguments.push_back((by_name ? fmt::format("{}=", param.name) : "") + value_text(step.arguments[i], names));
        continue;
      }
      by_name = true;  // behind one that is left out, or a list of any length, arguments need names
    }
    if (!step.decision.is_none()) arguments.push_back("decision=" + value_text(step.decision, names));
    for (const VarRef& result : step.results) results.push_back(names(result));
    if (!results.empty())
      out += fmt::format("{}{} = ", joined(results), primitive.gives_list() && results.size() == 1 ? "," : "");
    out += fmt::format("sch.{}({})\n", primitive.name, joined(arguments));
  }
  return out;
}

void Trace::replay(Schedule& schedule, const Decide& decide, bool with_postproc) const {
  VarMap now;                                     // the variables of this trace in terms of the schedule's
  const std::vector<TraceStep> recorded = steps;  // the schedule's own trace grows
  for (const TraceStep& step : recorded) {
    if (!with_postproc && step.primitive->name == EnterPostproc::kInfo.name) return;
    AttrList arguments = step.arguments;
    for (AttrValue& argument : arguments) argument.map_exprs([&](const Expr& e) { return substitute(e, now); });
    schedule.name_results(map_each(step.results, [](const VarRef& result) { return result->name; }));
    std::vector<VarRef> results;
    try {
      results = schedule.apply(*step.primitive, arguments, decide ? decide(step) : step.decision);
    } catch (const CompileError& error) {
      std::vector<Diagnostic> diagnostics = error.diagnostics();
      diagnostics[0].notes.push_back(
          fmt::format("step {} of {} of the trace", &step - recorded.data() + 1, recorded.size()));
      schedule.name_results({});
      throw CompileError(std::move(diagnostics));
    }
    schedule.name_results({});
    for (size_t i = 0; i < results.size() && i < step.results.size(); ++i)
      now.insert_or_assign(step.results[i].get(), results[i]);
  }
}

Trace Trace::simplified() const {
  std::unordered_set<const NodeHeader*> used;
  Trace result;
  for (size_t i = steps.size(); i-- > 0;) {
    const TraceStep& step = steps[i];
    auto is_used = [&](const VarRef& var) { return used.contains(var.get()); };
    if (step.primitive->changes_nothing() && std::ranges::none_of(step.results, is_used)) continue;
    for (const AttrValue& argument : step.arguments) {
      argument.visit_exprs([&](const Expr& e) { walk(e, [&](const Ref<Var>& var) { used.insert(var.get()); }); });
    }
    result.steps.insert(result.steps.begin(), step);
  }
  return result;
}

}  // namespace relaxc
