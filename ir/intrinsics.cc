#include "ir/intrinsics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/op_names.h"
#include "support/joined.h"

namespace relaxc {

namespace {

using R = Intrinsic::Result;

// The bits of unsigned integers of 64 bits look negative.
int64_t integer_abs(int64_t a, DType dtype) {
  return a < 0 && dtype.is_int() ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a;
}
int64_t integer_not(int64_t a, DType) { return ~a; }
// A negative integer of fewer than 64 bits has copies of its sign above them.
int64_t integer_popcount(int64_t a, DType dtype) {
  return std::popcount(static_cast<uint64_t>(a) << (64 - dtype.bits));
}

// The value is an expression of the arguments a, b, c.
#define ROW(name, arity, result, libm, value, doc)                                                                  \
  {"tir." #name,                                                                                                    \
   arity,                                                                                                           \
   R::result,                                                                                                       \
   libm,                                                                                                            \
   []([[maybe_unused]] double a, [[maybe_unused]] double b, [[maybe_unused]] double c) -> double { return value; }, \
   nullptr,                                                                                                         \
   doc}
// The intrinsic has the name of the C function.
#define UNARY(name, doc) ROW(name, 1, kSame, #name, std::name(a), doc)

constexpr Intrinsic kIntrinsics[] = {
    {"tir.abs", 1, R::kSame, "fabs", [](double a, double, double) { return std::fabs(a); }, integer_abs,
     "absolute value"},
    UNARY(acos, "arc cosine in radians"),
    UNARY(acosh, "inverse hyperbolic cosine"),
    UNARY(asin, "arc sine in radians"),
    UNARY(asinh, "inverse hyperbolic sine"),
    UNARY(atan, "arc tangent in radians"),
    ROW(atan2, 2, kSame, "atan2", std::atan2(a, b), "angle of the point (b, a)"),
    UNARY(atanh, "inverse hyperbolic tangent"),
    {"tir.bitwise_not", 1, R::kSame, nullptr, nullptr, integer_not, "complement of each bit (integers)"},
    UNARY(ceil, "least integer not below"),
    ROW(copysign, 2, kSame, "copysign", std::copysign(a, b), "magnitude of a with the sign of b"),
    UNARY(cos, "cosine of radians"),
    UNARY(cosh, "hyperbolic cosine"),
    UNARY(erf, "error function"),
    UNARY(exp, "e to the power"),
    ROW(exp10, 1, kSame, "exp10", std::pow(10.0, a), "10 to the power"),
    UNARY(exp2, "2 to the power"),
    UNARY(floor, "greatest integer not above"),
    ROW(fma, 3, kSame, "fma", std::fma(a, b, c), "a * b + c, rounded once"),
    ROW(isfinite, 1, kBool, nullptr, std::isfinite(a) ? 1.0 : 0.0, "neither infinite nor NaN"),
    ROW(isinf, 1, kBool, nullptr, std::isinf(a) ? 1.0 : 0.0, "infinite"),
    ROW(isnan, 1, kBool, nullptr, std::isnan(a) ? 1.0 : 0.0, "not a number"),
    UNARY(log, "natural logarithm"),
    UNARY(log10, "decimal logarithm"),
    UNARY(log1p, "log(1 + a)"),
    UNARY(log2, "binary logarithm"),
    UNARY(nearbyint, "nearest integer, ties to even"),
    {"tir.popcount", 1, R::kSame, nullptr, nullptr, integer_popcount, "number of set bits (integers)"},
    ROW(pow, 2, kSame, "pow", std::pow(a, b), "a to the power b"),
    UNARY(round, "nearest integer, ties away from zero"),
    ROW(round_within, 3, kSame, nullptr, std::nearbyint(a > b ? (a < c ? a : c) : b),
        "a limited to [b, c], where NaN becomes b, and rounded to the nearest integer, ties to even"),
    ROW(rsqrt, 1, kSame, nullptr, 1.0 / std::sqrt(a), "1 / sqrt(a)"),
    ROW(sigmoid, 1, kSame, nullptr, 1.0 / (1.0 + std::exp(-a)), "1 / (1 + exp(-a))"),
    UNARY(sin, "sine of radians"),
    UNARY(sinh, "hyperbolic sine"),
    UNARY(sqrt, "square root"),
    UNARY(tan, "tangent of radians"),
    UNARY(tanh, "hyperbolic tangent"),
    UNARY(trunc, "integer part, toward zero"),
};

#undef ROW
#undef UNARY

using B = Builtin::Result;
// Builtins that differ in their name only share a row.
constexpr Builtin kBuiltinRows[] = {
    {"tir.break_loop tir.continue_loop tir.ptx_commit_group tir.thread_return", 0, 0, B::kVoid, false},
    {"tir.create_barriers tir.ptx_arrive_barrier tir.ptx_cp_async_barrier tir.ptx_wait_barrier tir.ptx_wait_group", 1,
     1, B::kVoid, false},
    {"tir.prefetch", 1, 4, B::kVoid, false},
    {"tir.ptx_arrive_barrier_expect_tx tir.ptx_init_barrier_thread_count", 2, 2, B::kVoid, false},
    {"tir.ptx_ldg32", 4, 4, B::kVoid, false},
    {"tir.assume", 1, 1, B::kBool, false},
    {"tir.isnullptr", 1, 1, B::kBool, true},
    {"tir.undef tir.vscale", 0, 0, B::kInt32, true},
    {"tir.dma_end_group tir.dma_start_group", 1, 1, B::kInt32, false},
    {"tir.buffer_elem_offset tir.clz", 1, 1, B::kInt32, true},
    {"tir.tvm_storage_sync", 1, 3, B::kInt32, false},
    {"tir.tvm_call_cpacked tir.tvm_call_cpacked_lowered tir.tvm_call_packed tir.tvm_call_packed_lowered "
     "tir.tvm_call_trace_packed tir.tvm_call_trace_packed_lowered",
     1, -1, B::kInt32, false},
    {"tir.anylist_resetitem tir.dma_wait", 2, 2, B::kInt32, false},
    {"tir.dp4a", 2, 3, B::kInt32, true},
    {"tir.TVMBackendFreeWorkspace tir.tvm_check_return", 3, 3, B::kInt32, false},
    {"tir.anylist_setitem_call_cpacked tir.anylist_setitem_call_packed", 3, -1, B::kInt32, false},
    {"tir.tvm_struct_set", 4, 4, B::kInt32, false},
    {"tir.q_multiply_shift", 4, 4, B::kInt32, true},
    {"tir.dma_copy", 4, 5, B::kInt32, false},
    {"tir.q_multiply_shift_per_axis", 7, 7, B::kInt32, true},
    {"tir.tvm_warp_activemask", 0, 0, B::kUInt32, false},
    {"tir.tvm_global_barrier_kinit tir.tvm_static_handle tir.tvm_throw_last_error", 0, 0, B::kHandle, false},
    {"tir.tvm_context_id", 0, 0, B::kHandle, true},
    {"tir.tvm_stack_make_shape", 0, -1, B::kHandle, false},
    {"tir.tvm_tuple", 0, -1, B::kHandle, true},
    {"tir.end_profile_intrinsic tir.start_profile_intrinsic tir.tvm_thread_context", 1, 1, B::kHandle, false},
    {"tir.address_of tir.buffer_data tir.lookup_param", 1, 1, B::kHandle, true},
    {"tir.tvm_thread_allreduce", 1, -1, B::kHandle, false},
    {"tir.comm_reducer", 1, -1, B::kHandle, true},
    {"tir.tvm_stack_alloca", 2, 2, B::kHandle, false},
    {"tir.anylist_getitem tir.handle_add_byte_offset", 2, 2, B::kHandle, true},
    {"tir.nd_mem_alloc_with_scope", 2, -1, B::kHandle, false},
    {"tir.make_filled_simdgroup_matrix", 3, 5, B::kHandle, false},
    {"tir.iter_var", 3, 5, B::kHandle, true},
    {"tir.TVMBackendAllocWorkspace", 5, 5, B::kHandle, false},
    {"tir.tvm_access_ptr", 5, 5, B::kHandle, true},
    {"tir.simdgroup_load tir.simdgroup_store", 5, 7, B::kHandle, false},
    {"tir.tvm_fill_fragment tir.tvm_stack_make_array", 6, 6, B::kHandle, false},
    {"tir.simdgroup_multiply_accumulate tir.tvm_bmma_sync tir.tvm_load_matrix_sync tir.tvm_mma_sync "
     "tir.tvm_store_matrix_sync",
     8, 8, B::kHandle, false},
    {"tir.ret", 0, 1, B::kSame, false},
    {"tir.ignore_loop_partition tir.likely tir.tvm_thread_invariant", 1, 1, B::kSame, true},
    {"tir.hypot tir.ldexp tir.nextafter", 2, 2, B::kSame, true},
    {"tir.tvm_warp_shuffle tir.tvm_warp_shuffle_down tir.tvm_warp_shuffle_up", 5, 5, B::kSecond, false},
    {"tir.type_annotation", 0, 0, B::kStatedFirst, true},
    {"tir.reinterpret tir.vectorhigh tir.vectorlow", 1, 1, B::kStatedFirst, true},
    {"tir.call_extern tir.call_llvm_intrin", 1, -1, B::kStatedFirst, false},
    {"tir.call_llvm_pure_intrin tir.call_pure_extern tir.call_spirv_pure_glsl450", 1, -1, B::kStatedFirst, true},
    {"tir.get_active_lane_mask tir.large_uint_imm tir.shuffle tir.vectorcombine", 2, 2, B::kStatedFirst, true},
    {"tir.mma_fill", 3, 3, B::kStatedFirst, false},
    {"tir.texture2d_load", 3, -1, B::kStatedFirst, true},
    {"tir.texture2d_store", 4, -1, B::kStatedFirst, false},
    {"tir.ptx_cp_async", 5, 6, B::kStatedFirst, false},
    {"tir.mma_store tir.ptx_cp_async_bulk", 6, 6, B::kStatedFirst, false},
    {"tir.ptx_ldmatrix", 7, 7, B::kStatedFirst, false},
    {"tir.ptx_mma", 13, 14, B::kStatedFirst, false},
    {"tir.ptx_mma_sp", 16, 16, B::kStatedFirst, false},
    {"tir.tvm_struct_get", 3, 3, B::kStatedLast, true},
};

template <class Row>
const Row* find(std::span<const Row> rows, std::string_view name) {
  auto row = std::ranges::lower_bound(rows, name, {}, [](const Row& r) { return std::string_view(r.name); });
  return row != rows.end() && row->name == name ? &*row : nullptr;
}

}  // namespace

std::span<const Intrinsic> intrinsics() { return kIntrinsics; }
const Intrinsic* find_intrinsic(std::string_view name) { return find(intrinsics(), name); }
std::span<const Builtin> builtins() {
  static const std::vector<Builtin> sorted = [] {
    std::vector<Builtin> rows;
    for (const Builtin& row : kBuiltinRows) {
      for (std::string_view name : parts_of(row.name, ' ')) rows.emplace_back(row).name = name;
    }
    std::ranges::sort(rows, {}, &Builtin::name);
    return rows;
  }();
  return sorted;
}
const Builtin* find_builtin(std::string_view name) { return find(builtins(), name); }

std::string_view spelling(const Builtin& row) {
  std::string_view name = row.name.substr(4);
  bool is_packed_call = name.starts_with("tvm_call_cpacked") || name.starts_with("tvm_call_packed");
  return is_packed_call ? name.substr(4) : name;
}

std::optional<DType> natural_dtype(const Builtin& row, std::span<const Expr> args) {
  auto of = [&](size_t i) -> std::optional<DType> {
    const PrimType* type = i < args.size() ? args[i].type().as<PrimType>() : nullptr;
    return type ? std::optional(type->dtype) : std::nullopt;
  };
  if (row.result == B::kSame || row.result == B::kSecond) return of(row.result == B::kSame ? 0 : 1);
  if (row.result == B::kBool) return kBool;
  if (row.result == B::kInt32) return kInt32;
  if (row.result == B::kUInt32) return DType::uint(32);
  if (row.result == B::kHandle) return DType::handle();
  if (row.result == B::kVoid) return DType::void_();
  return std::nullopt;
}

bool is_call_with_effect(const NodeRef& node) {
  const Call* call = node.as<Call>();
  const OpRef* op = call ? call->callee.as<OpRef>() : nullptr;
  if (!op) return call;
  const Builtin* builtin = find_builtin(op->name);
  return builtin ? !builtin->pure : !find_intrinsic(op->name) && op->name != ops::kIfThenElse;
}

Expr buffer_data(const Buffer& buffer, const Span& span) {
  const BufferType& type = buffer_type(buffer);
  return call(op_ref(ops::kBufferData), {buffer}, {}, pointer_type(type.dtype, type.scope), span);
}

bool is_vscale(const Expr& expr) {
  const Cast* cast = expr.as<Cast>();
  return op_name(cast ? cast->value : expr) == ops::kVscale;
}

}  // namespace relaxc
