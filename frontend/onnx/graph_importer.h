// Walks a graph and its subgraphs and builds the graph function.
#pragma once
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/node.h"
#include "support/printable.h"

namespace relaxc::onnx_import {

// State that the graphs of one model share.
struct ModelContext {
  std::shared_ptr<const ModelFile> file;
  const OpTable& ops;
  const ImportOptions& options;
  Diagnostics diagnostics = {};
  std::unordered_map<std::string, int64_t> opsets = {};
  std::unordered_map<std::string, const onnx::FunctionProto*> functions = {};  // "domain.name"
  std::unordered_map<std::string, VarRef> dims = {};                           // by dim_param
  Analyzer analyzer = {};                                                      // facts about dims
  int64_t node_count = 0;
  std::vector<std::string> nested = {};   // the functions and graphs that are being expanded; a graph has no name
  const Builder* main_builder = nullptr;  // the one with a dataflow block
  std::unordered_map<const NodeHeader*, Value> known = {};  // by operand; the value keeps it alive

  // Returns the place of something with a name in the model's file: "model.onnx: initializer 'w'".
  Span place(std::string_view kind, const std::string& name) const {
    return file_span(fmt::format("{}: {} '{}'", file->name(), kind, printable(name)));
  }
  void add(const CompileError& error) {
    for (const Diagnostic& diagnostic : error.diagnostics()) diagnostics.add(diagnostic);
  }
  // Reports a contradiction in the model and what the import does about it: as a warning, or as an error when the
  // import is strict.
  void warn(const Span& span, const std::string& message, std::string_view consequence) {
    Severity severity = options.strict ? Severity::kError : Severity::kWarning;
    std::string text = options.strict ? message : fmt::format("{}; {}", message, consequence);
    diagnostics.add({severity, ErrorKind::kInvalid, span, std::move(text), {}});
  }
};

// Enters a function or graph. A function that leads back to itself, and a level beyond the limit, are errors.
class Nested {
 public:
  Nested(ModelContext& context, const Span& span, const std::string& function = {}) : context_(context) {
    if (!function.empty() && contains(context.nested, function))
      fail(span, "function '{}' calls itself", printable(function));
    if (static_cast<int64_t>(context.nested.size()) >= context.options.limits.depth)
      fail(span, "functions and graphs are nested deeper than {}", context.options.limits.depth);
    context.nested.push_back(function);
  }
  ~Nested() { context_.nested.pop_back(); }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  ModelContext& context_;
};

class GraphImporter {
 public:
  using Scope = std::unordered_map<std::string, Value>;
  // Imports a main graph (parent null), a branch that has another builder than its parent, or an inlined body that
  // shares the parent's builder.
  GraphImporter(ModelContext& context, Builder& builder, GraphImporter* parent)
      : context_(context), builder_(builder), parent_(parent) {}

  ModelContext& context() { return context_; }
  Builder& builder() { return builder_; }

  // Defines a name. Returns false when it is taken.
  bool define(const std::string& name, Value value) { return scope_.emplace(name, std::move(value)).second; }
  Value find(const std::string& name) const;

  void add_initializers(const onnx::GraphProto& graph);
  // Imports all nodes in dependency order.
  void add_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);
  // Returns the outputs of a subgraph, by position.
  std::vector<Value> outputs_of(const onnx::GraphProto& graph);
  // Inlines the subgraph's nodes here, with its inputs bound to the values.
  std::vector<Value> inline_graph(const onnx::GraphProto& graph, const std::vector<Value>& arguments);

  Span span_of(const onnx::NodeProto& node, int64_t index) const;
  // Returns a leaf expression that is the value in this graph.
  Expr tensor_of(const Value& value, const Span& span);
  // Returns the value as an operand of Node::op(), which is a stand-in where its contents are known and suffice.
  Expr operand_of(const Value& value, const Span& span);
  // Returns the value behind an operand of known contents, else null.
  Value value_of(const Expr& operand) const;
  // Returns the operand, and the items of a tuple, without stand-ins.
  Expr bound(const Expr& operand, const Span& span);
  // Returns the contents of the operator's result when the contents of its tensors are known.
  std::optional<KnownTensor> evaluate_op(const std::string& name, const std::vector<Expr>& args, const Attrs& attrs,
                                         const Span& span);
  // Requires a == b when the model runs; `what` names them in the message.
  void require_equal(const Expr& a, const Expr& b, std::string_view what);

  // Attribute references inside of a function body.
  const onnx::NodeProto* function_call = nullptr;
  std::unordered_map<std::string, int64_t>* function_opsets = nullptr;
  std::string place;  // prefix of node names: "call/"

 private:
  void add_node(const onnx::NodeProto& node, int64_t index);
  void call_function(const onnx::NodeProto& node, const std::vector<Value>& inputs, const Span& span);
  std::vector<int> order(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);
  void check_size(const Type& type, int i, const Span& span) const;
  void bind_outputs(const onnx::NodeProto& node, const Outputs& outputs, const Span& span);
  void poison_outputs(const onnx::NodeProto& node);

  ModelContext& context_;
  Builder& builder_;
  GraphImporter* parent_;
  Scope scope_;
  std::vector<std::pair<Expr, Expr>> required_equal_;
};

// Returns the contents of a small list or scalar.
std::optional<KnownTensor> contents_of(const Tensor& tensor);

// Returns the dims of a declared type, with the model's symbolic names.
std::vector<Expr> dims_of(ModelContext& context, const onnx::TensorShapeProto& shape, const std::string& name,
                          const Span& span);

}  // namespace relaxc::onnx_import
