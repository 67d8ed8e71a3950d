#include "tir/edit/tiles.h"

#include <numeric>

namespace relaxc::scheduling {

Ints random_tile(int64_t number, int64_t n, int64_t max_innermost, std::mt19937_64& random) {
  Ints result(static_cast<size_t>(n), 1);
  auto place = [&](int64_t prime) {
    size_t at = random() % result.size();
    if (at + 1 == result.size() && result[at] * prime > max_innermost) at = random() % std::max<size_t>(at, 1);
    result[at] *= prime;
  };
  for (int64_t prime = 2; prime * prime <= number; ++prime) {
    for (; number % prime == 0; number /= prime) place(prime);
  }
  if (number > 1) place(number);
  return result;
}

Ints random_inner_tile(int64_t n, int64_t max_innermost, std::mt19937_64& random) {
  Ints result(static_cast<size_t>(n), 0);
  for (size_t i = 1; i < result.size(); ++i) {
    int64_t most = i + 1 == result.size() ? max_innermost : 8;
    result[i] = 1;
    for (uint64_t doublings = random() % 5; doublings > 0 && result[i] * 2 <= most; --doublings) result[i] *= 2;
  }
  return result;
}

std::optional<int64_t> known_extent(const TreeNode* loop) {
  auto extent = as_int(loop->loop->extent);
  return extent && *extent > 0 ? extent : std::nullopt;
}

Ints decided_tile(Step& step, TreeNode* loop, int64_t n) {
  Ints tile;
  bool fits = from_attr(step.decision(), tile) && static_cast<int64_t>(tile.size()) == n;
  for (size_t i = 0; fits && i < tile.size(); ++i) fits = tile[i] > (i == 0 && !known_extent(loop) ? -1 : 0);
  if (!fits) step.refuse({loop}, "decision {} is not a list of {} positive factors", to_string(step.decision()), n);
  return tile;
}

Ints fit_tile(Ints tile, const TreeNode* loop) {
  auto extent = known_extent(loop);
  int64_t left = extent.value_or(0);
  for (size_t i = tile.size(); extent && i-- > 1; left /= tile[i]) tile[i] = tile[i] > 0 ? std::gcd(tile[i], left) : 1;
  tile[0] = left;
  return tile;
}

}  // namespace relaxc::scheduling
