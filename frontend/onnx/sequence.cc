// Sequences and optionals as lists that exist at import time only: lengths and positions must be constants.
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

const std::vector<Value>& items_of(Node& n, size_t i) {
  if (!n.value(i)->is_sequence) n.unsupported("a sequence that comes from outside of the graph");
  return n.value(i)->items;
}
// Returns the position in input i, from -length to `last`. A negative one counts from the end.
int64_t position(Node& n, size_t i, int64_t length, int64_t last) {
  auto known = n.constant_ints(i);
  if (!known || known->size() != 1) n.unsupported("a sequence position that is known at run time only");
  int64_t at = (*known)[0];
  if (at < -length || at > last) n.fail("position {} is out of range for a sequence of {}", at, length);
  return at < 0 ? at + length : at;
}

Outputs construct(Node& n) {
  std::vector<Value> items;
  for (size_t i = 0; i < n.inputs(); ++i) items.push_back(n.value(i));
  return {n.sequence(std::move(items))};
}
Outputs empty(Node& n) { return {n.sequence({})}; }
Outputs insert(Node& n) {
  std::vector<Value> items = items_of(n, 0);
  int64_t length = std::ssize(items);
  int64_t at = n.has(2) ? position(n, 2, length, length) : length;
  items.insert(items.begin() + at, n.value(1));
  return {n.sequence(std::move(items))};
}
Outputs erase(Node& n) {
  std::vector<Value> items = items_of(n, 0);
  int64_t length = std::ssize(items);
  if (length == 0) n.fail("the sequence is empty");
  items.erase(items.begin() + (n.has(1) ? position(n, 1, length, length - 1) : length - 1));
  return {n.sequence(std::move(items))};
}
Outputs at(Node& n) {
  const std::vector<Value>& items = items_of(n, 0);
  int64_t length = std::ssize(items);
  return {items.at(static_cast<size_t>(position(n, 1, length, length - 1)))};
}
Outputs length(Node& n) { return {n.of(KnownTensor{kInt64, {}, {int_imm(std::ssize(items_of(n, 0)))}})}; }

// A scalar split is the length of each part, a list has the lengths of all parts, and without a split they are 1.
Outputs split_to_sequence(Node& n) {
  Expr x = n.tensor(0);
  int64_t axis = n.axis(n.attr_int("axis", 0), n.rank(0));
  bool keepdims = n.attr_int("keepdims", 1) != 0;
  auto dim = as_int(n.shape(0)[axis]);
  if (n.has(1) && n.rank(1) > 1) n.fail("the split has rank {}, expected 0 or 1", n.rank(1));
  bool listed = n.has(1) && n.rank(1) == 1;
  if (!dim && !listed) n.unsupported("a split of a symbolic dim into a sequence; make it constant with --dim");
  std::vector<Expr> lengths;
  if (n.has(1)) {
    keepdims = true;
    lengths = n.ints(1);
  }
  if (!listed) {
    auto part = n.has(1) ? as_int(lengths.at(0)) : 1;
    if (!part) n.unsupported("a split length that is known at run time only");
    if (*part < 1) n.fail("the split length is {}", *part);
    int64_t count = (*dim - 1) / *part + 1;
    if (count > 10000) n.unsupported("a sequence of {} tensors", count);
    lengths.clear();
    for (int64_t begin = 0; begin < *dim; begin += *part) lengths.push_back(int_imm(std::min(*part, *dim - begin)));
  }
  std::vector<Value> items;
  Expr begin = int_imm(0);
  for (const Expr& part : lengths) {
    Expr end = n.simplify(begin + part);
    items.push_back(n.of(keepdims ? n.slice(x, axis, begin, end) : n.pick(x, axis, as_int(begin).value())));
    begin = end;
  }
  n.require_equal(begin, n.shape(0)[axis], "sum of the split lengths and size of the axis");
  return {n.sequence(std::move(items))};
}
Expr concat_from_sequence(Node& n) {
  const std::vector<Value>& items = items_of(n, 0);
  if (items.empty()) n.fail("the sequence is empty");
  bool new_axis = n.attr_int("new_axis", 0) != 0;
  std::vector<Expr> tensors;
  int64_t rank = std::ssize(n.shape_of(n.tensor(items[0]))) + (new_axis ? 1 : 0);
  int64_t axis = n.axis(n.required_int("axis"), rank);
  for (const Value& item : items) {
    Expr x = n.tensor(item);
    tensors.push_back(new_axis ? n.with_new_axis(x, axis) : x);
  }
  return join(n, tensors, axis);
}

Outputs optional(Node& n) {
  if (n.has(0)) return {n.value(0)};
  return {make_value({.is_none = true})};
}
Outputs has_element(Node& n) { return {n.of(KnownTensor{kBool, {}, {bool_imm(n.has(0) && !n.value(0)->is_none)}})}; }
Outputs get_element(Node& n) {
  if (n.value(0)->is_none) n.fail("the optional is empty");
  return {n.value(0)};
}

}  // namespace

std::vector<ConverterRow> sequence_converters() {
  return {
      {"SequenceConstruct", 11, 1, kAny, construct},
      {"SequenceEmpty", 11, 0, 0, empty, "dtype"},
      {"SequenceInsert", 11, 2, 3, insert},
      {"SequenceErase", 11, 1, 2, erase},
      {"SequenceAt", 11, 2, 2, at},
      {"SequenceLength", 11, 1, 1, length},
      {"SplitToSequence", 11, 1, 2, split_to_sequence, "axis keepdims"},
      {"ConcatFromSequence", 11, 1, 1, concat_from_sequence, "axis new_axis"},
      {"Optional", 15, 0, 1, optional, "type"},
      {"OptionalHasElement", 15, 0, 1, has_element},
      {"OptionalGetElement", 15, 1, 1, get_element},
  };
}

}  // namespace relaxc::onnx_import
