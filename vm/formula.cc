#include "vm/formula.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace relaxc::vm {

namespace {

// Formulas of an artifact may be damaged: they are no deeper than this.
constexpr int kMostDepth = 100;

// By recursive descent: a sum of products of atoms. What is wrong makes `is_right` false, and the value any.
class FormulaReader {
 public:
  FormulaReader(std::string_view text, std::span<const Tensor* const> tensors) : rest_(text), tensors_(tensors) {}

  std::optional<double> read() {
    double value = sum();
    return is_right_ && rest_.empty() ? std::optional(value) : std::nullopt;
  }

 private:
  bool take(std::string_view token) {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) { is_right_ = take(token) && is_right_; }

  double sum() {
    if (++depth_ > kMostDepth) is_right_ = false;
    double value = is_right_ ? product() : 0;
    while (is_right_) {
      if (take("+")) {
        value += product();
      } else if (take("-")) {
        value -= product();
      } else {
        break;
      }
    }
    --depth_;
    return value;
  }
  double product() {
    double value = atom();
    while (is_right_) {
      if (take("*")) {
        value *= atom();
      } else if (take("//")) {
        value = std::floor(value / atom());
      } else if (take("%")) {
        double divisor = atom();
        value -= std::floor(value / divisor) * divisor;
      } else {
        break;
      }
    }
    return value;
  }
  double atom() {
    if (take("(")) return closed(sum());
    bool is_min = take("min(");
    if (is_min || take("max(")) {
      double a = sum();
      expect(",");
      double b = closed(sum());
      return is_min ? std::min(a, b) : std::max(a, b);
    }
    return take("t") ? dim() : number();
  }
  double closed(double value) {
    expect(")");
    return value;
  }
  double number() {
    bool is_negative = take("-");
    double value = static_cast<double>(digits());
    return is_negative ? -value : value;
  }
  double dim() {
    size_t tensor = digits();
    expect("[");
    size_t axis = digits();
    expect("]");
    is_right_ = is_right_ && tensor < tensors_.size() && axis < tensors_[tensor]->shape().size();
    return is_right_ ? static_cast<double>(tensors_[tensor]->shape()[axis]) : 0;
  }
  size_t digits() {
    size_t value = 0;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    is_right_ = is_right_ && error == std::errc();
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  std::string_view rest_;
  std::span<const Tensor* const> tensors_;
  bool is_right_ = true;
  int depth_ = 0;
};

}  // namespace

std::optional<double> evaluate_formula(std::string_view text, std::span<const Tensor* const> tensors) {
  return FormulaReader(text, tensors).read();
}

}  // namespace relaxc::vm
