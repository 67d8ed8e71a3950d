// What an ONNX file holds, whether it can be compiled or not.
#pragma once
#include "frontend/onnx/import.h"
#include "ir/attrs.h"

namespace relaxc {

// Returns ir_version, producer, opsets, inputs, outputs, dims, weights {tensors, bytes} and operators, each with its
// domain, opset, how often it occurs (in branches, bodies and functions, too) and whether it is "built in", a "function
// of the model", or "unsupported". Reads only the structure of the file. Throws a CompileError when it is no model.
Attrs summarize_onnx(const std::string& path, const ImportOptions& options = {});

}  // namespace relaxc
