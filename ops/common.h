// Helpers that the operator groups share: broadcasting, axis normalization, and building a program from a call.
#pragma once
#include <algorithm>

#include "ir/arith.h"
#include "ir/op.h"
#include "support/lists.h"
#include "tir/compute.h"

namespace relaxc {

// Broadcasts two shapes by numpy's rule, with dims aligned to the right. A dim that is 1 only at run time does not
// stretch: two dims, neither of which is the constant 1, are required to be equal.
std::vector<Expr> broadcast_shapes(const OpCall& op, const std::vector<Expr>& a, const std::vector<Expr>& b);
std::vector<Expr> broadcast_shapes(const std::vector<Expr>& a, const std::vector<Expr>& b,
                                   const std::function<void(const Expr&, const Expr&)>& require_equal);
// Return calls of functions of the runtime (vm/builtins.cc): of one that has no effect but its result, and of one whose
// effect is all that it has.
Expr call_builtin(const std::string& name, std::vector<Expr> args, const Type& type);
// Makes the row of an operator that a function of the runtime does: "sequence.at" is vm.builtin.sequence_at, which gets
// `arguments`, or else the operator's. with_reason() gives such rows the reason that they share.
OpRow runtime_row(const char* name, const char* doc, std::vector<OpInput> inputs, Type (*infer)(const OpCall&),
                  std::vector<OpAttr> attrs = {}, std::vector<Expr> (*arguments)(const OpCall&) = nullptr);
std::vector<OpRow> with_reason(const char* why_runtime, std::vector<OpRow> rows);
// Returns the row of an operator that only moves elements.
OpRow moving(OpRow row);
Expr call_impure_builtin(const std::string& name, std::vector<Expr> args);
// Returns the element of `buffer` that is read for the element `axes` of the broadcast result.
Expr load_broadcast(const Buffer& buffer, Axes axes);

// The program of a call as it is built, with a param for each tensor argument: auto [b, x] = OpProgram(op).
struct OpProgram {
  explicit OpProgram(const OpCall& op) : inputs(builder.inputs_of(op)) {}
  ComputeBuilder builder = {};
  std::vector<Buffer> inputs;
};
// Adds a stage whose elements are stored, also where its reader could compute them: a table that all channels share, or
// a copy in the order in which it is read.
Buffer stored(ComputeBuilder& b, const char* name, DType dtype, const std::vector<Expr>& shape,
              const std::function<Expr(Axes)>& value);
// A scalar variable that the body of a block declares.
struct LocalScalar {
  LocalScalar(const char* name, DType dtype) : buffer(make_buffer(name, dtype, {int_imm(1)}, "local")) {}
  Expr get() const { return load(buffer, {int_imm(0)}); }
  Stmt set(const Expr& value) const { return store(buffer, value, {int_imm(0)}); }
  Stmt declared() const { return make(AllocBuffer{buffer, {}}); }
  Buffer buffer;
};
Stmt when(const Expr& condition, const Stmt& body);
// Counts a negative axis from the end. An error names axis and rank.
int64_t normalize_axis(const OpCall& op, int64_t axis, int64_t rank);
std::vector<int64_t> normalize_axes(const OpCall& op, const std::vector<int64_t>& axes, int64_t rank);

// Returns why an index map does not give each element of a tensor of known shape a place of its own, as a text behind
// "the index map"; "" if it does.
std::string problem_of_index_map(const Lambda& map, const Type& tensor);
// Returns the scalars of argument i, which is a shape or a tuple of scalars.
std::vector<Expr> scalar_list(const OpCall& op, size_t i);
// Returns the types of argument i, which is a tuple of tensors of known shape and dtype.
std::vector<Type> tensor_list(const OpCall& op, size_t i);
DType common_dtype(const OpCall& op, const std::vector<Type>& tensors);
// Makes a param for each tensor of argument 0, which is a tuple.
std::vector<Buffer> inputs_of_tuple(ComputeBuilder& b, const OpCall& op);
// These fail for a tensor of another rank, for tensors of different dtypes, and for an argument that is not a scalar,
// or not a tensor.
void require_rank(const OpCall& op, size_t i, int64_t rank);
void require_ranks(const OpCall& op, const std::vector<int64_t>& ranks);  // of the first arguments
void require_same_dtype(const OpCall& op, size_t i, size_t j);
void require_scalar(const OpCall& op, size_t i);
void require_tensor(const OpCall& op);  // argument 0
// Checks the dtypes of a product's operands and returns the result's: out_dtype if given; integers, or floats, may then
// differ.
DType product_dtype(const OpCall& op, std::optional<DType> out_dtype);
// Requires two lists of one length to be equal, item by item: "dim 1 of bias: 3 and 4", where `what` is "of bias".
void require_same_dims(const OpCall& op, const std::vector<Expr>& a, const std::vector<Expr>& b, std::string_view what);
// A set of dtypes that operators take.
struct Domain {
  const char* text;  // in messages
  bool (*accepts)(DType);
  DType example;
  void check(const OpCall& op, DType dtype) const {
    if (!accepts(dtype)) op.fail("expected {}, got {}", text, to_string(dtype));
  }
};
inline constexpr Domain kAnyDType{"any dtype", [](DType) { return true; }, kFloat32};
inline constexpr Domain kNumbers{"a number", [](DType dtype) { return !dtype.is_bool(); }, kFloat32};
inline constexpr Domain kFloats{"a float", [](DType dtype) { return dtype.is_float(); }, kFloat32};
inline constexpr Domain kIntegers{"an integer", [](DType dtype) { return dtype.is_integral(); }, kInt32};
inline constexpr Domain kFlags{"bool", [](DType dtype) { return dtype.is_bool(); }, kBool};
// This is the `infer` of an operator whose result has the type of argument 0.
Type infer_like_first(const OpCall& op);
// This is the `infer` of a call that states the types of its outputs as type arguments.
Type infer_stated(const OpCall& op);
// These are the `infer_partial` of an operator whose result has a fixed dtype, of one whose result also has the rank of
// argument i, and of one with several results.
Type infer_unranked(std::optional<DType> dtype);
Type infer_same_rank(const OpCall& op, size_t i, std::optional<DType> dtype);
Type infer_unknown(const OpCall& op);
Type infer_nothing(const OpCall& op);  // of a call without results
// These are the `infer_partial` of an operator whose result has the dtype that its attribute dtype or out_dtype states,
// else the first tensor's, and of one whose result also has the rank of argument 0.
Type infer_stated_dtype(const OpCall& op);
Type infer_stated_dtype_same_rank(const OpCall& op);
using Inputs = const std::vector<Buffer>&;  // the input buffers of a program, one for each tensor argument
// Makes a program of one stage: out[i] = value(x, i), where x are the tensor arguments and out has the type `result`.
PrimFuncRef compute_program(const OpCall& op, const std::string& name, const Type& result,
                            const std::function<Expr(Inputs x, Axes i)>& value);
// Completes the row of an operator that computes each element independently: legalize makes a program of the stage
// out[i] = element(op, x, i), where out has the type that `infer` gives. The stage of "relax.nn.pad" is "T_pad".
using Element = std::function<Expr(const OpCall& op, Inputs x, Axes i)>;
OpRow by_element(OpRow row, Element element, OpPattern pattern = OpPattern::kInjective, std::string stage = {});
std::string stage_name(const std::string& op);
// Completes the row of an operator that has an effect.
OpRow impure(OpRow row);
// Each of these completes the attribute of that name in a row's list: with_choices lists the values of a string,
// with_extension says that Relax does not have it, with_default_from names the attribute whose value replaces None.
OpAttr& attr_of(std::vector<OpAttr>& attrs, std::string_view name);
std::vector<OpAttr> with_choices(std::vector<OpAttr> attrs, std::string_view name,
                                 std::vector<std::string_view> choices);
std::vector<OpAttr> with_extension(std::vector<OpAttr> attrs, std::string_view name);
std::vector<OpAttr> with_default_from(std::vector<OpAttr> attrs, std::string_view name, const char* other);

// Returns the loops over these extents around the statement that `body` makes from their variables.
Stmt loop_nest(const std::vector<Expr>& extents, const std::function<Stmt(Axes)>& body);

// These return a * b and a + b of sizes, simplified. An overflow is an error now, or at run time for symbolic sizes.
Expr size_product(const OpCall& op, const Expr& a, const Expr& b);
Expr size_sum(const OpCall& op, const Expr& a, const Expr& b);
Expr product(const std::vector<Expr>& dims);
// Returns whether no dim is 0, which is true where all are constants other than 0.
Expr has_elements(const std::vector<Expr>& dims);
// These return the list with the item at a position replaced, with a new item inserted there, with that item removed,
// and with more items appended.
std::vector<Expr> with_item(std::vector<Expr> list, int64_t at, Expr item);
std::vector<Expr> with_new_item(std::vector<Expr> list, int64_t at, Expr item);
std::vector<Expr> without_item(std::vector<Expr> list, int64_t at);
std::vector<Expr> followed_by(std::vector<Expr> list, const std::vector<Expr>& more);
std::vector<Expr> items_at(const std::vector<Expr>& list, const std::vector<int64_t>& positions);
std::vector<int64_t> int_range(int64_t first, int64_t end);
// These convert lists of constants. as_ints returns nullopt when an expression is not a constant.
std::vector<Expr> int_imms(const std::vector<int64_t>& values);
std::optional<std::vector<int64_t>> as_ints(const std::vector<Expr>& values);
template <class T>
bool contains(const std::vector<T>& list, const T& item) {
  return std::ranges::find(list, item) != list.end();
}
// These convert `indices` in `shape` to the row-major position, and back.
Expr flatten_index(const std::vector<Expr>& indices, const std::vector<Expr>& shape);
std::vector<Expr> unflatten_index(Expr flat, const std::vector<Expr>& shape);

}  // namespace relaxc
