#include "tir/dot_intrinsics.h"

#include <algorithm>

namespace relaxc {

namespace {

constexpr DType vector(DType element, int lanes) {
  return {element.code, element.bits, static_cast<decltype(DType::lanes)>(lanes)};
}
constexpr DType s8(int lanes) { return vector(DType::int_(8), lanes); }
constexpr DType u8(int lanes) { return vector(DType::uint(8), lanes); }
constexpr DType s16(int lanes) { return vector(DType::int_(16), lanes); }
constexpr DType s32(int lanes) { return vector(DType::int_(32), lanes); }
constexpr DType u32(int lanes) { return vector(DType::uint(32), lanes); }
constexpr DType f32(int lanes) { return vector(DType::float_(32), lanes); }
constexpr DType bf16(int lanes) { return vector(DType::bfloat16(), lanes); }

// The rows follow Intel's and Arm's manuals. Operands may also have another vector type of the same number of bytes:
// LLVM 19 declares the operands of vpdpbusd as vectors of int32.
// clang-format off
constexpr DotIntrinsic kRows[] = {
    {"llvm.x86.avx512.vpdpbusd.512", s32(16), u8(64), s8(64), 4, true},
    {"llvm.x86.avx512.vpdpbusd.256", s32(8), u8(32), s8(32), 4, true},
    {"llvm.x86.avx512.vpdpbusd.128", s32(4), u8(16), s8(16), 4, true},
    {"llvm.x86.avx512.pmaddubs.w.512", s16(32), u8(64), s8(64), 2, false, true},
    {"llvm.x86.avx2.pmadd.ub.sw", s16(16), u8(32), s8(32), 2, false, true},
    {"llvm.x86.ssse3.pmadd.ub.sw.128", s16(8), u8(16), s8(16), 2, false, true},
    {"llvm.x86.avx512.pmaddw.d.512", s32(16), s16(32), s16(32), 2, false},
    {"llvm.x86.avx2.pmadd.wd", s32(8), s16(16), s16(16), 2, false},
    {"llvm.x86.sse2.pmadd.wd", s32(4), s16(8), s16(8), 2, false},
    {"llvm.x86.avx512bf16.dpbf16ps.512", f32(16), bf16(32), bf16(32), 2, true},
    {"llvm.x86.avx512bf16.dpbf16ps.256", f32(8), bf16(16), bf16(16), 2, true},
    {"llvm.x86.avx512bf16.dpbf16ps.128", f32(4), bf16(8), bf16(8), 2, true},
    {"llvm.aarch64.neon.sdot.v4i32.v16i8", s32(4), s8(16), s8(16), 4, true},
    // The operands have vscale parts, and each part has the lanes given here.
    {"llvm.aarch64.sve.sdot.nxv4i32", s32(4), s8(16), s8(16), 4, true},
    {"llvm.aarch64.sve.udot.nxv4i32", u32(4), u8(16), u8(16), 4, true},
    {"llvm.aarch64.neon.udot.v4i32.v16i8", u32(4), u8(16), u8(16), 4, true},
    {"llvm.aarch64.neon.usdot.v4i32.v16i8", s32(4), u8(16), s8(16), 4, true},
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
