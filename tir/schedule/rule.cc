#include "tir/schedule/rule.h"

#include "ir/visit.h"
#include "support/diagnostic.h"
#include "tir/schedule/script.h"

namespace relaxc {

std::vector<std::string> operators_of(const PrimFuncRef& function) {
  std::vector<std::string> result;
  walk(function->body, [&](const Block& block) {
    std::string op = block.annotations.get_string(kOpAttribute, "");
    if (!op.empty()) result.push_back(op);
  });
  return result;
}

std::vector<ScheduleRule> read_schedule_rules(std::string_view text, const std::string& filename) {
  Diagnostics diagnostics;
  std::vector<ScheduleRule> result;
  for (ScheduleDefinition& definition : parse_schedules(text, filename, diagnostics)) {
    if (definition.function.empty() && definition.op.empty()) {
      diagnostics.error(definition.span,
                        "a file of schedules holds definitions: def name(sch): ..., each under "
                        "@S.rule(\"operator\") or @S.schedule(\"function\")");
      continue;
    }
    result.push_back({definition.name, definition.function, definition.op, definition.span,
                      [definition](Schedule& schedule) { definition.apply(schedule); }});
  }
  diagnostics.throw_if_errors();
  return result;
}

}  // namespace relaxc
