// The cost of a compile as a model grows: time is at most linear, equal kernels are compiled once, and memory is little
// more than the weights. ./dev bench compile has more families and larger sizes.
#include <sys/resource.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>

#include "codegen/compile.h"
#include "frontend/onnx/import.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

// A protobuf message, field by field.
class Message {
 public:
  Message& number(int field, uint64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Message& bytes(int field, const std::string& value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.text_); }
  const std::string& text() const { return text_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 128; value >>= 7) text_ += static_cast<char>(value % 128 + 128);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

// An ONNX model, piece by piece (onnx.proto has the numbers of the fields).
class OnnxModel {
 public:
  void node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
            bool axis = false) {
    Message node;
    for (const std::string& input : inputs) node.bytes(1, input);
    for (const std::string& output : outputs) node.bytes(2, output);
    node.bytes(4, op);
    if (axis) node.message(5, Message().bytes(1, "axis").number(3, 0).number(20, 2));
    graph_.message(1, node);
  }
  void weight(const std::string& name, const std::vector<int64_t>& shape, float value) {
    Message tensor;
    int64_t size = 1;
    for (int64_t dim : shape) {
      tensor.number(1, static_cast<uint64_t>(dim));
      size *= dim;
    }
    std::vector<float> values(static_cast<size_t>(size), value);
    tensor.number(2, 1).bytes(8, name).bytes(
        9, std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
    graph_.message(5, tensor);
  }
  void external_weight(const std::string& name, const std::vector<int64_t>& shape, const std::string& file,
                       int64_t offset) {
    Message tensor;
    for (int64_t dim : shape) tensor.number(1, static_cast<uint64_t>(dim));
    tensor.number(2, 1).bytes(8, name).number(14, 1);
    tensor.message(13, Message().bytes(1, "location").bytes(2, file));
    tensor.message(13, Message().bytes(1, "offset").bytes(2, std::to_string(offset)));
    graph_.message(5, tensor);
  }
  void input(const std::string& name, const std::vector<std::string>& dims) { graph_.message(11, value(name, dims)); }
  void output(const std::string& name) { graph_.message(12, value(name, {})); }
  std::string text() const {
    return Message().number(1, 8).message(8, Message().bytes(1, "").number(2, 17)).message(7, graph_).text();
  }

 private:
  // Dims are numbers or names; none: an unknown shape.
  static Message value(const std::string& name, const std::vector<std::string>& dims) {
    Message shape, tensor;
    for (const std::string& dim : dims) {
      bool known = dim.find_first_not_of("0123456789") == std::string::npos;
      shape.message(1, known ? Message().number(1, std::stoul(dim)) : Message().bytes(2, dim));
    }
    tensor.number(1, 1);
    if (!dims.empty()) tensor.message(2, shape);
    return Message().bytes(1, name).message(2, Message().message(1, tensor));
  }
  Message graph_ = Message().bytes(2, "graph");
};

std::string numbered(const char* name, int i) { return name + std::to_string(i); }
std::vector<std::string> all(const char* name, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(numbered(name, i));
  return names;
}

OnnxModel chain(int size) {
  OnnxModel model;
  model.input("v0", {"8", "8"});
  model.weight("w", {8, 8}, 0.1F);
  for (int i = 0; i < size; ++i) model.node("MatMul", {numbered("v", i), "w"}, {numbered("v", i + 1)});
  model.output(numbered("v", size));
  return model;
}
OnnxModel ladder(int size) {
  OnnxModel model;
  model.input("a0", {"8", "8"});
  model.input("b0", {"8", "8"});
  for (int i = 0; i < size / 2; ++i) {
    model.node("MatMul", {numbered("a", i), numbered("b", i)}, {numbered("a", i + 1)});
    model.node("Add", {numbered("a", i), numbered("b", i)}, {numbered("b", i + 1)});
  }
  model.output(numbered("a", size / 2));
  return model;
}
OnnxModel wide(int size) {
  OnnxModel model;
  model.input("x", {"n", "8"});
  model.weight("w", {8, 8}, 0.1F);
  for (int i = 0; i < size / 2; ++i) {
    model.node("MatMul", {"x", "w"}, {numbered("h", i)});
    model.node("Relu", {numbered("h", i)}, {numbered("y", i)});
    model.output(numbered("y", i));
  }
  return model;
}
OnnxModel many_inputs(const char* op, int size, bool own_dims) {
  OnnxModel model;
  for (int i = 0; i < size; ++i) model.input(numbered("x", i), {own_dims ? numbered("n", i) : "n", "4"});
  model.node(op, all("x", size), {"y"}, std::string(op) == "Concat");
  model.output("y");
  return model;
}
OnnxModel split(int size) {
  OnnxModel model;
  model.input("x", {std::to_string(size), "4"});
  model.node("Split", {"x"}, all("y", size), true);
  for (int i = 0; i < size; ++i) model.output(numbered("y", i));
  return model;
}

struct Cost {
  double seconds;  // processor time
  size_t kernels;
};
CompiledModule compiled(const OnnxModel& model) {
  std::string text = model.text();
  CompileSettings settings;
  settings.reuse = false;
  return compile(import_onnx_bytes(std::as_bytes(std::span(text)), "model.onnx", op_table()), settings);
}
Cost cost(const OnnxModel& model) {
  std::clock_t begin = std::clock();
  size_t kernels = compiled(model).kernels().size();
  return {static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, kernels};
}

}  // namespace

// The first of the file: a process counts as large as the one that it was forked from.
TEST_CASE("compiling takes little more memory than the weights have bytes", "[codegen]") {
  constexpr int kWidth = 2048, kWeights = 12;
  constexpr int64_t kBytes = int64_t{4} * kWidth * kWidth;
  std::string folder = std::string(RELAXC_BINARY_DIR) + "/compile_cost", artifact = folder + "/model.so";
  std::filesystem::create_directories(folder);
  OnnxModel model;
  std::ofstream weights(folder + "/weights", std::ios::binary);
  model.input("v0", {"n", std::to_string(kWidth)});
  for (int i = 0; i < kWeights; ++i) {
    model.external_weight(numbered("w", i), {kWidth, kWidth}, "weights", kBytes * i);
    std::vector<float> values(kWidth, static_cast<float>(i));
    for (int row = 0; row < kWidth; ++row) weights.write(reinterpret_cast<const char*>(values.data()), 4 * kWidth);
    model.node("MatMul", {numbered("v", i), numbered("w", i)}, {numbered("v", i + 1)});
  }
  weights.close();
  model.output(numbered("v", kWeights));
  std::ofstream(folder + "/model.onnx", std::ios::binary) << model.text();
  Outcome outcome = run_program({RELAXC_TOOL, "compile", folder + "/model.onnx", "-o", artifact}, 100);
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  std::filesystem::remove_all(folder);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(static_cast<double>(usage.ru_maxrss) * 1024 < 1.3 * kWeights * kBytes + 200e6);
}

TEST_CASE("compile time is linear in the number of nodes and operands", "[codegen]") {
  struct Family {
    const char* name;
    std::function<OnnxModel(int)> make;
    int size;
    size_t kernels;  // at most
  };
  const Family kFamilies[] = {
      {"chain", chain, 500, 1},
      {"ladder", ladder, 500, 2},
      {"wide", wide, 500, 1},
      {"concat", [](int size) { return many_inputs("Concat", size, false); }, 1250, 8},
      {"concat of dims of their own", [](int size) { return many_inputs("Concat", size, true); }, 1250, 8},
      {"sum", [](int size) { return many_inputs("Sum", size, false); }, 1250, 4},
      {"max", [](int size) { return many_inputs("Max", size, false); }, 1250, 4},
      {"split", split, 1250, 160},
  };
  for (const Family& family : kFamilies) {
    Cost small = cost(family.make(family.size)), large = cost(family.make(4 * family.size));
    INFO(family.name << ": " << small.seconds << " s at " << family.size << ", " << large.seconds
                     << " s at four times that");
    // Four times as long, with room for what depends on luck; quadratic is sixteen times.
    CHECK(large.seconds < 8 * std::max(small.seconds, 0.1));
    CHECK(large.kernels <= family.kernels);
  }
}

TEST_CASE("joined and cut in groups, tensors keep their order", "[codegen]") {
  constexpr int kCount = 2100;  // groups of groups of groups
  std::vector<Tensor> parts;
  std::vector<float> expected;
  for (int i = 0; i < kCount; ++i) {
    std::vector<float> values;
    for (int k = 0; k < i % 3 * 4; ++k) values.push_back(static_cast<float>(i * 100 + k));
    expected.insert(expected.end(), values.begin(), values.end());
    parts.push_back(Tensor::of<float>({i % 3, 4}, kFloat32, values));
  }
  Session join(compiled(many_inputs("Concat", kCount, true)).load());
  std::vector<Tensor> joined = join.run(parts);
  CHECK(same_contents(joined.at(0), Tensor::of<float>({kCount, 4}, kFloat32, expected)));

  Tensor x = Tensor::empty({kCount, 4}, kFloat32);
  for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i));
  std::vector<Tensor> inputs(1, x);
  Session cut(compiled(split(kCount)).load());
  std::vector<Tensor> rows = cut.run(inputs);
  REQUIRE(rows.size() == kCount);
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += rows[static_cast<size_t>(i)].as_double(1) != 4.0 * i + 1;
  CHECK(wrong == 0);
}

TEST_CASE("equal weights are stored once, packed ones too", "[codegen]") {
  OnnxModel model;
  model.input("v0", {"n", "64"});
  for (int i = 0; i < 8; ++i) {
    model.weight(numbered("w", i), {64, 64}, i < 6 ? 0.5F : 0.25F);
    model.node("MatMul", {numbered("v", i), numbered("w", i)}, {numbered("v", i + 1)});
  }
  model.output("v8");
  int64_t bytes = 0;
  CompiledModule result = compiled(model);
  for (const Tensor& constant : result.executable().constants) bytes += constant.bytes();
  CHECK(bytes == 2 * 64 * 64 * 4);
}

}  // namespace relaxc::test
