// Helpers that the operator groups share: broadcasting, axis normalization, and building a program from a call.
#pragma once
#include "ir/arith.h"
#include "ir/op.h"
#include "tir/compute.h"

namespace relaxc {

// Broadcasts two shapes by numpy's rule, with dims aligned to the right. A dim that is 1 only at run time does not
// stretch: two dims, neither of which is the constant 1, are required to be equal.
std::vector<Expr> broadcast_shapes(const OpCall& op, const std::vector<Expr>& a, const std::vector<Expr>& b);
// Returns the element of `buffer` that is read for the element `axes` of the broadcast result.
Expr load_broadcast(const Buffer& buffer, Axes axes);

// Counts a negative axis from the end. An error names axis and rank.
int64_t normalize_axis(const OpCall& op, int64_t axis, int64_t rank);
std::vector<int64_t> normalize_axes(const OpCall& op, const std::vector<int64_t>& axes, int64_t rank);

// Returns the scalars of argument i, which is a shape or a tuple of scalars.
std::vector<Expr> scalar_list(const OpCall& op, size_t i);
// Returns the types of argument i, which is a tuple of tensors of known shape and dtype.
std::vector<Type> tensor_list(const OpCall& op, size_t i);
// These report a tensor of another rank, tensors of different dtypes, and an argument that is not a scalar.
void require_rank(const OpCall& op, size_t i, int64_t rank);
void require_same_dtype(const OpCall& op, size_t i, size_t j);
void require_scalar(const OpCall& op, size_t i);
// This is the `infer` of an operator whose result has the type of argument 0.
Type infer_like_first(const OpCall& op);
// These are the `infer_partial` of an operator whose result has a fixed dtype, and of one with several results.
Type infer_unranked(std::optional<DType> dtype);
Type infer_unknown(const OpCall& op);
// These declare attributes by name, for rows without a struct.
inline OpAttr int_attr(const char* name, AttrValue otherwise) { return {name, std::move(otherwise), AttrKind::kInt}; }
inline OpAttr float_attr(const char* name, AttrValue otherwise) {
  return {name, std::move(otherwise), AttrKind::kFloat};
}
inline OpAttr bool_attr(const char* name, AttrValue otherwise) { return {name, std::move(otherwise), AttrKind::kBool}; }
inline OpAttr string_attr(const char* name, AttrValue otherwise) {
  return {name, std::move(otherwise), AttrKind::kString};
}
inline OpAttr dtype_attr(const char* name, AttrValue otherwise) {
  return {name, std::move(otherwise), AttrKind::kDType};
}
// Declares a list. The default tells how many items it has.
inline OpAttr ints_attr(const char* name, AttrValue otherwise, AttrKind kind = AttrKind::kInts) {
  size_t items = otherwise.as<AttrList>() ? otherwise.as<AttrList>()->size() : 0;
  return {name, std::move(otherwise), kind, items};
}
inline OpAttr floats_attr(const char* name, AttrValue otherwise) {
  return ints_attr(name, std::move(otherwise), AttrKind::kFloats);
}

// These complete one attribute of a row's list, found by its name: with_choices gives the values of a string, with_like
// the attribute that None stands for.
OpAttr& attr_of(std::vector<OpAttr>& attrs, std::string_view name);
std::vector<OpAttr> with_choices(std::vector<OpAttr> attrs, std::string_view name,
                                 std::vector<std::string_view> choices);
std::vector<OpAttr> with_own(std::vector<OpAttr> attrs, std::string_view name);  // Relax does not have this attribute
std::vector<OpAttr> with_like(std::vector<OpAttr> attrs, std::string_view name, const char* other);

// These return a * b and a + b of sizes, simplified. An overflow is an error now, or at run time where the sizes are
// only known then.
Expr size_product(const OpCall& op, const Expr& a, const Expr& b);
Expr size_sum(const OpCall& op, const Expr& a, const Expr& b);
// Returns the product of the dims.
Expr product(const std::vector<Expr>& dims);
// These convert `indices` in `shape` to the row-major position, and back.
Expr flatten_index(const std::vector<Expr>& indices, const std::vector<Expr>& shape);
std::vector<Expr> unflatten_index(Expr flat, const std::vector<Expr>& shape);

}  // namespace relaxc
