// Operators of ONNX models that plug-ins import (passes/tables.h). The built-in converters are rows of frontend/onnx/.
//
// The importer has two hooks. A converter is the meaning of an operator that has no other one: it must take each node,
// and what it makes is operators of the graph, which all passes then see. A kernel (NodeKernel in ops/user_kernel.h) is
// one implementation among several: it comes before the converters, may be for single nodes, may refuse one with a
// reason and leave it to the next, and makes a call of a tensor program or of a C function.
#pragma once
#include <functional>

#include "ir/builder.h"

namespace relaxc {

// A node of a model.
struct OnnxNode {
  const std::string& name;  // "domain::Type"
  int64_t opset;            // of the domain; 0 where the model imports none
  size_t outputs;           // as many as the node names
  const std::vector<std::optional<Expr>>&
      inputs;  // absent ones in the middle are nullopt; those at the end are left out
  // Numbers, texts and lists of them; a tensor is a constant expression. Those of the row's names that the node has.
  const Attrs& attrs;
  Builder& builder;  // whose span is the node
};

struct OnnxConverter {
  std::string name = {};  // "com.me::FancyGelu"; "Abs" for ONNX's default domain
  int64_t since = 0;      // the first opset of this form
  int least_inputs = 1, most_inputs = 1;
  std::string attributes = {};  // the names that a node may have, separated by spaces; others are warned of
  // Returns the outputs: leaves, or values that are then bound. Throws a CompileError, to which the node's place is
  // added.
  std::function<std::vector<Expr>(const OnnxNode&)> convert = {};
};

// Returns a converter to the operator, from inputs in the order of the row's and attributes of the same names.
OnnxConverter direct_converter(const OpRow& row, const std::string& name);

}  // namespace relaxc
