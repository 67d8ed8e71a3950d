// The machine that code is generated for. Schedules and passes read it; parsing and host detection are in
// codegen/target.h, since only that room sees LLVM.
#pragma once
#include <string>

namespace relaxc {

// A default-made Target is the plain x86-64 of every 64-bit PC.
struct Target {
  std::string triple = "x86_64-unknown-linux-gnu";
  std::string cpu = "x86-64";  // LLVM's name: "znver4", "x86-64-v3"
  std::string features;        // LLVM's list, sorted: "+avx2,-avx512f"; empty: what the cpu implies
  int vector_bits = 128;       // the widest vectors worth using
  int num_vector_registers = 16;
  bool has_fma = false;                   // a * b + c in one instruction
  bool has_float16_conversion = false;    // float16 <-> float32 in one instruction
  bool has_int8_dot = false;              // sums of four products of uint8 and int8 (vpdpbusd), as wide as vectors are
  bool has_bfloat16_dot = false;          // sums of two products of bfloat16 (vdpbf16ps)
  bool has_masked_vector_access = false;  // masked loads and stores of every element size (AVX-512)

  // Lanes of a full vector of elements with that many bits.
  int vector_lanes(int element_bits) const { return vector_bits / element_bits; }
  friend bool operator==(const Target&, const Target&) = default;
};

}  // namespace relaxc
