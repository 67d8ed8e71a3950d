// Values whose contents are known while importing: operators are evaluated on them, or they become tensors.
#include <algorithm>

#include "frontend/onnx/graph_importer.h"
#include "ir/op_names.h"
#include "ops/attributes.h"

namespace relaxc::onnx_import {

// Integers become a shape, which is one tensor. Other elements become tensors of rank 0 that are joined.
static Expr list_of_scalars(Builder& builder, const KnownTensor& contents) {
  const CastAttrs to_dtype{contents.dtype};
  std::vector<Expr> integers, tensors;
  for (const Expr& element : contents.elements) {
    std::optional<Expr> integer = integer_of(element);
    if (integer) integers.push_back(*integer);
    if (contents.shape.empty()) return builder.op("scalar_to_tensor", {integer.value_or(element)}, to_dtype);
  }
  if (integers.size() == contents.elements.size()) {
    Expr tensor = builder.op("shape_to_tensor", {shape_expr(integers)});
    return contents.dtype == kInt64 ? tensor : builder.op("astype", {tensor}, to_dtype);
  }
  for (const Expr& element : contents.elements)
    tensors.push_back(
        builder.op("reshape", {builder.op("scalar_to_tensor", {element}, to_dtype), shape_expr({int_imm(1)})}));
  return builder.op("concat", {tuple(std::move(tensors))}, ConcatAttrs{.axis = 0});
}

std::optional<KnownTensor> contents_of(const Tensor& tensor) {
  return tensor.ndim() > 1 ? std::nullopt : known_tensor(tensor);
}

Expr GraphImporter::leaf_of(const Value& value, const Span& span) {
  if (!value->is_sequence && !value->is_none) return value->tensor ? *value->tensor : tensor_of(value, span);
  if (value->tensor) return *value->tensor;
  std::vector<Type> stated;
  if (value->items.empty()) stated.push_back(value->item_type.value_or(object_type()));
  std::vector<Expr> items = map_each(value->items, [&](const Value& item) { return leaf_of(item, span); });
  Call call{op_ref(value->is_none ? ops::kOptionalNone : ops::kSequenceMake), std::move(items), {}, stated};
  Type type = infer_call_type(call, span, context_.ops);
  Expr expr = builder_.emit(make(std::move(call), type, span), value->is_none ? "none" : "sequence");
  if (value->home == &builder_) value->tensor = expr;
  return expr;
}

Expr GraphImporter::tensor_of(const Value& value, const Span& span) {
  bool is_tensor = value->contents || (value->tensor && !is_container(value->tensor->type()));
  if (!is_tensor) fail(span, "expected a tensor, got {}", kind_text(*value));
  if (value->tensor) return *value->tensor;
  const KnownTensor& contents = *value->contents;
  auto known = contents.as_tensor();
  Expr expr = known ? constant(*known, span) : list_of_scalars(builder_, contents);
  if (!known && contents.shape.size() > 1)
    expr = builder_.op("reshape", {expr, shape_expr(*known_shape(contents.type()))});
  if (value->home == &builder_ || expr.is<Constant>()) value->tensor = expr;
  return expr;
}

Expr GraphImporter::operand_of(const Value& value, const Span& span) {
  if (!value->contents || (!value->tensor && value->contents->as_tensor())) tensor_of(value, span);
  if (!value->contents) return *value->tensor;
  if (!value->tensor && !value->stand_in) {
    const KnownTensor& contents = *value->contents;
    auto& [dtype, shape, type] = context_.last_known;
    if (!type || dtype != contents.dtype || shape != contents.shape)
      context_.last_known = {contents.dtype, contents.shape, contents.type()};
    value->stand_in = make_var("known", *type, span);
  }
  Expr operand = value->tensor ? *value->tensor : Expr(*value->stand_in);
  context_.known.emplace(operand.get(), value);
  return operand;
}
Value GraphImporter::value_of(const Expr& operand) const {
  return copy_value(context_.known, operand.get()).value_or(nullptr);
}
Expr GraphImporter::bound(const Expr& operand, const Span& span) {
  if (const Tuple* several = operand.as<Tuple>())
    return tuple(map_each(several->items, [&](const Expr& item) { return bound(item, span); }), operand.span());
  Value value = value_of(operand);
  return value ? tensor_of(value, span) : operand;
}

std::optional<KnownTensor> GraphImporter::evaluate_op(const std::string& name, const std::vector<Expr>& args,
                                                      const Attrs& attrs, const Span& span) {
  std::vector<KnownTensor> tensors;
  auto add = [&](const Expr& arg) {
    if (!arg.type().is<TensorType>()) return !arg.type().is<ObjectType>() && !arg.type().is<TupleType>();
    Value value = value_of(arg);
    const Constant* constant = value ? nullptr : arg.as<Constant>();
    std::optional<KnownTensor> contents = value      ? value->contents
                                          : constant ? contents_of(constant->data)
                                                     : std::nullopt;
    if (contents) tensors.push_back(std::move(*contents));
    return contents.has_value();
  };
  for (const Expr& arg : args) {
    const Tuple* several = arg.as<Tuple>();
    bool known = several ? std::ranges::all_of(several->items, add) : add(arg);
    if (!known) return std::nullopt;
  }
  const OpRow* row = context_.ops.find(ops::full_name(name));
  if (!row) return std::nullopt;
  return evaluate(*row, Call{op_ref(row->name), args, attrs, {}}, std::move(tensors), context_.programs,
                  context_.analyzer, span);
}

}  // namespace relaxc::onnx_import
