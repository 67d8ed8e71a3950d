// Expressions: one family for graph values (tensors, shapes, tuples, functions) and scalars. The same nodes serve as a
// tensor program's index arithmetic and as a graph type's symbolic dims. Each node's comment defines its semantics.
#pragma once
#include "ir/attrs.h"
#include "ir/type.h"
#include "vm/tensor.h"

namespace relaxc {

struct Call;
using VarRef = Ref<Var>;
// A variable whose type is a BufferType.
using Buffer = Ref<Var>;

// ---- Leaves -------------------------------------------------------------------------------------------------------

// An integer or bool constant of the node's (scalar) type; the value is sign- or zero-extended to 64 bits.
struct IntImm {
  int64_t value;
  RELAXC_FIELDS(IntImm, value);
};
// A floating-point constant, rounded to the node's dtype. Equality compares bits.
struct FloatImm {
  double value;
  RELAXC_FIELDS(FloatImm, value);
};
struct StringImm {
  std::string value;
  RELAXC_FIELDS(StringImm, value);
};
struct DTypeImm {
  DType value;
  RELAXC_FIELDS(DTypeImm, value);
};
// A variable: identity is the node, the name is a hint. Its type says what it is: PrimType (scalar, symbolic dim),
// TensorType (graph value), BufferType (buffer), FuncType, ... Defined exactly once in a module.
struct Var {
  std::string name;
  RELAXC_FIELDS(Var, (hint)name);
};
// A function of the module, by name.
struct GlobalVar {
  std::string name;
  RELAXC_FIELDS(GlobalVar, name);
};
// An operator or intrinsic: "relax.nn.conv2d", "relax.call_tir", "tir.exp".
struct OpRef {
  std::string name;
  RELAXC_FIELDS(OpRef, name);
};
// A function found by name at load time.
struct ExternFunc {
  std::string symbol;
  RELAXC_FIELDS(ExternFunc, symbol);
};
// A tensor known at compile time. Shares memory with the model file it came from.
struct Constant {
  Tensor data;
  RELAXC_FIELDS(Constant, data);
};

// ---- Scalars ------------------------------------------------------------------------------------------------------

// A row per operator on two scalars: the name of the call form T.Add(a, b), the symbol or null, whether the result is
// bool, and the value for integers x and y of one type of 64 bits (U: the unsigned one), before it wraps.
//   kDiv      on integers truncates toward zero
//   kTruncMod has the sign of the dividend; fmod on floats
//   kFloorDiv, kFloorMod round toward minus infinity; the remainder has the divisor's sign
//   kMin, kMax give NaN if either is NaN; kNE is true and the other comparisons false with NaN
//   kAnd, kOr are on bool; both sides may be evaluated
//   kShiftRight is arithmetic for signed integers
// clang-format off
#define RELAXC_BINARY_OPS(X) \
  X(kAdd, "Add", "+", false, U(x) + U(y)) \
  X(kSub, "Sub", "-", false, U(x) - U(y)) \
  X(kMul, "Mul", "*", false, U(x) * U(y)) \
  X(kDiv, "Div", "/", false, x / y) \
  X(kTruncMod, "Mod", nullptr, false, x % y) \
  X(kFloorDiv, "FloorDiv", "//", false, x / y - (x % y != 0 && (x < 0) != (y < 0))) \
  X(kFloorMod, "FloorMod", "%", false, x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0)) \
  X(kMin, "min", nullptr, false, x < y ? x : y) \
  X(kMax, "max", nullptr, false, x > y ? x : y) \
  X(kEQ, "EQ", "==", true, x == y) \
  X(kNE, "NE", "!=", true, x != y) \
  X(kLT, "LT", "<", true, x < y) \
  X(kLE, "LE", "<=", true, x <= y) \
  X(kGT, "GT", ">", true, x > y) \
  X(kGE, "GE", ">=", true, x >= y) \
  X(kAnd, "And", "and", false, x && y) \
  X(kOr, "Or", "or", false, x || y) \
  X(kBitAnd, "bitwise_and", "&", false, x & y) \
  X(kBitOr, "bitwise_or", "|", false, x | y) \
  X(kBitXor, "bitwise_xor", "^", false, x ^ y) \
  X(kShiftLeft, "shift_left", "<<", false, U(x) << y) \
  X(kShiftRight, "shift_right", ">>", false, x >> y)
// clang-format on
#define RELAXC_ROW(op, ...) op,
enum class BinaryOp : uint8_t { RELAXC_BINARY_OPS(RELAXC_ROW) };
#undef RELAXC_ROW
struct BinaryOpInfo {
  BinaryOp op;
  const char* name;
  const char* symbol;
  bool compares;
};
const BinaryOpInfo& info(BinaryOp op);
std::span<const BinaryOpInfo> binary_ops();  // the rows of all
// Divisions and remainders; they have no value for a divisor of 0.
constexpr bool is_division(BinaryOp op) { return op >= BinaryOp::kDiv && op <= BinaryOp::kFloorMod; }
constexpr bool is_shift(BinaryOp op) { return op == BinaryOp::kShiftLeft || op == BinaryOp::kShiftRight; }
// Returns the operator with swapped operands: a < b is b > a. Operators other than <, <=, >, >= stay.
BinaryOp mirrored(BinaryOp op);

// Both operands have the same dtype and lanes. Integers wrap (two's complement); the simplifier assumes no overflow.
struct Binary {
  BinaryOp op;
  Expr a, b;
  RELAXC_FIELDS(Binary, op, a, b);
};
// Logical negation of a bool.
struct Not {
  Expr value;
  RELAXC_FIELDS(Not, value);
};
// The value is converted to the node's type. Float to int truncates toward zero and saturates, and NaN gives 0.
// Conversion to bool is `value != 0`. An int wraps when it becomes a narrower int.
struct Cast {
  Expr value;
  RELAXC_FIELDS(Cast, value);
};
// condition ? a : b. Both sides may be evaluated, loads included; for a guarded load use the intrinsic
// tir.if_then_else, which evaluates one side only.
struct Select {
  Expr condition, a, b;
  RELAXC_FIELDS(Select, condition, a, b);
};
// The vector (base, base + stride, ..., base + (lanes-1) * stride). Here and in Broadcast, lanes of -4 mean 4 * vscale.
struct Ramp {
  Expr base, stride;
  int64_t lanes;
  RELAXC_FIELDS(Ramp, base, stride, lanes);
};
// A scalar repeated in every lane.
struct Broadcast {
  Expr value;
  int64_t lanes;
  RELAXC_FIELDS(Broadcast, value, lanes);
};
// body with var bound to value.
struct Let {
  VarRef var;
  Expr value, body;
  RELAXC_FIELDS(Let, value, (binds)var, body);
};
// A function of scalars as an argument: the combiner of a reduction (tir.comm_reducer), an index map.
struct Lambda {
  std::vector<VarRef> params;
  std::vector<Expr> results;
  RELAXC_FIELDS(Lambda, (binds)params, results);
};
// One element of a buffer, with one index per dim. At most the last index is a vector; the result then has its lanes.
// Indices are in range unless the load is masked: lanes whose predicate is false are not read and give 0.
struct BufferLoad {
  Buffer buffer;
  std::vector<Expr> indices;
  std::optional<Expr> predicate;
  RELAXC_FIELDS(BufferLoad, buffer, indices, predicate);
};

// ---- Graph --------------------------------------------------------------------------------------------------------

// A call of an operator or intrinsic (OpRef), a module function (GlobalVar), an external function (ExternFunc) or a
// closure (Var). relax.call_tir: args = (GlobalVar, Tuple of inputs[, ShapeExpr of scalar arguments]), type_args = (the
// output type). relax.call_dps_packed: the same with an ExternFunc. relax.call_packed is a Call on an ExternFunc.
struct Call {
  Expr callee;
  std::vector<Expr> args;
  Attrs attrs;
  std::vector<Type> type_args;
  RELAXC_FIELDS(Call, callee, args, attrs, type_args);
};
struct Tuple {
  std::vector<Expr> items;
  RELAXC_FIELDS(Tuple, items);
};
struct TupleGetItem {
  Expr tuple;
  int64_t index;
  RELAXC_FIELDS(TupleGetItem, tuple, index);
};
// A shape value; the items are int64 scalars.
struct ShapeExpr {
  std::vector<Expr> values;
  RELAXC_FIELDS(ShapeExpr, values);
};

// Binds var = value, or var = match_cast(value, cast): the value's run-time type is checked against `cast`, and
// symbolic dims of `cast` that are not bound yet are bound by it.
struct Binding {
  Expr value;
  std::optional<Type> cast;
  VarRef var;
  RELAXC_FIELDS(Binding, value, (binds_deep)cast, (binds)var);
};
// A list of bindings. A dataflow block is pure and has no control flow; only its outputs are visible after it.
struct BindingBlock {
  bool dataflow = false;
  std::vector<Binding> bindings;
  std::vector<VarRef> outputs;  // dataflow blocks only
  RELAXC_FIELDS(BindingBlock, dataflow, bindings, outputs);
};
// A sequence is bindings, then a leaf value. Bodies of functions and branches are SeqExprs.
struct SeqExpr {
  std::vector<BindingBlock> blocks;
  Expr body;
  RELAXC_FIELDS(SeqExpr, blocks, body);
};
// The condition is a bool tensor of rank 0, or a bool scalar. Both branches are SeqExprs of a common type.
struct If {
  Expr condition, then_branch, else_branch;
  RELAXC_FIELDS(If, condition, then_branch, else_branch);
};

// An operator or intrinsic that code recognizes; the constants are in ir/op_names.h.
struct OpName {
  std::string_view text;  // "relax.reshape"
  friend bool operator==(std::string_view name, OpName op) { return name == op.text; }
};

// ---- Construction. Operand types are checked and the type is computed. ----------------------------------------------

VarRef make_var(std::string name, Type type, const Span& span = {});
// Returns a new symbolic dim, which is an int64 scalar variable.
VarRef make_dim(std::string name, const Span& span = {});
Buffer make_buffer(std::string name, DType dtype, std::vector<Expr> shape, std::string scope = "global",
                   const Span& span = {});
const BufferType& buffer_type(const Buffer& buffer);

Expr int_imm(int64_t value, DType dtype = kInt64, const Span& span = {});
Expr float_imm(double value, DType dtype = kFloat32, const Span& span = {});
Expr bool_imm(bool value, const Span& span = {});  // NOLINT: the parameter is the constant
Expr string_imm(std::string value, const Span& span = {});
// Returns a constant of any scalar dtype; broadcast when the dtype has lanes.
Expr scalar_imm(double value, DType dtype);
Expr constant(Tensor data, const Span& span = {});
Expr op_ref(std::string name);
Expr op_ref(OpName op);
Expr global_var(std::string name, Type type);
Expr extern_func(std::string symbol, const Span& span = {});

Expr binary(BinaryOp op, Expr a, Expr b, const Span& span = {});
Expr not_(Expr value, const Span& span = {});
Expr cast_to(Expr value, DType dtype, const Span& span = {});  // the value itself when the dtype is equal already
Expr select(Expr condition, Expr a, Expr b, const Span& span = {});
Expr ramp(Expr base, Expr stride, int64_t lanes, const Span& span = {});
Expr broadcast(Expr value, int64_t lanes, const Span& span = {});
Expr let(VarRef var, Expr value, Expr body, const Span& span = {});
Expr load(Buffer buffer, std::vector<Expr> indices, const Span& span = {});
// Returns a call of an intrinsic of TensorIR: intrinsic("tir.exp", {x}, type of x).
Expr intrinsic(std::string name, std::vector<Expr> args, DType dtype, const Span& span = {});
inline Expr intrinsic(OpName op, std::vector<Expr> args, DType dtype, const Span& span = {}) {
  return intrinsic(std::string(op.text), std::move(args), dtype, span);
}
// Returns a call of tir.if_then_else, which evaluates one side only.
Expr if_then_else(Expr condition, Expr a, Expr b, const Span& span = {});
Expr tuple(std::vector<Expr> items, const Span& span = {});
Expr tuple_get(Expr tuple, int64_t index, const Span& span = {});
Expr shape_expr(std::vector<Expr> values, const Span& span = {});
Expr call(Expr callee, std::vector<Expr> args, Attrs attrs, Type type, const Span& span = {},
          std::vector<Type> type_args = {});
// Drops plain blocks that are empty, and merges plain blocks that follow each other.
Expr seq_expr(std::vector<BindingBlock> blocks, Expr body, const Span& span = {});

// Shorthand for scalars. Two constants fold, x+0, x*1, x*0 and the like simplify; an int64_t takes the other's dtype.
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator+(const Expr& a, int64_t b);
Expr operator-(const Expr& a, int64_t b);
Expr operator*(const Expr& a, int64_t b);
Expr floor_div(const Expr& a, const Expr& b);
Expr floor_mod(const Expr& a, const Expr& b);
Expr floor_div(const Expr& a, int64_t b);
Expr floor_mod(const Expr& a, int64_t b);
Expr ceil_div(const Expr& a, int64_t b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr operator<(const Expr& a, const Expr& b);
Expr operator<=(const Expr& a, const Expr& b);
Expr operator>(const Expr& a, const Expr& b);
Expr operator>=(const Expr& a, const Expr& b);
Expr equal(const Expr& a, const Expr& b);
Expr not_equal(const Expr& a, const Expr& b);
Expr operator&&(const Expr& a, const Expr& b);
Expr operator||(const Expr& a, const Expr& b);
Expr operator!(const Expr& a);

// Returns the scalar dtype of a PrimType expression; checks that it is one.
DType dtype_of(const Expr& expr);
// Returns the value when the expression is an integer constant (or a Broadcast of one).
std::optional<int64_t> as_int(const Expr& expr);
bool is_int(const Expr& expr, int64_t value);
// Prints any node on one line, "Binary(op=0, a=x, b=IntImm(value=3))", for debugging; the text format is in ir/text/.
std::string debug_print(const NodeRef& node);
// Returns the operator's or intrinsic's name when `expr` is a call of an OpRef, else "".
const std::string& op_name(const Expr& expr);
// Returns `expr` as a call of the operator or intrinsic; else null.
const Call* as_call(const Expr& expr, OpName op);

// Returns the integer wrapped to the dtype's width, sign- or zero-extended.
int64_t wrap_int(int64_t value, DType dtype);
// Returns the constant value of a binary operation on integers of that dtype, wrapped; nullopt for division by zero.
std::optional<int64_t> fold_int(BinaryOp op, int64_t a, int64_t b, DType dtype);
// Returns the result of a comparison of floats, which is false for NaN except in a != b.
bool fold_comparison(BinaryOp op, double a, double b);
// Returns binary(op, a, b), or its value when both are integer constants.
Expr folded_binary(BinaryOp op, const Expr& a, const Expr& b);

}  // namespace relaxc
