#include "vm/value.h"

#include <algorithm>
#include <array>

#include "support/joined.h"
#include "support/printable.h"
#include "vm/error.h"
#include "vm/executable.h"

namespace relaxc::vm {

struct Tuple::Box {
  std::vector<Value> fields;
  int depth = 1;
};

Tuple::Tuple(std::vector<Value> fields) {
  int depth = 1;
  for (const Value& field : fields) {
    const Tuple* tuple = field.get_if<Tuple>();
    if (const Closure* closure = field.get_if<Closure>()) tuple = &closure->captured;
    if (const Sequence* sequence = field.get_if<Sequence>()) tuple = &sequence->items;
    if (tuple) depth = std::max(depth, tuple->box_->depth + 1);
  }
  if (depth > kMaxTupleDepth)
    throw_runtime_error("tuples, sequences and closures are nested {} deep, the limit is {}", depth, kMaxTupleDepth);
  box_ = std::make_shared<const Box>(Box{std::move(fields), depth});
}

std::span<const Value> Tuple::fields() const { return box_->fields; }

const Tensor& Map::keys() const { return entries.fields()[0].tensor(); }
const Tensor& Map::values() const { return entries.fields()[1].tensor(); }
Map Map::of(Tensor keys, Tensor values) {
  bool is_key = keys.dtype().is_integral() || keys.dtype().is_string();
  if (keys.ndim() != 1 || values.ndim() < 1 || !is_key || keys.size() != values.shape()[0])
    throw_runtime_error("the keys of a map are {} and its values {}", describe(keys), describe(values));
  return {Tuple({std::move(keys), std::move(values)})};
}

std::string_view to_string(ValueKind kind) {
  constexpr std::array<std::string_view, kNumValueKinds> kNames = {
      "none", "tensor", "shape", "int", "float", "string", "tuple", "storage", "function", "sequence", "map"};
  return kNames[static_cast<size_t>(kind)];
}

void Value::wrong_kind(ValueKind expected) const {
  throw_runtime_error("expected a value of kind {}, got {}", to_string(expected), describe(*this));
}

std::string describe(const Value& value) {
  switch (value.kind()) {
    case ValueKind::kNone:
      return "none";
    case ValueKind::kTensor:
      return describe(value.tensor());
    case ValueKind::kShape:
      return formatted("shape[{}]", joined(value.shape()));
    case ValueKind::kInt:
      return std::to_string(value.integer());
    case ValueKind::kDouble:
      return formatted("{}", value.number());
    case ValueKind::kString:
      return formatted("'{}'", printable(value.string(), std::string::npos));
    case ValueKind::kStorage:
      return formatted("storage of {} bytes", value.storage().bytes);
    case ValueKind::kClosure:
      return formatted("function '{}'", value.closure().function->name);
    case ValueKind::kSequence: {
      std::span<const Value> items = value.sequence().items.fields();
      constexpr size_t kShown = 8;
      std::string shown =
          joined(items.first(std::min(items.size(), kShown)), [](const Value& i) { return describe(i); });
      return formatted("sequence of {}: [{}{}]", items.size(), shown, items.size() > kShown ? ", ..." : "");
    }
    case ValueKind::kMap:
      return formatted("map from {} to {}", describe(value.map().keys()), describe(value.map().values()));
    case ValueKind::kTuple:
      return formatted("({})", joined(value.tuple().fields(), [](const Value& field) { return describe(field); }));
  }
  return {};
}

}  // namespace relaxc::vm
