#include "ops/ops.h"

namespace relaxc {

OpTable make_op_table() {
  std::vector<OpRow> rows;
  for (auto* group : {elementwise_ops, reduction_ops, linear_algebra_ops, einsum_ops, convolution_ops, pooling_ops,
                      normalization_ops, layout_ops, slice_ops, pad_ops, index_ops, sort_ops, create_ops, image_ops,
                      attention_ops, training_ops, vision_ops, distributed_ops, graph_ops}) {
    for (OpRow& row : group()) rows.push_back(std::move(row));
  }
  return OpTable(std::move(rows));
}

}  // namespace relaxc
