// Nodes that cannot be converted, for those who want to hear of every node of a model (ImportOptions::failed). An
// external function that nobody can call stands for such a node, and its outputs have the types that the model declares
// for them. Without such a type a value stays unknown, and the nodes that read it fail with that reason.
#include "frontend/onnx/graph_importer.h"
#include "ir/op_names.h"
#include "ir/text/names.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"

namespace relaxc::onnx_import {

namespace {

// Returns the declared type of a tensor; null where the model does not say its rank. Exporters write an empty shape for
// an unknown one.
const onnx::TypeProto::Tensor* declared_tensor(const onnx::TypeProto* type) {
  if (!type || !type->has_tensor_type()) return nullptr;
  const onnx::TypeProto::Tensor& tensor = type->tensor_type();
  return tensor.elem_type() != 0 && tensor.shape().dim_size() > 0 ? &tensor : nullptr;
}

// Returns the type that a declaration without dims means where it means a scalar.
std::optional<Type> declared_scalar(const onnx::TypeProto* type, const Span& span) {
  if (!type || !type->has_tensor_type() || !type->tensor_type().has_shape()) return std::nullopt;
  const onnx::TypeProto::Tensor& tensor = type->tensor_type();
  if (tensor.elem_type() == 0 || tensor.shape().dim_size() > 0) return std::nullopt;
  try {
    return tensor_type({}, dtype_of_element_type(tensor.elem_type(), span));
  } catch (const CompileError&) {  // of an element type that relaxc does not have
    return std::nullopt;
  }
}

}  // namespace

const onnx::TypeProto* GraphImporter::declared_type(const std::string& name) {
  if (graph_ && declared_.empty()) {
    for (const auto& info : graph_->value_info()) declared_.emplace(info.name(), &info.type());
    for (const auto& output : graph_->output()) declared_.emplace(output.name(), &output.type());
  }
  return copy_value(declared_, name).value_or(nullptr);
}

// Returns the declared type of an output, with dims of the model's where it names them; nullopt for other values than
// tensors, and for those of unknown rank.
std::optional<Type> GraphImporter::type_of_stand_in(const std::string& name, const Span& span) {
  const onnx::TypeProto::Tensor* tensor = declared_tensor(declared_type(name));
  if (!tensor) return std::nullopt;
  auto dim_of = [&](const onnx::TensorShapeProto::Dimension& dim) -> Expr {
    if (dim.has_dim_value() && dim.dim_value() >= 0) return int_imm(dim.dim_value());
    if (const int64_t* fixed = find_value(context_.options.dims, dim.dim_param())) return int_imm(*fixed);
    if (const VarRef* known = find_value(context_.dims, dim.dim_param())) return *known;
    return unknown_dim(context_, text::identifier(dim.dim_param().empty() ? name : dim.dim_param()));
  };
  try {
    Type type = tensor_type(map_each(tensor->shape().dim(), dim_of), dtype_of_element_type(tensor->elem_type(), span));
    return is_too_large(type, context_.options.limits) ? std::nullopt : std::optional(type);
  } catch (const CompileError&) {  // of an element type that relaxc does not have
    return std::nullopt;
  }
}

void GraphImporter::stand_in(const onnx::NodeProto& node, const Span& span, std::vector<Diagnostic> why, bool follows) {
  std::vector<Value> inputs;
  std::vector<Expr> operands = {extern_func(span.origin->op_type)};
  bool are_known = true;
  for (const std::string& name : node.input()) {
    Value value = name.empty() ? nullptr : find(name);
    if (value && value->tensor) operands.push_back(leaf_of(value, span));
    are_known = are_known && (name.empty() || (value && value->type()));
    inputs.push_back(std::move(value));
  }
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  std::vector<std::optional<Type>> outputs =
      map_each(node.output(), [&](const std::string& name) { return type_of_stand_in(name, span); });
  std::vector<std::optional<Type>> results = outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) results[i] = declared_scalar(declared_type(node.output(static_cast<int>(i))), span);
  }
  const bool may_take = are_known && !outputs.empty();
  const std::string refusal = may_take ? why_no_kernel(inputs, results) : "";
  if (!refusal.empty() && why.back().kind == ErrorKind::kUnsupported) why.back().message += "; but " + refusal;
  const std::string head = may_take && refusal.empty() ? kernel_head(node, inputs, results, span) : "";
  context_.options.failed({span, std::move(why), follows, head});
  if (outputs.empty()) return;
  const std::vector<Type> types = map_each(outputs, [](const std::optional<Type>& output) {
    return output ? tensor_type_of_rank(std::ssize(*known_shape(*output)), tensor_dtype(*output)) : object_type();
  });
  const Type type = types.size() == 1 ? types[0] : tuple_type(types);
  Expr made = builder_.emit(call(op_ref(ops::kCallPurePacked), std::move(operands), {}, type, span, {type}));
  context_.stand_ins.emplace_back(made, &builder_);
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    Value value =
        make_value({.poisoned = true, .source = fmt::format("nothing implements node '{}'", span.origin->node)});
    if (const std::optional<Type>& output = outputs[static_cast<size_t>(i)]) {
      Expr item = types.size() == 1 ? made : builder_.emit(tuple_get(made, i));
      value = make_value({.tensor = builder_.match_cast(item, *output), .home = &builder_});
    }
    define(node.output(i), std::move(value));
  }
}

void GraphImporter::on_failure(const onnx::NodeProto& node, const Span& span, const CompileError& error) {
  std::vector<Diagnostic> why = with_place(error.diagnostics(), span);
  for (Diagnostic& diagnostic : why) {
    for (const std::string& name : node.input()) {
      if (const std::string* kernel = find_value(context_.made_by, name))
        diagnostic.notes.push_back(fmt::format("kernel '{}' makes its input '{}'", *kernel, printable(name)));
    }
  }
  if (!context_.options.failed || context_.is_trial) {
    for (Diagnostic& diagnostic : why) context_.diagnostics.add(std::move(diagnostic));
    for (const std::string& name : node.output()) {
      if (!name.empty()) define(name, make_value({.poisoned = true}));
    }
    if (context_.diagnostics.all().size() > 1000) throw error;
    return;
  }
  const bool follows = why.empty();
  if (follows) why.push_back({.span = span, .message = why_unknown(node)});
  stand_in(node, span, std::move(why), follows);
}

// Returns why the node failed where another one's failure was reported.
std::string GraphImporter::why_unknown(const onnx::NodeProto& node) const {
  for (const std::string& name : node.input()) {
    Value value = name.empty() ? nullptr : find(name);
    if (value && value->poisoned)
      return fmt::format("the type of its input '{}' is not known: {}, and the model does not declare it",
                         printable(name), value->source);
  }
  return "the types of values in it are not known";
}

}  // namespace relaxc::onnx_import
