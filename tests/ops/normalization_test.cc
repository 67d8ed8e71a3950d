#include <algorithm>

#include "codegen/compile.h"
#include "tests/ops/harness.h"

using namespace relaxc;
using namespace relaxc::test;

namespace {

const OpTable& normalization_table() {
  static const OpTable kTable(normalization_ops());
  return kTable;
}

// Mean and variance of the elements of x that share `key` with the index.
struct Moments {
  double mean = 0, variance = 0, mean_square = 0;
};
Moments moments(const Tensor& x, const Shape& index, const std::function<Shape(const Shape&)>& key) {
  std::vector<double> elements;
  Shape wanted = key(index);
  for_each_index(x.shape(), [&](const Shape& at) {
    if (key(at) == wanted) elements.push_back(element(x, at));
  });
  Moments m;
  double n = static_cast<double>(elements.size());
  for (double v : elements) m.mean += v / n;
  for (double v : elements) m.variance += (v - m.mean) * (v - m.mean) / n;
  for (double v : elements) m.mean_square += v * v / n;
  return m;
}
// The index without the dims in axes.
std::function<Shape(const Shape&)> without(const Shape& axes) {
  return [axes](const Shape& index) {
    Shape kept;
    for (size_t d = 0; d < index.size(); ++d) {
      if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) == axes.end()) kept.push_back(index[d]);
    }
    return kept;
  };
}
Tensor positive(Shape shape, DType dtype, uint32_t seed) {
  Tensor t = values(std::move(shape), dtype, seed);
  for (int64_t i = 0; i < t.size(); ++i) t.set_double(i, std::fabs(t.as_double(i)) + 0.25);
  return t;
}
constexpr double kEpsilon = 1e-3;

}  // namespace

TEST_CASE("batch norm with the given statistics", "[ops][norm]") {
  for (DType dtype : {kFloat32, kFloat64, DType::float_(16)}) {
    for (int64_t axis : {1, -1}) {
      Shape shape = {2, 3, 4, 3};
      DType stats = dtype.bits == 16 ? kFloat32 : dtype;
      Tensor x = values(shape, dtype), gamma = values({3}, stats, 2), beta = values({3}, stats, 3);
      Tensor mean = values({3}, stats, 4), variance = positive({3}, stats, 5);
      size_t channel = axis == 1 ? 1 : 3;
      for (const Symbolic& symbolic : {Symbolic{}, Symbolic{{make_dim("n"), int_imm(3), make_dim("h"), int_imm(3)}}}) {
        Attrs attrs{{"axis", axis}, {"epsilon", kEpsilon}, {"training", false}};
        auto out = run_op(normalization_table(), "nn.batch_norm", {x, gamma, beta, mean, variance}, attrs, symbolic);
        check_tensor(
            out[0], shape,
            [&](const Shape& i) {
              int64_t c = i[channel];
              double scale = gamma.as_double(c) / std::sqrt(variance.as_double(c) + kEpsilon);
              return (element(x, i) - mean.as_double(c)) * scale + beta.as_double(c);
            },
            dtype.bits == 16 ? 2e-3 : 1e-5);
        CHECK(same_contents(out[1], mean));
        CHECK(same_contents(out[2], variance));
      }
    }
  }
}

TEST_CASE("batch norm in training", "[ops][norm]") {
  Shape shape = {2, 3, 4};
  Tensor x = values(shape), gamma = values({3}, kFloat32, 2), beta = values({3}, kFloat32, 3);
  Tensor mean = values({3}, kFloat32, 4), variance = positive({3}, kFloat32, 5);
  Attrs attrs{{"epsilon", kEpsilon}, {"momentum", 0.25}, {"training", true}};
  auto out = run_op(normalization_table(), "nn.batch_norm", {x, gamma, beta, mean, variance}, attrs);
  auto of = [&](const Shape& i) { return moments(x, i, without({0, 2})); };
  check_tensor(out[0], shape, [&](const Shape& i) {
    Moments m = of(i);
    double scale = gamma.as_double(i[1]) / std::sqrt(m.variance + kEpsilon);
    return (element(x, i) - m.mean) * scale + beta.as_double(i[1]);
  });
  check_tensor(out[1], {3}, [&](const Shape& i) { return 0.75 * element(mean, i) + 0.25 * of({0, i[0], 0}).mean; });
  check_tensor(out[2], {3},
               [&](const Shape& i) { return 0.75 * element(variance, i) + 0.25 * of({0, i[0], 0}).variance; });
  Attrs plain = attrs.with("scale", false).with("center", false);
  check_tensor(run_op(normalization_table(), "nn.batch_norm", {x, gamma, beta, mean, variance}, plain)[0], shape,
               [&](const Shape& i) { return (element(x, i) - of(i).mean) / std::sqrt(of(i).variance + kEpsilon); });
}

TEST_CASE("layer norm and RMS norm", "[ops][norm]") {
  for (DType dtype : {kFloat32, DType::float_(16)}) {
    Shape shape = {2, 3, 4};
    Tensor x = values(shape, dtype);
    double tolerance = dtype.bits == 16 ? 4e-3 : 1e-5;
    struct Case {
      Shape axes, normal;
    };
    for (const Case& c : {Case{{-1}, {2}}, Case{{1, 2}, {1, 2}}, Case{{0, -2}, {0, 1}}}) {
      Shape parameter;
      for (int64_t axis : c.normal) parameter.push_back(shape[static_cast<size_t>(axis)]);
      Tensor gamma = values(parameter, dtype, 2), beta = values(parameter, dtype, 3);
      auto at_axes = [&](const Shape& i) {
        Shape index;
        for (int64_t axis : c.normal) index.push_back(i[static_cast<size_t>(axis)]);
        return index;
      };
      Attrs attrs{{"axes", c.axes}, {"epsilon", kEpsilon}};
      check_tensor(
          run_op(normalization_table(), "nn.layer_norm", {x, gamma, beta}, attrs)[0], shape,
          [&](const Shape& i) {
            Moments m = moments(x, i, without(c.normal));
            double value = (element(x, i) - m.mean) / std::sqrt(m.variance + kEpsilon);
            return value * element(gamma, at_axes(i)) + element(beta, at_axes(i));
          },
          tolerance);
      check_tensor(
          run_op(normalization_table(), "nn.rms_norm", {x, gamma}, attrs)[0], shape,
          [&](const Shape& i) {
            double square = moments(x, i, without(c.normal)).mean_square;
            return element(x, i) / std::sqrt(square + kEpsilon) * element(gamma, at_axes(i));
          },
          tolerance);
    }
  }
  VarRef n = make_dim("n"), d = make_dim("d");
  Tensor x = values({3, 5}), gamma = values({5}, kFloat32, 2), beta = values({5}, kFloat32, 3);
  check_tensor(run_op(normalization_table(), "nn.layer_norm", {x, gamma, beta}, {}, {{n, d}, {d}, {d}})[0], {3, 5},
               [&](const Shape& i) {
                 Moments m = moments(x, i, without({1}));
                 return (element(x, i) - m.mean) / std::sqrt(m.variance + 1e-5) * gamma.as_double(i[1]) +
                        beta.as_double(i[1]);
               });
}

TEST_CASE("instance norm and group norm", "[ops][norm]") {
  Shape shape = {2, 6, 3, 4};
  Tensor x = values(shape), gamma = values({6}, kFloat32, 2), beta = values({6}, kFloat32, 3);
  Attrs attrs{{"channel_axis", 1}, {"axes", Shape{2, 3}}, {"epsilon", kEpsilon}};
  auto normalized = [&](const Shape& i, const Moments& m, int64_t channel) {
    double value = (element(x, i) - m.mean) / std::sqrt(m.variance + kEpsilon);
    return value * gamma.as_double(channel) + beta.as_double(channel);
  };
  for (const Symbolic& symbolic : {Symbolic{}, Symbolic{{make_dim("n"), int_imm(6), make_dim("h"), make_dim("w")}}}) {
    check_tensor(run_op(normalization_table(), "nn.instance_norm", {x, gamma, beta}, attrs, symbolic)[0], shape,
                 [&](const Shape& i) { return normalized(i, moments(x, i, without({2, 3})), i[1]); });
    for (int64_t groups : {1, 2, 3, 6}) {
      auto key = [&](const Shape& i) { return Shape{i[0], i[1] / (6 / groups)}; };
      check_tensor(run_op(normalization_table(), "nn.group_norm", {x, gamma, beta}, attrs.with("num_groups", groups),
                          symbolic)[0],
                   shape, [&](const Shape& i) { return normalized(i, moments(x, i, key), i[1]); });
    }
  }
  // Channels last.
  Shape last = {2, 5, 4};
  Tensor y = values(last), scale = values({4}, kFloat32, 2), offset = values({4}, kFloat32, 3);
  Attrs attrs_last{{"num_groups", 2}, {"channel_axis", -1}, {"axes", Shape{1}}};
  check_tensor(
      run_op(normalization_table(), "nn.group_norm", {y, scale, offset}, attrs_last)[0], last, [&](const Shape& i) {
        Moments m = moments(y, i, [](const Shape& at) { return Shape{at[0], at[2] / 2}; });
        return (element(y, i) - m.mean) / std::sqrt(m.variance + 1e-5) * scale.as_double(i[2]) + offset.as_double(i[2]);
      });
}

TEST_CASE("LRN", "[ops][norm]") {
  Shape shape = {2, 7, 3};
  Tensor x = values(shape);
  for (int64_t size : {1, 2, 3, 4, 9}) {
    Attrs attrs{{"size", size}, {"alpha", 0.5}, {"beta", 0.6}, {"bias", 2.0}};
    for (const Symbolic& symbolic : {Symbolic{}, Symbolic{{make_dim("n"), make_dim("c"), int_imm(3)}}}) {
      check_tensor(run_op(normalization_table(), "nn.lrn", {x}, attrs, symbolic)[0], shape, [&](const Shape& i) {
        int64_t first = std::max<int64_t>(0, i[1] - (size - 1) / 2), last = std::min<int64_t>(6, i[1] + size / 2);
        double sum = 0;
        for (int64_t c = first; c <= last; ++c) sum += std::pow(element(x, {i[0], c, i[2]}), 2);
        return element(x, i) / std::pow(2.0 + 0.5 / static_cast<double>(size) * sum, 0.6);
      });
    }
  }
}

TEST_CASE("normalization errors", "[ops][norm]") {
  Tensor x = values({2, 6, 4}), six = values({6}), four = values({4});
  auto message = [&](const char* name, std::vector<Tensor> inputs, Attrs attrs) {
    return error_of(normalization_table(), name, inputs, attrs);
  };
  CHECK(contains(message("nn.batch_norm", {x, six, four, six, six}, {}), "dim 0 of beta and the data's: 4 and 6"));
  CHECK(contains(message("nn.layer_norm", {x, six, six}, {}), "dim 0 of gamma and the data's: 6 and 4"));
  CHECK(contains(message("nn.layer_norm", {x, x, x}, {}), "gamma has rank 3, expected 1"));
  CHECK(contains(message("nn.group_norm", {x, six, six}, {{"num_groups", 4}, {"axes", 2}}),
                 "num_groups does not divide the channels: 6 and 4"));
  CHECK(contains(message("nn.group_norm", {x, six, six}, {{"axes", Shape{1, 2}}}), "contain the channel axis 1"));
  CHECK(contains(message("nn.lrn", {values({2, 3}, kInt32)}, {}), "expected a float, got int32"));
  for (const char* activation : {"nn.leakyrelu", "nn.softplus"})
    CHECK(contains(error_of(op_table(), activation, {values({2, 3}, kInt32)}), "expected a float, got int32"));
  CHECK(contains(message("nn.lrn", {x}, {{"size", 0}}), "size is 0"));
}
