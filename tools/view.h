// What `relaxc view` shows: the graph of calls, with the operators that each kernel computes, and the texts of kernels.
// tools/view_module.cc and tools/view_artifact.cc collect it, tools/pages/view.js draws it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "codegen/compile.h"

namespace relaxc::tools {

// An operator of the graph before fusion.
struct ViewOperator {
  std::string name;        // "nn.conv2d"
  std::string type;        // of its result
  std::string place;       // nodes of the model, or a line of the text
  std::string attributes;  // "strides=[2, 2], data_layout=NCHW16c"
};

struct ViewWeight {
  std::string type, name;
  int64_t bytes;
};

// An input, a result, or a call: of a kernel, which is a group of operators, or of something else.
struct ViewNode {
  enum class Kind : uint8_t { kInput, kResult, kKernel, kView, kRuntime } kind;
  std::string name, type, place;
  std::vector<ViewOperator> operators = {};
  std::vector<ViewWeight> weights = {};
  std::vector<size_t> inputs = {};  // nodes of the same function, earlier ones
};

struct ViewFunction {
  std::string name;
  std::vector<ViewNode> nodes;  // each behind those on which it depends
};

struct ViewText {
  std::string title, text;
};
struct View {
  std::string kind, target;
  std::vector<ViewFunction> functions;                   // the entry function first
  std::map<std::string, std::vector<ViewText>> kernels;  // by name; equal kernels are one
  std::vector<std::string> notes;                        // what is not shown, and why
};

// Throws a CompileError where the module cannot be compiled.
View view_of_module(const std::string& path, const CompileSettings& settings);
View view_of_artifact(const std::string& path);

std::string page_of(const View& view, const std::string& file);

}  // namespace relaxc::tools
