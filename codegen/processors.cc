#include <fmt/format.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCSchedule.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>

#include "codegen/llvm_init.h"

namespace relaxc::codegen {

namespace {

// Sizes are in KiB. L3 is that of a typical part, or of one group of cores that share it.
struct Processor {
  const char* cpus;  // LLVM's names with a space around each
  int l1, l1_ways, l2, l2_ways, l3, l3_ways, l3_shared_by;
  int fma_ports, load_ports;  // for vectors of full width; 0: taken from LLVM
};
// The figures are from Intel's and AMD's optimization manuals and Arm's technical reference manuals.
constexpr Processor kProcessors[] = {
    {" haswell broadwell ", 32, 8, 256, 8, 30 << 10, 20, 12, 2, 0},
    {" skylake ", 32, 8, 256, 4, 8 << 10, 16, 4, 2, 0},
    {" skylake-avx512 cascadelake cooperlake ", 32, 8, 1024, 16, 28160, 11, 20, 2, 0},
    {" icelake-server ", 48, 12, 1280, 20, 48 << 10, 12, 32, 2, 0},
    {" sapphirerapids emeraldrapids ", 48, 12, 2048, 16, 60 << 10, 15, 32, 2, 2},
    {" znver1 ", 32, 8, 512, 8, 8 << 10, 16, 4, 0, 0},
    {" znver2 ", 32, 8, 512, 8, 16 << 10, 16, 4, 2, 0},
    {" znver3 ", 32, 8, 512, 8, 32 << 10, 16, 8, 2, 0},
    {" znver4 ", 32, 8, 1024, 8, 32 << 10, 16, 8, 1, 0},
    {" znver5 ", 48, 12, 1024, 16, 32 << 10, 16, 8, 2, 0},
    {" neoverse-n1 ", 64, 4, 1024, 8, 32 << 10, 16, 64, 2, 0},
    {" neoverse-v1 ", 64, 4, 1024, 8, 32 << 10, 16, 64, 2, 0},
};

// A figure of 0 is not known.
void set(Target& target, std::string_view figure, double value, const std::string& source) {
  if (value > 0) set_figure(*find_figure(figure), target, value, source);
}

// Instructions that represent multiply-adds and loads of vectors of `bits` bits.
struct Probe {
  bool is_x86;
  int bits;
  std::string_view fma, load;
};
constexpr Probe kProbes[] = {{true, 128, "VFMADD231PSr", "VMOVUPSrm"},
                             {true, 256, "VFMADD231PSYr", "VMOVUPSYrm"},
                             {true, 512, "VFMADD231PSZr", "VMOVUPSZrm"},
                             {false, 128, "FMLAv4f32", "LDRQui"}};

// Returns the opcodes of the probes' instructions, which are the same for all processors of an architecture.
using Opcodes = llvm::StringMap<unsigned>;
Opcodes find_opcodes(const llvm::Target& llvm_target) {
  Opcodes result;
  std::unique_ptr<llvm::MCInstrInfo> instructions(llvm_target.createMCInstrInfo());
  for (unsigned opcode = 0; instructions && opcode < instructions->getNumOpcodes(); ++opcode) {
    std::string_view name = instructions->getName(opcode);
    if (std::ranges::any_of(kProbes, [&](const Probe& p) { return p.fma == name || p.load == name; }))
      result[name] = opcode;
  }
  return result;
}
const Opcodes& opcodes_of(const llvm::Target& llvm_target, bool is_x86) {
  if (is_x86) {
    static const Opcodes kX86 = find_opcodes(llvm_target);
    return kX86;
  }
  static const Opcodes kAArch64 = find_opcodes(llvm_target);
  return kAArch64;
}

// Parses texts of sysfs such as "48K" and "0-3,8-11".
int64_t read_number(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  char unit = 0;
  if (!(file >> number)) return 0;
  file >> unit;
  return unit == 'K' ? number << 10 : unit == 'M' ? number << 20 : number;
}
int64_t count_cpus(const std::string& path) {
  std::ifstream file(path);
  int64_t count = 0;
  for (std::string range; std::getline(file, range, ',');) {
    int first = 0, last = 0, numbers = std::sscanf(range.c_str(), "%d-%d", &first, &last);
    if (numbers > 0) count += numbers == 2 ? last - first + 1 : 1;
  }
  return count;
}

}  // namespace

void add_llvm_figures(Target& target, const llvm::Target& llvm_target, const llvm::MCSubtargetInfo& info) {
  const llvm::MCSchedModel& model = info.getSchedModel();
  llvm::Triple triple(target.triple);
  // A level such as x86-64-v3 is not a processor; LLVM gives it the scheduling model of a processor from 2013.
  bool is_level = target.cpu.starts_with("x86-64");
  bool is_known = !is_level && target.has_fma && (triple.isX86() || triple.isAArch64()) && model.hasInstrSchedModel();
  auto probe = std::find_if(std::begin(kProbes), std::end(kProbes),
                            [&](const Probe& p) { return p.is_x86 == triple.isX86() && p.bits == target.vector_bits; });
  if (!is_known || probe == std::end(kProbes)) return;
  const Opcodes& opcodes = opcodes_of(llvm_target, triple.isX86());
  std::unique_ptr<llvm::MCInstrInfo> instructions(llvm_target.createMCInstrInfo());
  auto class_of = [&](std::string_view name) -> const llvm::MCSchedClassDesc* {
    unsigned opcode = opcodes.lookup(name);
    if (opcode == 0) return nullptr;
    const llvm::MCSchedClassDesc* found = model.getSchedClassDesc(instructions->get(opcode).getSchedClass());
    return found && found->isValid() && !found->isVariant() ? found : nullptr;
  };
  auto per_cycle = [&](const llvm::MCSchedClassDesc& desc) {
    return std::max(1.0, std::round(1 / llvm::MCSchedModel::getReciprocalThroughput(info, desc)));
  };
  const std::string source = fmt::format("LLVM's scheduling model of {}", target.cpu);
  if (const auto* fma = class_of(probe->fma)) {
    set(target, "fma_ports", per_cycle(*fma), source);
    set(target, "fma_latency", llvm::MCSchedModel::computeInstrLatency(info, *fma), source);
  }
  if (const auto* load = class_of(probe->load)) set(target, "load_ports", per_cycle(*load), source);
}

void add_processor_figures(Target& target) {
  for (const Processor& row : kProcessors) {
    if (std::string_view(row.cpus).find(fmt::format(" {} ", target.cpu)) == std::string_view::npos) continue;
    const std::pair<const char*, int> figures[] = {
        {"l1.bytes", row.l1 << 10},         {"l1.ways", row.l1_ways},     {"l2.bytes", row.l2 << 10},
        {"l2.ways", row.l2_ways},           {"l3.bytes", row.l3 << 10},   {"l3.ways", row.l3_ways},
        {"l3.shared_by", row.l3_shared_by}, {"fma_ports", row.fma_ports}, {"load_ports", row.load_ports}};
    for (const auto& [figure, value] : figures) set(target, figure, value, fmt::format("the manual of {}", target.cpu));
  }
}

void add_host_figures(Target& target) {
  const std::string root = "/sys/devices/system/cpu/", source = "this machine (sysfs)";
  set(target, "cores", static_cast<double>(count_cpus(root + "online")), source);
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("{}cpu0/cache/index{}/", root, index);
    std::string type;
    std::ifstream(folder + "type") >> type;
    int64_t level = read_number(folder + "level");
    if (type.empty() || type == "Instruction" || level < 1 || level > 3) continue;
    const std::pair<const char*, int64_t> figures[] = {{"bytes", read_number(folder + "size")},
                                                       {"line", read_number(folder + "coherency_line_size")},
                                                       {"ways", read_number(folder + "ways_of_associativity")},
                                                       {"shared_by", count_cpus(folder + "shared_cpu_list")}};
    for (const auto& [figure, value] : figures)
      set(target, fmt::format("l{}.{}", level, figure), static_cast<double>(value), source);
  }
}

}  // namespace relaxc::codegen
