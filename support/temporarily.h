// Sets a variable until the end of the scope: Temporarily in_loop(in_loop_, true).
#pragma once
#include <utility>

namespace relaxc {

template <class T>
class Temporarily {
 public:
  Temporarily(T& variable, T value) : variable_(variable), outer_(std::exchange(variable, std::move(value))) {}
  ~Temporarily() { variable_ = std::move(outer_); }
  Temporarily(const Temporarily&) = delete;
  Temporarily& operator=(const Temporarily&) = delete;

 private:
  T& variable_;
  T outer_;
};

}  // namespace relaxc
