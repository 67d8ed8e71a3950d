// The attributes of the operators on ensembles of decision trees (ops/trees.cc).
#pragma once
#include "ops/attributes.h"

namespace relaxc {

RELAXC_ATTRS(TreesAttrs, (int64_t, targets, 1),  // the results of a row
             (std::string, aggregate, "sum"),    // or "min", "max"
             (int64_t, chunks, 1),               // the groups of trees that get results of their own
             (int64_t, column_bits, 8));         // of a node of trees.walk

}  // namespace relaxc
