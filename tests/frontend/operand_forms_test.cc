// Operands that may be constants of the model or inputs of it, on dims that may be numbers or symbols: all four forms
// accept the same values and give the same results, and refuse the same values.
#include "support/joined.h"
#include "tests/frontend/onnx_model.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

using Ints = std::vector<int64_t>;
constexpr int64_t kMost = INT64_MAX, kLeast = INT64_MIN;

struct OperandForm {
  std::string op, operands;  // "x v": v is the operand that varies
  Ints shape;                // of x
  std::vector<Ints> good = {}, bad = {};
  std::string attr = "";  // an integer, or integers, of the node
  Ints attr_values = {};
  std::vector<std::pair<std::string, Ints>> constants = {};
  int64_t opset = 18;
  bool is_scalar = false;  // v has rank 0
  std::string outputs = "y";
  DType dtype = kFloat32;
};

Tensor operand(const OperandForm& form, const Ints& value) {
  return form.is_scalar ? int64s(value).reshaped(Ints{}) : int64s(value);
}
OnnxModel model_of(const OperandForm& form, const Ints& value, bool is_constant, bool is_symbolic) {
  OnnxModel model(form.opset);
  std::vector<std::string> dims;
  for (size_t d = 0; d < form.shape.size(); ++d)
    dims.push_back(is_symbolic ? std::string(1, static_cast<char>('a' + d)) : std::to_string(form.shape[d]));
  model.input("x", form.dtype, joined(dims, ","));
  if (is_constant) model.constant("v", operand(form, value));
  if (!is_constant) model.input("v", kInt64, form.is_scalar ? "" : std::to_string(value.size()));
  for (const auto& [name, numbers] : form.constants)
    model.constant(name, name.starts_with("scalar") ? int64s(numbers).reshaped(Ints{}) : int64s(numbers));
  onnx::NodeProto& node = model.node(form.op, form.operands, form.outputs);
  if (form.attr_values.size() == 1 && form.attr != "kernel_shape") set_int(node, form.attr, form.attr_values[0]);
  if (form.attr == "kernel_shape") set_ints(node, form.attr, form.attr_values);
  return model.output("y", form.dtype);
}

// Empty when it ran.
std::string run(const OperandForm& form, const Ints& value, bool is_constant, bool is_symbolic,
                std::vector<Tensor>& results) {
  std::vector<Tensor> inputs = {numbers(form.shape, form.dtype)};
  if (!is_constant) inputs.push_back(operand(form, value));
  try {
    results = model_of(form, value, is_constant, is_symbolic).compile().run(inputs);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// A reference for the results is the form whose shapes are all known.
void check(const OperandForm& form) {
  for (bool is_good : {true, false}) {
    for (const Ints& value : is_good ? form.good : form.bad) {
      std::vector<Tensor> wanted;
      for (bool is_constant : {true, false}) {
        for (bool is_symbolic : {false, true}) {
          std::vector<Tensor> results;
          std::string error = run(form, value, is_constant, is_symbolic, results);
          INFO(form.op << " of x [" << joined(form.shape) << "] by " << (is_constant ? "constants " : "inputs ")
                       << joined(value) << (is_symbolic ? " on symbolic dims: " : ": ") << error);
          CHECK(error.empty() == is_good);
          // A sentence about the node, not an expression of ours.
          if (!is_good) CHECK(error.find(fmt::format("node 'y' ({}): ", form.op)) != std::string::npos);
          CHECK(error.find("Select") == std::string::npos);
          CHECK(error.size() < 200);
          if (!error.empty()) continue;
          if (wanted.empty()) wanted = results;
          CHECK(same_tensor(results[0], wanted[0]));
        }
      }
    }
  }
}

const Ints kCube = {3, 1, 4};

}  // namespace

TEST_CASE("axes that are constants or inputs", "[frontend]") {
  check({"Slice",
         "x starts ends v",
         kCube,
         {{0, 2}, {-1, 0}},
         {{2, 2}, {2, -1}, {3, 0}, {-4, 0}},
         "",
         {},
         {{"starts", {0, 1}}, {"ends", {1, 3}}}});
  check({"Slice",
         "x starts ends v",
         kCube,
         {},
         {{0, 1, 2, 0}},
         "",
         {},
         {{"starts", {0, 0, 0, 0}}, {"ends", {1, 1, 1, 1}}}});
  check({"Slice", "x starts ends v", kCube, {}, {{}}, "", {}, {{"starts", {0}}, {"ends", {1}}}});
  check({"Pad", "x pads - v", kCube, {{0, 2}, {-1, 0}}, {{1, 1}, {1, -2}, {3, 0}}, "", {}, {{"pads", {1, 0, 2, 3}}}});
  check({"Unsqueeze", "x v", kCube, {{}, {0}, {-1, 0}, {1, 2}}, {{0, 0}, {0, -5}, {5, 0}}});
  check({"Squeeze", "x v", {1, 3, 1}, {{0}, {-1}, {0, 2}}, {{1}, {3}, {0, 1}}});
  check({"ReduceSum", "x v", kCube, {{}, {1}, {0, -1}, {1, 1}, {0, -3}, {0, 1, 2, 2}}, {{3}, {kLeast}}});
  check({"ReduceMax", "x v", kCube, {{}, {2, 0}, {1, -2}}, {{-4}}});
  for (const char* op : {"CumSum"}) check({op, "x v", {3, 4}, {{0}, {1}, {-2}}, {{2}, {kMost}, {kLeast}}});
}

// A squeeze of the axes that have size 1 needs to know which.
TEST_CASE("a list of no axes that is an input", "[frontend]") {
  for (bool is_constant : {true, false}) {
    std::vector<Tensor> results;
    OperandForm form{"Squeeze", "x v", {1, 3, 1}};
    REQUIRE(run(form, {}, is_constant, false, results) == "");
    CHECK(results[0].shape() == Ints{3});
  }
}

TEST_CASE("shapes and counts that are constants or inputs", "[frontend]") {
  check({"Reshape",
         "x v",
         {2, 3},
         {{6}, {-1}, {3, -1}, {0, -1}, {-1, 0}, {0, 0}, {0, 3, 1}},
         {{0, 0, 0}, {0, -1, 0}, {-1, -1}, {-2, -3}, {7}, {4, -1}, {kMost}, {kLeast, -1}}});
  check({"Reshape",
         "x v",
         {0, 3},
         {{0, 3}, {0, 0}, {3, -1}, {-1}, {-1, 3}},
         {{0, -1}, {-1, 0, 0}, {0, 0, -1}, {0, 3, 0}, {5, 0, 2}, {7}}});
  check(
      {"Expand", "x v", {1, 3}, {{2, 3}, {1, 1}, {3}, {0, 3}, {4, 1, 3}}, {{-2, 3}, {2, 2}, {kMost, 3}, {2, kLeast}}});
  check({"Tile", "x v", {2, 3}, {{1, 1}, {2, 1}, {0, 2}}, {{-1, 1}, {kMost, 1}, {1, kLeast}}});
  check(
      {"Pad", "x v", {2, 3}, {{0, 1, 2, 0}, {-1, 0, 0, -1}}, {{kMost, 0, 0, 0}, {kMost, 0, kMost, 0}, {-3, 0, 0, 0}}});
  check(
      {"Split", "x v", {4, 2}, {{1, 3}, {4, 0}}, {{-1, 5}, {2, 1}, {kMost, kMost}}, "axis", {0}, {}, 13, false, "y z"});
  check({"TopK", "x v", {3, 4}, {{0}, {1}, {4}}, {{5}, {-1}, {kMost}, {kLeast}}, "axis", {1}, {}, 13, false, "y z"});
  check({"Resize", "x - - v", {1, 1, 2, 2}, {{1, 1, 4, 3}, {1, 1, 2, 2}}, {{1, 1, -1, 4}, {1, 1, kLeast, 4}}});
}

TEST_CASE("numbers that are constants or inputs", "[frontend]") {
  for (int64_t upper : {0, 1})
    check({"Trilu",
           "x v",
           {3, 4},
           {{0}, {-1}, {2}, {9}, {kMost}, {kMost - 1}, {kLeast}, {kLeast + 1}},
           {},
           "upper",
           {upper},
           {},
           14,
           true});
  check({"Slice",
         "x starts ends axes v",
         {5},
         {{1}, {-1}, {2}, {kMost}, {kLeast}},
         {{0}},
         "",
         {},
         {{"starts", {0}}, {"ends", {5}}, {"axes", {0}}}});
  OperandForm range{"Range", "scalar0 scalar1 v",
                    {1},     {{1}, {2}, {-1}, {kMost}},
                    {{0}},   "",
                    {},      {{"scalar0", {0}}, {"scalar1", {5}}},
                    18,      true};
  range.dtype = kInt64;
  check(range);
  range.constants[1].second = {kMost};
  range.good.clear();
  range.bad = {{1}, {0}};
  check(range);
  range.constants[0].second = {kLeast};
  check(range);
}

TEST_CASE("axes without elements and windows larger than their input", "[frontend]") {
  for (int64_t size : {0, 1, 4, 5, 6}) {
    std::vector<Ints> once = {{}};
    OperandForm pool{"MaxPool", "x", {1, 1, size}, {}, {}, "kernel_shape", {5}};
    (size < 5 ? pool.bad : pool.good) = once;
    for (const char* op : {"MaxPool", "AveragePool", "LpPool"}) {
      pool.op = op;
      check(pool);
    }
    OperandForm best{"ArgMax", "x", {size, 2}, {}, {}, "axis", {0}};
    (size == 0 ? best.bad : best.good) = once;
    best.dtype = kInt64;
    check(best);
    best.attr_values = {1};
    best.bad.clear();
    best.good = once;
    check(best);
    for (bool is_symbolic : {false, true}) {
      OnnxModel conv;
      conv.input("x", kFloat32, is_symbolic ? "1,1,n" : fmt::format("1,1,{}", size));
      conv.constant("w", numbers({1, 1, 5})).node("Conv", "x w", "y");
      INFO("a convolution of " << size << (is_symbolic ? " symbolic" : "") << " elements by 5");
      CHECK(conv.output("y").error({numbers({1, 1, size})}).empty() == (size >= 5));
    }
  }
}

// The folding of shape arithmetic reads operands, too.
TEST_CASE("a required input with an empty name", "[frontend]") {
  struct Row {
    const char *op, *operands;
    std::vector<int> required;
  };
  for (const Row& row : std::vector<Row>{{"Range", "a b c", {0, 1, 2}},
                                         {"Where", "t b c", {0, 1, 2}},
                                         {"Add", "a b", {0, 1}},
                                         {"Min", "a b c", {0, 1, 2}},
                                         {"Equal", "a b", {0, 1}},
                                         {"Gather", "l a", {0, 1}},
                                         {"Reshape", "l l", {0, 1}},
                                         {"Unsqueeze", "l l", {0, 1}},
                                         {"Slice", "l l l", {0, 1, 2}},
                                         {"Concat", "l l l", {0, 1, 2}},
                                         {"Expand", "a l", {0, 1}},
                                         {"ScatterElements", "l l l", {0, 1, 2}}}) {
    for (int absent : row.required) {
      OnnxModel model;
      model.input("x", kFloat32, "1").constant("l", int64s({1}));
      for (const char* name : {"a", "b", "c"}) model.constant(name, int64s({1}).reshaped(Ints{}));
      Tensor truth = Tensor::empty({}, kBool);
      truth.set_int(0, 1);
      model.constant("t", truth);
      onnx::NodeProto& node = model.node(row.op, row.operands, "y");
      if (std::string(row.op) == "Concat") set_int(node, "axis", 0);
      node.set_input(absent, "");
      std::string error = model.output("y").error({numbers({1})});
      INFO(row.op << ": " << error);
      CHECK(error.find("node 'y' (" + std::string(row.op) + "): error: input " + std::to_string(absent)) !=
            std::string::npos);
    }
  }
}

TEST_CASE("a loop whose optional inputs have empty names", "[frontend]") {
  for (const char* operands : {"trips -", "trips"}) {
    OnnxModel model;
    model.input("x", kFloat32, "2").constant("trips", int64s({3}).reshaped(Ints{}));
    onnx::NodeProto& node = model.node("Loop", operands, "y");
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("body");
    attribute.set_type(onnx::AttributeProto::GRAPH);
    onnx::GraphProto& body = *attribute.mutable_g();
    for (const char* name : {"i", "go"}) body.add_input()->set_name(name);
    for (auto [op, from, to] : {std::tuple("Identity", "go", "again"), std::tuple("Relu", "x", "r")}) {
      onnx::NodeProto& inner = *body.add_node();
      inner.set_op_type(op);
      inner.add_input(from);
      inner.add_output(to);
      body.add_output()->set_name(to);
    }
    std::string error = model.output("y").error({numbers({2})});
    INFO(operands << ": " << error);
    bool is_short = error.find("1 inputs, expected 2 or more") != std::string::npos;
    CHECK(is_short == (operands == std::string("trips")));
    CHECK(error.empty() != is_short);
  }
}

}  // namespace relaxc::test
