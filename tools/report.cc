#include "tools/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/joined.h"
#include "support/printable.h"

namespace relaxc::tools {

namespace {

// Prints a list of records as a table without a head, whose columns are as wide as their widest field.
std::string table_of(const ReportList& rows) {
  std::vector<size_t> widths;
  std::vector<std::vector<std::string>> lines;
  for (const ReportValue& row : rows) {
    const Report* fields = row.as<Report>();
    std::vector<std::string>& line = lines.emplace_back();
    if (!fields) line.push_back(row.text());
    for (const auto& [name, value] : fields ? fields->members() : std::vector<Report::Member>()) {
      const bool is_count = value.as<int64_t>() != nullptr;
      line.push_back(is_count ? fmt::format("{} {}", name, value.text()) : value.text());
    }
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  std::string result;
  for (const std::vector<std::string>& line : lines) {
    std::string text = " ";
    for (size_t c = 0; c < line.size(); ++c) text += fmt::format(" {:<{}}", line[c], widths[c]);
    result += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  }
  return result;
}

bool has_texts(const Report& report) {
  return std::ranges::any_of(report.members(), [](const auto& m) { return m.second.template as<std::string>(); });
}

bool is_table(const ReportList& list) {
  constexpr size_t kLong = 40;
  return std::ranges::any_of(list, [](const ReportValue& item) {
    const auto* text = item.as<std::string>();
    return item.as<Report>() || (text && text->size() > kLong);
  });
}

std::string text_of_member(const std::string& name, const ReportValue& value) {
  const ReportList* list = value.as<ReportList>();
  const Report* report = value.as<Report>();
  const auto* text = value.as<std::string>();
  const bool is_empty = (list && list->empty()) || (report && report->members().empty()) || (text && text->empty());
  if (is_empty) return "";
  if (list && is_table(*list)) return fmt::format("{}:\n{}", name, table_of(*list));
  if (!report) return fmt::format("{}: {}\n", name, value.text());
  if (!has_texts(*report)) {
    auto member = [](const Report::Member& m) { return fmt::format("{} {}", m.second.text(), m.first); };
    return fmt::format("{}: {}\n", name, joined(report->members(), member));
  }
  ReportList rows;
  for (const auto& [key, member] : report->members()) rows.push_back(Report{{"", key}, {"value", member}});
  return fmt::format("{}:\n{}", name, table_of(rows));
}

}  // namespace

ReportValue::ReportValue(ReportList value) : value_(std::make_shared<const ReportList>(std::move(value))) {}
ReportValue::ReportValue(Report value) : value_(std::make_shared<const Report>(std::move(value))) {}

std::string ReportValue::text() const {
  if (const auto* text = as<std::string>()) return *text;
  if (const auto* list = as<ReportList>()) return joined(*list, &ReportValue::text);
  if (const auto* flag = as<bool>()) return *flag ? "True" : "False";
  return json();
}

std::string ReportValue::json() const {
  if (const auto* text = as<std::string>()) return json_string(*text);
  if (const auto* list = as<ReportList>()) return fmt::format("[{}]", joined(*list, &ReportValue::json));
  if (const auto* report = as<Report>()) return report->json();
  if (const auto* flag = as<bool>()) return *flag ? "true" : "false";
  if (const auto* integer = as<int64_t>()) return fmt::format("{}", *integer);
  const double number = *as<double>();
  return std::isfinite(number) ? fmt::format("{:.6g}", number) : "null";
}

void Report::set(const std::string& name, ReportValue value) {
  auto found = std::ranges::find(members_, name, &Member::first);
  if (found == members_.end()) {
    members_.emplace_back(name, std::move(value));
  } else {
    found->second = std::move(value);
  }
}

const ReportValue* Report::find(std::string_view name) const {
  auto found = std::ranges::find(members_, name, &Member::first);
  return found == members_.end() ? nullptr : &found->second;
}

void Report::order(const std::vector<std::string>& names) {
  auto rank = [&](const Member& member) { return std::ranges::find(names, member.first) - names.begin(); };
  std::ranges::stable_sort(members_, {}, rank);
}

std::string Report::json() const {
  auto member = [](const Member& m) { return fmt::format("{}: {}", json_string(m.first), m.second.json()); };
  return fmt::format("{{{}}}", joined(members_, member));
}

std::string Report::text() const {
  return joined(members_, [](const Member& m) { return text_of_member(m.first, m.second); }, "");
}

}  // namespace relaxc::tools
