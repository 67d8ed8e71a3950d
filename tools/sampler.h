// The choice of the next token by its logits.
#pragma once
#include <cstdint>
#include <random>
#include <span>

namespace relaxc::tools {

struct SamplerOptions {
  double temperature = 0;  // 0: the token of the largest logit, always
  int64_t top_k = 0;       // draws among so many tokens of the largest logits; 0: all
  uint64_t seed = 0;
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {}
  // Returns a token. Of equal logits the one of the lower token is larger. The same seed and logits give the same
  // tokens on every machine. Throws RuntimeError for a logit that is NaN or where none is finite.
  int64_t choose(std::span<const double> logits);

 private:
  SamplerOptions options_;
  std::mt19937_64 random_;
};

}  // namespace relaxc::tools
