#include <map>

#include "ops/gradient.h"
#include "ops/ops.h"
#include "ops/run_sizes.h"

namespace relaxc {

OpTable make_op_table() {
  std::vector<OpRow> rows;
#define RELAXC_ROW(group) group##_ops,
  for (auto* group : {RELAXC_OP_GROUPS(RELAXC_ROW)}) {
#undef RELAXC_ROW
    for (OpRow& row : group()) std::ranges::move(with_parts(std::move(row)), std::back_inserter(rows));
  }
  std::map<std::string, GradientRule> rules;
  for (gradients::GradientRow& row : gradients::all_gradients()) rules.emplace("relax." + row.op, std::move(row.rule));
  for (OpRow& row : rows) {
    if (auto rule = rules.extract(row.name)) row.gradient = std::move(rule.mapped());
  }
  RELAXC_CHECK(rules.empty(), "a gradient is for '{}', which is not an operator", rules.begin()->first);
  return OpTable(std::move(rows));
}

}  // namespace relaxc
