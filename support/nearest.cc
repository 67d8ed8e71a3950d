#include "support/nearest.h"

#include <algorithm>

namespace relaxc {

// Counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
static size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > 64) return {};
  if (word.size() == 1) {
    // Any two letters are within the limit, so for a single letter only the case may differ.
    auto is_meant = [&](const std::string& name) { return name.size() == 1 && ((name[0] ^ word[0]) & ~0x20) == 0; };
    auto found = std::ranges::find_if(candidates, is_meant);
    return found == candidates.end() ? "" : *found;
  }
  // The right last part under another path is also a near miss: R.relu for R.nn.relu, "gelu" for "loop/gelu".
  auto last_part = [](std::string_view path) { return path.substr(path.find_last_of("./") + 1); };
  size_t best = std::max<size_t>(1, word.size() / 3) + 1;
  std::string result;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 96) continue;
    bool same_tail = !last_part(word).empty() && last_part(word) == last_part(candidate);
    size_t distance = edit_distance(word, candidate);
    if (same_tail) distance = std::min<size_t>(distance, 1);
    if (distance >= best) continue;
    best = distance;
    result = candidate;
  }
  return result;
}

}  // namespace relaxc
