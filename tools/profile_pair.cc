#include "tools/profile_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"
#include "tir/schedule/trace.h"
#include "tools/timing.h"

namespace relaxc::tools {

namespace {

[[noreturn]] void refuse_figures(const std::string& path, const std::string& why) {
  fail(span_of_file(path),
       "expected the figures of a profile: {}; relaxc bench MODEL --profile --json FILE writes them", why);
}

double number_at(const Attrs& entries, std::string_view key) {
  const AttrValue* value = entries.find(key);
  if (!value) return 0;
  if (const auto* integer = value->as<int64_t>()) return static_cast<double>(*integer);
  const auto* number = value->as<double>();
  return number && std::isfinite(*number) ? *number : 0;
}

ProfiledKernel kernel_of(const AttrValue& value, const std::string& path) {
  const Attrs* entries = value.as<Attrs>();
  if (!entries) refuse_figures(path, "a kernel is not an object");
  const double calls = number_at(*entries, "calls_per_run");
  const bool has_median = entries->find("median_us") != nullptr;  // figures of older versions have the mean alone
  return {entries->get_string("kernel", ""), entries->get_string("nodes", ""),
          calls * number_at(*entries, has_median ? "median_us" : "mean_us"), calls * number_at(*entries, "limit_us")};
}

// Joins kernels that have nodes in common, by a forest of parents (Galler and Fischer, 1964).
class NodeGroups {
 public:
  size_t group_of(const std::string& node) {
    auto [entry, is_new] = number_.try_emplace(node, parent_.size());
    if (is_new) parent_.push_back(parent_.size());
    return root(entry->second);
  }
  void join(const std::string& a, const std::string& b) { parent_[group_of(a)] = group_of(b); }

 private:
  size_t root(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  std::map<std::string, size_t> number_;
  std::vector<size_t> parent_;
};

// Returns the nodes of a kernel; a kernel without nodes is told by its name.
std::vector<std::string> nodes_of_kernel(const ProfiledKernel& kernel) {
  if (kernel.nodes.empty()) return {"kernel " + kernel.name};
  std::vector<std::string> nodes;
  constexpr std::string_view kSeparator = ", ";
  for (size_t at = 0; at <= kernel.nodes.size();) {
    const size_t end = std::min(kernel.nodes.find(kSeparator, at), kernel.nodes.size());
    nodes.push_back(kernel.nodes.substr(at, end - at));
    at = end + kSeparator.size();
  }
  return nodes;
}

void add_to_text(std::string& text, const std::string& node) {
  if (!std::ranges::count(parts_of(text, '\n'), std::string_view(node))) text += (text.empty() ? "" : "\n") + node;
}

Report report_of_profile(const ReadProfile& profile) {
  double kernels_us = 0;
  for (const ProfiledKernel& kernel : profile.kernels) kernels_us += kernel.run_us;
  return {{"name", profile.name},
          {"median_ms", profile.median_ms},
          {"limit_ms", profile.limit_ms},
          {"kernels_us", kernels_us}};
}

ReportValue report_of_row(const ProfileRow& row) {
  auto names = [](const std::vector<std::string>& kernels) {
    return map_each(kernels, [](const std::string& name) { return ReportValue(name); });
  };
  return Report{{"nodes", row.nodes},
                {"a_us", row.a_us},
                {"b_us", row.b_us},
                {"a_limit_us", row.a_limit_us},
                {"b_limit_us", row.b_limit_us},
                {"a_kernels", names(row.a_kernels)},
                {"b_kernels", names(row.b_kernels)}};
}

// The settings of both, with "" where one lacks it.
ReportList report_of_settings(const ProfilePair& pair) {
  ReportList rows;
  for (const auto& [name, value] : pair.a.settings) {
    const auto* other = find_item(pair.b.settings, name, &std::pair<std::string, std::string>::first);
    rows.push_back(Report{{"name", name}, {"a", value}, {"b", other ? other->second : std::string()}});
  }
  return rows;
}

std::string setting_text(const Attrs& figures, const char* name) {
  const AttrValue* value = figures.find(name);
  const auto* text = value ? value->as<std::string>() : nullptr;
  if (const auto* sizes = value ? value->as<Attrs>() : nullptr) {
    auto size_of = [](const auto& size) { return fmt::format("{}={}", size.first, to_string(size.second)); };
    return sizes->begin() == sizes->end() ? "none" : joined(*sizes, size_of);
  }
  return text ? *text : value ? to_string(*value) : "";
}

}  // namespace

ReadProfile read_profile(const std::string& name, const std::string& text) {
  AttrValue value;
  try {
    value = read_json(text);
  } catch (const CompileError& error) {
    const Diagnostic& first = error.diagnostics().front();
    refuse_figures(name, first.message);
  }
  const Attrs* figures = value.as<Attrs>();
  if (!figures) refuse_figures(name, "this is not an object of JSON");
  const AttrValue* found = figures->find("profile");
  const Attrs* profile = found ? found->as<Attrs>() : nullptr;
  const AttrValue* kernels = profile ? profile->find("kernels") : nullptr;
  const AttrList* list = kernels ? kernels->as<AttrList>() : nullptr;
  if (!list) refuse_figures(name, "there is no \"profile\" with \"kernels\"");
  ReadProfile result{name, number_at(*figures, "median_ms"), number_at(*profile, "limit_ms"), {}, {}};
  result.kernels = map_each(*list, [&](const AttrValue& kernel) { return kernel_of(kernel, name); });
  for (const char* setting : {"threads", "target", "version", "dims"})
    result.settings.emplace_back(setting, setting_text(*figures, setting));
  return result;
}

ProfilePair pair_of(ReadProfile a, ReadProfile b) {
  NodeGroups groups;
  for (const ReadProfile* profile : {&a, &b}) {
    for (const ProfiledKernel& kernel : profile->kernels) {
      const std::vector<std::string> nodes = nodes_of_kernel(kernel);
      for (const std::string& node : nodes) groups.join(node, nodes.front());
    }
  }
  std::map<size_t, ProfileRow> rows;
  auto add = [&](const ProfiledKernel& kernel, double ProfileRow::* us, double ProfileRow::* limit,
                 std::vector<std::string> ProfileRow::* kernels) {
    const std::vector<std::string> nodes = nodes_of_kernel(kernel);
    ProfileRow& row = rows[groups.group_of(nodes.front())];
    for (const std::string& node : nodes) add_to_text(row.nodes, node);
    row.*us += kernel.run_us;
    row.*limit += kernel.limit_us;
    (row.*kernels).push_back(kernel.name);
  };
  for (const ProfiledKernel& kernel : a.kernels)
    add(kernel, &ProfileRow::a_us, &ProfileRow::a_limit_us, &ProfileRow::a_kernels);
  for (const ProfiledKernel& kernel : b.kernels)
    add(kernel, &ProfileRow::b_us, &ProfileRow::b_limit_us, &ProfileRow::b_kernels);
  ProfilePair pair{std::move(a), std::move(b), {}};
  for (auto& [_, row] : rows) {
    row.nodes = joined(parts_of(row.nodes, '\n'), ", ");
    pair.rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(pair.rows, std::greater(),
                           [](const ProfileRow& row) { return std::abs(row.b_us - row.a_us); });
  return pair;
}

std::string text_of(const ProfilePair& pair) {
  std::string text =
      fmt::format("A: {}, median {}\nB: {}, median {}, {:.3f} times A's: {}\n", pair.a.name, as_ms(pair.a.median_ms),
                  pair.b.name, as_ms(pair.b.median_ms), pair.b.median_ms / pair.a.median_ms, pair.verdict);
  for (const ReportValue& row : report_of_settings(pair)) {
    const Report& setting = *row.as<Report>();
    const auto text_at = [&](const char* key) { return *setting.find(key)->as<std::string>(); };
    if (text_at("a") != text_at("b"))
      text += fmt::format("the {} differ{}: {} and {}\n", text_at("name"), text_at("name").ends_with('s') ? "" : "s",
                          text_at("a"), text_at("b"));
  }
  text +=
      fmt::format("{:>10} {:>10} {:>10} {:>7}  {}\n", "A us", "B us", "B - A", "B / A", "nodes: kernels of A | of B");
  for (const ProfileRow& row : pair.rows) {
    const std::string a = joined(row.a_kernels, " + "), b = joined(row.b_kernels, " + ");
    const std::string kernels = a == b ? a : fmt::format("{} | {}", a.empty() ? "none" : a, b.empty() ? "none" : b);
    const std::string ratio = row.a_us > 0 && row.b_us > 0 ? fmt::format("{:.2f}", row.b_us / row.a_us) : "";
    text += fmt::format("{:>10.2f} {:>10.2f} {:>+10.2f} {:>7}  {}: {}\n", row.a_us, row.b_us, row.b_us - row.a_us,
                        ratio, printable(row.nodes, std::string::npos), kernels);
  }
  return text;
}

Report report_of(const ProfilePair& pair) {
  return {{"a", report_of_profile(pair.a)},
          {"b", report_of_profile(pair.b)},
          {"settings", report_of_settings(pair)},
          {"verdict", pair.verdict},
          {"rows", map_each(pair.rows, report_of_row)}};
}

}  // namespace relaxc::tools
