// Operators that prepare the features of a model: scalers, imputers, joints. Encoders are in encoders.cc.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/forest.h"
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

// Returns numbers for the features of the last axis: one for each, or one for all.
Expr per_feature(Node& n, const std::vector<double>& values, const char* what, DType dtype) {
  if (values.size() == 1) return n.scalar(values[0], dtype);
  const std::vector<Expr> shape = n.shape(0);
  if (values.empty() || shape.empty())
    n.fail("attribute '{}' has {} numbers, expected 1 or one per feature", what, values.size());
  n.require_equal(shape.back(), int_imm(std::ssize(values)), "features of the input and of an attribute");
  Tensor list = Tensor::empty({std::ssize(values)}, dtype);
  for (size_t i = 0; i < values.size(); ++i) list.set_double(static_cast<int64_t>(i), values[i]);
  return constant(std::move(list), n.span());
}

Expr scaler(Node& n, const Expr& x) {
  std::vector<double> offset = n.attr_floats("offset"), scale = n.attr_floats("scale");
  if (offset.size() != scale.size()) n.fail("there are {} offsets and {} scales", offset.size(), scale.size());
  Expr result = n.cast(x, kFloat32);
  result = n.sub(result, per_feature(n, offset, "offset", kFloat32));
  return n.mul(result, per_feature(n, scale, "scale", kFloat32));
}

Expr normalizer(Node& n) {
  Expr x = n.cast(n.tensor(0), kFloat32), divisor = x;
  std::string norm = n.attr_string("norm", "MAX");
  int64_t last = std::ssize(n.shape_of(x)) - 1;
  if (last < 0 || last > 1) n.fail("the input has rank {}, expected 1 or 2", last + 1);
  if (norm == "MAX") {
    divisor = n.reduce("max", x, {last}, true);
  } else if (norm == "L1") {
    divisor = n.reduce("sum", n.op("abs", {x}), {last}, true);
  } else if (norm == "L2") {
    divisor = n.op("sqrt", {n.reduce("sum", n.mul(x, x), {last}, true)});
  } else {
    n.fail("norm is '{}', expected MAX, L1 or L2", norm);
  }
  Expr is_zero = n.op("equal", {divisor, n.scalar(0, kFloat32)});
  return n.div(x, n.op("where", {is_zero, n.scalar(1, kFloat32), divisor}));
}

Expr binarizer(Node& n, const Expr& x) {
  DType dtype = n.dtype(0), compared = dtype.is_float() ? dtype : kFloat64;
  return n.cast(n.op("greater", {n.cast(x, compared), n.scalar(n.attr_float("threshold", 0), compared)}), dtype);
}

Expr imputer(Node& n, const Expr& x) {
  DType dtype = n.dtype(0);
  if (!dtype.is_float()) {
    std::vector<int64_t> values = n.attr_ints("imputed_value_int64s").value_or(std::vector<int64_t>());
    Tensor replaced = Tensor::empty({}, dtype), list = Tensor::empty({std::ssize(values)}, dtype);
    replaced.set_int(0, n.attr_int("replaced_value_int64", 0));
    for (size_t i = 0; i < values.size(); ++i) list.set_int(static_cast<int64_t>(i), values[i]);
    if (values.empty()) n.fail("attribute 'imputed_value_int64s' is missing");
    if (values.size() > 1) n.require_equal(n.dim_of(x, -1), int_imm(std::ssize(values)), "features and imputed values");
    return n.op("where", {n.op("equal", {x, constant(replaced)}), constant(list), x});
  }
  Expr values = per_feature(n, n.attr_floats("imputed_value_floats"), "imputed_value_floats", dtype);
  double replaced = n.attr_float("replaced_value_float", 0);
  Expr is_replaced = std::isnan(replaced) ? n.op("isnan", {x}) : n.op("equal", {x, n.scalar(replaced, dtype)});
  return n.op("where", {is_replaced, values, x});
}

Expr feature_vectorizer(Node& n) {
  std::vector<int64_t> widths = n.attr_ints("inputdimensions").value_or(std::vector<int64_t>());
  if (!widths.empty() && widths.size() != n.inputs())
    n.fail("inputdimensions has {} numbers for {} inputs", widths.size(), n.inputs());
  std::vector<Expr> parts;
  for (size_t i = 0; i < n.inputs(); ++i) {
    Expr x = n.cast(n.tensor(i), kFloat32);
    std::vector<Expr> shape = n.shape_of(x);
    if (shape.empty()) n.fail("input {} has rank 0, expected at least 1", i);
    Expr rows = shape.size() == 1 ? int_imm(1) : shape[0];
    std::vector<Expr> rest = shape.size() == 1 ? shape : std::vector<Expr>(shape.begin() + 1, shape.end());
    Expr columns = n.simplify(relaxc::product(rest));
    x = n.reshape(x, {rows, columns});
    if (!widths.empty()) {  // columns that an input lacks are 0
      Expr width = int_imm(widths[i]), kept = n.simplify(min(columns, width)), missing = n.simplify(width - kept);
      if (widths[i] < 0) n.fail("inputdimensions has {}", widths[i]);
      x = n.slice(x, 1, int_imm(0), kept);
      if (!is_int(missing, 0))
        x = n.op("concat", {tuple({x, n.op("zeros", {shape_expr({rows, missing})}, FillAttrs{kFloat32})})},
                 ConcatAttrs{1});
    }
    parts.push_back(x);
  }
  return join(n, parts, 1);
}

Expr array_feature_extractor(Node& n, const Expr& x) {
  Expr indices = n.tensor(1);
  indices = n.reshape(indices, {n.simplify(relaxc::product(n.shape_of(indices)))});
  std::vector<Expr> shape = n.shape_of(x);
  if (shape.empty()) n.fail("the input has rank 0, expected at least 1");
  Expr rows = shape.size() == 1 ? n.reshape(x, {int_imm(1), shape[0]}) : x;
  return n.op("take", {rows, indices}, TakeAttrs{.axis = std::max<int64_t>(std::ssize(shape), 2) - 1});
}

}  // namespace

std::vector<ConverterRow> features_converters() {
  constexpr const char* kMl = "ai.onnx.ml";
  return {
      {"Scaler", 1, 1, 1, scaler, "offset scale", kMl},
      {"Normalizer", 1, 1, 1, normalizer, "norm", kMl},
      {"Binarizer", 1, 1, 1, binarizer, "threshold", kMl},
      {"Imputer", 1, 1, 1, imputer,
       "imputed_value_floats imputed_value_int64s replaced_value_float replaced_value_int64", kMl},
      {"FeatureVectorizer", 1, 1, kAny, feature_vectorizer, "inputdimensions", kMl},
      {"ArrayFeatureExtractor", 1, 2, 2, array_feature_extractor, "", kMl},
  };
}

}  // namespace relaxc::onnx_import
