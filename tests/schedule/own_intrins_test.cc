// A file of schedules that declares tensor intrinsics and uses them, in the compiler and from the command line.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "codegen/compile.h"
#include "codegen/llvm_compile.h"
#include "ir/text/parser.h"
#include "passes/pass.h"
#include "support/diagnostic.h"
#include "tests/lowering.h"
#include "tests/process.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/tensorize.h"
#include "tir/schedule/rule.h"
#include "tir/schedule/script.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

constexpr const char* kFile = RELAXC_SOURCE_DIR "/examples/schedules/own_instruction.py";
constexpr const char* kDotModule = R"(
@R.function
def main(x: R.Tensor((6, 10), "float32"), w: R.Tensor((10, 16), "float32"), b: R.Tensor((16,), "float32")):
    with R.dataflow():
        y = R.nn.relu(R.add(R.matmul(x, w), b))
        R.output(y)
    return y
)";

std::string content(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Tensor numbers(std::vector<int64_t> shape) {
  Tensor tensor = Tensor::empty(std::move(shape), kFloat32);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, static_cast<double>((i * 5) % 7 - 3));
  return tensor;
}

struct CompiledDots {
  Tensor result;
  std::string report, assembly;
};
CompiledDots run_with_dots(const std::vector<ScheduleRule>& rules) {
  Diagnostics diagnostics;
  IRModule module = parse_module(kDotModule, "module.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  std::string report;
  CompileSettings settings;
  settings.schedules = rules;
  settings.report = [&](const std::string& line) { report += line + "\n"; };
  CompiledModule compiled = compile(std::move(module), settings);
  std::string assembly = codegen::to_assembly(compiled.kernels(), compiled.target());
  Session session(compiled.load());
  return {session.run({numbers({6, 10}), numbers({10, 16}), numbers({16})})[0], report, assembly};
}

// B of 8 x 8 is filled in tiles of 2 x 8 by an intrinsic: what its description and its implementation say of their
// param, the implementation's body, and the steps on block `b` and its loop `ii` of 2.
PrimFuncRef filled(const std::string& described, const std::string& params, const std::string& call,
                   const std::string& steps) {
  Diagnostics diagnostics;
  IRModule module = parse_module(R"(
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8))
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.float32(1)
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + B[vi, vj]
)",
                                 "main.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  Schedule sch(module.prim_func("main"), {.show_program = false});
  run_schedule_text(sch,
                    R"(
@T.prim_func(private=True)
def meaning()" + described +
                        R"():
    for i, j in T.grid(2, 8):
        with T.block("fill"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.float32(1)

@T.prim_func(private=True)
def call()" + params + "):\n" +
                        call + R"(

S.intrin("fill", meaning, call)

def steps(sch):
    b = sch.get_block("B")
    i, j = sch.get_loops(b)
    io, ii = sch.split(i, [None, 2])
)" + steps + "\n",
                    "own.py");
  return lower_program(sch.function());
}

const std::string kCompact = "C: T.Buffer((2, 8), \"float32\", offset_factor=1)";
const std::string kByRows = "    for i in range(2):\n        C[i, 0:8] = T.Broadcast(T.float32(1), 8)";
const std::string kFill = "    sch.tensorize(ii, 'fill')";
const std::string kPadded = "    \n    sch.storage_align(sch.get_block('B_o'), 0, 0, 32, 4)";

std::string intrin_error_of(const std::string& text) {
  try {
    read_schedule_rules(text, "own.py");
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a schedules file brings its own instruction", "[schedule]") {
  CompiledDots plain = run_with_dots({}), own = run_with_dots(read_schedule_rules(content(kFile), kFile));
  INFO(own.report);
  CHECK(own.report.find("with_fma") != std::string::npos);
  CHECK(own.report.find("was not applied") == std::string::npos);
  CHECK(same_contents(plain.result, own.result));
  CHECK(own.assembly != plain.assembly);
}

TEST_CASE("a schedules file brings its own instruction, from the command line", "[schedule]") {
  std::string module = std::string(RELAXC_BINARY_DIR) + "/own_instruction_module.py";
  std::ofstream(module) << kDotModule;
  Outcome outcome = run_program({RELAXC_TOOL, "compile", module, "--schedules", kFile, "--emit=tir"}, 60);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find("llvm.fma.v4f32") != std::string::npos);
}

TEST_CASE("an intrinsic in a text of schedules is known to that text only", "[schedule]") {
  std::string text = content(kFile);
  PrimFuncRef program = [] {
    Diagnostics diagnostics;
    IRModule module = parse_module(R"(
@T.prim_func
def main(A: T.Buffer((8, 6), "float32"), B: T.Buffer((6, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for i, j, k in T.grid(8, 8, 6):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)",
                                   "main.py", op_table(), diagnostics);
    diagnostics.throw_if_errors();
    return module.prim_func("main");
  }();
  Schedule sch(program);
  run_schedule_text(sch, text, "own.py");
  CHECK(sch.trace().text().find("fma_4x2") != std::string::npos);
  CHECK(!builtin_tensor_intrins().find("fma_4x2"));
}

TEST_CASE("an intrinsic gets the memory that its implementation relies on", "[schedule]") {
  const std::string strided = "c: T.handle";
  const std::string flat = "    C[0, 0:16] = T.Broadcast(T.float32(1), 16)";
  const std::string declared =
      "    s = T.int32()\n    C = T.match_buffer(c, (2, 8), \"float32\", strides=[s, 1], offset_factor=1)\n" + kByRows;
  // Rows of eight are neighbours in B.
  CHECK_NOTHROW(filled(kCompact, kCompact, flat, kFill));
  CHECK_NOTHROW(filled(kCompact, kCompact, kByRows, kFill + kPadded));
  CHECK_NOTHROW(filled(kCompact, strided, declared, kFill + kPadded));
  // Padded, or every second row, they are not.
  CHECK_THROWS_WITH(filled(kCompact, kCompact, flat, kFill + kPadded), Catch::Contains("in its dim 0, 'B' has stride"));
  std::string turned = "    sch.transform_layout(b, 'B', lambda i, j: (j, i))\n" + kFill;
  CHECK_THROWS_WITH(filled(kCompact, kCompact, flat, turned), Catch::Contains("does not match"));
  std::string other = kCompact;
  other.replace(other.find("(2, 8)"), 6, "(4, 8)");
  CHECK_THROWS_WITH(filled(kCompact, other, flat, kFill), Catch::Contains("another dtype or shape"));
}

TEST_CASE("an intrinsic gets memory of the scope, and at the place, that it asks for", "[schedule]") {
  auto asks = [](const std::string& words, const std::string& steps = "", bool only_described = false) {
    std::string declared = "C: T.Buffer((2, 8), \"float32\", " + words + ")";
    filled(declared, only_described ? kCompact : declared, kByRows, steps + kFill);
  };
  auto scope = [](const std::string& name) { return "    sch.set_scope(b, 0, '" + name + "')\n"; };
  // Two rows of eight elements in memory that begins at a multiple of 64 bytes.
  CHECK_NOTHROW(asks("offset_factor=16"));
  CHECK_THROWS_WITH(asks("offset_factor=32"),
                    Catch::Contains("a multiple of 32 elements") && Catch::Contains("16 only"));
  CHECK_NOTHROW(asks("align=32"));
  CHECK_THROWS_WITH(asks("align=128"), Catch::Contains("a multiple of 128 bytes") && Catch::Contains("64 only"));
  CHECK_THROWS_WITH(asks("elem_offset=0"), Catch::Contains("must begin at element 0"));
  // Rows that move apart afterwards.
  CHECK_NOTHROW(filled(kCompact, "C: T.Buffer((2, 8), \"float32\", offset_factor=8)", kByRows, kFill + kPadded));
  CHECK_THROWS_WITH(filled(kCompact, "C: T.Buffer((2, 8), \"float32\", offset_factor=16)", kByRows, kFill + kPadded),
                    Catch::Contains("a multiple of 16 elements") && Catch::Contains("72 only"));
  CHECK_NOTHROW(asks("scope='global'", scope("local")));
  CHECK_NOTHROW(asks("scope='shared'", scope("shared")));
  for (const char* wanted : {"shared", "local", "wmma.matrix_a"}) {
    CHECK_THROWS_WITH(asks(fmt::format("scope='{}'", wanted)), Catch::Contains("'B' has scope 'global'"));
    CHECK_THROWS_WITH(asks(fmt::format("scope='{}'", wanted), "", true), Catch::Contains("'B' has scope 'global'"));
  }
  for (const char* there : {"shared", "warp", "wmma.matrix_a"})
    CHECK_THROWS_WITH(asks("offset_factor=1", scope(there)), Catch::Contains("requires memory of scope 'global'"));
}

TEST_CASE("one variable for two strides of an intrinsic is one number", "[schedule]") {
  auto added = [](const std::string& columns_of_a) {
    Diagnostics diagnostics;
    IRModule module = parse_module(R"(
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (8, )" + columns_of_a +
                                       R"())
    C = T.match_buffer(c, (8, n))
    for i, j in T.grid(8, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
)",
                                   "main.py", op_table(), diagnostics);
    diagnostics.throw_if_errors();
    std::string program = R"((a: T.handle, c: T.handle):
    s = T.int32()
    A = T.match_buffer(a, (2, 4), strides=[s, 1], offset_factor=1)
    C = T.match_buffer(c, (2, 4), strides=[s, 1], offset_factor=1)
    for i, j in T.grid(2, 4):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
)";
    Schedule sch(module.prim_func("main"), {.show_program = false});
    run_schedule_text(sch, R"(
@T.prim_func(private=True)
def meaning)" + program + R"(
@T.prim_func(private=True)
def call)" + program + R"(
S.intrin("copy", meaning, call)

def steps(sch):
    i, j = sch.get_loops("C")
    io, ii = sch.split(i, [None, 2])
    sch.tensorize(ii, "copy")
)",
                      "own.py");
    return lower_program(sch.function());
  };
  CHECK_NOTHROW(added("n"));
  CHECK_THROWS_WITH(added("n + 1"), Catch::Contains("'C' declares stride"));
}

TEST_CASE("buffers of an intrinsic that are parts of one buffer are apart", "[schedule]") {
  auto tensorize = [](const std::string& left) {
    Diagnostics diagnostics;
    IRModule module = parse_module(R"(
@T.prim_func
def main(B: T.Buffer((8, 16), "float32"), C: T.Buffer((12, 16), "float32")):
    for i, j, k in T.grid(6, 16, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + C[)" +
                                       left + R"(, vk] * B[vk, vj]
)",
                                   "main.py", op_table(), diagnostics);
    diagnostics.throw_if_errors();
    Schedule sch(module.prim_func("main"), {.show_program = false});
    sch.apply(Tensorize{sch.apply(GetLoops{sch.apply(GetBlock{"C"})})[0], "fma_6x16x8_f32_avx2"});
  };
  CHECK_NOTHROW(tensorize("vi + 6"));
  CHECK_THROWS_WITH(tensorize("vi"), Catch::Contains("'A' and 'C' are parts of 'C' that may overlap"));
  CHECK_THROWS_WITH(tensorize("vi + 5"), Catch::Contains("that may overlap"));
}

TEST_CASE("intrinsics are listed with what they compute and need", "[schedule]") {
  std::string built_in = describe_intrins(builtin_tensor_intrins());
  INFO(built_in);
  CHECK(built_in.find("dot_16x4_u8s8s32_vnni(A uint8[4], B int8[16, 4], C int32[16])\n    C[vi] = C[vi] + ") !=
        std::string::npos);
  CHECK(built_in.find("vi < 16, vk < 4\n    needs avx512vnni+avx512vl\n") != std::string::npos);
  CHECK(built_in.find("needs avx512vnni+avx512vl or avxvnni\n") != std::string::npos);
  std::string scalable = built_in.substr(built_in.find("fma_4xvscale_f32_sve("));
  CHECK(scalable.find("needs sve\n") < scalable.find("any processor"));
  CHECK(built_in.find("fma_6x16x8_f32_avx2(A float32[6, 8], B float32[8, 16], C float32[6, 16])") != std::string::npos);
  std::string own = describe_intrins(read_tensor_intrins(content(kFile), kFile));
  INFO(own);
  CHECK(own.starts_with("fma_4x2("));
  CHECK(std::ranges::count(own, '\n') == 3);
}

TEST_CASE("a text of steps has no S.use", "[schedule]") {
  Schedule sch(IRModule(), {.show_program = false});
  CHECK_THROWS_WITH(run_schedule_text(sch, "\nS.use(\"contraction\", rows=6)\n", "steps.py"),
                    Catch::Contains("steps.py:2:1: error: S.use chooses a rule for a whole compile"));
}

TEST_CASE("declarations of intrinsics that do not fit are errors at their place", "[schedule]") {
  CHECK(intrin_error_of("S.intrin(\"x\", nothing, nobody)\n").find("own.py:1:1") != std::string::npos);
  std::string programs = content(kFile).substr(0, content(kFile).find("S.intrin"));
  CHECK(intrin_error_of(programs + "S.intrin(fma_4x2_meaning, fma_4x2_call)\n").find("expected S.intrin") !=
        std::string::npos);
  std::string twice = "S.intrin(\"x\", fma_4x2_meaning, fma_4x2_call)\n";
  CHECK(intrin_error_of(programs + twice + twice).find("'x' is declared above") != std::string::npos);
  std::string built_in = "S.intrin(\"fma_8_f32_avx2\", fma_4x2_meaning, fma_4x2_call)\n";
  CHECK(intrin_error_of(programs + built_in).find("'fma_8_f32_avx2' is built in") != std::string::npos);
  CHECK(intrin_error_of(programs + "S.intrin(\"x\", fma_4x2_meaning, missing)\n").find("expected S.intrin") !=
        std::string::npos);
  // Errors inside of the programs stand at their lines.
  std::string broken =
      "\n\n@T.prim_func\ndef f(A: T.Buffer((2,), \"float32\")):\n    A[0] = undefined\n\nS.intrin(\"x\", f, f)\n";
  CHECK(intrin_error_of(broken).find("own.py:5:") != std::string::npos);
}

}  // namespace relaxc::test
