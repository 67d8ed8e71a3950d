#include "frontend/onnx/import.h"

#include <set>

#include "frontend/onnx/graph_importer.h"
#include "vm/error.h"
#include "vm/output_file.h"

namespace relaxc {

namespace onnx_import {

namespace {

Span place(const ModelContext& context) { return file_span(context.file->name()); }

void read_opsets(ModelContext& context) {
  const onnx::ModelProto& model = context.file->proto();
  for (const auto& import : model.opset_import()) context.opsets[domain_of(import.domain())] = import.version();
  if (context.opsets.empty() && model.ir_version() < 3) context.opsets[""] = 1;
  if (context.opsets.empty()) fail(place(context), "the model imports no opset");
  for (const auto& function : model.functions())
    context.functions[domain_of(function.domain()) + "." + function.name()] = &function;
}

// Returns a graph input's type. Sequences, maps and strings are unsupported.
Type input_type(ModelContext& context, const onnx::ValueInfoProto& input, const Span& span) {
  if (!input.has_type() || input.type().value_case() == onnx::TypeProto::VALUE_NOT_SET)
    fail(place(context), "graph input '{}' has no type", printable(input.name()));
  if (!input.type().has_tensor_type()) fail_unsupported(span, "only tensors can be graph inputs");
  const auto& tensor = input.type().tensor_type();
  DType dtype = dtype_of_element_type(tensor.elem_type(), span);
  if (!tensor.has_shape()) fail_unsupported(span, "the rank is not declared; set the input's shape in the model");
  Type type = tensor_type(dims_of(context, tensor.shape(), input.name(), span), dtype, span);
  if (is_too_large(type, context.options.limits))
    fail(span, "its shape is too large, the limit is {} bytes", context.options.limits.tensor_bytes);
  return type;
}

// The graph's inputs that have no initializer, as parameters.
struct Parameters {
  std::vector<VarRef> vars;
  AttrList names;
};
Parameters define_inputs(ModelContext& context, GraphImporter& importer, const onnx::GraphProto& graph) {
  std::set<std::string> initializers;
  for (const auto& tensor : graph.initializer()) initializers.insert(tensor.name());
  Parameters params;
  for (const auto& input : graph.input()) {
    if (initializers.contains(input.name())) continue;
    Span span = context.place("graph input", input.name());
    try {
      VarRef param = make_var(input.name(), input_type(context, input, span), span);
      params.vars.push_back(param);
      params.names.push_back(input.name());
      if (!importer.define(input.name(), make_value({.tensor = param, .home = &importer.builder()})))
        context.diagnostics.error(place(context), "graph input '{}' is already defined", printable(input.name()));
    } catch (const CompileError& error) {
      context.add(error);
      importer.define(input.name(), make_value({.poisoned = true}));
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
      if (value->is_sequence || value->is_none) fail_unsupported(span, "only tensors can be graph outputs");
      Expr result = importer.tensor_of(value, span);
      check_output(context, output, result.type(), span);
      results.push_back(result);
    } catch (const CompileError& error) {
      context.add(error);
    }
  }
  return results;
}

}  // namespace

IRModule import_model(std::shared_ptr<const ModelFile> file, const OpTable& ops, const ImportOptions& options) {
  ModelContext context{.file = file, .ops = ops, .options = options};
  const onnx::ModelProto& model = file->proto();
  bool empty_message = model.ir_version() == 0 && !model.has_graph() && model.opset_import_size() == 0;
  if (empty_message) fail(place(context), "not an ONNX model");
  if (!model.has_graph()) fail(place(context), "the model has no graph");
  read_opsets(context);
  const onnx::GraphProto& graph = model.graph();
  if (graph.output_size() == 0) fail(place(context), "the graph has no outputs");

  Builder builder(ops);
  builder.set_span(place(context));
  context.main_builder = &builder;
  GraphImporter importer(context, builder);
  Parameters params = define_inputs(context, importer, graph);
  builder.begin_dataflow();
  importer.add_initializers(graph);
  importer.add_nodes(graph.node());
  check_values(importer, graph);
  std::vector<Expr> results = read_outputs(context, importer, graph);
  context.diagnostics.throw_if_errors();
  for (const Diagnostic& warning : context.diagnostics.all()) {
    if (options.warn) options.warn(warning);
  }
  if (options.files) *options.files = file->files();

  builder.set_span(place(context));
  Expr body = builder.finish(results.size() == 1 ? results[0] : tuple(results));
  Type result = without_unbound_dims(body.type(), params.vars);
  AttrList outputs;
  for (const auto& output : graph.output()) outputs.push_back(output.name());
  Attrs attrs{{"global_symbol", "main"}, {"input_names", params.names}, {"output_names", outputs}};
  Function function{std::move(params.vars), body, result, true, std::move(attrs)};
  IRModule module;
  module.functions.emplace("main", make_function(std::move(function), place(context)));
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

using onnx_import::file_span;

Tensor read_tensor_pb(const std::string& path, std::optional<DType> expected) {
  Span span = file_span(path);
  onnx::TensorProto proto;
  try {
    auto file = vm::MappedFile::open(path);
    std::span<const std::byte> bytes = file->bytes();
    if (bytes.size() >= size_t{1} << 31 || !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      fail(span, "not a TensorProto, or a truncated one");
  } catch (const RuntimeError& error) {
    fail(span, "{}", error.what());
  }
  if (proto.data_type() == onnx::TensorProto::UNDEFINED) fail(span, "not a TensorProto: it has no element type");
  // The fields of a SequenceProto or OptionalProto are unknown to a TensorProto, or have another wire type.
  if (proto.unknown_fields().field_count() > 0)
    fail_unsupported(span, "a sequence or an optional; only tensors can be read");
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) fail_unsupported(span, "external data");
  Tensor tensor = onnx_import::decode_tensor(proto, span);
  bool is_bits = tensor.dtype() == DType::uint(16) || tensor.dtype() == DType::int_(16);
  if (!is_bits || expected != DType::bfloat16()) return tensor;
  return Tensor::view(tensor.shape(), *expected, tensor.raw(), std::make_shared<Tensor>(tensor));
}

void write_tensor_pb(const std::string& path, const Tensor& tensor, const std::string& name) {
  Span span = file_span(path);
  onnx::TensorProto proto;
  proto.set_name(name);
  int type = onnx_import::element_type_of_dtype(tensor.dtype());
  if (type == 0) fail_unsupported(span, "{} has no ONNX element type", to_string(tensor.dtype()));
  proto.set_data_type(type);
  for (int64_t dim : tensor.shape()) proto.add_dims(dim);
  if (tensor.bytes() >= int64_t{1} << 31)
    fail_unsupported(span, "a tensor of {} bytes; the limit is 2 GB", tensor.bytes());
  proto.set_raw_data(tensor.raw(), static_cast<size_t>(tensor.bytes()));
  std::string bytes;
  if (!proto.SerializeToString(&bytes)) fail_unsupported(span, "a TensorProto beyond the limit of 2 GB");
  vm::write_file(path, bytes);
}

}  // namespace relaxc
