// Builtins that stand for arithmetic become arithmetic, and pointers to parts of buffers become sums. So the steps
// after this one, the interpreter and the code generators know few of them.
#include <algorithm>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

using Args = std::vector<Expr>;

// Returns a number in the type of `like`, in each lane.
Expr number(int64_t value, const Expr& like) {
  DType dtype = dtype_of(like);
  Expr one = int_imm(value, dtype.element());
  return dtype.lanes == 1 ? one : broadcast(one, dtype.lanes);
}
Expr in_dtype(const Expr& e, DType element) { return cast_to(e, element.with_lanes(dtype_of(e).lanes)); }
// Returns the scalar, in each lane of `like`.
Expr widened(const Expr& e, const Expr& like) {
  int lanes = dtype_of(like).lanes;
  return dtype_of(e).lanes == lanes ? e : broadcast(e, lanes);
}
Expr shifted(BinaryOp op, const Expr& a, const Expr& b) { return binary(op, a, widened(b, a)); }

// Rounds x * y * 2^(left - right - q) to the nearest integer, ties upward. gemmlowp's fixed-point product.
Expr fixed_point(const Expr& x, const Expr& y, const Expr& left, const Expr& right, const Expr& q) {
  auto wide = [&](const Expr& e) { return widened(in_dtype(e, kInt64), x); };
  Expr product = shifted(BinaryOp::kShiftLeft, wide(x), wide(left)) * wide(y), by = wide(right) + wide(q);
  Expr half = shifted(BinaryOp::kShiftLeft, number(1, product), by - number(1, by));
  return in_dtype(shifted(BinaryOp::kShiftRight, product + half, by), kInt32);
}
// args: x, y, q, s
Expr multiply_shift(const Call& call, const Expr&) {
  const Expr &s = call.args[3], zero = number(0, s);
  return fixed_point(call.args[0], call.args[1], max(s, zero), max(zero - s, zero), call.args[2]);
}
// args: x, y, left, right, q, whether there is a left shift, whether there is a right one
Expr multiply_shift_per_axis(const Call& call, const Expr&) {
  const Args& a = call.args;
  Expr left = select(cast_to(a[5], kBool.with_lanes(dtype_of(a[5]).lanes)), a[2], number(0, a[2]));
  return fixed_point(a[0], a[1], left, a[3], a[4]);
}

Expr large_uint(const Call& call, const Expr& whole) {
  auto low = as_int(call.args[0]), high = as_int(call.args[1]);
  if (!low || !high) fail(whole.span(), "T.large_uint_imm takes two constants");
  uint64_t value = (static_cast<uint64_t>(*high) << 32) | (static_cast<uint64_t>(*low) & 0xffffffff);
  return int_imm(static_cast<int64_t>(value), dtype_of(whole), whole.span());
}

// Returns the lanes [first, first + count) of the vectors behind each other.
Expr lanes_of(Args vectors, int first, int count, const Expr& whole) {
  Args indices;
  for (int i = 0; i < count; ++i) indices.push_back(int_imm(first + i, kInt32));
  return intrinsic(ops::kShuffle, {tuple(std::move(vectors)), tuple(std::move(indices))}, dtype_of(whole),
                   whole.span());
}
Expr low_half(const Call& call, const Expr& whole) { return lanes_of(call.args, 0, dtype_of(whole).lanes, whole); }
Expr high_half(const Call& call, const Expr& whole) {
  int lanes = dtype_of(whole).lanes;
  return lanes_of(call.args, lanes, lanes, whole);
}
Expr combined(const Call& call, const Expr& whole) {  // TVM's order: the low half comes first
  return lanes_of(call.args, 0, dtype_of(whole).lanes, whole);
}

// The zeros above the highest set bit: that bit is copied to all lower ones, and they are counted.
Expr leading_zeros(const Call& call, const Expr& whole) {
  DType dtype = dtype_of(call.args[0]);
  DType bits{DTypeCode::kUInt, dtype.bits, dtype.lanes};
  Expr spread = cast_to(call.args[0], bits);
  std::vector<std::pair<VarRef, Expr>> steps;
  for (int by = 1; by < dtype.bits; by *= 2) {
    VarRef var = make_var("bits", prim_type(bits));
    steps.emplace_back(var, spread);
    spread = binary(BinaryOp::kBitOr, var, shifted(BinaryOp::kShiftRight, var, number(by, var)));
  }
  Expr ones = cast_to(intrinsic(ops::kPopcount, {spread}, bits), dtype_of(whole));
  Expr result = number(dtype.bits, ones) - ones;
  for (size_t i = steps.size(); i-- > 0;) result = let(steps[i].first, steps[i].second, result);
  return result;
}

// The dot product of 4 bytes with 4 bytes. args: a, b[, what is added]
Expr dot_of_bytes(const Call& call, const Expr&) {
  auto byte = [&](const Expr& word, int i) {
    Expr top = shifted(BinaryOp::kShiftLeft, cast_to(word, kInt32), int_imm(24 - 8 * i, kInt32));
    return shifted(BinaryOp::kShiftRight, top, int_imm(24, kInt32));
  };
  Expr sum = call.args.size() > 2 ? call.args[2] : int_imm(0, kInt32);
  for (int i = 0; i < 4; ++i) sum = sum + byte(call.args[0], i) * byte(call.args[1], i);
  return sum;
}

Expr first_argument(const Call& call, const Expr&) { return call.args[0]; }
Expr some_value(const Call&, const Expr& whole) { return scalar_imm(0, dtype_of(whole)); }

// T.tvm_access_ptr(T.type_annotation(dtype), data, offset, extent, mask)
Expr pointer_to_element(const Call& call, const Expr& whole) {
  DType element = dtype_of(call.args[0]);
  if (is_int(call.args[2], 0)) return call.args[1];
  if (element.is_packed())
    fail_unsupported(whole.span(), "a pointer to an element of {}, which shares its byte", to_string(element));
  Expr bytes = cast_to(call.args[2], kInt64) * element.bytes();
  return relaxc::call(op_ref(ops::kAddByteOffset), {call.args[1], bytes}, {}, call.args[1].type(), whole.span());
}

// A function of libm, on numbers of the dtype in its name, that is one of the intrinsics.
Expr known_function(const Call& call, const Expr& whole) {
  const StringImm* symbol = call.args[0].as<StringImm>();
  DType dtype = dtype_of(whole);
  if (!symbol || !dtype.is_float() || dtype.bits < 32 || dtype.code != DTypeCode::kFloat) return whole;
  Args args(call.args.begin() + 1, call.args.end());
  bool same =
      std::ranges::all_of(args, [&](const Expr& arg) { return arg.type().is<PrimType>() && dtype_of(arg) == dtype; });
  for (const Intrinsic& row : intrinsics()) {
    if (!row.libm || row.result != Intrinsic::Result::kSame || !same) continue;
    std::string name = std::string(row.libm) + (dtype.bits == 32 ? "f" : "");
    if (symbol->value == name && std::cmp_equal(args.size(), row.arity))
      return intrinsic(row.name, args, dtype, whole.span());
  }
  return whole;
}
// T.call_llvm_pure_intrin(dtype, "llvm.sqrt.f32", [T.uint32(number of arguments),] args...) of a function of libm.
Expr known_instruction(const Call& call, const Expr& whole) {
  const StringImm* symbol = call.args[0].as<StringImm>();
  std::string_view name = symbol ? std::string_view(symbol->value) : std::string_view();
  if (!name.starts_with("llvm.") || !dtype_of(whole).is_float()) return whole;
  name = name.substr(5, name.find('.', 5) - 5);
  if (name == "rint") name = "nearbyint";
  bool has_count = call.args.size() > 1 && call.args[1].is<IntImm>() && dtype_of(call.args[1]) == DType::uint(32);
  Args args(call.args.begin() + (has_count ? 2 : 1), call.args.end());
  auto fits = [&](const Expr& arg) { return dtype_of(arg) == dtype_of(whole); };
  for (const Intrinsic& row : intrinsics()) {
    bool is_row = row.libm && row.libm == name && row.result == Intrinsic::Result::kSame;
    if (is_row && std::cmp_equal(args.size(), row.arity) && std::ranges::all_of(args, fits))
      return intrinsic(row.name, args, dtype_of(whole), whole.span());
  }
  return whole;
}
// T.hypot(a, b) and the like are functions of libm without an intrinsic.
Expr libm_function(const Call& call, const Expr& whole) {
  DType dtype = dtype_of(whole);
  if (!dtype.is_float() || dtype.code != DTypeCode::kFloat) fail(whole.span(), "{} takes floats", op_name(whole));
  DType computed = dtype.bits == 64 ? dtype : kFloat32.with_lanes(dtype.lanes);
  std::string symbol = op_name(whole).substr(4) + (computed.bits == 32 ? "f" : "");
  Args args = {string_imm(symbol)};
  for (const Expr& arg : call.args)
    args.push_back(dtype_of(arg).is_float() ? cast_to(arg, computed) : in_dtype(arg, kInt32));
  return cast_to(intrinsic(ops::kCallPureExtern, std::move(args), computed, whole.span()), dtype);
}

// Buffers as arguments of the host's functions become T.tvm_stack_make_array, which keeps their shapes.
Expr packed_call(const Call& call, const Expr& whole) {
  Call copy = call;
  for (Expr& arg : copy.args) {
    if (!arg.type().is<BufferType>()) continue;
    Buffer buffer = cast<Var>(arg);
    const BufferType& type = buffer_type(buffer);
    if (!type.strides.empty())
      fail_unsupported(whole.span(), "a tensor with strides as an argument of a packed function");
    Expr shape = intrinsic(ops::kStackMakeShape, type.shape, DType::handle());
    Expr offset = type.elem_offset.value_or(int_imm(0)), rank = int_imm(std::ssize(type.shape), kInt32);
    arg = intrinsic(ops::kStackMakeArray,
                    {buffer_data(buffer), shape, int_imm(0, kInt32), rank, scalar_imm(0, type.dtype), offset},
                    DType::handle(), whole.span());
  }
  return make(std::move(copy), whole.type(), whole.span());
}

struct Row {
  std::string_view name;
  Expr (*expand)(const Call& call, const Expr& whole);
};
constexpr Row kRows[] = {{"tir.call_extern", known_function},
                         {"tir.call_llvm_intrin", known_instruction},
                         {"tir.call_llvm_pure_intrin", known_instruction},
                         {"tir.call_pure_extern", known_function},
                         {"tir.clz", leading_zeros},
                         {"tir.dp4a", dot_of_bytes},
                         {"tir.hypot", libm_function},
                         {"tir.ignore_loop_partition", first_argument},
                         {"tir.large_uint_imm", large_uint},
                         {"tir.ldexp", libm_function},
                         {"tir.nextafter", libm_function},
                         {"tir.q_multiply_shift", multiply_shift},
                         {"tir.q_multiply_shift_per_axis", multiply_shift_per_axis},
                         {"tir.tvm_access_ptr", pointer_to_element},
                         {"tir.tvm_call_cpacked", packed_call},
                         {"tir.tvm_call_packed", packed_call},
                         {"tir.tvm_thread_invariant", first_argument},
                         {"tir.undef", some_value},
                         {"tir.vectorcombine", combined},
                         {"tir.vectorhigh", high_half},
                         {"tir.vectorlow", low_half}};

// Turns `p = T.TVMBackendAllocWorkspace(device type, number, bytes, ...)` into an allocation.
std::optional<Stmt> workspace(const Ref<Bind>& bind) {
  const Call* call = as_call(bind->value, ops::kAllocWorkspace);
  if (!call) return std::nullopt;
  Buffer memory = make_buffer(bind->var->name, DType::uint(8), {cast_to(call->args[2], kInt64)}, "global", bind.span());
  return seq({make(AllocBuffer{memory, {}}, bind.span()), make(Bind{bind->var, buffer_data(memory)}, bind.span())});
}
// Memory is released where its scope ends, and an attribute without a body says nothing to a CPU.
std::optional<Stmt> without_effect(const Ref<Evaluate>& node) {
  bool is_needless = op_name(node->value) == ops::kFreeWorkspace || node->value.is<IntImm>();
  return is_needless ? std::optional(no_op()) : std::nullopt;
}

}  // namespace

PrimFuncRef expand_builtins(const PrimFuncRef& function) {
  auto expanded = [](const Ref<Call>& call) -> std::optional<Expr> {
    const Row* row = find_item(kRows, op_name(call), &Row::name);
    return row ? std::optional(row->expand(*call, call)) : std::nullopt;
  };
  Stmt body = rewrite(
      function->body, [](const Ref<Bind>& bind) { return workspace(bind); },
      [](const Ref<Evaluate>& node) { return without_effect(node); }, expanded);
  if (same_node(body, function->body)) return function;
  return with_body(function,
                   rewrite(body, [](const Ref<Seq>& node) -> std::optional<Stmt> { return seq(node->stmts); }));
}

}  // namespace relaxc
