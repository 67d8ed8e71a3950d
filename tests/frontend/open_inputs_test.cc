// Graph inputs that say little of their types: lists of unknown length, inputs of unknown rank, and types that the
// caller gives. Such a model gives what the same model gives with constants and full types.
#include "ir/type_relation.h"
#include "support/joined.h"
#include "tests/frontend/onnx_model.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A node on x (and theta or the like, as `more`) with lists of integers, which are inputs of length k or constants.
struct ListCase {
  std::string op;
  int64_t opset;
  std::string operands;  // "x pads - axes"
  std::vector<int64_t> x;
  std::vector<std::pair<std::string, std::vector<int64_t>>> lists;
  int64_t declared_rank = -1;  // of the result, where only that tells the length of a list
  std::vector<std::pair<std::string, std::vector<int64_t>>> attributes = {};
  int outputs = 1;
  std::vector<std::string> as_floats = {};  // lists that are scales
};

Tensor list_of(const ListCase& form, const std::string& name, const std::vector<int64_t>& values) {
  if (std::ranges::count(form.as_floats, name) == 0) return int64s(values);
  std::vector<float> floats(values.begin(), values.end());
  return Tensor::of<float>({std::ssize(values)}, kFloat32, floats);
}

OnnxModel model_of(const ListCase& form, bool open) {
  OnnxModel model(form.opset);
  std::vector<std::string> dims;
  for (size_t d = 0; d < form.x.size(); ++d) dims.push_back(fmt::format("x{}", d));
  model.input("x", kFloat32, open ? joined(dims, ",") : joined(form.x, ","));
  for (const auto& [name, values] : form.lists) {
    Tensor list = list_of(form, name, values);
    open ? model.input(name, list.dtype(), "k_" + name) : model.constant(name, list);
  }
  std::string results = "y";
  for (int i = 1; i < form.outputs; ++i) results += fmt::format(" y{}", i);
  onnx::NodeProto& node = model.node(form.op, form.operands, results);
  for (const auto& [name, values] : form.attributes)
    values.size() == 1 && name != "axes" ? set_int(node, name, values[0]) : set_ints(node, name, values);
  model.output("y");
  if (form.declared_rank >= 0) {
    auto* shape =
        model.proto().mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int64_t d = 0; d < form.declared_rank; ++d) shape->add_dim();
  }
  return model;
}

const ListCase kCases[] = {
    {"Pad", 18, "x pads", {2, 3}, {{"pads", {1, 0, 0, 2}}}},
    {"Pad", 18, "x pads - axes", {2, 3}, {{"pads", {1, 2}}, {"axes", {-1}}}},
    {"Tile", 13, "x repeats", {2, 3}, {{"repeats", {2, 1}}}},
    {"Split", 18, "x split", {5, 2}, {{"split", {2, 3}}}, -1, {}, 2},
    {"Slice", 13, "x starts ends", {4, 3}, {{"starts", {1}}, {"ends", {-1}}}},
    {"Slice", 13, "x starts ends", {4, 3}, {{"starts", {1, 1}}, {"ends", {3, 3}}}},
    {"Slice", 13, "x starts ends axes", {4, 3}, {{"starts", {1}}, {"ends", {3}}, {"axes", {-1}}}},
    {"Slice",
     13,
     "x starts ends axes steps",
     {4, 3},
     {{"starts", {3, 0}}, {"ends", {0, 3}}, {"axes", {0, 1}}, {"steps", {-2, 2}}}},
    {"Resize", 18, "x - scales", {1, 1, 2, 3}, {{"scales", {1, 1, 2, 2}}}, -1, {}, 1, {"scales"}},
    {"Resize", 18, "x - - sizes", {1, 1, 2, 3}, {{"sizes", {3, 6}}}, -1, {{"axes", {2, 3}}}},
    {"Upsample", 9, "x scales", {1, 1, 2, 3}, {{"scales", {1, 1, 2, 3}}}, -1, {}, 1, {"scales"}},
    {"CenterCropPad", 18, "x shape", {4, 3}, {{"shape", {2, 5}}}},
    {"CenterCropPad", 18, "x shape", {4, 3}, {{"shape", {5}}}, -1, {{"axes", {1}}}},
    {"Col2Im", 18, "x image block", {1, 4, 4}, {{"image", {3, 3}}, {"block", {2, 2}}}, 4},
    {"Col2Im", 18, "x image block", {1, 4, 4}, {{"image", {3, 3}}, {"block", {2, 2}}}, -1, {{"strides", {1, 1}}}},
    {"AffineGrid", 20, "x size", {2, 2, 3}, {{"size", {2, 1, 3, 4}}}, 4},
    {"TopK", 11, "x k", {2, 3}, {{"k", {2}}}, -1, {}, 2},
    {"Reshape", 14, "x shape", {2, 3}, {{"shape", {3, -1, 1}}}, 3},
    {"Expand", 13, "x shape", {2, 1}, {{"shape", {3}}}, 2},
    {"Expand", 13, "x shape", {2, 1}, {{"shape", {4, 1, 3}}}, 3},
    {"Squeeze", 13, "x axes", {1, 3, 1}, {{"axes", {0}}}, 2},
    {"Unsqueeze", 13, "x axes", {2, 3}, {{"axes", {0, -1}}}, 4},
    {"ReduceSum", 13, "x axes", {2, 3, 2}, {{"axes", {1}}}, 2, {{"keepdims", {0}}}},
    {"ReduceMax", 18, "x axes", {2, 3, 2}, {{"axes", {1, -1}}}, 1, {{"keepdims", {0}}}},
};

OnnxModel without_shapes(OnnxModel model) {
  for (auto& input : *model.proto().mutable_graph()->mutable_input())
    input.mutable_type()->mutable_tensor_type()->clear_shape();
  return model;
}
std::string type_of_input(const OnnxModel& model) {
  FunctionRef main = cast<Function>(model.import().functions.at("main"));
  const Type type = main->params.at(0).type();
  return fmt::format("{}", known_rank(type));
}

}  // namespace

TEST_CASE("lists of unknown length", "[frontend]") {
  for (const ListCase& form : kCases) {
    std::vector<Tensor> inputs = {numbers(form.x)};
    for (const auto& [name, values] : form.lists) inputs.push_back(list_of(form, name, values));
    INFO(form.op << " " << form.operands << ": " << model_of(form, true).error(inputs));
    Tensor expected = model_of(form, false).compile().run({inputs[0]})[0];
    CHECK(same_tensor(model_of(form, true).compile().run(inputs)[0], expected));
    if (form.op == "Slice" || form.op == "ReduceSum") continue;  // take fewer bounds than dims, and an axis twice
    inputs.back() = list_of(form, form.lists.back().first, std::vector<int64_t>(7, 1));
    const std::string error = model_of(form, true).error(inputs);
    INFO(error);
    CHECK(!error.empty());
  }
}

TEST_CASE("a list whose length nothing tells is refused with the remedy", "[frontend]") {
  OnnxModel model(14);
  model.input("x", kFloat32, "n,m").input("shape", kInt64, "k").node("Reshape", "x shape", "y");
  model.output("y");
  const std::string error = model.error({numbers({2, 3}), int64s({3, 2})});
  CHECK(contains(error, "node 'y' (Reshape): unsupported: the length of a list, and with it the rank of the result"));
  CHECK(contains(error, "--type 'shape=int64[3]'"));
  CompileSettings settings;
  settings.types.emplace("shape", tensor_type({int_imm(2)}, kInt64));
  CHECK(model.compile(settings).run({numbers({2, 3}), int64s({3, 2})})[0].shape() == vm::Shape{3, 2});
}

TEST_CASE("ranks of graph inputs follow from the operators", "[frontend]") {
  OnnxModel conv(18);
  conv.input("x", kFloat32, "n").constant("w", numbers({2, 1, 3, 3}));
  conv.node("Relu", "x", "r"), conv.node("Conv", "r w", "y");
  conv.output("y");
  CHECK(type_of_input(without_shapes(conv)) == "4");
  Tensor x = numbers({1, 1, 5, 4});
  CHECK(same_tensor(without_shapes(conv).compile().run({x})[0].reshaped({1, 2, 3, 2}),
                    without_shapes(conv).compile().run({x})[0]));

  OnnxModel moved(18);
  moved.input("x", kFloat32, "n");
  set_ints(moved.node("Transpose", "x", "t"), "perm", {1, 0, 2});
  moved.constant("axes", int64s({0})).node("Squeeze", "t axes", "y");
  moved.output("y");
  CHECK(type_of_input(without_shapes(moved)) == "3");

  OnnxModel sum(18);  // the result has rank 3 and the bias 1
  sum.input("x", kFloat32, "n").constant("b", numbers({4})).node("Add", "x b", "s");
  sum.constant("axes", int64s({0})).node("Unsqueeze", "s axes", "y");
  sum.output("y");
  auto* shape = sum.proto().mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int d = 0; d < 4; ++d) shape->add_dim();
  CHECK(type_of_input(without_shapes(sum)) == "3");

  OnnxModel square(18);
  square.input("x", kFloat32, "n").node("Mul", "x x", "y");
  square.output("y");
  auto* result =
      square.proto().mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int d = 0; d < 3; ++d) result->add_dim();
  CHECK(type_of_input(without_shapes(square)) == "3");
}

TEST_CASE("a scan over a batch whose size the run tells", "[frontend]") {
  OnnxModel model(8);
  model.input("initial", kFloat32, "b,2").input("x", kFloat32, "b,n,2");
  onnx::NodeProto& scan = set_int(model.node("Scan", "- initial x", "last sums"), "num_scan_inputs", 1);
  onnx::AttributeProto& body = *scan.add_attribute();
  body.set_name("body");
  body.set_type(onnx::AttributeProto::GRAPH);
  onnx::GraphProto& graph = *body.mutable_g();
  for (const char* name : {"total", "row"}) graph.add_input()->set_name(name);
  for (const char* name : {"next", "seen"}) graph.add_output()->set_name(name);
  onnx::NodeProto &add = *graph.add_node(), &same = *graph.add_node();
  add.set_op_type("Add"), add.add_input("total"), add.add_input("row"), add.add_output("next");
  same.set_op_type("Identity"), same.add_input("next"), same.add_output("seen");
  model.output("last").output("sums");
  Session session = model.compile();
  Tensor initial = Tensor::of<float>({2, 2}, kFloat32, {0, 0, 10, 20});
  Tensor x = Tensor::of<float>({2, 3, 2}, kFloat32, {1, 2, 3, 4, 5, 6, 1, 1, 1, 1, 1, 1});
  std::vector<Tensor> results = session.run({initial, x});
  CHECK(same_tensor(results[0], Tensor::of<float>({2, 2}, kFloat32, {9, 12, 13, 23})));
  CHECK(same_tensor(results[1], Tensor::of<float>({2, 3, 2}, kFloat32, {1, 2, 4, 6, 9, 12, 11, 21, 12, 22, 13, 23})));
  results = session.run({numbers({0, 2}), numbers({0, 3, 2})});
  CHECK(results[1].shape() == vm::Shape{0, 3, 2});
  CHECK_THROWS(session.run({numbers({1, 2}), x}));
}

TEST_CASE("types of graph inputs that the caller gives", "[frontend]") {
  OnnxModel model(18);
  model.input("x", kFloat32, "n,m").input("y", kFloat32, "n").node("Relu", "x", "r");
  model.node("Exp", "y", "e");
  model.output("r").output("e");
  OnnxModel open = without_shapes(model);
  CHECK(contains(open.error({}),
                 "graph input 'x': unsupported: the model does not declare its rank; give its type: "
                 "--type 'x=float32[n, 4]'"));
  auto given = [](const std::string& name, std::vector<Expr> dims, std::optional<DType> dtype = kFloat32) {
    CompileSettings settings;
    settings.types.emplace(name, tensor_type(std::move(dims), dtype));
    return settings;
  };
  CompileSettings both = given("x", {make_dim("batch"), int_imm(2)});
  both.types.emplace("y", tensor_type({make_dim("batch")}, kFloat32));
  Session session = open.compile(both);
  CHECK(session.run({numbers({3, 2}), numbers({3})})[0].shape() == vm::Shape{3, 2});
  CHECK_THROWS(session.run({numbers({3, 2}), numbers({4})}));  // they share the dim
  // A dim of the model that one type makes a number is that number everywhere.
  CHECK(contains(model.error({numbers({3, 2}), numbers({4})}, given("x", {int_imm(3), make_dim("m")})), "'y'"));
  // Types may tell apart what the model gives one name, and the name stays for the rest.
  CompileSettings apart = given("x", {make_dim("a"), int_imm(2)});
  apart.types.emplace("y", tensor_type({make_dim("n")}, kFloat32));
  CHECK(model.compile(apart).run({numbers({3, 2}), numbers({4})})[1].shape() == vm::Shape{4});
  apart.types.insert_or_assign("y", tensor_type({int_imm(4)}, kFloat32));
  CHECK(model.compile(apart).run({numbers({3, 2}), numbers({4})})[0].shape() == vm::Shape{3, 2});
  CHECK(contains(model.error({}, given("x", {int_imm(3)})), "the given type has rank 1, the model declares rank 2"));
  CHECK(contains(model.error({}, given("x", {int_imm(3), int_imm(3)}, kInt64)),
                 "the given type is int64, the model declares float32"));
  CHECK(contains(model.error({}, given("yy", {int_imm(3)})), "the model has no such input; did you mean 'y'?"));
}

}  // namespace relaxc::test
