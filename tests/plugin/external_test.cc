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

// Computes values in order, each by an operator and its operands: 'n' 0 negates value 0, 'a' 0 2 adds two. The
// outputs' numbers follow. Fails at 'f'.
constexpr const char* kRuntime = R"(
#include <stdint.h>
#include <stdlib.h>
int32_t test_external(const void* program, const int64_t* dims, void* const* tensors) {
  const char* at = program;
  float* const* values_of = (float* const*)tensors;
  int inputs = *at++ - '0', count = inputs;
  int64_t size = dims[0] * dims[1];
  float* values[64];
  for (int i = 0; i < inputs; ++i) values[i] = values_of[i];
  for (; *at && *at != '!'; ++count) {
    if (*at == 'f') return 1;
    int is_add = *at++ == 'a', a = *at++ - '0', b = is_add ? *at++ - '0' : 0;
    values[count] = malloc(sizeof(float) * size);
    for (int64_t i = 0; i < size; ++i) values[count][i] = is_add ? values[a][i] + values[b][i] : -values[a][i];
  }
  for (int out = inputs; *at && *++at; ++out) {
    for (int64_t i = 0; i < size; ++i) values_of[out][i] = values[*at - '0'][i];
  }
  for (int i = inputs; i < count; ++i) free(values[i]);
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

// A compiler of negative and add, whose programs are kept in `programs`. It declines single operators.
ExternalCompiler sums(std::vector<std::string>& programs, const std::string& last = "") {
  auto compile = [&programs, last](const ExternalPart& part) -> std::variant<std::vector<std::byte>, std::string> {
    std::map<const NodeHeader*, char> numbers;
    auto number = [&](const Expr& value) {
      return numbers.try_emplace(value.get(), static_cast<char>('0' + numbers.size())).first->second;
    };
    for (const VarRef& input : part.inputs) number(input);
    std::string text(1, static_cast<char>('0' + part.inputs.size()));
    for (const auto& [op, match] : part.matches) {
      text += op == "add" ? 'a' : 'n';
      for (const Expr& operand : match.operands) text += number(operand);
      number(match.results[0]);
    }
    text += last + "!";
    for (const VarRef& output : part.outputs) text += number(output);
    programs.push_back(text);
    if (part.matches.size() == 1) return "one operator is not worth a call";
    auto bytes = std::as_bytes(std::span(text.c_str(), text.size() + 1));
    return std::vector(bytes.begin(), bytes.end());
  };
  return {.name = "sums",
          .doc = "for a test",
          .patterns = {{"negative"}, {"add"}},
          .compile = compile,
          .function = "test_external"};
}

IRModule module_of(const std::string& text) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "graph.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return module;
}

IRModule graph(const std::string& body, const std::string& result) {
  std::string text =
      "@I.ir_module\nclass Module:\n    @R.function\n"
      "    def main(x: R.Tensor((\"n\", 3), \"float32\"), y: R.Tensor((\"n\", 3), \"float32\")):\n"
      "        with R.dataflow():\n" +
      body + "            R.output(" + result + ")\n        return " + result + "\n";
  return module_of(text);
}

// Compiles with the backend and without, and compares the results.
CompiledModule compiled_alike(const IRModule& module, const std::shared_ptr<Tables>& tables) {
  CompileSettings settings;
  settings.tables = tables;
  CompiledModule compiled = compile(module, settings);
  Tensor x = Tensor::empty({2, 3}, kFloat32), y = Tensor::empty({2, 3}, kFloat32);
  for (int i = 0; i < 6; ++i) x.set_double(i, i), y.set_double(i, 1);
  std::vector<Tensor> results = Session(compiled.load()).run({x, y});
  std::vector<Tensor> expected = Session(compile(module).load()).run({x, y});
  REQUIRE(results.size() == expected.size());
  for (size_t k = 0; k < results.size(); ++k) {
    for (int i = 0; i < 6; ++i) CHECK(results[k].as_double(i) == Approx(expected[k].as_double(i)));
  }
  return compiled;
}

struct Backend {
  Library library;
  std::vector<std::string> programs;
  std::shared_ptr<Tables> tables = std::make_shared<Tables>();
  explicit Backend(const std::string& last = "") {
    tables->add(sums(programs, last));
    tables->add_library(library.path + ".so");
  }
};

}  // namespace

TEST_CASE("connected operators become a kernel of another compiler", "[plugin]") {
  Backend backend;
  CHECK_THROWS_WITH(backend.tables->add(sums(backend.programs)), Catch::Contains("compiler 'sums' exists already"));
  CHECK_THROWS_WITH(backend.tables->add(ExternalCompiler{.name = "none"}), Catch::Contains("has no patterns"));
  // The path from c over d to e leads out of the group of c and in again, so e begins another one. h is alone.
  IRModule module = graph(
      "            a = R.negative(x)\n            b = R.add(a, y)\n            c = R.negative(b)\n"
      "            d = R.exp(c)\n            e = R.add(c, d)\n            f = R.negative(e)\n"
      "            g = R.exp(f)\n            h = R.negative(g)\n",
      "h");
  auto names = programs_of(compiled_alike(module, backend.tables).lowered());
  CHECK(backend.programs == std::vector<std::string>{"2n0a21n3!4", "2a01n2!3", "1n0!1"});
  CHECK(names.contains("sums_c"));
  CHECK(!names.contains("sums_h"));
}

TEST_CASE("a group of another compiler has several results, and what uses them comes after it", "[plugin]") {
  Backend backend;
  // `between` uses a result of the group and stands before its last operator; `early` is an operand that comes late.
  IRModule module = graph(
      "            a = R.negative(x)\n            between = R.exp(a)\n            early = R.exp(y)\n"
      "            b = R.add(a, early)\n            c = R.add(between, y)\n            d = R.add(b, b)\n"
      "            e = (between, b, c, d)\n",
      "e");
  compiled_alike(module, backend.tables);
  CHECK(backend.programs == std::vector<std::string>{"2n0a21a33!234", "2a01!2"});
}

TEST_CASE("a group has as many inputs as it takes", "[plugin]") {
  Backend backend;
  std::string body, sum = "x";
  for (int i = 0; i < 12; ++i)
    body += fmt::format("            e{} = R.exp(R.multiply(y, R.const({}.0, \"float32\")))\n", i, i);
  for (int i = 0; i < 12; ++i) {
    body += fmt::format("            s{} = R.add({}, e{})\n", i, sum, i);
    sum = fmt::format("s{}", i);
  }
  compiled_alike(graph(body, "s11"), backend.tables);
  REQUIRE(backend.programs.size() == 1);
  CHECK(backend.programs[0].starts_with("=a01"));
}

TEST_CASE("patterns of another compiler have checks, and share what is cheap", "[plugin]") {
  std::vector<std::string> taken, claims;
  bool takes_biases = false;
  auto compile_part = [&](const ExternalPart& part) -> std::variant<std::vector<std::byte>, std::string> {
    for (const auto& [name, match] : part.matches) {
      taken.push_back(name + " " + std::to_string(match.operands.size()));
      CHECK(match.values.at("p").is<Var>());
      CHECK(match.values.contains("b") == (match.operands.size() == 3));
    }
    if (takes_biases && part.matches[0].match.operands.size() == 3) return std::vector<std::byte>(1);
    return "this test computes nothing";
  };
  auto has_16_columns = [](const PatternMatch& match) -> std::optional<std::string> {
    if (is_int(known_shape(match.values.at("w").type())->back(), 16)) return std::nullopt;
    return "w has not 16 columns";
  };
  auto tables = std::make_shared<Tables>();
  tables->add(ExternalCompiler{.name = "products",
                               .doc = "for a test",
                               .patterns = {{R"(
@S.pattern(where=lambda k: k % 3 == 0)
def product(x: R.Tensor(("n", "k"), "float32"), w: S.constant, b: S.constant):
    p = R.matmul(R.negative(x), w)
    return R.nn.relu(p + b | p)
)",
                                             has_16_columns}},
                               .compile = compile_part,
                               .function = "none"});
  CompileSettings settings;
  settings.tables = tables;
  settings.claimed = [&](const Claim& claim) { claims.push_back(claim.by + ": " + claim.refused); };
  auto relu = [](const std::string& name, const std::string& operand, int rows, int columns, const std::string& bias) {
    return fmt::format("            p{0} = R.matmul({1}, R.ones(R.shape([{2}, {3}]), \"float32\"))\n", name, operand,
                       rows, columns) +
           fmt::format("            r{0} = R.nn.relu(p{0}{1})\n", name, bias);
  };
  // The negative is used by two products, and computed in both.
  IRModule module = graph("            m = R.negative(x)\n" + relu("1", "m", 3, 16, " + R.const(1.0, \"float32\")") +
                              relu("2", "m", 3, 16, "") + relu("3", "m", 3, 4, "") +
                              relu("4", "R.negative(r3)", 4, 16, "") + "            e = (r1, r2, r4)\n",
                          "e");
  compile(module, settings);
  CHECK(taken == std::vector<std::string>{"product 3", "product 2"});
  auto count = [&](const std::string& text) { return std::ranges::count(claims, "backend 'products': " + text); };
  CHECK(count("product: w has not 16 columns") == 1);
  CHECK(count("product: its condition (where=) does not hold for k = 4") == 1);
  CHECK(count("this test computes nothing") == 5);
  // What is left to relaxc still has the value that it shared with what is not.
  takes_biases = true;
  CHECK(programs_of(compile(module, settings).lowered()).contains("products_r1"));
}

TEST_CASE("a run-time function that fails ends the run with an error that names the compiler", "[plugin]") {
  Backend backend("f");
  CompileSettings settings;
  settings.tables = backend.tables;
  IRModule module = graph("            a = R.negative(x)\n            b = R.add(a, y)\n", "b");
  Session session(compile(module, settings).load());
  Tensor x = Tensor::empty({1, 3}, kFloat32);
  CHECK_THROWS_WITH(session.run({x, x}),
                    Catch::Contains("sums could not compute this kernel: its function returned 1"));
}

TEST_CASE("what a backend leaves of a function that is for it is noted", "[plugin]") {
  CompileSettings settings;
  auto tables = std::make_shared<Tables>();
  tables->add(
      ExternalCompiler{.name = "mine",
                       .patterns = {{"nn.relu", [](const PatternMatch&) { return std::optional("it is cold"); }}},
                       .compile = [](const ExternalPart&) { return std::vector<std::byte>(1); },
                       .function = "none"});
  settings.tables = tables;
  std::string notes;
  settings.report = [&](const std::string& line) { notes += line; };
  auto notes_of = [&](const std::string& op, const std::string& attr) {
    const std::string type = "R.Tensor((\"n\", 4), \"float32\")", head = "(x: " + type + ") -> " + type + ":\n";
    notes.clear();
    compile(module_of("@I.ir_module\nclass Module:\n    @R.function\n    def part" + head + attr + "        y = " + op +
                      "(x)\n        return y\n    @R.function\n    def main" + head +
                      "        cls = Module\n        y = cls.part(x)\n        return y\n"),
            settings);
    return notes;
  };
  const std::string attr = "        R.func_attr({\"Codegen\": \"mine\"})\n",
                    left = "note: backend 'mine' does not take ";
  CHECK_THAT(notes_of("R.nn.relu", attr),
             Catch::Contains(left + "nn.relu of its function (Codegen=\"mine\"), which is compiled as that of other "
                                    "functions is: nn.relu: it is cold"));
  CHECK_THAT(notes_of("R.exp", attr), Catch::Contains(left + "exp") && Catch::Contains("no pattern that ends in exp"));
  CHECK_THAT(notes_of("R.exp", ""), !Catch::Contains(left));
}

TEST_CASE("a compiler that breaks its promises is named", "[plugin]") {
  auto error_of = [](ExternalCompiler compiler) -> std::string {
    try {
      CompileSettings settings;
      auto tables = std::make_shared<Tables>();
      compiler.name = "broken", compiler.function = "none";
      if (!compiler.compile) compiler.compile = [](const ExternalPart&) { return std::vector<std::byte>(1); };
      tables->add(std::move(compiler));
      settings.tables = tables;
      compile(graph("            a = R.negative(x)\n            b = R.add(a, y)\n", "b"), settings);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  auto nothing = [](const ExternalPart&) { return std::vector<std::byte>(); };
  auto throws = [](const ExternalPart&) -> std::vector<std::byte> { throw std::runtime_error("out of luck"); };
  auto throws_number = [](const ExternalPart&) -> std::vector<std::byte> { throw 7; };
  auto check_throws = [](const PatternMatch&) -> std::optional<std::string> { throw std::runtime_error("bad check"); };
  CHECK_THAT(error_of({.patterns = {{"add"}}, .compile = nothing}),
             Catch::Contains("backend 'broken' compiled the part of 'b' to no bytes"));
  CHECK_THAT(error_of({.patterns = {{"add"}}, .compile = throws}),
             Catch::Contains("backend 'broken' failed: out of luck"));
  CHECK_THAT(error_of({.patterns = {{"add"}}, .compile = throws_number}),
             Catch::Contains("backend 'broken' failed: it threw"));
  CHECK_THAT(error_of({.patterns = {{"add", check_throws}}}), Catch::Contains("backend 'broken' failed: bad check"));
  CHECK_THAT(error_of({.patterns = {{"addd"}}}),
             Catch::Contains("the patterns of backend 'broken': 'addd' is neither"));
  CHECK_THAT(error_of({.patterns = {{"@S.pattern\ndef p(x):\n    return R.ad(x)\n"}}}),
             Catch::Contains("the patterns of backend 'broken'") && Catch::Contains("there is no operator 'R.ad'"));
  CHECK_THAT(error_of({.patterns = {{"@S.pattern"}}}), Catch::Contains("backend 'broken'"));
  CHECK_THAT(
      error_of({.patterns = {{"@S.implements(\"add\")\n@S.extern\ndef f(x: T.Buffer((3,), \"float32\")): ...\n"}}}),
      Catch::Contains("'f' is not a pattern alone"));
}
