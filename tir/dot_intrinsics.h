// LLVM's intrinsics for dot products: the interpreter runs programs that use them on any processor, and `tensorize`
// takes them by name. And the features of processors that these and other intrinsics of LLVM need. Which of them rules
// use, and on which targets, says the table of dot forms (tir/intrin/builtin_intrins.cc).
#pragma once
#include <span>
#include <string_view>
#include <utility>

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
  bool is_scalable() const { return name.starts_with("llvm.aarch64.sve."); }
};
std::span<const DotIntrinsic> dot_intrinsics();
const DotIntrinsic* find_dot_intrinsic(std::string_view name);
// Returns the features that a processor needs for an intrinsic of LLVM: LLVM's names, all joined by '+'; alternatives
// are separated by '|'. The text is empty if they are not known, or if the intrinsic is of no processor.
std::string_view features_of_intrinsic(std::string_view name);
// Returns the prefixes of the names of LLVM's intrinsics, and the features that these need.
std::span<const std::pair<std::string_view, std::string_view>> intrinsic_families();

}  // namespace relaxc
