// The rows that the plug-in for the matrix unit adds to the compiler. Each function has a file.
#pragma once
#include <relaxc/plugin.h>

#include "mxu.h"

namespace mxu {

using namespace relaxc;

void add_operators(Tables& tables);
void add_claim(Tables& tables);         // a pass over graphs
void add_instructions(Tables& tables);  // a lowering step

inline const DType kInt8 = DType::int_(8);

// The attributes of R.mxu.rows. Of a matrix it takes none.
struct RowsAttrs {
  std::vector<int64_t> kernel = {1, 1}, strides = {1, 1}, padding = {0, 0, 0, 0}, dilation = {1, 1};
  RELAXC_FIELDS(RowsAttrs, kernel, strides, padding, dilation);
};

// The attribute of R.mxu.result.
struct ResultAttrs {
  bool image = false;  // rows are the pixels of [n, columns, h, w], else those of a tensor whose last dim is columns
  RELAXC_FIELDS(ResultAttrs, image);
};

}  // namespace mxu
