#include "vm/profiler.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "support/formatted.h"
#include "support/printable.h"

namespace relaxc::vm {

void TableProfiler::on_kernel(const KernelEvent& event) {
  std::string name(event.kernel);
  if (!event.label.empty()) name.append(" / ").append(event.label);
  Row& row = rows_[std::move(name)];
  ++row.calls;
  row.total_ns += event.duration_ns;
}

int64_t TableProfiler::total_ns() const {
  int64_t total = 0;
  for (const auto& [name, row] : rows_) total += row.total_ns;
  return total;
}

std::string TableProfiler::text() const {
  std::vector<std::pair<std::string_view, Row>> sorted(rows_.begin(), rows_.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& entry) { return entry.second.total_ns; });
  double total = static_cast<double>(std::max<int64_t>(total_ns(), 1));
  std::string text = formatted("{:>8} {:>12} {:>12} {:>7}  {}\n", "calls", "total ms", "mean us", "share", "kernel");
  for (const auto& [name, row] : sorted) {
    double ns = static_cast<double>(row.total_ns);
    text += formatted("{:>8} {:>12.3f} {:>12.2f} {:>6.1f}%  {}\n", row.calls, ns / 1e6,
                      ns / 1e3 / static_cast<double>(row.calls), 100 * ns / total, printable(name, std::string::npos));
  }
  return text;
}

}  // namespace relaxc::vm
