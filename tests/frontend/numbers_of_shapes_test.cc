// Arithmetic on the result of Shape: the importer computes it with symbolic dims where it can. Two steps after each
// other must give what they give for the same numbers as an input of the model, which kernels compute.
#include <cmath>

#include "frontend/onnx/model_file.h"
#include "tests/frontend/onnx_model.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// A node of one or two operands; one of them is a constant unless the node is unary.
struct NodeForm {
  const char* op;
  enum Constant : uint8_t { kNone, kLast, kFirst } constant = kNone;
  std::vector<double> values = {};   // of the constant
  std::vector<DType> dtypes = {};    // of the operand; all where it is empty
  std::optional<DType> result = {};  // of Cast and comparisons
};
const std::vector<DType> kFloats = {kFloat32, kFloat64};
const std::vector<NodeForm> kNodes = {
    {"Abs"},
    {"Neg"},
    {"Sign"},
    {"Identity"},
    {.op = "Sqrt", .dtypes = kFloats},
    {.op = "Floor", .dtypes = kFloats},
    {.op = "Ceil", .dtypes = kFloats},
    {.op = "Round", .dtypes = kFloats},
    {.op = "Exp", .dtypes = kFloats},
    {.op = "Log", .dtypes = kFloats},
    {.op = "Reciprocal", .dtypes = kFloats},
    {.op = "Relu", .dtypes = kFloats},
    {.op = "Sigmoid", .dtypes = kFloats},
    {.op = "Erf", .dtypes = {kFloat32}},
    {"Add", NodeForm::kLast, {3}},
    {"Sub", NodeForm::kLast, {3}},
    {"Sub", NodeForm::kFirst, {2}},
    {"Mul", NodeForm::kLast, {-2}},
    {"Mul", NodeForm::kLast, {2.5}, kFloats},
    {"Div", NodeForm::kLast, {2}},
    {"Div", NodeForm::kLast, {-3}},
    {"Div", NodeForm::kFirst, {7}, kFloats},
    {"Mod", NodeForm::kLast, {3}, {kInt64, kInt32}},
    {"Pow", NodeForm::kLast, {2}, kFloats},
    {"Max", NodeForm::kLast, {3}},
    {"Min", NodeForm::kFirst, {3}},
    {"Gather", NodeForm::kLast, {-1, 0}},
    {"Concat", NodeForm::kFirst, {4}},
    {"Less", NodeForm::kLast, {3}, {}, kBool},
    {"Equal", NodeForm::kLast, {3}, {}, kBool},
    {.op = "Cast", .result = kInt64},
    {.op = "Cast", .result = kInt32},
    {.op = "Cast", .result = kFloat32},
    {.op = "Cast", .result = kFloat64},
    {.op = "Cast", .result = kBool},
    {"ReduceProd"},
    {"ReduceMax"},
    {.op = "ReduceMean", .dtypes = kFloats},
};
bool takes_dtype(const NodeForm& form, DType dtype) {
  bool is_cast = form.op == std::string("Cast");
  return (form.dtypes.empty() && (dtype != kBool || is_cast)) || std::ranges::count(form.dtypes, dtype);
}

// Adds the node and returns the dtype of its result, which is called `result`.
DType add_form(OnnxModel& model, const NodeForm& form, const std::string& operand, DType dtype,
               const std::string& result) {
  std::string operands = operand, op = form.op;
  if (form.constant != NodeForm::kNone) {
    std::string constant = result + "_constant";
    Tensor tensor = Tensor::empty({static_cast<int64_t>(form.values.size())}, op == "Gather" ? kInt64 : dtype);
    for (size_t i = 0; i < form.values.size(); ++i) tensor.set_double(static_cast<int64_t>(i), form.values[i]);
    model.constant(constant, tensor);
    operands = form.constant == NodeForm::kLast ? operand + " " + constant : constant + " " + operand;
  }
  onnx::NodeProto& node = model.node(op, operands, result);
  DType result_dtype = form.result.value_or(dtype);
  if (op == "Cast") set_int(node, "to", onnx_import::element_type_of_dtype(result_dtype));
  if (op == "Concat") set_int(node, "axis", 0);
  return result_dtype;
}

// The first node and, on its result, each other one. "s" is the shape of "x", or an input.
OnnxModel model_on_numbers(DType dtype, const NodeForm& first, bool is_input) {
  OnnxModel model;
  model.input(is_input ? "s" : "x", is_input ? kInt64 : kFloat32, is_input ? "3" : "a,b,c");
  if (!is_input) model.node("Shape", "x", "s");
  set_int(model.node("Cast", "s", "cast"), "to", onnx_import::element_type_of_dtype(dtype));
  DType second_dtype = add_form(model, first, "cast", dtype, "first");
  model.output("first", second_dtype);
  for (size_t i = 0; i < kNodes.size(); ++i) {
    if (!takes_dtype(kNodes[i], second_dtype)) continue;
    std::string name = "y" + std::to_string(i);
    model.output(name, add_form(model, kNodes[i], "first", second_dtype, name));
  }
  return model;
}

bool close_enough(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  for (int64_t i = 0; i < a.size(); ++i) {
    double x = a.as_double(i), y = b.as_double(i);
    bool is_same = x == y || (std::isnan(x) && std::isnan(y));
    if (!is_same && !(std::abs(x - y) <= 1e-5 * std::max(std::abs(x), std::abs(y)))) return false;
  }
  return true;
}

std::string contents_of(const Tensor& tensor) {
  std::string text = describe(tensor);
  for (int64_t i = 0; i < tensor.size(); ++i) text += fmt::format(" {}", tensor.as_double(i));
  return text;
}

}  // namespace

TEST_CASE("arithmetic on the dims of a shape gives what it gives on numbers", "[frontend]") {
  int compared = 0;
  for (DType dtype : {kInt64, kInt32, kFloat32, kFloat64}) {
    for (const NodeForm& first : kNodes) {
      if (!takes_dtype(first, dtype)) continue;
      OnnxModel of_shape = model_on_numbers(dtype, first, false);
      Session symbolic = of_shape.compile(), computed = model_on_numbers(dtype, first, true).compile();
      for (const std::vector<int64_t>& dims : {std::vector<int64_t>{2, 3, 5}, {7, 1, 4}}) {
        std::vector<Tensor> a = symbolic.run({numbers(dims)}), b = computed.run({int64s(dims)});
        REQUIRE(a.size() == b.size());
        for (size_t i = 0; i < a.size(); ++i) {
          INFO(to_string(dtype) << ", " << first.op << ", then "
                                << of_shape.proto().graph().output(static_cast<int>(i)).name() << ": "
                                << contents_of(a[i]) << " and " << contents_of(b[i]));
          CHECK(close_enough(a[i], b[i]));
          ++compared;
        }
      }
    }
  }
  CHECK(compared > 4000);
}

}  // namespace relaxc::test
