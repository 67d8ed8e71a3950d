// Examples of the operators that can be imported, as they stand in docs/operators.md: from them follows what an
// operator becomes and which dtypes it takes.
#pragma once
#include "frontend/onnx/import.h"

namespace relaxc {

// A call of an operator, and common dtypes for its variables, where the first ones that fit are not
// (import_onnx_example).
struct OnnxExample {
  std::string text;
  std::map<char, DType> dtypes = {};
};

// An operator, and all rows that the converter table has of it.
struct OnnxForms {
  std::string domain, name;                // the domain is empty for the default ONNX domain
  std::vector<int64_t> since;              // the opset from which on each row applies, ascending
  std::string why_refused;                 // no node of it can be compiled, and what to do; else empty
  std::vector<OnnxExample> examples = {};  // to be tried in order
};
// Returns all of them, sorted by domain and name.
std::vector<OnnxForms> onnx_forms();

// Imports a model of one node, at the newest opset. An example is a list of operands and attributes:
//
//   T[2, 3], -, int64[2]{3, -1}, seq(T[2]), axis=1, pads=[0, 1], mode="max", to=U, value=T[1]{0}, body={i c -> c} -> 2
//
// T, U and V stand for the dtypes in `types`; "-" is an operand that is left out; one with contents is a constant.
// "seq(...)" and "opt(...)" are a sequence and an optional. A graph in braces names its inputs and outputs, or gives
// its outputs as zeros: {T[2]}. "-> 2" asks for two outputs. Throws a CompileError where the import does.
IRModule import_onnx_example(const OnnxForms& op, const std::string& example, const std::map<char, DType>& types,
                             const OpTable& ops);

}  // namespace relaxc
