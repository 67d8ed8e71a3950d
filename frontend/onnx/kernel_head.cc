// The head of a kernel that would take a node which nothing implements. It can be pasted into a file of --kernels: no
// two params have one name, and what cannot be a param is a condition, or a comment.
#include <cmath>

#include "frontend/onnx/graph_importer.h"
#include "ir/text/names.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"

namespace relaxc::onnx_import {

namespace {

using onnx::AttributeProto;

// Of a longer list the head has the first items only.
constexpr int kMostItems = 64;

std::string decimal(int64_t number) { return fmt::format("{}", number); }

class HeadWriter {
 public:
  // Attributes keep their names, since they are found by them. Buffers and dims get other ones.
  HeadWriter(const onnx::NodeProto& node, const Span& span) : span_(span) {
    names_.reserve("S");
    for (const AttributeProto& attribute : node.attribute()) add_attribute(attribute);
  }

  void add_input(size_t i, const Value& input) {
    if (!input) {
      absent_.push_back(static_cast<int64_t>(i));
      return;
    }
    inputs_.push_back(buffer(i == 0 ? "x" : fmt::format("x{}", i), input->type()));
  }

  void add_result(size_t i, const std::optional<Type>& type) {
    const size_t known = dims_.size();
    results_.push_back(buffer(i == 0 ? "y" : fmt::format("y{}", i), type));
    for (size_t d = known; d < dims_.size(); ++d)
      comments_ += fmt::format(
          "# the dim \"{}\" of result {} does not follow from the inputs: @S.shape(\"my_kernel\") computes it\n",
          dims_[d], i);
    if (results_.back().find("...") != std::string::npos)
      comments_ += fmt::format("# the model does not declare the type of result {}: write it for ...\n", i);
  }

  std::string text(const std::string& type) const {
    std::string conditions = conditions_;
    if (!absent_.empty()) conditions += fmt::format(", absent=[{}]", joined(absent_));
    std::vector<std::string> params = inputs_;
    for (const auto* more : {&scalars_, &tensors_, &results_}) params.insert(params.end(), more->begin(), more->end());
    return fmt::format("{}@S.implements({}{})\n@T.prim_func\ndef my_kernel({}): ...", comments_, python_string(type),
                       conditions, joined(params));
  }

 private:
  // Returns `x: T.Buffer(("n", 64), "float32")`; what is not known is left open.
  std::string buffer(const std::string& hint, const std::optional<Type>& type) {
    const std::string name = names_.reserve(hint);
    const std::optional<DType> dtype = type ? tensor_dtype(*type) : std::nullopt;
    const std::vector<Expr>* shape = type ? known_shape(*type) : nullptr;
    std::string dims = "...";
    if (shape) dims = joined(*shape, [&](const Expr& each) { return dim(each); }) + (shape->size() == 1 ? "," : "");
    return fmt::format("{}: T.Buffer(({}), {})", name, dims, dtype ? fmt::format("\"{}\"", to_string(*dtype)) : "...");
  }

  // Returns 64 or "n". A dim that is computed gets a name of its own.
  std::string dim(const Expr& dim) {
    if (std::optional<int64_t> number = as_int(dim)) return fmt::format("{}", *number);
    std::optional<VarRef> var = try_cast<Var>(dim);
    if (const std::string* known = var ? names_.find(*var) : nullptr) return fmt::format("\"{}\"", *known);
    dims_.push_back(var ? names_.define(*var) : names_.reserve("d"));
    return fmt::format("\"{}\"", dims_.back());
  }

  void add_attribute(const AttributeProto& attribute) {
    switch (attribute.type()) {
      case AttributeProto::INT:
        return add_scalars(attribute, 1, false, "int64");
      case AttributeProto::FLOAT:
        return add_scalars(attribute, 1, false, "float32");
      case AttributeProto::INTS:
        return add_scalars(attribute, attribute.ints_size(), true, "int64");
      case AttributeProto::FLOATS:
        return add_scalars(attribute, attribute.floats_size(), true, "float32");
      case AttributeProto::TENSOR:
        return add_tensor(attribute);
      default:
        return add_condition(attribute);
    }
  }

  // A scalar param reads an attribute, or one item of a list.
  void add_scalars(const AttributeProto& attribute, int count, bool is_list, const char* dtype) {
    std::vector<std::string> params;
    for (int i = 0; i < std::min(count, kMostItems); ++i) {
      const std::string wanted = is_list ? fmt::format("{}_{}", attribute.name(), i) : attribute.name();
      if (names_.reserve(wanted) != wanted) return add_condition(attribute);
      params.push_back(fmt::format("{}: T.{}", wanted, dtype));
    }
    scalars_.insert(scalars_.end(), params.begin(), params.end());
    if (count > kMostItems)
      comments_ +=
          fmt::format("# the attribute {} has {} items, here are the first {}\n", attribute.name(), count, kMostItems);
  }

  void add_tensor(const AttributeProto& attribute) {
    const onnx::TensorProto& tensor = attribute.t();
    std::optional<DType> dtype;
    try {
      dtype = dtype_of_element_type(tensor.data_type(), span_);
    } catch (const CompileError&) {  // of an element type that relaxc does not have
    }
    if (!dtype || dtype->is_string() || names_.reserve(attribute.name()) != attribute.name())
      return add_condition(attribute);
    const std::string dims = joined(tensor.dims(), decimal) + (tensor.dims_size() == 1 ? "," : "");
    tensors_.push_back(fmt::format("{}: T.Buffer(({}), \"{}\")", attribute.name(), dims, to_string(*dtype)));
  }

  // A kernel may ask for the value of what it cannot read.
  void add_condition(const AttributeProto& attribute) {
    const std::string& name = attribute.name();
    constexpr std::string_view kArguments[] = {"where", "node", "defaults", "layout", "absent"};
    const bool is_word = text::identifier(name) == name && !text::is_keyword(name) && name != "None" &&
                         name != "True" && name != "False" && std::ranges::count(kArguments, name) == 0;
    const std::optional<std::string> value = value_of(attribute);
    if (is_word && value) {
      conditions_ += fmt::format(", {}={}", name, *value);
    } else {
      comments_ += fmt::format("# a kernel cannot read or name the attribute {}{}\n", python_string(name),
                               value && value->size() < 80 ? ", which is " + *value : "");
    }
  }

  // Returns the value as it is written in Python; nullopt for one that a condition cannot state.
  static std::optional<std::string> value_of(const AttributeProto& attribute) {
    auto number = [](float item) { return fmt::format("{:#}", static_cast<double>(item)); };
    auto is_finite = [](float item) { return std::isfinite(item); };
    switch (attribute.type()) {
      case AttributeProto::INT:
        return fmt::format("{}", attribute.i());
      case AttributeProto::FLOAT:
        return is_finite(attribute.f()) ? std::optional(number(attribute.f())) : std::nullopt;
      case AttributeProto::STRING:
        return python_string(attribute.s());
      case AttributeProto::INTS:
        return fmt::format("[{}]", joined(attribute.ints(), decimal));
      case AttributeProto::FLOATS:
        if (!std::ranges::all_of(attribute.floats(), is_finite)) return std::nullopt;
        return fmt::format("[{}]", joined(attribute.floats(), number));
      case AttributeProto::STRINGS:
        return fmt::format("[{}]", joined(attribute.strings(), python_string));
      default:
        return std::nullopt;
    }
  }

  const Span& span_;
  text::NameTable names_;
  std::vector<std::string> dims_;  // the names, in the order of first use
  std::string comments_, conditions_;
  std::vector<int64_t> absent_;
  std::vector<std::string> inputs_, scalars_, tensors_, results_;
};

}  // namespace

std::string kernel_head(const onnx::NodeProto& node, const std::vector<Value>& inputs,
                        const std::vector<std::optional<Type>>& outputs, const Span& span) {
  HeadWriter head(node, span);
  for (size_t i = 0; i < inputs.size(); ++i) head.add_input(i, inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) head.add_result(i, outputs[i]);
  const std::string domain = domain_of(node.domain());
  return head.text((domain.empty() ? "ai.onnx" : domain) + "::" + node.op_type());
}

std::string why_no_kernel(const std::vector<Value>& inputs, const std::vector<std::optional<Type>>& outputs) {
  auto why = [](const char* what, size_t i, const std::optional<Type>& type) -> std::string {
    if (!type || type->is<ObjectType>()) return "";
    if (!type->is<TensorType>()) return fmt::format("{} {} is not a tensor, and a kernel takes tensors only", what, i);
    const std::optional<DType> dtype = tensor_dtype(*type);
    return dtype && dtype->is_string() ? fmt::format("{} {} is of strings, which kernels do not take", what, i) : "";
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (std::string text = inputs[i] ? why("input", i, inputs[i]->type()) : ""; !text.empty()) return text;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (std::string text = why("result", i, outputs[i]); !text.empty()) return text;
  }
  return "";
}

}  // namespace relaxc::onnx_import
