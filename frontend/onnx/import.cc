#include "frontend/onnx/import.h"

#include <algorithm>
#include <set>

#include "frontend/onnx/graph_importer.h"
#include "ir/attr_names.h"
#include "ir/unused.h"

namespace relaxc {

namespace onnx_import {

namespace {

Span place(const ModelContext& context) { return span_of_file(context.file->name()); }

void read_opsets(ModelContext& context) {
  const onnx::ModelProto& model = context.file->proto();
  for (const auto& import : model.opset_import()) context.opsets[domain_of(import.domain())] = import.version();
  if (context.opsets.empty() && model.ir_version() < 3) context.opsets[""] = 1;
  if (context.opsets.empty()) fail(place(context), "the model imports no opset");
  // Operators change their meaning with versions, and those of later ones are not known.
  if (const int64_t version = copy_value(context.opsets, "").value_or(0); version > newest_opset())
    context.warn(place(context),
                 fmt::format("the model imports opset {}, and {} is the newest that is known", version, newest_opset()),
                 "operators are taken as they are in that one");
  for (const auto& function : model.functions()) context.functions[name_of_function(function)] = &function;
}

// The graph's inputs that are not constants, as parameters.
struct Parameters {
  std::vector<VarRef> vars;
  AttrList names;
};
Parameters define_inputs(ModelContext& context, GraphImporter& importer, const onnx::GraphProto& graph) {
  std::set<std::string> constants = names_of_constants(graph, context.options);
  Parameters params;
  for (const auto& input : graph.input()) {
    if (constants.contains(input.name())) continue;
    Span span = context.place("graph input", input.name());
    try {
      VarRef param = make_var(input.name(), type_of_input(context, input, span), span);
      params.vars.push_back(param);
      params.names.push_back(input.name());
      if (!importer.define(input.name(), make_value({.tensor = param, .home = &importer.builder()})))
        context.diagnostics.error(place(context), "graph input '{}' is already defined", printable(input.name()));
    } catch (const CompileError& error) {
      context.add(error);
      std::string source = fmt::format("graph input '{}' is refused", printable(input.name()));
      importer.define(input.name(), make_value({.poisoned = true, .source = std::move(source)}));
    }
  }
  return params;
}

std::vector<Expr> read_outputs(ModelContext& context, GraphImporter& importer, const onnx::GraphProto& graph) {
  std::vector<Expr> results;
  for (const auto& output : graph.output()) {
    Span span = context.place("graph output", output.name());
    Value value = importer.find(output.name());
    try {
      if (!value) fail(place(context), "graph output '{}' is not defined", printable(output.name()));
      if (value->poisoned) continue;
      Expr result = importer.leaf_of(value, span);
      bool is_optional = output.type().has_optional_type() || output.type().value_case() == 0;
      if (result.type().is<OptionalType>() && !is_optional) result = importer.builder().op("optional.get", {result});
      check_output(context, output, result.type(), span);
      results.push_back(result);
    } catch (const CompileError& error) {
      context.add(error);
    }
  }
  return results;
}

}  // namespace

static void check_fixed_dims(const ModelContext& context) {
  std::set<std::string> known = context.fixed_dims;
  for (const auto& [name, _] : context.dims) known.insert(name);
  for (const auto& [name, _] : context.given_dims) known.insert(name);
  for (const auto& [name, _] : context.options.dims) {
    if (!known.contains(name))
      fail_usage(place(context), "the model has no symbolic dim '{}'{}", printable(name),
                 known.empty() ? "" : "; it has: " + printable(joined(known)));
  }
}

constexpr const char* kOfOtherSizes = "main_of_other_sizes";

// Imports the graph as the function "main", or as the one in which dims that meet stretch to one another. `dims_meet`
// is set when there are such dims.
static IRModule import_as(const char* name, const std::shared_ptr<const ModelFile>& file, const OpTable& ops,
                          const ImportOptions& options, bool& dims_meet) {
  const bool stretches = name != std::string_view("main");
  ModelContext context{.file = file, .ops = ops, .options = options, .stretches_dims = stretches};
  // These keep the names for the graph.
  for (const char* kept : {"main", kOfOtherSizes}) context.kernels.functions.emplace(kept, tuple({}));
  const onnx::ModelProto& model = file->proto();
  read_opsets(context);
  for (const OnnxConverter& converter : options.converters) {
    auto is_known = [&](const OnnxOperator& op) {
      return converter.name == (op.domain.empty() ? op.name : op.domain + "::" + op.name);
    };
    if (std::ranges::any_of(onnx_operators(), is_known))
      fail({}, "converter '{}' of a plug-in: this operator has a built-in one", converter.name);
  }
  const onnx::GraphProto& graph = model.graph();
  if (graph.output_size() == 0) fail(place(context), "the graph has no outputs");

  Builder builder(ops);
  builder.set_span(place(context));
  GraphImporter importer(context, builder);
  read_given_types(context, graph);
  Parameters params = define_inputs(context, importer, graph);
  builder.begin_dataflow();
  importer.declare(graph);
  importer.add_initializers(graph);
  StageProgress progress(options.progress, CompileStage::kImport, static_cast<size_t>(graph.node_size()));
  importer.set_progress(&progress);
  importer.add_nodes(graph.node(), names_of_outputs(graph));
  progress.finish();
  check_values(importer, graph.value_info());
  std::vector<Expr> results = read_outputs(context, importer, graph);
  for (const auto& [call, home] : context.stand_ins) {
    if (home == &builder) results.push_back(call);  // and so what it reads is in use
  }
  context.diagnostics.throw_if_errors();
  check_fixed_dims(context);
  report_unused_kernels(context);
  for (const Diagnostic& warning : context.diagnostics.all()) {
    if (options.warn) options.warn(warning);
  }
  if (options.files) *options.files = file->files();

  builder.set_span(place(context));
  Expr body = builder.finish(results.size() == 1 ? results[0] : tuple(results));
  Type result = without_unbound_dims(body.type(), params.vars);
  AttrList outputs;
  for (const auto& output : graph.output()) outputs.push_back(output.name());
  dims_meet = context.dims_meet;
  Attrs attrs{
      {attr_names::kGlobalSymbol, name}, {attr_names::kInputNames, params.names}, {attr_names::kOutputNames, outputs}};
  Function function{std::move(params.vars), body, result, true, std::move(attrs)};
  IRModule module = std::move(context.kernels);
  FunctionRef main = make_function(std::move(function), place(context));
  for (const char* kept : {"main", kOfOtherSizes}) module.functions.erase(kept);
  module.functions.insert_or_assign(name, without_unused(main, module, ops));  // of shapes that are known by now
  return module;
}

// Adds the function for sizes of which "main" takes some for equal that are not. Where it cannot be imported, the model
// runs with equal sizes only, and says so when it runs.
static void add_function_of_other_sizes(IRModule& module, const std::shared_ptr<const ModelFile>& file,
                                        const OpTable& ops, ImportOptions options) {
  options.warn = nullptr;
  options.claimed = nullptr;
  options.report = nullptr;
  options.progress = nullptr;
  options.files = nullptr;
  IRModule other;
  bool dims_meet = false;
  try {
    other = import_as(kOfOtherSizes, file, ops, options, dims_meet);
  } catch (const CompileError&) {
  }
  if (!dims_meet) return;
  for (const auto& [kernel, function] : other.functions) {
    const Expr* same = find_value(module.functions, kernel);
    if (same && !structural_equal(*same, function)) return;  // a kernel of the user's, for other shapes
  }
  FunctionRef main = *try_cast<Function>(module.functions.at("main"));
  Function usual = *main;
  usual.attrs.set(attr_names::kOtherwise, kOfOtherSizes);
  module.functions.insert_or_assign("main", make_function(std::move(usual), main.span()));
  module.functions.insert(other.functions.begin(), other.functions.end());
}

IRModule import_model(const std::shared_ptr<const ModelFile>& file, const OpTable& ops, const ImportOptions& options) {
  bool dims_meet = false;
  IRModule module = import_as("main", file, ops, options, dims_meet);
  if (dims_meet && !options.failed) add_function_of_other_sizes(module, file, ops, options);
  return module;
}

}  // namespace onnx_import

IRModule import_onnx(const std::string& path, const OpTable& ops, const ImportOptions& options) {
  return onnx_import::import_model(onnx_import::ModelFile::open(path, options.limits), ops, options);
}
IRModule import_onnx_bytes(std::span<const std::byte> bytes, const std::string& name, const OpTable& ops,
                           const ImportOptions& options) {
  return onnx_import::import_model(onnx_import::ModelFile::from_bytes(bytes, name, options.limits), ops, options);
}

}  // namespace relaxc
