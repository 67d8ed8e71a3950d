#include "tir/edit/reduction_order.h"

#include <algorithm>
#include <unordered_set>

#include "ir/visit.h"
#include "tir/analysis/combiner.h"
#include "tir/edit/blocks.h"

namespace relaxc::scheduling {

namespace {

class Body {
 public:
  explicit Body(const Block& block) {
    for (const BufferRegion& write : block.writes) written_.push_back(write.buffer);
  }

  bool any_order(const Stmt& s) {
    if (const Seq* list = s.as<Seq>()) {
      return std::ranges::all_of(list->stmts, [&](const Stmt& each) { return any_order(each); });
    }
    if (const For* loop = s.as<For>()) return !uses(loop->min) && !uses(loop->extent) && any_order(loop->body);
    if (const IfThenElse* branch = s.as<IfThenElse>())
      return !uses(branch->condition) && !branch->else_body && any_order(branch->then_body);
    const BufferStore* store = s.as<BufferStore>();
    if (!store || store->predicate || !stored_.insert(store->buffer.get()).second) return false;
    if (std::ranges::any_of(store->indices, [&](const Expr& e) { return uses(e); })) return false;
    op_.reset();
    return combines(store->value, *store);
  }

 private:
  bool uses(const Expr& e) const {
    return std::ranges::any_of(written_, [&](const Buffer& buffer) { return uses_var(e, buffer); });
  }
  // Returns whether the value is op(old value, something else) with one operator everywhere: (c + a) + b, but neither
  // max(c + a, b) nor c + a for some iterations and max(c, a) for others.
  bool combines(const Expr& value, const BufferStore& store) {
    if (is_element(value, store)) return true;
    if (const Cast* cast = value.as<Cast>()) return combines(cast->value, store) && keeps_order(*cast, dtype_of(value));
    if (auto either = branches_of(value))
      return !uses(either->condition) && combines(either->a, store) && combines(either->b, store);
    const Binary* node = value.as<Binary>();
    if (!node) return false;
    bool subtracts = node->op == BinaryOp::kSub;
    BinaryOp op = subtracts ? BinaryOp::kAdd : node->op;
    constexpr BinaryOp kInAnyOrder[] = {BinaryOp::kAdd, BinaryOp::kMul, BinaryOp::kMin,
                                        BinaryOp::kMax, BinaryOp::kAnd, BinaryOp::kOr};
    bool known = std::find(std::begin(kInAnyOrder), std::end(kInAnyOrder), op) != std::end(kInAnyOrder);
    if (!known || op_.value_or(op) != op) return false;
    op_ = op;
    return (combines(node->a, store) && !uses(node->b)) || (!subtracts && combines(node->b, store) && !uses(node->a));
  }
  // Returns whether casting back after each step keeps the result the same in every order. Rounding does (float
  // sums count as exact), and so does the truncation of sums and products of integers.
  bool keeps_order(const Cast& cast, DType to) const {
    DType from = dtype_of(cast.value);
    if (to.is_float()) return true;
    bool sums = !op_ || op_ == BinaryOp::kAdd || op_ == BinaryOp::kMul;
    if (to.is_bool() != from.is_bool()) return false;  // what is not 0 is true
    return !from.is_float() && (sums || to.bits >= from.bits);
  }

  std::vector<Buffer> written_;
  std::unordered_set<const NodeHeader*> stored_;
  std::optional<BinaryOp> op_;  // of the store looked at
};

}  // namespace

bool needs_order(const Block& block) {
  bool reduces =
      std::ranges::any_of(block.iter_vars, [](const IterVar& axis) { return axis.kind != IterKind::kSpatial; });
  if (!reduces || Body(block).any_order(block.body)) return false;
  std::optional<Combiner> combiner = find_combiner(block);
  return !combiner || !combiner->commutes || !combiner->regroups;
}

bool comes_in_order(const TreeNode* block) { return comes_in_order(block, axis_values(block), loops_above(block)); }

bool comes_in_order(const TreeNode* block, const std::vector<Expr>& axis_values, const Nodes& loops) {
  std::vector<Expr> values;
  for (size_t a = 0; a < axis_values.size(); ++a) {
    if (block->axes()[a].kind != IterKind::kSpatial) values.push_back(axis_values[a]);
  }
  auto map = find_iter_map(values, ranges_of(loops), block->tree->facts);
  if (!map) return false;
  std::vector<size_t> order;
  for (const IterSum& sum : map->sums) {
    if (counts_down(*map, sum.digits)) return false;
    for (const IterDigit& digit : sum.digits) {
      if (!is_int(digit.extent, 1)) order.push_back(digit.source);
    }
  }
  // Loops are the first sources; the order of the loops in a sum that is a source is not known.
  return std::ranges::all_of(order, [&](size_t source) { return source < loops.size(); }) &&
         std::ranges::is_sorted(order);
}

}  // namespace relaxc::scheduling
