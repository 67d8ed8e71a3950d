// The built-in tensor intrinsics, as text: users declare theirs in the same form (TensorIntrins::add, or a module whose
// programs say `tensor_intrin` in their attributes). Instructions are c[n] += a[k] * b[n, k] in one, or a few; tiles
// are products of matrices whose sums stay in registers.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/text/parser.h"
#include "support/diagnostic.h"
#include "tir/dot_intrinsics.h"
#include "tir/intrin/tensor_intrin.h"

namespace relaxc {

namespace {

// Placeholders of the implementations: {n}; {bits} of n lanes of int32; {b}, all bytes of the row's b as int32 lanes
// (where k is 1: b); {a}, the k values of a as one int32 in each lane. A negative n counts multiples of T.vscale().
// Rules use a row on targets that have `used_on`. One without it is there for `tensorize` in users' schedules.
struct DotRow {
  std::string name;
  int n, k;
  std::string a, b, c;  // dtypes
  std::string result;   // c[0:n] =
  bool Target::* used_on = nullptr;
};

constexpr const char* kMultiplyAdd = "C[0:{n}] + T.Broadcast(A[0], {n}) * {b}";
// The first factor of vpdpbusd is unsigned: it is a + 128, and 128 * b is subtracted again, which is exact.
constexpr const char* kSignedVnni =
    R"(T.call_llvm_pure_intrin("int32x{n}", "llvm.x86.avx512.vpdpbusd.{bits}", C[0:{n}], T.bitwise_xor({a}, T.Broadcast(-2139062144, {n})), {b}) - T.call_llvm_pure_intrin("int32x{n}", "llvm.x86.avx512.vpdpbusd.{bits}", T.Broadcast(0, {n}), T.Broadcast(-2139062144, {n}), {b}))";

// Returns the row of a tensor intrinsic that is one intrinsic of LLVM.
DotRow one_call(const char* name, std::string_view llvm_name, bool Target::* used_on = nullptr) {
  const DotIntrinsic& intrin = *find_dot_intrinsic(llvm_name);
  int parts = intrin.is_scalable() ? -1 : 1;  // a negative number of lanes is one of T.vscale() parts
  auto text = [&](DType dtype) { return to_string(dtype.with_lanes(dtype.lanes * parts)); };
  return {
      name,
      intrin.result.lanes * parts,
      intrin.group,
      to_string(intrin.a.element()),
      to_string(intrin.b.element()),
      to_string(intrin.result.element()),
      fmt::format(R"({}T.call_llvm_pure_intrin("{}", "{}", {}T.reinterpret("{}", {{a}}), T.reinterpret("{}", {{b}})))",
                  intrin.accumulates ? "" : "C[0:{n}] + ", text(intrin.result), intrin.name,
                  intrin.accumulates ? "C[0:{n}], " : "", text(intrin.a), text(intrin.b)),
      used_on};
}

const std::vector<DotRow>& dot_rows() {
  static const std::vector<DotRow> kRows = {
      // One multiply-add of a vector: the inner step of every float32 tile.
      {"fma_16_f32_avx512", 16, 1, "float32", "float32", "float32", kMultiplyAdd},
      {"fma_8_f32_avx2", 8, 1, "float32", "float32", "float32", kMultiplyAdd},
      {"fma_4_f32_neon", 4, 1, "float32", "float32", "float32", kMultiplyAdd},
      {"fma_4xvscale_f32_sve", -4, 1, "float32", "float32", "float32", kMultiplyAdd},
      {"dot_16x4_s8s8s32_vnni", 16, 4, "int8", "int8", "int32", kSignedVnni, &Target::has_int8_dot},
      {"dot_8x4_s8s8s32_vnni", 8, 4, "int8", "int8", "int32", kSignedVnni, &Target::has_int8_dot},
      one_call("dot_16x4_u8s8s32_vnni", "llvm.x86.avx512.vpdpbusd.512", &Target::has_int8_dot),
      one_call("dot_8x4_u8s8s32_vnni", "llvm.x86.avx512.vpdpbusd.256", &Target::has_int8_dot),
      one_call("dot_16x2_bf16bf16f32_avx512", "llvm.x86.avx512bf16.dpbf16ps.512", &Target::has_bfloat16_dot),
      one_call("dot_4x4_s8s8s32_neon", "llvm.aarch64.neon.sdot.v4i32.v16i8"),
      one_call("dot_4xvscalex4_s8s8s32_sve", "llvm.aarch64.sve.sdot.nxv4i32"),
      // pmaddubsw saturates sums of two products; even and odd bytes of a by turns, one product each, do not.
      {"dot_8x4_u8s8s32_avx2", 8, 4, "uint8", "int8", "int32",
       R"(C[0:8] + T.call_llvm_pure_intrin("int32x8", "llvm.x86.avx2.pmadd.wd", T.call_llvm_pure_intrin("int16x16", "llvm.x86.avx2.pmadd.ub.sw", T.reinterpret("uint8x32", T.bitwise_and({a}, T.Broadcast(16711935, 8))), T.reinterpret("int8x32", {b})), T.Broadcast(T.int16(1), 16)) + T.call_llvm_pure_intrin("int32x8", "llvm.x86.avx2.pmadd.wd", T.call_llvm_pure_intrin("int16x16", "llvm.x86.avx2.pmadd.ub.sw", T.reinterpret("uint8x32", T.bitwise_and({a}, T.Broadcast(-16711936, 8))), T.reinterpret("int8x32", {b})), T.Broadcast(T.int16(1), 16)))"},
  };
  return kRows;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// Says whether b has a dim for k where k is 1.
enum class Column { kAbsent, kPresent };

// Returns the text of both programs of a row.
std::string module_text(const DotRow& row, Column column) {
  auto factor = [&](const std::string& dtype, const char* value) {
    return dtype == row.c ? value : fmt::format("T.Cast(\"{}\", {})", row.c, value);
  };
  auto lanes = [](int count) { return count < 0 ? fmt::format("T.vscale() * {}", -count) : fmt::format("{}", count); };
  std::string n = lanes(row.n);
  bool single = row.k == 1;  // no reduction
  bool is_vector = column == Column::kAbsent;
  std::string params = fmt::format(
      R"(A: T.Buffer(({1},), "{2}", offset_factor=1), B: T.Buffer(({0}, {5}), "{3}", offset_factor=1), C: T.Buffer(({0},), "{4}", offset_factor=1))",
      n, row.k, row.a, row.b, row.c, is_vector ? "" : lanes(row.k));
  std::string a = fmt::format(R"(T.Broadcast(T.reinterpret("int32", A[0:{}]), {}))", row.k, n);
  std::string b = fmt::format("B[{}0:{}]", is_vector ? "" : "0, ", lanes(row.n * row.k));
  if (!single) b = fmt::format(R"(T.reinterpret("{}", {}))", to_string(DType::int_(32).with_lanes(row.n)), b);
  std::string result = row.result;
  for (const auto& [name, text] : {std::pair("{a}", a), {"{b}", b}, {"{n}", n}, {"{bits}", lanes(32 * row.n)}})
    result = replaced(std::move(result), name, text);
  std::string loops = single ? fmt::format("i in range({})", n) : fmt::format("i, k in T.grid({}, {})", n, row.k);
  std::string axes = single ? fmt::format("vi = T.axis.spatial({}, i)", n) : R"(vi, vk = T.axis.remap("SR", [i, k]))";
  return fmt::format(R"(
@T.prim_func(private=True)
def description({params}):
    T.func_attr({{"tensor_intrin": "{name}"}})
    for {loops}:
        with T.block("dot"):
            {axes}
            C[vi] = C[vi] + {x} * {y}

@T.prim_func(private=True)
def implementation({params}):
    T.func_attr({{"tensor_intrin": "{name}"}})
    C[0:{n}] = {result}
)",
                     fmt::arg("params", params), fmt::arg("name", row.name), fmt::arg("n", n),
                     fmt::arg("x", factor(row.a, single ? "A[0]" : "A[vk]")),
                     fmt::arg("y", factor(row.b, is_vector ? "B[vi]"
                                                 : single  ? "B[vi, 0]"
                                                           : "B[vi, vk]")),
                     fmt::arg("loops", loops), fmt::arg("axes", axes), fmt::arg("result", result));
}

// c[m, n] += a[m, k] * b[k, n]: m * n / lanes vectors of sums and one row of b, in registers.
struct TileRow {
  const char* name;
  int m, n, k, lanes;
};

constexpr TileRow kTiles[] = {
    {"fma_6x64x8_f32_avx512", 6, 64, 8, 16},
    {"fma_6x16x8_f32_avx2", 6, 16, 8, 8},
};

std::string module_text(const TileRow& row) {
  std::string params = fmt::format(R"((a: T.handle, b: T.handle, c: T.handle):
    T.func_attr({{"tensor_intrin": "{0}"}})
    row_a, row_b, row_c = T.int64(), T.int64(), T.int64()
    A = T.match_buffer(a, ({1}, {3}), "float32", strides=[row_a, 1], offset_factor=1)
    B = T.match_buffer(b, ({3}, {2}), "float32", strides=[row_b, 1], offset_factor=1)
    C = T.match_buffer(c, ({1}, {2}), "float32", strides=[row_c, 1], offset_factor=1)
)",
                                   row.name, row.m, row.n, row.k);
  return fmt::format(R"(
@T.prim_func(private=True)
def description{params}
    for i, j, k in T.grid({m}, {n}, {k}):
        with T.block("tile"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

@T.prim_func(private=True)
def implementation{params}
    sums = T.alloc_buffer(({m}, {n}), scope="local")
    for i in T.unroll({m}):
        for j in T.unroll({vectors}):
            sums[i, {js}] = C[i, {js}]
    for k in range({k}):
        for i in T.unroll({m}):
            for j in T.unroll({vectors}):
                sums[i, {js}] = sums[i, {js}] + T.Broadcast(A[i, k], {lanes}) * B[k, {js}]
    for i in T.unroll({m}):
        for j in T.unroll({vectors}):
            C[i, {js}] = sums[i, {js}]
)",
                     fmt::arg("params", params), fmt::arg("m", row.m), fmt::arg("n", row.n), fmt::arg("k", row.k),
                     fmt::arg("lanes", row.lanes), fmt::arg("vectors", row.n / row.lanes),
                     fmt::arg("js", fmt::format("j * {0}:j * {0} + {0}", row.lanes)));
}

}  // namespace

TensorIntrin parse_tensor_intrin(std::string_view text, const std::string& filename) {
  Diagnostics diagnostics;
  OpTable no_operators({});
  IRModule module = parse_module(text, filename, no_operators, diagnostics);
  diagnostics.throw_if_errors();
  PrimFuncRef description = module.prim_func("description"), implementation = module.prim_func("implementation");
  return {description->attrs.get_string(attr_names::kTensorIntrin, filename), description, implementation};
}

std::string_view find_dot_form(int lanes, int group, DType a, DType b, DType result, const Target& target) {
  auto row = std::ranges::find_if(dot_rows(), [&](const DotRow& r) {
    return r.n == lanes && r.k == group && r.a == to_string(a) && r.b == to_string(b) && r.c == to_string(result) &&
           r.used_on && target.*r.used_on;
  });
  return row == dot_rows().end() ? std::string_view() : row->name;
}

const TensorIntrins& builtin_tensor_intrins() {
  static const TensorIntrins kTable = [] {
    TensorIntrins table;
    for (const DotRow& row : dot_rows()) {
      TensorIntrin intrin = parse_tensor_intrin(module_text(row, Column::kPresent), row.name);
      if (row.k == 1) {
        TensorIntrin vector = parse_tensor_intrin(module_text(row, Column::kAbsent), row.name);
        vector.other_layouts.push_back(std::move(intrin));
        intrin = std::move(vector);
      }
      table.add(std::move(intrin));
    }
    for (const TileRow& row : kTiles) table.add(parse_tensor_intrin(module_text(row), row.name));
    return table;
  }();
  return kTable;
}

}  // namespace relaxc
