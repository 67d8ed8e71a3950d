#pragma once
#include <cmath>

#include "tir/primitives/primitive.h"

namespace relaxc {

struct SampleCategorical {
  Ints candidates;
  Doubles probs;

  static constexpr PrimitiveInfo kInfo{"sample_categorical", "chooses one of the numbers"};
  static constexpr auto fields() {
    return list(required<&SampleCategorical::candidates>("the numbers"),
                required<&SampleCategorical::probs>("their probabilities, whose sum is 1"));
  }
  // The decision is the position of the number.
  Expr apply(scheduling::Step& step) const {
    if (candidates.empty() || candidates.size() != probs.size())
      fail({}, "sample_categorical: there are {} candidates and {} probabilities", candidates.size(), probs.size());
    double total = 0;
    bool positive = true;
    for (double p : probs) {
      total += p;
      positive = positive && p >= 0;
    }
    if (!positive || std::abs(total - 1) > 1e-4)
      fail({}, "sample_categorical: the probabilities are not from 0 on, or their sum, {}, is not 1", total);
    int64_t chosen = 0;
    if (!step.decision().is_none()) {
      if (!from_attr(step.decision(), chosen) || chosen < 0 || chosen >= static_cast<int64_t>(candidates.size()))
        step.refuse({}, "decision {} is not a position among {} candidates", to_string(step.decision()),
                    candidates.size());
    } else {
      // The standard library's distribution would give other numbers with another library.
      double at = static_cast<double>(step.workspace().random()() >> 11) * 0x1p-53 * total;
      while (chosen + 1 < static_cast<int64_t>(probs.size()) && at >= probs[static_cast<size_t>(chosen)])
        at -= probs[static_cast<size_t>(chosen++)];
    }
    step.decide(chosen);
    return step.number_results({candidates[static_cast<size_t>(chosen)]})[0];
  }
};

}  // namespace relaxc
