// Operators that prepare the features of a model: scalers, encoders, imputers.
#include <algorithm>
#include <cmath>
#include <map>

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

// A table from keys to values, which is searched by halves. NaN is a key, too. The first of equal keys counts.
template <class T>
class Table {
 public:
  Table(Node& n, const std::vector<T>& keys) : n_(n) {
    for (size_t i = 0; i < keys.size(); ++i) {
      auto position = static_cast<int64_t>(i);
      if (std::isnan(static_cast<double>(keys[i]))) {
        nan_ = nan_.value_or(position);
      } else {
        position_.emplace(keys[i] + T(0), position);  // -0 is 0
      }
    }
  }
  // Returns the position of each element of x among the keys, or their number.
  Expr find(const Expr& x, int64_t count) const {
    DType dtype = n_.dtype_of_tensor(x);
    Expr otherwise = n_.scalar(static_cast<double>(count), kInt64);
    Expr result = n_.op("full_like", {x, otherwise}, DTypeAttrs{kInt64});
    if (!position_.empty()) {
      Tensor keys = Tensor::empty({std::ssize(position_)}, dtype), places = Tensor::empty(keys.shape(), kInt64);
      int64_t at = 0;
      for (const auto& [key, position] : position_) {
        if constexpr (std::is_floating_point_v<T>) keys.set_double(at, key);
        if constexpr (!std::is_floating_point_v<T>) keys.set_int(at, key);
        places.set_int(at++, position);
      }
      Expr place = n_.op("bucketize", {x, constant(keys)}, BucketizeAttrs());
      place = n_.op("minimum", {place, n_.scalar(static_cast<double>(at - 1), kInt64)});
      auto taken = [&](const Tensor& from) {
        return n_.op("take", {constant(from), place}, TakeAttrs{.axis = 0, .mode = "clip"});
      };
      result = n_.op("where", {n_.op("equal", {taken(keys), x}), taken(places), otherwise});
    }
    if (!nan_ || !dtype.is_float()) return result;
    return n_.op("where", {n_.op("isnan", {x}), n_.scalar(static_cast<double>(*nan_), kInt64), result});
  }

 private:
  Node& n_;
  std::map<T, int64_t> position_ = {};
  std::optional<int64_t> nan_ = {};
};

Expr one_hot_encoder(Node& n, const Expr& x) {
  if (n.has_attr("cats_strings")) n.unsupported("categories that are strings");
  std::vector<int64_t> categories = n.attr_ints("cats_int64s").value_or(std::vector<int64_t>());
  int64_t count = std::ssize(categories);
  if (count == 0) n.fail("expected categories in one of the attributes 'cats_int64s' and 'cats_strings'");
  Expr position = Table<int64_t>(n, categories).find(n.cast(x, kInt64), count);
  Expr numbers = n.op("arange", {int_imm(0), int_imm(count), int_imm(1)}, DTypeAttrs{kInt64});
  std::vector<Expr> shape = n.shape_of(position);
  Expr result = n.cast(n.op("equal", {n.with_new_axis(position, std::ssize(shape)), numbers}), kFloat32);
  if (n.attr_int("zeros", 1) != 0) return result;
  // A gather beyond the categories is the error of the run.
  Expr zeros = constant(float_list(std::vector<double>(static_cast<size_t>(count))));
  Expr checked = n.op("take", {zeros, position}, TakeAttrs{.axis = 0});
  return n.add(result, n.with_new_axis(checked, std::ssize(shape)));
}

// ---- LabelEncoder

// Keys or values: one of several attributes, or from version 4 on also a tensor.
struct Side {
  std::optional<Tensor> list = {};
  bool has_strings = false;
};
Side side_of(Node& n, const std::string& name) {
  Side side;
  auto take = [&](Tensor list) {
    if (side.list || side.has_strings) n.fail("more than one of the attributes '{}_*' is given", name);
    side.list = std::move(list);
  };
  if (n.has_attr((name + "_floats").c_str())) take(float_list(n.attr_floats((name + "_floats").c_str())));
  if (auto ints = n.attr_ints((name + "_int64s").c_str()))
    take(Tensor::of<int64_t>({std::ssize(*ints)}, kInt64, *ints));
  if (n.has_attr((name + "_strings").c_str())) side.has_strings = true;
  if (n.opset() >= 4) {
    if (auto tensor = n.attr_tensor((name + "_tensor").c_str())) take(tensor->reshaped({tensor->size()}));
  }
  if (!side.list && !side.has_strings) n.fail("expected one of the attributes '{}_*'", name);
  return side;
}

Tensor default_of(Node& n, DType dtype) {
  Tensor result = Tensor::empty({1}, dtype);
  if (n.opset() >= 4) {
    if (auto tensor = n.attr_tensor("default_tensor")) {
      if (tensor->size() != 1 || tensor->dtype() != dtype)
        n.fail("default_tensor is {}, expected one {}", describe(*tensor), to_string(dtype));
      return tensor->reshaped({1});
    }
  }
  if (dtype.is_float()) result.set_double(0, n.attr_float("default_float", -0.0));
  if (!dtype.is_float()) result.set_int(0, n.attr_int("default_int64", -1));
  return result;
}

Expr label_encoder(Node& n, const Expr& x) {
  Side keys = side_of(n, "keys"), values = side_of(n, "values");
  bool has_strings = keys.has_strings || values.has_strings;
  for (const Side* side : {&keys, &values})
    has_strings = has_strings || (side->list && side->list->dtype().is_string());
  if (has_strings) n.unsupported("keys or values that are strings");
  if (keys.list->size() != values.list->size())
    n.fail("there are {} keys and {} values", keys.list->size(), values.list->size());
  DType dtype = keys.list->dtype();
  if (dtype != n.dtype(0)) n.fail("keys have {} and the input {}", to_string(dtype), to_string(n.dtype(0)));
  int64_t count = keys.list->size();
  auto positions = [&]<class T>(T (*read)(const Tensor&, int64_t)) {
    std::vector<T> list;
    for (int64_t i = 0; i < count; ++i) list.push_back(read(*keys.list, i));
    return Table<T>(n, list).find(x, count);
  };
  Expr position = dtype.is_float() ? positions(+[](const Tensor& t, int64_t i) { return t.as_double(i); })
                                   : positions(+[](const Tensor& t, int64_t i) { return t.as_int(i); });
  Tensor otherwise = default_of(n, values.list->dtype());
  Expr all = constant(*values.list);
  all = count == 0 ? constant(otherwise) : n.op("concat", {tuple({all, constant(otherwise)})}, ConcatAttrs{0});
  return n.op("take", {all, position}, TakeAttrs{.axis = 0, .mode = "clip"});
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
      {"OneHotEncoder", 1, 1, 1, one_hot_encoder, "cats_int64s cats_strings zeros", kMl},
      {"LabelEncoder", 2, 1, 1, label_encoder,
       "default_float default_int64 default_string keys_floats keys_int64s keys_strings values_floats values_int64s "
       "values_strings",
       kMl},
      {"LabelEncoder", 4, 1, 1, label_encoder,
       "default_float default_int64 default_string default_tensor keys_floats keys_int64s keys_strings keys_tensor "
       "values_floats values_int64s values_strings values_tensor",
       kMl},
  };
}

}  // namespace relaxc::onnx_import
