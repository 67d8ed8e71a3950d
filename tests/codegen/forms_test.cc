// The inner loops of the programs in bench/kernels/forms and of the compiler's own products: no vector on the stack, no
// scalar multiply-add.
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "bench/kernels/problem.h"
#include "codegen/compile.h"
#include "codegen/llvm_compile.h"
#include "codegen/target.h"
#include "ir/text/parser.h"
#include "passes/pass.h"
#include "support/diagnostic.h"
#include "tests/constants.h"
#include "tests/lowering.h"

#include "tests/catch.h"
#include "tests/patterns.h"

namespace relaxc::codegen {

namespace {

// The innermost loops of an assembly text: from a label to a jump back to it, with no other such pair in between.
std::vector<std::vector<std::string>> innermost_loops(const std::string& assembly) {
  std::vector<std::vector<std::string>> loops;
  std::vector<std::string> lines;
  std::map<std::string, size_t> labels;
  size_t last_loop_start = 0;
  std::istringstream text(assembly);
  for (std::string line; std::getline(text, line); lines.push_back(line)) {
    if (auto label = test::whole_match(line, R"((\.L\w+):.*)"); !label.empty()) labels[label[1]] = lines.size();
    auto jump = test::whole_match(line, R"(\s*j\w+\s+(\.L\w+).*)");
    if (jump.empty() || !labels.contains(jump[1])) continue;
    size_t start = labels[jump[1]];
    if (start >= last_loop_start) loops.emplace_back(lines.begin() + static_cast<ptrdiff_t>(start), lines.end());
    last_loop_start = std::max(last_loop_start, start + 1);
  }
  return loops;
}

// A processor without matrix registers, whose kernels are vectors.
constexpr const char* kVectors = "cpu=sapphirerapids,-amx-tile";

bool is_like(const std::string& line, const char* pattern) { return !test::whole_match(line, pattern).empty(); }

// How many contraction loops there are, with a check of each: no vector on the stack, no scalar multiply-add.
int check_contractions(const std::string& assembly) {
  const char* on_the_stack = R"(.*%[xyz]mm\d+, *-?\d*\(%rsp.*|.*\(%rsp[^)]*\), *%[xyz]mm.*)";
  const char* multiply = R"(\s*v(fmadd|pdpbusd|dpbf16)\w*ps\b.*|\s*vpdpbusd\b.*)";
  const char* scalar = R"(\s*vfmadd\w+ss\b.*)";
  int contractions = 0;
  for (const std::vector<std::string>& loop : innermost_loops(assembly)) {
    int multiplies = 0, broadcasts = 0, on_stack = 0, scalars = 0;
    for (const std::string& line : loop) {
      multiplies += is_like(line, multiply);
      bool is_constant = line.find("%rip") != std::string::npos;
      // In an instruction of its own, or as an operand in memory.
      bool broadcast = line.find("broadcast") != std::string::npos || line.find("{1to") != std::string::npos;
      broadcasts += !is_constant && broadcast;
      on_stack += is_like(line, on_the_stack);
      scalars += is_like(line, scalar);
    }
    if (multiplies == 0 || broadcasts == 0) continue;  // a transform or a copy
    ++contractions;
    CHECK(on_stack == 0);
    CHECK(scalars == 0);
  }
  return contractions;
}

// A module with zeros for all params but the first, compiled as any module is.
std::string assembly_of(const std::string& text, const std::string& target = "cpu=sapphirerapids") {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "problem.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  std::vector<Tensor> zeros;
  const std::vector<VarRef>& params = module.graph_function("main")->params;
  for (size_t i = 1; i < params.size(); ++i) {
    std::vector<int64_t> dims;
    for (const Expr& dim : *known_shape(params[i].type())) dims.push_back(*as_int(dim));
    zeros.push_back(Tensor::empty(dims, *tensor_dtype(params[i].type())));
    std::memset(zeros.back().raw(), 0, static_cast<size_t>(zeros.back().bytes()));
  }
  module = test::with_constants(std::move(module), zeros);
  CompileSettings settings;
  settings.target = target;
  CompiledModule compiled = compile(std::move(module), settings);
  return to_assembly(compiled.kernels(), compiled.target());
}

}  // namespace

TEST_CASE("inner loops of the kernels' forms", "[codegen]") {
  Target target = parse_target("cpu=sapphirerapids");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RELAXC_SOURCE_DIR "/bench/kernels/forms")) {
    INFO(entry.path().filename().string());
    ++files;
    PrimFuncRef kernel = read_module(entry.path().string()).prim_func("kernel");
    int contractions = check_contractions(to_assembly({{"k", lower_program(kernel)}}, target));
    bool is_depthwise = entry.path().filename().string().starts_with("depthwise");
    CHECK((contractions > 0 || is_depthwise));
  }
  CHECK(files > 15);
}

TEST_CASE("the bias of a product costs no accumulator", "[codegen]") {
  CHECK(check_contractions(assembly_of(R"(
@R.function
def main(x: R.Tensor(("b", "m", 256), "float32"), w: R.Tensor((256, 256), "float32"), bias: R.Tensor((256,), "float32")):
    with R.dataflow():
        z = R.matmul(x, w)
        y = R.add(z, bias)
        R.output(y)
    return y
)")) > 0);
}

TEST_CASE("products of int8 use the instruction of the target", "[codegen]") {
  const char* text = R"(
@R.function
def main(x: R.Tensor(("m", 64), "int8"), w: R.Tensor((64, 64), "int8")):
    with R.dataflow():
        y = R.matmul(x, w, out_dtype="int32")
        R.output(y)
    return y
)";
  for (auto [target, instruction] : {std::pair("cpu=sapphirerapids", R"(tdpbssd\s.*%tmm\d+)"),
                                     {kVectors, R"(vpdpbusd\s.*%zmm\d+)"},
                                     {"cpu=alderlake", R"(vpdpbusd\s.*%ymm\d+)"},
                                     {"triple=aarch64-linux-gnu,cpu=neoverse-n1", R"(sdot\s+v\d+\.4s)"}}) {
    INFO(target);
    CHECK(!test::matches(assembly_of(text, target), instruction).empty());
  }
  CHECK(test::matches(assembly_of(text, "cpu=haswell"), "vpdpbusd").empty());
}

TEST_CASE("inner loops of the benchmark's kernels as the built-in rules schedule them", "[codegen]") {
  constexpr int64_t kLanes = 16;
  for (const bench::Problem& problem : bench::problems()) {
    INFO(problem.kernel << " " << problem.shape());
    int contractions = check_contractions(assembly_of(bench::module_text(problem, {.block = kLanes}), kVectors));
    CHECK((contractions > 0 || problem.groups > 1));
  }
}

TEST_CASE("the inner loop on matrix registers loads four tiles and multiplies four times", "[codegen]") {
  const std::string assembly = assembly_of(R"(
@R.function
def main(x: R.Tensor((64, 4096), "uint8"), w: R.Tensor((4096, 64), "int8")):
    with R.dataflow():
        y = R.matmul(x, w, out_dtype="int32")
        R.output(y)
    return y
)");
  auto count = [](const std::vector<std::string>& lines, const char* pattern) {
    return std::ranges::count_if(lines, [&](const std::string& line) { return is_like(line, pattern); });
  };
  int loops = 0;
  for (const std::vector<std::string>& loop : innermost_loops(assembly)) {
    const auto multiplies = count(loop, R"(\s*tdpbusd\s.*)");
    if (multiplies == 0) continue;
    ++loops;
    CHECK(multiplies == 4);
    CHECK(count(loop, R"(\s*tileloadd\s.*)") == 4);
    CHECK(count(loop, R"(\s*tilestored\s.*)") == 0);
  }
  CHECK(loops == 1);
  // A function that uses the registers gives them their size, and gives them back.
  CHECK(test::matches(assembly, R"(ldtilecfg)").size() == test::matches(assembly, R"(tilerelease)").size());
  CHECK(!test::matches(assembly, R"(ldtilecfg)").empty());
}

}  // namespace relaxc::codegen
