// Compilers for parts of a graph (passes/external.h): which parts they get, and how their kernels are called.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "tests/process.h"
#include "vm/error.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

// Negates or adds, by the bytes of the program: 'n' (the last result), 'a' (the next input). Fails at 'f'.
constexpr const char* kRuntime = R"(
#include <stdint.h>
int32_t test_external(const char* program, const int64_t* dims, float** t0, float* t1, float* t2, float* t3) {
  float* tensors[] = {(float*)t0, t1, t2, t3};
  int inputs = program[0] - '0', next = 1;
  float* out = tensors[inputs];
  for (int64_t i = 0; i < dims[0] * dims[1]; ++i) {
    float value = tensors[0][i];
    next = 1;
    for (const char* op = program + 1; *op; ++op) {
      if (*op == 'f') return 1;
      value = *op == 'n' ? -value : value + tensors[next++][i];
    }
    out[i] = value;
  }
  return 0;
}
)";

struct Library {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("relaxc_external_{}", getpid())).string();
  Library() {
    std::ofstream(path + ".c") << kRuntime;
    REQUIRE(test::run_program({"/usr/bin/cc", "-shared", "-fPIC", path + ".c", "-o", path + ".so"}, 60).exit_code == 0);
  }
  ~Library() {
    std::filesystem::remove(path + ".c");
    std::filesystem::remove(path + ".so");
  }
};

// A compiler of chains of negative and add, whose programs are kept in `programs`.
ExternalCompiler chains(std::vector<std::string>& programs, const std::string& last = "") {
  auto takes = [](const OpCall& op) { return op.name() == "relax.negative" || op.name() == "relax.add"; };
  auto compile = [&programs, last](const ExternalPart& part) -> std::optional<std::vector<std::byte>> {
    std::string text = std::to_string(part.inputs.size());
    for (const Binding& binding : part.bindings) text += op_name(binding.value) == "relax.add" ? 'a' : 'n';
    programs.push_back(text);
    if (part.bindings.size() == 1) return std::nullopt;
    text += last;
    auto bytes = std::as_bytes(std::span(text.c_str(), text.size() + 1));
    return std::vector(bytes.begin(), bytes.end());
  };
  return {.name = "chains", .doc = "for a test", .takes = takes, .compile = compile, .function = "test_external"};
}

IRModule graph(const std::string& body, const std::string& result) {
  std::string text =
      "@I.ir_module\nclass Module:\n    @R.function\n"
      "    def main(x: R.Tensor((\"n\", 3), \"float32\"), y: R.Tensor((\"n\", 3), \"float32\")):\n"
      "        with R.dataflow():\n" +
      body + "            R.output(" + result + ")\n        return " + result + "\n";
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "graph.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return module;
}

}  // namespace

TEST_CASE("chains of a graph become kernels of another compiler", "[plugin]") {
  Library library;
  std::vector<std::string> programs;
  auto tables = std::make_shared<Tables>();
  tables->add(chains(programs));
  tables->add_library(library.path + ".so");
  CHECK_THROWS_WITH(tables->add(chains(programs)), Catch::Contains("compiler 'chains' exists already"));
  CHECK_THROWS_WITH(tables->add(ExternalCompiler{.name = "none"}), Catch::Contains("has no takes"));
  CompileSettings settings;
  settings.tables = tables;
  // c is used twice, so it ends a part; f is alone, and declined.
  IRModule module = graph(
      "            a = R.negative(x)\n            b = R.add(a, y)\n            c = R.negative(b)\n"
      "            d = R.exp(c)\n            e = R.add(c, d)\n            f = R.negative(e)\n"
      "            g = R.exp(f)\n            h = R.negative(g)\n",
      "h");
  CompiledModule compiled = compile(module, settings);
  CHECK(programs == std::vector<std::string>{"1n", "2an", "2nan"});
  auto names = programs_of(compiled.lowered());
  CHECK(names.contains("chains_c"));
  CHECK(names.contains("chains_f"));
  Tensor x = Tensor::empty({2, 3}, kFloat32), y = Tensor::empty({2, 3}, kFloat32);
  for (int i = 0; i < 6; ++i) x.set_double(i, i), y.set_double(i, 1);
  Tensor result = Session(compiled.load()).run({x, y})[0];
  Tensor expected = Session(compile(module).load()).run({x, y})[0];
  for (int i = 0; i < 6; ++i) CHECK(result.as_double(i) == Approx(expected.as_double(i)));
}

TEST_CASE("a run-time function that fails ends the run with an error that names the compiler", "[plugin]") {
  Library library;
  std::vector<std::string> programs;
  auto tables = std::make_shared<Tables>();
  tables->add(chains(programs, "f"));
  tables->add_library(library.path + ".so");
  CompileSettings settings;
  settings.tables = tables;
  IRModule module = graph("            a = R.negative(x)\n            b = R.add(a, y)\n", "b");
  Session session(compile(module, settings).load());
  Tensor x = Tensor::empty({1, 3}, kFloat32);
  CHECK_THROWS_WITH(session.run({x, x}), Catch::Contains("chains could not compute this kernel"));
}
