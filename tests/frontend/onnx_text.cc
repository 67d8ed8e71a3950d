#include "tests/frontend/onnx_text.h"

#include <onnx/defs/parser.h>

#include <sstream>

#include "codegen/compile.h"
#include "frontend/onnx/import.h"
#include "support/diagnostic.h"

namespace relaxc::test {

namespace {

// Messages name a node by its name, which the textual format of ONNX 1.12 does not have.
void name_nodes(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  for (onnx::NodeProto& node : nodes) {
    if (node.name().empty() && node.output_size() > 0) node.set_name(node.output(0));
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) name_nodes(*attribute.mutable_g()->mutable_node());
    }
  }
}

onnx::ModelProto read_model(const std::string& text, const std::string& name) {
  onnx::ModelProto model;
  onnx::OnnxParser parser(text.c_str());
  onnx::Common::Status status = parser.Parse(model);
  if (!status.IsOK()) fail({}, "{} is not a model in ONNX's textual format: {}", name, status.ErrorMessage());
  name_nodes(*model.mutable_graph()->mutable_node());
  for (onnx::FunctionProto& function : *model.mutable_functions()) name_nodes(*function.mutable_node());
  return model;
}

// The line that assigns to the node's first output, after which it is called; 0: there is none.
uint32_t line_of_node(const std::string& text, const std::string& node) {
  std::istringstream lines(text);
  uint32_t number = 1;
  for (std::string line; std::getline(lines, line); ++number) {
    size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line.compare(begin, node.size(), node) != 0) continue;
    char next = begin + node.size() < line.size() ? line[begin + node.size()] : ' ';
    if (next == ' ' || next == ',') return number;
  }
  return 0;
}

}  // namespace

bool is_onnx_text(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') return line[0] == '<';
  }
  return false;
}

IRModule import_onnx_text(const std::string& text, const std::string& name, const ImportOptions& options) {
  std::string bytes = read_model(text, name).SerializeAsString();
  try {
    return import_onnx_bytes(std::as_bytes(std::span(bytes)), name, op_table(), options);
  } catch (const CompileError& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    for (Diagnostic& diagnostic : diagnostics) {
      if (diagnostic.span.origin) diagnostic.span.line = line_of_node(text, diagnostic.span.origin->node);
    }
    throw CompileError(std::move(diagnostics));
  }
}

}  // namespace relaxc::test
