// What the operator groups share: broadcasting, axis normalization, and building a program from a call.
#pragma once
#include "ir/arith.h"
#include "ir/op.h"
#include "tir/compute.h"

namespace relaxc {

// numpy's rule on dims aligned to the right. A dim that is 1 only at run time does not stretch: two dims, neither of
// them the constant 1, are required to be equal.
std::vector<Expr> broadcast_shapes(const OpCall& op, const std::vector<Expr>& a, const std::vector<Expr>& b);
// The element of `buffer` that the broadcast result's element `axes` reads.
Expr load_broadcast(const Buffer& buffer, Axes axes);

// A negative axis counts from the end; an error names axis and rank.
int64_t normalize_axis(const OpCall& op, int64_t axis, int64_t rank);
std::vector<int64_t> normalize_axes(const OpCall& op, const std::vector<int64_t>& axes, int64_t rank);

// The scalars of argument i: a shape, or a tuple of scalars.
std::vector<Expr> scalar_list(const OpCall& op, size_t i);
// The types of argument i, a tuple of tensors of known shape and dtype.
std::vector<Type> tensor_list(const OpCall& op, size_t i);
// Errors for a tensor of another rank, for tensors of different dtypes, and for an argument that is no scalar.
void require_rank(const OpCall& op, size_t i, int64_t rank);
void require_same_dtype(const OpCall& op, size_t i, size_t j);
void require_scalar(const OpCall& op, size_t i);
// infer of an operator whose result is like argument 0.
Type infer_like_first(const OpCall& op);
// infer_partial of an operator whose result has a dtype of its own, and of one with several results.
Type infer_unranked(std::optional<DType> dtype);
Type infer_unknown(const OpCall& op);
// Attributes by name, for rows without a struct.
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
// A list; the default tells how many items.
inline OpAttr ints_attr(const char* name, AttrValue otherwise, AttrKind kind = AttrKind::kInts) {
  size_t items = otherwise.as<AttrList>() ? otherwise.as<AttrList>()->size() : 0;
  return {name, std::move(otherwise), kind, items};
}
inline OpAttr floats_attr(const char* name, AttrValue otherwise) {
  return ints_attr(name, std::move(otherwise), AttrKind::kFloats);
}

// What a row's list says besides, by the attribute's name: the values of a string, the attribute that None stands for.
OpAttr& attr_of(std::vector<OpAttr>& attrs, std::string_view name);
std::vector<OpAttr> with_choices(std::vector<OpAttr> attrs, std::string_view name,
                                 std::vector<std::string_view> choices);
std::vector<OpAttr> with_own(std::vector<OpAttr> attrs, std::string_view name);  // not an attribute of Relax's
std::vector<OpAttr> with_like(std::vector<OpAttr> attrs, std::string_view name, const char* other);

// a * b and a + b of sizes, simplified; an error where numbers overflow. What only the run knows fails there.
Expr size_product(const OpCall& op, const Expr& a, const Expr& b);
Expr size_sum(const OpCall& op, const Expr& a, const Expr& b);
// The product of the dims.
Expr product(const std::vector<Expr>& dims);
// The row-major position of `indices` in `shape`, and back.
Expr flatten_index(const std::vector<Expr>& indices, const std::vector<Expr>& shape);
std::vector<Expr> unflatten_index(Expr flat, const std::vector<Expr>& shape);

}  // namespace relaxc
