#include "ops/known_values.h"

#include <algorithm>

#include "ir/visit.h"
#include "ops/attributes.h"
#include "ops/common.h"

namespace relaxc {

KnownInside::~KnownInside() {
  for (; values_.order_.size() > size_; values_.order_.pop_back()) values_.entries_.erase(values_.order_.back());
}

void KnownValues::set(const Expr& tensor, KnownTensor contents) {
  auto [it, is_new] = entries_.insert_or_assign(tensor.get(), Entry{tensor, std::move(contents)});
  if (is_new) order_.push_back(tensor.get());
}

const KnownTensor* KnownValues::find(const Expr& tensor) {
  if (const Entry* entry = find_value(entries_, tensor.get())) return &entry->contents;
  const Constant* constant = tensor.as<Constant>();
  // Small matrices of floats are weights; those of integers may be pads or axes.
  bool is_candidate = constant && (constant->data.ndim() <= 1 || constant->data.dtype().is_integral());
  std::optional<KnownTensor> contents = is_candidate ? known_tensor(constant->data) : std::nullopt;
  if (!contents) return nullptr;
  set(tensor, std::move(*contents));
  return &entries_.at(tensor.get()).contents;
}

// Returns the contents of the tensors that the call reads, nullopt where one is not known or the call has operands of
// other kinds.
std::optional<std::vector<KnownTensor>> KnownValues::operands(const Call& call) {
  std::vector<KnownTensor> tensors;
  auto add = [&](const Expr& arg) {
    if (!arg.type().is<TensorType>()) return arg.type().is<PrimType>() || arg.is<ShapeExpr>();
    const KnownTensor* contents = find(arg);
    if (contents) tensors.push_back(*contents);
    return contents != nullptr;
  };
  for (const Expr& arg : call.args) {
    const Tuple* several = arg.as<Tuple>();
    if (several ? !std::ranges::all_of(several->items, add) : !add(arg)) return std::nullopt;
  }
  return tensors;
}

const KnownTensor* KnownValues::learn(const VarRef& var, const Expr& value, const OpTable& ops, const Analyzer& facts) {
  std::optional<KnownTensor> contents;
  const Call* call = value.as<Call>();
  const OpRow* row = call ? ops.find(op_name(value)) : nullptr;
  if (is_leaf(value) && value.type().is<TensorType>()) {
    if (const KnownTensor* same = find(value)) contents = *same;
  } else if (row && row->pure && (row->legalize || row->view) && may_be_known(value.type())) {
    if (auto tensors = operands(*call)) contents = evaluate(*row, value, std::move(*tensors), programs_, facts);
  }
  if (!contents) return nullptr;
  set(var, std::move(*contents));
  return &entries_.at(var.get()).contents;
}

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

Expr tensor_of(const KnownTensor& contents, Builder& builder) {
  if (auto numbers = contents.as_tensor()) return constant(*numbers, builder.span());
  Expr list = list_of_scalars(builder, contents);
  return contents.shape.size() > 1 ? builder.op("reshape", {list, shape_expr(int_imms(contents.shape))}) : list;
}

}  // namespace relaxc
