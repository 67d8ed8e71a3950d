// The inner loops of the programs in bench/kernels/forms and of the compiler's own products: no vector on the stack, no
// scalar multiply-add.
#include <cstring>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "codegen/compile.h"
#include "codegen/target.h"
#include "ir/text/parser.h"
#include "support/diagnostic.h"
#include "tir/lower/lower.h"

#include "tests/catch.h"

namespace relaxc::codegen {

namespace {

// The innermost loops of an assembly text: from a label to a jump back to it, with no other such pair in between.
std::vector<std::vector<std::string>> innermost_loops(const std::string& assembly) {
  static const std::regex kLabel(R"(^(\.L\w+):.*)"), kJump(R"(^\s*j\w+\s+(\.L\w+).*)");
  std::vector<std::vector<std::string>> loops;
  std::vector<std::string> lines;
  std::map<std::string, size_t> labels;
  size_t last_loop_start = 0;
  std::istringstream text(assembly);
  for (std::string line; std::getline(text, line); lines.push_back(line)) {
    std::smatch match;
    if (std::regex_match(line, match, kLabel)) labels[match[1]] = lines.size();
    if (!std::regex_match(line, match, kJump) || !labels.contains(match[1])) continue;
    size_t start = labels[match[1]];
    if (start >= last_loop_start) loops.emplace_back(lines.begin() + static_cast<ptrdiff_t>(start), lines.end());
    last_loop_start = std::max(last_loop_start, start + 1);
  }
  return loops;
}

// How many contraction loops there are, with a check of each: no vector on the stack, no scalar multiply-add.
int check_contractions(const std::string& assembly) {
  static const std::regex kOnStack(R"(.*%[xyz]mm\d+, *-?\d*\(%rsp.*|.*\(%rsp[^)]*\), *%[xyz]mm.*)");
  static const std::regex kMultiply(R"(\s*v(fmadd|pdpbusd|dpbf16)\w*ps\b.*|\s*vpdpbusd\b.*)"),
      kScalar(R"(\s*vfmadd\w+ss\b.*)");
  int contractions = 0;
  for (const std::vector<std::string>& loop : innermost_loops(assembly)) {
    int multiplies = 0, broadcasts = 0, on_stack = 0, scalars = 0;
    for (const std::string& line : loop) {
      multiplies += std::regex_match(line, kMultiply);
      bool is_constant = line.find("%rip") != std::string::npos;
      broadcasts += !is_constant && line.find("broadcast") != std::string::npos;
      on_stack += std::regex_match(line, kOnStack);
      scalars += std::regex_match(line, kScalar);
    }
    if (multiplies == 0 || broadcasts == 0) continue;  // a transform or a copy
    ++contractions;
    CHECK(on_stack == 0);
    CHECK(scalars == 0);
  }
  return contractions;
}

// x times a constant, compiled as any module is.
std::string assembly_of_product(const std::string& rows, int64_t depth, int64_t columns, DType left, DType right,
                                DType result) {
  std::string text = fmt::format(R"(
@R.function
def main(x: R.Tensor(({0}, {1}), "{3}"), w: R.Tensor(({1}, {2}), "{4}")):
    with R.dataflow():
        y = R.matmul(x, w, out_dtype="{5}")
        R.output(y)
    return y
)",
                                 rows, depth, columns, to_string(left), to_string(right), to_string(result));
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "product.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  Function main = *module.graph_function("main");
  Tensor weights = Tensor::empty({depth, columns}, right);
  std::memset(weights.raw(), 0, static_cast<size_t>(weights.bytes()));
  main.body = substitute(main.body, {{main.params[1].get(), constant(weights)}});
  main.params.pop_back();
  module.functions.at("main") = make_function(std::move(main));
  CompileSettings settings;
  settings.target = "cpu=sapphirerapids";
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
  CHECK(files > 20);
}

TEST_CASE("inner loops of products as the built-in rules schedule them", "[codegen]") {
  struct Shape {
    const char* rows;
    int64_t depth, columns;
  };
  // Those of the kernel benchmark.
  for (const Shape& shape : {Shape{"512", 512, 512},
                             {"1024", 1024, 1024},
                             {"2048", 2048, 2048},
                             {"1", 768, 3072},
                             {"8", 768, 3072},
                             {"128", 768, 3072},
                             {"128", 3072, 768},
                             {"197", 768, 768},
                             {"3136", 64, 64},
                             {"\"m\"", 768, 768}}) {
    INFO(shape.rows << " x " << shape.depth << " x " << shape.columns);
    CHECK(check_contractions(
              assembly_of_product(shape.rows, shape.depth, shape.columns, kFloat32, kFloat32, kFloat32)) > 0);
  }
  CHECK(check_contractions(assembly_of_product("1024", 1024, 1024, DType::uint(8), DType::int_(8), kInt32)) > 0);
  CHECK(check_contractions(assembly_of_product("1024", 1024, 1024, DType::bfloat16(), DType::bfloat16(), kFloat32)) >
        0);
}

}  // namespace relaxc::codegen
