#include "passes/index_facts.h"

#include <algorithm>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "vm/index_check.h"

namespace relaxc {

namespace {

// Operators whose elements are elements of their first argument.
constexpr OpName kMoves[] = {ops::kReshape,        ops::kExpandDims,   ops::kSqueeze,     ops::kPermuteDims,
                             ops::kFlatten,        ops::kBroadcastTo,  ops::kTake,        ops::kGatherNd,
                             ops::kGatherElements, ops::kCheckIndices, ops::kStridedSlice};
constexpr int kDeepest = 16;  // bindings through which a range is traced back

}  // namespace

std::optional<IndexOperand> find_index_operand(const Expr& value, const OpTable& ops, OutOfRange gather) {
  const OpRow* row = ops.find(op_name(value));
  if (!row || !row->indexed) return std::nullopt;
  auto indexed = row->indexed(OpCall{*value.as<Call>(), value.span()});
  return indexed && indexed->reads && gather == OutOfRange::kClamp ? std::nullopt : indexed;
}

const Expr* IndexFacts::value_of(const Expr& leaf) const {
  auto it = values_.find(leaf.get());
  return it == values_.end() ? nullptr : &it->second;
}

bool IndexFacts::prove(const Expr& indices, const std::vector<Expr>& dims, const Analyzer& facts,
                       const Span& span) const {
  const Constant* constant = indices.as<Constant>();
  std::optional<std::vector<int64_t>> sizes = constant_shape(shape_type(dims));
  if (constant && sizes) {
    auto bad = vm::find_bad_index(constant->data, *sizes);
    if (bad) fail(span, "indices{}", vm::describe(*bad, constant->data));
    return true;
  }
  const Expr* value = value_of(indices);
  const Call* check = value ? as_call(*value, ops::kCheckIndices) : nullptr;
  if (check && structural_equal(check->args[1], shape_expr(dims))) return true;
  std::optional<Range> range = range_of(indices);
  auto holds = [&](const Expr& dim) {
    return facts.can_prove(int_imm(0) - dim <= range->least) && facts.can_prove(range->most < dim);
  };
  return range && std::ranges::all_of(dims, holds);
}

// Returns the range of positions along the axis of the call.
template <class Attrs>
std::optional<IndexFacts::Range> IndexFacts::range_of_position(const Call& node) const {
  std::optional<int64_t> axis = read_attrs<Attrs>(node.attrs).axis;
  const std::vector<Expr>* shape = known_shape(node.args[0].type());
  if (!shape || shape->empty() || !axis) return std::nullopt;
  size_t d = static_cast<size_t>(*axis < 0 ? *axis + static_cast<int64_t>(shape->size()) : *axis);
  return Range{int_imm(0), (*shape)[d] - 1};
}

std::optional<IndexFacts::Range> IndexFacts::range_of(const Expr& tensor, int depth) const {
  if (depth > kDeepest) return std::nullopt;
  if (tensor.type().is<PrimType>()) return Range{tensor, tensor};
  if (const Constant* constant = tensor.as<Constant>()) {
    if (constant->data.size() == 0) return std::nullopt;
    int64_t least = constant->data.as_int(0), most = least;
    for (int64_t i = 1; i < constant->data.size(); ++i) {
      least = std::min(least, constant->data.as_int(i));
      most = std::max(most, constant->data.as_int(i));
    }
    return Range{int_imm(least), int_imm(most)};
  }
  if (const Expr* value = value_of(tensor)) {
    if (auto range = range_of_call(*value, depth + 1)) return range;
    const TupleGetItem* item = value->as<TupleGetItem>();
    const Expr* whole = item && item->index == 1 ? value_of(item->tuple) : nullptr;
    if (whole && as_call(*whole, ops::kTopK)) return range_of_position<TopKAttrs>(*whole->as<Call>());
    if (whole && as_call(*whole, ops::kDynTopK)) return range_of_position<DynamicTopKAttrs>(*whole->as<Call>());
  }
  auto dtype = tensor_dtype(tensor.type());
  if (!dtype || !dtype->is_integral() || dtype->bits > 16) return std::nullopt;
  int64_t values = int64_t{1} << dtype->bits;
  if (dtype->is_uint()) return Range{int_imm(0), int_imm(values - 1)};
  return Range{int_imm(-values / 2), int_imm(values / 2 - 1)};
}

std::optional<IndexFacts::Range> IndexFacts::range_of_call(const Expr& value, int depth) const {
  const std::string& op = op_name(value);
  if (op.empty()) return std::nullopt;
  const Call& node = *value.as<Call>();
  if (std::ranges::find(kMoves, op, &OpName::text) != std::end(kMoves)) return range_of(node.args[0], depth);
  if (op == ops::kScalarToTensor) return Range{node.args[0], node.args[0]};
  if (op == ops::kAstype) {
    auto from = tensor_dtype(node.args[0].type()), to = tensor_dtype(value.type());
    bool keeps = from && to && from->is_int() && to->is_int() && from->bits <= to->bits;
    return keeps ? range_of(node.args[0], depth) : std::nullopt;
  }
  if (op == ops::kArange) {
    auto step = node.args.size() > 2 ? as_int(node.args[2]) : std::optional<int64_t>(1);
    bool is_integer = node.args.size() > 1 && dtype_of(node.args[0]).is_int() && dtype_of(node.args[1]).is_int();
    if (!is_integer || !step || *step < 1) return std::nullopt;
    return Range{node.args[0], node.args[1] - 1};
  }
  if (op == ops::kArgmax || op == ops::kArgmin) return range_of_position<ArgReduceAttrs>(node);
  return op == ops::kArgsort ? range_of_position<ArgsortAttrs>(node) : std::nullopt;
}

}  // namespace relaxc
