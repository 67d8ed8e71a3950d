// Calls in the interpreter: scalar functions, conditional values, and the instructions that programs name.
#include <algorithm>
#include <cmath>

#include "ir/intrinsics.h"
#include "tir/dot_intrinsics.h"
#include "tir/interpret/internal.h"

namespace relaxc::interpreter {

namespace {

CodePtr intrinsic_code(const Intrinsic& row, std::vector<CodePtr> args, DType dtype) {
  if (!dtype.is_float()) {
    return int_code([&row, arg = std::move(args[0]), dtype](Frame& frame) {
      return wrap_int(row.integer(arg->as_int(frame)), dtype);
    });
  }
  return any_code([&row, args = std::move(args), dtype](Frame& frame, auto kind) {
    double x[3] = {0, 0, 0};
    for (size_t i = 0; i < args.size(); ++i) x[i] = args[i]->as_float(frame);
    double result = row.eval(x[0], x[1], x[2]);
    return std::is_same_v<decltype(kind), double> ? round_float(result, dtype) : result != 0;
  });
}

// Rounded once, which going through float64 would not.
CodePtr fma_of_float32(std::vector<CodePtr> args) {
  return float_code([args = std::move(args)](Frame& frame) {
    auto value = [&](size_t i) { return static_cast<float>(args[i]->as_float(frame)); };
    return std::fmaf(value(0), value(1), value(2));
  });
}

// Returns the bits of a value of another dtype with the same number of bytes. The dtypes are those of the elements.
CodePtr reinterpret_code(CodePtr value, DType from, DType to) {
  return any_code([value = std::move(value), from, to](Frame& frame, auto kind) {
    char bytes[2 * sizeof(Word)] = {};
    int64_t lane = frame.lane, from_bytes = from.bytes(), first = lane * to.bytes() / from_bytes;
    for (int64_t at = 0; first * from_bytes + at < (lane + 1) * to.bytes(); at += from_bytes) {
      Word word = at_lane(frame, first + at / from_bytes, [&] { return value->word(frame, from); });
      write_element(bytes + at, from, word);
    }
    return read_element(bytes + (lane * to.bytes() - first * from_bytes), to).as<decltype(kind)>();
  });
}

// Returns the dot product of one lane. The accumulator may be null.
CodePtr dot_code(const DotIntrinsic& row, CodePtr accumulator, CodePtr a, CodePtr b) {
  return any_code(
      [&row, accumulator = std::move(accumulator), a = std::move(a), b = std::move(b)](Frame& frame, auto kind) {
        using T = decltype(kind);
        using Sum = std::conditional_t<std::is_same_v<T, double>, float, int64_t>;
        Sum total = accumulator ? static_cast<Sum>(accumulator->as<T>(frame)) : 0;
        int64_t lane = frame.lane;
        for (int i = row.group; i-- > 0;) {
          frame.lane = lane * row.group + i;
          total = static_cast<Sum>(total + static_cast<Sum>(a->as<T>(frame)) * static_cast<Sum>(b->as<T>(frame)));
        }
        frame.lane = lane;
        if constexpr (std::is_same_v<T, double>) {
          return static_cast<double>(total);
        } else {
          int64_t most = (int64_t{1} << (row.result.bits - 1)) - 1;
          return row.saturates ? std::clamp(total, -most - 1, most) : wrap_int(total, row.result.element());
        }
      });
}

}  // namespace

CodePtr Compiler::reinterpret(const Expr& value, DType dtype) {
  DType from = dtype_of(value);
  if (from == dtype) return expr(value);
  if (from.bytes() != dtype.bytes()) fail(value.span(), "{} cannot be read as {}", to_string(from), to_string(dtype));
  return reinterpret_code(expr(value), from.element(), dtype.element());
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
  CodePtr accumulator = row->accumulates ? reinterpret(node.args[first++], all(row->result)) : nullptr;
  return dot_code(*row, std::move(accumulator), reinterpret(node.args[first], all(row->a)),
                  reinterpret(node.args[first + 1], all(row->b)));
}

CodePtr Compiler::call_code(const Call& node, const Expr& whole) {
  const std::string& name = op_name(whole);
  if (name == "tir.reinterpret") return reinterpret(node.args[0], dtype_of(whole));
  if (name == "tir.call_llvm_intrin" || name == "tir.call_llvm_pure_intrin") return llvm_code(node, whole);
  if ((name == "tir.likely" || name == "tir.assume") && node.args.size() == 1) return expr(node.args[0]);
  if (name == "tir.if_then_else" && node.args.size() == 3) {
    return any_code(
        [condition = expr(node.args[0]), a = expr(node.args[1]), b = expr(node.args[2])](Frame& frame, auto kind) {
          return (condition->as_int(frame) ? a : b)->as<decltype(kind)>(frame);
        });
  }
  if (name == "tir.get_active_lane_mask") {  // lane i: args[0] + i < args[1]
    int lanes = dtype_of(whole).lanes;
    Expr first = cast_to(node.args[0], kInt64), end = cast_to(node.args[1], kInt64);
    return expr(lanes == 1 ? first < end : ramp(first, int_imm(1), lanes) < broadcast(end, lanes));
  }
  const Intrinsic* row = find_intrinsic(name);
  if (!row)
    fail_unsupported(whole.span(), "interpreter: call of {}", name.empty() ? kind_name(node.callee.kind()) : name);
  if (static_cast<int>(node.args.size()) != row->arity)
    fail(whole.span(), "{}: expected {} arguments, got {}", name, row->arity, node.args.size());
  DType dtype = dtype_of(node.args[0]).element();
  if (dtype.is_float() ? !row->eval : !row->integer)
    fail(whole.span(), "{} is not defined on {}", name, to_string(dtype));
  std::vector<CodePtr> args;
  for (const Expr& arg : node.args) args.push_back(expr(arg));
  if (name == "tir.fma" && dtype == kFloat32) return fma_of_float32(std::move(args));
  return intrinsic_code(*row, std::move(args), dtype);
}

}  // namespace relaxc::interpreter
