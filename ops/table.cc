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
  return OpTable(std::move(rows));
}

}  // namespace relaxc
