// The types of graph inputs: declared by the model, given by the caller, or inferred from the operators that read them.
#include <algorithm>
#include <set>

#include "frontend/onnx/graph_importer.h"
#include "ir/sequence.h"
#include "ir/text/printer.h"
#include "ir/visit.h"
#include "support/joined.h"
#include "support/nearest.h"

namespace relaxc::onnx_import {

namespace {

const onnx::TypeProto::Tensor* tensor_type_of(const onnx::ValueInfoProto& input) {
  return input.type().has_tensor_type() ? &input.type().tensor_type() : nullptr;
}

// Checks a given type against the declared one. A symbolic dim that is declared becomes the given one everywhere.
void match_given_type(ModelContext& context, const onnx::ValueInfoProto& input, const Type& given, const Span& span) {
  if (const SequenceType* sequence = given.as<SequenceType>(); sequence && input.type().has_sequence_type()) {
    const auto& item = input.type().sequence_type().elem_type();
    if (!item.has_tensor_type() ||
        tensor_dtype(sequence->item).value_or(kFloat32) != dtype_of_element_type(item.tensor_type().elem_type(), span))
      fail(span, "the given type is {}, the items that the model declares are others", print_type(given));
    return;
  }
  const auto* declared = tensor_type_of(input);
  const std::vector<Expr>* dims = known_shape(given);
  if (!declared || !dims) fail(span, "its type cannot be given: it is not a tensor");
  DType dtype = dtype_of_element_type(declared->elem_type(), span);
  if (auto other = tensor_dtype(given); other && *other != dtype)
    fail(span, "the given type is {}, the model declares {}", to_string(*other), to_string(dtype));
  if (!declared->has_shape()) return;
  if (declared->shape().dim_size() != std::ssize(*dims))
    fail(span, "the given type has rank {}, the model declares rank {}", dims->size(), declared->shape().dim_size());
  for (int d = 0; d < declared->shape().dim_size(); ++d) {
    const auto& dim = declared->shape().dim(d);
    const Expr& wanted = (*dims)[static_cast<size_t>(d)];
    const bool is_number = dim.has_dim_value() && dim.dim_value() >= 0;
    if (is_number && as_int(wanted) && *as_int(wanted) != dim.dim_value())
      fail(span, "dim {} of the given type is {}, the model declares {}", d, *as_int(wanted), dim.dim_value());
    if (is_number) continue;
    const std::string declared_name = name_of_dim(dim, input.name(), d);
    const Var* name = wanted.as<Var>();
    Expr replacement = name ? own_dim(context, name->name) : wanted;
    auto [entry, is_new] = context.given_dims.emplace(declared_name, replacement);
    // Inputs that share a name may be given different dims. It stays the name of the others' dims.
    if (!is_new && !structural_equal(entry->second, replacement)) entry->second = own_dim(context, declared_name);
  }
}

// Returns whether nodes read the value that need to know its rank: all but those that pass it on as it is.
bool needs_rank(const onnx::GraphProto& graph, const std::string& name) {  // NOLINT: protobuf bounds the depth
  for (const onnx::NodeProto& node : graph.node()) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g() && needs_rank(attribute.g(), name)) return true;
    }
    if (std::ranges::find(node.input(), name) == node.input().end()) continue;
    if (node.op_type() != "Identity" || node.output_size() != 1 || needs_rank(graph, node.output(0))) return true;
  }
  return false;
}

// Returns the dims that are given for an input, else new ones where the rank can be inferred.
std::vector<Expr> dims_of_open_input(ModelContext& context, const std::string& name, const Span& span) {
  if (const Type* given = find_value(context.options.types, name))
    return map_each(*known_shape(*given), [&](const Expr& dim) {
      const Var* var = dim.as<Var>();
      return var ? named_dim(context, var->name) : dim;
    });
  std::optional<int64_t> rank = inferred_rank(context, name);
  if (!rank)
    fail_unsupported(span, "the model does not declare its rank; give its type: --type '{}=float32[n, 4]'",
                     printable(name));
  return map_each(int_range(0, *rank), [&](int64_t d) { return named_dim(context, fmt::format("{}_d{}", name, d)); });
}

// Gives the items of a sequence, and the value of an optional, the type that is given or the rank that can be inferred.
Type with_item_type(ModelContext& context, const Type& declared, const std::string& name) {
  if (const OptionalType* optional = declared.as<OptionalType>())
    return optional_type(with_item_type(context, optional->item, name));
  const SequenceType* sequence = declared.as<SequenceType>();
  const Type& item = sequence ? sequence->item : declared;
  if (!item.is<TensorType>()) return declared;
  const Type* given = find_value(context.options.types, name);
  if (const SequenceType* items = given && sequence ? given->as<SequenceType>() : nullptr) {
    Type open = without_dims(items->item, [](const VarRef&) { return true; });
    const std::vector<Expr>* dims = known_shape(open);
    return sequence_type(dims ? tensor_type(*dims, tensor_dtype(item))
                              : tensor_type_of_rank(known_rank(open), tensor_dtype(item)));
  }
  std::optional<int64_t> rank = known_rank(item) < 0 ? inferred_rank(context, name) : std::nullopt;
  if (!rank) return declared;
  Type known = tensor_type_of_rank(*rank, tensor_dtype(item));
  return sequence ? sequence_type(known) : known;
}

// Returns the first graph input that a value follows from, or its own name if it is one.
std::optional<std::string> input_behind(const onnx::GraphProto& graph, const std::string& value) {
  std::set<std::string> wanted = {value};
  for (int i = graph.node_size(); i-- > 0;) {
    const onnx::NodeProto& node = graph.node(i);
    if (std::ranges::any_of(node.output(), [&](const std::string& name) { return wanted.contains(name); }))
      wanted.insert(node.input().begin(), node.input().end());
  }
  for (const onnx::ValueInfoProto& input : graph.input())
    if (wanted.contains(input.name())) return input.name();
  return std::nullopt;
}

}  // namespace

void Node::fail_open_rank(const Expr& operand, const char* what, const char* dims) const {
  std::string name;
  for (int i = 0; i < proto_.input_size() && i < std::ssize(inputs_); ++i) {
    const auto& input = inputs_[static_cast<size_t>(i)];
    if (input && input->tensor && same_node(*input->tensor, operand)) name = proto_.input(i);
  }
  const std::string source = input_behind(graph_.context().file->proto().graph(), name).value_or("NAME");
  unsupported(
      "{}, and with it the rank of the result, is only known at run time: declare the shape of the result in the "
      "model, or give the type of the graph input that {}: --type '{}={}{}'",
      what, source == name ? "it is" : "it follows from", printable(source),
      source == name ? to_string(dtype_of_tensor(operand)) : "int64", dims);
}

std::optional<int64_t> inferred_rank(ModelContext& context, const std::string& name) {
  if (!context.ranks) {
    std::map<std::string, int64_t> given;
    for (const auto& [input, type] : context.options.types) {
      const SequenceType* sequence = type.as<SequenceType>();
      given.emplace(input, known_rank(sequence ? sequence->item : type));
    }
    context.ranks = infer_ranks(context.file->proto().graph(), given);
  }
  return copy_value(*context.ranks, name);
}

std::set<std::string> names_of_constants(const onnx::GraphProto& graph, const ImportOptions& options) {
  std::set<std::string> result;
  for (const auto& tensor : graph.initializer()) result.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) result.insert(tensor.values().name());
  for (const auto& input : graph.input()) {
    if (options.types.contains(input.name())) result.erase(input.name());
  }
  return result;
}

void read_given_types(ModelContext& context, const onnx::GraphProto& graph) {
  std::vector<std::string> names = map_each(graph.input(), [](const auto& input) { return input.name(); });
  for (const auto& [name, type] : context.options.types) {
    const auto* input = find_item(graph.input(), name, &onnx::ValueInfoProto::name);
    if (!input) {
      const std::string near = nearest(name, names);
      fail_usage(span_of_file(context.file->name()),
                 "a type is given for '{}', but the model has no such input{}; it has {}", printable(name),
                 near.empty() ? "" : fmt::format("; did you mean '{}'?", printable(near)), printable(joined(names)));
    }
    match_given_type(context, *input, type, context.place("graph input", name));
  }
}

Type type_of_input(ModelContext& context, const onnx::ValueInfoProto& input, const Span& span) {
  if (!input.has_type() || input.type().value_case() == onnx::TypeProto::VALUE_NOT_SET)
    fail(span_of_file(context.file->name()), "graph input '{}' has no type", printable(input.name()));
  if (!input.type().has_tensor_type())
    return with_item_type(context, type_of_declared(context, input.type(), input.name(), span), input.name());
  const auto& tensor = input.type().tensor_type();
  DType dtype = dtype_of_element_type(tensor.elem_type(), span);
  const bool is_open =
      !tensor.has_shape() && !context.options.types.contains(input.name()) && !inferred_rank(context, input.name());
  if (is_open && !needs_rank(context.file->proto().graph(), input.name())) return tensor_type_of_rank(-1, dtype);
  const bool is_declared = tensor.has_shape() && !find_value(context.options.types, input.name());
  std::vector<Expr> dims = is_declared ? dims_of(context, tensor.shape(), input.name(), span)
                                       : dims_of_open_input(context, input.name(), span);
  for (int d = 0; d < tensor.shape().dim_size(); ++d) {
    if (const auto& dim = tensor.shape().dim(d); dim.has_dim_value() && dim.dim_value() >= 0)
      dims[static_cast<size_t>(d)] = int_imm(dim.dim_value());
  }
  Type type = tensor_type(std::move(dims), dtype, span);
  if (is_too_large(type, context.options.limits))
    fail(span, "its shape is too large, the limit is {} bytes", context.options.limits.tensor_bytes);
  return type;
}

}  // namespace relaxc::onnx_import
