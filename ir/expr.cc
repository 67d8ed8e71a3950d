#include "ir/expr.h"

#include <algorithm>
#include <cmath>

#include "ir/op_names.h"
#include "support/lists.h"
#include "vm/builtins.h"

namespace relaxc {

namespace {

constexpr BinaryOpInfo kBinaryOps[] = {
#define RELAXC_ROW(op, name, symbol, compares, value) {BinaryOp::op, name, symbol, compares},
    RELAXC_BINARY_OPS(RELAXC_ROW)
#undef RELAXC_ROW
};

// Scalars of complex dtypes are loaded, stored and chosen between; reading text or a row of an operator may ask for
// more.
void require_computable(DType dtype, std::string_view operation, const Span& span) {
  if (dtype.is_complex())
    fail_unsupported(span, "{} of {}: complex numbers are only moved; compute with their parts, which are {}",
                     operation, to_string(dtype), to_string(dtype.part()));
}

// Converts scalable lanes from DType's encoding to that of Ramp and Broadcast.
int64_t signed_lanes(int64_t lanes) { return lanes >= DType::kScalable ? DType::kScalable - lanes : lanes; }

// A double holds all integers up to 2^53 only.
Expr number_of_type(int64_t value, const Expr& other) {
  DType dtype = dtype_of(other);
  bool is_integer = !dtype.is_float() && dtype.lanes == 1;
  return is_integer ? int_imm(value, dtype) : scalar_imm(static_cast<double>(value), dtype);
}

}  // namespace

std::span<const BinaryOpInfo> binary_ops() { return kBinaryOps; }
const BinaryOpInfo& info(BinaryOp op) { return kBinaryOps[static_cast<size_t>(op)]; }

BinaryOp mirrored(BinaryOp op) {
  if (op == BinaryOp::kLT) return BinaryOp::kGT;
  if (op == BinaryOp::kLE) return BinaryOp::kGE;
  if (op == BinaryOp::kGT) return BinaryOp::kLT;
  return op == BinaryOp::kGE ? BinaryOp::kLE : op;
}

VarRef make_var(std::string name, Type type, const Span& span) {
  return make(Var{std::move(name)}, std::move(type), span);
}
VarRef make_dim(std::string name, const Span& span) { return make_var(std::move(name), prim_type(kInt64), span); }
Buffer make_buffer(std::string name, DType dtype, std::vector<Expr> shape, std::string scope, const Span& span) {
  BufferType type{
      .dtype = dtype, .shape = std::move(shape), .strides = {}, .elem_offset = {}, .scope = std::move(scope)};
  return make_var(std::move(name), make(std::move(type)), span);
}
const BufferType& buffer_type(const Buffer& buffer) {
  const BufferType* type = buffer.type().as<BufferType>();
  RELAXC_CHECK(type, "'{}' is not a buffer", buffer->name);
  return *type;
}

DType dtype_of(const Expr& expr) {
  const PrimType* type = expr.type().as<PrimType>();
  RELAXC_CHECK(type, "expected a scalar, got {}", kind_name(expr.type().kind()));
  return type->dtype;
}

Expr int_imm(int64_t value, DType dtype, const Span& span) {
  RELAXC_CHECK(dtype.lanes == 1 && (dtype.is_integral() || dtype.is_bool()), "integer constant of {}",
               to_string(dtype));
  return make(IntImm{wrap_int(value, dtype)}, prim_type(dtype), span);
}
Expr float_imm(double value, DType dtype, const Span& span) {
  RELAXC_CHECK(dtype.lanes == 1 && (dtype.is_float() || dtype.is_complex()), "float constant of {}", to_string(dtype));
  return make(FloatImm{rounded_to(value, dtype.is_complex() ? dtype.part() : dtype)}, prim_type(dtype), span);
}
Expr bool_imm(bool value, const Span& span) { return int_imm(value, kBool, span); }
Expr string_imm(std::string value, const Span& span) { return make(StringImm{std::move(value)}, object_type(), span); }

Expr scalar_imm(double value, DType dtype) {
  const bool is_real = dtype.is_float() || dtype.is_complex();
  Expr scalar = is_real ? float_imm(value, dtype.element()) : int_imm(static_cast<int64_t>(value), dtype.element());
  return dtype.lanes == 1 ? scalar : broadcast(scalar, dtype.lanes);
}

Expr constant(Tensor data, const Span& span) {
  Type type = tensor_type(map_each(data.shape(), [](int64_t dim) { return int_imm(dim); }), data.dtype());
  return make(Constant{std::move(data)}, type, span);
}
Expr op_ref(std::string name) { return make(OpRef{std::move(name)}, object_type()); }
Expr op_ref(OpName op) { return op_ref(std::string(op.text)); }
Expr global_var(std::string name, Type type) { return make(GlobalVar{std::move(name)}, std::move(type)); }
Expr extern_func(std::string symbol, const Span& span) {
  const vm::Builtin* builtin = vm::find_builtin(symbol);
  Type type = make(FuncType{std::nullopt, object_type(), builtin && builtin->pure});
  return make(ExternFunc{std::move(symbol)}, std::move(type), span);
}

Expr binary(BinaryOp op, Expr a, Expr b, const Span& span) {
  DType dtype = dtype_of(a);
  RELAXC_CHECK(dtype == dtype_of(b), "{} of {} and {}: {} and {}", info(op).name, to_string(dtype),
               to_string(dtype_of(b)), debug_print(a), debug_print(b));
  require_computable(dtype, info(op).name, span);
  bool is_logic = op == BinaryOp::kAnd || op == BinaryOp::kOr;
  RELAXC_CHECK(!is_logic || dtype.is_bool(), "{} of {}", info(op).name, to_string(dtype));
  Type type = info(op).compares ? prim_type(kBool.with_lanes(dtype.lanes)) : a.type();
  return make(Binary{op, std::move(a), std::move(b)}, std::move(type), span);
}
Expr not_(Expr value, const Span& span) {
  RELAXC_CHECK(dtype_of(value).is_bool(), "not of {}", to_string(dtype_of(value)));
  return make(Not{value}, value.type(), span);
}
Expr cast_to(Expr value, DType dtype, const Span& span) {
  DType from = dtype_of(value);
  RELAXC_CHECK(from.lanes == dtype.lanes, "cast of {} to {}", to_string(from), to_string(dtype));
  if (from == dtype) return value;
  require_computable(from.is_complex() ? from : dtype, "a conversion", span);
  if (const IntImm* imm = value.as<IntImm>(); imm && (dtype.is_integral() || dtype.is_bool()))
    return int_imm(dtype.is_bool() ? imm->value != 0 : imm->value, dtype, span);
  return make(Cast{std::move(value)}, prim_type(dtype), span);
}
Expr select(Expr condition, Expr a, Expr b, const Span& span) {
  RELAXC_CHECK(dtype_of(condition).is_bool() && dtype_of(a) == dtype_of(b), "select({}, {}, {})",
               to_string(dtype_of(condition)), to_string(dtype_of(a)), to_string(dtype_of(b)));
  return make(Select{std::move(condition), a, std::move(b)}, a.type(), span);
}
Expr ramp(Expr base, Expr stride, int64_t lanes, const Span& span) {
  lanes = signed_lanes(lanes);
  RELAXC_CHECK(dtype_of(base) == dtype_of(stride) && dtype_of(base).lanes == 1 && (lanes > 1 || lanes < 0));
  return make(Ramp{base, std::move(stride), lanes}, prim_type(dtype_of(base).with_lanes(static_cast<int>(lanes))),
              span);
}
Expr broadcast(Expr value, int64_t lanes, const Span& span) {
  lanes = signed_lanes(lanes);
  RELAXC_CHECK(dtype_of(value).lanes == 1 && (lanes > 1 || lanes < 0));
  return make(Broadcast{value, lanes}, prim_type(dtype_of(value).with_lanes(static_cast<int>(lanes))), span);
}
Expr let(VarRef var, Expr value, Expr body, const Span& span) {
  return make(Let{std::move(var), std::move(value), body}, body.type(), span);
}
Expr load(Buffer buffer, std::vector<Expr> indices, const Span& span) {
  const BufferType& type = buffer_type(buffer);
  RELAXC_CHECK(indices.size() == type.shape.size(), "{} indices for buffer '{}' of rank {}", indices.size(),
               buffer->name, type.shape.size());
  int lanes = indices.empty() ? 1 : dtype_of(indices.back()).lanes;
  DType dtype = type.dtype.with_lanes(type.dtype.lanes * lanes);
  return make(BufferLoad{std::move(buffer), std::move(indices), std::nullopt}, prim_type(dtype), span);
}
Expr intrinsic(std::string name, std::vector<Expr> args, DType dtype, const Span& span) {
  return make(Call{op_ref(std::move(name)), std::move(args), {}, {}}, prim_type(dtype), span);
}
Expr if_then_else(Expr condition, Expr a, Expr b, const Span& span) {
  RELAXC_CHECK(dtype_of(condition) == kBool && dtype_of(a) == dtype_of(b), "if_then_else({}, {}, {})",
               to_string(dtype_of(condition)), to_string(dtype_of(a)), to_string(dtype_of(b)));
  if (auto known = as_int(condition)) return *known ? a : b;
  DType dtype = dtype_of(a);
  return intrinsic(ops::kIfThenElse, {std::move(condition), std::move(a), std::move(b)}, dtype, span);
}
Expr tuple(std::vector<Expr> items, const Span& span) {
  Type type = tuple_type(map_each(items, &Expr::type));
  return make(Tuple{std::move(items)}, std::move(type), span);
}
Expr tuple_get(Expr tuple, int64_t index, const Span& span) {
  const TupleType* type = tuple.type().as<TupleType>();
  RELAXC_CHECK(!type || (index >= 0 && index < static_cast<int64_t>(type->items.size())), "index {} of a tuple of {}",
               index, type ? type->items.size() : 0);
  Type item = type ? type->items[index] : object_type();
  return make(TupleGetItem{std::move(tuple), index}, std::move(item), span);
}
Expr shape_expr(std::vector<Expr> values, const Span& span) {
  for (const Expr& value : values) RELAXC_CHECK(value.type().is<PrimType>(), "a dim must be a scalar");
  Type type = shape_type(values);
  return make(ShapeExpr{std::move(values)}, std::move(type), span);
}
Expr call(Expr callee, std::vector<Expr> args, Attrs attrs, Type type, const Span& span, std::vector<Type> type_args) {
  return make(Call{std::move(callee), std::move(args), std::move(attrs), std::move(type_args)}, std::move(type), span);
}
Expr seq_expr(std::vector<BindingBlock> blocks, Expr body, const Span& span) {
  std::vector<BindingBlock> kept;
  for (BindingBlock& block : blocks) {
    if (!block.dataflow && block.bindings.empty()) continue;
    if (!block.dataflow && !kept.empty() && !kept.back().dataflow) {
      kept.back().bindings.insert(kept.back().bindings.end(), block.bindings.begin(), block.bindings.end());
    } else {
      kept.push_back(std::move(block));
    }
  }
  return make(SeqExpr{std::move(kept), body}, body.type(), span);
}

// ---- Shorthand

std::optional<int64_t> as_int(const Expr& expr) {
  if (const IntImm* imm = expr.as<IntImm>()) return imm->value;
  if (const Broadcast* b = expr.as<Broadcast>()) return as_int(b->value);
  return std::nullopt;
}
bool is_int(const Expr& expr, int64_t value) { return as_int(expr) == value; }

// T is int64_t or uint64_t; the operation has a value.
template <class T>
static int64_t value_of(BinaryOp op, T x, T y) {
  using U = uint64_t;
  switch (op) {
#define RELAXC_ROW(op, name, symbol, compares, value) \
  case BinaryOp::op:                                  \
    return static_cast<int64_t>(value);
    RELAXC_BINARY_OPS(RELAXC_ROW)
#undef RELAXC_ROW
  }
  return 0;
}

int64_t wrap_int(int64_t value, DType dtype) {
  if (dtype.is_bool()) return value != 0;
  if (dtype.bits >= 64) return value;
  int shift = 64 - dtype.bits;
  uint64_t shifted = static_cast<uint64_t>(value) << shift;
  return dtype.is_uint() ? static_cast<int64_t>(shifted >> shift) : static_cast<int64_t>(shifted) >> shift;
}

std::optional<int64_t> fold_int(BinaryOp op, int64_t a, int64_t b, DType dtype) {
  bool overflows = b == -1 && a == INT64_MIN && !dtype.is_uint();
  if (is_division(op) && (b == 0 || overflows)) return std::nullopt;
  if (is_shift(op) && (b < 0 || b >= dtype.bits)) return std::nullopt;
  int64_t value =
      dtype.is_uint() ? value_of(op, static_cast<uint64_t>(a), static_cast<uint64_t>(b)) : value_of(op, a, b);
  return info(op).compares ? value : wrap_int(value, dtype);
}
bool fold_comparison(BinaryOp op, double a, double b) {
  if (op == BinaryOp::kEQ) return a == b;
  if (op == BinaryOp::kNE) return a != b;
  if (op == BinaryOp::kLT) return a < b;
  if (op == BinaryOp::kLE) return a <= b;
  return op == BinaryOp::kGT ? a > b : a >= b;
}

Expr folded_binary(BinaryOp op, const Expr& a, const Expr& b) {
  const IntImm *x = a.as<IntImm>(), *y = b.as<IntImm>();
  auto value = x && y ? fold_int(op, x->value, y->value, dtype_of(a)) : std::nullopt;
  return value ? int_imm(*value, info(op).compares ? kBool : dtype_of(a)) : binary(op, a, b);
}

Expr operator+(const Expr& a, const Expr& b) {
  if (is_int(a, 0)) return b;
  if (is_int(b, 0)) return a;
  return folded_binary(BinaryOp::kAdd, a, b);
}
Expr operator-(const Expr& a, const Expr& b) { return is_int(b, 0) ? a : folded_binary(BinaryOp::kSub, a, b); }
Expr operator*(const Expr& a, const Expr& b) {
  if (is_int(a, 1) || is_int(b, 0)) return b;
  if (is_int(b, 1) || is_int(a, 0)) return a;
  return folded_binary(BinaryOp::kMul, a, b);
}
Expr operator+(const Expr& a, int64_t b) { return a + number_of_type(b, a); }
Expr operator-(const Expr& a, int64_t b) { return a - number_of_type(b, a); }
Expr operator*(const Expr& a, int64_t b) { return a * number_of_type(b, a); }
Expr floor_div(const Expr& a, const Expr& b) {
  return is_int(b, 1) || (is_int(a, 0) && !is_int(b, 0)) ? a : folded_binary(BinaryOp::kFloorDiv, a, b);
}
Expr floor_mod(const Expr& a, const Expr& b) {
  return is_int(b, 1) ? number_of_type(0, a) : folded_binary(BinaryOp::kFloorMod, a, b);
}
Expr floor_div(const Expr& a, int64_t b) { return floor_div(a, number_of_type(b, a)); }
Expr floor_mod(const Expr& a, int64_t b) { return floor_mod(a, number_of_type(b, a)); }
Expr ceil_div(const Expr& a, int64_t b) { return floor_div(a + (b - 1), b); }
Expr min(const Expr& a, const Expr& b) { return same_node(a, b) ? a : folded_binary(BinaryOp::kMin, a, b); }
Expr max(const Expr& a, const Expr& b) { return same_node(a, b) ? a : folded_binary(BinaryOp::kMax, a, b); }
Expr operator<(const Expr& a, const Expr& b) { return folded_binary(BinaryOp::kLT, a, b); }
Expr operator<=(const Expr& a, const Expr& b) { return folded_binary(BinaryOp::kLE, a, b); }
Expr operator>(const Expr& a, const Expr& b) { return folded_binary(BinaryOp::kGT, a, b); }
Expr operator>=(const Expr& a, const Expr& b) { return folded_binary(BinaryOp::kGE, a, b); }
Expr equal(const Expr& a, const Expr& b) { return folded_binary(BinaryOp::kEQ, a, b); }
Expr not_equal(const Expr& a, const Expr& b) { return folded_binary(BinaryOp::kNE, a, b); }
Expr operator&&(const Expr& a, const Expr& b) {
  if (is_int(a, 1) || is_int(b, 0)) return b;
  if (is_int(b, 1) || is_int(a, 0)) return a;
  return binary(BinaryOp::kAnd, a, b);
}
Expr operator||(const Expr& a, const Expr& b) {
  if (is_int(a, 0) || is_int(b, 1)) return b;
  if (is_int(b, 0) || is_int(a, 1)) return a;
  return binary(BinaryOp::kOr, a, b);
}
Expr operator!(const Expr& a) {
  const IntImm* imm = a.as<IntImm>();
  return imm ? bool_imm(!imm->value) : not_(a);
}

const std::string& op_name(const Expr& expr) {
  static const std::string kNone;
  const Call* call = expr.as<Call>();
  const OpRef* op = call ? call->callee.as<OpRef>() : nullptr;
  return op ? op->name : kNone;
}
const Call* as_call(const Expr& expr, OpName op) { return op_name(expr) == op ? expr.as<Call>() : nullptr; }

}  // namespace relaxc
