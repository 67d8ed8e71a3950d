// Sparse tensors of a model are read with their zeros.
#include <cstring>
#include <map>

#include "frontend/onnx/model_file.h"
#include "tests/frontend/onnx_model.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// A sparse [2, 3] of the values 5 and 7.
void fill(onnx::SparseTensorProto& sparse, const std::string& name, const std::vector<int64_t>& indices,
          const std::vector<int64_t>& shape_of_indices, const std::vector<int64_t>& dims = {2, 3}) {
  onnx::TensorProto& values = *sparse.mutable_values();
  values.set_name(name);
  values.set_data_type(onnx::TensorProto::FLOAT);
  values.add_dims(2);
  for (float value : {5.0f, 7.0f}) values.add_float_data(value);
  onnx::TensorProto& places = *sparse.mutable_indices();
  places.set_data_type(onnx::TensorProto::INT64);
  for (int64_t dim : shape_of_indices) places.add_dims(dim);
  for (int64_t index : indices) places.add_int64_data(index);
  for (int64_t dim : dims) sparse.add_dims(dim);
}
OnnxModel with_initializer(const std::vector<int64_t>& indices, const std::vector<int64_t>& shape_of_indices,
                           const std::vector<int64_t>& dims = {2, 3}) {
  OnnxModel model(17);
  model.input("x", kFloat32, "n,3");
  fill(*model.proto().mutable_graph()->add_sparse_initializer(), "w", indices, shape_of_indices, dims);
  model.node("Add", "x w", "y");
  model.output("y");
  return model;
}
const Tensor kX = Tensor::of<float>({2, 3}, kFloat32, {1, 1, 1, 1, 1, 1});
const Tensor kSum = Tensor::of<float>({2, 3}, kFloat32, {1, 6, 1, 1, 1, 8});

}  // namespace

TEST_CASE("sparse tensors have flat positions or an index per dim", "[frontend]") {
  CHECK(same_tensor(with_initializer({1, 5}, {2}).compile().run({kX})[0], kSum));
  CHECK(same_tensor(with_initializer({0, 1, 1, 2}, {2, 2}).compile().run({kX})[0], kSum));
  OnnxModel model(17);
  model.input("x", kFloat32, "2,3");
  onnx::AttributeProto& attribute = *model.node("Constant", "", "w").add_attribute();
  attribute.set_name("sparse_value");
  attribute.set_type(onnx::AttributeProto::SPARSE_TENSOR);
  fill(*attribute.mutable_sparse_tensor(), "", {1, 5}, {2});
  model.node("Add", "x w", "y");
  model.output("y");
  CHECK(same_tensor(model.compile().run({kX})[0], kSum));
}

TEST_CASE("sparse tensors may be complex", "[frontend]") {
  for (const DType dtype : {DType::complex(64), DType::complex(128)}) {
    OnnxModel model(17);
    model.input("x", dtype, "2,3");
    onnx::SparseTensorProto& sparse = *model.proto().mutable_graph()->add_sparse_initializer();
    fill(sparse, "w", {1, 5}, {2});
    onnx::TensorProto& values = *sparse.mutable_values();
    values.set_data_type(onnx_import::element_type_of_dtype(dtype));
    values.clear_float_data();
    for (const double part : {5.0, -1.0, 7.0, 0.5}) {
      dtype == DType::complex(64) ? values.add_float_data(static_cast<float>(part)) : values.add_double_data(part);
    }
    set_int(model.node("Concat", "x w", "y"), "axis", 0);
    model.output("y", dtype);
    Tensor zeros = Tensor::empty({2, 3}, dtype);
    std::memset(zeros.raw(), 0, static_cast<size_t>(zeros.bytes()));
    const Tensor parts = parts_of(model.compile().run({zeros})[0]);
    REQUIRE(parts.shape() == std::vector<int64_t>{4, 3, 2});
    const std::map<int64_t, double> expected = {{14, 5}, {15, -1}, {22, 7}, {23, 0.5}};
    for (int64_t i = 0; i < parts.size(); ++i) CHECK(parts.as_double(i) == (expected.contains(i) ? expected.at(i) : 0));
    values.add_float_data(1);
    values.add_double_data(1);
    CHECK(model.error({zeros}).find("5 elements of data, expected 4") != std::string::npos);
  }
}

TEST_CASE("a sparse tensor as an input of a graph says what to do", "[frontend]") {
  OnnxModel model(17);
  onnx::ValueInfoProto& input = *model.proto().mutable_graph()->add_input();
  input.set_name("s");
  input.mutable_type()->mutable_sparse_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  model.node("Identity", "s", "y");
  model.output("y");
  CHECK(model.error({kX}).find("'s' is a sparse tensor, and no operator of ONNX takes one; declare it as a dense") !=
        std::string::npos);
}

TEST_CASE("sparse tensors that are not ones are refused", "[frontend]") {
  auto refused = [](const OnnxModel& model, const std::string& why) {
    std::string error = model.error({kX});
    INFO(error);
    CHECK(error.find(why) != std::string::npos);
  };
  refused(with_initializer({1, 6}, {2}), "position 6 is outside");
  refused(with_initializer({-1, 5}, {2}), "position -1 is outside");
  refused(with_initializer({0, 1, 1, 3}, {2, 2}), "index 3 of a sparse tensor is out of range for dim 3");
  refused(with_initializer({1, 5, 2}, {3}), "has 2 values and indices");
  refused(with_initializer({1, 5}, {2}, {-2, 3}), "too large");
  refused(with_initializer({1, 5}, {2}, {int64_t{1} << 40, int64_t{1} << 40}), "too large");
}

}  // namespace relaxc::test
