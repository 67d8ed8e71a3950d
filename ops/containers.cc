// Operators of sequences, optionals and maps. Their values are the runtime's, and functions of the runtime do the work
// (builtins/containers.cc): a tensor program has neither a number of tensors that the run decides nor values without a
// shape.
#include "ir/builder.h"
#include "ir/type_relation.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

const Type& item_of(const OpCall& op) {
  const SequenceType* sequence = op.type(0).as<SequenceType>();
  if (!sequence) op.fail("expected a sequence");
  return sequence->item;
}
void require_position(const OpCall& op, size_t i) {
  if (i < op.size() && !op.arg(i).type().is<PrimType>()) op.fail("the position must be an int64 scalar");
}
std::optional<Type> stated(const OpCall& op) {
  if (op.call.type_args.empty()) return std::nullopt;
  if (op.call.type_args.size() > 1) op.fail("{} types are stated, expected one", op.call.type_args.size());
  return op.call.type_args[0];
}
// Returns the type of items of both types. Tensors of one sequence have one dtype.
Type joined_type(const OpCall& op, const Type& a, const Type& b) {
  auto x = tensor_dtype(a), y = tensor_dtype(b);
  if (x && y && *x != *y) op.fail("items of {} and of {} in one sequence", to_string(*x), to_string(*y));
  return common_type(a, b);
}

Type infer_make(const OpCall& op) {
  std::optional<Type> item = stated(op);
  for (size_t i = 0; i < op.size(); ++i) {
    const Type& type = op.arg(i).type();
    if (stated(op) && fits(*stated(op), type) == Verdict::kContradicted) op.fail("item {} is of another type", i);
    if (!stated(op)) item = item ? joined_type(op, *item, type) : type;
  }
  return sequence_type(item.value_or(object_type()));
}
Type infer_at(const OpCall& op) {
  require_position(op, 1);
  return item_of(op);
}
Type infer_insert(const OpCall& op) {
  require_position(op, 2);
  return sequence_type(joined_type(op, item_of(op), op.type(1)));
}
Type infer_erase(const OpCall& op) {
  require_position(op, 1);
  return sequence_type(item_of(op));
}
Type infer_length(const OpCall& op) {
  item_of(op);
  return prim_type(kInt64);
}
Type infer_joined_items(const OpCall& op) {
  const Type& item = item_of(op);
  if (!item.is<TensorType>() && !item.is<ObjectType>()) op.fail("the items must be tensors");
  auto [axis, new_axis] = op.attrs<SequenceConcatAttrs>();
  int64_t rank = known_rank(item);
  if (rank < 0) return tensor_type_of_rank(-1, tensor_dtype(item));
  normalize_axis(op, axis, rank + (new_axis ? 1 : 0));
  return tensor_type_of_rank(rank + (new_axis ? 1 : 0), tensor_dtype(item));
}
Type infer_parts(const OpCall& op) {
  require_tensor(op);
  const Type& lengths = op.type(1);
  if (!lengths.is<PrimType>() && !lengths.is<TensorType>()) op.fail("the lengths must be a scalar or a tensor");
  auto [axis, keepdims] = op.attrs<SequenceSplitAttrs>();
  int64_t rank = known_rank(op.type(0));
  if (rank < 0) return sequence_type(tensor_type_of_rank(-1, tensor_dtype(op.type(0))));
  axis = normalize_axis(op, axis, rank);
  const std::vector<Expr>* shape = known_shape(op.type(0));
  auto part = as_int(op.arg(1)), dim = shape ? as_int((*shape)[axis]) : std::nullopt;
  bool is_even = shape && part && *part > 0 && (*part == 1 || (dim && *dim % *part == 0));
  if (!is_even) return sequence_type(tensor_type_of_rank(keepdims ? rank : rank - 1, tensor_dtype(op.type(0))));
  std::vector<Expr> dims = keepdims ? *shape : without_item(*shape, axis);
  if (keepdims) dims[axis] = op.arg(1);
  return sequence_type(tensor_type(std::move(dims), tensor_dtype(op.type(0))));
}

Type infer_none(const OpCall& op) { return optional_type(stated(op).value_or(object_type())); }
Type infer_has(const OpCall&) { return prim_type(kBool); }
Type infer_get(const OpCall& op) {
  const OptionalType* optional = op.type(0).as<OptionalType>();
  return optional ? optional->item : op.type(0);
}

bool is_key(DType dtype) { return dtype.is_integral() || dtype.is_string(); }
// Returns the dtype of the keys, argument 0, if it is known.
std::optional<DType> key_dtype(const OpCall& op) {
  auto key = tensor_dtype(op.type(0));
  if ((key && !is_key(*key)) || (known_rank(op.type(0)) >= 0 && known_rank(op.type(0)) != 1))
    op.fail("the keys must be a vector of integers or strings");
  return key;
}
Type infer_map(const OpCall& op) {
  auto key = key_dtype(op), value = tensor_dtype(op.type(1));
  int64_t rank = known_rank(op.type(1));
  if (rank == 0) op.fail("the values must be a tensor with a row for each key");
  if (!key) return object_type();
  if (rank < 0) return map_type(*key, tensor_type_of_rank(-1, value));
  const std::vector<Expr>*keys = known_shape(op.type(0)), *rows = known_shape(op.type(1));
  if (keys && rows) op.require_equal(keys->front(), rows->front(), "the numbers of keys and values");
  if (!rows) return map_type(*key, tensor_type_of_rank(rank - 1, value));
  return map_type(*key, tensor_type({rows->begin() + 1, rows->end()}, value));
}
const MapType& map_of(const OpCall& op) {
  const MapType* map = op.type(0).as<MapType>();
  if (!map) op.fail("expected a map");
  return *map;
}
Type infer_keys(const OpCall& op) { return tensor_type_of_rank(1, map_of(op).key); }
Type infer_values(const OpCall& op) {
  const Type& value = map_of(op).value;
  return tensor_type_of_rank(known_rank(value) < 0 ? -1 : known_rank(value) + 1, tensor_dtype(value));
}
Type infer_map_rows(const OpCall& op) {
  auto key = key_dtype(op);
  if (known_rank(op.type(1)) >= 0 && known_rank(op.type(1)) != 2) op.fail("the values must be a matrix");
  const std::vector<Expr>*keys = known_shape(op.type(0)), *rows = known_shape(op.type(1));
  if (keys && rows) op.require_equal(keys->front(), rows->back(), "the numbers of keys and of columns");
  return sequence_type(key ? map_type(*key, tensor_type({}, tensor_dtype(op.type(1)))) : object_type());
}

// The position that is left out is -1 counted from the end, that of the last item, or the one behind it.
OpRow with_end(OpRow row, size_t most, int64_t behind) {
  row.decompose = [=, with_all = row.decompose](const OpCall& op, Builder& b) {
    if (op.size() == most) return with_all(op, b);
    Expr length = b.emit(call_builtin("vm.builtin.sequence_length", {op.arg(0)}, prim_type(kInt64)), "length");
    Call call = op.call;
    call.args.push_back(b.leaf(simplify(length - 1 + behind)));
    return with_all(OpCall{call, op.span}, b);
  };
  return row;
}

}  // namespace

std::vector<OpRow> containers_ops() {
  using Arity = OpInput::Arity;
  const OpInput sequence{"sequence", "the sequence"},
      position{"position", "int64 scalar; a negative one counts from the end"}, optional{"optional", "the optional"},
      map{"map", "the map"};
  OpInput last = position;
  last.arity = Arity::kOptional;
  std::vector<OpRow> rows = {
      runtime_row("sequence.make", "a sequence of these values; sinfo_args states the type of items",
                  {{"items", "values of one type", Arity::kVariadic}}, infer_make),
      runtime_row("sequence.length", "the number of items, as an int64 scalar", {sequence}, infer_length),
      runtime_row("sequence.at", "an item", {sequence, position}, infer_at),
      with_end(runtime_row("sequence.insert", "the sequence with an item before the one at the position, or at the end",
                           {sequence, {"item", "the item"}, last}, infer_insert),
               3, 1),
      with_end(runtime_row("sequence.erase", "the sequence without the item at the position, or without the last",
                           {sequence, last}, infer_erase),
               2, 0),
      runtime_row("sequence.concat", "the tensors of a sequence, joined along an axis", {sequence}, infer_joined_items,
                  op_attrs<SequenceConcatAttrs>(),
                  [](const OpCall& op) -> std::vector<Expr> {
                    auto [axis, new_axis] = op.attrs<SequenceConcatAttrs>();
                    return {op.arg(0), int_imm(axis), int_imm(new_axis)};
                  }),
      runtime_row(
          "sequence.split", "the parts of a tensor as a sequence",
          {{"x", "the tensor"}, {"lengths", "int64 scalar: that of each part but the last; or a list of all lengths"}},
          infer_parts, op_attrs<SequenceSplitAttrs>(),
          [](const OpCall& op) -> std::vector<Expr> {
            auto [axis, keepdims] = op.attrs<SequenceSplitAttrs>();
            return {op.arg(0), op.arg(1), int_imm(axis), int_imm(keepdims)};
          }),
      runtime_row("optional.none", "the empty optional; sinfo_args states the type of a value", {}, infer_none),
      runtime_row("optional.has", "whether there is a value, as a bool scalar", {optional}, infer_has),
      runtime_row("optional.get", "the value; an error when there is none", {optional}, infer_get),
      runtime_row("map.make", "a map", {{"keys", "vector of integers or strings"}, {"values", "a row for each key"}},
                  infer_map),
      runtime_row("map.keys", "the keys, as a vector", {map}, infer_keys),
      runtime_row("map.rows", "a sequence with a map for each row of a matrix; the run decides the number of maps",
                  {{"keys", "vector of integers or strings"}, {"values", "a row for each map"}}, infer_map_rows),
      runtime_row("map.values", "the values, a row for each key", {map}, infer_values),
  };
  for (OpRow& row : rows) row.moves = true;
  return with_reason(
      "a tensor program has a fixed number of tensors, and the run decides how many a sequence, an optional or a map "
      "has",
      rows);
}

}  // namespace relaxc
