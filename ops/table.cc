#include "ops/ops.h"

namespace relaxc {

OpTable make_op_table() {
  std::vector<OpRow> rows;
#define RELAXC_ROW(group) group##_ops,
  for (auto* group : {RELAXC_OP_GROUPS(RELAXC_ROW)}) {
#undef RELAXC_ROW
    for (OpRow& row : group()) rows.push_back(std::move(row));
  }
  return OpTable(std::move(rows));
}

}  // namespace relaxc
