#include "frontend/onnx/declared.h"

#include "support/printable.h"

namespace relaxc::onnx_import {

namespace {

constexpr std::string_view kHolds = "the computed type holds";
constexpr size_t kMostShown = 5;  // a model whose declarations are stale has hundreds

// Describes how the shapes differ. Exporters write an empty shape where they do not know it.
std::optional<std::string> shape_difference(const ModelContext& context, const onnx::TensorShapeProto& declared,
                                            const std::vector<Expr>& shape) {
  if (declared.dim_size() != static_cast<int>(shape.size())) {
    if (declared.dim_size() == 0) return std::nullopt;
    return fmt::format("declared with rank {}, but the graph computes rank {}", declared.dim_size(), shape.size());
  }
  for (int d = 0; context.options.dims.empty() && d < declared.dim_size(); ++d) {
    const auto& dim = declared.dim(d);
    auto known = as_int(shape[static_cast<size_t>(d)]);
    if (dim.has_dim_value() && dim.dim_value() > 0 && known && *known != dim.dim_value())
      return fmt::format("dim {} is declared as {}, but the graph computes {}", d, dim.dim_value(), *known);
  }
  return std::nullopt;
}
std::string shown_element_type(int type) {
  try {
    return to_string(dtype_of_element_type(type, Span()));
  } catch (const CompileError&) {
    return fmt::format("element type {}", type);
  }
}
std::optional<std::string> dtype_difference(const onnx::TypeProto::Tensor& declared, const Type& type) {
  auto dtype = tensor_dtype(type);
  if (declared.elem_type() == 0 || !dtype || declared.elem_type() == element_type_of_dtype(*dtype)) return std::nullopt;
  return fmt::format("declared as {}, but the graph computes {}", shown_element_type(declared.elem_type()),
                     to_string(*dtype));
}

// Returns the type of a value that is a tensor or may become one.
std::optional<Type> type_of(const Value& value) {
  if (!value || value->poisoned) return std::nullopt;
  if (value->tensor) return value->tensor->type();
  return value->contents ? std::optional(value->contents->type()) : std::nullopt;
}

}  // namespace

void check_output(ModelContext& context, const onnx::ValueInfoProto& output, const Type& type, const Span& span) {
  if (!output.has_type() || !output.type().has_tensor_type()) return;
  const auto& declared = output.type().tensor_type();
  if (auto difference = dtype_difference(declared, type)) fail(span, "{}", *difference);
  const std::vector<Expr>* shape = known_shape(type);
  if (!declared.has_shape() || !shape) return;
  if (auto difference = shape_difference(context, declared.shape(), *shape)) context.warn(span, *difference, kHolds);
}

void check_values(GraphImporter& importer, const onnx::GraphProto& graph) {
  ModelContext& context = importer.context();
  size_t differences = 0;
  for (const auto& info : graph.value_info()) {
    std::optional<Type> type = type_of(importer.find(info.name()));
    if (!type || !info.has_type() || !info.type().has_tensor_type()) continue;
    Span span{std::make_shared<const Origin>(
        Origin{fmt::format("{}: value '{}'", context.file->name(), printable(info.name())), {}, {}, nullptr})};
    const auto& declared = info.type().tensor_type();
    auto difference = dtype_difference(declared, *type);
    const std::vector<Expr>* shape = known_shape(*type);
    if (!difference && declared.has_shape() && shape) difference = shape_difference(context, declared.shape(), *shape);
    if (difference && ++differences <= kMostShown) context.warn(span, *difference, kHolds);
  }
  if (differences <= kMostShown) return;
  Span span{std::make_shared<const Origin>(Origin{context.file->name(), {}, {}, nullptr})};
  context.warn(span, fmt::format("{} more values are declared with another type", differences - kMostShown), kHolds);
}

}  // namespace relaxc::onnx_import
