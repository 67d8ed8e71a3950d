// Turns an ONNX model into a module with the graph function "main".
//
// Params are the graph inputs that are not initializers, in order; symbolic dims keep their dim_param names.
// Initializers become constants that share memory with the mapped file. Function attributes "input_names" and
// "output_names" hold the model's names. Every binding carries the span of the node it came from.
#pragma once
#include <cstddef>

#include "ops/onnx_converter.h"
#include "ops/user_kernel.h"
#include "support/diagnostic.h"
#include "support/progress.h"
#include "vm/file_memory.h"

namespace relaxc {

// Bounds the resources that a hostile model may ask for.
struct ImportLimits {
  int64_t nodes = 200'000;                  // after functions are expanded and loops unrolled
  int64_t depth = 100;                      // nested functions and branches
  int64_t tensor_bytes = int64_t{1} << 36;  // of one tensor whose dims are constants
  int64_t model_bytes = int64_t{1} << 40;   // of the file
};
// A node that cannot be converted.
struct UnconvertedNode {
  Span node;                    // invalid for a fault of an input, a constant or an output of the model
  std::vector<Diagnostic> why;  // not empty
  bool follows = false;         // only from nodes before it, or in it, that cannot be converted
  // The head of a kernel of the user's that would take the node, "" where the types of its inputs are not known.
  std::string kernel_head;
};
struct ImportOptions {
  std::map<std::string, int64_t> dims;  // symbolic dims to make constant: batch -> 4
  // Types of graph inputs by name, for what the model leaves open: a shape of unknown rank, and dims without a number.
  // A dim that is a variable is the model's symbolic dim of its name, or a new one.
  std::map<std::string, Type> types = {};
  ImportLimits limits;
  // Is called for each contradiction in a model that can be compiled nevertheless. An attribute that its operator does
  // not have is ignored, inferred types take precedence over declared ones, and nodes in a wrong order are sorted.
  std::function<void(const Diagnostic&)> warn = nullptr;
  bool strict = false;                   // these are errors
  std::vector<NodeKernel> kernels = {};  // the user's, tried in order before the built-in converters
  // Nodes that rules about operators of the graph name, with the places of these rules.
  std::vector<std::pair<std::string, Span>> asked_nodes = {};
  std::span<const OnnxConverter> converters = {};  // plug-ins', for operators without a built-in one
  OnClaim claimed = nullptr;  // is called for each node that one of them claims, and with "" for each other
  // Is called with a line for each of the kernels that no node gets, and for each asked node that is left out.
  std::function<void(const std::string&)> report = nullptr;
  // Is called for each node that cannot be converted, and the import goes on: the module then tells what becomes of the
  // other nodes, and cannot be run.
  std::function<void(const UnconvertedNode&)> failed = nullptr;
  OnProgress progress = nullptr;  // CompileStage::kImport
  // Gets the files in which constants lie: the model's and those of its external data.
  vm::MappedFiles* files = nullptr;
};

// Imports a file. Throws a CompileError with everything found: an invalid model, and each node that is not supported.
IRModule import_onnx(const std::string& path, const OpTable& ops, const ImportOptions& options = {});
// Imports a model from memory; `name` stands in messages, external data is refused, and constants may copy bytes.
IRModule import_onnx_bytes(std::span<const std::byte> bytes, const std::string& name, const OpTable& ops,
                           const ImportOptions& options = {});

// Returns the newest opset of each domain whose operators are known; the default domain is "".
std::map<std::string, int64_t> newest_onnx_opsets();

// An operator that can be imported. The domain is empty for the default ONNX domain.
struct OnnxOperator {
  std::string domain, name;
  int least_inputs, most_inputs;
};
// Returns all of them, sorted by domain and name. An operator with several opsets appears in its latest form.
std::vector<OnnxOperator> onnx_operators();

}  // namespace relaxc
