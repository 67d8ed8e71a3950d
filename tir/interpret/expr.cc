// Expressions of the interpreter but calls (call.cc). Semantics: ir/expr.h.
#include <algorithm>
#include <cmath>

#include "support/checked_math.h"
#include "tir/interpret/internal.h"

namespace relaxc::interpreter {

namespace {

struct IntConst final : Code {
  int64_t value;
  explicit IntConst(int64_t v) : value(v) {}
  int64_t as_int(Frame&) const override { return value; }
};
struct FloatConst final : Code {
  double value;
  explicit FloatConst(double v) : value(v) {}
  double as_float(Frame&) const override { return value; }
};
struct ScalarVar final : Code {
  int slot;
  explicit ScalarVar(int s) : slot(s) {}
  int64_t as_int(Frame& frame) const override { return frame.slots[slot].i; }
  double as_float(Frame& frame) const override { return frame.slots[slot].f; }
};
struct VectorVar final : Code {
  int slot;
  explicit VectorVar(int s) : slot(s) {}
  int64_t as_int(Frame& frame) const override { return frame.slots[slot + frame.lane].i; }
  double as_float(Frame& frame) const override { return frame.slots[slot + frame.lane].f; }
};

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

struct NotCode final : Code {
  CodePtr value;
  int64_t as_int(Frame& frame) const override { return !value->as_int(frame); }
};

// Float to integer: toward zero, saturating, NaN to 0.
int64_t float_to_int(double value, DType to) {
  if (to.is_bool()) return value != 0;
  if (std::isnan(value)) return 0;
  double least = to.is_uint() ? 0 : -std::ldexp(1.0, to.bits - 1);
  double beyond = std::ldexp(1.0, to.is_uint() ? to.bits : to.bits - 1);
  if (value <= least) return to.is_uint() ? 0 : wrap_int(INT64_MIN >> (64 - to.bits), to);
  if (value >= beyond) return to.is_uint() ? wrap_int(-1, to) : INT64_MAX >> (64 - to.bits);
  return to.is_uint() ? wrap_int(static_cast<int64_t>(static_cast<uint64_t>(value)), to) : static_cast<int64_t>(value);
}
struct CastCode final : Code {
  CodePtr value;
  DType from, to;
  int64_t as_int(Frame& frame) const override {
    return from.is_float() ? float_to_int(value->as_float(frame), to) : wrap_int(value->as_int(frame), to);
  }
  double as_float(Frame& frame) const override {
    if (from.is_float()) return round_float(value->as_float(frame), to);
    int64_t integer = value->as_int(frame);
    if (to == kFloat32) {
      return from.is_uint() ? static_cast<float>(static_cast<uint64_t>(integer)) : static_cast<float>(integer);
    }
    return round_float(
        from.is_uint() ? static_cast<double>(static_cast<uint64_t>(integer)) : static_cast<double>(integer), to);
  }
};

// Select evaluates both sides, as compiled code may: a load that is only in range on one side is an error here. What
// the other side reads need not have been written.
struct SelectCode final : Code {
  CodePtr condition, a, b;
  int64_t as_int(Frame& frame) const override {
    bool wanted = condition->as_int(frame) != 0;
    int64_t x = side(frame, wanted, [&] { return a->as_int(frame); });
    int64_t y = side(frame, !wanted, [&] { return b->as_int(frame); });
    return wanted ? x : y;
  }
  double as_float(Frame& frame) const override {
    bool wanted = condition->as_int(frame) != 0;
    double x = side(frame, wanted, [&] { return a->as_float(frame); });
    double y = side(frame, !wanted, [&] { return b->as_float(frame); });
    return wanted ? x : y;
  }
  template <class Evaluate>
  static std::invoke_result_t<Evaluate> side(Frame& frame, bool wanted, Evaluate evaluate) {
    bool outer = std::exchange(frame.result_unused, frame.result_unused || !wanted);
    auto value = evaluate();
    frame.result_unused = outer;
    return value;
  }
};
struct RampCode final : Code {
  CodePtr base, stride;
  DType dtype;
  int64_t as_int(Frame& frame) const override {
    uint64_t offset = static_cast<uint64_t>(stride->as_int(frame)) * static_cast<uint64_t>(frame.lane);
    return wrap_int(static_cast<int64_t>(static_cast<uint64_t>(base->as_int(frame)) + offset), dtype);
  }
  double as_float(Frame& frame) const override {
    double offset = round_float(stride->as_float(frame) * static_cast<double>(frame.lane), dtype);
    return round_float(base->as_float(frame) + offset, dtype);
  }
};

struct LetCode final : Code {
  int slot;
  bool is_float, is_vector;
  CodePtr value, body;
  void set(Frame& frame) const {
    Word& word = frame.slots[is_vector ? slot + frame.lane : slot];
    if (is_float) {
      word.f = value->as_float(frame);
    } else {
      word.i = value->as_int(frame);
    }
  }
  int64_t as_int(Frame& frame) const override {
    set(frame);
    return body->as_int(frame);
  }
  double as_float(Frame& frame) const override {
    set(frame);
    return body->as_float(frame);
  }
};

struct LoadCode final : Code {
  Access access;
  explicit LoadCode(Access a) : access(std::move(a)) {}
  int64_t as_int(Frame& frame) const override { return access.active(frame) ? access.read(frame).i : 0; }
  double as_float(Frame& frame) const override { return access.active(frame) ? access.read(frame).f : 0; }
};

// A scalar has one lane, although what it reads may be a vector (the bytes of an int32).
struct BroadcastCode final : Code {
  explicit BroadcastCode(CodePtr v) : value(std::move(v)) {}
  int64_t as_int(Frame& frame) const override {
    int64_t lane = std::exchange(frame.lane, 0), result = value->as_int(frame);
    frame.lane = lane;
    return result;
  }
  double as_float(Frame& frame) const override {
    int64_t lane = std::exchange(frame.lane, 0);
    double result = value->as_float(frame);
    frame.lane = lane;
    return result;
  }
  CodePtr value;
};

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
      whole, [](const IntImm& node) -> CodePtr { return std::make_unique<IntConst>(node.value); },
      [](const FloatImm& node) -> CodePtr { return std::make_unique<FloatConst>(node.value); },
      [&](const Var&) -> CodePtr {
        int at = slot(cast<Var>(whole), whole.span());
        if (dtype_of(whole).lanes > 1) return std::make_unique<VectorVar>(at);
        return std::make_unique<ScalarVar>(at);
      },
      [&](const Binary& node) -> CodePtr { return binary_code(node, whole); },
      [&](const Not& node) -> CodePtr {
        auto code = std::make_unique<NotCode>();
        code->value = expr(node.value);
        return code;
      },
      [&](const Cast& node) -> CodePtr {
        auto code = std::make_unique<CastCode>();
        code->value = expr(node.value);
        code->from = dtype_of(node.value).element();
        code->to = dtype_of(whole).element();
        return code;
      },
      [&](const Select& node) -> CodePtr {
        auto code = std::make_unique<SelectCode>();
        code->condition = expr(node.condition);
        code->a = expr(node.a);
        code->b = expr(node.b);
        return code;
      },
      [&](const Ramp& node) -> CodePtr {
        auto code = std::make_unique<RampCode>();
        code->base = expr(node.base);
        code->stride = expr(node.stride);
        code->dtype = dtype_of(node.base);
        return code;
      },
      [&](const Broadcast& node) -> CodePtr { return std::make_unique<BroadcastCode>(expr(node.value)); },
      [&](const Let& node) -> CodePtr {
        auto code = std::make_unique<LetCode>();
        DType dtype = dtype_of(node.value);
        code->is_float = dtype.is_float();
        code->is_vector = dtype.lanes > 1;
        code->value = expr(node.value);
        code->slot = define(node.var);
        code->body = expr(node.body);
        return code;
      },
      [&](const BufferLoad& node) -> CodePtr {
        return std::make_unique<LoadCode>(make_access(*this, node.buffer, node.indices, node.predicate, whole.span()));
      },
      [&](const Call& node) -> CodePtr { return call_code(node, whole); }, unsupported);
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
