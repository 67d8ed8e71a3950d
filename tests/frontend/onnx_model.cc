#include "tests/frontend/onnx_model.h"

#include <cstring>
#include <sstream>

#include "frontend/onnx/import.h"
#include "frontend/onnx/model_file.h"

namespace relaxc::test {

namespace {

onnx::AttributeProto& add_attribute(onnx::NodeProto& node, const std::string& name,
                                    onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

}  // namespace

OnnxModel::OnnxModel(int64_t opset) {
  proto_.set_ir_version(8);
  proto_.add_opset_import()->set_version(opset);
  proto_.mutable_graph()->set_name("test");
}

OnnxModel& OnnxModel::input(const std::string& name, DType dtype, const std::string& dims) {
  onnx::ValueInfoProto& info = *proto_.mutable_graph()->add_input();
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx_import::element_type_of_dtype(dtype));
  tensor.mutable_shape();
  std::istringstream stream(dims);
  for (std::string dim; std::getline(stream, dim, ',');) {
    auto& proto = *tensor.mutable_shape()->add_dim();
    if (std::isdigit(static_cast<unsigned char>(dim[0]))) {
      proto.set_dim_value(std::stoll(dim));
    } else {
      proto.set_dim_param(dim);
    }
  }
  return *this;
}

OnnxModel& OnnxModel::constant(const std::string& name, const Tensor& tensor) {
  onnx::TensorProto& proto = *proto_.mutable_graph()->add_initializer();
  proto.set_name(name);
  proto.set_data_type(onnx_import::element_type_of_dtype(tensor.dtype()));
  for (int64_t dim : tensor.shape()) proto.add_dims(dim);
  proto.set_raw_data(tensor.raw(), static_cast<size_t>(tensor.bytes()));
  return *this;
}

onnx::NodeProto& OnnxModel::node(const std::string& op_type, const std::string& inputs, const std::string& outputs) {
  onnx::NodeProto& node = *proto_.mutable_graph()->add_node();
  node.set_op_type(op_type);
  std::istringstream in(inputs), out(outputs);
  for (std::string name; in >> name;) node.add_input(name == "-" ? "" : name);
  for (std::string name; out >> name;) node.add_output(name);
  node.set_name(node.output(0));
  return node;
}

OnnxModel& OnnxModel::output(const std::string& name, DType dtype) {
  onnx::ValueInfoProto& info = *proto_.mutable_graph()->add_output();
  info.set_name(name);
  info.mutable_type()->mutable_tensor_type()->set_elem_type(onnx_import::element_type_of_dtype(dtype));
  return *this;
}

IRModule OnnxModel::import(const CompileSettings& settings) const {
  std::string bytes = proto_.SerializeAsString();
  ImportOptions options;
  options.dims = settings.dims;
  options.types = settings.types;
  return import_onnx_bytes(std::as_bytes(std::span(bytes)), "test.onnx", op_table(), options);
}

Session OnnxModel::compile(const CompileSettings& settings) const {
  CompileSettings one_job = settings;
  one_job.jobs = 1;
  one_job.opt_level = 1;
  return Session(relaxc::compile(import(settings), one_job).load(), {.threads = 1});
}

std::string OnnxModel::error(const std::vector<Tensor>& inputs, const CompileSettings& settings) const {
  try {
    compile(settings).run(inputs);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

onnx::NodeProto& set_int(onnx::NodeProto& node, const std::string& name, int64_t value) {
  add_attribute(node, name, onnx::AttributeProto::INT).set_i(value);
  return node;
}
onnx::NodeProto& set_ints(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto& attribute = add_attribute(node, name, onnx::AttributeProto::INTS);
  for (int64_t value : values) attribute.add_ints(value);
  return node;
}
onnx::NodeProto& set_string(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  add_attribute(node, name, onnx::AttributeProto::STRING).set_s(value);
  return node;
}

Tensor int64s(const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, kInt64, values);
}
Tensor numbers(const std::vector<int64_t>& shape, DType dtype) {
  Tensor tensor = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    double value = static_cast<double>(i * 7 % 13 + 1) / 2 * (i % 2 ? -1 : 1);
    dtype.is_float() ? tensor.set_double(i, value) : tensor.set_int(i, static_cast<int64_t>(value * 2));
  }
  return tensor;
}
bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0);
}

}  // namespace relaxc::test
