// The exported models (./dev models): one compile each, three sizes of data, torch's answers.
//   RELAXC_MODELS=DIR  where they are, instead of build/models
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "codegen/compile.h"
#include "frontend/onnx/test_data.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tests/report.h"

#include "tests/catch.h"

using namespace relaxc;
namespace fs = std::filesystem;

namespace {

constexpr const char* kNames[] = {"resnet18", "mobilenet_v2", "bert", "bert_opset13"};

fs::path models_folder() {
  const char* dir = std::getenv("RELAXC_MODELS");
  return dir && *dir ? dir : RELAXC_BINARY_DIR "/models";
}

struct DataSet {
  std::vector<Tensor> inputs, outputs;
};

std::vector<Tensor> read_all(const fs::path& dir, const std::string& prefix) {
  std::vector<Tensor> result;
  for (int i = 0;; ++i) {
    fs::path path = dir / fmt::format("{}_{}.pb", prefix, i);
    if (!fs::exists(path)) return result;
    result.push_back(read_tensor_pb(path.string()));
  }
}

std::vector<DataSet> read_data_sets(const fs::path& model) {
  std::vector<DataSet> result;
  for (int i = 0; fs::exists(model / fmt::format("test_data_set_{}", i)); ++i) {
    fs::path dir = model / fmt::format("test_data_set_{}", i);
    result.push_back({read_all(dir, "input"), read_all(dir, "output")});
  }
  return result;
}

// Largest difference over the largest magnitude of the expected tensor; infinity for NaN or another shape.
double relative_error(const Tensor& actual, const Tensor& expected) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) return INFINITY;
  double difference = 0, magnitude = 0;
  for (int64_t i = 0; i < actual.size(); ++i) {
    double off = std::abs(actual.as_double(i) - expected.as_double(i));
    if (!(off >= 0)) return INFINITY;
    difference = std::max(difference, off);
    magnitude = std::max(magnitude, std::abs(expected.as_double(i)));
  }
  return magnitude > 0 ? difference / magnitude : difference;
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_contents);
}

void check_model(const std::string& name) {
  INFO(name);
  fs::path model = models_folder() / name;
  std::vector<DataSet> data = read_data_sets(model);
  REQUIRE(data.size() >= 3);
  CHECK(data[0].inputs[0].shape() != data[1].inputs[0].shape());
  CHECK(data[1].inputs[0].shape() != data[2].inputs[0].shape());

  auto start = std::chrono::steady_clock::now();
  CompiledModule compiled = compile_file((model / "model.onnx").string());
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Program program = compiled.load();
  Session one(program, {.threads = 1}), two(program, {.threads = 2});
  fs::path artifact = fs::path(RELAXC_BINARY_DIR) / "reports" / (name + ".so");
  fs::create_directories(artifact.parent_path());
  compiled.write(artifact.string());
  Session loaded(Program::load(artifact.string()), {.threads = 2});

  double worst = 0;
  std::vector<std::vector<Tensor>> first;
  for (const DataSet& set : data) {
    std::vector<Tensor> results = one.run(set.inputs);
    INFO("first input " << describe(set.inputs[0]));
    REQUIRE(results.size() == set.outputs.size());
    for (size_t i = 0; i < results.size(); ++i) {
      INFO("output " << i << ": " << describe(results[i]) << ", expected " << describe(set.outputs[i]));
      double error = relative_error(results[i], set.outputs[i]);
      CHECK(error <= 1e-4);
      worst = std::max(worst, error);
    }
    CHECK(same_bits(results, two.run(set.inputs)));     // any number of threads
    CHECK(same_bits(results, loaded.run(set.inputs)));  // JIT and artifact
    first.push_back(std::move(results));
  }
  // From run to run, with other sizes between.
  for (size_t i = 0; i < data.size(); ++i) CHECK(same_bits(first[i], two.run(data[i].inputs)));
  fs::remove(artifact);
  test::write_report("model-" + name,
                     fmt::format("model {:14} worst error against torch {:.1e} of the largest magnitude, "
                                 "over {} sizes from one compile ({:.1f} s)\n",
                                 name, worst, data.size(), seconds));
}

}  // namespace

TEST_CASE("exported models agree with torch at three sizes from one compile", "[models]") {
  if (!fs::exists(models_folder())) {
    test::skip(fmt::format("no folder {}; run ./dev models", models_folder().string()));
    return;
  }
  for (const char* name : kNames) check_model(name);
}

TEST_CASE("an own rule for residual blocks changes these kernels of ResNet-18 alone", "[models]") {
  const fs::path model = models_folder() / "resnet18";
  if (!fs::exists(model)) {
    test::skip(fmt::format("no folder {}; run ./dev models", model.string()));
    return;
  }
  auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {RELAXC_TOOL});
    words.insert(words.end(), {"--kernels", RELAXC_SOURCE_DIR "/examples/kernels/residual.py"});
    return test::run_program(words, 300);
  };
  const std::string file = (model / "model.onnx").string();
  test::Outcome right = run(
      {"run", file, "--test-data", (model / "test_data_set_0").string(), "--atol", "1e-4", "--winograd-error", "0"});
  INFO(right.err);
  CHECK(right.exit_code == 0);
  CHECK(test::contains(right.err, "schedule rule 'tile_residual' is applied to 'fused_conv2d_add_add_relu'"));
  std::string compared = run({"bench", file, "--dim", "batch=1", "--runs", "3", "--warmup", "1"}).out;
  INFO(compared);
  auto changed = test::matches(compared, " {2}(/[^:\n]*): ([^\n]*)\n");
  CHECK(changed.size() >= 3);
  for (const auto& row : changed) CHECK(!test::matches(row[2], "^fused_\\w*conv2d_add_add_relu\\w*$").empty());
  auto count = test::matches(compared, "(\\d+) kernels with the same code\n");
  REQUIRE(count.size() == 1);
  CHECK(std::stoi(count[0][1]) > 10);
}
