// Operators that replace values by others, or by columns, out of a table: LabelEncoder, CategoryMapper, OneHotEncoder.
#include <cmath>
#include <map>

#include "frontend/onnx/labels.h"

namespace relaxc::onnx_import {

namespace {

// A table from keys to values, which is searched by halves. NaN is a key, too. The first of equal keys counts.
template <class T>
class NumberTable {
 public:
  NumberTable(Node& n, const std::vector<T>& keys) : n_(n) {
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

// Returns the position of each element of x among the keys, which have its dtype, or their number; the first one of
// equal keys.
Expr positions_of(Node& n, const Expr& x, const Tensor& keys) {
  const int64_t count = keys.size();
  if (keys.dtype().is_string()) {
    Expr place = n.builder().op("string.find", {x, constant(keys, n.span())});
    return n.op("where",
                {n.op("less", {place, n.scalar(0, kInt64)}), n.scalar(static_cast<double>(count), kInt64), place});
  }
  auto find = [&]<class T>(T (*read)(const Tensor&, int64_t)) {
    std::vector<T> list = map_each(int_range(0, count), [&](int64_t i) { return read(keys, i); });
    return NumberTable<T>(n, list).find(x, count);
  };
  return keys.dtype().is_float() ? find(+[](const Tensor& t, int64_t i) { return t.as_double(i); })
                                 : find(+[](const Tensor& t, int64_t i) { return t.as_int(i); });
}

Tensor list_of_ints(const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>({std::ssize(values)}, kInt64, values);
}
Tensor list_of_strings(const std::vector<std::string>& values) { return Tensor::strings({std::ssize(values)}, values); }
std::vector<std::string> strings_of(const Tensor& tensor) {
  return map_each(int_range(0, tensor.size()), [&](int64_t i) { return std::string(tensor.string(i)); });
}

// Returns the value of each element's key, or the one that stands for all others.
Value looked_up(Node& n, const Expr& x, const Tensor& keys, const Tensor& values, const Tensor& otherwise) {
  if (keys.size() != values.size()) n.fail("there are {} keys and {} values", keys.size(), values.size());
  if (keys.dtype() != n.dtype(0))
    n.fail("the keys are {} and the input {}", to_string(keys.dtype()), to_string(n.dtype(0)));
  Expr positions = positions_of(n, x, keys);
  if (values.dtype().is_string()) {
    std::vector<std::string> pool = strings_of(values);
    pool.emplace_back(otherwise.string(0));
    return strings_at(n, pool, positions);
  }
  Expr all = constant(otherwise);
  if (values.size() > 0) all = n.op("concat", {tuple({constant(values), all})}, ConcatAttrs{0});
  return n.of(n.op("take", {all, positions}, TakeAttrs{.axis = 0, .mode = "clip"}));
}

// ---- LabelEncoder

// Returns the keys or values: one of several attributes, or from version 4 on also a tensor.
Tensor list_named(Node& n, const std::string& name) {
  std::optional<Tensor> list;
  auto take = [&](Tensor found) {
    if (list) n.fail("more than one of the attributes '{}_*' is given", name);
    list = std::move(found);
  };
  const std::string floats = name + "_floats", ints = name + "_int64s", strings = name + "_strings";
  if (n.has_attr(floats.c_str())) take(float_list(n.attr_floats(floats.c_str())));
  if (auto values = n.attr_ints(ints.c_str())) take(list_of_ints(*values));
  if (n.has_attr(strings.c_str())) take(list_of_strings(n.attr_strings(strings.c_str())));
  if (n.row().has_attribute(name + "_tensor")) {
    if (auto tensor = n.attr_tensor((name + "_tensor").c_str())) take(tensor->reshaped({tensor->size()}));
  }
  if (!list) n.fail("expected one of the attributes '{}_*'", name);
  return *list;
}

Tensor default_of(Node& n, DType dtype) {
  if (n.row().has_attribute("default_tensor")) {
    if (auto tensor = n.attr_tensor("default_tensor")) {
      if (tensor->size() != 1 || tensor->dtype() != dtype)
        n.fail("default_tensor is {}, expected one {}", describe(*tensor), to_string(dtype));
      return tensor->reshaped({1});
    }
  }
  if (dtype.is_string()) return list_of_strings({n.attr_string("default_string", "_Unused")});
  Tensor result = Tensor::empty({1}, dtype);
  if (dtype.is_float()) result.set_double(0, n.attr_float("default_float", -0.0));
  if (!dtype.is_float()) result.set_int(0, n.attr_int("default_int64", -1));
  return result;
}

Outputs label_encoder(Node& n) {
  Tensor keys = list_named(n, "keys"), values = list_named(n, "values");
  return {looked_up(n, n.tensor(0), keys, values, default_of(n, values.dtype()))};
}

// Maps strings to integers by the two lists, and integers to strings.
Value between_strings_and_ints(Node& n, const std::vector<std::string>& strings, const std::vector<int64_t>& ints) {
  Tensor texts = list_of_strings(strings), numbers = list_of_ints(ints);
  const bool from_strings = n.dtype(0).is_string();
  if (!from_strings && n.dtype(0) != kInt64)
    n.fail("the input is {}, expected strings or int64", to_string(n.dtype(0)));
  const Tensor &keys = from_strings ? texts : numbers, &values = from_strings ? numbers : texts;
  return looked_up(n, n.tensor(0), keys, values, default_of(n, values.dtype()));
}
Outputs label_encoder_1(Node& n) {
  std::vector<std::string> classes = n.attr_strings("classes_strings");
  return {between_strings_and_ints(n, classes, int_range(0, std::ssize(classes)))};
}
// Of equal categories the last one counts.
Outputs category_mapper(Node& n) {
  std::vector<std::string> strings = n.attr_strings("cats_strings");
  std::vector<int64_t> ints = n.attr_ints("cats_int64s").value_or(std::vector<int64_t>());
  std::ranges::reverse(strings);
  std::ranges::reverse(ints);
  return {between_strings_and_ints(n, strings, ints)};
}

// ---- OneHotEncoder

Expr one_hot_encoder(Node& n, const Expr& x) {
  Tensor ints = list_of_ints(n.attr_ints("cats_int64s").value_or(std::vector<int64_t>()));
  Tensor strings = list_of_strings(n.attr_strings("cats_strings"));
  if ((ints.size() == 0) == (strings.size() == 0))
    n.fail("expected categories in one of the attributes 'cats_int64s' and 'cats_strings'");
  const bool is_text = n.dtype(0).is_string();
  if (is_text != (strings.size() > 0))
    n.fail("the input is {}, the categories are {}", to_string(n.dtype(0)), is_text ? "integers" : "strings");
  const Tensor& categories = is_text ? strings : ints;
  const int64_t count = categories.size();
  Expr position = positions_of(n, is_text ? x : n.cast(x, kInt64), categories);
  Expr numbers = n.op("arange", {int_imm(0), int_imm(count), int_imm(1)}, DTypeAttrs{kInt64});
  std::vector<Expr> shape = n.shape_of(position);
  Expr result = n.cast(n.op("equal", {n.with_new_axis(position, std::ssize(shape)), numbers}), kFloat32);
  if (n.attr_int("zeros", 1) != 0) return result;
  Expr is_unknown = n.op("equal", {position, n.scalar(static_cast<double>(count), kInt64)});
  Expr unknown = n.reduce("sum", n.reshape(n.cast(is_unknown, kInt64), {product(shape)}), {0}, true);
  n.require_equal(n.ints_of(n.of(unknown)).at(0), int_imm(0),
                  "values that are in no category, which zeros = 0 does not allow, and what there may be");
  return result;
}

}  // namespace

std::vector<ConverterRow> encoders_converters() {
  return in_domain(
      "ai.onnx.ml",
      {
          {"OneHotEncoder", 1, 1, 1, one_hot_encoder, "cats_int64s cats_strings zeros"},
          {"CategoryMapper", 1, 1, 1, category_mapper, "cats_int64s cats_strings default_int64 default_string"},
          {"LabelEncoder", 1, 1, 1, label_encoder_1, "classes_strings default_int64 default_string"},
          {"LabelEncoder", 2, 1, 1, label_encoder,
           "default_float default_int64 default_string keys_floats keys_int64s keys_strings values_floats "
           "values_int64s "
           "values_strings"},
          {"LabelEncoder", 4, 1, 1, label_encoder,
           "default_float default_int64 default_string default_tensor keys_floats keys_int64s keys_strings keys_tensor "
           "values_floats values_int64s values_strings values_tensor"},
      });
}

}  // namespace relaxc::onnx_import
