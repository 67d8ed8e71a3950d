#include "tir/schedule/rules/builtin_rules.h"

#include "tir/schedule/rules/contraction.h"
#include "tir/schedule/rules/convolution.h"
#include "tir/schedule/rules/default.h"
#include "tir/schedule/rules/winograd.h"

namespace relaxc {

std::vector<ScheduleRule> builtin_schedule_rules(const Target& target) {
  return {contraction_rule(target), convolution_rule(target), winograd_rule(target), default_rule(target)};
}

}  // namespace relaxc
