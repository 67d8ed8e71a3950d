// The rates of this processor's multiply-add instructions, measured by loops of independent ones on registers.
#pragma once
#include <cstdint>

namespace relaxc::bench {

// Tiles: on matrix registers (Intel's AMX); the others on vectors.
enum class Peak : uint8_t { kFloat32, kFloat32WithLoads, kInt8, kBFloat16, kInt8Tiles, kBFloat16Tiles };

// Runs about `work` multiply-adds (products) of that kind and returns how many it ran; 0: the processor has no such
// instruction (float32: no FMA).
int64_t run_peak_loop(Peak peak, int64_t work);
// Returns the fastest way of this processor to compute the same products: on matrix registers where it has them.
Peak fastest_peak(Peak peak);

}  // namespace relaxc::bench
