// Walks a graph and its subgraphs and builds the graph function.
#pragma once
#include <fmt/format.h>

#include <set>

#include "frontend/onnx/model_file.h"
#include "frontend/onnx/node.h"
#include "frontend/onnx/ranks.h"
#include "support/printable.h"

namespace relaxc::onnx_import {

// State that the graphs of one model share.
struct ModelContext {
  std::shared_ptr<const ModelFile> file;
  const OpTable& ops;
  const ImportOptions& options;
  Diagnostics diagnostics = {};
  std::unordered_map<std::string, int64_t> opsets = {};
  std::unordered_map<std::string, const onnx::FunctionProto*> functions = {};  // by name_of_function()
  std::unordered_map<std::string, VarRef> dims = {};                           // by dim_param
  std::set<std::string> fixed_dims = {};                                       // of the options, those that occur
  std::map<std::string, Expr> given_dims = {};                                 // dim_params that a given type replaces
  std::optional<Ranks> ranks = {};                                             // of values, once somebody asks
  Analyzer analyzer = {};                                                      // facts about dims
  KnownValues known = {};                                                      // contents of small tensors
  IRModule kernels = {};                                                       // the user's that were called
  std::vector<RuleUse> kernel_uses = std::vector<RuleUse>(options.kernels.size());
  std::unordered_map<std::string, std::string> made_by = {};       // the user's kernel, by the name of the value
  std::set<std::string> warned_of = {};                            // the user's kernels that ignore attributes of nodes
  std::set<std::string> names_of_nodes = {}, types_of_nodes = {};  // that were imported, if there are kernels for some
  int64_t node_count = 0;
  std::vector<std::string> nested = {};  // the functions and graphs that are being expanded; "" for a graph
  std::optional<std::pair<const onnx::NodeProto*, bool>> chosen_side =
      {};  // of an If that is imported next: then, else

  // Returns the place of a named part of the model: "model.onnx: initializer 'w'".
  Span place(std::string_view kind, const std::string& name) const {
    return span_of_file(fmt::format("{}: {} '{}'", file->name(), kind, printable(name)));
  }
  // The calls that stand for nodes which cannot be converted, with the builders of their graphs (unconverted.cc).
  std::vector<std::pair<Expr, const Builder*>> stand_ins = {};

  std::vector<std::pair<Expr, bool>> decided_dims = {};  // in the branch that is being imported: whether they are 1
  bool is_trial = false;                                 // nobody hears of errors but who looks at `diagnostics`
  const bool stretches_dims = false;    // whether dims that meet may differ, or are taken for equal (broadcast.cc)
  bool dims_meet = false;               // whether there are such dims
  std::set<std::string> unopened = {};  // files of external data of which an error was reported

  void add(const CompileError& error) {
    if (options.failed && !is_trial && !error.diagnostics().empty())
      return options.failed({{}, error.diagnostics(), false, ""});
    for (const Diagnostic& diagnostic : error.diagnostics()) diagnostics.add(diagnostic);
  }
  // Reports a contradiction in the model and how the import resolves it: a warning, or an error when it is strict.
  void warn(const Span& span, const std::string& message, std::string_view consequence) {
    Severity severity = options.strict ? Severity::kError : Severity::kWarning;
    std::string text = options.strict ? message : fmt::format("{}; {}", message, consequence);
    diagnostics.add({severity, ErrorKind::kInvalid, span, std::move(text), {}});
  }
};

// Is thrown by the converter of an If whose branches give tensors of different ranks, or of a Squeeze whose dims tell
// the rank, for add_nodes. The condition is a scalar of the graph.
struct RanksDiffer {
  const onnx::NodeProto* node;
  Expr condition;
  std::optional<Expr> dim = {};  // of a Squeeze: the condition is whether it is 1
};

// Returns the names that a node reads, including those that its subgraphs take from outside, and the y of Gradient. A
// name that a subgraph reads before it defines it comes from outside, even when it later gives that name to another
// value.
std::vector<std::string> names_read(const onnx::NodeProto& node);

// Return what messages call a node: its name, or its operator and its place in the graph; and "com.me.FancyGelu".
std::string name_of_node(const onnx::NodeProto& node, int64_t index, const std::string& branch);
std::string operator_of_node(const onnx::NodeProto& node);

class GraphImporter {
 public:
  using Scope = std::unordered_map<std::string, Value>;
  // Imports a main graph, or the body of a function.
  GraphImporter(ModelContext& context, Builder& builder) : context_(context), builder_(builder) {}
  // Imports a subgraph of the node that is the builder's span: a branch, which has another builder than `outer`, or an
  // inlined body, which has the same.
  GraphImporter(GraphImporter& outer, Builder& builder)
      : function_opsets(outer.function_opsets),
        place(builder.span().origin->node + "/"),
        context_(outer.context_),
        builder_(builder),
        parent_(&outer),
        splits_(outer.splits_) {}

  ModelContext& context() { return context_; }
  Builder& builder() { return builder_; }

  // Defines a name. Returns false when it is taken.
  bool define(const std::string& name, Value value) { return scope_.emplace(name, std::move(value)).second; }
  Value find(const std::string& name) const;

  // Says which graph declares types of values, for nodes that cannot be converted.
  void declare(const onnx::GraphProto& graph) { graph_ = &graph; }
  // Is told of each node of this graph; null: nobody is.
  void set_progress(StageProgress* progress) { progress_ = progress; }
  void add_initializers(const onnx::GraphProto& graph);
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
  // Imports all nodes in dependency order. Only the outputs of these names need to be defined afterwards.
  void add_nodes(const Nodes& nodes, std::vector<std::string> outputs);
  // Imports a subgraph with its inputs bound to the values, and returns its outputs.
  std::vector<Value> import_subgraph(const onnx::GraphProto& graph, const std::vector<Value>& arguments = {});

  // Imports the nodes that lead from values of these names to the result once more, with the given values in their
  // place, and returns the result (gradient.cc).
  Value evaluate_again(const std::string& result, const Scope& given);

  Span span_of(const onnx::NodeProto& node, int64_t index) const;
  // Return a leaf expression that is the value in this graph. tensor_of() takes tensors only.
  Expr leaf_of(const Value& value, const Span& span);
  Expr tensor_of(const Value& value, const Span& span);
  // Returns the contents of a tensor, or null.
  const KnownTensor* known(const Value& value) { return value->tensor ? context_.known.find(*value->tensor) : nullptr; }
  // Returns a tensor of strings as positions in a pool.
  MovedStrings moved(const Value& value, const Span& span);
  // Requires a == b when the model runs; `what` names them in the message.
  void require_equal(const Expr& a, const Expr& b, std::string_view what);
  // Returns the size that these dims stretch to, where they have met here or around this graph.
  std::optional<Expr> size_of_meeting(const Expr& a, const Expr& b) const;
  // Notes that each of the dims is 1 or the size.
  void note_meeting(const Expr& a, const Expr& b, const Expr& size) { meetings_.push_back({a, b, size}); }
  // Returns whether it is known so of the dim and this other size, here or around this graph.
  bool gave_way(const Expr& dim, const Expr& size) const;

  // Returns whether the dim is 1, where this graph is one of two for which that was decided.
  std::optional<bool> decided(const Expr& dim) const {
    for (const auto& [known, is_one] : context_.decided_dims) {
      if (structural_equal(known, dim)) return is_one;
    }
    return std::nullopt;
  }
  // Returns whether nodes behind this one may be imported into branches.
  bool may_split() const { return splits_ < kMostSplits && (nodes_left_ > 0 || may_pass_on()); }
  // Returns whether the nodes of the graph around this one may be.
  bool may_pass_on() const { return is_side && parent_->may_split(); }

  std::unordered_map<std::string, int64_t>* function_opsets = nullptr;  // those of the function whose body this is
  // Nodes of a subgraph or function are named behind the node that holds or calls it: this is "loop/call/".
  std::string place;
  // Both branches of an If may have nodes without a name, whose names then begin with "then_branch/" or "else_branch/".
  std::string branch;
  bool is_side = false;  // whether this is a side of an If, inlined into the graph around it

 private:
  friend class Branch;
  static constexpr int kMostSplits = 4;  // each doubles the nodes behind it
  void add_node(const onnx::NodeProto& node, int64_t index);
  // Returns the version of a domain that the model, or the function whose body this is, imports.
  std::optional<int64_t> imported_version(const std::string& domain) const;
  void add_in_order(const Nodes& nodes, std::span<const int> order);
  // Imports nodes, the first of which is an If whose branches differ in rank or has it in it. Each branch gets a copy.
  void split_at(const RanksDiffer& split, const Nodes& nodes, std::span<const int> order);
  std::vector<Value> outputs_of_sides(Node& n, const RanksDiffer& split, const Nodes& nodes, std::span<const int> order,
                                      const std::vector<std::string>& results);
  // Returns the outputs of the user's kernel for the node; nullopt where none fits, with the reasons in `refused`.
  std::optional<Outputs> call_kernel(const onnx::NodeProto& node, const std::vector<Value>& inputs, const Span& span,
                                     std::string& refused);
  // Calls the converter. Strings that the node moves or compares are positions to it (strings.cc).
  Outputs convert_node(const onnx::NodeProto& node, const ConverterRow& row, int64_t version, std::vector<Value> inputs,
                       const Span& span);
  // Returns whether one of them is for nodes of this type.
  bool has_kernel(const onnx::NodeProto& node) const;
  // Calls one of them in `builder`, or returns why it does not fit. `note` gets what a report should say of it.
  std::variant<Expr, std::string> try_kernel(const NodeKernel& row, const onnx::NodeProto& node,
                                             const std::vector<Value>& inputs, const Span& span, IRModule& kernels,
                                             Builder& builder, std::string& note);
  std::vector<Expr> tensors_of(const std::vector<Value>& inputs, const Span& span);
  Outputs outputs_of(const Expr& value, size_t count);
  std::string what_lacks(const Nodes& nodes, const std::unordered_set<std::string>& absent) const;
  void call_function(const onnx::NodeProto& node, const std::vector<Value>& inputs, const Span& span);
  std::vector<int> order(const Nodes& nodes);
  void bind_outputs(const onnx::NodeProto& node, const Outputs& outputs, const Span& span);
  // Reports that a node cannot be converted, and defines its outputs all the same (unconverted.cc).
  void on_failure(const onnx::NodeProto& node, const Span& span, const CompileError& error);
  void stand_in(const onnx::NodeProto& node, const Span& span, std::vector<Diagnostic> why, bool follows);
  std::string why_unknown(const onnx::NodeProto& node) const;
  const onnx::TypeProto* declared_type(const std::string& name);
  std::optional<Type> type_of_stand_in(const std::string& name, const Span& span);
  Value with_declared_rank(const Value& value, const onnx::ValueInfoProto& input);

  ModelContext& context_;
  Builder& builder_;
  GraphImporter* parent_ = nullptr;
  Scope scope_;
  const onnx::GraphProto* graph_ = nullptr;                                // the one that is being imported
  std::unordered_map<std::string, const onnx::TypeProto*> declared_ = {};  // by value, once one is asked for
  std::vector<const onnx::NodeProto*> imported_;                           // in the order of use
  std::vector<std::pair<Expr, Expr>> required_equal_;
  struct Meeting {
    Expr a, b, size;
  };
  std::vector<Meeting> meetings_;
  std::vector<std::string> outputs_;  // the names that are needed behind the nodes
  StageProgress* progress_ = nullptr;
  size_t nodes_left_ = 0;  // behind the one that is being imported
  int splits_ = 0;         // around this graph
};

// Returns ModelContext::nested inside a function or graph. A recursive function and a nesting deeper than the limit are
// errors.
std::vector<std::string> entered(const ModelContext& context, const Span& span, const std::string& function);

std::vector<std::string> names_of_outputs(const onnx::GraphProto& graph);

// Returns the value of an attribute for kernels and converters from outside, a constant for a tensor; none for graphs.
AttrValue value_of_attribute(const ModelContext& context, const onnx::AttributeProto& attribute, const Span& span);

// Returns the head of a kernel that would take the node (kernel_head.cc).
std::string kernel_head(const onnx::NodeProto& node, const std::vector<Value>& inputs,
                        const std::vector<std::optional<Type>>& outputs, const Span& span);
// Returns why no kernel can take values of these types, or "".
std::string why_no_kernel(const std::vector<Value>& inputs, const std::vector<std::optional<Type>>& outputs);

// Reports the user's kernels that no node of the model got, and why, and asked nodes that are left out.
void report_unused_kernels(const ModelContext& context);
// Returns the type of a node as kernels name it, "com.me::FancyGelu"; ONNX's own domain is "ai.onnx".
std::string type_of_node(const onnx::NodeProto& node);
// Says of a node of this name, or without a name of the first one of this type, why the import did not reach it, such
// as a branch that is never taken; "" where the whole model has none (left_out.cc).
std::string why_left_out(const ModelContext& context, const std::string& node, const std::string& type);

// Returns a new dim about which nothing is known but that it is one.
VarRef unknown_dim(ModelContext& context, std::string name);

// Returns whether the dims that are constants, taken as at least 1, make a tensor beyond the limit.
bool is_too_large(const Type& type, const ImportLimits& limits);

// Returns the type of values of a declared type. Of what is in a sequence or an optional, dims that are not numbers
// stay open, and so does the rank of a shape without dims, which exporters write for any.
Type type_of_declared(ModelContext& context, const onnx::TypeProto& declared, const std::string& name,
                      const Span& span);

// Returns the rank of a value of the main graph or of a graph in it, as far as declarations and operators tell it.
std::optional<int64_t> inferred_rank(ModelContext& context, const std::string& name);

// Checks the types that the caller gives for graph inputs, and notes the dims of the model that they replace.
void read_given_types(ModelContext& context, const onnx::GraphProto& graph);
// Returns the names of initializers, which are constants, also where they are inputs of the graph; but for inputs whose
// type is given: these stay inputs, and what they are without a caller's value is not used.
std::set<std::string> names_of_constants(const onnx::GraphProto& graph, const ImportOptions& options);
// Returns the type of a graph input: as it is declared, and as the caller gives it where it is open.
Type type_of_input(ModelContext& context, const onnx::ValueInfoProto& input, const Span& span);

// Returns whether a name of a dim is none, such as "?", "-1" or "None". Exporters write the same for each dim that they
// do not know, so equal ones say nothing about the sizes.
bool is_placeholder(const std::string& dim_param);
// Returns the name of dim d of a value: "x_d0" where the model gives none, or a placeholder such as "?".
std::string name_of_dim(const onnx::TensorShapeProto::Dimension& dim, const std::string& value, int d);
// Return the symbolic dim of that name, or the number that the options give it. named_dim, which is for names of the
// model, returns what the given types have in its place, if they do.
Expr own_dim(ModelContext& context, const std::string& name);
Expr named_dim(ModelContext& context, const std::string& name);
// Returns the dims of a declared type, with the model's symbolic names.
std::vector<Expr> dims_of(ModelContext& context, const onnx::TensorShapeProto& shape, const std::string& name,
                          const Span& span);

// Compares an output's declared type with the inferred one. Throws for another dtype, and warns for another shape.
void check_output(ModelContext& context, const onnx::ValueInfoProto& output, const Type& type, const Span& span);

// Warns about declared types of values that contradict the computed ones. The nodes must have been imported.
using DeclaredValues = google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>;
void check_values(GraphImporter& importer, const DeclaredValues& declared);
// Returns the types that a function declares for values in it.
DeclaredValues declared_values(const onnx::FunctionProto& function);

}  // namespace relaxc::onnx_import
