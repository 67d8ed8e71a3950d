#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct SampleCategorical {
  Ints candidates;
  Doubles probs;

  static constexpr std::string_view kName = "sample_categorical";
  static constexpr std::string_view kDoc = "chooses one of the numbers";
  static constexpr auto fields() {
    return std::tuple(required("candidates", &SampleCategorical::candidates, "the numbers"),
                      required("probs", &SampleCategorical::probs, "their probabilities, whose sum is 1"));
  }
  Expr apply(scheduling::Step& step) const;
};

}  // namespace relaxc
