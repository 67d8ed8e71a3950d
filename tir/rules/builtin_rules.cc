#include "tir/rules/builtin_rules.h"

#include "tir/rules/contraction.h"
#include "tir/rules/convolution.h"
#include "tir/rules/default.h"
#include "tir/rules/winograd.h"

namespace relaxc {

std::vector<ScheduleRule> builtin_schedule_rules(const Target& target) {
  return {contraction_rule(target), convolution_rule(target), winograd_rule(target), default_rule(target)};
}

}  // namespace relaxc
