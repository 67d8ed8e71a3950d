#include "tools/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "vm/error.h"

namespace relaxc::tools {

// Draws a token with the probability softmax(logits / temperature) among the top k.
int64_t Sampler::choose(std::span<const double> logits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) throw_runtime_error("logit {} of the next token is NaN", i);
  }
  const auto largest = std::ranges::max_element(logits);
  if (largest == logits.end() || !std::isfinite(*largest))
    throw_runtime_error("the largest of {} logits of the next token is not finite", logits.size());
  if (options_.temperature == 0) return largest - logits.begin();
  std::vector<int64_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), int64_t{0});
  if (options_.top_k > 0 && options_.top_k < std::ssize(tokens)) {
    auto comes_before = [&](int64_t a, int64_t b) {
      const double of_a = logits[static_cast<size_t>(a)], of_b = logits[static_cast<size_t>(b)];
      return of_a != of_b ? of_a > of_b : a < b;
    };
    std::ranges::partial_sort(tokens, tokens.begin() + options_.top_k, comes_before);
    tokens.resize(static_cast<size_t>(options_.top_k));
  }
  auto weight_of = [&](int64_t token) {
    return std::exp((logits[static_cast<size_t>(token)] - *largest) / options_.temperature);
  };
  double rest = 0;
  for (int64_t token : tokens) rest += weight_of(token);
  // 53 random bits are a number from 0 to 1. Distributions of the standard library differ between its versions.
  rest *= static_cast<double>(random_() >> 11) * 0x1p-53;
  for (int64_t token : tokens) {
    rest -= weight_of(token);
    if (rest < 0) return token;
  }
  return tokens.back();
}

}  // namespace relaxc::tools
