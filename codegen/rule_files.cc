#include "codegen/rule_files.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "passes/tables.h"
#include "support/diagnostic.h"
#include "support/file_kind.h"
#include "support/joined.h"
#include "support/library_file.h"
#include "support/lists.h"
#include "support/printable.h"
#include "tir/schedule/script.h"
#include "tir/schedule/tuning_database.h"

namespace relaxc {

bool has_schedule_rules(const std::string& text) {
  auto begins_line = [&](const char* form) {
    return text.starts_with(form) || text.find(std::string("\n") + form) != std::string::npos;
  };
  return begins_line("@S.") || begins_line("S.");
}

// Returns the rule of a folder that a tuner wrote, or of its file of records; nullopt for another file.
static std::optional<ScheduleRule> tuning_records_in(const std::string& path) {
  std::filesystem::path records = path;
  if (std::filesystem::is_directory(records)) records /= kTuningRecords;
  if (records.extension() != ".json") return std::nullopt;
  std::string name = records.filename().string();
  if (size_t at = name.find("tuning_record"); at != std::string::npos) name.replace(at, 13, "workload");
  std::filesystem::path workloads = records.parent_path() / name;
  bool has_workloads = workloads != records && std::filesystem::exists(workloads);
  return tuned_rule({records.string(), read_text(records.string())},
                    {workloads.string(), has_workloads ? read_text(workloads.string()) : ""});
}

void RuleFiles::read(const std::string& file, bool is_model) {
  std::error_code ignored;  // what is not there is an error when it is read
  if (!files_.insert(std::filesystem::weakly_canonical(file, ignored)).second) return;
  if (is_library_file(file)) return read_library(file);
  if (auto records = tuning_records_in(file)) {
    settings_.schedules.push_back(*records);
    return;
  }
  read_text_file(file, is_model);
}

void RuleFiles::read_text_file(const std::string& file, bool is_model) {
  const std::string text = read_text(file);
  const size_t before = rules_.size() + notes.size() + settings_.schedules.size();
  expect_text(file, text, "kernels or schedules as text, or a library of C kernels");
  if (!is_model || has_schedule_rules(text))
    std::ranges::move(read_schedule_rules(text, file), std::back_inserter(settings_.schedules));
  std::vector<std::string>* unused = is_model ? nullptr : &notes;  // programs are what a model is made of
  std::ranges::move(read_kernel_rules(text, file, tables_of(settings_).ops(), unused, &warnings),
                    std::back_inserter(rules_));
  const bool has_found = rules_.size() + notes.size() + settings_.schedules.size() > before;
  if (!is_model && !has_found)
    fail(span_of_file(file), "neither a kernel nor a schedule stands in it (docs/own-kernels.md, docs/schedules.md)");
}

// Opens a library of C kernels, and adds what its rows implement.
void RuleFiles::read_library(const std::string& file) {
  const auto& library = settings_.libraries.emplace_back(vm::UserLibrary::open(std::filesystem::absolute(file)));
  std::vector<std::string> names =
      map_each(library->rows(), [](const relaxc_kernel_row& row) { return std::string(row.name); });
  const size_t first = rules_.size();
  for (const relaxc_kernel_row& row : library->rows()) {
    if (!row.implements) continue;
    std::string place = fmt::format("{}: {}", file, row.name);
    std::ranges::move(read_kernel_rules(row.implements, place, tables_of(settings_).ops()), std::back_inserter(rules_));
  }
  auto check = [&](const UserKernel& kernel) {
    if (!kernel.symbol.empty() && !std::ranges::count(names, kernel.symbol))
      fail(kernel.program.span(), "the library's table of kernels has no row '{}', which this declares; it has: {}",
           kernel.symbol, printable(joined(names)));
  };
  for (const KernelRule& rule : std::span(rules_).subspan(first)) {
    if (rule.kernel) check(*rule.kernel);
    if (rule.kernel && rule.kernel->shape) check(*rule.kernel->shape);
  }
}

void RuleFiles::finish() {
  check_names(rules_);
  if (!rules_.empty()) settings_.kernels = std::make_shared<const std::vector<KernelRule>>(std::move(rules_));
}

}  // namespace relaxc
