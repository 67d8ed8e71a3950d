// ONNX models in ONNX's textual format (onnx/docs/Syntax.md), as text tests hold them:
//
//   <ir_version: 8, opset_import: ["": 18]>
//   test (float[N, 3] x) => (float[] y) {
//     w = Constant <value = float[3] {1, 2, 3}> ()
//     y = Add (x, w)
//   }
//
// Inputs and outputs may also be seq(T), optional(T) and map(K, T), where T is such a type or float, double, int64,
// string.
#pragma once
#include <onnx/onnx_pb.h>

#include <string>

#include "frontend/onnx/import.h"

namespace relaxc::test {

// Returns whether a text is a model: its first character behind comments is "<".
bool is_onnx_text(const std::string& text);
// Return the model of a text, or its module. They throw CompileError. A node is called like its first output, and
// errors of a node have the line on which it begins.
onnx::ModelProto read_onnx_text(const std::string& text, const std::string& name);
IRModule import_onnx_text(const std::string& text, const std::string& name, const ImportOptions& options = {});

}  // namespace relaxc::test
