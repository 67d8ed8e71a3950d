// examples/onednn/: parts of networks that oneDNN computes have the results of relaxc's kernels.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include <fmt/format.h>

#include "passes/tables.h"
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tools/compare.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;

namespace {

const std::string kDigits = RELAXC_SOURCE_DIR "/examples/digits/";

Outcome run_tool(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RELAXC_TOOL);
  return test::run_program(arguments, 300);
}

struct ModelFile {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("relaxc_onednn_{}.onnx", getpid())).string();
  explicit ModelFile(test::OnnxModel& model) {
    std::ofstream(path, std::ios::binary) << model.proto().SerializeAsString();
  }
  ~ModelFile() { std::filesystem::remove(path); }
};

}  // namespace

#ifdef RELAXC_ONEDNN_PLUGIN
namespace {

const std::string kOneDnn = RELAXC_ONEDNN_PLUGIN;

// Runs the model in both ways and compares the results. Returns the profile of the run with oneDNN.
std::string profile_of_equal_run(const std::string& model, const std::vector<std::string>& dims,
                                 double tolerance = 1e-5) {
  std::string folder = fmt::format("{}/relaxc_onednn_{}", std::filesystem::temp_directory_path().string(), getpid());
  std::string profile;
  for (const char* kind : {"/expected", "/external"}) {
    std::vector<std::string> run = {"run", model, "--output-dir", folder + kind, "--profile"};
    run.insert(run.end(), dims.begin(), dims.end());
    if (std::string(kind) == "/external") run.insert(run.end(), {"--backend", kOneDnn});
    Outcome outcome = run_tool(run);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    profile = outcome.out;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/expected")) {
    std::string name = entry.path().filename();
    Tensor result = read_npy(folder + "/external/" + name), expected = read_npy(entry.path());
    CHECK(tools::compare(name, result, expected, tolerance, tolerance) == "");
  }
  std::filesystem::remove_all(folder);
  return profile;
}

// Returns whether relaxc itself computes an operator of this name, alone or in a fused kernel.
bool leaves(const std::string& profile, const std::string& op) {
  return std::regex_search(profile, std::regex("%  (?!onednn_)\\w*" + op));
}

Tensor small_floats(const std::vector<int64_t>& shape) {
  Tensor result = Tensor::empty(shape, kFloat32);
  for (int64_t i = 0; i < result.size(); ++i) result.set_double(i, static_cast<double>(i * 7 % 19 - 9) / 16);
  return result;
}

}  // namespace

TEST_CASE("oneDNN computes the digits network, from a model and from an artifact", "[onednn]") {
  Outcome run = run_tool({"run", kDigits + "digits.onnx", "--backend", kOneDnn, "--test-data",
                          kDigits + "test_data_set_0", "--atol", "1e-5", "--profile"});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.out, "onednn_"));
  std::string artifact =
      (std::filesystem::temp_directory_path() / fmt::format("relaxc_onednn_{}.so", getpid())).string();
  REQUIRE(run_tool({"compile", kDigits + "digits.onnx", "--backend", kOneDnn, "-o", artifact}).exit_code == 0);
  CHECK(run_tool({"run", artifact, "--test-data", kDigits + "test_data_set_0", "--atol", "1e-5"}).exit_code == 0);
  std::filesystem::remove(artifact);
  CHECK(contains(run_tool({"opt", "--list-passes", "--backend", kOneDnn}).out, "claim_onednn"));
}

TEST_CASE("convolutions with groups, strides and sums run in oneDNN", "[onednn]") {
  test::OnnxModel model;
  model.input("x", kFloat32, "n,4,h,9").output("y");
  model.constant("w", small_floats({6, 2, 3, 3}))
      .constant("b", small_floats({6}))
      .constant("v", small_floats({6, 4, 3, 3}));
  onnx::NodeProto& grouped = model.node("Conv", "x w b", "c");
  test::set_int(grouped, "group", 2), test::set_ints(grouped, "pads", {1, 0, 2, 1});
  test::set_ints(grouped, "strides", {2, 1}), test::set_ints(grouped, "dilations", {1, 2});
  onnx::NodeProto& plain = model.node("Conv", "x v", "d");
  test::set_ints(plain, "pads", {1, 0, 2, 1}), test::set_ints(plain, "strides", {2, 1});
  test::set_ints(plain, "dilations", {1, 2});
  model.node("Add", "c d", "e"), model.node("Relu", "e", "f");
  onnx::NodeProto& pool = model.node("MaxPool", "f", "y");
  test::set_ints(pool, "kernel_shape", {2, 2}), test::set_ints(pool, "strides", {2, 1});
  ModelFile file(model);
  for (const char* height : {"h=1", "h=7", "h=12"})  // the pool of the first one has a window that is larger
    CHECK(contains(profile_of_equal_run(file.path, {"--dim", "n=2", "--dim", height}), "onednn_"));
}

TEST_CASE("products with a bias and softmax run in oneDNN for any number of rows", "[onednn]") {
  test::OnnxModel model;
  model.input("x", kFloat32, "m,20").output("y");
  model.constant("w", small_floats({20, 7})).constant("b", small_floats({7}));
  model.node("MatMul", "x w", "p"), model.node("Add", "p b", "q"), model.node("Relu", "q", "r");
  model.node("Softmax", "r", "y");
  ModelFile file(model);
  for (const char* rows : {"m=1", "m=33"}) CHECK(contains(profile_of_equal_run(file.path, {"--dim", rows}), "onednn_"));
}

namespace {

// Without it the plug-in takes nothing in int8, and the results are relaxc's.
bool has_vnni() {
  std::ifstream file("/proc/cpuinfo");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  return contains(text, "avx512_vnni") || contains(text, "avx_vnni");
}

Tensor integers(DType dtype, const std::vector<int64_t>& shape, int64_t low, int64_t count) {
  Tensor result = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < result.size(); ++i) result.set_int(i, low + i * 37 % count);
  return result;
}
Tensor scalar(DType dtype, double value) {
  Tensor result = Tensor::empty({}, dtype);
  result.set_double(0, value);
  return result;
}
Tensor scales(int64_t count) {
  Tensor result = Tensor::empty({count}, kFloat32);
  for (int64_t i = 0; i < count; ++i) result.set_double(i, 0.01 + 0.003 * static_cast<double>(i));
  return result;
}
const DType kInt8 = DType::int_(8), kUInt8 = DType::uint(8);

// Quantizes the input x of the model to `q`, with scale x_scale and zero point x_zero.
void quantize_input(test::OnnxModel& model, DType dtype, const std::string& dims, int64_t zero) {
  model.input("x", kFloat32, dims);
  model.constant("x_scale", scalar(kFloat32, 0.0078125)).constant("x_zero", scalar(dtype, static_cast<double>(zero)));
  model.node("QuantizeLinear", "x x_scale x_zero", "q");
}

}  // namespace

TEST_CASE("quantized convolutions run in oneDNN and give the same integers", "[onednn]") {
  for (DType dtype : {kInt8, kUInt8}) {
    for (bool has_bias : {false, true}) {
      test::OnnxModel model;
      quantize_input(model, dtype, "n,4,h,9", dtype == kInt8 ? -3 : 119);
      model.constant("w", integers(kInt8, {6, 2, 3, 3}, -127, 255)).constant("w_scale", scales(6));
      model.constant("w_zero", integers(kInt8, {6}, 0, 1)).constant("b", integers(kInt32, {6}, -900, 2000));
      // Halves are common with these scales, and the zero point is odd.
      model.constant("y_scale", scalar(kFloat32, 0.125)).constant("y_zero", scalar(dtype, dtype == kInt8 ? 7 : 101));
      onnx::NodeProto& conv = model.node(
          "QLinearConv", std::string("q x_scale x_zero w w_scale w_zero y_scale y_zero") + (has_bias ? " b" : ""), "c");
      test::set_int(conv, "group", 2), test::set_ints(conv, "pads", {1, 0, 2, 1});
      test::set_ints(conv, "strides", {2, 1}), test::set_ints(conv, "dilations", {1, 2});
      onnx::NodeProto& pool = model.node("MaxPool", "c", "y");
      test::set_ints(pool, "kernel_shape", {2, 2});
      model.output("y", dtype);
      ModelFile file(model);
      std::string profile = profile_of_equal_run(file.path, {"--dim", "n=2", "--dim", "h=12"}, 0);
      CHECK(contains(profile, "onednn_") >= has_vnni());
      CHECK(leaves(profile, "conv2d") == !has_vnni());
      CHECK(!leaves(profile, "max_pool2d"));
    }
  }
}

TEST_CASE("convolutions of integers run in oneDNN with zero points that the data decide", "[onednn]") {
  test::OnnxModel model;
  model.input("x", kFloat32, "n,3,h,7").output("y", kInt32);
  model.node("DynamicQuantizeLinear", "x", "d d_scale d_zero");
  model.constant("w", integers(kInt8, {5, 3, 3, 3}, -127, 255)).constant("w_zero", scalar(kInt8, 0));
  test::set_ints(model.node("ConvInteger", "d w d_zero w_zero", "y"), "pads", {1, 1, 1, 1});
  ModelFile file(model);
  std::string profile = profile_of_equal_run(file.path, {"--dim", "n=2", "--dim", "h=6"}, 0);
  CHECK(contains(profile, "onednn_") >= has_vnni());
  CHECK(leaves(profile, "conv2d") == !has_vnni());
}

TEST_CASE("quantized products run in oneDNN and give the same integers", "[onednn]") {
  for (const char* dims : {"m,20", "2,m,20"}) {
    test::OnnxModel model;
    quantize_input(model, kUInt8, dims, 131);
    model.constant("w", integers(kUInt8, {20, 7}, 60, 120)).constant("w_scale", scales(7));
    model.constant("w_zero", integers(kUInt8, {7}, 117, 3));
    model.constant("y_scale", scalar(kFloat32, 0.25)).constant("y_zero", scalar(kInt8, 5));
    model.node("QLinearMatMul", "q x_scale x_zero w w_scale w_zero y_scale y_zero", "y");
    // With scales and zero points that the data decide.
    model.node("DynamicQuantizeLinear", "x", "d d_scale d_zero");
    model.constant("v", integers(kInt8, {20, 7}, -127, 255)).constant("v_zero", scalar(kInt8, 0));
    model.node("MatMulInteger", "d v d_zero v_zero", "z");
    model.output("y", kInt8).output("z", kInt32);
    ModelFile file(model);
    for (const char* rows : {"m=1", "m=33"}) {
      std::string profile = profile_of_equal_run(file.path, {"--dim", rows}, 0);
      CHECK(contains(profile, "onednn_") >= has_vnni());
      CHECK(leaves(profile, "matmul") == !has_vnni());
    }
  }
}

TEST_CASE("float operators between quantized tensors run as integers in oneDNN", "[onednn]") {
  test::OnnxModel model;
  quantize_input(model, kUInt8, "n,3,8,8", 128);
  model.node("DequantizeLinear", "q x_scale x_zero", "r");
  model.constant("w8", integers(kInt8, {5, 3, 3, 3}, -127, 255)).constant("w_scale", scales(5));
  model.constant("w_zero", integers(kInt8, {5}, 0, 1)).constant("b", small_floats({5}));
  test::set_int(model.node("DequantizeLinear", "w8 w_scale w_zero", "w"), "axis", 0);
  model.node("Conv", "r w b", "c"), model.node("Relu", "c", "d");
  model.constant("y_scale", scalar(kFloat32, 0.0625)).constant("y_zero", scalar(kUInt8, 3));
  model.node("QuantizeLinear", "d y_scale y_zero", "e"), model.node("Flatten", "e", "f");
  // Two products of one dequantized value, as the branches of a network have it; one with a transposed weight.
  model.node("DequantizeLinear", "f y_scale y_zero", "g");
  model.constant("v8", integers(kInt8, {4, 180}, -127, 255)).constant("v_scale", scales(4));
  test::set_int(model.node("DequantizeLinear", "v8 v_scale", "v"), "axis", 0);
  model.constant("u8", integers(kInt8, {180, 4}, -100, 201));
  model.node("DequantizeLinear", "u8 x_scale", "u");
  test::set_int(model.node("Gemm", "g v", "h"), "transB", 1);
  model.node("MatMul", "g u", "i");
  model.output("e", kUInt8).output("h").output("i");
  ModelFile file(model);
  std::string profile = profile_of_equal_run(file.path, {"--dim", "n=3"}, 1e-4);
  CHECK(contains(profile, "onednn_") >= has_vnni());
  CHECK(leaves(profile, "conv2d") == !has_vnni());
  CHECK(leaves(profile, "matmul") == !has_vnni());
}

TEST_CASE("explain says first what stands against the pattern of which most fits", "[onednn]") {
  test::Folder folder("onednn");
  const std::string module = folder.write("module.py", R"(
@R.function
def main(x: R.Tensor((1, 4, 8, 8), "float32"), w: R.Tensor((6, 4, 3, 3), "float32")):
    return R.nn.conv2d(x, w)
)");
  const std::string nearest =
      "(nn.conv2d): built in, as nn.conv2d\n"
      "    backend 'onednn' does not: nn.conv2d: the weight is not constant\n";
  const std::string brief = run_tool({"explain", module, "--backend", kOneDnn}).out;
  INFO(brief);
  CHECK(contains(brief, nearest + "        2 more patterns of backend 'onednn' fit less; --claims lists them\n"));
  const std::string whole = run_tool({"explain", module, "--backend", kOneDnn, "--claims"}).out;
  INFO(whole);
  CHECK(contains(whole, nearest + "    backend 'onednn' does not: "));
  CHECK(contains(whole, "qdq_conv: 'xf' is an input of the graph, expected multiply"));
  CHECK_FALSE(contains(whole, "more pattern"));
}

TEST_CASE("quantized networks stay with relaxc where oneDNN's sums would saturate", "[onednn]") {
  const std::string model = RELAXC_SOURCE_DIR "/examples/accelerator/digits_int8.onnx";
  CHECK(contains(profile_of_equal_run(model, {"--dim", "batch=5"}, 1e-6), "onednn_"));
  auto explain = [&](const std::string& isa) {
    return test::run_program(
        {"/usr/bin/env", "ONEDNN_MAX_CPU_ISA=" + isa, RELAXC_TOOL, "explain", model, "--backend", kOneDnn}, 300);
  };
  Outcome outcome = explain("AVX2");
  INFO(outcome.out << outcome.err);
  CHECK(contains(outcome.out, "backend 'onednn' does not: q_conv: this processor has no VNNI"));
  CHECK(contains(outcome.out, "probability (Softmax): backend 'onednn'"));
  if (!has_vnni()) return;
  CHECK(contains(explain("ALL").out, "conv1 (QLinearConv): backend 'onednn'"));
  // An artifact that was compiled for another processor ends with an error.
  std::string artifact =
      (std::filesystem::temp_directory_path() / fmt::format("relaxc_onednn_{}.so", getpid())).string();
  REQUIRE(run_tool({"compile", model, "--backend", kOneDnn, "-o", artifact}).exit_code == 0);
  Outcome moved = test::run_program(
      {"/usr/bin/env", "ONEDNN_MAX_CPU_ISA=AVX2", RELAXC_TOOL, "run", artifact, "--dim", "batch=1"}, 300);
  CHECK(moved.exit_code != 0);
  CHECK(contains(moved.err, "onednn could not compute this kernel"));
  std::filesystem::remove(artifact);
}

TEST_CASE("a function with the attribute Codegen is for a backend that is loaded", "[onednn]") {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("relaxc_codegen_{}.py", getpid())).string();
  auto run_for = [&](const std::string& backend) {
    std::ofstream(path)
        << "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((2, 3), \"float32\")):\n"
        << "        R.func_attr({\"Codegen\": \"" << backend << "\"})\n"
        << "        y = R.nn.softmax(x)\n        return y\n";
    return run_tool({"run", path, "--backend", kOneDnn, "--profile"});
  };
  Outcome right = run_for("onednn"), wrong = run_for("dnnl");
  CHECK(right.exit_code == 0);
  CHECK(contains(right.out, "onednn_y"));
  CHECK(wrong.exit_code == 3);
  CHECK(contains(wrong.err, "is for the backend 'dnnl', and there are only onednn"));
  std::filesystem::remove(path);
}
#endif

TEST_CASE("a backend that is not one is refused", "[onednn]") {
  Outcome outcome = run_tool({"run", kDigits + "digits.onnx", "--backend", RELAXC_MY_PASS});
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.err, "is not a backend: it adds no ExternalCompiler"));
}
