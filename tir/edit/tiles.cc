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

Refusal decided_tile(const AttrValue& decision, int64_t n, bool known, Ints& tile) {
  bool fits = from_attr(decision, tile) && static_cast<int64_t>(tile.size()) == n;
  // When the extent is not known, the outermost factor is 0.
  for (size_t i = 0; fits && i < tile.size(); ++i) fits = tile[i] > (i == 0 && !known ? -1 : 0);
  if (fits) return std::nullopt;
  return message("decision {} is no list of {} positive factors", to_string(decision), n);
}

Ints fit_tile(const Ints& decided, int64_t number) {
  Ints result(decided.size(), 1);
  for (size_t i = decided.size(); i-- > 1;) {
    result[i] = decided[i] > 0 ? std::gcd(decided[i], number) : 1;
    number /= result[i];
  }
  result[0] = number;
  return result;
}

}  // namespace relaxc::scheduling
