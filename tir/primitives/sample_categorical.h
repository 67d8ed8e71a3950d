#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct SampleCategorical {
  Ints candidates;
  Doubles probs;

  static constexpr PrimitiveInfo kInfo{"sample_categorical", "chooses one of the numbers"};
  static constexpr auto fields() {
    return std::tuple(required<&SampleCategorical::candidates>("the numbers"),
                      required<&SampleCategorical::probs>("their probabilities, whose sum is 1"));
  }
  Expr apply(scheduling::Step& step) const;
};

}  // namespace relaxc
