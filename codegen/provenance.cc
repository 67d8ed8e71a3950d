#include "codegen/provenance.h"

#include <filesystem>

#include "codegen/options.h"
#include "passes/kernel_rules.h"
#include "passes/precision.h"
#include "support/joined.h"
#include "support/version.h"
#include "vm/artifact_notes.h"
#include "vm/content_hash.h"

namespace relaxc::codegen {

namespace {

std::string key_of(std::string_view what) { return std::string(vm::kMadeKey) + std::string(what); }

std::string name_of_file(const std::string& path) { return std::filesystem::path(path).filename().string(); }

// Returns the target as it was given, with files by their names: "@board.target", "cpu=znver3,file=board.target".
std::string target_text(const std::string& target) {
  auto without_folder = [](std::string_view part) {
    const size_t begin = part.find_first_of("@="), slash = part.rfind('/');
    if (slash == std::string_view::npos || begin == std::string_view::npos) return std::string(part);
    return std::string(part.substr(0, begin + 1)) + std::string(part.substr(slash + 1));
  };
  return joined(parts_of(target, ','), without_folder, ",");
}

// Returns "nice_matmul (rules.py), other (rules.py)".
template <class Rules>
std::string rules_text(const Rules& rules) {
  return joined(rules, [](const auto& rule) {
    return rule.span ? fmt::format("{} ({})", rule.name, name_of_file(rule.span.origin->file)) : rule.name;
  });
}

std::string dims_text(const CompileSettings& settings) {
  return joined(settings.dims, [](const auto& dim) { return fmt::format("{}={}", dim.first, dim.second); });
}

}  // namespace

std::map<std::string, std::string> provenance_of(const CompileSettings& settings) {
  std::map<std::string, std::string> made = {{key_of("by"), "relaxc " + version_text()},
                                             {key_of("target"), target_text(settings.target)},
                                             {key_of("precision"), describe(settings.precision).name}};
  auto add = [&](std::string_view what, std::string text) {
    if (!text.empty()) made.emplace(key_of(what), std::move(text));
  };
  add("dims", dims_text(settings));
  add("schedules", rules_text(settings.schedules));
  if (settings.kernels) add("kernels", rules_text(*settings.kernels));
  add("linked", joined(settings.linked, name_of_file));
  add("host_symbols", joined(settings.host_symbols));
  for (const CompileOption& row : compile_options()) {
    if (row.group == OptionGroup::kPasses || row.is_given(settings)) add(row.name, row.text(settings));
  }
  return made;
}

std::map<std::string, std::string> provenance_of_model(const std::string& path, const CompileSettings& settings) {
  const TextPath parts = split_text_path(path);
  const std::string module = parts.module.empty() ? "" : "::" + parts.module;
  std::map<std::string, std::string> made = {{key_of("from"), name_of_file(parts.file) + module}};
  if (settings.contents) {
    made.emplace(key_of("from_hash"), vm::ContentHash().add(*settings.contents).digest());
    return made;
  }
  std::error_code ignored;  // a pipe was read already
  if (std::filesystem::is_regular_file(parts.file, ignored))
    made.emplace(key_of("from_hash"), vm::hash_of_file(parts.file));
  return made;
}

}  // namespace relaxc::codegen
