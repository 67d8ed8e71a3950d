// Calls in the interpreter: scalar functions, conditional values, and the instructions that programs name.
#include <algorithm>
#include <cmath>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "tir/dot_intrinsics.h"
#include "tir/interpret/internal.h"

namespace relaxc::interpreter {

namespace {

// The bits of a value of another dtype with the same number of bytes.
struct Reinterpretation {
  CodePtr value;
  DType from, to;  // of the elements
  Word operator()(Frame& frame) const {
    char bytes[2 * sizeof(Word)] = {};
    int64_t lane = frame.lane, from_bytes = from.bytes(), first = lane * to.bytes() / from_bytes;
    for (int64_t at = 0; first * from_bytes + at < (lane + 1) * to.bytes(); at += from_bytes) {
      frame.lane = first + at / from_bytes;
      write_element(bytes + at, from, value->word(frame));
    }
    frame.lane = lane;
    return read_element(bytes + (lane * to.bytes() - first * from_bytes), to);
  }
};

// One lane of a dot product of integers (T is int64_t) or floats (T is float).
template <class T>
T dot(const DotIntrinsic& row, Frame& frame, const CodePtr& accumulator, const Code& a, const Code& b) {
  auto read = [&](const Code& code) -> T {
    if constexpr (std::is_same_v<T, float>) return static_cast<float>(code.as_float(frame));
    return static_cast<T>(code.as_int(frame));
  };
  int64_t lane = frame.lane;
  T total = accumulator ? read(*accumulator) : 0;
  for (int i = row.group; i-- > 0;) {
    frame.lane = lane * row.group + i;
    total = static_cast<T>(total + read(a) * read(b));
  }
  frame.lane = lane;
  return total;
}

}  // namespace

CodePtr Compiler::reinterpret(const Expr& value, DType dtype) {
  DType from = dtype_of(value);
  if (from == dtype) return expr(value);
  auto bytes = [](DType d) { return d.is_handle() ? int64_t{8} : d.bytes(); };
  if (bytes(from) != bytes(dtype)) fail(value.span(), "{} cannot be read as {}", to_string(from), to_string(dtype));
  if (from.is_handle() || dtype.is_handle()) return expr(value);  // the address is an integer
  return code(Reinterpretation{expr(value), from.element(), dtype.element()});
}

// T.call_llvm_pure_intrin(dtype, "llvm.name", [T.uint32(number of arguments),] arguments...)
CodePtr Compiler::llvm_code(const Call& node, const Expr& whole) {
  const StringImm* name = node.args[0].as<StringImm>();
  const DotIntrinsic* row = name ? find_dot_intrinsic(name->value) : nullptr;
  if (name && !row) {
    if (CodePtr tile = tile_code(name->value, {node.args.begin() + 1, node.args.end()}, whole.span())) return tile;
  }
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
  return code([row, accumulator = std::move(accumulator), a = reinterpret(node.args[first], all(row->a)),
               b = reinterpret(node.args[first + 1], all(row->b))](Frame& frame) -> Word {
    if (row->result.is_float()) return dot<float>(*row, frame, accumulator, *a, *b);
    int64_t total = dot<int64_t>(*row, frame, accumulator, *a, *b);
    int64_t most = (int64_t{1} << (row->result.bits - 1)) - 1;
    return row->saturates ? std::clamp(total, -most - 1, most) : wrap_int(total, row->result.element());
  });
}

// T.Shuffle([vectors], [numbers of lanes, counted through all vectors])
CodePtr Compiler::shuffle(const Call& node, const Span& span) {
  const Tuple *vectors = node.args[0].as<Tuple>(), *numbers = node.args[1].as<Tuple>();
  if (!vectors || !numbers) fail(span, "T.Shuffle takes a list of vectors and a list of numbers");
  std::vector<std::pair<size_t, int64_t>> lanes;  // vector and lane
  for (size_t v = 0; v < vectors->items.size(); ++v) {
    for (int lane = 0; lane < dtype_of(vectors->items[v]).lanes; ++lane) lanes.emplace_back(v, lane);
  }
  std::vector<std::pair<size_t, int64_t>> chosen;
  for (const Expr& number : numbers->items) {
    int64_t at = as_int(number).value_or(-1);
    if (at < 0 || at >= std::ssize(lanes))
      fail(span, "T.Shuffle: {} is not the number of one of {} lanes", debug_print(number), lanes.size());
    chosen.push_back(lanes[static_cast<size_t>(at)]);
  }
  return code([vectors = exprs(vectors->items), chosen](Frame& frame) {
    auto [vector, lane] = chosen[static_cast<size_t>(frame.lane)];
    Temporarily in_vector(frame.lane, lane);
    return vectors[vector]->word(frame);
  });
}

CodePtr Compiler::call_code(const Call& node, const Expr& whole) {
  const std::string& name = op_name(whole);
  if (name == ops::kReinterpret) return reinterpret(node.args[0], dtype_of(whole));
  if (name == ops::kCallLlvmIntrin || name == ops::kCallLlvmPureIntrin) return llvm_code(node, whole);
  if (name == ops::kShuffle) return shuffle(node, whole.span());
  if (name == ops::kCallExtern || name == ops::kCallPureExtern) return extern_code(node, whole);
  if (name == ops::kCallPacked || name == ops::kCallCPacked) return packed_code(node, whole);
  bool is_address =
      name == ops::kBufferData || name == kBufferElemOffset || name == ops::kAddressOf || name == ops::kAddByteOffset;
  if (is_address || name == ops::kIsNullPtr) return address_code(node, whole.span());
  if ((name == ops::kLikely || name == ops::kAssume) && node.args.size() == 1) return expr(node.args[0]);
  if (name == ops::kIfThenElse && node.args.size() == 3) {
    return code([condition = expr(node.args[0]), a = expr(node.args[1]), b = expr(node.args[2])](Frame& frame) {
      return (condition->as_int(frame) ? a : b)->word(frame);
    });
  }
  if (name == ops::kGetActiveLaneMask) {  // lane i: args[0] + i < args[1]
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
  // Rounded once, which going through float64 would not.
  bool is_fma32 = name == ops::kFma && dtype == kFloat32;
  return code([row, dtype, is_fma32, args = exprs(node.args)](Frame& frame) -> Word {
    if (!dtype.is_float()) return wrap_int(row->integer(args[0]->as_int(frame), dtype), dtype);
    double x[3] = {0, 0, 0};
    for (size_t i = 0; i < args.size(); ++i) x[i] = args[i]->as_float(frame);
    if (is_fma32) return std::fmaf(static_cast<float>(x[0]), static_cast<float>(x[1]), static_cast<float>(x[2]));
    double value = row->eval(x[0], x[1], x[2]);
    return row->result == Intrinsic::Result::kBool ? Word(value != 0) : Word(rounded_to(value, dtype));
  });
}

}  // namespace relaxc::interpreter
