#include "vm/cpu.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"
#include "support/short_text.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__riscv) && __riscv_xlen == 64
#include <sys/auxv.h>
#include <unistd.h>
#endif

namespace relaxc::vm {

namespace {

// The CPUID bit of an x86 feature, and the registers whose state the system must save for it (Intel's Software
// Developer's Manual, volume 2, CPUID, and volume 1, chapter 13; AMD's manual, volume 3, appendix D).
enum Register : uint8_t { kEax, kEbx, kEcx, kEdx };
enum State : uint32_t { kNone = 0, kYmm = 0x6, kZmm = 0xe6, kTiles = 0x60000, kApx = 1 << 19 };  // bits of XCR0
struct X86Feature {
  ShortText<18> name;
  uint32_t leaf, subleaf;
  Register where;
  int bit;
  State state;
};
// The features that LLVM uses for ordinary code when the target has them, and those of kernels on matrix tiles.
// Instructions for encryption and the system come only from intrinsics that kernels cannot name
// (codegen/emit_builtin.cc), so code does not need those.
constexpr X86Feature kX86[] = {
    {"sse3", 1, 0, kEcx, 0, kNone},
    {"ssse3", 1, 0, kEcx, 9, kNone},
    {"cx16", 1, 0, kEcx, 13, kNone},
    {"sse4.1", 1, 0, kEcx, 19, kNone},
    {"sse4.2", 1, 0, kEcx, 20, kNone},
    {"movbe", 1, 0, kEcx, 22, kNone},
    {"popcnt", 1, 0, kEcx, 23, kNone},
    {"sahf", 0x80000001, 0, kEcx, 0, kNone},
    {"lzcnt", 0x80000001, 0, kEcx, 5, kNone},
    {"sse4a", 0x80000001, 0, kEcx, 6, kNone},
    {"prfchw", 0x80000001, 0, kEcx, 8, kNone},
    {"xop", 0x80000001, 0, kEcx, 11, kYmm},
    {"fma4", 0x80000001, 0, kEcx, 16, kYmm},
    {"tbm", 0x80000001, 0, kEcx, 21, kNone},
    {"bmi", 7, 0, kEbx, 3, kNone},
    {"bmi2", 7, 0, kEbx, 8, kNone},
    {"adx", 7, 0, kEbx, 19, kNone},
    {"gfni", 7, 0, kEcx, 8, kNone},
    {"avx", 1, 0, kEcx, 28, kYmm},
    {"f16c", 1, 0, kEcx, 29, kYmm},
    {"fma", 1, 0, kEcx, 12, kYmm},
    {"avx2", 7, 0, kEbx, 5, kYmm},
    {"avxvnni", 7, 1, kEax, 4, kYmm},
    {"avxifma", 7, 1, kEax, 23, kYmm},
    {"avxneconvert", 7, 1, kEdx, 5, kYmm},
    {"avxvnniint8", 7, 1, kEdx, 4, kYmm},
    {"avxvnniint16", 7, 1, kEdx, 10, kYmm},
    {"avx512f", 7, 0, kEbx, 16, kZmm},
    {"avx512dq", 7, 0, kEbx, 17, kZmm},
    {"avx512ifma", 7, 0, kEbx, 21, kZmm},
    {"avx512cd", 7, 0, kEbx, 28, kZmm},
    {"avx512bw", 7, 0, kEbx, 30, kZmm},
    {"avx512vl", 7, 0, kEbx, 31, kZmm},
    {"avx512vbmi", 7, 0, kEcx, 1, kZmm},
    {"avx512vbmi2", 7, 0, kEcx, 6, kZmm},
    {"avx512vnni", 7, 0, kEcx, 11, kZmm},
    {"avx512bitalg", 7, 0, kEcx, 12, kZmm},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kZmm},
    {"avx512fp16", 7, 0, kEdx, 23, kZmm},
    {"avx512bf16", 7, 1, kEax, 5, kZmm},
    {"amx-bf16", 7, 0, kEdx, 22, kTiles},
    {"amx-tile", 7, 0, kEdx, 24, kTiles},
    {"amx-int8", 7, 0, kEdx, 25, kTiles},
    // One bit covers all of APX.
    {"egpr", 7, 1, kEdx, 21, kApx},
    {"push2pop2", 7, 1, kEdx, 21, kApx},
    {"ppx", 7, 1, kEdx, 21, kApx},
    {"ndd", 7, 1, kEdx, 21, kApx},
    {"ccmp", 7, 1, kEdx, 21, kApx},
    {"nf", 7, 1, kEdx, 21, kApx},
    {"cf", 7, 1, kEdx, 21, kApx},
    {"zu", 7, 1, kEdx, 21, kApx},
};

// Bits of AT_HWCAP and AT_HWCAP2 (Linux, Documentation/arch/arm64/elf_hwcaps.rst).
struct Arm64Feature {
  std::string_view name;
  int word;  // 1: AT_HWCAP, 2: AT_HWCAP2
  int bit;
};
constexpr Arm64Feature kArm64[] = {
    {"neon", 1, 1},     {"crc", 1, 7},        {"lse", 1, 8},    {"fullfp16", 1, 10}, {"rdm", 1, 12},
    {"jsconv", 1, 13},  {"complxnum", 1, 14}, {"rcpc", 1, 15},  {"dotprod", 1, 20},  {"sve", 1, 22},
    {"fp16fml", 1, 23}, {"sve2", 2, 1},       {"flagm", 1, 27}, {"i8mm", 2, 13},     {"bf16", 2, 14},
};

// Extensions of one letter are bits of AT_HWCAP, that of 'a' is bit 0; others are bits of the value of the key
// IMA_EXT_0 of the system call riscv_hwprobe (Linux, Documentation/arch/riscv/hwprobe.rst).
struct Riscv64Feature {
  std::string_view name;
  int probe_bit;
};
constexpr Riscv64Feature kRiscv64[] = {
    {"m", -1}, {"a", -1}, {"f", -1}, {"d", -1}, {"c", -1}, {"v", -1}, {"zba", 3}, {"zbb", 4}, {"zbs", 5},
};

// The host lacks the features of other architectures.
bool has(const auto*) { return false; }
#if defined(__x86_64__)
constexpr std::string_view kHost = "x86_64";

uint64_t saved_states() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  bool system_saves = __get_cpuid(1, &a, &b, &c, &d) && (c >> 27 & 1) != 0;  // OSXSAVE
  if (!system_saves) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

// Returns whether Linux lets this process use matrix tiles, for which it has to be asked: threads then save 8 KiB more
// (Linux, Documentation/arch/x86/xstate.rst).
bool may_use_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, a number of XCR0's bit
  static const bool is_granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return is_granted;
#else
  return false;
#endif
}

bool has(const X86Feature* feature) {
  std::array<uint32_t, 4> registers{};
  if (!feature || !__get_cpuid_count(feature->leaf, feature->subleaf, &registers[kEax], &registers[kEbx],
                                     &registers[kEcx], &registers[kEdx]))
    return false;
  bool present = (registers[feature->where] >> feature->bit & 1) != 0;
  return present && (saved_states() & feature->state) == feature->state &&
         (feature->state != kTiles || may_use_tiles());
}
#elif defined(__aarch64__)
constexpr std::string_view kHost = "aarch64";
bool has(const Arm64Feature* feature) {
  return feature && (getauxval(feature->word == 1 ? AT_HWCAP : AT_HWCAP2) >> feature->bit & 1) != 0;
}
#elif defined(__riscv) && __riscv_xlen == 64
constexpr std::string_view kHost = "riscv64";

// Returns the bits of the extensions that all processors have, none where the system cannot tell.
uint64_t probed_extensions() {
  constexpr long kHwprobe = 258;
  struct {
    int64_t key;
    uint64_t value;
  } pair = {4, 0};
  return syscall(kHwprobe, &pair, 1, 0, nullptr, 0) == 0 && pair.key == 4 ? pair.value : 0;
}

bool has(const Riscv64Feature* feature) {
  if (!feature) return false;
  if (feature->probe_bit >= 0) return (probed_extensions() >> feature->probe_bit & 1) != 0;
  return (getauxval(AT_HWCAP) >> (feature->name[0] - 'a') & 1) != 0;
}
#else
constexpr std::string_view kHost = "another architecture";
#endif

}  // namespace

std::vector<std::string_view> cpu_features(std::string_view architecture) {
  if (architecture == "x86_64") return map_each(kX86, [](const X86Feature& row) { return row.name.view(); });
  if (architecture == "aarch64") return map_each(kArm64, &Arm64Feature::name);
  if (architecture == "riscv64") return map_each(kRiscv64, &Riscv64Feature::name);
  return {};
}

std::string_view host_architecture() { return kHost; }
bool host_has_feature(std::string_view feature) {
  auto has_row = [&](const auto& rows) {
    return std::ranges::any_of(rows, [&](const auto& row) { return row.name == feature && has(&row); });
  };
  return has_row(kX86) || has_row(kArm64) || has_row(kRiscv64);
}

std::string why_host_cannot_run(const Executable& executable) {
  const std::string* architecture = find_value(executable.metadata, kArchitectureKey);
  if (architecture && *architecture != kHost)
    return formatted(
        "the machine code is for {}, this machine is {}; compile the model with --target=host on this machine",
        printable(*architecture), kHost);
  std::string needed = copy_value(executable.metadata, kCpuFeaturesKey).value_or("");
  std::vector<std::string> missing;
  for (std::string_view feature : parts_of(needed, ',')) {
    if (!host_has_feature(feature)) missing.push_back(printable(feature));
  }
  if (missing.empty()) return {};
  return formatted(
      "the machine code needs a CPU with {}, which this one lacks; compile the model with --target=host here, "
      "or with a target that all of your machines can run, such as --target=x86-64-v2",
      joined(missing));
}

}  // namespace relaxc::vm
