#include "bench/kernels/peaks.h"

#include "vm/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace relaxc::bench {

#if defined(__x86_64__)

namespace {

// Twelve accumulators, more than latency times issue width (4 * 2), and two operands; all zero. In assembly, since a
// compiler drops values that are not read.
#define TWELVE(before, after)                                                                                          \
  before "0" after "\n" before "1" after "\n" before "2" after "\n" before "3" after "\n" before "4" after "\n" before \
         "5" after "\n" before "6" after "\n" before "7" after "\n" before "8" after "\n" before "9" after "\n" before \
         "10" after "\n" before "11" after "\n"
#define CLOBBERS \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13"
#define ZERO "vpxor %%xmm12,%%xmm12,%%xmm12\nvpxor %%xmm13,%%xmm13,%%xmm13\n" TWELVE("vpxor %%xmm12,%%xmm12,%%xmm", "")
#define LOOP(name, features, op, bits)                                                                              \
  __attribute__((target(features))) void name(int64_t iterations) {                                                 \
    asm volatile(ZERO                                                                                               \
                 ".p2align 5\n1:\n" TWELVE(op " %%" bits "mm12,%%" bits "mm13,%%" bits "mm", "") "dec %0\njnz 1b\n" \
                 : "+r"(iterations)::CLOBBERS, "cc");                                                               \
  }

constexpr int64_t kInstructions = 12;  // per iteration
LOOP(float32_512, "avx512f", "vfmadd231ps", "z")
LOOP(int8_512, "avx512f", "vpdpbusd", "z")
LOOP(bfloat16_512, "avx512f", "vdpbf16ps", "z")
LOOP(float32_256, "avx2,fma", "vfmadd231ps", "y")

// The best speed of a product: the multiply-adds of a tile of 6 x 64 with its ten loads, all from one place.
#define ROW(offset, a, b, c, d)                                                                                      \
  "vbroadcastss " offset "(%1),%%zmm28\nvfmadd231ps %%zmm28,%%zmm24,%%zmm" a "\nvfmadd231ps %%zmm28,%%zmm25,%%zmm" b \
  "\nvfmadd231ps %%zmm28,%%zmm26,%%zmm" c "\nvfmadd231ps %%zmm28,%%zmm27,%%zmm" d "\n"
__attribute__((target("avx512f"))) void float32_512_with_loads(int64_t iterations) {
  alignas(64) static const float kZeros[64] = {};
  asm volatile(
      ".p2align 5\n1:\nvmovups (%1),%%zmm24\nvmovups 64(%1),%%zmm25\nvmovups 128(%1),%%zmm26\n"
      "vmovups 192(%1),%%zmm27\n" ROW("0", "0", "1", "2", "3") ROW("4", "4", "5", "6", "7")
          ROW("8", "8", "9", "10", "11") ROW("12", "12", "13", "14", "15") ROW("16", "16", "17", "18", "19")
              ROW("20", "20", "21", "22", "23") "dec %0\njnz 1b\n"
      : "+r"(iterations)
      : "r"(kZeros)
      : CLOBBERS, "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",
        "xmm25", "xmm26", "xmm27", "xmm28", "memory", "cc");
}

// Eight tiles of 16 rows of 64 bytes: six of sums, more than latency by issue rate (52 / 16 cycles), and two operands.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
#define EACH_TILE(before, after)                                                                                       \
  before "0" after "\n" before "1" after "\n" before "2" after "\n" before "3" after "\n" before "4" after "\n" before \
         "5" after "\n"
#define TILE_LOOP(name, op)                                                                                 \
  void name(int64_t iterations) {                                                                           \
    static const TileConfig kConfig;                                                                        \
    asm volatile("ldtilecfg %1\ntilezero %%tmm6\ntilezero %%tmm7\n" EACH_TILE(                              \
                     "tilezero %%tmm", "") ".p2align 5\n1:\n" EACH_TILE(op " %%tmm7,%%tmm6,%%tmm",          \
                                                                        "") "dec %0\njnz 1b\ntilerelease\n" \
                 : "+r"(iterations)                                                                         \
                 : "m"(kConfig)                                                                             \
                 : "cc");                                                                                   \
  }
constexpr int64_t kTileInstructions = 6;  // per iteration
TILE_LOOP(int8_tiles, "tdpbusd")
TILE_LOOP(bfloat16_tiles, "tdpbf16ps")

struct Loop {
  void (*run)(int64_t iterations) = nullptr;
  int64_t products = 0;  // of one instruction
  int64_t instructions = kInstructions;
};

Loop find_loop(Peak peak) {
  bool wide = __builtin_cpu_supports("avx512f");
  switch (peak) {
    case Peak::kFloat32:
      if (wide) return {float32_512, 16};
      if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {float32_256, 8};
      return {};
    case Peak::kFloat32WithLoads:
      return wide ? Loop{float32_512_with_loads, 16, 24} : Loop{};
    case Peak::kInt8:
      return wide && __builtin_cpu_supports("avx512vnni") ? Loop{int8_512, 64} : Loop{};
    case Peak::kBFloat16:
      return wide && __builtin_cpu_supports("avx512bf16") ? Loop{bfloat16_512, 32} : Loop{};
    // The system lets only a process that asks for tiles use them, which host_has_feature does.
    case Peak::kInt8Tiles:
      return vm::host_has_feature("amx-int8") ? Loop{int8_tiles, 16 * 16 * 64, kTileInstructions} : Loop{};
    case Peak::kBFloat16Tiles:
      return vm::host_has_feature("amx-bf16") ? Loop{bfloat16_tiles, 16 * 16 * 32, kTileInstructions} : Loop{};
  }
  return {};
}

}  // namespace

int64_t run_peak_loop(Peak peak, int64_t work) {
  Loop loop = find_loop(peak);
  if (!loop.run) return 0;
  int64_t each = loop.products * loop.instructions, iterations = work / each + 1;
  loop.run(iterations);
  return iterations * each;
}

Peak fastest_peak(Peak peak) {
  if (peak == Peak::kInt8 && find_loop(Peak::kInt8Tiles).run) return Peak::kInt8Tiles;
  if (peak == Peak::kBFloat16 && find_loop(Peak::kBFloat16Tiles).run) return Peak::kBFloat16Tiles;
  return peak;
}

#else

int64_t run_peak_loop(Peak, int64_t) { return 0; }
Peak fastest_peak(Peak peak) { return peak; }

#endif

}  // namespace relaxc::bench
