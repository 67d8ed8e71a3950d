// The ONNX importer: symbolic shapes, scoping, functions, and one report of everything unsupported.
#include "frontend/onnx/import.h"

#include <onnx/onnx_pb.h>

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
  CHECK(any_contains(messages, "node 'mystery_two' (com.example::Quux)"));
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

TEST_CASE("files of other formats are named with what to do", "[frontend]") {
  auto error_of = [&](std::string_view text) -> std::string {
    try {
      import_onnx_bytes(std::as_bytes(std::span(text)), "model.onnx", ops());
    } catch (const CompileError& error) {
      return error.what();
    }
    return "no error";
  };
  using namespace std::string_view_literals;
  for (auto [text, what] : {std::pair("version https://git-lfs.github.com/spec/v1\noid sha256:12\n"sv, "git lfs pull"),
                            {"PK\x03\x04\x00\x00\x08\x08 archive/data.pkl"sv, "torch.onnx.export"},
                            {"\x80\x02}q\x00X\x05\x00\x00\x00"sv, "a Python pickle"},
                            {"\x80\x04\x95\x10\x00\x00\x00"sv, "skl2onnx"},
                            {"\x89HDF\r\n\x1a\n\x00\x00\x00\x00"sv, "an HDF5 file"},
                            {"\x1c\x00\x00\x00TFL3\x14\x00 "sv, "TensorFlow Lite"},
                            {"\x1f\x8b\x08\x00"sv, "gzip"},
                            {"<!DOCTYPE html><html></html>"sv, "an HTML page"},
                            {"<html></html>"sv, "an HTML page"},
                            {"a model"sv, "text; the name of a module as text ends in .py"},
                            {"\x93NUMPY\x01\x00"sv, "an array of NumPy"},
                            {"\x10\x00\x00\x00\x00\x00\x00\x00{\"w\":{\"dtype\""sv, "weights without their graph"},
                            {"GGUF\x03\x00\x00\x00"sv, "a GGUF file"},
                            {"GIF89a\x01\x00"sv, "an image"},
                            {"RIFF\x36\x00\x00\x00WEBPVP8 "sv, "an image"},
                            {"BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00"sv, "an image"},
                            {"\x28\xb5\x2f\xfd\x04\x00"sv, "compressed"},
                            {"\x89PNG\r\n\x1a\n"sv, "an image"},
                            {"\x18\x00\x00\x00ORTM"sv, "ONNX Runtime's own form of a model"}}) {
    INFO(what);
    CHECK(error_of(text).find("not an ONNX model: it is ") != std::string::npos);
    CHECK(error_of(text).find(what) != std::string::npos);
  }
  CHECK(error_of("\x08\x07\x12"sv).find("not an ONNX model, or a truncated one") != std::string::npos);
}

TEST_CASE("graphs are nested as deep as the limit allows", "[frontend]") {
  auto nested = [](int depth) {
    onnx::GraphProto graph;
    auto* last = graph.add_node();
    last->set_op_type("Relu"), last->add_input("x"), last->add_output("y");
    graph.add_output()->set_name("y");
    for (int i = 0; i < depth; ++i) {
      onnx::GraphProto outer;
      auto* node = outer.add_node();
      node->set_op_type("If"), node->add_input("c"), node->add_output("y");
      for (const char* name : {"then_branch", "else_branch"}) {
        auto* branch = node->add_attribute();
        branch->set_name(name), branch->set_type(onnx::AttributeProto::GRAPH);
        if (name[0] == 't') *branch->mutable_g() = std::move(graph);
        if (name[0] == 't') continue;
        auto* relu = branch->mutable_g()->add_node();
        relu->set_op_type("Relu"), relu->add_input("x"), relu->add_output("e");
        branch->mutable_g()->add_output()->set_name("e");
      }
      outer.add_output()->set_name("y");
      graph = std::move(outer);
    }
    onnx::ModelProto model;
    model.set_ir_version(8), model.add_opset_import()->set_version(17);
    for (auto [name, type] : {std::pair("c", 9), {"x", 1}}) {
      auto* input = graph.add_input();
      input->set_name(name);
      input->mutable_type()->mutable_tensor_type()->set_elem_type(type);
      auto* shape = input->mutable_type()->mutable_tensor_type()->mutable_shape();
      if (type == 1) shape->add_dim()->set_dim_value(2);
    }
    *model.mutable_graph() = std::move(graph);
    return model.SerializeAsString();
  };
  for (int depth : {41, 60}) {
    const std::string bytes = nested(depth);
    CHECK_NOTHROW(import_onnx_bytes(std::as_bytes(std::span(bytes)), "deep.onnx", ops()));
  }
  for (int depth : {103, 200}) {
    const std::string bytes = nested(depth);
    CHECK_THROWS_AS(import_onnx_bytes(std::as_bytes(std::span(bytes)), "deep.onnx", ops()), CompileError);
  }
}

}  // namespace relaxc
