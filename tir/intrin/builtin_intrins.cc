// The built-in tensor intrinsics, as text: users declare theirs in the same form (TensorIntrins::add, or a module whose
// programs say `tensor_intrin` in their attributes). Instructions are c[n] += a[k] * b[n, k] in one, or a few; tiles
// are products of matrices whose sums stay in registers.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/text/parser.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "tir/dot_intrinsics.h"
#include "tir/intrin/tensor_intrin.h"

namespace relaxc {

namespace {

// A negative number of lanes counts multiples of T.vscale(). Placeholders of the implementations: {n}, the lanes;
// {bits} of n lanes of int32; {b}, all bytes of the row's b as int32 lanes (where a group is not 32 bits: b); {a}, the
// group of a as one int32 in each lane. A row without a figure is there for `tensorize` in users' schedules.
struct DotRow : DotForm {
  std::string text;  // c[0:n] =
};

constexpr const char* kMultiplyAdd = "C[0:{n}] + T.Broadcast(A[0], {n}) * {b}";
// The first factor of vpdpbusd is unsigned: it is a + 128, and 128 * b is subtracted again, which is exact.
constexpr const char* kSignedVnni =
    R"(T.call_llvm_pure_intrin("int32x{n}", "llvm.x86.avx512.vpdpbusd.{bits}", C[0:{n}], T.bitwise_xor({a}, T.Broadcast(-2139062144, {n})), {b}) - T.call_llvm_pure_intrin("int32x{n}", "llvm.x86.avx512.vpdpbusd.{bits}", T.Broadcast(0, {n}), T.Broadcast(-2139062144, {n}), {b}))";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// Returns the row of a tensor intrinsic that is one intrinsic of LLVM.
DotRow one_call(std::string name, std::string_view llvm_name, bool Target::* figure = nullptr) {
  const DotIntrinsic& intrin = *find_dot_intrinsic(llvm_name);
  int parts = intrin.is_scalable() ? -1 : 1;  // a negative number of lanes is one of T.vscale() parts
  auto text = [&](DType dtype) { return to_string(dtype.with_lanes(dtype.lanes * parts)); };
  return {
      {std::move(name), intrin.result.lanes * parts, intrin.group, intrin.a.element(), intrin.b.element(),
       intrin.result.element(), std::string(llvm_name), figure},
      fmt::format(R"({}T.call_llvm_pure_intrin("{}", "{}", {}T.reinterpret("{}", {{a}}), T.reinterpret("{}", {{b}})))",
                  intrin.accumulates ? "" : "C[0:{n}] + ", text(intrin.result), intrin.name,
                  intrin.accumulates ? "C[0:{n}], " : "", text(intrin.a), text(intrin.b))};
}

// Returns the row of the product of two int8 by an intrinsic whose first operand is unsigned.
DotRow signed_vnni(std::string name, std::string_view llvm_name) {
  DotRow row = one_call(std::move(name), llvm_name, &Target::has_int8_dot);
  row.a = row.b;
  row.text = kSignedVnni;
  return row;
}

// Returns the row of the product of uint8 and int8 by sdot, whose operands are both signed: the first one is a - 128,
// and 128 * b is added again, which is exact.
DotRow unsigned_sdot(std::string name, std::string_view llvm_name) {
  DotRow row = one_call(std::move(name), llvm_name, &Target::has_int8_dot);
  row.a = DType::uint(8);
  row.text = fmt::format(
      R"(T.call_llvm_pure_intrin("int32x{{n}}", "{0}", C[0:{{n}}], T.reinterpret("int8x{1}", T.bitwise_xor({{a}}, T.Broadcast(-2139062144, {{n}}))), T.reinterpret("int8x{1}", {{b}})) + T.shift_left(T.call_llvm_pure_intrin("int32x{{n}}", "{0}", T.Broadcast(0, {{n}}), T.Broadcast(T.int8(64), {1}), T.reinterpret("int8x{1}", {{b}})), T.Broadcast(1, {{n}})))",
      llvm_name, row.lanes * row.group);
  return row;
}

// Returns the row of the product of a signed a and an unsigned b, which is the first operand of the intrinsic.
DotRow unsigned_b(std::string name, std::string_view llvm_name, bool Target::* figure = &Target::has_int8_dot) {
  DotRow row = one_call(std::move(name), llvm_name, figure);
  std::swap(row.a, row.b);
  auto swapped = [&](std::string text) {
    const size_t a = text.find("{a}"), b = text.find("{b}");
    text[a + 1] = 'b', text[b + 1] = 'a';
    return text;
  };
  row.text = swapped(row.text);
  return row;
}

// Returns the row of the product of int16 and int8, which is widened: pmaddwd sums two products exactly, where
// pmaddubsw, of bytes, saturates. Passes widen the left operand (passes/widen_bytes.cc).
DotRow widened_pairs(std::string name, std::string_view llvm_name) {
  DotRow row = one_call(std::move(name), llvm_name, &Target::has_int8_dot);
  row.b = DType::int_(8);
  row.text = fmt::format(
      R"(C[0:{{n}}] + T.call_llvm_pure_intrin("int32x{{n}}", "{0}", T.reinterpret("int16x{1}", {{a}}), T.Cast("int16x{1}", {{b}})))",
      llvm_name, row.lanes * row.group);
  return row;
}

// Returns the row of the product of uint8 and int8 by pmaddubsw, which clamps sums of two products to int16.
DotRow clamped_pairs(std::string name, std::string_view llvm_name, std::string_view sum_of_pairs) {
  DotRow row = one_call(std::move(name), llvm_name, &Target::clamps_int8_dot);
  row.lanes /= 2, row.group = 4, row.result = kInt32, row.constants = 1;
  row.text = fmt::format(
      R"(C[0:{{n}}] + T.call_llvm_pure_intrin("int32x{{n}}", "{0}", T.call_llvm_pure_intrin("int16x{1}", "{2}", T.reinterpret("uint8x{3}", {{a}}), T.reinterpret("int8x{3}", {{b}})), T.Broadcast(T.int16(1), {1})))",
      sum_of_pairs, 2 * row.lanes, llvm_name, 4 * row.lanes);
  return row;
}

// Returns the row of sums of 16 bits, two in each lane of 32, by pmaddubsw.
DotRow sums_of_pairs(std::string name, std::string_view llvm_name, std::string sum_of_pairs) {
  DotRow row = unsigned_b(std::move(name), llvm_name, &Target::clamps_int8_dot);
  row.lanes /= 2, row.group = 4, row.sum_of_pairs = std::move(sum_of_pairs);
  return row;
}

const std::vector<DotRow>& dot_rows() {
  static const std::vector<DotRow> kRows = {
      // One multiply-add of a vector: the inner step of every float32 tile.
      {{"fma_16_f32_avx512", 16, 1, kFloat32, kFloat32, kFloat32, ""}, kMultiplyAdd},
      {{"fma_8_f32_avx2", 8, 1, kFloat32, kFloat32, kFloat32, ""}, kMultiplyAdd},
      {{"fma_4_f32_neon", 4, 1, kFloat32, kFloat32, kFloat32, ""}, kMultiplyAdd},
      {{"fma_4xvscale_f32_sve", -4, 1, kFloat32, kFloat32, kFloat32, ""}, kMultiplyAdd},
      signed_vnni("dot_16x4_s8s8s32_vnni", "llvm.x86.avx512.vpdpbusd.512"),
      signed_vnni("dot_8x4_s8s8s32_vnni", "llvm.x86.avx512.vpdpbusd.256"),
      one_call("dot_16x4_u8s8s32_vnni", "llvm.x86.avx512.vpdpbusd.512", &Target::has_int8_dot),
      one_call("dot_8x4_u8s8s32_vnni", "llvm.x86.avx512.vpdpbusd.256", &Target::has_int8_dot),
      unsigned_b("dot_16x4_s8u8s32_vnni", "llvm.x86.avx512.vpdpbusd.512"),
      unsigned_b("dot_8x4_s8u8s32_vnni", "llvm.x86.avx512.vpdpbusd.256"),
      one_call("dot_16x2_bf16bf16f32_avx512", "llvm.x86.avx512bf16.dpbf16ps.512", &Target::has_bfloat16_dot),
      one_call("dot_4x4_s8s8s32_neon", "llvm.aarch64.neon.sdot.v4i32.v16i8", &Target::has_int8_dot),
      // usdot is one of the instructions of i8mm.
      one_call("dot_4x4_u8s8s32_neon", "llvm.aarch64.neon.usdot.v4i32.v16i8", &Target::has_int8_dot),
      unsigned_b("dot_4x4_s8u8s32_neon", "llvm.aarch64.neon.usdot.v4i32.v16i8"),
      unsigned_sdot("dot_4x4_u8s8s32_dotprod", "llvm.aarch64.neon.sdot.v4i32.v16i8"),
      // Rules do not make vectors of scalable length, so this form is not theirs.
      one_call("dot_4xvscalex4_s8s8s32_sve", "llvm.aarch64.sve.sdot.nxv4i32"),
      clamped_pairs("dot_16x4_u8s8s32_clamped_avx512", "llvm.x86.avx512.pmaddubs.w.512",
                    "llvm.x86.avx512.pmaddw.d.512"),
      clamped_pairs("dot_8x4_u8s8s32_clamped_avx2", "llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx2.pmadd.wd"),
      clamped_pairs("dot_4x4_u8s8s32_clamped_ssse3", "llvm.x86.ssse3.pmadd.ub.sw.128", "llvm.x86.sse2.pmadd.wd"),
      sums_of_pairs("dot_16x4_s8u8s16_avx512", "llvm.x86.avx512.pmaddubs.w.512", "sum_16x2_s16s32_avx512"),
      sums_of_pairs("dot_8x4_s8u8s16_avx2", "llvm.x86.avx2.pmadd.ub.sw", "sum_8x2_s16s32_avx2"),
      sums_of_pairs("dot_4x4_s8u8s16_ssse3", "llvm.x86.ssse3.pmadd.ub.sw.128", "sum_4x2_s16s32_sse2"),
      widened_pairs("dot_16x2_s16s8s32_avx512", "llvm.x86.avx512.pmaddw.d.512"),
      widened_pairs("dot_8x2_s16s8s32_avx2", "llvm.x86.avx2.pmadd.wd"),
      widened_pairs("dot_4x2_s16s8s32_sse2", "llvm.x86.sse2.pmadd.wd"),
      one_call("dot_16x2_s16s16s32_avx512", "llvm.x86.avx512.pmaddw.d.512", &Target::has_int8_dot),
      one_call("dot_8x2_s16s16s32_avx2", "llvm.x86.avx2.pmadd.wd", &Target::has_int8_dot),
      one_call("dot_4x2_s16s16s32_sse2", "llvm.x86.sse2.pmadd.wd", &Target::has_int8_dot),
  };
  return kRows;
}

// Returns the text of both programs of a row of sums of 16 bits, which reads b as words.
std::string module_text_of_pairs(const DotRow& row) {
  const std::string result = replaced(
      replaced(replaced(row.text, "{a}", fmt::format(R"(T.Broadcast(T.reinterpret("int32", A[0:4]), {}))", row.lanes)),
               "{b}", fmt::format("B[0:{}]", row.lanes)),
      "C[0:{n}]", fmt::format("C[0, 0:{}]", 2 * row.lanes));
  const std::string params = fmt::format(
      R"(A: T.Buffer((4,), "int8", offset_factor=1), B: T.Buffer(({0},), "int32", offset_factor=1), C: T.Buffer(({0}, 2), "int16", offset_factor=1))",
      row.lanes);
  return fmt::format(R"(
@T.prim_func(private=True)
def description({params}):
    T.func_attr({{"tensor_intrin": "{name}"}})
    for i, p, k in T.grid(T.int64({lanes}), T.int64(2), T.int64(2)):
        with T.block("dot"):
            vi, vp, vk = T.axis.remap("SSR", [i, p, k])
            C[vi, vp] = C[vi, vp] + T.Cast("int16", A[vp * T.int64(2) + vk]) * T.Cast("int16", T.bitwise_and(T.shift_right(B[vi], T.Cast("int32", vp * T.int64(16) + vk * T.int64(8))), 255))

@T.prim_func(private=True)
def implementation({params}):
    T.func_attr({{"tensor_intrin": "{name}"}})
    C[0, 0:{pairs}] = {result}
)",
                     fmt::arg("params", params), fmt::arg("name", row.name), fmt::arg("lanes", row.lanes),
                     fmt::arg("pairs", 2 * row.lanes), fmt::arg("result", result));
}

// The sums of two numbers of 16 bits in each lane of 32: c[n] += a[n, 0] + a[n, 1].
struct PairRow {
  const char *name, *llvm_name;
  int lanes;
};

constexpr PairRow kPairs[] = {
    {"sum_16x2_s16s32_avx512", "llvm.x86.avx512.pmaddw.d.512", 16},
    {"sum_8x2_s16s32_avx2", "llvm.x86.avx2.pmadd.wd", 8},
    {"sum_4x2_s16s32_sse2", "llvm.x86.sse2.pmadd.wd", 4},
};

std::string module_text(const PairRow& row) {
  return fmt::format(R"(
@T.prim_func(private=True)
def description(A: T.Buffer(({lanes}, 2), "int16", offset_factor=1), C: T.Buffer(({lanes},), "int32", offset_factor=1)):
    T.func_attr({{"tensor_intrin": "{name}"}})
    for i, k in T.grid({lanes}, 2):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = C[vi] + T.Cast("int32", A[vi, vk])

@T.prim_func(private=True)
def implementation(A: T.Buffer(({lanes}, 2), "int16", offset_factor=1), C: T.Buffer(({lanes},), "int32", offset_factor=1)):
    T.func_attr({{"tensor_intrin": "{name}"}})
    C[0:{lanes}] = C[0:{lanes}] + T.call_llvm_pure_intrin("int32x{lanes}", "{intrin}", A[0, 0:{pairs}], T.Broadcast(T.int16(1), {pairs}))
)",
                     fmt::arg("lanes", row.lanes), fmt::arg("name", row.name), fmt::arg("intrin", row.llvm_name),
                     fmt::arg("pairs", 2 * row.lanes));
}

// The layouts of one instruction. Where k is 1, b may have a dim for it. Where all lanes have an a of their own, as of
// windows of one filter for each channel, the lanes of each a[k] are side by side: c[n] += a[k, n] * b[n, k].
enum class Operands { kOneA, kOneAWithoutColumn, kAByLane };

// Returns the lanes of a as int32, each of which has the group that is multiplied in that lane.
std::string a_by_lane(const DotRow& row) {
  std::vector<int64_t> numbers;
  for (int lane = 0; lane < row.lanes; ++lane) {
    for (int k = 0; k < row.group; ++k) numbers.push_back(int64_t{k} * row.lanes + lane);
  }
  return fmt::format(R"(T.reinterpret("int32x{}", T.Shuffle([A[0, 0:{}]], [{}])))", row.lanes, row.lanes * row.group,
                     joined(numbers));
}

// Returns the text of both programs of a row.
std::string module_text(const DotRow& row, Operands operands) {
  auto factor = [&](DType dtype, const char* value) {
    return dtype == row.result ? value : fmt::format("T.Cast(\"{}\", {})", to_string(row.result), value);
  };
  auto lanes = [](int count) { return count < 0 ? fmt::format("T.vscale() * {}", -count) : fmt::format("{}", count); };
  std::string n = lanes(row.lanes);
  bool single = row.group == 1;  // no reduction
  const bool is_vector = operands == Operands::kOneAWithoutColumn, is_by_lane = operands == Operands::kAByLane;
  std::string params = fmt::format(
      R"(A: T.Buffer(({1},{6}), "{2}", offset_factor=1), B: T.Buffer(({0}, {5}), "{3}", offset_factor=1), C: T.Buffer(({0},), "{4}", offset_factor=1))",
      n, row.group, to_string(row.a), to_string(row.b), to_string(row.result), is_vector ? "" : lanes(row.group),
      is_by_lane ? n : "");
  std::string a =
      is_by_lane ? a_by_lane(row) : fmt::format(R"(T.Broadcast(T.reinterpret("int32", A[0:{}]), {}))", row.group, n);
  std::string b = fmt::format("B[{}0:{}]", is_vector ? "" : "0, ", lanes(row.lanes * row.group));
  if (!single && row.group * row.b.bits == 32)
    b = fmt::format(R"(T.reinterpret("{}", {}))", to_string(DType::int_(32).with_lanes(row.lanes)), b);
  std::string result = row.text;
  for (const auto& [name, text] : {std::pair("{a}", a), {"{b}", b}, {"{n}", n}, {"{bits}", lanes(32 * row.lanes)}})
    result = replaced(std::move(result), name, text);
  std::string loops = single ? fmt::format("i in range({})", n) : fmt::format("i, k in T.grid({}, {})", n, row.group);
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
                     fmt::arg("x", factor(row.a, single       ? "A[0]"
                                                 : is_by_lane ? "A[vk, vi]"
                                                              : "A[vk]")),
                     fmt::arg("y", factor(row.b, is_vector ? "B[vi]"
                                                 : single  ? "B[vi, 0]"
                                                           : "B[vi, vk]")),
                     fmt::arg("loops", loops), fmt::arg("axes", axes), fmt::arg("result", result));
}

// c[m, n] += a[m, k] * b[k, n]: m * n / lanes vectors of sums and one row of b, in registers.
struct ProductRow {
  const char* name;
  int m, n, k, lanes;
};

constexpr ProductRow kProducts[] = {
    {"fma_6x64x8_f32_avx512", 6, 64, 8, 16},
    {"fma_6x16x8_f32_avx2", 6, 16, 8, 8},
};

std::string module_text(const ProductRow& row) {
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

const std::vector<DotForm>& dot_forms() {
  static const std::vector<DotForm> kForms(dot_rows().begin(), dot_rows().end());
  return kForms;
}

const DotForm* find_dot_form(DType a, DType b, DType result, const Target& target) {
  auto form = std::ranges::find_if(dot_forms(), [&](const DotForm& f) {
    return f.a == a && f.b == b && f.result == result && f.lanes == target.vector_lanes(32) && f.figure &&
           target.*f.figure && target.dot_forms.contains(f.name);
  });
  return form == dot_forms().end() ? nullptr : &*form;
}

const TensorIntrins& builtin_tensor_intrins() {
  static const TensorIntrins kTable = [] {
    TensorIntrins table;
    for (const DotRow& row : dot_rows()) {
      if (!row.sum_of_pairs.empty()) {
        table.add(parse_tensor_intrin(module_text_of_pairs(row), row.name));
        continue;
      }
      TensorIntrin intrin = parse_tensor_intrin(module_text(row, Operands::kOneA), row.name);
      if (row.group == 1) {
        TensorIntrin vector = parse_tensor_intrin(module_text(row, Operands::kOneAWithoutColumn), row.name);
        vector.other_layouts.push_back(std::move(intrin));
        intrin = std::move(vector);
      } else if (row.lanes > 0) {
        intrin.other_layouts.push_back(parse_tensor_intrin(module_text(row, Operands::kAByLane), row.name));
      }
      table.add(std::move(intrin));
    }
    for (const PairRow& row : kPairs) table.add(parse_tensor_intrin(module_text(row), row.name));
    for (const ProductRow& row : kProducts) table.add(parse_tensor_intrin(module_text(row), row.name));
    for (TensorIntrin& intrin : tile_intrins()) table.add(std::move(intrin));
    return table;
  }();
  return kTable;
}

}  // namespace relaxc
