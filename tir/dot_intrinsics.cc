#include "tir/dot_intrinsics.h"

#include <algorithm>

namespace relaxc {

namespace {

constexpr DType kInt8 = DType::int_(8), kUInt8 = DType::uint(8), kInt16 = DType::int_(16), kUInt32 = DType::uint(32),
                kBFloat16 = DType::bfloat16();

constexpr DotIntrinsic dot(std::string_view name, DType result, DType a, DType b, int lanes, int group,
                           bool accumulates = true, bool saturates = false) {
  return {
      name,     result.with_lanes(lanes), a.with_lanes(lanes * group), b.with_lanes(lanes * group), group, accumulates,
      saturates};
}

// The rows follow Intel's and Arm's manuals. Operands may also have another vector type of the same number of bytes:
// LLVM 19 declares the operands of vpdpbusd as vectors of int32.
// clang-format off
constexpr DotIntrinsic kRows[] = {
    dot("llvm.x86.avx512.vpdpbusd.512", kInt32, kUInt8, kInt8, 16, 4),
    dot("llvm.x86.avx512.vpdpbusd.256", kInt32, kUInt8, kInt8, 8, 4),
    dot("llvm.x86.avx512.vpdpbusd.128", kInt32, kUInt8, kInt8, 4, 4),
    dot("llvm.x86.avx512.pmaddubs.w.512", kInt16, kUInt8, kInt8, 32, 2, false, true),
    dot("llvm.x86.avx2.pmadd.ub.sw", kInt16, kUInt8, kInt8, 16, 2, false, true),
    dot("llvm.x86.ssse3.pmadd.ub.sw.128", kInt16, kUInt8, kInt8, 8, 2, false, true),
    dot("llvm.x86.avx512.pmaddw.d.512", kInt32, kInt16, kInt16, 16, 2, false),
    dot("llvm.x86.avx2.pmadd.wd", kInt32, kInt16, kInt16, 8, 2, false),
    dot("llvm.x86.sse2.pmadd.wd", kInt32, kInt16, kInt16, 4, 2, false),
    dot("llvm.x86.avx512bf16.dpbf16ps.512", kFloat32, kBFloat16, kBFloat16, 16, 2),
    dot("llvm.x86.avx512bf16.dpbf16ps.256", kFloat32, kBFloat16, kBFloat16, 8, 2),
    dot("llvm.x86.avx512bf16.dpbf16ps.128", kFloat32, kBFloat16, kBFloat16, 4, 2),
    dot("llvm.aarch64.neon.sdot.v4i32.v16i8", kInt32, kInt8, kInt8, 4, 4),
    // The operands have vscale parts, and each part has the lanes given here.
    dot("llvm.aarch64.sve.sdot.nxv4i32", kInt32, kInt8, kInt8, 4, 4),
    dot("llvm.aarch64.sve.udot.nxv4i32", kUInt32, kUInt8, kUInt8, 4, 4),
    dot("llvm.aarch64.neon.udot.v4i32.v16i8", kUInt32, kUInt8, kUInt8, 4, 4),
    dot("llvm.aarch64.neon.usdot.v4i32.v16i8", kInt32, kUInt8, kInt8, 4, 4),
};
// clang-format on

// The features that families of intrinsics need. The first prefix that fits counts. Intrinsics of AVX-512 do not name
// the extension that they belong to; those that x86-64-v4 lacks stand before the others. AVX-VNNI has no 512 bits.
constexpr std::pair<std::string_view, std::string_view> kFamilies[] = {
    {"llvm.x86.avx512.vpdpbusd.512", "avx512vnni+avx512vl"},
    {"llvm.x86.avx512.vpdpbusds.512", "avx512vnni+avx512vl"},
    {"llvm.x86.avx512.vpdpwssd.512", "avx512vnni+avx512vl"},
    {"llvm.x86.avx512.vpdpwssds.512", "avx512vnni+avx512vl"},
    {"llvm.x86.avx512.vpdp", "avx512vnni+avx512vl|avxvnni"},
    {"llvm.x86.avx512.vpmadd52", "avx512ifma+avx512vl"},
    {"llvm.x86.avx512.permvar.qi", "avx512vbmi+avx512vl"},
    {"llvm.x86.avx512.vpermi2var.qi", "avx512vbmi+avx512vl"},
    {"llvm.x86.avx512.pmultishift", "avx512vbmi+avx512vl"},
    {"llvm.x86.avx512.vpshufbitqmb", "avx512bitalg+avx512vl"},
    {"llvm.x86.avx512.mask.compress", "avx512vbmi2+avx512vl"},
    {"llvm.x86.avx512.mask.expand", "avx512vbmi2+avx512vl"},
    {"llvm.x86.avx512.vp2intersect", "avx512vp2intersect+avx512vl"},
    {"llvm.x86.avx512.conflict", "avx512cd+avx512vl"},
    {"llvm.x86.avx512.exp2", ""},
    {"llvm.x86.avx512.rcp28", ""},
    {"llvm.x86.avx512.rsqrt28", ""},
    {"llvm.x86.avx512.gatherpf", ""},
    {"llvm.x86.avx512.scatterpf", ""},
    {"llvm.x86.avx512.", "avx512f+avx512bw+avx512cd+avx512dq+avx512vl"},
    {"llvm.x86.avx512bf16.", "avx512bf16+avx512vl"},
    {"llvm.x86.tdpbf16ps", "amx-tile+amx-bf16"},
    {"llvm.x86.tdpb", "amx-tile+amx-int8"},
    {"llvm.x86.tile", "amx-tile"},
    {"llvm.x86.ldtilecfg", "amx-tile"},
    {"llvm.x86.avx2.", "avx2"},
    {"llvm.x86.avx.", "avx"},
    {"llvm.x86.fma.", "fma"},
    {"llvm.x86.sse42.", "sse4.2"},
    {"llvm.x86.sse41.", "sse4.1"},
    {"llvm.x86.ssse3.", "ssse3"},
    {"llvm.x86.sse3.", "sse3"},
    {"llvm.x86.sse2.", "sse2"},
    {"llvm.x86.sse.", "sse"},
    {"llvm.aarch64.neon.sdot", "dotprod"},
    {"llvm.aarch64.neon.udot", "dotprod"},
    {"llvm.aarch64.neon.usdot", "i8mm"},
    {"llvm.aarch64.neon.usmmla", "i8mm"},
    {"llvm.aarch64.neon.smmla", "i8mm"},
    {"llvm.aarch64.neon.ummla", "i8mm"},
    {"llvm.aarch64.neon.bf", "bf16"},
    {"llvm.aarch64.neon.", "neon"},
    {"llvm.aarch64.sve.", "sve"},
};

}  // namespace

std::span<const DotIntrinsic> dot_intrinsics() { return kRows; }
std::span<const std::pair<std::string_view, std::string_view>> intrinsic_families() { return kFamilies; }

const DotIntrinsic* find_dot_intrinsic(std::string_view name) {
  auto row = std::ranges::find(kRows, name, &DotIntrinsic::name);
  return row == std::end(kRows) ? nullptr : row;
}

std::string_view features_of_intrinsic(std::string_view name) {
  auto fits = [&](const auto& family) { return name.starts_with(family.first); };
  auto family = std::ranges::find_if(kFamilies, fits);
  return family == std::end(kFamilies) ? std::string_view() : family->second;
}

}  // namespace relaxc
