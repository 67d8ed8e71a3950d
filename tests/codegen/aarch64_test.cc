// AArch64: every tensor intrinsic becomes its instruction, vectors of scalable length masked loops; what they mean is
// checked in the interpreter here, and in machine code under emulation (aarch64_run_test.cc).
#include "tests/codegen/aarch64.h"

#include "codegen/llvm_compile.h"
#include "codegen/target.h"
#include "passes/pass.h"
#include "support/diagnostic.h"
#include "tests/lowering.h"
#include "tests/patterns.h"
#include "tests/schedule/chains.h"
#include "tir/intrin/tensor_intrin.h"

#include "tests/catch.h"

namespace relaxc::codegen {

namespace {

std::string assembly(const PrimFuncRef& program, const char* features) {
  return to_assembly({{"k", lower_program(program)}}, parse_target(aarch64_target(features)));
}

}  // namespace

TEST_CASE("tensor intrinsics of AArch64 become their instructions", "[codegen]") {
  int listed = 0;
  for (const std::string& name : builtin_tensor_intrins().names())
    listed += name.ends_with("neon") || name.ends_with("dotprod") || name.ends_with("sve");
  CHECK(listed == static_cast<int>(aarch64_cases().size()));
  for (const Aarch64Case& row : aarch64_cases()) {
    INFO(row.intrin);
    PrimFuncRef program = tensorized_product(row.intrin);
    std::string text = assembly(program, row.features);
    INFO(text);
    CHECK_FALSE(test::matches(text, row.instruction).empty());
    CHECK(test::compare_programs(plain_product(row.intrin), program, {{}}, 3, {}) == "");
  }
}

TEST_CASE("loops in vectors of scalable length are masked, and refused where there are none", "[codegen]") {
  std::string text = assembly(scalable_rows(), "+sve");
  INFO(text);
  for (const char* instruction : {R"(whilel[ot]\s+p\d+\.s)", R"(ld1w\s+\{)", R"(st1w\s+\{)", R"(cnt[wb]|rdvl)"})
    CHECK_FALSE(test::matches(text, instruction).empty());
  CHECK(test::compare_programs(plain_rows(), scalable_rows(), {{{"n", 45}}, {{"n", 8}}, {{"n", 1}}}, 3, {}) == "");
  CHECK_THROWS_AS(assembly(scalable_rows(), "+neon"), CompileError);
}

}  // namespace relaxc::codegen
