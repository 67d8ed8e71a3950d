// relaxc quantize: integers that hold a model's numbers exactly give its results, in each form; what is left in floats
// and why; and a real network.
#include <filesystem>

#include "frontend/onnx/quantize_model.h"
#include "frontend/onnx/reduce.h"
#include "frontend/onnx/test_data.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "support/version.h"
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/frontend/onnx_text.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"
#include "tools/compare.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::OnnxModel;
using test::run_relaxc;

namespace {

const std::string kDigits = RELAXC_SOURCE_DIR "/examples/digits";

std::vector<Tensor> results_of(const std::string& model, const std::vector<Tensor>& inputs) {
  CompileSettings settings;
  settings.contents = std::as_bytes(std::span(model));
  return Session(compile(read_module("model.onnx", settings), settings).load()).run(inputs);
}

// Returns how the results of two models differ beyond rounding.
std::string difference(const std::string& a, const std::string& b, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> expected = results_of(a, inputs), actual = results_of(b, inputs);
  std::string text;
  for (size_t i = 0; i < expected.size(); ++i) text += tools::compare("result", actual[i], expected[i], 1e-5, 1e-5);
  return text;
}

// Returns the operators of the nodes in order.
std::string operators_of(const std::string& model) {
  onnx::ModelProto proto;
  REQUIRE(proto.ParseFromString(model));
  std::string text;
  for (const auto& node : proto.graph().node()) text += (text.empty() ? "" : " ") + node.op_type();
  return text;
}

int64_t opset_of(const std::string& model) {
  onnx::ModelProto proto;
  REQUIRE(proto.ParseFromString(model));
  return proto.opset_import(0).version();
}

// Integers from -most to most, `step` apart from each other, times a scale; the first element is the largest.
Tensor steps(const std::vector<int64_t>& shape, int64_t most, double scale, int64_t step = 5) {
  Tensor tensor = Tensor::empty(shape, kFloat32);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.set_double(i, scale * static_cast<double>((i * step + 2 * most) % (2 * most + 1) - most));
  return tensor;
}

// The largest magnitude of each column of a [.., columns] matrix becomes `most` steps.
Tensor with_full_columns(Tensor tensor, int64_t columns, double largest) {
  for (int64_t k = 0; k < columns; ++k) tensor.set_double(k, largest);
  return tensor;
}

std::string errors_of(const std::string& model, const QuantizeSettings& settings) {
  try {
    quantize_model(model, settings);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

// The numbers of steps() with scale 1/16 and ranges of 255 steps.
constexpr ValueRange kFull{-8, 255.0 / 16 - 8};

std::string product_model(const std::string& op, int64_t opset = 18) {
  OnnxModel model(opset);
  model.input("x", kFloat32, "n,12").output("y");
  model.constant("w", with_full_columns(steps({12, 4}, 127, 1.0 / 64), 4, 127.0 / 64));
  model.constant("b", steps({4}, 60, 1.0 / 8));
  if (op == "Gemm") {
    model.node("Gemm", "x w b", "y");
  } else {
    model.node("MatMul", "x w", "product");
    model.node("Add", "product b", "y");
  }
  return model.proto().SerializeAsString();
}

}  // namespace

TEST_CASE("numbers that integers hold exactly survive", "[quantize]") {
  const Tensor x = steps({3, 12}, 100, 1.0 / 16);
  for (const char* op : {"Gemm", "MatMul"}) {
    const std::string model = product_model(op);
    for (int bits : {0, 1}) {
      QuantizeSettings settings;
      settings.activations = bits == 0 ? DType::uint(8) : DType::int_(8);
      CHECK(values_to_measure(model, settings) == std::vector<std::string>{"x"});
      const QuantizedModel quantized = quantize_model(model, settings, {{"x", kFull}});
      INFO(op << ": " << operators_of(quantized.model));
      CHECK(contains(operators_of(quantized.model), "QuantizeLinear DequantizeLinear DequantizeLinear"));
      CHECK(difference(model, quantized.model, {x}) == "");
    }
    const QuantizedModel weights = quantize_model(model, {.kind = Quantization::kWeights});
    CHECK(contains(operators_of(weights.model), "DequantizeLinear " + std::string(op)));
    CHECK(difference(model, weights.model, {x}) == "");
    CHECK(opset_of(weights.model) == 18);
  }
}

TEST_CASE("copies of a weight and transposed ones are weights", "[quantize]") {
  OnnxModel model;
  model.input("x", kFloat32, "n,8").constant("w", steps({8, 8}, 1, 1)).output("y");
  model.node("Identity", "w", "same"), model.node("Transpose", "same", "turned");
  model.node("MatMul", "x w", "a"), model.node("MatMul", "a same", "b"), model.node("MatMul", "b turned", "y");
  const std::string bytes = model.proto().SerializeAsString();
  const QuantizedModel quantized = quantize_model(bytes, {.kind = Quantization::kWeights});
  const std::string operators = operators_of(quantized.model);
  INFO(operators);
  CHECK(!contains(operators, "Identity"));
  CHECK(!contains(operators, "Transpose"));
  CHECK(operators.find("DequantizeLinear MatMul") != operators.rfind("DequantizeLinear MatMul"));
  CHECK(difference(bytes, quantized.model, {steps({3, 8}, 100, 1.0 / 16)}) == "");
}

TEST_CASE("dynamic ranges that fit give exact results", "[quantize]") {
  Tensor x = steps({3, 12}, 100, 1.0 / 16);
  x.set_double(0, kFull.low), x.set_double(1, kFull.high);
  for (const char* op : {"Gemm", "MatMul"}) {
    const std::string model = product_model(op);
    const QuantizedModel quantized = quantize_model(model, {.kind = Quantization::kDynamic});
    CHECK(operators_of(quantized.model) == "DynamicQuantizeLinear MatMulInteger Cast Mul Mul Add");
    CHECK(difference(model, quantized.model, {x}) == "");
  }
}

TEST_CASE("int4 weights have a scale for each block", "[quantize]") {
  OnnxModel model(17);
  model.input("x", kFloat32, "n,20").output("y").output("mean");
  Tensor weight = steps({20, 3}, 6, 0.5);
  for (int64_t block : {0, 8, 16}) {  // the last block is shorter, and each has another scale
    const double scale = block == 8 ? 4 : 0.25;
    for (int64_t i = block * 3; i < std::min<int64_t>(block + 8, 20) * 3; ++i)
      weight.set_double(i, i < block * 3 + 3 ? 7 * scale : weight.as_double(i) * 2 * scale);
  }
  model.constant("w", weight);
  model.node("MatMul", "x w", "y");
  test::set_ints(model.node("ReduceMean", "y", "mean"), "axes", {1});  // whose form is another in opset 21
  const std::string bytes = model.proto().SerializeAsString();
  const QuantizedModel quantized =
      quantize_model(bytes, {.kind = Quantization::kWeights, .weight_bits = 4, .block = 8});
  CHECK(opset_of(quantized.model) == 21);
  CHECK(difference(bytes, quantized.model, {steps({2, 20}, 100, 1.0 / 16)}) == "");
  const QuantizedModel one = quantize_model(bytes, {.kind = Quantization::kWeights, .weight_bits = 4});
  CHECK(difference(bytes, one.model, {steps({2, 20}, 100, 1.0 / 16)}) != "");
}

// A model that looks up rows of an embedding and of a table of factors, and multiplies by another table.
std::string embedding_model() {
  OnnxModel model(17);
  model.input("ids", kInt64, "n").input("places", kInt64, "n").output("y");
  Tensor table = steps({512, 32}, 6, 0.5);
  for (int64_t row = 0; row < 512; ++row) table.set_double(row * 32, 7 * 0.5);  // the largest element of its row
  model.constant("table", table).constant("cosines", steps({1024, 32}, 100, 0.01));
  model.constant("w", with_full_columns(steps({32, 3}, 6, 0.5), 3, 3.5));
  model.node("Gather", "table ids", "rows");
  model.node("Gather", "cosines places", "factors");
  model.node("Mul", "rows factors", "turned");
  model.node("Add", "turned rows", "sum");
  model.node("MatMul", "sum w", "y");
  return model.proto().SerializeAsString();
}

TEST_CASE("embeddings are quantized by rows or blocks, and stay in few bits", "[quantize]") {
  const std::string model = embedding_model();
  const std::vector<Tensor> inputs = {Tensor::of<int64_t>({4}, kInt64, {511, 3, 0, 77}),
                                      Tensor::of<int64_t>({4}, kInt64, {0, 1000, 5, 5})};
  for (int bits : {8, 4}) {
    QuantizeSettings settings{.kind = Quantization::kWeights, .weight_bits = bits, .block = bits == 4 ? 32 : 0};
    const QuantizedModel quantized = quantize_model(model, settings);
    CHECK(quantized.made == std::map<std::string, int64_t>{{"Gather", 1}, {"MatMul", 1}});
    CHECK(operators_of(quantized.model) == "DequantizeLinear Gather Gather Mul Add DequantizeLinear MatMul");
    if (bits == 4) CHECK(difference(model, quantized.model, inputs) == "");
    int64_t stored = 0;
    CompileSettings compiling;
    compiling.contents = std::as_bytes(std::span(quantized.model));
    const CompiledModule compiled = compile(read_module("model.onnx", compiling), compiling);
    for (const Tensor& constant : compiled.executable().constants) stored += constant.bytes();
    const int64_t factors = 1024 * 32 * 4;
    CHECK(stored < factors + 512 * 32 * bits / 8 + 512 * 4 + 4096);
    settings.skipped = {"rows"};
    CHECK(quantize_model(model, settings).made == std::map<std::string, int64_t>{{"MatMul", 1}});
  }
}

TEST_CASE("regions of integers reach from product to product", "[quantize]") {
  const std::string model = test::read_onnx_text(R"(
<ir_version: 8, opset_import: ["": 18]>
test (float[n, 2, 8, 8] x) => (float[n, 3] y) {
  w = Constant <value = float[2, 2, 1, 1] {1, 2, -1, 0.5}> ()
  v = Constant <value = float[3, 2] {1, -1, 0.5, 2, 1, 1}> ()
  zero = Constant <value = float {0}> ()
  one = Constant <value = float {1}> ()
  six = Constant <value = float {6}> ()
  a = Conv (x, w)
  b = Relu (a)
  c = Conv (b, w)
  d = Clip (c, zero, six)
  sum = Add (b, d)
  e = Relu (sum)
  f = Clip (e, one, six)
  g = MaxPool <kernel_shape = [2, 2]> (f)
  h = GlobalAveragePool (g)
  i = Flatten (h)
  y = Gemm <transB = 1> (i, v)
}
)",
                                                 "test")
                                .SerializeAsString();
  const QuantizeSettings settings;
  CHECK(values_to_measure(model, settings) == std::vector<std::string>{"b", "d", "e", "f", "h", "x"});
  std::map<std::string, ValueRange> ranges;
  for (const std::string& name : values_to_measure(model, settings)) ranges[name] = {-4, 12};
  const QuantizedModel quantized = quantize_model(model, settings, ranges);
  CHECK(quantized.left.empty());
  // The Relu and the Clip from 0 are gone, and the Clip from 1 is not.
  CHECK(!contains(operators_of(quantized.model), "Relu"));
  CHECK(test::matches(operators_of(quantized.model), "Clip").size() == 1);
  CHECK(test::matches(operators_of(quantized.model), " QuantizeLinear").size() == 7);

  QuantizeSettings skipping;
  skipping.skipped = {"c", "MaxPool"};
  std::string left;
  for (const FloatNode& node : quantize_model(model, skipping, ranges).left) left += node.node + ": " + node.why + "\n";
  CHECK(left ==
        "c: skipped\nd: its result is read in floats\nsum: its result is read in floats\ne: its result is read in "
        "floats\n"
        "f: its result is read in floats\ng: skipped\nh: its operands are floats\ni: its operands are floats\n");
  skipping.skipped = {"Relu6"};
  CHECK(contains(errors_of(model, skipping), "--skip 'Relu6': no node and no operator of the model has that name"));

  ranges["d"] = {-3e38, 6};
  const QuantizedModel far = quantize_model(model, settings, ranges);
  const FloatNode* add = find_item(far.left, "sum", &FloatNode::node);
  REQUIRE(add);
  CHECK(add->why == "'d' reaches from -3e+38 to 6, too far for 8 bits");
}

TEST_CASE("older models are rewritten for the opset that their weights need", "[quantize]") {
  OnnxModel model(11);
  model.input("x", kFloat32, "2,8").constant("w", with_full_columns(steps({8, 8}, 7, 0.25), 8, 1.75));
  model.node("MatMul", "x w", "a");
  test::set_ints(model.node("Unsqueeze", "a", "b"), "axes", {0});
  test::set_ints(model.node("Squeeze", "b", "c"), "axes", {0});
  test::set_ints(test::set_int(model.node("Split", "c", "d e"), "axis", 1), "split", {3, 5});
  test::set_int(model.node("Softmax", "e", "f"), "axis", -1);
  test::set_ints(model.node("ReduceSum", "f", "g"), "axes", {1});
  test::set_int(model.node("Split", "a", "h i"), "axis", 1);
  test::set_ints(model.node("ReduceMax", "h", "j"), "axes", {-1});
  for (const char* name : {"d", "f", "g", "i", "j"}) model.output(name);
  const std::string bytes = model.proto().SerializeAsString();
  QuantizeSettings settings{.kind = Quantization::kWeights};
  for (int bits : {8, 4}) {
    settings.weight_bits = bits;
    const QuantizedModel quantized = quantize_model(bytes, settings);
    CHECK(opset_of(quantized.model) == (bits == 8 ? 13 : 21));
    if (bits == 4) CHECK(difference(bytes, quantized.model, {steps({2, 8}, 100, 1.0 / 16)}) == "");
  }
  model.node("Softmax", "b", "k");  // over the last two of three dims
  model.output("k");
  CHECK(contains(errors_of(model.proto().SerializeAsString(), settings),
                 "node 'k' (Softmax) cannot be written for a newer opset: since opset 13 it is over one dim"));
  CHECK(opset_of(quantize_model(product_model("Gemm", 7), settings).model) == 21);
  CHECK(contains(errors_of(product_model("Gemm", 6), settings),
                 "node 'y' (Gemm) cannot be written for a newer opset: it had another form before opset 7"));
}

TEST_CASE("models without products are refused", "[quantize]") {
  OnnxModel model;
  model.input("x", kFloat32, "2,2").input("v", kFloat32, "2,2").output("y").node("Relu", "x", "y");
  const QuantizeSettings weights{.kind = Quantization::kWeights};
  CHECK(contains(errors_of(model.proto().SerializeAsString(), weights), "expected a Conv, MatMul or Gemm"));
  model.node("MatMul", "x v", "z");
  CHECK(contains(errors_of(model.proto().SerializeAsString(), weights), "'z' (MatMul): its weight is not a constant"));
}

TEST_CASE("relaxc quantize makes a network of integers and tells its error", "[quantize]") {
  const test::Folder folder("quantize");
  const std::string model = kDigits + "/digits.onnx", samples = kDigits + "/samples.npy";
  const test::Outcome outcome = run_relaxc({"quantize", model, "-o", folder.at("int8.onnx"), "--calibrate", samples});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "quantized: 3 Conv, 1 Flatten, 1 Gemm, 2 MaxPool"));
  CHECK(contains(outcome.out, "its operator computes in floats): Softmax"));
  CHECK(!test::matches(outcome.out, "relative RMS error 0\\.0[0-9]*, the largest element of 3(59|60) of 360 rows")
             .empty());
  CHECK(!contains(operators_of(folder.read("int8.onnx")), "BatchNormalization"));
  CHECK(std::filesystem::file_size(folder.at("int8.onnx")) * 2 < std::filesystem::file_size(model));
  CHECK(run_relaxc({"run", folder.at("int8.onnx"), "--test-data", kDigits + "/test_data_set_0", "--rtol", "0", "--atol",
                    "0.1"})
            .exit_code == 0);
  // A range of half of the elements cuts the others off.
  const test::Outcome cut = run_relaxc({"quantize", model, "-o", folder.at("cut.onnx"), "--calibrate",
                                        kDigits + "/test_data_set_0", "--percentile", "50"});
  CHECK(test::matches(cut.out, "relative RMS error 0\\.0").empty());
}

TEST_CASE("samples come from files with many rows, and from folders", "[quantize]") {
  const test::Folder folder("quantize_samples");
  OnnxModel model;
  model.input("x", kFloat32, "2,12").output("y").constant("w", steps({12, 4}, 127, 1.0 / 64));
  model.node("MatMul", "x w", "y");
  const std::string file = folder.write("model.onnx", model.proto().SerializeAsString());
  std::filesystem::create_directories(folder.at("samples/set"));
  write_npy(folder.at("samples/a.npy"), steps({6, 12}, 100, 1.0 / 16));
  write_npy(folder.at("samples/b.npy"), steps({2, 12}, 100, 1.0 / 16));
  write_tensor_pb(folder.at("samples/set/input_0.pb"), steps({2, 12}, 100, 1.0 / 16), "x");
  auto runs = [&](const std::string& path) {
    const test::Outcome outcome =
        run_relaxc({"quantize", file, "-o", folder.at("q.onnx"), "--calibrate", folder.at(path), "--random", "1"});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    return test::matches(outcome.out, "'y' in ([0-9]+) runs").at(0).at(1);
  };
  CHECK(runs("samples/a.npy") == "4");
  CHECK(runs("samples/set") == "2");
  CHECK(runs("samples") == "6");
}

TEST_CASE("large values of Constant nodes are read", "[quantize]") {
  const test::Folder folder("quantize_constants");
  const Tensor weight = steps({64, 32}, 127, 1.0 / 64);
  OnnxModel model;
  model.input("x", kFloat32, "n,64").output("y");
  onnx::AttributeProto& value = *model.node("Constant", "", "w").add_attribute();
  value.set_name("value"), value.set_type(onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
  value.mutable_t()->add_dims(64), value.mutable_t()->add_dims(32);
  value.mutable_t()->set_raw_data(weight.raw(), static_cast<size_t>(weight.bytes()));
  model.node("MatMul", "x w", "y");
  const std::string bytes = model.proto().SerializeAsString();
  const std::string read = read_model_case(folder.write("model.onnx", bytes)).model;
  const QuantizedModel quantized = quantize_model(read, {.kind = Quantization::kWeights});
  CHECK(operators_of(quantized.model) == "DequantizeLinear MatMul");
  CHECK(difference(bytes, quantized.model, {steps({2, 64}, 100, 1.0 / 16)}) == "");
}

TEST_CASE("a gate in floats is not quantized for a product", "[quantize]") {
  const std::string model = test::read_onnx_text(R"(
<ir_version: 8, opset_import: ["": 18]>
test (float[n, 2] x) => (float[n, 2] y) {
  w = Constant <value = float[2, 2] {1, -1, 0.5, 2}> ()
  a = MatMul (x, w)
  gate = Sigmoid (a)
  b = Mul (a, gate)
  y = MatMul (b, w)
}
)",
                                                 "test")
                                .SerializeAsString();
  CHECK(values_to_measure(model, {}) == std::vector<std::string>{"b", "x"});
}

TEST_CASE("wrong uses of relaxc quantize are named", "[quantize]") {
  const test::Folder folder("quantize_errors");
  const std::string model = kDigits + "/digits.onnx", out = folder.at("q.onnx");
  auto message = [&](std::vector<std::string> flags, int exit_code) {
    std::vector<std::string> command = {"quantize", model, "-o", out};
    command.insert(command.end(), flags.begin(), flags.end());
    const test::Outcome outcome = run_relaxc(command);
    CHECK(outcome.exit_code == exit_code);
    return outcome.err;
  };
  CHECK(contains(message({}, 2), "the ranges of activations are needed"));
  CHECK(contains(message({"--dynamic", "--weights", "int8"}, 2), "excludes"));
  CHECK(contains(message({"--dynamic", "--block", "16"}, 2), "--block is for --weights"));
  CHECK(contains(message({"--calibrate", folder.at("none.npy")}, 1), "there is no such file or folder"));
  CHECK(contains(message({"--calibrate", folder.path.string()}, 1), "the folder has no samples"));
  CHECK(contains(message({"--calibrate", kDigits + "/labels.npy"}, 1), "image"));
  CHECK(contains(message({"--calibrate", kDigits + "/labels.npy"}, 1),
                 "--calibrate " + kDigits + "/labels.npy: a sample "));
  const Tensor samples = read_npy(kDigits + "/samples.npy");
  Tensor doubles = Tensor::empty(samples.shape(), kFloat64);
  for (int64_t i = 0; i < doubles.size(); ++i) doubles.set_double(i, samples.as_double(i));
  write_npy(folder.at("doubles.npy"), doubles);
  CHECK(contains(message({"--calibrate", folder.at("doubles.npy")}, 0), "float64 is converted to float32"));
  onnx::ModelProto made;
  REQUIRE(made.ParseFromString(folder.read("q.onnx")));
  CHECK(made.producer_version() == kVersion);
  std::filesystem::remove(out);
  CHECK(contains(message({"--weights", "int8", "--skip", "Foo"}, 1), "--skip 'Foo'"));
  const test::Outcome dynamic =
      run_relaxc({"quantize", model, "-o", folder.at("dy.onnx"), "--dynamic", "--random", "1"});
  CHECK(contains(dynamic.out, "convolutions are not quantized by ranges of each run: leave out --dynamic, and give"));
  OnnxModel integers;
  integers.input("x", DType::uint(8), "2,2").input("v", DType::uint(8), "2,2").output("y", DType::int_(32));
  integers.node("MatMulInteger", "x v", "y");
  const std::string quantized = folder.write("integers.onnx", integers.proto().SerializeAsString());
  CHECK(contains(run_relaxc({"quantize", quantized, "-o", out, "--dynamic"}).err, "the model is quantized already"));
  CHECK(contains(run_relaxc({"quantize", model, "-o", model, "--dynamic"}).err, "is the input and would be replaced"));
  CHECK(contains(run_relaxc({"quantize", kDigits + "/labels.npy", "-o", out, "--dynamic"}).err, "not an ONNX model"));
  const std::string text = folder.write("module.py", "@R.function\n");
  CHECK(contains(run_relaxc({"quantize", text, "-o", out, "--dynamic"}).err,
                 "it is a module as text, which is not taken here"));
  CHECK(!std::filesystem::exists(out));
}
