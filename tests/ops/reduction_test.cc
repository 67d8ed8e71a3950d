#include <algorithm>

#include "tests/ops/harness.h"

using namespace relaxc;
using namespace relaxc::test;

namespace {

const OpTable& reduction_table() {
  static const OpTable kTable(reduction_ops());
  return kTable;
}
Tensor run(const std::string& name, const Tensor& x, const Attrs& attrs = {}, const Symbolic& symbolic = {}) {
  return run_op(reduction_table(), name, {x}, attrs, symbolic)[0];
}
AttrValue list(Shape values) { return AttrValue(values); }

// The elements of x that reduce into `index` of the result.
std::vector<double> group(const Tensor& x, const Shape& axes, bool keepdims, const Shape& index) {
  std::vector<double> elements;
  for_each_index(x.shape(), [&](const Shape& at) {
    Shape kept;
    for (size_t d = 0; d < at.size(); ++d) {
      bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
      if (!gone) kept.push_back(at[d]);
      if (gone && keepdims) kept.push_back(0);
    }
    if (kept == index) elements.push_back(element(x, at));
  });
  return elements;
}
double reduce(const std::string& name, const std::vector<double>& values) {
  double sum = 0, product = 1, most = -INFINITY, least = INFINITY, squares = 0;
  for (double v : values) {
    sum += v;
    product *= v;
    most = std::max(most, v);
    least = std::min(least, v);
  }
  double mean = sum / static_cast<double>(values.size());
  for (double v : values) squares += (v - mean) * (v - mean);
  double variance = squares / static_cast<double>(values.size());
  if (name == "sum") return sum;
  if (name == "prod") return product;
  if (name == "max") return most;
  if (name == "min") return least;
  if (name == "mean") return mean;
  return name == "variance" ? variance : std::sqrt(variance);
}

}  // namespace

TEST_CASE("reductions over axes", "[ops][reduction]") {
  Tensor x = values({2, 3, 4});
  struct Case {
    std::optional<Shape> axis;
    Shape axes;
    bool keepdims;
    Shape result;
  };
  std::vector<Case> cases = {{Shape{1}, {1}, false, {2, 4}},       {Shape{-1}, {2}, true, {2, 3, 1}},
                             {Shape{0, 2}, {0, 2}, false, {3}},    {Shape{-3, 1}, {0, 1}, true, {1, 1, 4}},
                             {std::nullopt, {0, 1, 2}, false, {}}, {std::nullopt, {0, 1, 2}, true, {1, 1, 1}},
                             {Shape{}, {}, false, {2, 3, 4}}};
  VarRef n = make_dim("n"), m = make_dim("m"), k = make_dim("k");
  for (const char* name : {"sum", "prod", "max", "min", "mean", "variance", "std"}) {
    for (const Case& c : cases) {
      Attrs attrs{{"axis", c.axis ? list(*c.axis) : AttrValue()}, {"keepdims", c.keepdims}};
      for (const Symbolic& symbolic : {Symbolic{}, Symbolic{{n, m, k}}}) {
        INFO(name);
        check_tensor(run(name, x, attrs, symbolic), c.result,
                     [&](const Shape& i) { return reduce(name, group(x, c.axes, c.keepdims, i)); });
      }
    }
  }
}

TEST_CASE("reductions of other dtypes", "[ops][reduction]") {
  for (DType dtype : {DType::int_(8), DType::uint(8), kInt32, kInt64, DType::float_(16), DType::bfloat16(), kFloat64}) {
    Tensor x = values({5, 3}, dtype);
    for (const char* name : {"sum", "max", "min", "mean"}) {
      INFO(name << " of " << to_string(dtype));
      check_tensor(
          run(name, x, {{"axis", 0}}), {3},
          [&](const Shape& i) {
            double value = reduce(name, group(x, {0}, false, i));
            return dtype.is_integral() ? std::trunc(value) : value;
          },
          dtype.bits == 16 ? 1e-2 : 1e-5);
    }
  }
  Tensor b = Tensor::of<uint8_t>({2, 2}, kBool, {1, 0, 0, 0});
  CHECK(run("max", b, {{"axis", 1}}).as_int(0) == 1);
  CHECK(run("max", b, {{"axis", 1}}).as_int(1) == 0);
  CHECK(run("min", b).as_int(0) == 0);
  // float16 sums in float32: 4096 ones.
  Tensor ones = Tensor::empty({4096}, DType::float_(16));
  for (int64_t i = 0; i < 4096; ++i) ones.set_double(i, 1);
  CHECK(run("sum", ones).as_double(0) == 4096);
}

TEST_CASE("reductions of nothing give the neutral element", "[ops][reduction]") {
  Tensor x = Tensor::empty({2, 0, 3}, kFloat32);
  Attrs axis{{"axis", 1}};
  for (int64_t i = 0; i < 6; ++i) {
    CHECK(run("sum", x, axis).as_double(i) == 0);
    CHECK(run("prod", x, axis).as_double(i) == 1);
    CHECK(run("max", x, axis).as_double(i) == -INFINITY);
    CHECK(run("min", x, axis).as_double(i) == INFINITY);
    CHECK(std::isnan(run("mean", x, axis).as_double(i)));
  }
  CHECK(run("max", Tensor::empty({0}, DType::int_(8))).as_int(0) == -128);
  CHECK(run("min", Tensor::empty({0}, DType::uint(8))).as_int(0) == 255);
  CHECK(run("min", Tensor::empty({0}, kBool)).as_int(0) == 1);
  CHECK(run("sum", x, {{"axis", 0}}).shape() == Shape{0, 3});
}

TEST_CASE("reduction errors", "[ops][reduction]") {
  Tensor x = values({2, 3});
  CHECK(contains(error_of(reduction_table(), "sum", {x}, {{"axis", 2}}),
                 "axis 2 is out of range for a tensor of rank 2"));
  CHECK(contains(error_of(reduction_table(), "sum", {x}, {{"axis", list({0, -2})}}), "axis -2 is given twice"));
  CHECK(contains(error_of(reduction_table(), "sum", {values({2}, kBool)}), "of bool; convert with R.astype"));
  CHECK(contains(error_of(reduction_table(), "mean", {values({2}, kBool)}), "expected a number, got bool"));
  CHECK(contains(error_of(reduction_table(), "variance", {values({2}, kInt32)}), "expected a float, got int32"));
  CHECK(contains(error_of(reduction_table(), "argmax", {Tensor::empty({2, 0}, kFloat32)}, {{"axis", 1}}),
                 "axis is empty"));
}

TEST_CASE("argmax and argmin", "[ops][reduction]") {
  Tensor x = Tensor::of<float>({2, 4}, kFloat32, {1, 3, 3, 0, -1, -1, -5, -5});
  CHECK(run("argmax", x, {{"axis", 1}}).as_int(0) == 1);
  CHECK(run("argmax", x, {{"axis", -1}, {"select_last_index", true}}).as_int(0) == 2);
  CHECK(run("argmin", x, {{"axis", 1}}).as_int(1) == 2);
  CHECK(run("argmin", x, {{"axis", 1}, {"select_last_index", true}}).as_int(1) == 3);
  CHECK(run("argmax", x, {{"axis", 1}, {"keepdims", true}}).shape() == Shape{2, 1});
  CHECK(run("argmin", x).as_int(0) == 6);
  CHECK(run("argmin", x, {}, {{make_dim("n"), make_dim("m")}}).as_int(0) == 6);
  CHECK(run("argmax", x, {{"axis", 0}}).shape() == Shape{4});
  Tensor nan = Tensor::of<float>({4}, kFloat32, {1, NAN, 7, NAN});
  CHECK(run("argmax", nan, {{"axis", 0}}).as_int(0) == 1);
  CHECK(run("argmin", nan, {{"axis", 0}}).as_int(0) == 1);
  Tensor infinite = Tensor::of<float>({2}, kFloat32, {-INFINITY, -INFINITY});
  CHECK(run("argmax", infinite, {{"axis", 0}}).as_int(0) == 0);
  CHECK(run("argmax", values({3}, DType::uint(8)), {{"axis", 0}}).dtype() == kInt64);
}

TEST_CASE("cumsum and cumprod", "[ops][reduction]") {
  Tensor x = values({2, 3, 4});
  for (bool exclusive : {false, true}) {
    for (bool reverse : {false, true}) {
      for (int64_t axis : {0, 1, -1}) {
        size_t d = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
        for (const char* name : {"cumsum", "cumprod"}) {
          bool is_sum = std::string(name) == "cumsum";
          Attrs attrs{{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}};
          check_tensor(
              run(name, x, attrs, {{make_dim("a"), make_dim("b"), make_dim("c")}}), {2, 3, 4},
              [&](const Shape& index) {
                double total = is_sum ? 0 : 1;
                for (int64_t k = 0; k < x.shape()[d]; ++k) {
                  bool counts = reverse ? k >= index[d] : k <= index[d];
                  if (!counts || (exclusive && k == index[d])) continue;
                  Shape at = index;
                  at[d] = k;
                  total = is_sum ? total + element(x, at) : total * element(x, at);
                }
                return total;
              },
              1e-4);
        }
      }
    }
  }
  Tensor small = values({2, 3}, DType::int_(8));
  Tensor flat_sum = run("cumsum", small, {{"dtype", kInt64}});
  REQUIRE(flat_sum.shape() == Shape{6});
  CHECK(flat_sum.dtype() == kInt64);
  int64_t total = 0;
  for (int64_t i = 0; i < 6; ++i) CHECK(flat_sum.as_int(i) == (total += small.as_int(i)));
}

TEST_CASE("softmax and log_softmax", "[ops][reduction]") {
  for (DType dtype : {kFloat32, kFloat64, DType::float_(16)}) {
    Tensor x = values({2, 3, 4}, dtype);
    x.set_double(0, 1000);  // exp alone would overflow
    for (int64_t axis : {0, 1, -1}) {
      size_t d = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
      auto log_softmax = [&](const Shape& index) {
        double most = -INFINITY, sum = 0;
        Shape at = index;
        for (at[d] = 0; at[d] < x.shape()[d]; ++at[d]) most = std::max(most, element(x, at));
        for (at[d] = 0; at[d] < x.shape()[d]; ++at[d]) sum += std::exp(element(x, at) - most);
        return element(x, index) - most - std::log(sum);
      };
      double tolerance = dtype.bits == 16 ? 2e-3 : 1e-5;
      for (const Symbolic& symbolic : {Symbolic{}, Symbolic{{make_dim("a"), make_dim("b"), make_dim("c")}}}) {
        check_tensor(
            run("nn.softmax", x, {{"axis", axis}}, symbolic), x.shape(),
            [&](const Shape& i) { return std::exp(log_softmax(i)); }, tolerance);
        check_tensor(run("nn.log_softmax", x, {{"axis", axis}}, symbolic), x.shape(), log_softmax, tolerance);
      }
    }
  }
  CHECK(contains(error_of(reduction_table(), "nn.softmax", {values({2}, kInt32)}), "expected a float, got int32"));
}

TEST_CASE("softmax has no results that are too small for normal numbers", "[ops][reduction]") {
  struct Case {
    DType dtype;
    double normal, too_small;
  };
  for (const Case& c : {Case{kFloat32, -86.5, -88}, Case{kFloat64, -707, -709}}) {
    Tensor x = Tensor::empty({5}, c.dtype);
    const double elements[] = {0, c.normal, c.too_small, -1e5, -INFINITY};
    for (int64_t i = 0; i < 5; ++i) x.set_double(i, elements[i]);
    const Tensor y = run("nn.softmax", x, {{"axis", 0}});
    CHECK(y.as_double(0) == 1);
    CHECK(std::abs(y.as_double(1) / std::exp(c.normal) - 1) < 1e-5);
    for (int64_t i = 2; i < 5; ++i) CHECK(y.as_double(i) == 0);
    x.set_double(3, NAN);
    CHECK(std::isnan(run("nn.softmax", x, {{"axis", 0}}).as_double(2)));
  }
}
