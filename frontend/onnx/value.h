// What the importer knows about an ONNX value: an expression, the contents when they are integers that shapes are made
// of, or a list of values for sequences.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "ir/builder.h"

namespace relaxc::onnx_import {

// The elements of a small tensor in row-major order: int64 scalars for integers (whatever the dtype), bool scalars for
// bools, and for floats constants or Cast(int64 scalar).
struct Contents {
  DType dtype;
  bool scalar = false;  // rank 0
  std::vector<Expr> elements;
  std::vector<int64_t> table = {};  // the dims of a tensor of rank 2 and more; empty below that

  std::vector<int64_t> dims() const {
    if (!table.empty() || scalar) return table;
    return {static_cast<int64_t>(elements.size())};
  }
  // The constant integer of one element; how many elements there are is the model's word.
  std::optional<int64_t> only_int() const { return elements.size() == 1 ? as_int(elements[0]) : std::nullopt; }
};

struct ValueData;
using Value = std::shared_ptr<ValueData>;

struct ValueData {
  std::optional<Expr> tensor;  // a leaf; made from the contents when first asked for
  std::optional<Contents> contents;
  bool is_sequence = false;
  std::vector<Value> items;       // of a sequence
  bool is_none = false;           // an optional without a value
  bool poisoned = false;          // its node failed; the failure is reported already
  const Builder* home = nullptr;  // where `tensor` may be cached
};

}  // namespace relaxc::onnx_import
