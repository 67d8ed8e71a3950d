// ONNX models of a few nodes, written down in a test and run through the compiler.
#pragma once
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "codegen/compile.h"

namespace relaxc::test {

class OnnxModel {
 public:
  explicit OnnxModel(int64_t opset = 18);
  // Dims as text: "n,3,4"; letters are symbolic.
  OnnxModel& input(const std::string& name, DType dtype, const std::string& dims);
  OnnxModel& constant(const std::string& name, const Tensor& tensor);
  // Names separated by spaces; "-" is an absent input. A node is called like its first output.
  onnx::NodeProto& node(const std::string& op_type, const std::string& inputs, const std::string& outputs);
  // Without a declared shape.
  OnnxModel& output(const std::string& name, DType dtype = kFloat32);

  onnx::ModelProto& proto() { return proto_; }
  IRModule import(const CompileSettings& settings = {}) const;
  Session compile(const CompileSettings& settings = {}) const;
  // The error of compiling or running; empty when there is none.
  std::string error(const std::vector<Tensor>& inputs, const CompileSettings& settings = {}) const;

 private:
  onnx::ModelProto proto_;
};

onnx::NodeProto& set_int(onnx::NodeProto& node, const std::string& name, int64_t value);
onnx::NodeProto& set_ints(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values);
onnx::NodeProto& set_string(onnx::NodeProto& node, const std::string& name, const std::string& value);

Tensor int64s(const std::vector<int64_t>& values);
// 0.5, -1, 1.5, ... of that shape: sums of them are exact.
Tensor numbers(const std::vector<int64_t>& shape, DType dtype = kFloat32);
bool same_tensor(const Tensor& a, const Tensor& b);

}  // namespace relaxc::test
