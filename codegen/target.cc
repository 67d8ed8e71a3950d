#include "codegen/target.h"

#include <fmt/format.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <vector>

#include "codegen/llvm_init.h"
#include "support/check.h"
#include "support/diagnostic.h"
#include "support/file_kind.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/analysis/byte_tables.h"
#include "tir/dot_intrinsics.h"
#include "tir/intrin/tensor_intrin.h"
#include "vm/cpu.h"

namespace relaxc::codegen {

namespace {

constexpr std::string_view kLevels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

[[noreturn]] void fail_target(std::string_view text, std::string why, std::vector<std::string> notes = {},
                              ErrorKind kind = ErrorKind::kUsage) {
  Diagnostic diagnostic;
  diagnostic.kind = kind;
  // A message that is about the whole text names it already.
  const bool is_named = why.find(fmt::format("'{}'", text)) != std::string::npos;
  diagnostic.message = is_named ? why : fmt::format("target '{}': {}", text, why);
  diagnostic.notes = std::move(notes);
  throw CompileError({diagnostic});
}
// The same for what stands in its file.
[[noreturn]] void fail_in_file(std::string_view text, std::string why, std::vector<std::string> notes = {}) {
  fail_target(text, std::move(why), std::move(notes), ErrorKind::kInvalid);
}
// The same for a text that has none of the forms of a target.
[[noreturn]] void fail_form(std::string_view text, std::string why, std::vector<std::string> notes = {}) {
  notes.push_back("accepted: " + target_forms());
  fail_target(text, std::move(why), std::move(notes));
}

const llvm::Target* find_llvm_target(const std::string& triple, std::string& error) {
  initialize_llvm();
  return llvm::TargetRegistry::lookupTarget(triple, error);
}

// Returns the targets that an architecture or a processor of another one stands for: {"triple=aarch64-linux-gnu"}.
std::vector<std::string> targets_named(std::string_view word) {
  constexpr const char* kTriples[] = {"aarch64-linux-gnu", "riscv64-linux-gnu", "x86_64-linux-gnu"};
  std::vector<std::string> result;
  for (const char* triple : kTriples) {
    const llvm::Triple parts(triple);
    std::string error;
    const llvm::Target* found = find_llvm_target(triple, error);
    if (!found) continue;
    if (llvm::Triple(llvm::Triple::normalize(std::string(word) + "-linux-gnu")).getArch() == parts.getArch())
      result.push_back(fmt::format("triple={}", triple));
    std::unique_ptr<llvm::MCSubtargetInfo> info(found->createMCSubtargetInfo(triple, "", ""));
    if (info && info->isCPUStringValid(llvm::StringRef(word)))
      result.push_back(fmt::format("triple={},cpu={}", triple, word));
  }
  return result;
}
// Returns the note that names these targets; none where there are none.
std::vector<std::string> did_you_mean(std::string_view word) {
  const std::vector<std::string> targets = targets_named(word);
  if (targets.empty()) return {};
  return {fmt::format("did you mean {}?", joined(targets, " or "))};
}

// Returns null where this LLVM does not know the triple.
std::unique_ptr<llvm::MCSubtargetInfo> subtarget_of(const Target& target) {
  std::string error;
  const llvm::Target* found = find_llvm_target(target.triple, error);
  if (!found) return nullptr;
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      found->createMCSubtargetInfo(target.triple, target.cpu, target.features));
}
bool has(const llvm::MCSubtargetInfo& info, llvm::StringRef feature) { return info.checkFeatures("+" + feature.str()); }
// Takes a list such as "avx512vnni+avx512vl".
bool has_all(const llvm::MCSubtargetInfo& info, std::string_view features) {
  llvm::SmallVector<llvm::StringRef> names;
  llvm::StringRef(features).split(names, '+');
  return std::ranges::all_of(names, [&](llvm::StringRef name) { return has(info, name); });
}

bool has_intrinsic(const llvm::MCSubtargetInfo& info, std::string_view name) {
  // Names of features are unique within one architecture only.
  llvm::StringRef architecture = llvm::Triple::getArchTypePrefix(info.getTargetTriple().getArch());
  if (!name.starts_with(fmt::format("llvm.{}.", architecture.str()))) return false;
  llvm::SmallVector<llvm::StringRef> lists;
  llvm::StringRef(features_of_intrinsic(name)).split(lists, '|', -1, false);
  return std::ranges::any_of(lists, [&](llvm::StringRef features) { return has_all(info, features); });
}

template <class Rows>
std::vector<std::string> keys_of(const Rows& rows) {
  return map_each(rows, [&](const auto& row) -> std::string { return row.Key; });
}
// Returns the processors of the subtarget's architecture. Older LLVMs do not list them.
template <class Info>
std::vector<std::string> cpu_names(const Info& info) {
  if constexpr (requires { info.getAllProcessorDescriptions(); }) return keys_of(info.getAllProcessorDescriptions());
  return {};
}

// The architectures for which relaxc makes code and the runtime runs, of 64 bits, the least significant byte first,
// with Linux. LLVM knows others, for which nothing here was made, so that they are refused.
struct Architecture {
  llvm::Triple::ArchType architecture;
  // Those that any compiled code needs, since the calling convention and the C library's functions use them; one with
  // "-" must be off.
  std::vector<std::string_view> features;
};
const Architecture kArchitectures[] = {
    {llvm::Triple::x86_64,
     {"+64bit", "+64bit-mode", "+x87", "+cmov", "+cx8", "+fxsr", "+sse2", "-soft-float", "-16bit-mode", "-32bit-mode",
      "-retpoline-external-thunk"}},
    {llvm::Triple::aarch64, {"+fp-armv8", "+neon"}},
    {llvm::Triple::riscv64, {"+m", "+f", "+d"}},
};

// The features of a triple without a processor, where LLVM's processor "generic" lacks some of the baseline: those that
// Linux distributions for RISC-V require (RV64GC).
constexpr std::string_view kRiscv64Features = "+m,+a,+f,+d,+c";

// Refuses a triple of another architecture, system or size of pointers.
void check_supported(const llvm::Triple& triple, std::string_view text) {
  using llvm::Triple;
  constexpr Triple::EnvironmentType kOf32BitPointers[] = {Triple::GNUX32, Triple::MuslX32, Triple::GNUILP32};
  const bool has_32_bits = std::ranges::count(kOf32BitPointers, triple.getEnvironment()) > 0;
  if (find_item(kArchitectures, triple.getArch(), &Architecture::architecture) && triple.isOSLinux() && !has_32_bits)
    return;
  fail_target(text,
              fmt::format("there is no code for '{}'; expected {} on Linux, as in "
                          "triple=aarch64-linux-gnu",
                          triple.str(), joined(architectures())),
              {}, ErrorKind::kUnsupported);
}

void check_baseline(const llvm::MCSubtargetInfo& info, llvm::Triple::ArchType architecture, std::string_view text) {
  for (const Architecture& row : kArchitectures) {
    if (row.architecture != architecture) continue;
    std::vector<std::string_view> problems;
    for (std::string_view feature : row.features) {
      if (has(info, feature.substr(1)) != (feature[0] == '+')) problems.push_back(feature);
    }
    if (!problems.empty())
      fail_target(text, fmt::format("compiled code needs {}, as every 64-bit program of {} does", joined(problems),
                                    llvm::Triple::getArchTypeName(architecture).str()));
  }
}

// Sets the capabilities that follow from the features.
void add_capabilities(Target& target, const llvm::MCSubtargetInfo& info) {
  llvm::Triple triple(target.triple);
  bool is_x86 = triple.isX86();
  auto on_x86 = [&](const char* features) { return is_x86 && has_all(info, features); };
  bool avx512 = on_x86("avx512f+avx512vl+avx512bw+avx512dq");
  target.vector_bits = avx512 ? 512 : on_x86("avx2") ? 256 : 128;
  target.num_vector_registers = avx512 || !is_x86 ? 32 : 16;
  // Architectures other than x86 and AArch64 are not assumed to have a fused instruction.
  target.has_fma = on_x86("fma") || triple.isAArch64();
  target.has_float16_conversion = on_x86("f16c") || triple.isAArch64();
  if (on_x86("avx512vbmi+avx512vl") || triple.isAArch64()) target.dot_forms.emplace(kByteTables);
  if (on_x86("ssse3") || triple.isAArch64()) target.dot_forms.emplace(kNibbleTables);
  for (const DotForm& form : dot_forms()) {
    if (!form.figure || !has_intrinsic(info, form.instruction)) continue;
    target.dot_forms.insert(form.name);
    if (form.lanes == target.vector_lanes(32)) target.*form.figure = true;
  }
  target.has_int8_tiles = avx512 && on_x86("amx-tile+amx-int8");
  target.has_bfloat16_tiles = avx512 && on_x86("amx-tile+amx-bf16");
  for (const FigureRow& row : target_figures()) {
    if (row.is_capability) target.sources.insert_or_assign(row.name, "LLVM's features of the cpu");
  }
}

// Names the targets in which the processor is known, or else the processors of the target.
[[noreturn]] void fail_unknown_cpu(const Target& target, const llvm::MCSubtargetInfo& generic, std::string_view text) {
  std::vector<std::string> notes = did_you_mean(target.cpu);
  if (notes.empty()) {
    notes = {fmt::format("cpus of {}: {}", target.triple, joined(cpu_names(generic)))};
    if (target.triple == Target().triple)
      notes.emplace_back("a cpu of another architecture needs its triple, too, such as triple=aarch64-linux-gnu");
  }
  fail_target(text, fmt::format("unknown cpu '{}'", target.cpu), std::move(notes));
}

// Checks the names and derives the numbers from LLVM's description of the processor.
Target complete(Target target, std::string_view text) {
  std::string error;
  const llvm::Target* llvm_target = find_llvm_target(target.triple, error);
  if (!llvm_target) fail_target(text, fmt::format("unknown triple '{}'", target.triple), {error});
  check_supported(llvm::Triple(target.triple), text);
  std::unique_ptr<llvm::MCSubtargetInfo> generic(llvm_target->createMCSubtargetInfo(target.triple, "", ""));
  if (!generic) fail_target(text, fmt::format("triple '{}' has no code generator", target.triple));
  if (!target.cpu.empty() && !generic->isCPUStringValid(target.cpu)) fail_unknown_cpu(target, *generic, text);
  std::vector<std::string> known = keys_of(generic->getAllProcessorFeatures());
  llvm::SmallVector<llvm::StringRef> features;
  llvm::StringRef(target.features).split(features, ',', -1, false);
  for (llvm::StringRef feature : features) {
    if (std::ranges::find(known, feature.drop_front()) == known.end())
      fail_target(text, fmt::format("unknown feature '{}'", feature.str()),
                  {fmt::format("features of {}: {}", target.triple, joined(known))});
  }

  std::unique_ptr<llvm::MCSubtargetInfo> info = subtarget_of(target);
  check_baseline(*info, llvm::Triple(target.triple).getArch(), text);
  add_capabilities(target, *info);
  add_llvm_figures(target, *llvm_target, *info);
  add_processor_figures(target);
  return target;
}

// One line `key = value` of a target's file, where "#" begins a comment.
struct FileLine {
  int number;
  std::string key, value;
};
std::vector<FileLine> read_target_file(const std::string& path, std::string_view target) {
  std::ifstream file(path);
  if (!file || !std::filesystem::is_regular_file(path)) fail_in_file(target, fmt::format("cannot read '{}'", path));
  std::vector<FileLine> result;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::string_view read = number == 1 ? without_byte_order_mark(line) : std::string_view(line);
    llvm::StringRef text = llvm::StringRef(read).split('#').first.trim();
    if (text.empty()) continue;
    if (!text.contains('='))
      fail_in_file(target, fmt::format("{}:{}: expected 'figure = value', found '{}'", path, number, text.str()));
    auto [key, value] = text.split('=');
    result.push_back({number, key.trim().str(), value.trim().str()});
    if (std::ranges::count(result, result.back().key, &FileLine::key) > 1)
      fail_in_file(target, fmt::format("{}:{}: '{}' stands twice", path, number, result.back().key));
  }
  return result;
}

void apply_figure(Target& target, const FileLine& line, const std::string& path, std::string_view text) {
  const FigureRow* row = find_figure(line.key);
  if (!row) {
    std::vector<std::string> names = {"triple", "cpu", "features"};
    for (const FigureRow& known : target_figures()) names.emplace_back(known.name);
    fail_in_file(text, fmt::format("{}:{}: there is no figure '{}'", path, line.number, line.key),
                 {fmt::format("figures: {}", joined(names))});
  }
  auto fail_line = [&](const std::string& why, std::vector<std::string> notes) {
    fail_in_file(text, fmt::format("{}:{}: {}", path, line.number, why), std::move(notes));
  };
  double value = 0;
  auto [end, error] = std::from_chars(line.value.data(), line.value.data() + line.value.size(), value);
  bool is_number = error == std::errc() && end == line.value.data() + line.value.size();
  const bool is_flag = std::holds_alternative<bool*>(row->in(target));
  bool is_positive = value > 0 || ((row->is_capability || is_flag) && value == 0);
  if (!is_number || !is_positive || value > 1e15)
    fail_line(fmt::format("'{}' must be a positive number up to 1e15, found '{}'", line.key, line.value), {});
  double known = get_figure(*row, target);
  if (value == known && row->is_capability) return;
  if (row->is_capability && value > known)
    fail_line(fmt::format("'{}' of this cpu is {}; a file may only lower it, found {}", line.key, known, line.value),
              {"name a cpu or features that have more"});
  if (line.key == "vector_bits" && value != 128 && value != 256 && value != 512)
    fail_line(fmt::format("'{}' must be 128, 256 or 512, found {}", line.key, line.value), {});
  if (line.key == "num_vector_registers" && value < 8)
    fail_line(fmt::format("'{}' must be 8 or more, found {}", line.key, line.value), {});
  set_figure(*row, target, value, path);
}

// A processor as a text or a file states it, in whole or in part.
struct StatedProcessor {
  std::optional<std::string> triple, cpu;
  std::string features;
};

// Returns the target whose figures follow from what is stated.
Target target_of(const StatedProcessor& stated, std::string_view text) {
  Target target;
  if (stated.triple) target.triple = llvm::Triple::normalize(*stated.triple);
  const llvm::Triple triple(target.triple);
  if (stated.triple && !triple.isX86()) target.cpu = "generic";
  if (stated.cpu) target.cpu = *stated.cpu;
  target.features = stated.features;
  if (stated.triple && !stated.cpu && triple.getArch() == llvm::Triple::riscv64)
    target.features = std::string(kRiscv64Features) + (stated.features.empty() ? "" : ",") + stated.features;
  return complete(std::move(target), text);
}

// Applies a file, which may name the processor and whose figures replace those from other sources.
Target with_file(StatedProcessor stated, const std::string& path, std::string_view text) {
  const std::vector<FileLine> lines = read_target_file(path, text);
  for (const FileLine& line : lines) {
    if (line.key == "triple") stated.triple = line.value;
    if (line.key == "cpu") stated.cpu = line.value;
    if (line.key == "features") stated.features = line.value;
  }
  Target target = target_of(stated, text);
  for (const FileLine& line : lines) {
    if (line.key != "triple" && line.key != "cpu" && line.key != "features") apply_figure(target, line, path, text);
  }
  return target;
}

// Throws when LLVM cannot translate the code, because LLVM would end the host's process otherwise.
[[noreturn]] void on_llvm_failure(void*, const char* reason, bool) {
  throw InternalError(fmt::format("internal error: LLVM: {}", reason));
}

// Sets an option of LLVM's command line that LLVM's API does not offer.
void set_llvm_option(const char* name, const char* value) {
  auto option = llvm::cl::getRegisteredOptions().find(name);
  RELAXC_CHECK(option != llvm::cl::getRegisteredOptions().end(), "this LLVM has no option '{}'", name);
  if (option->second->getNumOccurrences() > 0) return;  // the host has set it
  RELAXC_CHECK(!option->second->addOccurrence(0, name, value), "LLVM's option '{}' does not take '{}'", name, value);
}

}  // namespace

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmParsers();
    llvm::InitializeAllAsmPrinters();
    llvm::install_fatal_error_handler(on_llvm_failure);
    set_llvm_option("disable-lsr", "true");  // llvm_compile.cc runs it where it is worth its time
  });
}

std::string target_forms() {
  return fmt::format("host, {}, cpu=NAME, @FILE, or a list such as triple=TRIPLE,cpu=NAME,+FEATURE,-FEATURE,file=FILE",
                     joined(kLevels));
}

std::string llvm_version() { return LLVM_VERSION_STRING; }

std::vector<std::string> architectures() {
  std::vector<std::string> names;
  for (const Architecture& row : kArchitectures) {
    std::string error;
    const std::string name = llvm::Triple::getArchTypeName(row.architecture).str();
    if (find_llvm_target(name + "-linux-gnu", error)) names.push_back(name);
  }
  return names;
}

std::string architecture(const Target& target) {
  return llvm::Triple::getArchTypeName(llvm::Triple(target.triple).getArch()).str();
}

std::vector<std::string> loadable_features(const Target& target) {
  std::vector<std::string> result;
  std::unique_ptr<llvm::MCSubtargetInfo> info = subtarget_of(target);
  for (std::string_view feature : vm::cpu_features(architecture(target))) {
    if (info && has_all(*info, feature)) result.emplace_back(feature);
  }
  return result;
}

bool has_intrinsic(const Target& target, std::string_view name) {
  std::unique_ptr<llvm::MCSubtargetInfo> info = subtarget_of(target);
  return info && has_intrinsic(*info, name);
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(const Target& target, int opt_level) {
  std::string error;
  const llvm::Target* llvm_target = find_llvm_target(target.triple, error);
  if (!llvm_target) fail_target(target.triple, "this LLVM has no code generator for it", {error});
  auto level = static_cast<llvm::CodeGenOptLevel>(std::clamp(opt_level, 0, 3));
  // The code is position independent, because the same object code goes into shared objects and into the JIT.
  std::unique_ptr<llvm::TargetMachine> machine(llvm_target->createTargetMachine(
      target.triple, target.cpu, target.features, llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt, level));
  if (!machine) fail_target(target.triple, "this LLVM has no code generator for it");
  return machine;
}

Target host_target() {
  Target target;
  target.triple = llvm::sys::getDefaultTargetTriple();
  target.cpu = llvm::sys::getHostCPUName().str();
  std::vector<std::string> features;
#if LLVM_VERSION_MAJOR >= 19
  auto reported = llvm::sys::getHostCPUFeatures();
#else
  llvm::StringMap<bool> reported;
  llvm::sys::getHostCPUFeatures(reported);
#endif
  // LLVM does not ask Linux for the permission to use matrix tiles.
  auto is_usable = [](llvm::StringRef name) {
    return !name.starts_with("amx-") || vm::host_has_feature({name.data(), name.size()});
  };
  for (const auto& entry : reported) {
    const bool has_it = entry.getValue() && is_usable(entry.getKey());
    features.push_back((has_it ? "+" : "-") + entry.getKey().str());
  }
  std::sort(features.begin(), features.end());
  target.features = joined(features, ",");
  target = complete(std::move(target), "host");
  add_host_figures(target);
  return target;
}

Target parse_target(std::string_view text) {
  if (text == "host") return host_target();
  StatedProcessor stated;
  if (std::ranges::find(kLevels, text) != std::end(kLevels)) {
    stated.cpu = std::string(text);
    return target_of(stated, text);
  }
  if (text.size() > 1 && text[0] == '@') return with_file(stated, std::string(text.substr(1)), text);
  std::string file;
  llvm::SmallVector<llvm::StringRef> items;
  llvm::StringRef(text).split(items, ',');
  for (llvm::StringRef item : items) {
    if (item.size() > 1 && (item[0] == '+' || item[0] == '-')) {
      stated.features += (stated.features.empty() ? "" : ",") + item.str();
      continue;
    }
    auto [key, value] = item.split('=');
    if (value.empty()) fail_form(text, fmt::format("unknown target '{}'", item.str()), did_you_mean(item));
    if (key == "cpu") {
      stated.cpu = value.str();
    } else if (key == "triple") {
      stated.triple = value.str();
    } else if (key == "file") {
      file = value;
    } else {
      fail_form(text, fmt::format("unknown key '{}'", key.str()));
    }
  }
  return file.empty() ? target_of(stated, text) : with_file(stated, file, text);
}

}  // namespace relaxc::codegen
