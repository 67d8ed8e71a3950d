// Operators that consist of others, against results that NumPy computes by the specification's formulas: composed/ has
// a model with many cases for each group, which make_composed.py writes.
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "codegen/compile.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/model_file.h"
#include "tools/compare.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

namespace fs = std::filesystem;

// A model, and the tensors that its initializers "input NAME" and "expected NAME" were.
struct Cases {
  explicit Cases(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    REQUIRE(model.ParseFromIstream(&file));
    auto& initializers = *model.mutable_graph()->mutable_initializer();
    for (const onnx::TensorProto& tensor : initializers) {
      for (auto [kind, to] : {std::pair("input ", &inputs), std::pair("expected ", &expected)}) {
        if (tensor.name().starts_with(kind))
          to->emplace(tensor.name().substr(std::string_view(kind).size()), onnx_import::decode_tensor(tensor, {}));
      }
    }
    auto is_data = [](const onnx::TensorProto& tensor) { return tensor.name().find(' ') != std::string::npos; };
    initializers.erase(std::remove_if(initializers.begin(), initializers.end(), is_data), initializers.end());
  }
  onnx::ModelProto model;
  std::map<std::string, Tensor> inputs, expected;
};

// The tolerance of ONNX's backend tests, and what rounding of a sum of numbers around 1 adds.
std::string difference(const std::string& name, const Tensor& actual, const Tensor& expected) {
  const bool is_half = expected.dtype() == DType::float_(16);
  return tools::compare(name, actual, expected, is_half ? 2e-3 : 1e-3, is_half ? 2e-3 : 1e-5);
}

}  // namespace

TEST_CASE("operators that consist of others give what their formulas give", "[frontend]") {
  size_t groups = 0;
  for (const auto& entry : fs::directory_iterator(RELAXC_SOURCE_DIR "/tests/frontend/composed")) {
    Cases cases(entry.path());
    INFO(entry.path().filename().string());
    std::string bytes = cases.model.SerializeAsString();
    IRModule module = import_onnx_bytes(std::as_bytes(std::span(bytes)), entry.path().filename(), op_table());
    Session session(compile(module).load(), {.threads = 1});
    std::vector<Tensor> inputs;
    for (const auto& info : session.program().inputs()) inputs.push_back(cases.inputs.at(info.name));
    std::vector<Tensor> outputs = session.run(inputs);
    REQUIRE(outputs.size() == cases.expected.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = session.program().outputs()[i].name;
      CHECK(difference(name, outputs[i], cases.expected.at(name)) == "");
    }
    ++groups;
  }
  CHECK(groups >= 15);
}
