// The rates of this processor's multiply-add instructions, measured by loops of independent ones on registers.
#pragma once
#include <cstdint>

namespace relaxc::bench {

enum class Peak : uint8_t { kFloat32, kFloat32WithLoads, kInt8, kBFloat16 };

// Runs about `work` multiply-adds (products) of that kind and returns how many it ran; 0: the processor has no such
// instruction (float32: no FMA).
int64_t run_peak_loop(Peak peak, int64_t work);

}  // namespace relaxc::bench
