// Kernels for AArch64: products by its tensor intrinsics, and their run on an emulated processor.
#pragma once
#include <string>
#include <vector>

#include "ir/module.h"

namespace relaxc::codegen {

struct Aarch64Case {
  const char* intrin;
  const char* features;     // of the target
  const char* instruction;  // a regular expression that its assembly matches
};
// All intrinsics of the processor family.
const std::vector<Aarch64Case>& aarch64_cases();
std::string aarch64_target(const char* features);

// C[3, 37] += A * B with B in rows of what one instruction takes; as it is, and with the intrinsic for the columns that
// fill vectors (a remainder stays).
PrimFuncRef plain_product(const std::string& intrin);
PrimFuncRef tensorized_product(const std::string& intrin);
// y = relu(x + x) on n elements, in vectors of scalable length whose last is masked.
PrimFuncRef plain_rows();
PrimFuncRef scalable_rows();

// Runs both kernels on the same numbers under qemu-user, on the processor that `cpu` says ("max,sve256=on"), as a
// program without a C library. Empty: what they wrote is the same; else what went wrong.
std::string compare_under_qemu(const PrimFuncRef& plain, const PrimFuncRef& other, const std::string& target,
                               const std::string& cpu, const std::vector<int64_t>& sizes);
// "" or which program is missing.
std::string missing_for_qemu();

}  // namespace relaxc::codegen
