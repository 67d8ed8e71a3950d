// What an ONNX file holds, whether it can be compiled or not.
#pragma once
#include <set>

#include "frontend/onnx/import.h"
#include "ir/attrs.h"
#include "vm/executable.h"

namespace relaxc {

// Returns ir_version, producer, opsets, inputs, outputs, dims, weights {tensors, bytes}, the dtypes of weights with
// their numbers, and operators, each with its domain, opset, how often it occurs (in branches, bodies and functions,
// too) and whether it is "built in", a "function of the model", of "a plug-in", "refused" by name, or "unsupported".
// Reads only the structure of the file. Throws a CompileError when it is not a model.
Attrs summarize_onnx(const std::string& path, const ImportOptions& options = {});

// Returns the inputs that a run needs, then those with a default, by name, with the kinds and dtypes of their values.
// Their shapes are left out.
std::vector<vm::ValueInfo> onnx_inputs(const std::string& path, const ImportOptions& options = {});
// Returns the names of those that have a default: an initializer of the same name.
std::set<std::string> onnx_defaults(const std::string& path);

}  // namespace relaxc
