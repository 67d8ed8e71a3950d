// Machine code for AArch64 gives the numbers of the plain program, on an emulated processor; with scalable vectors of
// 128, 256 and 512 bits.
#include <fmt/format.h>

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

namespace {

// Returns the only program that the passes make of a graph function, whose operands behind the first are constants.
PrimFuncRef program_after(const char* graph, const std::vector<Tensor>& constants, const std::string& target,
                          const std::string& passes) {
  auto parsed = [](const std::string& text) {
    Diagnostics diagnostics;
    IRModule module = parse_module(text, "product.py", op_table(), diagnostics);
    diagnostics.throw_if_errors();
    return module;
  };
  CompileSettings settings;
  settings.target = target;
  settings.passes = passes;
  IRModule result = run_pipeline(test::with_constants(parsed(graph), constants), settings);
  result.functions.erase("main");  // which has the constants
  std::string text = print_module(result);
  // The emulated program has no threads.
  for (size_t at; (at = text.find("T.parallel(")) != std::string::npos;) text.replace(at, 11, "T.serial(");
  ProgramMap programs = programs_of(parsed(text));
  REQUIRE(programs.size() == 1);
  return programs.begin()->second;
}

}  // namespace

// The rules find the form of the target by themselves: a product of int8 with constant columns is packed in fours.
TEST_CASE("an int8 product in panels runs under qemu", "[codegen]") {
  if (std::string missing = missing_for_qemu(); !missing.empty()) return;
  const char* graph = R"(
@R.function
def main(x: R.Tensor((13, 32), "int8"), w: R.Tensor((32, 24), "int8")):
    with R.dataflow():
        y = R.matmul(x, w, out_dtype="int32")
        R.output(y)
    return y
)";
  Tensor w = Tensor::empty({32, 24}, DType::int_(8));
  for (int64_t i = 0; i < w.size(); ++i) w.set_int(i, i * 7 % 23 - 11);
  const std::string target = aarch64_target("+dotprod"),
                    passes = "simplify,legalize,fuse,pack_weights,remove_dead_code";
  PrimFuncRef plain = program_after(graph, {w}, target, passes),
              scheduled = program_after(graph, {w}, target, passes + ",schedule");
  CHECK(to_assembly({{"product", lower_program(scheduled)}}, parse_target(target)).find("sdot") != std::string::npos);
  CHECK(compare_under_qemu(plain, scheduled, target, "max", {}) == "");
}

// float8 becomes float32 by way of float16, float4 by a table of bytes where a product has digits.
TEST_CASE("products with floats of few bits run under qemu", "[codegen]") {
  if (std::string missing = missing_for_qemu(); !missing.empty()) return;
  struct Form {
    const char *dtype, *features, *instruction;
    int64_t depth;  // for which sums are exact
  };
  for (const auto& [dtype, features, instruction, depth] :
       {Form{"float8_e4m3fn", "+dotprod", "fcvtl2", 4}, Form{"float4_e2m1fn", "+neon", "fcvtl2", 64},
        Form{"float4_e2m1fn", "+dotprod,+i8mm", "tbl", 64}}) {
    CAPTURE(dtype, features);
    const std::string graph = fmt::format(R"(
@R.function
def main(x: R.Tensor((1, {1}), "float32"), q: R.Tensor(({1}, 40), "{0}"), s: R.Tensor((2, 40), "float32"), z: R.Tensor((), "{0}")):
    with R.dataflow():
        y = R.matmul(x, R.dequantize(q, s, z, axis=0, block_size={2}, out_dtype="float32"))
        R.output(y)
    return y
)",
                                          dtype, depth, depth / 2);
    const DType narrow = *parse_dtype(dtype);
    const Tensor q = Tensor::empty({depth, 40}, narrow), s = Tensor::empty({2, 40}, kFloat32),
                 z = Tensor::empty({}, narrow);
    for (int64_t i = 0; i < q.size(); ++i) q.set_double(i, 1);
    for (int64_t i = 0; i < s.size(); ++i) s.set_double(i, 1);
    static_cast<uint8_t*>(z.raw())[0] = 0;
    const std::string target = aarch64_target(features),
                      passes = "fold_constants,pack_quantized,legalize,remove_dead_code";
    PrimFuncRef plain = program_after(graph.c_str(), {q, s, z}, target, passes),
                scheduled = program_after(graph.c_str(), {q, s, z}, target, passes + ",schedule");
    CHECK(to_assembly({{"product", lower_program(scheduled)}}, parse_target(target)).find(instruction) !=
          std::string::npos);
    CHECK(compare_under_qemu(plain, scheduled, target, "max", {}) == "");
  }
}

}  // namespace relaxc::codegen
