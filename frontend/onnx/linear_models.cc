// Linear models and support vector machines.
#include <cmath>

#include "frontend/onnx/forest.h"
#include "frontend/onnx/labels.h"

namespace relaxc::onnx_import {

namespace {

// Returns the input as rows of float32; a list is one row.
Expr rows_of_input(Node& n) {
  Expr x = n.cast(n.tensor(0), kFloat32);
  std::vector<Expr> shape = n.shape_of(x);
  if (shape.size() == 1) return n.reshape(x, {int_imm(1), shape[0]});
  if (shape.size() != 2) n.fail("the input has rank {}, expected 1 or 2", shape.size());
  return x;
}
Expr matrix(Node& n, int64_t rows, const std::vector<double>& values, const char* what) {
  if (rows < 1 || values.empty() || std::ssize(values) % rows != 0)
    n.fail("attribute '{}' has {} numbers, expected a multiple of {}", what, values.size(), rows);
  return constant(float_list(values).reshaped({rows, std::ssize(values) / rows}), n.span());
}
// Returns x . matrix^T.
Expr times_transposed(Node& n, const Expr& x, const Expr& matrix) {
  n.require_equal(n.dim_of(x, 1), n.dim_of(matrix, 1), "features of the input and of the model");
  return n.op("matmul", {x, n.transpose(matrix, {1, 0})});
}
Expr as_list(Node& n, const Expr& column) { return n.reshape(column, {n.dim_of(column, 0)}); }
Expr is_above(Node& n, const Expr& x, double value) { return n.op("greater", {x, n.scalar_like(value, x)}); }
Expr transformed(Node& n, const Expr& scores, int64_t count) {
  std::string name = post_transform_name(n);
  return count > 1 ? post_transform(n, scores, name) : post_transform_of_one(n, scores, name);
}
// Returns the probabilities of two classes by a score of the second one, as ONNX Runtime does.
Expr both_classes(Node& n, const Expr& score, const std::string& transform) {
  if (transform == "PROBIT") return both_probits(n, score);
  Expr second = transform == "LOGISTIC" ? post_transform(n, score, transform) : score;
  return two_columns(n, n.sub(n.scalar_like(1, second), second), second);
}

Expr linear_regressor(Node& n) {
  int64_t targets = n.attr_int("targets", 1);
  Expr scores =
      times_transposed(n, rows_of_input(n), matrix(n, targets, n.attr_floats("coefficients"), "coefficients"));
  std::vector<double> intercepts = n.attr_floats("intercepts");
  if (!intercepts.empty()) {
    if (std::ssize(intercepts) != targets) n.fail("there are {} intercepts, expected {}", intercepts.size(), targets);
    scores = n.add(scores, row_of(n, intercepts, kFloat32));
  }
  return transformed(n, scores, targets);
}

Outputs linear_classifier(Node& n) {
  Labels labels(n, "classlabels_ints", "classlabels_strings");
  (void)n.attr_int("multi_class", 0);  // says how the model was trained
  std::vector<double> intercepts = n.attr_floats("intercepts"), coefficients = n.attr_floats("coefficients");
  Expr x = rows_of_input(n);
  int64_t count = std::ssize(intercepts);
  if (count == 0) {
    auto features = as_int(n.simplify(n.dim_of(x, 1)));
    if (!features || *features < 1)
      n.unsupported("a classifier without intercepts whose number of features is not known");
    count = std::ssize(coefficients) / *features;
  }
  if (count > 1 && count != labels.size()) n.fail("there are {} classes and {} labels", count, labels.size());
  Expr scores = times_transposed(n, x, matrix(n, count, coefficients, "coefficients"));
  if (!intercepts.empty()) scores = n.add(scores, row_of(n, intercepts, kFloat32));
  if (count > 1) return {labels.of_highest(scores), n.of(transformed(n, scores, count))};
  Value label = labels.binary(is_above(n, as_list(n, scores), 0));
  if (labels.size() == 2) scores = both_classes(n, scores, post_transform_name(n));
  if (labels.size() != 2) scores = transformed(n, scores, 1);
  return {label, n.of(scores)};
}

// ---- Support vector machines

// Returns the kernel of each row of x with each row of the vectors, plus a number.
Expr kernel(Node& n, const Expr& x, const Expr& vectors, std::string type, double plus) {
  std::vector<double> params = n.attr_floats("kernel_params");
  params.resize(3);
  const auto [gamma, coef0, degree] = std::tuple(params[0], params[1], params[2]);
  auto number = [&](double value) { return n.scalar(value, kFloat32); };
  if (type == "RBF") {
    n.require_equal(n.dim_of(x, 1), n.dim_of(vectors, 1), "features of the input and of the model");
    Expr difference = n.sub(n.with_new_axis(x, 1), n.with_new_axis(vectors, 0));
    Expr distance = n.reduce("sum", n.mul(difference, difference), {2}, false);
    return n.add(n.op("exp", {n.mul(distance, number(-gamma))}), number(plus));
  }
  Expr dot = times_transposed(n, x, vectors);
  if (type == "LINEAR") return n.add(dot, number(plus));
  if (type != "POLY" && type != "SIGMOID") n.fail("kernel_type is '{}', expected LINEAR, POLY, RBF or SIGMOID", type);
  Expr inner = n.add(n.mul(dot, number(gamma)), number(coef0));
  Expr result = type == "POLY" ? n.op("power", {inner, number(degree)}) : n.op("tanh", {inner});
  return n.add(result, number(plus));
}

double first_rho(Node& n) {
  std::vector<double> rho = n.attr_floats("rho");
  if (rho.empty()) n.fail("attribute 'rho' is missing");
  return rho[0];
}

Expr svm_regressor(Node& n) {
  Expr x = rows_of_input(n);
  int64_t supports = n.attr_int("n_supports", 0);
  std::vector<double> coefficients = n.attr_floats("coefficients");
  std::string type = n.attr_string("kernel_type", "LINEAR");
  Expr weights = matrix(n, 1, coefficients, "coefficients"), scores = x;
  if (supports > 0) {
    if (std::ssize(coefficients) != supports)
      n.fail("there are {} coefficients for {} vectors", coefficients.size(), supports);
    Expr kernels = kernel(n, x, matrix(n, supports, n.attr_floats("support_vectors"), "support_vectors"), type, 0);
    scores = n.add(times_transposed(n, kernels, weights), n.scalar(first_rho(n), kFloat32));
  } else {
    scores = kernel(n, x, weights, "LINEAR", first_rho(n));
  }
  (void)post_transform_name(n);  // ONNX Runtime does not apply it
  if (n.attr_int("one_class", 0) == 0) return scores;
  return n.op("where", {is_above(n, scores, 0), n.scalar(1, kFloat32), n.scalar(-1, kFloat32)});
}

// The classifiers of pairs of classes, in the order of libsvm: (0, 1), (0, 2), ..., (1, 2), ...
struct Pairs {
  explicit Pairs(int64_t classes) : classes(classes) {
    for (int64_t i = 0; i < classes; ++i) {
      for (int64_t j = i + 1; j < classes; ++j) of.emplace_back(i, j);
    }
  }
  int64_t count() const { return std::ssize(of); }
  int64_t classes;
  std::vector<std::pair<int64_t, int64_t>> of = {};
};

// Returns the scores of the pairs, [n, pairs].
Expr pair_scores(Node& n, const Expr& x, const Pairs& pairs, const std::vector<int64_t>& vectors_per_class) {
  std::vector<double> coefficients = n.attr_floats("coefficients"), rho = n.attr_floats("rho");
  std::vector<int64_t> first = {0};
  for (int64_t count : vectors_per_class) {
    if (count < 0 || count > INT32_MAX) n.fail("vectors_per_class has {}", count);
    first.push_back(first.back() + count);
  }
  int64_t vectors = first.back();
  if (std::ssize(vectors_per_class) != pairs.classes)
    n.fail("vectors_per_class has {} numbers, expected {}", vectors_per_class.size(), pairs.classes);
  if (std::ssize(coefficients) < (pairs.classes - 1) * vectors)
    n.fail("there are {} coefficients, expected {}", coefficients.size(), (pairs.classes - 1) * vectors);
  if (std::ssize(rho) < pairs.count()) n.fail("rho has {} numbers, expected {}", rho.size(), pairs.count());
  Expr support = matrix(n, vectors, n.attr_floats("support_vectors"), "support_vectors");
  std::vector<double> weights(static_cast<size_t>(pairs.count() * vectors));
  for (int64_t pair = 0; pair < pairs.count(); ++pair) {
    auto [i, j] = pairs.of[pair];
    for (int64_t v = first[i]; v < first[i + 1]; ++v) weights[pair * vectors + v] = coefficients[(j - 1) * vectors + v];
    for (int64_t v = first[j]; v < first[j + 1]; ++v) weights[pair * vectors + v] = coefficients[i * vectors + v];
  }
  Expr kernels = kernel(n, x, support, n.attr_string("kernel_type", "LINEAR"), 0);
  rho.resize(static_cast<size_t>(pairs.count()));
  return n.add(times_transposed(n, kernels, matrix(n, pairs.count(), weights, "coefficients")),
               row_of(n, rho, kFloat32));
}
// Returns how many pairs vote for each class, [n, classes].
Expr votes(Node& n, const Expr& scores, const Pairs& pairs) {
  std::vector<double> to_first(static_cast<size_t>(pairs.classes * pairs.count())), to_second = to_first;
  for (int64_t pair = 0; pair < pairs.count(); ++pair) {
    to_first[pairs.of[pair].first * pairs.count() + pair] = 1;
    to_second[pairs.of[pair].second * pairs.count() + pair] = 1;
  }
  Expr first = n.cast(is_above(n, scores, 0), kFloat32), second = n.sub(n.scalar(1, kFloat32), first);
  return n.add(times_transposed(n, first, matrix(n, pairs.classes, to_first, "votes")),
               times_transposed(n, second, matrix(n, pairs.classes, to_second, "votes")));
}
// Returns the probabilities of the classes by the sigmoids of the pairs. (Platt)
Expr probabilities(Node& n, const Expr& scores, const Pairs& pairs, const std::vector<double>& a,
                   const std::vector<double>& b) {
  if (a.size() != b.size() || std::ssize(a) != pairs.count())
    n.fail("prob_a and prob_b have {} and {} numbers, expected {}", a.size(), b.size(), pairs.count());
  Expr one = n.scalar(1, kFloat32);
  Expr value = n.add(n.mul(scores, row_of(n, a, kFloat32)), row_of(n, b, kFloat32));
  Expr first = n.clip(n.sub(one, n.op("sigmoid", {value})), 1e-7, 1 - 1e-7);
  Expr both = two_columns(n, first, n.sub(one, first));
  std::vector<int64_t> source(static_cast<size_t>(pairs.classes * pairs.classes));
  for (int64_t pair = 0; pair < pairs.count(); ++pair) {
    auto [i, j] = pairs.of[pair];
    source[i * pairs.classes + j] = pair;
    source[j * pairs.classes + i] = pairs.count() + pair;
  }
  Expr order = constant(Tensor::of<int64_t>({std::ssize(source)}, kInt64, source), n.span());
  Expr square = n.op("take", {both, order}, TakeAttrs{.axis = 1, .mode = "clip"});
  Expr classes = int_imm(pairs.classes);
  return n.op("pairwise_probabilities", {n.reshape(square, {n.dim_of(square, 0), classes, classes})});
}

// One score for each class, of the LIBLINEAR form.
Outputs linear_svm(Node& n, const Labels& labels, const std::vector<double>& coefficients, bool has_probabilities) {
  Expr scores =
      kernel(n, rows_of_input(n), matrix(n, labels.size(), coefficients, "coefficients"), "LINEAR", first_rho(n));
  Value label = labels.of_highest(scores);
  if (labels.size() == 2 && !has_probabilities) {
    bool all_positive = std::ranges::all_of(coefficients, [](double c) { return c >= 0; });
    Expr most = n.reduce("max", scores, {1}, false);
    Expr is_second = all_positive ? n.op("greater_equal", {most, n.scalar_like(0.5, most)}) : is_above(n, most, 0);
    Expr highest = n.op("argmax", {scores}, ArgReduceAttrs{.axis = 1});
    label = labels.at(n.op("where", {is_second, n.scalar(1, kInt64), highest}));
  }
  return {label, n.of(transformed(n, scores, labels.size()))};
}

Outputs svm_classifier(Node& n) {
  Labels labels(n, "classlabels_ints", "classlabels_strings");
  std::vector<double> a = n.attr_floats("prob_a"), b = n.attr_floats("prob_b"),
                      coefficients = n.attr_floats("coefficients");
  std::vector<int64_t> vectors = n.attr_ints("vectors_per_class").value_or(std::vector<int64_t>());
  std::string transform = post_transform_name(n);
  bool has_vectors = std::ranges::any_of(vectors, [](int64_t count) { return count != 0; });
  if (!has_vectors) return linear_svm(n, labels, coefficients, !a.empty());
  if (labels.size() < 2) n.fail("there is one label, expected at least two");
  Pairs pairs(labels.size());
  Expr scores = pair_scores(n, rows_of_input(n), pairs, vectors);
  Value label = labels.of_highest(votes(n, scores, pairs));
  if (!a.empty() || !b.empty()) {
    Expr result = probabilities(n, scores, pairs, a, b);
    return {label, n.of(post_transform(n, result, transform))};
  }
  if (labels.size() > 2) return {label, n.of(transformed(n, scores, pairs.count()))};
  if (transform == "NONE") return {label, n.of(two_columns(n, n.op("negative", {scores}), scores))};
  return {label, n.of(both_classes(n, scores, transform))};
}

}  // namespace

std::vector<ConverterRow> linear_models_converters() {
  return in_domain(
      "ai.onnx.ml",
      {
          {"LinearRegressor", 1, 1, 1, linear_regressor, "coefficients intercepts post_transform targets"},
          {"LinearClassifier", 1, 1, 1, linear_classifier,
           "classlabels_ints classlabels_strings coefficients intercepts multi_class post_transform"},
          {"SVMRegressor", 1, 1, 1, svm_regressor,
           "coefficients kernel_params kernel_type n_supports one_class post_transform rho support_vectors"},
          {"SVMClassifier", 1, 1, 1, svm_classifier,
           "classlabels_ints classlabels_strings coefficients kernel_params kernel_type post_transform prob_a prob_b "
           "rho "
           "support_vectors vectors_per_class"},
      });
}

}  // namespace relaxc::onnx_import
