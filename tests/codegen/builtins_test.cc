// T.prefetch, T.reinterpret and LLVM intrinsics: compiled and interpreted alike, and what is said when they are wrong.
#include <fmt/format.h>

#include <random>
#include <regex>
#include <sstream>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "passes/pass.h"
#include "support/diagnostic.h"
#include "tests/interpret.h"
#include "tests/kernel_harness.h"
#include "tests/lowering.h"
#include "tir/dot_intrinsics.h"
#include "tir/lower/lower.h"

#include "tests/catch.h"

namespace relaxc::codegen {

namespace {

PrimFuncRef parse(const std::string& text) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "test.py", op_table(), diagnostics);
  if (diagnostics.has_errors()) throw CompileError(diagnostics.all());
  return module.prim_func("f");
}

// C = intrinsic(C, A, B) on whole vectors.
std::string dot_program(const DotIntrinsic& row) {
  auto buffer = [](const char* name, DType dtype) {
    return fmt::format("{}: T.Buffer(({},), \"{}\")", name, static_cast<int>(dtype.lanes), to_string(dtype.element()));
  };
  auto all = [](const char* name, DType dtype) { return fmt::format("{}[0:{}]", name, static_cast<int>(dtype.lanes)); };
  return fmt::format(
      "@T.prim_func\ndef f({}, {}, {}):\n    T.evaluate(T.prefetch(T.address_of(A[0]), 0, 3, 1))\n"
      "    {} = T.call_llvm_pure_intrin(\"{}\", \"{}\", {}{}, {})\n",
      buffer("A", row.a), buffer("B", row.b), buffer("C", row.result), all("C", row.result), to_string(row.result),
      row.name, row.accumulates ? all("C", row.result) + ", " : "", all("A", row.a), all("B", row.b));
}

Tensor random_bits(DType dtype, std::mt19937& generator) {
  Tensor tensor = Tensor::empty({static_cast<int64_t>(dtype.lanes)}, dtype.element());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    // Extremes often, so that sums wrap and clamp; floats small and exact.
    auto bits = static_cast<int64_t>(generator());
    if (dtype.is_float()) {
      tensor.set_double(i, static_cast<double>(bits % 64) / 8 - 4);
    } else {
      tensor.set_int(i, bits % 4 == 0 ? INT64_MIN : bits % 4 == 1 ? -1 : bits >> 2);
    }
  }
  return tensor;
}

std::string error_of(const std::string& text, const char* target = "host") {
  try {
    compile_kernels({{"f", lower_program(parse(text))}}, parse_target(target));
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("LLVM knows the features that intrinsics need", "[codegen]") {
  auto check = [](std::string_view name, std::string_view features) {
    CAPTURE(name, features);
    std::string target = name.starts_with("llvm.x86.") ? "triple=x86_64-linux-gnu" : "triple=aarch64-linux-gnu";
    std::istringstream words{std::regex_replace(std::string(features), std::regex("[+|]"), " ")};
    for (std::string feature; words >> feature;) CHECK_NOTHROW(parse_target(target + ",+" + feature));
  };
  CHECK(dot_intrinsics().size() > 10);
  CHECK(intrinsic_families().size() > 30);
  for (const DotIntrinsic& row : dot_intrinsics()) {
    CHECK(!features_of_intrinsic(row.name).empty());
    check(row.name, features_of_intrinsic(row.name));
  }
  CHECK(features_of_intrinsic("llvm.x86.avx512.vpdpwssds.256") == "avx512vnni+avx512vl|avxvnni");
  CHECK(features_of_intrinsic("llvm.x86.avx512.vpdpwssds.512") == "avx512vnni+avx512vl");
  for (const auto& [prefix, features] : intrinsic_families()) check(prefix, features);
  CHECK_THROWS_AS(parse_target("triple=x86_64-linux-gnu,+avx512vnnni"), CompileError);  // a misspelt one is found
}

TEST_CASE("the target says which buffers are on the stack", "[codegen]") {
  PrimFuncRef turned = lower_program(parse(R"(
@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    B = T.alloc_buffer((64,), "float32")
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * A[vi]
    for i in range(64):
        with T.block("C"):
            vi = T.axis.spatial(64, i)
            C[vi] = B[63 - vi]
)"));
  auto is_scratch = [&](const Target& target) {
    return to_llvm_ir({{"f", turned}}, target).find("out of memory for a temporary buffer") != std::string::npos;
  };
  Target target = parse_target("x86-64");
  CHECK(!is_scratch(target));
  target.local.other_bytes = 64 * 4 - 1;
  CHECK(is_scratch(target));
  target = parse_target("x86-64");
  target.local.bytes = 64 * 4 - 1;
  CHECK(is_scratch(target));
}

TEST_CASE("dot products by LLVM's intrinsics", "[codegen]") {
  std::mt19937 generator(1);
  int ran = 0;
  for (const DotIntrinsic& row : dot_intrinsics()) {
    INFO(row.name);
    PrimFuncRef function = parse(dot_program(row));
    bool is_x86 = row.name.starts_with("llvm.x86.");
    if (!is_x86) {
      CHECK(!compile_kernels({{"f", lower_program(function)}}, parse_target("triple=aarch64-linux-gnu,cpu=neoverse-v1"))
                 .objects.empty());
      continue;
    }
    std::string error = error_of(dot_program(row));
    if (!error.empty()) {  // not on this processor
      CHECK(error.find("needs a processor with") != std::string::npos);
      continue;
    }
    ++ran;
    CompiledKernel kernel(lower_program(function));
    for (int round = 0; round < 20; ++round) {
      Tensor a = random_bits(row.a, generator), b = random_bits(row.b, generator),
             compiled = random_bits(row.result, generator);
      Tensor interpreted = Tensor::empty(compiled.shape(), compiled.dtype());
      std::copy_n(static_cast<const char*>(compiled.raw()), compiled.bytes(), static_cast<char*>(interpreted.raw()));
      kernel.run({a.raw(), b.raw(), compiled.raw()});
      interpret(function, std::vector<Tensor>{a, b, interpreted});
      CHECK(same_contents(compiled, interpreted));
    }
  }
#ifdef __x86_64__
  CHECK(ran > 0);
#endif
}

TEST_CASE("LLVM intrinsics that are wrong", "[codegen]") {
  auto program = [](const char* name, const char* dtype, const char* args) {
    return fmt::format(
        "@T.prim_func\ndef f(A: T.Buffer((16,), \"int32\")):\n    A[0:16] = T.call_llvm_pure_intrin(\"{}\", \"{}\", "
        "{})\n",
        dtype, name, args);
  };
  const char* all = "A[0:16], A[0:16], A[0:16]";
  std::string missing = error_of(program("llvm.x86.avx512.vpdpbusd.513", "int32x16", all));
  CHECK(missing.find("has no intrinsic 'llvm.x86.avx512.vpdpbusd.513'") != std::string::npos);
  CHECK(missing.find("test.py:3") != std::string::npos);
  std::string old = error_of(program("llvm.x86.avx512.vpdpbusd.512", "int32x16", all), "x86-64-v3");
  CHECK(old.find("needs a processor with avx512vnni") != std::string::npos);
  CHECK(error_of(program("llvm.x86.avx512.vpdpbusd.512", "int32x16", "A[0:16], A[0:16]"), "cpu=sapphirerapids")
            .find("is <16 x i32> (<16 x i32>, <16 x i32>, <16 x i32>), called as") != std::string::npos);
  CHECK(error_of(program("llvm.smax.v16i32", "int32x16", "A[0:16]")).find("does not take these types") !=
        std::string::npos);
  CHECK(error_of(program("llvm.smax", "int32x16", "A[0:16], A[0:16]")).empty());
  CHECK(error_of(program("llvm.x86.rdpid", "int32x16", "A[0:16]")).find("are not known") != std::string::npos);
}

TEST_CASE("a prefetch takes the address of an element", "[codegen]") {
  std::string text = "@T.prim_func\ndef f(A: T.Buffer((16,), \"int32\")):\n    T.evaluate(T.prefetch({}, 0, 3, {}))\n";
  CHECK(error_of(fmt::format(fmt::runtime(text), "T.address_of(A[3])", 1)).empty());
  CHECK(error_of(fmt::format(fmt::runtime(text), "A[3]", 1)).find("takes T.address_of") != std::string::npos);
  CHECK(error_of(fmt::format(fmt::runtime(text), "T.address_of(A[3])", 0)).find("takes constants") !=
        std::string::npos);
}

TEST_CASE("values read as others of the same bytes", "[codegen]") {
  PrimFuncRef function = parse(
      "@T.prim_func\ndef f(A: T.Buffer((8,), \"uint8\"), B: T.Buffer((2,), \"float32\"), C: T.Buffer((4,), "
      "\"int16\")):\n"
      "    B[0:2] = T.reinterpret(\"float32x2\", A[0:8])\n"
      "    C[0:4] = T.reinterpret(\"int16x4\", B[0:2])\n");
  Tensor a = Tensor::of<uint8_t>({8}, DType::uint(8), {0, 0, 128, 63, 0, 0, 32, 193});
  for (bool compiled : {true, false}) {
    Tensor b = Tensor::empty({2}, kFloat32), c = Tensor::empty({4}, DType::int_(16));
    if (compiled) {
      CompiledKernel(lower_program(function)).run({a.raw(), b.raw(), c.raw()});
    } else {
      interpret(function, std::vector<Tensor>{a, b, c});
    }
    CHECK(b.data<float>()[0] == 1.0F);
    CHECK(b.data<float>()[1] == -10.0F);
    CHECK(c.as_int(1) == 0x3f80);
    CHECK(c.as_int(3) == static_cast<int16_t>(0xc120));
  }
}

}  // namespace relaxc::codegen
