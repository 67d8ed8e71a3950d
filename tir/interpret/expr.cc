// Expressions of the interpreter but calls (call.cc). Semantics: ir/expr.h.
#include <algorithm>
#include <cmath>

#include "support/checked_math.h"
#include "tir/interpret/internal.h"

namespace relaxc::interpreter {

namespace {

// Integer operations on wrapped representations; the results are wrapped by the caller's dtype.
struct IntBinaryBase : Code {
  CodePtr a, b;
  DType dtype;  // of the operands
  Span span;
  const char* name = "";
};
template <BinaryOp op, bool is_unsigned>
struct IntBinary final : IntBinaryBase {
  int64_t as_int(Frame& frame) const override {
    int64_t x = a->as_int(frame), y = b->as_int(frame);
    uint64_t ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
    bool less = is_unsigned ? ux < uy : x < y;
    if constexpr (op == BinaryOp::kAdd) return wrap_int(static_cast<int64_t>(ux + uy), dtype);
    if constexpr (op == BinaryOp::kSub) return wrap_int(static_cast<int64_t>(ux - uy), dtype);
    if constexpr (op == BinaryOp::kMul) return wrap_int(static_cast<int64_t>(ux * uy), dtype);
    if constexpr (op == BinaryOp::kDiv || op == BinaryOp::kTruncMod || op == BinaryOp::kFloorDiv ||
                  op == BinaryOp::kFloorMod) {
      if (y == 0) fail(span, "{} of {} by zero", name, x);
      constexpr bool kQuotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
      if constexpr (is_unsigned) return static_cast<int64_t>(kQuotient ? ux / uy : ux % uy);
      if (y == -1) return kQuotient ? wrap_int(static_cast<int64_t>(0 - ux), dtype) : 0;
      if constexpr (op == BinaryOp::kDiv) return x / y;
      if constexpr (op == BinaryOp::kTruncMod) return x % y;
      return kQuotient ? floor_div(x, y) : floor_mod(x, y);
    }
    if constexpr (op == BinaryOp::kMin) return less ? x : y;
    if constexpr (op == BinaryOp::kMax) return less ? y : x;
    if constexpr (op == BinaryOp::kEQ) return x == y;
    if constexpr (op == BinaryOp::kNE) return x != y;
    if constexpr (op == BinaryOp::kLT) return less;
    if constexpr (op == BinaryOp::kLE) return less || x == y;
    if constexpr (op == BinaryOp::kGT) return !less && x != y;
    if constexpr (op == BinaryOp::kGE) return !less;
    if constexpr (op == BinaryOp::kAnd || op == BinaryOp::kBitAnd) return x & y;
    if constexpr (op == BinaryOp::kOr || op == BinaryOp::kBitOr) return x | y;
    if constexpr (op == BinaryOp::kBitXor) return x ^ y;
    if constexpr (op == BinaryOp::kShiftLeft || op == BinaryOp::kShiftRight) {
      if (uy >= dtype.bits) fail(span, "{} of {} by {} bits", name, to_string(dtype), y);
      if constexpr (op == BinaryOp::kShiftLeft) return wrap_int(static_cast<int64_t>(ux << uy), dtype);
      return is_unsigned ? static_cast<int64_t>(ux >> uy) : x >> y;
    }
  }
};

// numpy's remainder: the divisor's sign, exact.
double float_floor_mod(double x, double y) {
  double rest = std::fmod(x, y);
  if (rest == 0) return std::copysign(0.0, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}
double minimum(double x, double y) { return std::isnan(x) || std::isnan(y) ? NAN : std::fmin(x, y); }
double maximum(double x, double y) { return std::isnan(x) || std::isnan(y) ? NAN : std::fmax(x, y); }

// float32 operations computed in float64 and rounded once more are correctly rounded (53 >= 2 * 24 + 2).
template <BinaryOp op>
struct FloatBinary final : IntBinaryBase {
  double as_float(Frame& frame) const override {
    double x = a->as_float(frame), y = b->as_float(frame);
    if constexpr (op == BinaryOp::kAdd) return round_float(x + y, dtype);
    if constexpr (op == BinaryOp::kSub) return round_float(x - y, dtype);
    if constexpr (op == BinaryOp::kMul) return round_float(x * y, dtype);
    if constexpr (op == BinaryOp::kDiv) return round_float(x / y, dtype);
    if constexpr (op == BinaryOp::kTruncMod) return std::fmod(x, y);
    if constexpr (op == BinaryOp::kFloorDiv) return std::floor(round_float(x / y, dtype));
    if constexpr (op == BinaryOp::kFloorMod) return round_float(float_floor_mod(x, y), dtype);
    if constexpr (op == BinaryOp::kMin) return minimum(x, y);
    if constexpr (op == BinaryOp::kMax) return maximum(x, y);
    return Code::as_float(frame);
  }
  int64_t as_int(Frame& frame) const override {
    double x = a->as_float(frame), y = b->as_float(frame);
    if constexpr (op == BinaryOp::kEQ) return x == y;
    if constexpr (op == BinaryOp::kNE) return x != y;
    if constexpr (op == BinaryOp::kLT) return x < y;
    if constexpr (op == BinaryOp::kLE) return x <= y;
    if constexpr (op == BinaryOp::kGT) return x > y;
    if constexpr (op == BinaryOp::kGE) return x >= y;
    return Code::as_int(frame);
  }
};

template <BinaryOp op>
std::unique_ptr<IntBinaryBase> binary_of(DType dtype) {
  if (dtype.is_float()) return std::make_unique<FloatBinary<op>>();
  if (dtype.is_int()) return std::make_unique<IntBinary<op, false>>();
  return std::make_unique<IntBinary<op, true>>();
}
std::unique_ptr<IntBinaryBase> make_binary(BinaryOp op, DType dtype) {
  switch (op) {
#define X(name)        \
  case BinaryOp::name: \
    return binary_of<BinaryOp::name>(dtype);
    X(kAdd)
    X(kSub)
    X(kMul)
    X(kDiv)
    X(kTruncMod)
    X(kFloorDiv)
    X(kFloorMod)
    X(kMin)
    X(kMax)
    X(kEQ)
    X(kNE) X(kLT) X(kLE) X(kGT) X(kGE) X(kAnd) X(kOr) X(kBitAnd) X(kBitOr) X(kBitXor) X(kShiftLeft) X(kShiftRight)
#undef X
  }
  RELAXC_CHECK(false, "unknown binary operation");
}

// Converts toward zero, saturating, NaN to 0.
int64_t float_to_int(double value, DType to) {
  if (to.is_bool()) return value != 0;
  if (std::isnan(value)) return 0;
  double least = to.is_uint() ? 0 : -std::ldexp(1.0, to.bits - 1);
  double beyond = std::ldexp(1.0, to.is_uint() ? to.bits : to.bits - 1);
  if (value <= least) return to.is_uint() ? 0 : wrap_int(INT64_MIN >> (64 - to.bits), to);
  if (value >= beyond) return to.is_uint() ? wrap_int(-1, to) : INT64_MAX >> (64 - to.bits);
  return to.is_uint() ? wrap_int(static_cast<int64_t>(static_cast<uint64_t>(value)), to) : static_cast<int64_t>(value);
}
double int_to_float(int64_t value, DType from, DType to) {
  uint64_t natural = static_cast<uint64_t>(value);
  if (to == kFloat32) return from.is_uint() ? static_cast<float>(natural) : static_cast<float>(value);
  return round_float(from.is_uint() ? static_cast<double>(natural) : static_cast<double>(value), to);
}
CodePtr cast_code(CodePtr value, DType from, DType to) {
  if (to.is_float()) {
    return float_code([value = std::move(value), from, to](Frame& frame) {
      return from.is_float() ? round_float(value->as_float(frame), to) : int_to_float(value->as_int(frame), from, to);
    });
  }
  return int_code([value = std::move(value), from, to](Frame& frame) {
    return from.is_float() ? float_to_int(value->as_float(frame), to) : wrap_int(value->as_int(frame), to);
  });
}

// A select evaluates both sides, as compiled code may: a load that is only in range on one side is an error here. What
// the other side reads need not have been written.
CodePtr select_code(CodePtr condition, CodePtr a, CodePtr b) {
  return any_code([condition = std::move(condition), a = std::move(a), b = std::move(b)](Frame& frame, auto kind) {
    auto side = [&](const Code& code, bool wanted) {
      bool outer = std::exchange(frame.result_unused, frame.result_unused || !wanted);
      auto value = code.as<decltype(kind)>(frame);
      frame.result_unused = outer;
      return value;
    };
    bool wanted = condition->as_int(frame) != 0;
    auto x = side(*a, wanted), y = side(*b, !wanted);
    return wanted ? x : y;
  });
}

CodePtr ramp_code(CodePtr base, CodePtr stride, DType dtype) {
  if (dtype.is_float()) {
    return float_code([base = std::move(base), stride = std::move(stride), dtype](Frame& frame) {
      double offset = round_float(stride->as_float(frame) * static_cast<double>(frame.lane), dtype);
      return round_float(base->as_float(frame) + offset, dtype);
    });
  }
  return int_code([base = std::move(base), stride = std::move(stride), dtype](Frame& frame) {
    uint64_t offset = static_cast<uint64_t>(stride->as_int(frame)) * static_cast<uint64_t>(frame.lane);
    return wrap_int(static_cast<int64_t>(static_cast<uint64_t>(base->as_int(frame)) + offset), dtype);
  });
}

CodePtr var_code(int slot, bool is_vector) {
  return any_code([slot, is_vector](Frame& frame, auto kind) {
    return frame.slots[is_vector ? slot + frame.lane : slot].template as<decltype(kind)>();
  });
}

}  // namespace

double round_float(double value, DType dtype) {
  if (dtype.bits == 64) return value;
  if (dtype.is_small_float()) return small_float_to_double(double_to_small_float(value, dtype), dtype);
  float single = static_cast<float>(value);
  if (dtype.bits == 32) return single;
  // Round to odd first, so that the second rounding decides alone.
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  if (static_cast<double>(single) != value && !std::isnan(value) && (bits & 1) == 0) {
    bool away = std::fabs(static_cast<double>(single)) > std::fabs(value);
    bits += away ? -1 : 1;
    std::memcpy(&single, &bits, sizeof bits);
  }
  return dtype.code == DTypeCode::kBFloat ? bfloat16_to_float(float_to_bfloat16(single))
                                          : half_to_float(float_to_half(single));
}

CodePtr Compiler::expr(const Expr& whole) {
  auto unsupported = [&](const auto&) -> CodePtr {
    fail_unsupported(whole.span(), "interpreter: {} has no scalar value", kind_name(whole.kind()));
  };
  return match(
      whole, [](const IntImm& node) { return int_code([value = node.value](Frame&) { return value; }); },
      [](const FloatImm& node) { return float_code([value = node.value](Frame&) { return value; }); },
      [&](const Var&) { return var_code(slot(cast<Var>(whole), whole.span()), dtype_of(whole).lanes > 1); },
      [&](const Binary& node) { return binary_code(node, whole); },
      [&](const Not& node) {
        return int_code([value = expr(node.value)](Frame& frame) { return !value->as_int(frame); });
      },
      [&](const Cast& node) {
        return cast_code(expr(node.value), dtype_of(node.value).element(), dtype_of(whole).element());
      },
      [&](const Select& node) { return select_code(expr(node.condition), expr(node.a), expr(node.b)); },
      [&](const Ramp& node) { return ramp_code(expr(node.base), expr(node.stride), dtype_of(node.base)); },
      // A scalar has one lane, although its operands may be vectors (the bytes of an int32).
      [&](const Broadcast& node) {
        return any_code([value = expr(node.value)](Frame& frame, auto kind) {
          return at_lane(frame, 0, [&] { return value->as<decltype(kind)>(frame); });
        });
      },
      [&](const Let& node) { return let_code(node); },
      [&](const BufferLoad& node) {
        Access access = make_access(*this, node.buffer, node.indices, node.predicate, whole.span());
        return any_code([access = std::move(access)](Frame& frame, auto kind) {
          return access.active(frame) ? access.read(frame).as<decltype(kind)>() : 0;
        });
      },
      [&](const Call& node) { return call_code(node, whole); }, unsupported);
}

CodePtr Compiler::let_code(const Let& node) {
  DType dtype = dtype_of(node.value);
  CodePtr value = expr(node.value);
  int slot = define(node.var);
  return any_code([value = std::move(value), slot, dtype, body = expr(node.body)](Frame& frame, auto kind) {
    frame.slots[dtype.lanes > 1 ? slot + frame.lane : slot] = value->word(frame, dtype);
    return body->as<decltype(kind)>(frame);
  });
}

CodePtr Compiler::binary_code(const Binary& node, const Expr& whole) {
  DType dtype = dtype_of(node.a).element();
  bool bitwise = node.op >= BinaryOp::kBitAnd;
  if (dtype.is_float() && (bitwise || node.op == BinaryOp::kAnd || node.op == BinaryOp::kOr))
    fail(whole.span(), "{} of {}", info(node.op).name, to_string(dtype));
  std::unique_ptr<IntBinaryBase> code = make_binary(node.op, dtype);
  code->a = expr(node.a);
  code->b = expr(node.b);
  code->dtype = dtype;
  code->span = whole.span();
  code->name = info(node.op).name;
  return code;
}

}  // namespace relaxc::interpreter
