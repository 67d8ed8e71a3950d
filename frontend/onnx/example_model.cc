// Makes the model of an example (frontend/onnx/examples.h). Examples are written here, so a wrong one is our own error.
#include <cstring>

#include "frontend/onnx/examples.h"
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/node.h"
#include "support/joined.h"

namespace relaxc::onnx_import {

namespace {

constexpr std::string_view kBlanks = " ";

// Cuts the text where the separator is outside of brackets and quotes, and drops blanks around the parts.
std::vector<std::string> cut_outside(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool is_quoted = false;
  for (char c : text) {
    if (c == '"') is_quoted = !is_quoted;
    if (!is_quoted && std::strchr("([{", c)) ++depth;
    if (!is_quoted && std::strchr(")]}", c)) --depth;
    bool is_cut = c == separator && depth == 0 && !is_quoted;
    is_cut ? parts.emplace_back() : parts.back() += c;
  }
  std::vector<std::string> result;
  for (const std::string& part : parts) {
    size_t first = part.find_first_not_of(kBlanks);
    if (first != std::string::npos) result.push_back(part.substr(first, part.find_last_not_of(kBlanks) - first + 1));
  }
  return result;
}
// Returns what stands between the first bracket and the last character, its counterpart.
std::string_view within(std::string_view text) {
  size_t open = text.find_first_of("([{\"");
  RELAXC_CHECK(open != std::string_view::npos && text.size() >= open + 2, "example '{}' lacks brackets", text);
  return text.substr(open + 1, text.size() - open - 2);
}

class ExampleModel {
 public:
  ExampleModel(const OnnxForms& op, const std::map<char, DType>& types) : types_(types) {
    model_.set_ir_version(10);
    for (const std::string& domain : {std::string(), op.domain}) {
      auto* import = model_.add_opset_import();
      import->set_domain(domain), import->set_version(kNewestOpset);
      if (op.domain.empty()) break;
    }
    node_.set_name("example"), node_.set_op_type(op.name), node_.set_domain(op.domain);
  }

  std::string make(const std::string& example) {
    std::vector<std::string> words = cut_outside(example, ',');
    int outputs = 1;
    if (size_t arrow = example.rfind("-> "); arrow != std::string::npos && example.find('}', arrow) == example.npos) {
      outputs = std::stoi(example.substr(arrow + 3));
      words = cut_outside(example.substr(0, arrow), ',');
    }
    for (const std::string& word : words) {
      size_t equals = word.find('='), bracket = word.find_first_of("([{\"");
      bool is_attribute = equals != std::string::npos && equals < bracket;
      is_attribute ? add_attribute(word.substr(0, equals), word.substr(equals + 1)) : add_operand(word);
    }
    onnx::GraphProto& graph = *model_.mutable_graph();
    graph.set_name("example");
    for (int i = 0; i < outputs; ++i) {
      node_.add_output(fmt::format("y{}", i));
      graph.add_output()->set_name(node_.output(i));
    }
    *graph.add_node() = node_;
    return model_.SerializeAsString();
  }

 private:
  std::optional<DType> dtype_of(const std::string& name) const {
    if (name.size() == 1) return copy_value(types_, name[0]);
    return parse_dtype(name);
  }
  DType dtype_before(const std::string& text, char bracket) const {
    std::optional<DType> dtype = dtype_of(text.substr(0, text.find(bracket)));
    RELAXC_CHECK(dtype.has_value(), "example '{}' begins with no dtype", text);
    return *dtype;
  }
  static std::vector<int64_t> dims_of(const std::string& text) {
    std::vector<int64_t> dims;
    const size_t open = text.find('[');
    for (const std::string& dim : cut_outside(text.substr(open + 1, text.find(']') - open - 1), ','))
      dims.push_back(std::stoll(dim));
    return dims;
  }
  // Returns a tensor with the contents of "int64[2]{3, -1}", or zeros.
  onnx::TensorProto tensor(const std::string& text) const {
    const DType dtype = dtype_before(text, '[');
    onnx::TensorProto proto;
    proto.set_data_type(element_type_of_dtype(dtype));
    int64_t count = 1;
    for (int64_t dim : dims_of(text)) proto.add_dims(dim), count *= dim;
    size_t brace = text.find('{');
    std::vector<std::string> values;
    if (brace != std::string::npos) values = cut_outside(within(text.substr(brace)), ',');
    for (int64_t i = 0; dtype.is_string() && i < count; ++i)
      proto.add_string_data(values.empty() ? "" : values.at(static_cast<size_t>(i)));
    if (dtype.is_string()) return proto;
    Tensor data = Tensor::empty({proto.dims().begin(), proto.dims().end()}, dtype);
    if (data.bytes() > 0) std::memset(data.raw(), 0, static_cast<size_t>(data.bytes()));
    const Tensor numbers = parts_of(data);
    const int64_t step = dtype.is_complex() ? 2 : 1;  // real numbers
    for (size_t i = 0; i < values.size(); ++i) numbers.set_double(step * static_cast<int64_t>(i), std::stod(values[i]));
    proto.set_raw_data(data.raw(), static_cast<size_t>(data.bytes()));
    return proto;
  }
  onnx::TypeProto type(const std::string& text) const {
    onnx::TypeProto result;
    if (text.starts_with("seq(")) {
      *result.mutable_sequence_type()->mutable_elem_type() = type(std::string(within(text)));
    } else if (text.starts_with("opt(")) {
      *result.mutable_optional_type()->mutable_elem_type() = type(std::string(within(text)));
    } else if (text.starts_with("map(")) {
      const std::vector<std::string> parts = cut_outside(within(text), ',');
      result.mutable_map_type()->set_key_type(element_type_of_dtype(dtype_of(parts.at(0)).value()));
      *result.mutable_map_type()->mutable_value_type() = type(parts.at(1));
    } else {
      auto& tensor = *result.mutable_tensor_type();
      tensor.set_elem_type(element_type_of_dtype(dtype_before(text, '[')));
      tensor.mutable_shape();
      for (int64_t dim : dims_of(text)) tensor.mutable_shape()->add_dim()->set_dim_value(dim);
    }
    return result;
  }

  void add_operand(const std::string& text) {
    const std::string name = text == "-" ? "" : fmt::format("x{}", node_.input_size());
    node_.add_input(name);
    if (name.empty()) return;
    onnx::GraphProto& graph = *model_.mutable_graph();
    if (text.ends_with('}')) {
      onnx::TensorProto& initializer = *graph.add_initializer() = tensor(text);
      initializer.set_name(name);
      return;
    }
    onnx::ValueInfoProto& input = *graph.add_input();
    input.set_name(name);
    *input.mutable_type() = type(text);
  }
  onnx::GraphProto subgraph(const std::string& text) const {
    onnx::GraphProto graph;
    graph.set_name("body");
    const size_t arrow = text.find("->");
    if (arrow == std::string::npos) {
      for (const std::string& part : cut_outside(text, ',')) {
        onnx::TensorProto& zeros = *graph.add_initializer() = tensor(part);
        zeros.set_name(fmt::format("zeros{}", graph.output_size()));
        graph.add_output()->set_name(zeros.name());
      }
      return graph;
    }
    for (const std::string& name : cut_outside(text.substr(0, arrow), ' ')) graph.add_input()->set_name(name);
    for (const std::string& name : cut_outside(text.substr(arrow + 2), ' ')) {
      onnx::NodeProto& identity = *graph.add_node();
      identity.set_op_type("Identity");
      identity.add_input(name), identity.add_output(fmt::format("out{}", graph.output_size()));
      graph.add_output()->set_name(identity.output(0));
    }
    return graph;
  }

  // A number with a point is a float.
  static bool is_float(const std::string& number) { return number.find('.') != std::string::npos; }
  void add_list(onnx::AttributeProto& attribute, const std::vector<std::string>& items) const {
    using Proto = onnx::AttributeProto;
    const bool are_texts = items.at(0).starts_with('"'), are_floats = !are_texts && is_float(items.at(0));
    attribute.set_type(are_texts ? Proto::STRINGS : are_floats ? Proto::FLOATS : Proto::INTS);
    for (const std::string& item : items) {
      if (are_texts) attribute.add_strings(std::string(within(item)));
      if (are_floats) attribute.add_floats(std::stof(item));
      if (!are_texts && !are_floats) attribute.add_ints(std::stoll(item));
    }
  }
  void add_attribute(const std::string& name, const std::string& value) {
    using Proto = onnx::AttributeProto;
    Proto& attribute = *node_.add_attribute();
    attribute.set_name(name);
    if (value.starts_with('[')) return add_list(attribute, cut_outside(within(value), ','));
    if (value.starts_with('"')) {
      attribute.set_type(Proto::STRING), attribute.set_s(std::string(within(value)));
    } else if (value.starts_with('{')) {
      attribute.set_type(Proto::GRAPH), *attribute.mutable_g() = subgraph(std::string(within(value)));
    } else if (value.ends_with('}')) {
      attribute.set_type(Proto::TENSOR), *attribute.mutable_t() = tensor(value);
    } else if (std::optional<DType> dtype = dtype_of(value)) {
      attribute.set_type(Proto::INT), attribute.set_i(element_type_of_dtype(*dtype));
    } else if (is_float(value)) {
      attribute.set_type(Proto::FLOAT), attribute.set_f(std::stof(value));
    } else {
      attribute.set_type(Proto::INT), attribute.set_i(std::stoll(value));
    }
  }

  const std::map<char, DType>& types_;
  onnx::ModelProto model_;
  onnx::NodeProto node_;
};

}  // namespace

}  // namespace relaxc::onnx_import

namespace relaxc {

IRModule import_onnx_example(const OnnxForms& op, const std::string& example, const std::map<char, DType>& types,
                             const OpTable& ops) {
  const std::string model = onnx_import::ExampleModel(op, types).make(example);
  return import_onnx_bytes(std::as_bytes(std::span(model)), "example.onnx", ops);
}

}  // namespace relaxc
