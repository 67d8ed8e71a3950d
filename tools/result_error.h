// How far a result is from that of an exact model, with what is not finite counted apart.
#pragma once
#include <cstdint>
#include <string>

#include "vm/tensor.h"

namespace relaxc::tools {

// How far a result is from that of the exact model, over all samples.
class ResultError {
 public:
  void add(const std::string& name, const Tensor& exact, const Tensor& actual);
  // The root mean square of the difference, relative to that of the exact result, over the elements that are finite in
  // both; infinity where an element is finite in one of them alone, or a NaN in one and an infinity in the other.
  double relative() const;
  std::string text() const;

 private:
  // How many elements are a NaN or an infinity.
  struct NotFinite {
    int64_t nans = 0, infinities = 0;
    void add(double value);
    std::string text() const;
  };
  double relative_of_finite() const;
  std::string not_finite_text() const;
  void add_classes(const Tensor& exact, const Tensor& actual);
  double squares_ = 0, actual_squares_ = 0, products_ = 0, error_ = 0, largest_ = 0;
  int64_t elements_ = 0, compared_ = 0, parted_ = 0;  // parted: not finite, and not the same in both
  NotFinite exact_not_finite_, actual_not_finite_;
  int64_t rows_ = 0, same_ = 0;
};

}  // namespace relaxc::tools
