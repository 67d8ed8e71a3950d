// Calls the user's kernels for nodes: those of custom operators, and of others in place of the built-in conversion.
#include "frontend/onnx/graph_importer.h"
#include "ir/sequence.h"
#include "ir/type_relation.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/nearest.h"

namespace relaxc::onnx_import {

std::string type_of_node(const onnx::NodeProto& node) {
  std::string domain = domain_of(node.domain());
  return fmt::format("{}::{}", domain.empty() ? "ai.onnx" : domain, node.op_type());
}

namespace {

// Returns the condition on attributes and on absent inputs that does not hold, or "".
std::string failed_condition(const NodeKernel& row, const Attrs& attrs, const std::vector<Value>& inputs) {
  for (const auto& [name, wanted] : row.attrs) {
    const AttrValue* value = attrs.find(name);
    if (!value) value = row.kernel.defaults.find(name);
    if (!value)
      return fmt::format("attribute {} is absent, expected {}; {}", name, to_string(wanted), remedy_of_absent(name));
    if (!attribute_is(name, *value, wanted, -1))
      return fmt::format("attribute {} is {}, expected {}", name, text_of_attribute(*value), to_string(wanted));
  }
  std::vector<int64_t> gaps;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto position = static_cast<int64_t>(i);
    if (!inputs[i]) gaps.push_back(position);
    if (inputs[i] && row.absent.contains(position))
      return fmt::format("input {} is given, and the kernel is for nodes without it, absent=[{}]", i,
                         joined(std::vector(row.absent.begin(), row.absent.end())));
  }
  if (std::ranges::all_of(gaps, [&](int64_t i) { return row.absent.contains(i); })) return "";
  return fmt::format("input {} is absent; add absent=[{}] to @S.implements if the kernel is for nodes without it",
                     joined(gaps), joined(gaps));
}

// The result of the built-in converter for a node, apart from the model.
struct Converted {
  Expr graph;
  std::vector<Type> outputs;
  Attrs defaults;  // of attributes that the node leaves out
};
std::optional<Converted> convert_alone(const ModelContext& model, const onnx::NodeProto& node, int64_t opset,
                                       const std::vector<Value>& inputs, const Span& span) {
  const ConverterRow* row = find_converter(domain_of(node.domain()), node.op_type(), opset);
  if (!row) return std::nullopt;
  try {
    ImportOptions options{.dims = model.options.dims, .limits = model.options.limits};
    ModelContext context{.file = model.file, .ops = model.ops, .options = options, .opsets = model.opsets};
    context.known = model.known;
    Builder builder(model.ops);
    builder.set_span(span);
    GraphImporter importer(context, builder);
    std::vector<Value> copies = map_each(inputs, [](const Value& input) -> Value {
      if (!input) return nullptr;
      return make_value({.tensor = input->tensor,
                         .strings = input->strings,
                         .is_sequence = input->is_sequence,
                         .items = input->items,
                         .is_none = input->is_none,
                         .item_type = input->item_type});
    });
    Node view(importer, node, *row, opset, copies, span);
    std::vector<Expr> outputs;
    for (const Value& output : row->convert(view)) {
      if (!output) break;
      outputs.push_back(importer.tensor_of(output, span));
    }
    std::vector<Type> types = map_each(outputs, [](const Expr& output) { return output.type(); });
    return Converted{builder.finish(tuple(std::move(outputs))), std::move(types), view.defaults()};
  } catch (const CompileError&) {
    return std::nullopt;  // the kernel may do what the converter cannot
  }
}

// Returns the attribute of a node; nullopt for a value that no node has, or that no condition states.
std::optional<onnx::AttributeProto> attribute_of(const std::string& name, const AttrValue& value) {
  onnx::AttributeProto result;
  result.set_name(name);
  if (const bool* flag = value.as<bool>()) {
    result.set_type(onnx::AttributeProto::INT), result.set_i(*flag);
  } else if (const int64_t* number = value.as<int64_t>()) {
    result.set_type(onnx::AttributeProto::INT), result.set_i(*number);
  } else if (const double* real = value.as<double>()) {
    result.set_type(onnx::AttributeProto::FLOAT), result.set_f(static_cast<float>(*real));
  } else if (const std::string* text = value.as<std::string>()) {
    result.set_type(onnx::AttributeProto::STRING), result.set_s(*text);
  } else if (const AttrList* list = value.as<AttrList>()) {
    result.set_type(onnx::AttributeProto::INTS);
    for (const AttrValue& item : *list) {
      if (!item.as<int64_t>()) return std::nullopt;
      result.add_ints(*item.as<int64_t>());
    }
  } else {
    return std::nullopt;
  }
  return result;
}

using Convert = std::function<std::optional<Converted>(const onnx::NodeProto&)>;

// Adds the attributes that the rule names and the node leaves out, where the built-in converter makes the same of the
// node with them.
void add_defaults(const NodeKernel& row, const onnx::NodeProto& node, int64_t opset, const Converted& whole,
                  const Convert& convert, Attrs& attrs) {
  const ConverterRow* converter = find_converter(domain_of(node.domain()), node.op_type(), opset);
  for (const auto& [name, wanted] : row.attrs) {
    if (attrs.has(name) || row.kernel.defaults.has(name) || !converter->has_attribute(name)) continue;
    std::optional<onnx::AttributeProto> attribute = attribute_of(name, wanted);
    if (!attribute) continue;
    onnx::NodeProto with = node;
    *with.add_attribute() = *attribute;
    std::optional<Converted> other = convert(with);
    if (other && structural_equal(whole.graph, other->graph)) attrs.set(name, wanted);
  }
}

// Returns whether the kernel has a buffer for the tensor attribute, beside those of inputs and results.
bool reads_tensor(const UserKernel& kernel, const onnx::NodeProto& node, const onnx::AttributeProto& attribute) {
  const std::vector<Buffer> buffers = buffer_params(kernel.program);
  const auto operands = std::ranges::count_if(node.input(), [](const std::string& name) { return !name.empty(); });
  return attribute.type() == onnx::AttributeProto::TENSOR && std::ssize(buffers) > operands + node.output_size() &&
         std::ranges::any_of(buffers, [&](const Buffer& buffer) { return buffer->name == attribute.name(); });
}

// Returns the attributes of the node that the rule does not name and the kernel does not read. One without which the
// built-in converter makes the same of the node has its default.
std::vector<OpenAttr> unread_attributes(const NodeKernel& row, const onnx::NodeProto& node, const Attrs& attrs,
                                        const std::optional<Converted>& whole, const Convert& convert) {
  std::vector<OpenAttr> result;
  for (int i = 0; i < node.attribute_size(); ++i) {
    const std::string& name = node.attribute(i).name();
    if (row.attrs.has(name) || reads_attribute(row.kernel, name) || reads_tensor(row.kernel, node, node.attribute(i)))
      continue;
    onnx::NodeProto without = node;
    without.mutable_attribute()->DeleteSubrange(i, 1);
    std::optional<Converted> other = whole ? convert(without) : std::nullopt;
    if (!other || !structural_equal(whole->graph, other->graph)) result.push_back({name, *attrs.find(name)});
  }
  return result;
}

// Returns in which result the kernel contradicts the operator, or "".
std::string wrong_result(const Expr& made, size_t count, const std::optional<Converted>& whole,
                         const std::string& type) {
  const TupleType* items = made.type().as<TupleType>();
  for (size_t i = 0; whole && i < std::min(count, whole->outputs.size()); ++i) {
    const Type &given = items ? items->items[i] : made.type(), &wanted = whole->outputs[i];
    if (fits(wanted, given) == Verdict::kContradicted)
      return fmt::format("its result {} is {}, and that of {} is {}", i, text_of_tensor(given), type,
                         text_of_tensor(wanted));
  }
  return "";
}

}  // namespace

// Returns the node's inputs that are there, as tensors.
std::vector<Expr> GraphImporter::tensors_of(const std::vector<Value>& inputs, const Span& span) {
  std::vector<Expr> result;
  for (const Value& input : inputs) {
    if (input) result.push_back(tensor_of(input, span));
  }
  return result;
}

bool GraphImporter::has_kernel(const onnx::NodeProto& node) const {
  const std::string type = type_of_node(node);
  return std::ranges::any_of(context_.options.kernels, [&](const NodeKernel& row) { return row.type == type; });
}

std::variant<Expr, std::string> GraphImporter::try_kernel(const NodeKernel& row, const onnx::NodeProto& node,
                                                          const std::vector<Value>& inputs, const Span& span,
                                                          IRModule& kernels, Builder& builder, std::string& note) {
  KernelRequest request{.tensors = {}, .attrs = {}, .num_outputs = static_cast<size_t>(node.output_size())};
  for (const auto& attribute : node.attribute()) {
    // Kernels cannot ask for strings of a tensor, and not for a graph.
    const bool is_text = attribute.has_t() && attribute.t().data_type() == onnx::TensorProto::STRING;
    request.attrs.set(attribute.name(), is_text ? AttrValue() : value_of_attribute(context_, attribute, span));
  }
  const auto& opsets = function_opsets ? *function_opsets : context_.opsets;
  const int64_t opset = copy_value(opsets, domain_of(node.domain())).value_or(0);
  auto convert = [&](const onnx::NodeProto& proto) { return convert_alone(context_, proto, opset, inputs, span); };
  const std::optional<Converted> whole = convert(node);
  Attrs known = request.attrs;
  if (whole) add_defaults(row, node, opset, *whole, convert, known);
  std::vector<OpenAttr> unread = unread_attributes(row, node, request.attrs, whole, convert);
  for (const auto& [name, value] : whole ? whole->defaults : Attrs()) {
    if (row.kernel.defaults.has(name)) continue;
    if (!request.attrs.has(name)) request.attrs.set(name, value);
    if (!known.has(name)) known.set(name, value);
  }
  if (std::string why = failed_condition(row, known, inputs); !why.empty()) return why;
  // Only of operators that are known the defaults are; whoever names one node knows its attributes.
  if (whole && row.node.empty()) {
    request.open = std::move(unread);
  } else if (!unread.empty()) {
    note = fmt::format("it neither reads nor names: {}", joined(unread, [](const OpenAttr& attr) {
                         return fmt::format("{}={}", attr.name, text_of_attribute(attr.value));
                       }));
  }
  request.tensors = tensors_of(inputs, span);
  if (whole) request.known = whole->outputs;
  auto made = call_user_kernel(row.kernel, request, kernels, builder);
  if (const Expr* call = std::get_if<Expr>(&made)) {
    if (std::string why = wrong_result(*call, request.num_outputs, whole, type_of_node(node)); !why.empty()) return why;
  }
  return made;
}

// Warns once for a kernel that takes nodes with attributes of which it knows nothing.
static void warn_of_unread(ModelContext& context, const NodeKernel& row, const std::string& note, const Span& span) {
  if (!context.warned_of.insert(row.kernel.name).second) return;
  context.diagnostics.warning(span, "kernel '{}' takes the node, although {}", row.kernel.name, note)
      .notes.push_back(
          "a param of the name reads an attribute; naming it in @S.implements takes nodes with that value only");
}

std::optional<Outputs> GraphImporter::call_kernel(const onnx::NodeProto& node, const std::vector<Value>& inputs,
                                                  const Span& span, std::string& refused) {
  const std::string type = type_of_node(node);
  if (!context_.options.kernels.empty()) {
    context_.types_of_nodes.insert(type);
    context_.names_of_nodes.insert(span.origin->node);
  }
  const auto& claimed = context_.options.claimed;
  std::optional<Outputs> outputs;
  std::string taker;
  for (size_t i = 0; i < context_.options.kernels.size(); ++i) {
    const NodeKernel& row = context_.options.kernels[i];
    bool is_asked =
        row.node.empty() ? row.type == type : row.node == span.origin->node && (row.type.empty() || row.type == type);
    if (!is_asked || node.output_size() == 0) continue;
    RuleUse& use = context_.kernel_uses[i];
    const bool is_known = use.is_used || !use.refused.empty();
    if (outputs && !claimed && is_known) continue;
    // A kernel that does not fit leaves nothing behind.
    Builder trial(builder_.ops());
    trial.set_span(builder_.span());
    IRModule kernels = context_.kernels;
    std::string note, why;
    auto made = try_kernel(row, node, inputs, span, kernels, trial, note);
    const Expr* result = std::get_if<Expr>(&made);
    if (!result) {
      why = std::get<std::string>(made);
    } else if (outputs) {
      why = fmt::format("it could, and '{}' comes first", taker);
    } else {
      for (const Binding& binding : bindings_of(trial.finish(tuple({})))) builder_.keep(binding);
      context_.kernels = std::move(kernels);
      outputs = outputs_of(builder_.emit(*result, node.output(0)), static_cast<size_t>(node.output_size()));
      for (const std::string& output : node.output()) context_.made_by.insert_or_assign(output, row.kernel.name);
      taker = row.kernel.name;
      use.is_used = true;
    }
    if (result && why.empty() && !note.empty()) warn_of_unread(context_, row, note, span);
    use.refuse(span.origin->node, result && !why.empty() ? fmt::format("'{}' comes first", taker) : why);
    const std::string title = fmt::format("kernel '{}'", row.kernel.name);
    if (claimed) claimed({span, type, title, why, result ? note : ""});
    if (!why.empty()) refused += fmt::format("; {} does not fit: {}", title, why);
  }
  if (claimed && !outputs) claimed({span, type, "", ""});
  return outputs;
}

// Returns the value, or the first items of the tuple that it is, as outputs of a node.
Outputs GraphImporter::outputs_of(const Expr& value, size_t count) {
  if (!value.type().is<TupleType>()) return {make_value({.tensor = value, .home = &builder_})};
  Outputs outputs;
  for (size_t i = 0; i < count; ++i) {
    Expr item = builder_.emit(tuple_get(value, static_cast<int64_t>(i)));
    outputs.push_back(make_value({.tensor = item, .home = &builder_}));
  }
  return outputs;
}

void report_unused_kernels(const ModelContext& context) {
  for (size_t i = 0; i < context.kernel_uses.size() && context.options.report; ++i) {
    const RuleUse& use = context.kernel_uses[i];
    const NodeKernel& row = context.options.kernels[i];
    if (use.is_used) continue;
    std::string why = use.refused;
    if (why.empty()) {
      const auto& known = row.node.empty() ? context.types_of_nodes : context.names_of_nodes;
      const std::string& wanted = row.node.empty() ? row.type : row.node;
      if (known.contains(wanted)) continue;  // an error at its node says more
      why = why_left_out(context, row.node, row.type);
      const std::string near = nearest(wanted, {known.begin(), known.end()});
      if (why.empty())
        why = fmt::format("the model has no {}{}", row.node.empty() ? wanted : fmt::format("node '{}'", wanted),
                          near.empty() || near == wanted ? "" : fmt::format("; did you mean '{}'?", near));
    }
    context.options.report(note_at(row.span, fmt::format("kernel '{}' is used nowhere: {}", row.kernel.name, why)));
  }
}

}  // namespace relaxc::onnx_import
