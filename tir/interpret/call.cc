// Calls in the interpreter: scalar functions, conditional values, and the instructions that programs name.
#include <algorithm>
#include <cmath>

#include "ir/intrinsics.h"
#include "tir/dot_intrinsics.h"
#include "tir/interpret/internal.h"

namespace relaxc::interpreter {

namespace {

struct IfThenElseCode final : Code {
  CodePtr condition, a, b;
  int64_t as_int(Frame& frame) const override { return (condition->as_int(frame) ? a : b)->as_int(frame); }
  double as_float(Frame& frame) const override { return (condition->as_int(frame) ? a : b)->as_float(frame); }
};

struct IntrinsicCode final : Code {
  const Intrinsic* row;
  std::vector<CodePtr> args;
  DType dtype;  // of the first argument
  double evaluate(Frame& frame) const {
    double x[3] = {0, 0, 0};
    for (size_t i = 0; i < args.size(); ++i) x[i] = args[i]->as_float(frame);
    return row->eval(x[0], x[1], x[2]);
  }
  int64_t as_int(Frame& frame) const override {
    if (dtype.is_float()) return evaluate(frame) != 0;
    return wrap_int(row->integer(args[0]->as_int(frame)), dtype);
  }
  double as_float(Frame& frame) const override { return round_float(evaluate(frame), dtype); }
};

// Rounded once, which going through float64 would not.
struct FmaFloat32 final : Code {
  CodePtr a, b, c;
  double as_float(Frame& frame) const override {
    return std::fmaf(static_cast<float>(a->as_float(frame)), static_cast<float>(b->as_float(frame)),
                     static_cast<float>(c->as_float(frame)));
  }
};

// The bits of a value of another dtype with the same number of bytes.
struct ReinterpretCode final : Code {
  CodePtr value;
  DType from, to;  // of the elements
  Word read(Frame& frame) const {
    char bytes[2 * sizeof(Word)] = {};
    int64_t lane = frame.lane, from_bytes = from.bytes(), first = lane * to.bytes() / from_bytes;
    for (int64_t at = 0; first * from_bytes + at < (lane + 1) * to.bytes(); at += from_bytes) {
      frame.lane = first + at / from_bytes;
      Word word;
      from.is_float() ? (void)(word.f = value->as_float(frame)) : (void)(word.i = value->as_int(frame));
      write_element(bytes + at, from, word);
    }
    frame.lane = lane;
    return read_element(bytes + (lane * to.bytes() - first * from_bytes), to);
  }
  int64_t as_int(Frame& frame) const override { return read(frame).i; }
  double as_float(Frame& frame) const override { return read(frame).f; }
};

struct DotCode final : Code {
  const DotIntrinsic* row;
  CodePtr accumulator, a, b;
  template <class T, class Read>
  T sum(Frame& frame, T total, Read read) const {
    int64_t lane = frame.lane;
    for (int i = row->group; i-- > 0;) {
      frame.lane = lane * row->group + i;
      total = static_cast<T>(total + read(*a) * read(*b));
    }
    frame.lane = lane;
    return total;
  }
  int64_t as_int(Frame& frame) const override {
    int64_t total = sum<int64_t>(frame, accumulator ? accumulator->as_int(frame) : 0,
                                 [&](const Code& code) { return code.as_int(frame); });
    int64_t most = (int64_t{1} << (row->result.bits - 1)) - 1;
    return row->saturates ? std::clamp(total, -most - 1, most) : wrap_int(total, row->result.element());
  }
  double as_float(Frame& frame) const override {
    return sum<float>(frame, accumulator ? static_cast<float>(accumulator->as_float(frame)) : 0,
                      [&](const Code& code) { return static_cast<float>(code.as_float(frame)); });
  }
};

}  // namespace

CodePtr Compiler::reinterpret(const Expr& value, DType dtype) {
  DType from = dtype_of(value);
  if (from == dtype) return expr(value);
  if (from.bytes() != dtype.bytes()) fail(value.span(), "{} cannot be read as {}", to_string(from), to_string(dtype));
  auto code = std::make_unique<ReinterpretCode>();
  code->value = expr(value);
  code->from = from.element();
  code->to = dtype.element();
  return code;
}

// T.call_llvm_pure_intrin(dtype, "llvm.name", [T.uint32(number of arguments),] arguments...)
CodePtr Compiler::llvm_code(const Call& node, const Expr& whole) {
  const StringImm* name = node.args[0].as<StringImm>();
  const DotIntrinsic* row = name ? find_dot_intrinsic(name->value) : nullptr;
  if (!row)
    fail_unsupported(whole.span(), "interpreter: intrinsic '{}' is not in the table of tir/dot_intrinsics.cc",
                     name ? name->value : debug_print(node.args[0]));
  size_t first = node.args.size() > 1 && node.args[1].is<IntImm>() ? 2 : 1;
  // Those of scalable vectors work on several parts.
  int parts = row->is_scalable() ? dtype_of(whole).lanes / row->result.lanes : 1;
  auto all = [&](DType part) { return part.with_lanes(part.lanes * parts); };
  if (node.args.size() - first != (row->accumulates ? 3 : 2) || dtype_of(whole) != all(row->result))
    fail(whole.span(), "intrinsic '{}' gives {} from {}{} and {}", row->name, to_string(row->result),
         row->accumulates ? to_string(row->result) + ", " : "", to_string(row->a), to_string(row->b));
  auto code = std::make_unique<DotCode>();
  code->row = row;
  if (row->accumulates) code->accumulator = reinterpret(node.args[first++], all(row->result));
  code->a = reinterpret(node.args[first], all(row->a));
  code->b = reinterpret(node.args[first + 1], all(row->b));
  return code;
}

CodePtr Compiler::call_code(const Call& node, const Expr& whole) {
  const std::string& name = op_name(whole);
  if (name == "tir.reinterpret") return reinterpret(node.args[0], dtype_of(whole));
  if (name == "tir.call_llvm_intrin" || name == "tir.call_llvm_pure_intrin") return llvm_code(node, whole);
  if ((name == "tir.likely" || name == "tir.assume") && node.args.size() == 1) return expr(node.args[0]);
  if (name == "tir.if_then_else" && node.args.size() == 3) {
    auto code = std::make_unique<IfThenElseCode>();
    code->condition = expr(node.args[0]);
    code->a = expr(node.args[1]);
    code->b = expr(node.args[2]);
    return code;
  }
  if (name == "tir.get_active_lane_mask") {  // lane i: args[0] + i < args[1]
    int lanes = dtype_of(whole).lanes;
    Expr first = cast_to(node.args[0], kInt64), end = cast_to(node.args[1], kInt64);
    return expr(lanes == 1 ? first < end : ramp(first, int_imm(1), lanes) < broadcast(end, lanes));
  }
  const Intrinsic* row = find_intrinsic(name);
  if (!row) {
    fail_unsupported(whole.span(), "interpreter: call of {}", name.empty() ? kind_name(node.callee.kind()) : name);
  }
  if (static_cast<int>(node.args.size()) != row->arity)
    fail(whole.span(), "{}: expected {} arguments, got {}", name, row->arity, node.args.size());
  DType dtype = dtype_of(node.args[0]).element();
  if (dtype.is_float() ? !row->eval : !row->integer)
    fail(whole.span(), "{} is not defined on {}", name, to_string(dtype));
  if (name == "tir.fma" && dtype == kFloat32) {
    auto code = std::make_unique<FmaFloat32>();
    code->a = expr(node.args[0]);
    code->b = expr(node.args[1]);
    code->c = expr(node.args[2]);
    return code;
  }
  auto code = std::make_unique<IntrinsicCode>();
  code->row = row;
  code->dtype = dtype;
  for (const Expr& arg : node.args) code->args.push_back(expr(arg));
  return code;
}

}  // namespace relaxc::interpreter
