// Axes that are inputs of the model: each choice of them must give what the same model gives with them as constants,
// and those that have no meaning must be refused.
#include <cmath>

#include "support/joined.h"
#include "tests/frontend/onnx_model.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

const std::vector<int64_t> kShape = {3, 1, 4};

// The subsets of `count` axes, every other one counted from the end.
std::vector<std::vector<int64_t>> choices(int64_t rank, size_t count) {
  std::vector<std::vector<int64_t>> result;
  for (uint32_t mask = 0; mask < (1u << rank); ++mask) {
    if (static_cast<size_t>(__builtin_popcount(mask)) != count) continue;
    std::vector<int64_t> axes;
    for (int64_t d = 0; d < rank; ++d) {
      if (mask >> d & 1) axes.push_back(d % 2 ? d - rank : d);
    }
    std::reverse(axes.begin(), axes.end());
    result.push_back(axes);
  }
  return result;
}

// A node with its axes as an input, or as a constant where they are given.
struct ReduceForm {
  std::string op;
  int64_t opset = 18;
  std::string operands;  // "x axes"
  std::vector<std::pair<std::string, Tensor>> constants = {};
  std::optional<int64_t> keepdims = {};
  bool any_number = false;  // the number of axes is the run's, too
};
OnnxModel model_of(const ReduceForm& form, const std::string& dims, size_t count,
                   const std::optional<std::vector<int64_t>>& axes) {
  OnnxModel model(form.opset);
  model.input("x", kFloat32, dims);
  if (axes) model.constant("axes", int64s(*axes));
  if (!axes) model.input("axes", kInt64, form.any_number ? "a" : std::to_string(count));
  for (const auto& [name, tensor] : form.constants) model.constant(name, tensor);
  onnx::NodeProto& node = model.node(form.op, form.operands, "y");
  if (form.keepdims) set_int(node, "keepdims", *form.keepdims);
  model.output("y");
  return model;
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Returns whether the results are the same. Sums of exponentials are rounded, in an order that depends on the axes.
bool agree(const ReduceForm& form, const Tensor& a, const Tensor& b) {
  if (form.op != "ReduceLogSumExp") return same_tensor(a, b);
  bool result = a.shape() == b.shape() && a.dtype() == b.dtype();
  for (int64_t i = 0; result && i < a.size(); ++i)
    result = std::abs(a.as_double(i) - b.as_double(i)) <= 1e-6 * std::max(1.0, std::abs(b.as_double(i)));
  return result;
}

void check_all_choices(const ReduceForm& form, int64_t rank, size_t count) {
  Tensor x = numbers(kShape);
  for (const char* dims : {"3,1,4", "n,m,k"}) {
    Session session = model_of(form, dims, count, std::nullopt).compile();
    for (const std::vector<int64_t>& axes : choices(rank, count)) {
      INFO(form.op << " with dims " << dims << ", axes " << joined(axes));
      OnnxModel known = model_of(form, "3,1,4", count, axes);
      std::string error = known.error({x});
      if (!error.empty()) {  // a Squeeze of a dim that is not 1
        CHECK_THROWS(session.run({x, int64s(axes)}));
        continue;
      }
      CHECK(agree(form, session.run({x, int64s(axes)})[0], known.compile().run({x})[0]));
    }
    for (int64_t wrong : {rank, -rank - 1, INT64_MAX, INT64_MIN}) {
      std::vector<int64_t> axes(count, 0);
      axes.back() = wrong;
      std::string error = model_of(form, dims, count, std::nullopt).error({x, int64s(axes)});
      INFO(error);
      CHECK(contains(error, fmt::format("node 'y' ({}): axes[{}] is {}, expected {} to {}", form.op, count - 1, wrong,
                                        -rank, rank - 1)));
    }
  }
}

}  // namespace

TEST_CASE("reductions over axes that the run gives", "[frontend]") {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                         "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"}) {
    for (int64_t keepdims : {0, 1}) {
      // Every number of axes for one operator, two for the others.
      for (size_t count = op == std::string("ReduceSum") ? 1 : 2; count <= (op == std::string("ReduceSum") ? 3u : 2u);
           ++count)
        check_all_choices({op, 18, "x axes", {}, keepdims}, 3, count);
    }
  }
}

TEST_CASE("reductions over a number of axes that the run gives", "[frontend]") {
  for (const char* op : {"ReduceSum", "ReduceLogSumExp"}) {
    ReduceForm form{op, 18, "x axes", {}, 1, true};
    for (size_t count : {1, 2, 3}) check_all_choices(form, 3, count);
    Tensor x = numbers(kShape), none = int64s({});
    CHECK(same_tensor(model_of(form, "n,m,k", 0, std::nullopt).compile().run({x, none})[0],
                      model_of(form, "3,1,4", 0, std::vector<int64_t>{}).compile().run({x})[0]));
    OnnxModel noop = model_of(form, "n,m,k", 0, std::nullopt);
    set_int(*noop.proto().mutable_graph()->mutable_node(0), "noop_with_empty_axes", 1);
    CHECK(noop.compile().run({x, none})[0].shape() == kShape);
    form.keepdims = 0;
    CHECK(contains(model_of(form, "n,m,k", 1, std::nullopt).error({x, int64s({1})}), "only known at run time"));
  }
}

TEST_CASE("squeeze, unsqueeze, pad, slice and cumsum at axes that the run gives", "[frontend]") {
  check_all_choices({"Squeeze", 13, "x axes"}, 3, 1);
  check_all_choices({"Unsqueeze", 13, "x axes"}, 4, 1);
  check_all_choices({"Unsqueeze", 13, "x axes"}, 5, 2);
  check_all_choices({"Pad", 18, "x pads - axes", {{"pads", int64s({1, 0, 0, 2})}}}, 3, 2);
  check_all_choices({"Slice", 13, "x starts ends axes", {{"starts", int64s({1, 0})}, {"ends", int64s({3, 1})}}}, 3, 2);
  check_all_choices({"CumSum", 14, "x axes"}, 3, 1);
}

// With a size of 1 ONNX's result has another rank.
TEST_CASE("a squeeze without axes refuses a symbolic dim that is 1 in the run", "[frontend]") {
  OnnxModel model(13);
  model.input("x", kFloat32, "n,1,3").node("Squeeze", "x", "y");
  model.output("y");
  CHECK(model.compile().run({numbers({2, 1, 3})})[0].shape() == std::vector<int64_t>{2, 3});
  CHECK(model.compile().run({numbers({0, 1, 3})})[0].shape() == std::vector<int64_t>{0, 3});
  CHECK(contains(model.error({numbers({1, 1, 3})}),
                 "node 'y' (Squeeze): symbolic axis that squeeze without axes keeps: 0 and 1"));
}

TEST_CASE("a sequence that is longer than the time axis, or shorter than nothing", "[frontend]") {
  for (const char* dims : {"4,2", "n,m"}) {
    OnnxModel model(10);
    model.input("x", kFloat32, dims).input("lengths", kInt64, "2").node("ReverseSequence", "x lengths", "y");
    model.output("y");
    Tensor x = numbers({4, 2});
    CHECK(model.error({x, int64s({4, 0})}).empty());
    const std::string longer = model.error({x, int64s({5, 1})}), shorter = model.error({x, int64s({2, -1})});
    CHECK(contains(longer, "node 'y' (ReverseSequence): longest sequence: expected at most "));
    CHECK(contains(longer, "4, found 5"));
    CHECK(contains(shorter, "node 'y' (ReverseSequence): shortest sequence: expected at least 0, found -1"));
  }
}

TEST_CASE("an axis named twice, and a declared shape that the axes contradict", "[frontend]") {
  Tensor x = numbers({3, 4, 5, 6});
  for (const char* op : {"ReduceSum", "Unsqueeze", "Squeeze"}) {
    ReduceForm form{op, 13, "x axes", {}, {}};
    if (op == std::string("ReduceSum")) form.keepdims = 0;  // else the rank does not depend on the axes
    CHECK(contains(model_of(form, "3,1,4", 2, std::nullopt).error({numbers(kShape), int64s({1, 1})}),
                   "number of different axes: 1 and 2"));
  }
  // The declaration is not believed: sums over axis 1.
  OnnxModel model(13);
  model.input("x", kFloat32, "3,4,5,6").input("axes", kInt64, "1").node("ReduceSum", "x axes", "y");
  model.output("y");
  auto& declared = *model.proto().mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
  for (int64_t dim : {3, 4, 1, 6}) declared.mutable_shape()->add_dim()->set_dim_value(dim);
  CHECK(model.compile().run({x, int64s({1})})[0].shape() == std::vector<int64_t>{3, 1, 5, 6});
}

}  // namespace relaxc::test
