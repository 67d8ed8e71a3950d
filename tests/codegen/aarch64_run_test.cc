// Machine code for AArch64 gives the numbers of the plain program, on an emulated processor; with scalable vectors of
// 128, 256 and 512 bits.
#include <cstdio>

#include "codegen/compile.h"
#include "codegen/llvm_compile.h"
#include "codegen/target.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "support/diagnostic.h"
#include "tests/codegen/aarch64.h"
#include "tests/constants.h"
#include "tests/lowering.h"

#include "tests/catch.h"

namespace relaxc::codegen {

TEST_CASE("AArch64 kernels run under qemu", "[codegen]") {
  if (std::string missing = missing_for_qemu(); !missing.empty()) {
    std::printf("test skipped: %s is not there; kernels for AArch64 are not run (./dev test installs qemu-user)\n",
                missing.c_str());
    return;
  }
  for (const char* bytes : {"16", "32", "64"}) {
    std::string cpu = std::string("max,sve-default-vector-length=") + bytes;
    for (const Aarch64Case& row : aarch64_cases()) {
      INFO(row.intrin << " with vectors of " << bytes << " bytes");
      CHECK(compare_under_qemu(plain_product(row.intrin), tensorized_product(row.intrin), aarch64_target(row.features),
                               cpu, {}) == "");
    }
    for (int64_t n : {1, 8, 45, 1000}) {
      INFO("rows of " << n << " with vectors of " << bytes << " bytes");
      CHECK(compare_under_qemu(plain_rows(), scalable_rows(), aarch64_target("+sve"), cpu, {n}) == "");
    }
  }
}

// The rules find the form of the target by themselves: a product of int8 with constant columns is packed in fours.
TEST_CASE("an int8 product in panels runs under qemu", "[codegen]") {
  if (std::string missing = missing_for_qemu(); !missing.empty()) return;
  auto parsed = [](const std::string& text) {
    Diagnostics diagnostics;
    IRModule module = parse_module(text, "product.py", op_table(), diagnostics);
    diagnostics.throw_if_errors();
    return module;
  };
  IRModule module = parsed(R"(
@R.function
def main(x: R.Tensor((13, 32), "int8"), w: R.Tensor((32, 24), "int8")):
    with R.dataflow():
        y = R.matmul(x, w, out_dtype="int32")
        R.output(y)
    return y
)");
  Tensor w = Tensor::empty({32, 24}, DType::int_(8));
  for (int64_t i = 0; i < w.size(); ++i) w.set_int(i, i * 7 % 23 - 11);
  auto program_after = [&](const char* passes) {
    CompileSettings settings;
    settings.target = aarch64_target("+dotprod");
    settings.passes = passes;
    IRModule result = run_pipeline(test::with_constants(module, {w}), settings);
    result.functions.erase("main");  // which has the constant
    std::string text = print_module(result);
    // The emulated program has no threads.
    for (size_t at; (at = text.find("T.parallel(")) != std::string::npos;) text.replace(at, 11, "T.serial(");
    ProgramMap programs = programs_of(parsed(text));
    REQUIRE(programs.size() == 1);
    return programs.begin()->second;
  };
  PrimFuncRef plain = program_after("simplify,legalize,fuse,pack_weights,remove_dead_code"),
              scheduled = program_after("simplify,legalize,fuse,pack_weights,remove_dead_code,schedule");
  const std::string target = aarch64_target("+dotprod");
  CHECK(to_assembly({{"product", lower_program(scheduled)}}, parse_target(target)).find("sdot") != std::string::npos);
  CHECK(compare_under_qemu(plain, scheduled, target, "max", {}) == "");
}

}  // namespace relaxc::codegen
