// Expressions of the interpreter but calls (call.cc). Semantics: ir/expr.h.
#include <cmath>

#include "tir/interpret/internal.h"

namespace relaxc::interpreter {

namespace {

// Computes on integers of that dtype, in the representation of Word.
int64_t integer_operation(BinaryOp op, int64_t a, int64_t b, DType dtype, const Span& span) {
  if (auto result = fold_int(op, a, b, dtype)) return *result;
  if (op == BinaryOp::kShiftLeft || op == BinaryOp::kShiftRight)
    fail(span, "{} of {} by {} bits", info(op).name, to_string(dtype), b);
  if (b == 0) fail(span, "{} of {} by zero", info(op).name, a);
  return op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv ? a : 0;  // INT64_MIN by -1
}

// Returns numpy's remainder, which has the divisor's sign and is exact.
double float_floor_mod(double x, double y) {
  double rest = std::fmod(x, y);
  if (rest == 0) return std::copysign(0.0, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}
double minimum(double x, double y) { return std::isnan(x) || std::isnan(y) ? NAN : std::fmin(x, y); }
double maximum(double x, double y) { return std::isnan(x) || std::isnan(y) ? NAN : std::fmax(x, y); }

struct FloatOperation {
  BinaryOp op;
  double (*value)(double a, double b, DType dtype);  // not yet rounded to the dtype
};
// float32 operations computed in float64 and rounded once more are correctly rounded (53 >= 2 * 24 + 2).
constexpr FloatOperation kFloatOperations[] = {
    {BinaryOp::kAdd, [](double a, double b, DType) { return a + b; }},
    {BinaryOp::kSub, [](double a, double b, DType) { return a - b; }},
    {BinaryOp::kMul, [](double a, double b, DType) { return a * b; }},
    {BinaryOp::kDiv, [](double a, double b, DType) { return a / b; }},
    {BinaryOp::kTruncMod, [](double a, double b, DType) { return std::fmod(a, b); }},
    {BinaryOp::kFloorDiv, [](double a, double b, DType dtype) { return std::floor(rounded_to(a / b, dtype)); }},
    {BinaryOp::kFloorMod, [](double a, double b, DType) { return float_floor_mod(a, b); }},
    {BinaryOp::kMin, [](double a, double b, DType) { return minimum(a, b); }},
    {BinaryOp::kMax, [](double a, double b, DType) { return maximum(a, b); }},
};

// Converts a float to an integer: toward zero, saturating, NaN to 0.
int64_t float_to_int(double value, DType to) {
  if (to.is_bool()) return value != 0;
  if (std::isnan(value)) return 0;
  double least = to.is_uint() ? 0 : -std::ldexp(1.0, to.bits - 1);
  double beyond = std::ldexp(1.0, to.is_uint() ? to.bits : to.bits - 1);
  if (value <= least) return to.is_uint() ? 0 : wrap_int(INT64_MIN >> (64 - to.bits), to);
  if (value >= beyond) return to.is_uint() ? wrap_int(-1, to) : INT64_MAX >> (64 - to.bits);
  return to.is_uint() ? wrap_int(static_cast<int64_t>(static_cast<uint64_t>(value)), to) : static_cast<int64_t>(value);
}
Word converted(Word value, DType from, DType to) {
  if (from.is_float()) return to.is_float() ? Word(rounded_to(value.f, to)) : Word(float_to_int(value.f, to));
  if (!to.is_float()) return wrap_int(value.i, to);
  uint64_t natural = static_cast<uint64_t>(value.i);
  if (to == kFloat32) return from.is_uint() ? static_cast<float>(natural) : static_cast<float>(value.i);
  return rounded_to(from.is_uint() ? static_cast<double>(natural) : static_cast<double>(value.i), to);
}

// Returns the real number as a constant of the dtype, a float or a complex one.
Word constant_word(double value, DType dtype) {
  if (!dtype.is_complex()) return value;
  char bytes[sizeof(Word)] = {};
  write_element(bytes, dtype.part(), value);
  return read_element(bytes, dtype);
}

// Evaluates one side of a select.
Word side(const Code& value, Frame& frame, bool wanted) {
  Temporarily unused(frame.result_unused, frame.result_unused || !wanted);
  return value.word(frame);
}

}  // namespace

std::vector<CodePtr> Compiler::exprs(const std::vector<Expr>& list) {
  return map_each(list, [&](const Expr& e) { return expr(e); });
}

CodePtr Compiler::expr(const Expr& whole) {
  auto unsupported = [&](const auto&) -> CodePtr {
    fail_unsupported(whole.span(), "interpreter: {} has no scalar value", kind_name(whole.kind()));
  };
  return match(
      whole, [](const IntImm& node) { return code([value = node.value](Frame&) { return value; }); },
      [&](const FloatImm& node) {
        return code([word = constant_word(node.value, dtype_of(whole))](Frame&) { return word; });
      },
      [&](const Var&) {
        int at = slot(cast<Var>(whole), whole.span());
        if (dtype_of(whole).lanes > 1) return code([at](Frame& frame) { return frame.slots[at + frame.lane]; });
        return code([at](Frame& frame) { return frame.slots[at]; });
      },
      [&](const Binary& node) { return binary_code(node, whole.span()); },
      [&](const Not& node) { return code([value = expr(node.value)](Frame& frame) { return !value->as_int(frame); }); },
      [&](const Cast& node) {
        DType from = dtype_of(node.value).element(), to = dtype_of(whole).element();
        return code(
            [from, to, value = expr(node.value)](Frame& frame) { return converted(value->word(frame), from, to); });
      },
      // Select evaluates both sides, as compiled code may: a load that is only in range on one side is an error here.
      // Elements that only the other side reads may be unwritten.
      [&](const Select& node) {
        return code([condition = expr(node.condition), a = expr(node.a), b = expr(node.b)](Frame& frame) {
          bool wanted = condition->as_int(frame) != 0;
          Word x = side(*a, frame, wanted), y = side(*b, frame, !wanted);
          return wanted ? x : y;
        });
      },
      [&](const Ramp& node) { return ramp_code(node); },
      // A scalar has one lane, although what it reads may be a vector (the bytes of an int32).
      [&](const Broadcast& node) {
        return code([value = expr(node.value)](Frame& frame) {
          Temporarily lane(frame.lane, int64_t{0});
          return value->word(frame);
        });
      },
      [&](const Let& node) { return let_code(node); },
      [&](const BufferLoad& node) {
        return code([from = access(node, whole.span())](Frame& frame) {
          return from.active(frame) ? from.read(frame) : Word();
        });
      },
      [&](const Call& node) { return call_code(node, whole); }, unsupported);
}

CodePtr Compiler::let_code(const Let& node) {
  CodePtr value = expr(node.value);
  int at = define(node.var);
  bool is_vector = dtype_of(node.value).lanes > 1;
  return code([at, is_vector, value = std::move(value), body = expr(node.body)](Frame& frame) {
    Word word = value->word(frame);
    frame.slots[is_vector ? at + frame.lane : at] = word;
    return body->word(frame);
  });
}

CodePtr Compiler::ramp_code(const Ramp& node) {
  DType dtype = dtype_of(node.base);
  return code([dtype, base = expr(node.base), stride = expr(node.stride)](Frame& frame) -> Word {
    if (dtype.is_float()) {
      double offset = rounded_to(stride->as_float(frame) * static_cast<double>(frame.lane), dtype);
      return rounded_to(base->as_float(frame) + offset, dtype);
    }
    uint64_t offset = static_cast<uint64_t>(stride->as_int(frame)) * static_cast<uint64_t>(frame.lane);
    return wrap_int(static_cast<int64_t>(static_cast<uint64_t>(base->as_int(frame)) + offset), dtype);
  });
}

CodePtr Compiler::binary_code(const Binary& node, const Span& span) {
  DType dtype = dtype_of(node.a).element();
  CodePtr a = expr(node.a), b = expr(node.b);
  if (!dtype.is_float())
    return code([op = node.op, dtype, span, a = std::move(a), b = std::move(b)](Frame& frame) {
      int64_t x = a->as_int(frame), y = b->as_int(frame);
      return integer_operation(op, x, y, dtype, span);
    });
  if (info(node.op).compares)
    return code([op = node.op, a = std::move(a), b = std::move(b)](Frame& frame) {
      double x = a->as_float(frame), y = b->as_float(frame);
      return fold_comparison(op, x, y);
    });
  const FloatOperation* row = find_item(kFloatOperations, node.op, &FloatOperation::op);
  if (!row) fail(span, "{} of {}", info(node.op).name, to_string(dtype));
  return code([value = row->value, dtype, a = std::move(a), b = std::move(b)](Frame& frame) {
    double x = a->as_float(frame), y = b->as_float(frame);
    return rounded_to(value(x, y, dtype), dtype);
  });
}

}  // namespace relaxc::interpreter
