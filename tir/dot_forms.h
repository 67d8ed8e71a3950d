// Instructions that sum products in each lane of a vector (tir/intrin/builtin_intrins.cc).
#pragma once
#include <string>
#include <vector>

#include "tir/target.h"
#include "vm/dtype.h"

namespace relaxc {

// A built-in intrinsic in the form c[n] += a[k] * b[n, k]: `lanes` sums of `group` products. With sums of 16 bits it is
// c[n, p] += a[2 p + k] * (byte 2 p + k of b[n]), of which none may need more bits.
struct DotForm {
  std::string name;
  int lanes, group;
  DType a, b, result;
  std::string instruction;          // LLVM's intrinsic, whose features tir/dot_intrinsics.h knows
  bool Target::* figure = nullptr;  // rules and passes use the form where this holds; null: only users' schedules do
  int constants = 0;                // vectors that the instructions read beside the sum and the operands
  // Where results are sums of 16 bits, two in each lane of 32: the intrinsic that adds these to a sum of 32 bits.
  std::string sum_of_pairs = {};
  // Returns whether sums of two products are clamped to 16 bits, so that rules need leave to use it (`sums_in_int16`).
  bool clamps() const { return figure == &Target::clamps_int8_dot; }
};
const std::vector<DotForm>& dot_forms();
// Returns the form that rules use for these operands and full vectors of the target; null: there is none.
const DotForm* find_dot_form(DType a, DType b, DType result, const Target& target);

}  // namespace relaxc
