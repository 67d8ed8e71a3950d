#include "frontend/onnx/graph_importer.h"

#include <algorithm>
#include <cctype>
#include <queue>
#include <ranges>
#include <unordered_set>

#include "frontend/onnx/dim_expressions.h"
#include "support/checked_math.h"
#include "support/diagnostic.h"
#include "support/guard.h"
#include "support/joined.h"
#include "support/nearest.h"
#include "support/printable.h"
#include "support/temporarily.h"
#include "vm/error.h"

namespace relaxc::onnx_import {

std::vector<std::string> names_read(const onnx::NodeProto& node) {
  std::vector<std::string> names;
  for (const std::string& name : node.input()) {
    if (!name.empty()) names.push_back(name);
  }
  const bool names_y = node.op_type() == "Gradient" && node.domain() == "ai.onnx.preview.training";
  for (const auto& attribute : node.attribute()) {
    if (names_y && attribute.name() == "y") names.push_back(attribute.s());
    if (!attribute.has_g()) continue;
    std::unordered_set<std::string> inner;
    for (const auto& input : attribute.g().input()) inner.insert(input.name());
    for (const auto& tensor : attribute.g().initializer()) inner.insert(tensor.name());
    auto take = [&](const std::string& name) {
      if (!inner.contains(name)) names.push_back(name);
    };
    for (const auto& child : attribute.g().node()) {
      for (const std::string& name : names_read(child)) take(name);
      inner.insert(child.output().begin(), child.output().end());
    }
    for (const auto& output : attribute.g().output()) take(output.name());
  }
  return names;
}

bool is_too_large(const Type& type, const ImportLimits& limits) {
  std::vector<int64_t> dims =
      map_each(*known_shape(type), [](const Expr& dim) { return std::max<int64_t>(as_int(dim).value_or(1), 1); });
  std::optional<int64_t> bytes = tensor_bytes(dims, tensor_dtype(type).value_or(kFloat32));
  return !bytes || *bytes > limits.tensor_bytes;
}

bool is_placeholder(const std::string& dim_param) {
  std::string lower = dim_param;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  auto is_mark = [](unsigned char c) { return c < 0x80 && c != '_' && std::isalpha(c) == 0; };
  return std::ranges::all_of(lower, is_mark) || lower == "none" || lower == "unknown" || lower == "unk";
}
std::string name_of_dim(const onnx::TensorShapeProto::Dimension& dim, const std::string& value, int d) {
  return is_placeholder(dim.dim_param()) ? fmt::format("{}_d{}", value, d) : dim.dim_param();
}
Expr named_dim(ModelContext& context, const std::string& name) {
  const Expr* given = find_value(context.given_dims, name);
  return given && !context.options.dims.contains(name) ? *given : own_dim(context, name);
}

// Returns whether a tensor among the inputs has a dim of exactly this name, so that a run measures it.
static bool is_measured(const ModelContext& context, const std::string& dim) {
  const onnx::GraphProto& graph = context.file->proto().graph();
  const auto constants = names_of_constants(graph, context.options);
  return std::ranges::any_of(graph.input(), [&](const onnx::ValueInfoProto& input) {
    if (!input.type().has_tensor_type() || constants.contains(input.name())) return false;
    const auto& dims = input.type().tensor_type().shape().dim();
    return std::ranges::any_of(dims, [&](const auto& each) { return each.dim_param() == dim; });
  });
}

Expr own_dim(ModelContext& context, const std::string& name) {
  if (const int64_t* number = find_value(context.options.dims, name)) {
    context.fixed_dims.insert(name);
    return int_imm(*number);
  }
  // "past + length" is no dim of its own where the model has these two: as one it could have any size, 1 included,
  // which stretches.
  const std::optional<Expr> composed = dim_of_expression(name, [&](const std::string& word) -> std::optional<Expr> {
    return is_measured(context, word) ? std::optional(named_dim(context, word)) : std::nullopt;
  });
  if (composed) return *composed;
  auto [entry, inserted] = context.dims.emplace(name, make_dim(name));
  if (inserted) context.analyzer.bind(entry->second, Interval{0, std::numeric_limits<int64_t>::max()});
  return entry->second;
}

std::vector<Expr> dims_of(ModelContext& context, const onnx::TensorShapeProto& shape, const std::string& name,
                          const Span& span) {
  std::vector<Expr> dims;
  for (int d = 0; d < shape.dim_size(); ++d) {
    const auto& dim = shape.dim(d);
    if (dim.dim_value() < -1) fail(span, "dim {} is {}, expected >= 0, or -1 for unknown", d, dim.dim_value());
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      dims.push_back(int_imm(dim.dim_value()));
      continue;
    }
    dims.push_back(named_dim(context, name_of_dim(dim, name, d)));
  }
  return dims;
}

Type type_of_declared(ModelContext& context, const onnx::TypeProto& declared, const std::string& name,
                      const Span& span) {  // NOLINT: protobuf bounds the depth
  auto inner = [&](const onnx::TypeProto& type) { return type_of_declared(context, type, name, span); };
  if (declared.has_sequence_type()) return sequence_type(inner(declared.sequence_type().elem_type()));
  if (declared.has_optional_type()) {
    Type item = inner(declared.optional_type().elem_type());
    if (item.is<OptionalType>()) fail(span, "'{}' is an optional of an optional", printable(name));
    return optional_type(item);
  }
  if (declared.has_map_type()) {
    DType key = dtype_of_element_type(declared.map_type().key_type(), span);
    if (!key.is_integral() && !key.is_string()) fail(span, "the keys of a map are {}", to_string(key));
    Type value = inner(declared.map_type().value_type());
    if (known_rank(value) < 0 && value.is<TensorType>()) value = tensor_type({}, tensor_dtype(value));
    return map_type(key, value);
  }
  if (declared.has_sparse_tensor_type())
    fail_unsupported(
        span,
        "'{}' is a sparse tensor, and no operator of ONNX takes one; declare it as a dense tensor, and give "
        "its zeros with its other values",
        printable(name));
  if (!declared.has_tensor_type()) fail_unsupported(span, "'{}' is not of tensors", printable(name));
  const auto& tensor = declared.tensor_type();
  DType dtype = dtype_of_element_type(tensor.elem_type(), span);
  std::vector<Expr> dims;
  for (const auto& dim : tensor.shape().dim()) {
    if (!dim.has_dim_value() || dim.dim_value() < 0) return tensor_type_of_rank(tensor.shape().dim_size(), dtype);
    dims.push_back(int_imm(dim.dim_value()));
  }
  return dims.empty() ? tensor_type_of_rank(-1, dtype) : tensor_type(std::move(dims), dtype);
}

VarRef unknown_dim(ModelContext& context, std::string name) {
  VarRef dim = make_dim(std::move(name));
  context.analyzer.bind(dim, Interval{0, std::numeric_limits<int64_t>::max()});
  return dim;
}

Value GraphImporter::find(const std::string& name) const {
  for (const GraphImporter* graph = this; graph; graph = graph->parent_) {
    if (auto it = graph->scope_.find(name); it != graph->scope_.end()) return it->second;
  }
  return nullptr;
}
std::string name_of_node(const onnx::NodeProto& node, int64_t index, const std::string& branch) {
  return printable(node.name().empty() ? fmt::format("{}{}_{}", branch, node.op_type(), index) : node.name());
}

std::string operator_of_node(const onnx::NodeProto& node) {
  const std::string domain = domain_of(node.domain()),
                    op = domain.empty() ? node.op_type() : domain + "::" + node.op_type();
  return op.empty() ? "?" : printable(op);
}

Span GraphImporter::span_of(const onnx::NodeProto& node, int64_t index) const {
  return {std::make_shared<const Origin>(
      Origin{context_.file->name(), place + name_of_node(node, index, branch), operator_of_node(node), nullptr})};
}

void GraphImporter::require_equal(const Expr& a, const Expr& b, std::string_view what) {
  for (const auto& [x, y] : required_equal_) {
    if (structural_equal(x, a) && structural_equal(y, b)) return;
  }
  required_equal_.emplace_back(a, b);
  // These are two shape values that must match when the model runs.
  builder_.match_cast(shape_expr({a}), shape_type({b}), name_of_check(what));
}

// Reports that a tensor cannot be read. A file that cannot be opened is one error for all initializers that are in it.
static void report_unread(ModelContext& context, const onnx::SparseTensorProto&, const CompileError& error) {
  context.add(error);
}
static void report_unread(ModelContext& context, const onnx::TensorProto& tensor, const CompileError& error) {
  const std::optional<std::string> file = context.file->unopened(tensor);
  const std::vector<std::string> all = file ? context.file->initializers_at(*file) : std::vector<std::string>();
  if (all.size() < 2) return context.add(error);
  if (!context.unopened.insert(*file).second) return;
  constexpr size_t kMostNamed = 3;
  const std::vector<std::string> named(all.begin(), all.begin() + std::min(all.size(), kMostNamed));
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  diagnostics.back().message += fmt::format("; {} initializers have their data there: '{}'{}", all.size(),
                                            printable(joined(named, "', '")), all.size() > kMostNamed ? ", ..." : "");
  context.add(CompileError(std::move(diagnostics)));
}
void GraphImporter::add_initializers(const onnx::GraphProto& graph) {
  std::unordered_set<std::string> used;
  for (const auto& node : graph.node()) std::ranges::copy(names_read(node), std::inserter(used, used.end()));
  for (const auto& output : graph.output()) used.insert(output.name());
  std::erase_if(used, [constants = names_of_constants(graph, context_.options)](const std::string& name) {
    return !constants.contains(name);
  });
  auto add = [&](const auto& tensor, const std::string& name, const char* kind) {
    if (!used.contains(name)) return;
    Span span = context_.place(kind, name);
    Value value =
        make_value({.poisoned = true, .source = fmt::format("{} '{}' cannot be read", kind, printable(name))});
    try {
      Tensor data = ModelFile::tensor(context_.file, tensor, span);
      value = make_value({.tensor = constant(data, span), .home = &builder_});
    } catch (const CompileError& error) {
      report_unread(context_, tensor, error);
    }
    if (!define(name, value)) context_.diagnostics.error(span, "value '{}' is already defined", printable(name));
  };
  for (const auto& tensor : graph.initializer()) add(tensor, tensor.name(), "initializer");
  for (const auto& tensor : graph.sparse_initializer()) add(tensor, tensor.values().name(), "sparse initializer");
}

namespace {

// The dependencies between the nodes of one graph.
struct Dependencies {
  std::vector<std::vector<int>> producers, consumers;  // by node, in the order of use

  Dependencies(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
               const std::function<bool(const std::string& name, int producer, int reader)>& is_outer)
      : producers(static_cast<size_t>(nodes.size())), consumers(producers.size()) {
    std::unordered_map<std::string, int> producer_of;
    for (int i = 0; i < nodes.size(); ++i) {
      for (const std::string& output : nodes[i].output()) {
        if (!output.empty()) producer_of.emplace(output, i);
      }
    }
    for (int i = 0; i < nodes.size(); ++i) {
      for (const std::string& name : names_read(nodes[i])) {
        auto producer = producer_of.find(name);
        if (producer == producer_of.end() || is_outer(name, producer->second, i)) continue;
        producers[i].push_back(producer->second);
        consumers[producer->second].push_back(i);
      }
    }
  }

  // Sorts by Kahn's algorithm ("Topological sorting of large networks", 1962), and keeps the file's order where it is
  // already valid. Nodes that wait for a cycle are missing from the result.
  std::vector<int> sorted() const {
    std::vector<size_t> waiting;
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t i = 0; i < producers.size(); ++i) {
      waiting.push_back(producers[i].size());
      if (waiting[i] == 0) ready.push(static_cast<int>(i));
    }
    std::vector<int> result;
    while (!ready.empty()) {
      result.push_back(ready.top());
      ready.pop();
      for (int consumer : consumers[result.back()]) {
        if (--waiting[consumer] == 0) ready.push(consumer);
      }
    }
    return result;
  }

  // Returns the nodes of a cycle among the unsorted nodes: walks backwards along their producers until a node repeats.
  std::vector<int> find_cycle(const std::vector<int>& sorted) const {
    std::vector<bool> is_sorted(producers.size());
    for (int i : sorted) is_sorted[i] = true;
    int at = 0;
    while (is_sorted[at]) ++at;
    std::vector<int> path;
    while (!contains(path, at)) {
      path.push_back(at);
      const std::vector<int>& before = producers[at];
      at = *std::ranges::find_if(before, [&](int i) { return !is_sorted[i]; });
    }
    path.erase(path.begin(), std::ranges::find(path, at));
    std::ranges::reverse(path);
    return path;
  }
};

}  // namespace

std::vector<int> GraphImporter::order(const Nodes& nodes) {
  // A graph may define a name of the graph around it again. Before that definition the name means the outer value.
  Dependencies dependencies(nodes, [&](const std::string& name, int producer, int reader) {
    return scope_.contains(name) || (producer >= reader && find(name) != nullptr);
  });
  std::vector<int> result = dependencies.sorted();
  auto name_of = [&](int i) { return span_of(nodes[i], i).origin->node; };
  if (result.size() == static_cast<size_t>(nodes.size())) {
    auto late = std::adjacent_find(result.begin(), result.end(), std::greater<>());
    if (late != result.end())
      context_.warn(span_of(nodes[late[1]], late[1]),
                    fmt::format("reads an output of the later node '{}'", name_of(late[0])), "the nodes are sorted");
    return result;
  }
  std::vector<int> cycle = dependencies.find_cycle(result);
  auto quoted = [&](int i) { return fmt::format("'{}'", name_of(i)); };
  fail(span_of(nodes[cycle.front()], cycle.front()), "the graph has a cycle: {}",
       joined(cycle | std::views::take(10), quoted, " -> "));
}

void GraphImporter::add_nodes(const Nodes& nodes, std::vector<std::string> outputs) {
  context_.node_count += nodes.size();
  if (context_.node_count > context_.options.limits.nodes)
    fail(builder_.span(), "the model has more than {} nodes once its functions are expanded",
         context_.options.limits.nodes);
  outputs_ = std::move(outputs);
  add_in_order(nodes, order(nodes));
}

void GraphImporter::add_in_order(const Nodes& nodes, std::span<const int> order) {
  for (size_t k = 0; k < order.size(); ++k) {
    nodes_left_ = order.size() - k - 1;
    const Span outer = builder_.span();
    std::optional<StageProgress::Piece> piece;
    if (progress_) piece.emplace(*progress_, nodes[order[k]].name());
    try {
      add_node(nodes[order[k]], order[k]);
    } catch (const RanksDiffer& split) {
      split_at(split, nodes, order.subspan(k));
      builder_.set_span(outer);
      return;
    }
  }
}

// Checks that the constant dims of output i do not make a tensor larger than the limit.
static void check_size(const Type& type, int i, const ImportLimits& limits, const Span& span) {
  const std::vector<Expr>* shape = known_shape(type);
  if (!shape) return;
  std::vector<int64_t> known;
  for (const Expr& dim : *shape) {
    known.push_back(as_int(dim).value_or(1));
    if (known.back() < 0) fail(span, "output {} has a dim of {}", i, known.back());
  }
  if (!contains(known, int64_t{0}) && is_too_large(type, limits))
    fail(span, "output {} of shape [{}] is too large, the limit is {} bytes", i, joined(known), limits.tensor_bytes);
}

void GraphImporter::bind_outputs(const onnx::NodeProto& node, const Outputs& outputs, const Span& span) {
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    if (static_cast<size_t>(i) >= outputs.size() || !outputs[static_cast<size_t>(i)])
      fail_unsupported(span, "output {} is not supported", i);
    const Value& value = outputs[static_cast<size_t>(i)];
    if (value->tensor) check_size(value->tensor->type(), i, context_.options.limits, span);
    if (!define(node.output(i), value)) fail(span, "value '{}' is already defined", printable(node.output(i)));
  }
}

// Says what the model's opset has no longer, what is ignored, and what surprises.
static void warn_of(ModelContext& context, const onnx::NodeProto& node, const ConverterRow& row, int64_t version,
                    const Span& span) {
  if (row.removed_in != 0 && version >= row.removed_in)
    context.warn(span,
                 fmt::format("{} is in opsets up to {}, the model has {}", row.op_type, row.removed_in - 1, version),
                 fmt::format("it is computed as in opset {}", row.removed_in - 1));
  auto is_of_inference = [](const auto& attribute) { return attribute.name() == "is_test" && attribute.i() != 0; };
  constexpr int64_t kInference = 7;  // the opset since which a Dropout keeps all elements unless it is told to train
  if (row.op_type == "Dropout" && version < kInference && std::ranges::none_of(node.attribute(), is_of_inference))
    context.diagnostics.warning(
        span, "it drops elements at random: is_test is 0, as by default before opset {}; 1 keeps all", kInference);
  for (const auto& attribute : node.attribute()) {
    if (row.has_attribute(attribute.name())) continue;
    context.warn(span,
                 fmt::format("attribute '{}' is not known for {} at opset {}", printable(attribute.name()),
                             span.origin->op_type, version),
                 "it is ignored");
  }
}

// Inputs with empty names count: they are absent at the end of the list, and errors where the operator requires them.
static void check_operands(const onnx::NodeProto& node, const ConverterRow& row, const std::vector<Value>& inputs,
                           const Span& span) {
  int given = node.input_size(), last = static_cast<int>(inputs.size());
  if (given < row.least_inputs || last > row.most_inputs)
    fail(span, "{} inputs, expected {}{}", given, row.least_inputs,
         row.most_inputs == row.least_inputs ? ""
         : row.most_inputs == kAny           ? " or more"
                                             : fmt::format(" to {}", row.most_inputs));
  const int outputs = node.output_size();
  const bool is_standard = std::string_view(row.domain) != "com.microsoft";  // whose operators may have more outputs
  if (is_standard && row.convert.has_one_output() && outputs > 1 && !node.output(outputs - 1).empty())
    fail(span, "{} outputs, expected 1", outputs);
  bool all = row.most_inputs == kAny;
  for (int i = 0; i < (all ? given : row.least_inputs); ++i) {
    bool is_absent = i >= last || !inputs[static_cast<size_t>(i)];
    bool may_be_absent = i < row.least_inputs && (row.may_be_empty >> i & 1);
    if (is_absent && !may_be_absent) fail(span, "input {} is required, but has an empty name", i);
  }
}

static std::vector<std::string> names_of_operators(const std::string& domain) {
  std::vector<std::string> names;
  for (const OnnxOperator& op : onnx_operators()) {
    if (op.domain == domain) names.push_back(op.name);
  }
  return names;
}
[[noreturn]] static void fail_unknown(const std::string& domain, const std::string& type, int64_t version,
                                      const std::string& refused, const ModelContext& context, const Span& span) {
  std::string remedy = refused;
  const std::string why = why_domain_is_unknown(domain);
  if (!why.empty()) remedy = "; " + why + remedy;
  int64_t first = version;
  while (first <= kNewestOpset && !find_converter(domain, type, first)) ++first;
  if (first <= kNewestOpset) {
    remedy = fmt::format("; it is one from opset {} on", first) + remedy;
  } else if (const std::string meant = nearest(type, names_of_operators(domain)); !meant.empty()) {
    remedy = fmt::format("; did you mean '{}'?", meant) + remedy;
  }
  if (refused.empty()) {
    const std::string name = (domain.empty() ? "ai.onnx" : printable(domain)) + "::" + printable(type);
    remedy += "; " + kernel_remedy(domain, type);
    const auto& kernels = context.options.kernels;
    const std::string near = nearest(name, map_each(kernels, &NodeKernel::type));
    if (const NodeKernel* row = find_item(kernels, near, &NodeKernel::type); row && !near.empty())
      remedy += fmt::format("; kernel '{}' is for \"{}\"", row->kernel.name, near);
  }
  const std::string opset = version == kNewestOpset ? "" : fmt::format(" of opset {}", version);
  fail_unsupported(span, "operator {}{} is not supported{}", span.origin->op_type, opset, remedy);
}

// Returns the built-in converter, or that of a plug-in as a row in `custom`.
static const ConverterRow* find_row(const ImportOptions& options, const std::string& domain, const std::string& type,
                                    int64_t version, std::optional<ConverterRow>& custom) {
  if (const ConverterRow* row = find_converter(domain, type, version)) return row;
  const OnnxConverter* found = find_custom(options.converters, domain, type, version);
  return found ? &custom.emplace(row_of(*found)) : nullptr;
}

std::optional<int64_t> GraphImporter::imported_version(const std::string& domain) const {
  return copy_value(function_opsets ? *function_opsets : context_.opsets, domain);
}

void GraphImporter::add_node(const onnx::NodeProto& node, int64_t index) {
  Span span = span_of(node, index);
  Span outer = builder_.span();
  builder_.set_span(span);
  try {
    std::vector<Value> inputs;
    bool poisoned = false;
    imported_.push_back(&node);
    for (const std::string& name : node.input()) {
      Value value = name.empty() ? nullptr : find(name);
      if (!name.empty() && !value) fail(span, "input '{}' is not defined", printable(name));
      if (value && value->poisoned) poisoned = true;
      inputs.push_back(std::move(value));
    }
    while (!inputs.empty() && !inputs.back()) inputs.pop_back();
    std::string refused;
    std::optional<Outputs> outputs = poisoned ? std::nullopt : call_kernel(node, inputs, span, refused);
    const bool is_function = context_.functions.contains(name_of_function(node));
    if (outputs) bind_outputs(node, *outputs, span);
    if (!outputs && is_function && !poisoned) call_function(node, inputs, span);
    if (poisoned && (is_function || has_kernel(node))) throw CompileError({});  // reported where it failed
    if (outputs || is_function) {
      builder_.set_span(outer);
      return;
    }
    const std::string domain = domain_of(node.domain());
    const std::optional<int64_t> imported = imported_version(domain);
    const int64_t version = imported.value_or(kNewestOpset);
    std::optional<ConverterRow> custom;
    const ConverterRow* row = find_row(context_.options, domain, node.op_type(), version, custom);
    if (!row) fail_unknown(domain, node.op_type(), version, refused, context_, span);
    if (!imported && context_.opsets.emplace(domain, kNewestOpset).second)
      context_.warn(span, fmt::format("the model does not import the domain '{}'", printable(domain)),
                    "its newest version is assumed");
    if (!poisoned) {
      check_operands(node, *row, inputs, span);
      // Reading a constant may be an error of the run, such as that of a complex number as a real one.
      auto convert = [&] {
        return with_compile_errors(span, [&] { return convert_node(node, *row, version, inputs, span); });
      };
      bind_outputs(node, guarded([&] { return to_string(span); }, convert), span);
    }
    warn_of(context_, node, *row, version, span);
    if (poisoned) throw CompileError({});
  } catch (const CompileError& error) {
    on_failure(node, span, error);
  }
  builder_.set_span(outer);
}

std::vector<std::string> entered(const ModelContext& context, const Span& span, const std::string& function) {
  if (!function.empty() && contains(context.nested, function))
    fail(span, "function '{}' calls itself", printable(function));
  if (std::ssize(context.nested) >= context.options.limits.depth)
    fail(span, "functions and graphs are nested deeper than {}", context.options.limits.depth);
  std::vector<std::string> result = context.nested;
  result.push_back(function);
  return result;
}

std::vector<std::string> names_of_outputs(const onnx::GraphProto& graph) {
  return map_each(graph.output(), [](const onnx::ValueInfoProto& output) { return output.name(); });
}

// A tensor of unknown rank, such as an item of a sequence, has the rank that the body's input declares.
Value GraphImporter::with_declared_rank(const Value& value, const onnx::ValueInfoProto& input) {
  int rank = input.type().tensor_type().shape().dim_size();
  bool is_open = value->tensor && value->tensor->type().is<TensorType>() && known_rank(value->tensor->type()) < 0;
  if (!is_open || rank == 0) return value;
  std::vector<Expr> dims;
  for (int d = 0; d < rank; ++d) dims.push_back(unknown_dim(context_, fmt::format("d{}", d)));
  Type type = tensor_type(std::move(dims), tensor_dtype(value->tensor->type()));
  return make_value({.tensor = builder_.match_cast(*value->tensor, type), .home = &builder_});
}

std::vector<Value> GraphImporter::import_subgraph(const onnx::GraphProto& graph, const std::vector<Value>& arguments) {
  Temporarily nested(context_.nested, entered(context_, builder_.span(), ""));
  size_t given = std::min(arguments.size(), static_cast<size_t>(graph.input_size()));
  for (size_t i = 0; i < given; ++i) {
    const onnx::ValueInfoProto& input = graph.input(static_cast<int>(i));
    define(input.name(), with_declared_rank(arguments[i], input));
  }
  declare(graph);
  add_initializers(graph);
  add_nodes(graph.node(), names_of_outputs(graph));
  check_values(*this, graph.value_info());
  std::vector<Value> result;
  for (const auto& output : graph.output()) {
    result.push_back(find(output.name()));
    if (!result.back()) fail(builder_.span(), "graph output '{}' is not defined", printable(output.name()));
  }
  return result;
}

}  // namespace relaxc::onnx_import
