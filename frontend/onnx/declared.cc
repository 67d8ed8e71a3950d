// Compares the types that a model declares with those that the import infers. The inferred types take precedence.
#include "frontend/onnx/graph_importer.h"
#include "ir/type_relation.h"
#include "support/printable.h"

namespace relaxc::onnx_import {

namespace {

constexpr std::string_view kConsequence = "the computed type is used";
constexpr size_t kMostShown = 5;  // a model whose declarations are stale has hundreds

struct Difference {
  bool in_dtype;
  std::string text;
};

// Returns the declared type. An empty shape is unknown, since exporters write it so. A dim that is not a number may
// have any size, and so may all dims when the caller makes some of them constant.
Type declared_type(const ModelContext& context, const onnx::TypeProto::Tensor& declared) {
  std::optional<DType> dtype;
  if (declared.elem_type() != 0) dtype = dtype_of_element_type(declared.elem_type(), Span());
  if (declared.shape().dim_size() == 0) return tensor_type_of_rank(-1, dtype);
  std::vector<Expr> dims;
  for (const auto& dim : declared.shape().dim()) {
    bool is_stated = dim.dim_value() > 0 && context.options.dims.empty();
    dims.push_back(is_stated ? int_imm(dim.dim_value()) : Expr(make_dim("any")));
  }
  return tensor_type(std::move(dims), dtype);
}

// Returns a contradiction between the declared type and the computed one.
std::optional<Difference> difference_of(const ModelContext& context, const onnx::ValueInfoProto& info,
                                        const Type& computed) {
  if (!info.has_type() || !info.type().has_tensor_type()) return std::nullopt;
  const auto& proto = info.type().tensor_type();
  auto dtype = tensor_dtype(computed);
  auto other_dtype = [&](const std::string& shown) {
    return Difference{true, fmt::format("declared as {}, but the graph computes {}", shown, to_string(*dtype))};
  };
  std::optional<Type> declared;
  try {
    declared = declared_type(context, proto);
  } catch (const CompileError&) {  // of strings, say
    return dtype ? std::optional(other_dtype(fmt::format("element type {}", proto.elem_type()))) : std::nullopt;
  }
  if (fits(*declared, computed) != Verdict::kContradicted) return std::nullopt;
  auto stated = tensor_dtype(*declared);
  if (stated && dtype && *stated != *dtype) return other_dtype(to_string(*stated));
  int64_t rank = known_rank(computed);
  const std::vector<Expr>&dims = *known_shape(*declared), *shape = known_shape(computed);
  if (known_rank(*declared) != rank || !shape)
    return Difference{false, fmt::format("declared with rank {}, but the graph computes rank {}", dims.size(), rank)};
  for (size_t d = 0; d < dims.size(); ++d) {
    auto wanted = as_int(dims[d]), found = as_int((*shape)[d]);
    if (wanted && found && *wanted != *found)
      return Difference{false, fmt::format("dim {} is declared as {}, but the graph computes {}", d, *wanted, *found)};
  }
  return std::nullopt;
}

}  // namespace

void check_output(ModelContext& context, const onnx::ValueInfoProto& output, const Type& type, const Span& span) {
  auto difference = difference_of(context, output, type);
  if (!difference) return;
  if (difference->in_dtype) fail(span, "{}", difference->text);
  context.warn(span, difference->text, kConsequence);
}

DeclaredValues declared_values(const onnx::FunctionProto& function) {
  DeclaredValues result;
  for (const std::string& bytes : field_values(function, 12)) {
    onnx::ValueInfoProto info;
    if (info.ParseFromString(bytes)) *result.Add() = std::move(info);
  }
  return result;
}

void check_values(GraphImporter& importer, const DeclaredValues& declared) {
  ModelContext& context = importer.context();
  size_t differences = 0;
  for (const auto& info : declared) {
    Value value = importer.find(info.name());
    std::optional<Type> type = value ? value->type() : std::nullopt;
    auto difference = type ? difference_of(context, info, *type) : std::nullopt;
    if (difference && ++differences <= kMostShown)
      context.warn(context.place("value", importer.place + info.name()), difference->text, kConsequence);
  }
  if (differences > kMostShown)
    context.warn(span_of_file(context.file->name()),
                 fmt::format("{} more values are declared with another type", differences - kMostShown), kConsequence);
}

}  // namespace relaxc::onnx_import
