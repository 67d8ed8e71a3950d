// Targets, object files, shared objects and determinism.
#include <dlfcn.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codegen/llvm_compile.h"
#include "support/diagnostic.h"
#include "tests/kernel_harness.h"

#include "tests/catch.h"

namespace relaxc::codegen {

namespace {

// out[i] = sin(exp(in[i])) + number: needs libm.
PrimFuncRef sample(int64_t number) {
  VarRef n = make_dim("n"), i = make_dim("i");
  Buffer a = flat_buffer("A", kFloat32, n), b = flat_buffer("B", kFloat32, n);
  Expr value = intrinsic("tir.sin", {intrinsic("tir.exp", {load(a, {i})}, kFloat32)}, kFloat32);
  Stmt body = loop(i, n, store(b, value + f32(static_cast<double>(number)), {i}), ForKind::kParallel);
  return prim_func({a, b}, {body});
}
KernelMap samples(int64_t count) {
  KernelMap kernels;
  for (int64_t p = 0; p < count; ++p) kernels.emplace("kernel_" + std::to_string(p), sample(p));
  return kernels;
}
std::string message_of(const std::string& target) {
  try {
    parse_target(target);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("targets by name", "[codegen]") {
  Target v1 = parse_target("x86-64"), v2 = parse_target("x86-64-v2"), v3 = parse_target("x86-64-v3"),
         v4 = parse_target("x86-64-v4"), skylake = parse_target("cpu=skylake-avx512");
  CHECK(v1.cpu == Target{}.cpu);
  CHECK(v1.vector_bits == Target{}.vector_bits);
  CHECK(v1.num_vector_registers == Target{}.num_vector_registers);
  CHECK(!v1.has_fma);
  CHECK(v2.vector_bits == 128);
  CHECK(!v2.has_fma);
  CHECK(v3.vector_bits == 256);
  CHECK(v3.num_vector_registers == 16);
  CHECK((v3.has_fma && v3.has_float16_conversion));
  CHECK(v4.vector_bits == 512);
  CHECK(v4.num_vector_registers == 32);
  CHECK(v4.vector_lanes(32) == 16);
  CHECK(skylake.vector_bits == 512);
  CHECK(parse_target("cpu=x86-64-v3,-fma").has_fma == false);
  CHECK(parse_target("triple=aarch64-linux-gnu").num_vector_registers == 32);
  Target host = parse_target("host");
  CHECK(host.vector_bits >= 128);
  CHECK(host == host_target());
}

TEST_CASE("unknown targets are named, with what is accepted", "[codegen]") {
  CHECK(message_of("x86-64-v9").starts_with("error: unknown target 'x86-64-v9'\n"));
  CHECK(message_of("nonsense,+avx").starts_with("error: target 'nonsense,+avx': unknown target 'nonsense'\n"));
  CHECK(message_of("x86-64-v9").find("accepted: host, x86-64") != std::string::npos);
  CHECK(message_of("cpu=nonesuch").find("unknown cpu 'nonesuch'") != std::string::npos);
  CHECK(message_of("cpu=nonesuch").find("skylake-avx512") != std::string::npos);
  CHECK(message_of("triple=pdp11-dec-unix").find("pdp11") != std::string::npos);
  CHECK(message_of("cpu=x86-64,+nonesuch").find("unknown feature '+nonesuch'") != std::string::npos);
  CHECK(message_of("speed=fast").find("unknown key 'speed'") != std::string::npos);
  CHECK(message_of("").find("accepted") != std::string::npos);
}

TEST_CASE("an architecture, or a processor of another one, is named with its triple", "[codegen]") {
  for (const char* name : {"aarch64", "arm64"})
    CHECK(message_of(name).find("did you mean triple=aarch64-linux-gnu?") != std::string::npos);
  for (const char* name : {"neoverse-n1", "cpu=neoverse-n1"}) {
    const std::string message = message_of(name);
    CHECK(message.find("did you mean triple=aarch64-linux-gnu,cpu=neoverse-n1?") != std::string::npos);
    CHECK(message.find("skylake") == std::string::npos);
  }
}

TEST_CASE("targets below the baseline of their architecture are refused", "[codegen]") {
  for (const char* name :
       {"cpu=x86-64,-sse", "cpu=x86-64,-sse2", "cpu=x86-64,+soft-float", "cpu=x86-64-v4,-x87", "cpu=x86-64,-cx8",
        "cpu=x86-64,-64bit", "cpu=x86-64-v3,-64bit-mode", "cpu=x86-64,+32bit-mode", "cpu=i386", "cpu=pentium",
        "triple=aarch64-linux-gnu,-neon", "triple=aarch64-linux-gnu,-fp-armv8", "triple=riscv64-linux-gnu,-d",
        "triple=riscv64-linux-gnu,cpu=generic-rv64"}) {
    INFO(name);
    CHECK(message_of(name).find("compiled code needs") != std::string::npos);
  }
}

TEST_CASE("each target compiles", "[codegen]") {
  for (const char* name : {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "cpu=znver4", "triple=aarch64-linux-gnu",
                           "triple=riscv64-linux-gnu", "triple=riscv64-linux-gnu,cpu=sifive-u74,+v"}) {
    Target target = parse_target(name);
    KernelObjects result = compile_kernels(samples(2), target);
    REQUIRE(result.objects.size() == 2);
    CHECK(result.objects[0].size() > 500);
    CHECK(link_shared_object(result).size() > 500);
    for (int level : {0, 1, 3}) CHECK(!compile_kernels(samples(1), target, {1, level}).objects.empty());
    CHECK(link_shared_object(compile_kernels({}, target)).size() > 100);  // of a graph that calls no kernel
  }
  CHECK(to_llvm_ir(samples(1), parse_target("x86-64")).find("@relaxc_k_kernel_0(") != std::string::npos);
  CHECK(to_assembly(samples(1), parse_target("x86-64")).find("relaxc_k_kernel_0:") != std::string::npos);
  CHECK(compile_kernels({}, parse_target("x86-64")).objects.empty());
}

TEST_CASE("the same bytes every time and for any number of jobs", "[codegen]") {
  Target target = parse_target("x86-64-v3");
  KernelObjects one = compile_kernels(samples(20), target, {1, 2, false}),
                two = compile_kernels(samples(20), target, {2, 2, false}),
                three = compile_kernels(samples(20), target, {3, 2, false});
  CHECK(one.objects == two.objects);
  CHECK(one.objects == three.objects);
  CHECK(one.names.size() == 20);
  CHECK(link_shared_object(one) == link_shared_object(two));
}

TEST_CASE("a shared object runs and exports the kernels only", "[codegen]") {
  std::vector<char> bytes = link_shared_object(compile_kernels(samples(9), parse_target("host"), {2, 2}));
  std::string folder = (std::filesystem::temp_directory_path() / "relaxc_test_XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  std::string path = folder + "/kernels.so";
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  INFO((library ? "" : dlerror()));
  REQUIRE(library != nullptr);
  CHECK(dlsym(library, "relaxc_k_kernel_0.body") == nullptr);
  for (int64_t p : {0, 8}) {
    auto kernel = reinterpret_cast<relaxc_kernel>(dlsym(library, kernel_symbol("kernel_" + std::to_string(p)).c_str()));
    REQUIRE(kernel != nullptr);
    std::vector<float> x{0.0f, 0.5f, -1.0f}, y(3);
    void* data[] = {x.data(), y.data()};
    int64_t scalars[] = {3};
    vm::KernelRuntime runtime(std::make_shared<vm::ThreadPool>(2));
    CHECK(runtime.call(kernel, data, scalars) == 0);
    for (size_t q = 0; q < 3; ++q) CHECK(std::fabs(y[q] - (std::sin(std::exp(x[q])) + static_cast<float>(p))) < 1e-6f);
  }
  dlclose(library);
  std::filesystem::remove_all(folder);
}

TEST_CASE("equal public kernels are compiled once and exported under each name", "[codegen]") {
  KernelMap kernels = samples(2);
  for (const char* name : {"first", "second"}) {
    PrimFunc copy = *sample(1);
    copy.attrs.set("global_symbol", name);
    kernels.emplace(name, make_prim_func(std::move(copy)));
  }
  std::string text = to_llvm_ir(kernels, host_target(), {1, 2});
  CHECK(text.find("@relaxc_k_second = alias") != std::string::npos);
  CHECK(text.find("@relaxc_k_second.body") == std::string::npos);
  CHECK(text.find("@relaxc_k_kernel_1.body") != std::string::npos);  // private: merge_kernels comes before
  auto library = load_jit(compile_kernels(kernels, host_target(), {1, 2}));
  CHECK(library->find("relaxc_k_first") != nullptr);
  CHECK(library->find("relaxc_k_first") == library->find("relaxc_k_second"));
}

TEST_CASE("a kernel that equals an earlier one is not compiled again, whatever its name", "[codegen]") {
  Target target = parse_target("x86-64-v2");
  KernelMap first{{"before", sample(71)}}, second{{"of_another_name", sample(71)}, {"new", sample(72)}};
  CHECK(compile_kernels(first, target).num_reused == 0);
  KernelObjects again = compile_kernels(second, target);
  CHECK(again.num_reused == 1);
  KernelObjects from_scratch = compile_kernels(second, target, {.reuse = false});
  CHECK(from_scratch.num_reused == 0);
  CHECK(link_shared_object(again) == link_shared_object(from_scratch));
  for (const PassSettings& settings : {PassSettings{.opt_level = 1}, PassSettings{.reuse = false}})
    CHECK(compile_kernels(second, target, settings).num_reused == 0);
  CHECK(compile_kernels(second, parse_target("x86-64-v3")).num_reused == 0);
  CHECK(compile_kernels(second, target).num_reused == 2);
}

TEST_CASE("a target is compiled by the backend that takes it", "[codegen]") {
  CHECK(backend_of(parse_target("x86-64")).name == std::string("llvm"));
  Target unknown;
  unknown.triple = "pdp11-dec-unix";
  CHECK_THROWS_AS(backend_of(unknown), CompileError);
}

TEST_CASE("errors in one of many kernels reach the caller", "[codegen]") {
  KernelMap kernels = samples(20);
  Buffer b = flat_buffer("B", kFloat32, 1);
  kernels.insert_or_assign("kernel_7",
                           prim_func({b}, {store(b, intrinsic("tir.no_such", {f32(1)}, kFloat32), {imm(0)})}));
  CHECK_THROWS_AS(compile_kernels(kernels, parse_target("x86-64"), {2, 2}), CompileError);
}

}  // namespace relaxc::codegen
