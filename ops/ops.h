// <relaxc/operators.h>: the operator table: a row per operator, a file per group. A new operator is a row in its file.
#pragma once
#include "ir/op.h"

namespace relaxc {

// Returns the table of all groups.
OpTable make_op_table();

// The groups: `sort` is ops/sort.cc, whose sort_ops() returns the rows.
// clang-format off
#define RELAXC_OP_GROUPS(X) \
  X(elementwise) X(quantize) X(reduction) X(linear_algebra) X(einsum) X(convolution) X(pooling) X(normalization) X(layout) \
  X(slice) X(pad) X(index) X(search) X(sort) X(warping) X(create) X(image) X(grid) X(columns) X(signal) X(random) \
  X(attention) X(training) X(vision) X(suppression) X(class_suppression) X(trees) X(pairwise) \
  X(distributed) X(graph) X(runtime) X(containers) X(strings)
// clang-format on
#define RELAXC_ROW(group) std::vector<OpRow> group##_ops();
RELAXC_OP_GROUPS(RELAXC_ROW)
#undef RELAXC_ROW

}  // namespace relaxc
