// The ONNX importer: symbolic shapes, scoping, functions, and one report of everything unsupported.
#include "frontend/onnx/import.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "codegen/compile.h"
#include "ir/visit.h"
#include "ops/ops.h"
#include "tests/catch.h"

namespace relaxc {

namespace {

const OpTable& ops() {
  static const OpTable table = make_op_table();
  return table;
}
std::string model(const std::string& name) {
  return std::string(RELAXC_SOURCE_DIR) + "/tests/frontend/models/" + name + ".onnx";
}
std::string hostile(const std::string& name) {
  return std::string(RELAXC_SOURCE_DIR) + "/tests/hostile/models/" + name;
}
// Returns the errors of the import and of the first pass, which looks at constant indices.
std::vector<std::string> errors_of(const std::string& path, ErrorKind kind) {
  std::vector<std::string> messages;
  CompileSettings first_pass;
  first_pass.passes = "check_dims";
  try {
    run_pipeline(import_onnx(path, ops()), first_pass);
  } catch (const CompileError& error) {
    CHECK(error.kind() == kind);
    for (const Diagnostic& diagnostic : error.diagnostics()) messages.push_back(to_string(diagnostic));
  }
  return messages;
}
bool any_contains(const std::vector<std::string>& messages, const std::string& text) {
  return std::any_of(messages.begin(), messages.end(),
                     [&](const std::string& message) { return message.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("nodes of a function are named after its call", "[frontend]") {
  FunctionRef main = import_onnx(model("function_attribute"), ops()).graph_function("main");
  bool named = false;
  walk(main->body,
       [&](const Ref<Call>& call) { named = named || to_string(call.span()).find("the_leak1/") != std::string::npos; });
  CHECK(named);
}

TEST_CASE("one run reports every unsupported node", "[frontend]") {
  std::vector<std::string> messages = errors_of(hostile("unknown_op.onnx"), ErrorKind::kUnsupported);
  CHECK(messages.size() == 3);
  CHECK(any_contains(messages, "node 'mystery_one' (Frobnicate)"));
  CHECK(any_contains(messages, "node 'odd_relu' (Relu)"));
  CHECK(any_contains(messages, "attribute 'flavour'"));
  CHECK(any_contains(messages, "node 'mystery_two' (com.example.Quux)"));
}

TEST_CASE("hostile models are refused with a message", "[frontend]") {
  std::ifstream cases(std::string(RELAXC_SOURCE_DIR) + "/tests/hostile/cases.txt");
  REQUIRE(cases);
  int seen = 0;
  for (std::string line; std::getline(cases, line);) {
    size_t first = line.find(" | "), second = line.find(" |", first + 1);
    if (line.starts_with("#") || first == std::string::npos || second == std::string::npos) continue;
    std::string file = line.substr(0, first), code = line.substr(first + 3, second - first - 3);
    if (code != "1" || !file.ends_with(".onnx")) continue;
    std::string text = second + 3 < line.size() ? line.substr(second + 3) : "";
    INFO(file);
    CHECK(any_contains(errors_of(hostile(file), ErrorKind::kInvalid), text));
    ++seen;
  }
  CHECK(seen > 50);
}

TEST_CASE("every prefix and every flipped byte of a model is an error or a model", "[frontend]") {
  std::ifstream file(model("shape_subgraph"), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  auto import = [](const std::string& text) {
    try {
      import_onnx_bytes(std::as_bytes(std::span(text)), "fuzzed", ops());
    } catch (const CompileError&) {
    }
  };
  for (size_t length = 0; length < bytes.size(); ++length) import(bytes.substr(0, length));
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit : {0, 3, 7}) {
      std::string flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      import(flipped);
    }
  }
  SUCCEED();
}

TEST_CASE("ONNX's own test models import", "[frontend]") {
  const std::string root = "/usr/share/libonnx-testdata/data/";
  if (!std::filesystem::exists(root)) {
    WARN("libonnx-testdata is not installed: apt-get install libonnx-testdata");
    return;
  }
  // So many models were imported when this was written; the counts may only grow.
  const std::map<std::string, int> least = {
      {"node", 843}, {"simple", 15}, {"pytorch-converted", 82}, {"pytorch-operator", 35}};
  for (const auto& [suite, wanted] : least) {
    int imported = 0;
    for (const auto& entry : std::filesystem::directory_iterator(root + suite)) {
      std::string path = entry.path().string() + "/model.onnx";
      if (!std::filesystem::exists(path)) continue;
      INFO(path);
      try {
        import_onnx(path, ops());
        ++imported;
      } catch (const CompileError& error) {
        CHECK(error.kind() == ErrorKind::kUnsupported);  // none of them is invalid
        for (const Diagnostic& diagnostic : error.diagnostics()) {
          INFO(to_string(diagnostic));
          REQUIRE(diagnostic.span);
          bool names_the_place = !diagnostic.span.origin->op_type.empty() ||
                                 diagnostic.span.origin->file.find("': ") != std::string::npos ||
                                 diagnostic.span.origin->file.ends_with("'");
          CHECK(names_the_place);
        }
      }
    }
    INFO(suite);
    CHECK(imported >= wanted);
  }
}

// The outputs are the differences between normalizations and what ONNX defines them to be.
TEST_CASE("scale and bias of a normalization broadcast to the data", "[frontend]") {
  Program program = compile_file(model("norm_scales")).load();
  Tensor x = Tensor::empty({2, 3, 4}, kFloat32);
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = static_cast<float>((i * 7) % 11) - 4;
  std::vector<Tensor> differences = Session(program, {.threads = 1}).run({x});
  REQUIRE(differences.size() == 14);
  for (size_t k = 0; k < differences.size(); ++k) {
    INFO(program.outputs()[k].name);
    REQUIRE(differences[k].shape() == x.shape());
    for (int64_t i = 0; i < x.size(); ++i) REQUIRE(std::abs(differences[k].data<float>()[i]) < 1e-5f);
  }
}

}  // namespace relaxc
