#include "tools/inspect_artifact.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/joined.h"
#include "support/lists.h"
#include "vm/artifact.h"
#include "vm/artifact_notes.h"
#include "vm/shipped_libraries.h"
#include "vm/user_library.h"

namespace relaxc::tools {

static ReportList described(const std::vector<vm::ValueInfo>& infos) {
  return map_each(infos, [](const vm::ValueInfo& info) { return ReportValue(vm::to_string(info)); });
}

// Returns "batch: 1 to 64" for each dim with a stated range.
static ReportList ranges_of(const std::vector<vm::ValueInfo>& inputs) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  std::map<std::string, std::string> ranges;
  for (const vm::ValueInfo& input : inputs) {
    for (const vm::DimInfo& dim : input.dims.value_or(std::vector<vm::DimInfo>())) {
      if (dim.least == 0 && dim.most == kAny) continue;
      const std::string range =
          dim.most == kAny ? fmt::format("from {}", dim.least) : fmt::format("{} to {}", dim.least, dim.most);
      ranges.emplace(dim.text, fmt::format("{}: {}", dim.text, range));
    }
  }
  return map_each(ranges, [](const auto& entry) { return ReportValue(entry.second); });
}

// Returns a row for each library that has to be beside the runtime: its name and what the artifact calls in it.
static ReportList libraries_of(const vm::Executable& executable) {
  ReportList result, outside;
  for (const std::string& name : executable.builtins) {
    if (vm::is_outside(name)) outside.push_back(name);
  }
  if (!outside.empty()) result.push_back(Report{{"file", vm::kBuiltinsFile}, {"functions", outside}});
  const std::string needed = copy_value(executable.metadata, vm::kNeededLibrariesKey).value_or("");
  for (std::string_view path : parts_of(needed, '\n'))
    result.push_back(Report{{"file", std::string(path.substr(path.rfind('/') + 1))}});
  return result;
}

// Returns what the compiler noted of the model, of itself and of its settings; the rest is in `others`.
static Report provenance_of(const vm::Executable& executable, Report& others) {
  Report made;
  for (const auto& [key, value] : executable.metadata) {
    if (key.starts_with(vm::kMadeKey)) {
      made.set(key.substr(vm::kMadeKey.size()), value);
    } else {
      others.set(key, value);
    }
  }
  made.order({"from", "from_hash", "by", "target", "precision", "passes"});
  return made;
}

// Returns the parts of the file with their sizes, which add up to its own.
static ReportList sections_of(const vm::Artifact& artifact) {
  size_t metadata = 0;
  for (const auto& [key, value] : artifact.executable.metadata) metadata += key.size() + value.size();
  const size_t bytecode = artifact.executable.code.size() * sizeof(vm::Word);
  const vm::ArtifactParts parts = vm::parts_of_artifact(artifact.file->bytes());
  const size_t tables = parts.program - bytecode - metadata,
               rest = artifact.file->bytes().size() - parts.machine_code - parts.program - parts.weights;
  const std::pair<const char*, size_t> sections[] = {
      {"machine code", parts.machine_code}, {"bytecode", bytecode},      {"tables", tables}, {"metadata", metadata},
      {"weights", parts.weights},           {"footer and padding", rest}};
  return map_each(sections,
                  [](const auto& row) { return ReportValue(Report{{"section", row.first}, {"bytes", row.second}}); });
}

Report report_of_artifact(const std::string& path) {
  vm::Artifact artifact = vm::load_artifact(path, {.loads_code = false});
  artifact.weights->run();
  const vm::Executable& executable = artifact.executable;
  ReportList functions, kernels;
  const std::string names = copy_value(executable.metadata, vm::kLinkedKernelsKey).value_or("");
  const std::vector<std::string_view> linked = parts_of(names, '\n');
  for (const vm::Function& function : executable.functions) {
    if (!function.is_public) continue;
    Report row{
        {"name", function.name}, {"inputs", described(function.inputs)}, {"outputs", described(function.outputs)}};
    if (ReportList ranges = ranges_of(function.inputs); !ranges.empty()) row.set("dims", ranges);
    functions.push_back(row);
  }
  for (const vm::KernelInfo& kernel : executable.kernels) {
    bool is_own = kernel.source == vm::KernelSource::kArtifact;
    bool is_linked = std::ranges::count(linked, std::string_view(kernel.symbol)) > 0;
    kernels.push_back(
        Report{{"name", kernel.display_name},
               {"by", is_own ? "machine code"
                             : fmt::format("function '{}' {}", kernel.symbol,
                                           is_linked ? "that is linked in" : "of a library or the host")}});
  }
  int64_t constant_bytes = 0;
  for (const Tensor& constant : executable.constants) constant_bytes += constant.bytes();
  Report metadata;
  const Report made = provenance_of(executable, metadata);
  Report report = {
      {"kind", "artifact"},
      {"bytes", static_cast<int64_t>(artifact.file->bytes().size())},
      {"made", made},
      {"sections", sections_of(artifact)},
      {"functions", functions},
      {"constants", Report{{"bytes", constant_bytes}, {"tensors", executable.constants.size()}}},
      {"kernels", kernels},
      {"runtime_functions", map_each(executable.builtins, [](const std::string& name) { return ReportValue(name); })},
      {"metadata", metadata}};
  if (ReportList libraries = libraries_of(executable); !libraries.empty()) report.set("libraries", libraries);
  return report;
}

}  // namespace relaxc::tools
