#include "passes/winograd_transforms.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "support/check.h"
#include "support/lists.h"
#include "tir/compute.h"

namespace relaxc::winograd {

namespace {

// The squares of the points other than 0 and infinity. They are powers of two, so that double holds the coefficients of
// the polynomials exactly. Points whose products are 1 keep the transforms' entries balanced: those of F(4, 3) have a
// quarter of the error of the usual 1, -1, 2, -2, and no choice of F(6, 3) has much less than 1/2, 1 and 2.
struct Points {
  int64_t tile;
  std::vector<double> squares;
};
const std::vector<Points>& all_points() {
  static const std::vector<Points> kPoints = {{2, {1}}, {4, {0.5, 2}}, {6, {0.25, 1, 4}}};
  return kPoints;
}

Expr times(double factor, const Expr& x) { return x * float_imm(factor); }
double times(double factor, double x) { return x * factor; }

// Returns the sum of factors[i] * values[i], of which the last ones come first: a polynomial's leading coefficient
// is 1. Those with the factors 1 and -1 need no product, and come before the others.
template <class Value>
Value weighted_sum(const std::vector<double>& factors, const std::vector<Value>& values) {
  std::optional<Value> sum;
  auto add = [&](double factor, const Value& value) {
    const double size = sum ? std::fabs(factor) : factor;
    const Value term = size == 1 ? value : times(size, value);
    sum = !sum ? term : factor < 0 ? *sum - term : *sum + term;
  };
  for (bool is_plain : {true, false}) {
    for (size_t i = factors.size(); i-- > 0;) {
      if ((std::fabs(factors[i]) == 1) == is_plain) add(factors[i], values[i]);
    }
  }
  return *sum;
}

// Returns every second value, from the first one on.
template <class Value>
std::vector<Value> every_second(const std::vector<Value>& values, size_t first) {
  std::vector<Value> result;
  for (size_t i = first; i < values.size(); i += 2) result.push_back(values[i]);
  return result;
}

double squared_norm(std::span<const double> values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return sum;
}

// A sum of random numbers with these factors, and the variance of the roundings on the way to it in units of those of
// a number. A product is exact: a power of two, or fused with the addition that follows.
struct Rounded {
  std::vector<double> factors;
  double roundings = 0;

  double variance() const { return squared_norm(factors); }
};

Rounded weighted_sum(double x, const Rounded& a, double y, const Rounded& b) {
  Rounded sum{a.factors, x * x * a.roundings + y * y * b.roundings};
  for (size_t i = 0; i < sum.factors.size(); ++i) sum.factors[i] = x * a.factors[i] + y * b.factors[i];
  sum.roundings += sum.variance();
  return sum;
}
Rounded operator+(const Rounded& a, const Rounded& b) { return weighted_sum(1, a, 1, b); }
Rounded operator-(const Rounded& a, const Rounded& b) { return weighted_sum(1, a, -1, b); }
Rounded times(double factor, const Rounded& x) {
  return {map_each(x.factors, [&](double value) { return value * factor; }), factor * factor * x.roundings};
}

// Returns the random numbers themselves.
std::vector<Rounded> exact_numbers(int64_t size) {
  std::vector<Rounded> result(static_cast<size_t>(size), {std::vector<double>(static_cast<size_t>(size))});
  for (size_t i = 0; i < result.size(); ++i) result[i].factors[i] = 1;
  return result;
}

// Returns the coefficients of the product of (y - root) over the roots, the constant first.
std::vector<double> polynomial_of(const std::vector<double>& roots) {
  std::vector<double> result = {1};
  for (double root : roots) {
    result.insert(result.begin(), 0);
    for (size_t i = 0; i + 1 < result.size(); ++i) result[i] -= root * result[i + 1];
  }
  return result;
}

}  // namespace

const std::vector<int64_t>& MinimalFiltering::tiles() {
  static const std::vector<int64_t> kTiles = map_each(all_points(), &Points::tile);
  return kTiles;
}

MinimalFiltering::MinimalFiltering(int64_t tile) : tile_(tile) {
  auto points = std::ranges::find(all_points(), tile, &Points::tile);
  RELAXC_CHECK(points != all_points().end(), "there are no points for tiles of {}", tile);
  squares_ = points->squares;
  polynomial_ = polynomial_of(squares_);
}

std::vector<double> MinimalFiltering::polynomial_without(size_t pair) const {
  std::vector<double> others = squares_;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(pair));
  return polynomial_of(others);
}

// With P(y) the polynomial whose roots are the squares, and P_a that of the others, the rows are the coefficients of
// P(x^2) for the point 0, x (x + a) P_a(x^2) for a, and x P(x^2) for infinity.
template <class Value>
std::vector<Value> MinimalFiltering::of_patch(const std::vector<Value>& pixels) const {
  const std::vector<Value> even = every_second(pixels, 0), odd = every_second(pixels, 1);
  const std::vector<Value> inner_even(even.begin() + 1, even.end());
  std::vector<Value> result = {weighted_sum(polynomial_, even)};
  for (size_t pair = 0; pair < squares_.size(); ++pair) {
    const std::vector<double> factors = polynomial_without(pair);
    const double point = std::sqrt(squares_[pair]);
    const Value of_even = weighted_sum(factors, inner_even), sum = weighted_sum(factors, odd);
    const Value of_odd = point == 1 ? sum : times(point, sum);
    result.push_back(of_even + of_odd);
    result.push_back(of_even - of_odd);
  }
  result.push_back(weighted_sum(polynomial_, odd));
  return result;
}

// Row j has the powers a^j, here divided by a^2: powers of a that are far from 1 on one side only would cost accuracy
// and products.
template <class Value>
std::vector<Value> MinimalFiltering::of_products(const std::vector<Value>& products) const {
  std::vector<Value> sums, differences;
  for (size_t i = 1; i + 1 < products.size(); i += 2) {
    sums.push_back(products[i] + products[i + 1]);
    differences.push_back(products[i] - products[i + 1]);
  }
  std::vector<Value> result;
  for (int64_t j = 0; j < tile_; ++j) {
    std::vector<double> factors =
        map_each(squares_, [&](double square) { return std::pow(square, static_cast<double>(j - 2) / 2); });
    std::vector<Value> values = j % 2 == 0 ? sums : differences;
    if (j == 0 || j == tile_ - 1) {
      factors.insert(factors.begin(), 1);
      values.insert(values.begin(), j == 0 ? products.front() : products.back());
    }
    result.push_back(weighted_sum(factors, values));
  }
  return result;
}

// Row a has the powers 1, a, a^2 over the product of its differences to the other points, here times a^2.
std::vector<std::array<double, 3>> MinimalFiltering::of_window() const {
  std::vector<std::array<double, 3>> result = {{1 / polynomial_[0], 0, 0}};
  for (size_t pair = 0; pair < squares_.size(); ++pair) {
    const double square = squares_[pair], point = std::sqrt(square);
    double differences = 2;
    for (double other : squares_) {
      if (other != square) differences *= square - other;
    }
    result.push_back({1 / differences, point / differences, square / differences});
    result.push_back({1 / differences, -point / differences, square / differences});
  }
  result.push_back({0, 0, 1});
  return result;
}

double MinimalFiltering::error(int64_t channels) const {
  const std::vector<Rounded> pixels = of_patch(exact_numbers(patch()));
  const std::vector<Rounded> rows = of_products(exact_numbers(patch()));
  const auto window = of_window();
  std::vector<Rounded> products;  // of pixels with weights, as factors of each pair
  for (size_t point = 0; point < pixels.size(); ++point) {
    products.emplace_back();
    for (double pixel : pixels[point].factors) {
      for (double weight : window[point]) products.back().factors.push_back(pixel * weight);
    }
  }
  double sums = 0, of_pixels = 0, of_results = 0;
  for (const Rounded& row : rows) {
    for (size_t point = 0; point < pixels.size(); ++point) {
      const double used = row.factors[point] * row.factors[point] / static_cast<double>(tile_);
      sums += used * products[point].variance();
      of_pixels += used * pixels[point].roundings * squared_norm(window[point]);
    }
  }
  for (const Rounded& result : of_products(products)) of_results += result.roundings / static_cast<double>(tile_);
  const auto count = static_cast<double>(channels);
  const double once = sums * sums + 2 * sums * of_pixels + of_results * (sums + 3);
  return std::sqrt((sums * sums * (count + 1) / 2 + once) / (9 * (9 * count + 1) / 2));
}

template std::vector<Expr> MinimalFiltering::of_patch(const std::vector<Expr>&) const;
template std::vector<double> MinimalFiltering::of_patch(const std::vector<double>&) const;
template std::vector<Expr> MinimalFiltering::of_products(const std::vector<Expr>&) const;
template std::vector<double> MinimalFiltering::of_products(const std::vector<double>&) const;

}  // namespace relaxc::winograd
