#include "frontend/onnx/dim_expressions.h"

#include <cctype>

#include "ir/arith.h"
#include "support/whole_number.h"

namespace relaxc::onnx_import {

namespace {

class DimExpressionReader {
 public:
  DimExpressionReader(std::string_view text, const std::function<std::optional<Expr>(const std::string&)>& dim)
      : text_(text), dim_(dim) {}

  std::optional<Expr> run() {
    std::optional<Expr> result = sum(0);
    skip_spaces();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  static constexpr int kDeepest = 32;

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  // Takes the next character if it is one of these, else returns 0.
  char take(std::string_view choices) {
    skip_spaces();
    const bool is_one = at_ < text_.size() && choices.find(text_[at_]) != std::string_view::npos;
    return is_one ? text_[at_++] : '\0';
  }

  std::optional<Expr> sum(int depth) {  // NOLINT: bounded by kDeepest
    std::optional<Expr> left = product(depth);
    while (left) {
      const char sign = take("+-");
      if (sign == '\0') break;
      const std::optional<Expr> right = product(depth);
      if (!right) return std::nullopt;
      left = simplify(sign == '+' ? *left + *right : *left - *right);
    }
    return left;
  }
  std::optional<Expr> product(int depth) {  // NOLINT: bounded by kDeepest
    std::optional<Expr> left = factor(depth);
    while (left && take("*") != '\0') {
      const std::optional<Expr> right = factor(depth);
      if (!right) return std::nullopt;
      left = simplify(*left * *right);
    }
    return left;
  }
  std::optional<Expr> factor(int depth) {  // NOLINT: bounded by kDeepest
    if (take("(") != '\0') {
      std::optional<Expr> inner = depth < kDeepest ? sum(depth + 1) : std::nullopt;
      return take(")") != '\0' ? inner : std::nullopt;
    }
    skip_spaces();
    const size_t begin = at_;
    auto is_of_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; };
    while (at_ < text_.size() && is_of_word(static_cast<unsigned char>(text_[at_]))) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    if (const std::optional<int64_t> number = whole_number(word)) return int_imm(*number);
    return word.empty() ? std::nullopt : dim_(word);
  }

  std::string_view text_;
  const std::function<std::optional<Expr>(const std::string&)>& dim_;
  size_t at_ = 0;
};

}  // namespace

std::optional<Expr> dim_of_expression(std::string_view name,
                                      const std::function<std::optional<Expr>(const std::string& word)>& dim) {
  if (name.find_first_of("+-*") == std::string_view::npos) return std::nullopt;
  bool has_dim = false;
  auto value_of = [&](const std::string& word) {
    has_dim = true;
    return dim(word);
  };
  std::optional<Expr> result = DimExpressionReader(name, value_of).run();
  return has_dim ? result : std::nullopt;
}

}  // namespace relaxc::onnx_import
