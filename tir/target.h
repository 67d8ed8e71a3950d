// A target describes the machine that code is generated for, as far as schedules and passes may ask about it. Rules are
// formulas over these figures and over the shares, limits and guesses that tir/rules/cost_model.h names. Parsing,
// LLVM's tables and host detection are in codegen/target.h, since only that room sees LLVM. docs/targets.md describes
// the figures for users.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <variant>

namespace relaxc {

struct Cache {
  int64_t bytes;
  int64_t line;       // bytes
  int64_t ways;       // associativity
  int64_t shared_by;  // the number of cores
  friend bool operator==(const Cache&, const Cache&) = default;
};

// The memory of one thread, which is its stack on a processor: that of the storage scope "local", and small buffers of
// the other scopes. The runtime allocates the buffers for which it has no room (relaxc_kernel_context in
// vm/kernel_abi.h).
struct LocalMemory {
  int64_t bytes;         // for all buffers of a kernel
  int64_t buffer_bytes;  // for one buffer of scope "local"
  int64_t other_bytes;   // for one buffer of any other scope
  friend bool operator==(const LocalMemory&, const LocalMemory&) = default;
};

// A default-constructed Target is the plain x86-64 of every PC; the other defaults are those of a server core of 2022.
struct Target {
  std::string triple = "x86_64-unknown-linux-gnu";
  std::string cpu = "x86-64";  // LLVM's name: "znver4", "x86-64-v3"
  std::string features;        // LLVM's list, sorted: "+avx2,-avx512f"; empty: what the cpu implies

  int64_t cores = 16;
  int vector_bits = 128;  // the widest vectors worth using
  int num_vector_registers = 16;
  bool has_fma = false;                 // a * b + c in one instruction
  bool has_float16_conversion = false;  // float16 <-> float32 in one instruction
  bool has_int8_dot = false;            // sums of products of bytes (vpdpbusd, sdot; pmaddwd, of widened ones)
  bool clamps_int8_dot = false;         // an instruction that clamps sums of two products of bytes to int16
  bool has_bfloat16_dot = false;        // sums of two products of bfloat16 (vdpbf16ps), as wide as vectors are
  bool has_int8_tiles = false;          // products of tiles of bytes in matrix registers (AMX)
  bool has_bfloat16_tiles = false;      // the same of bfloat16
  int64_t fma_ports = 2;                // full vectors multiplied and added in a cycle
  int64_t fma_latency = 4;              // cycles until a sum can be added to again
  int64_t load_ports = 2;               // full vectors loaded in a cycle
  Cache l1{int64_t{32} << 10, 64, 8, 1};
  Cache l2{int64_t{1} << 20, 64, 16, 1};
  Cache l3{int64_t{32} << 20, 64, 16, 16};
  double l2_bytes_per_cycle = 64;   // into L1, for one core
  double exposed_l2_latency = 0.4;  // the share of the latency of L2 that prefetching does not hide
  double load_delay = 0.05;         // cycles by which a load delays multiply-adds
  double elements_per_cycle = 2;    // of simple operations, on one core
  LocalMemory local{int64_t{256} << 10, int64_t{64} << 10, int64_t{16} << 10};
  double memory_bytes_per_cycle = 1.6;  // of one core, while all cores read
  int64_t wake_cycles = 8192;           // from the start of a parallel loop until another thread works, about 2 us
  // The names of the dot products whose features the cpu has (DotForm in tir/dot_forms.h), of any length,
  // and kByteTables. Rules use the products that fill a vector where has_int8_dot, clamps_int8_dot or has_bfloat16_dot
  // allows it.
  std::set<std::string, std::less<>> dot_forms;
  // Maps the name of a figure to its source. A figure that is missing here has its default value.
  std::map<std::string, std::string, std::less<>> sources;

  // Returns the lanes of a full vector of elements with that many bits.
  int vector_lanes(int element_bits) const { return vector_bits / element_bits; }
  int64_t vector_bytes() const { return vector_bits / 8; }
  // Returns the multiply-adds of float32 per cycle.
  int64_t products_per_cycle() const { return fma_ports * vector_lanes(32); }
  // Return the bytes of a cache that one core may count on.
  int64_t l1_of_core() const { return l1.bytes / l1.shared_by; }
  int64_t l2_of_core() const { return l2.bytes / l2.shared_by; }
  friend bool operator==(const Target&, const Target&) = default;
};

// The table has one row for each figure. Target files, print_target() and the documentation use its name.
using FigureMember = std::variant<bool*, int*, int64_t*, double*>;
struct FigureRow {
  const char* name;
  const char* doc;
  FigureMember (*in)(Target& target);
  bool is_capability = false;  // of the cpu: a file may take it away and cannot add it
};
std::span<const FigureRow> target_figures();
const FigureRow* find_figure(std::string_view name);

double get_figure(const FigureRow& row, const Target& target);
void set_figure(const FigureRow& row, Target& target, double value, std::string source);
// Returns the text of a target file (docs/targets.md). Each figure is followed by its source as a comment.
std::string print_target(const Target& target);

}  // namespace relaxc
