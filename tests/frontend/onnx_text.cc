#include "tests/frontend/onnx_text.h"

#include <onnx/defs/parser.h>

#include <map>
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

// Takes types that the parser of ONNX 1.12 does not know, seq(T), optional(T) and map(K, T), out of a text, where
// `float` stands for them then. `types` gets those of the values before which they stand.
class ContainerTypes {
 public:
  using Types = std::map<std::string, onnx::TypeProto>;
  static std::string taken_from(std::string text, Types& types) {
    for (const char* word : {"seq(", "optional(", "map("}) {
      for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
        bool is_type = at > 0 && (text[at - 1] == '(' || text[at - 1] == ' ');
        size_t end = at;
        onnx::TypeProto type;
        if (!is_type || !read(text, end, type)) {
          ++at;
          continue;
        }
        size_t name = text.find_first_not_of(' ', end), behind = text.find_first_of(" ,)", name);
        types[text.substr(name, behind - name)] = type;
        text.replace(at, end - at, "float");
      }
    }
    return text;
  }

 private:
  static bool skip(const std::string& text, size_t& at, std::string_view word) {
    at = std::min(text.find_first_not_of(' ', at), text.size());
    if (text.compare(at, word.size(), word) != 0) return false;
    at += word.size();
    return true;
  }
  static bool read_element(const std::string& text, size_t& at, int& element) {
    for (auto [word, type] : {std::pair("float", onnx::TensorProto::FLOAT),
                              {"double", onnx::TensorProto::DOUBLE},
                              {"int64", onnx::TensorProto::INT64},
                              {"string", onnx::TensorProto::STRING}}) {
      if (!skip(text, at, word)) continue;
      element = type;
      return true;
    }
    return false;
  }
  static bool read(const std::string& text, size_t& at, onnx::TypeProto& type) {  // NOLINT: a test's own text
    int element = 0;
    if (skip(text, at, "seq("))
      return read(text, at, *type.mutable_sequence_type()->mutable_elem_type()) && skip(text, at, ")");
    if (skip(text, at, "optional("))
      return read(text, at, *type.mutable_optional_type()->mutable_elem_type()) && skip(text, at, ")");
    if (skip(text, at, "map(")) {
      if (!read_element(text, at, element) || !skip(text, at, ",")) return false;
      type.mutable_map_type()->set_key_type(element);
      return read(text, at, *type.mutable_map_type()->mutable_value_type()) && skip(text, at, ")");
    }
    if (!read_element(text, at, element)) return false;
    type.mutable_tensor_type()->set_elem_type(element);
    return true;
  }
};

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

onnx::ModelProto read_onnx_text(const std::string& text, const std::string& name) {
  onnx::ModelProto model;
  ContainerTypes::Types types;
  const std::string plain = ContainerTypes::taken_from(text, types);
  onnx::OnnxParser parser(plain.c_str());
  onnx::Common::Status status = parser.Parse(model);
  for (auto* values : {model.mutable_graph()->mutable_input(), model.mutable_graph()->mutable_output()}) {
    for (onnx::ValueInfoProto& value : *values) {
      if (auto known = types.find(value.name()); known != types.end()) *value.mutable_type() = known->second;
    }
  }
  if (!status.IsOK()) fail({}, "{} is not a model in ONNX's textual format: {}", name, status.ErrorMessage());
  name_nodes(*model.mutable_graph()->mutable_node());
  for (onnx::FunctionProto& function : *model.mutable_functions()) name_nodes(*function.mutable_node());
  return model;
}

bool is_onnx_text(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') return line[0] == '<';
  }
  return false;
}

IRModule import_onnx_text(const std::string& text, const std::string& name, const ImportOptions& options) {
  std::string bytes = read_onnx_text(text, name).SerializeAsString();
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
