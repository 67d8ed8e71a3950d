// This table describes LLVM's intrinsics for dot products, so that the interpreter runs programs that use them on any
// processor.
#pragma once
#include <span>
#include <string_view>

#include "vm/dtype.h"

namespace relaxc {

// Lane l of the result is accumulator[l] (the first argument, if the intrinsic accumulates) plus the products of lanes
// [l * group, (l + 1) * group) of the other two arguments. Integers are added exactly, and the sum then wraps, or
// clamps when `saturates`. Floats are added to the accumulator one product after the other, from the last lane of the
// group to the first, without fusing; processors differ in the order and in rounding.
struct DotIntrinsic {
  std::string_view name;
  DType result, a, b;
  int group;
  bool accumulates, saturates = false;
};
std::span<const DotIntrinsic> dot_intrinsics();
const DotIntrinsic* find_dot_intrinsic(std::string_view name);

}  // namespace relaxc
