// The importer's knowledge about an ONNX value: an expression, its contents when they are integers from which shapes
// are made, or a list of values for sequences.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "ir/builder.h"
#include "ops/evaluate.h"

namespace relaxc::onnx_import {

struct ValueData;
using Value = std::shared_ptr<ValueData>;

struct ValueData {
  std::optional<Expr> tensor = {};  // a leaf; made from the contents when the first operator needs it
  std::optional<KnownTensor> contents = {};
  std::optional<VarRef> stand_in = {};  // names the contents in operands until there is a tensor
  bool is_sequence = false;
  std::vector<Value> items = {};  // of a sequence
  bool is_none = false;           // an optional without a value
  bool poisoned = false;          // its node failed; the failure is reported already
  const Builder* home = nullptr;  // where `tensor` may be cached
};
inline Value make_value(ValueData data) { return std::make_shared<ValueData>(std::move(data)); }

}  // namespace relaxc::onnx_import
