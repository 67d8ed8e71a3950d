#include "bench/kernels/peaks.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace relaxc::bench {

#if defined(__x86_64__)

namespace {

// Twelve accumulators, more than latency times issue width (4 * 2), and two operands; all zero. In assembly, since a
// compiler drops what nobody reads.
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

struct Loop {
  void (*run)(int64_t iterations) = nullptr;
  int64_t products = 0;  // of one instruction
};

Loop find_loop(Peak peak) {
  bool wide = __builtin_cpu_supports("avx512f");
  switch (peak) {
    case Peak::kFloat32:
      if (wide) return {float32_512, 16};
      if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {float32_256, 8};
      return {};
    case Peak::kInt8:
      return wide && __builtin_cpu_supports("avx512vnni") ? Loop{int8_512, 64} : Loop{};
    case Peak::kBFloat16:
      return wide && __builtin_cpu_supports("avx512bf16") ? Loop{bfloat16_512, 32} : Loop{};
  }
  return {};
}

}  // namespace

int64_t run_peak_loop(Peak peak, int64_t work) {
  Loop loop = find_loop(peak);
  if (!loop.run) return 0;
  int64_t iterations = work / (loop.products * kInstructions) + 1;
  loop.run(iterations);
  return iterations * loop.products * kInstructions;
}

#else

int64_t run_peak_loop(Peak, int64_t) { return 0; }

#endif

}  // namespace relaxc::bench
