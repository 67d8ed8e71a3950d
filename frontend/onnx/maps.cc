// Operators of maps: ZipMap makes them, DictVectorizer and CastMap make tensors of them.
#include "frontend/onnx/labels.h"
#include "frontend/onnx/loop.h"

namespace relaxc::onnx_import {

namespace {

Outputs zip_map(Node& n) {
  std::vector<int64_t> ints = n.attr_ints("classlabels_int64s").value_or(std::vector<int64_t>());
  std::vector<std::string> strings = n.attr_strings("classlabels_strings");
  if (ints.empty() == strings.empty())
    n.fail("expected labels in one of the attributes 'classlabels_int64s' and 'classlabels_strings'");
  Tensor keys = Tensor::strings({std::ssize(strings)}, strings);
  if (strings.empty()) keys = Tensor::of<int64_t>({std::ssize(ints)}, kInt64, ints);
  const std::vector<Expr> shape = n.shape(0);
  if (shape.empty() || shape.size() > 2) n.fail("the input has rank {}, expected 1 or 2", shape.size());
  n.require_equal(shape.back(), int_imm(keys.size()), "the numbers of columns and of labels");
  Expr rows =
      n.reshape(n.cast(n.tensor(0), kFloat32), {shape.size() == 2 ? shape[0] : int_imm(1), int_imm(keys.size())});
  return {n.of(n.builder().op("map.rows", {constant(keys, n.span()), rows}))};
}

// A map in the graph: its keys, int64 or strings, and as many values, in the order of the map.
struct Entries {
  explicit Entries(Node& n) : n(n) {
    const Type type = n.leaf(0).type();
    const MapType* map = type.as<MapType>();
    if (!map) n.fail("the input is {}, expected a map", kind_text(*n.value(0)));
    if (known_rank(map->value) != 0) n.unsupported("a map whose values are not scalars");
    Expr list = with_measured_dims(n, n.builder().op("map.keys", {n.leaf(0)}));
    count = n.dim_of(list, 0);
    keys = map->key.is_string() ? list : n.cast(list, kInt64);
    values = n.match_cast(n.builder().op("map.values", {n.leaf(0)}), tensor_type({count}, tensor_dtype(map->value)));
  }
  // Returns the places of the entries in the order of their integer keys.
  Expr order() const { return n.op("argsort", {keys}, ArgsortAttrs{.axis = 0, .descending = false, .dtype = kInt64}); }
  // Returns the place of each wanted key; the number of entries for one that the map does not have.
  Expr places_of(const Tensor& wanted) const {
    Expr absent = n.tensor(n.of(KnownTensor{kInt64, {}, {count}}));
    Expr list = constant(wanted, n.span());
    if (wanted.dtype().is_string()) {
      Expr place = n.builder().op("string.find", {list, keys});
      return n.op("where", {n.op("less", {place, n.scalar(0, kInt64)}), absent, place});
    }
    Expr sorted_places = order();
    Expr sorted = n.op("take", {keys, sorted_places}, TakeAttrs{.axis = 0, .mode = "clip"});
    Expr at = n.op("bucketize", {list, sorted}, BucketizeAttrs());
    auto taken = [&](const Expr& from) {
      return n.op("take", {with_last(from, n.scalar(0, kInt64)), at}, TakeAttrs{.axis = 0, .mode = "clip"});
    };
    Expr found = n.op("logical_and", {n.op("less", {at, absent}), n.op("equal", {taken(sorted), list})});
    return n.op("where", {found, taken(sorted_places), absent});
  }
  // Returns a row of the values of the wanted keys; the one given for keys that the map does not have.
  Value row_of(const Tensor& wanted, const Expr& list, const Tensor& otherwise) const {
    Expr places = n.reshape(places_of(wanted), {int_imm(1), int_imm(wanted.size())});
    if (!otherwise.dtype().is_string())
      return n.of(n.op("take", {with_last(list, constant(otherwise)), places}, TakeAttrs{.axis = 0, .mode = "clip"}));
    Expr pool = n.builder().op("string.join", {list, constant(otherwise)});
    return make_value({.strings = MovedStrings{n.of(places), pool}, .home = &n.builder()});
  }
  Expr with_last(const Expr& list, const Expr& scalar) const {
    return n.op("concat", {tuple({list, n.reshape(scalar, {int_imm(1)})})}, ConcatAttrs{0});
  }

  Node& n;
  Expr count = int_imm(0), keys = count, values = count;
};

// Returns 0 of a dtype, or a string that stands for it.
Tensor nothing_of(DType dtype, const char* text) {
  if (dtype.is_string()) return Tensor::strings({1}, {std::string(text)});
  Tensor zero = Tensor::empty({1}, dtype);
  zero.set_int(0, 0);
  return zero;
}

Outputs dict_vectorizer(Node& n) {
  Entries entries(n);
  std::vector<int64_t> ints = n.attr_ints("int64_vocabulary").value_or(std::vector<int64_t>());
  std::vector<std::string> strings = n.attr_strings("string_vocabulary");
  if (ints.empty() == strings.empty())
    n.fail("expected keys in one of the attributes 'int64_vocabulary' and 'string_vocabulary'");
  if (n.dtype_of_tensor(entries.keys).is_string() == strings.empty())
    n.fail("the keys of the map are {}, those of the vocabulary are {}", to_string(n.dtype_of_tensor(entries.keys)),
           strings.empty() ? "integers" : "strings");
  Tensor wanted = Tensor::strings({std::ssize(strings)}, strings);
  if (strings.empty()) wanted = Tensor::of<int64_t>({std::ssize(ints)}, kInt64, ints);
  return {entries.row_of(wanted, entries.values, nothing_of(n.dtype_of_tensor(entries.values), ""))};
}

// ONNX does not say which text a sparse map gives for entries that it lacks; this is ONNX Runtime's.
Outputs cast_map(Node& n) {
  Entries entries(n);
  std::string to = n.attr_string("cast_to", "TO_FLOAT"), form = n.attr_string("map_form", "DENSE");
  DType dtype = to == "TO_FLOAT" ? kFloat32 : to == "TO_INT64" ? kInt64 : DType::string();
  if (dtype.is_string() && to != "TO_STRING") n.fail("cast_to is '{}', expected TO_FLOAT, TO_STRING or TO_INT64", to);
  if (form != "DENSE" && form != "SPARSE") n.fail("map_form is '{}', expected DENSE or SPARSE", form);
  if (n.dtype_of_tensor(entries.keys) != kInt64) n.fail("the keys of the map are strings, expected int64");
  Expr values = n.cast(entries.values, dtype);
  if (form == "SPARSE") {
    int64_t size = n.attr_int("max_map", 1);
    if (size < 1 || size > INT32_MAX) n.fail("max_map is {}, expected at least 1", size);
    std::vector<int64_t> all = int_range(0, size);
    return {entries.row_of(Tensor::of<int64_t>({size}, kInt64, all), values, nothing_of(dtype, "0.f"))};
  }
  Expr places = n.reshape(entries.order(), {int_imm(1), entries.count});
  if (dtype.is_string()) return {make_value({.strings = MovedStrings{n.of(places), values}, .home = &n.builder()})};
  return {n.of(n.op("take", {values, places}, TakeAttrs{.axis = 0, .mode = "clip"}))};
}

}  // namespace

std::vector<ConverterRow> maps_converters() {
  return in_domain("ai.onnx.ml", {
                                     {"ZipMap", 1, 1, 1, zip_map, "classlabels_int64s classlabels_strings"},
                                     {"DictVectorizer", 1, 1, 1, dict_vectorizer, "int64_vocabulary string_vocabulary"},
                                     {"CastMap", 1, 1, 1, cast_map, "cast_to map_form max_map"},
                                 });
}

}  // namespace relaxc::onnx_import
