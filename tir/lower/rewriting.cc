#include "tir/lower/rewriting.h"

#include <algorithm>

#include "ir/op_names.h"
#include "tir/analysis/conditions.h"

namespace relaxc {

Stmt map_stmts(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& fn) {
  Stmt result = cast_handle<Stmt>(map_children(stmt, [&](const NodeRef& child, Slot) -> NodeRef {
    if (!is_stmt_kind(child.kind())) return child;
    return fn(cast_handle<Stmt>(child));
  }));
  return result.is<Seq>() && !same_node(result, stmt) ? seq(result.as<Seq>()->stmts, stmt.span()) : result;
}

Stmt replace_exprs(const Stmt& stmt, const Replacements& by) {
  class Replacer final : public Rewriter {
   public:
    explicit Replacer(const Replacements& by) : by_(by) {}
    Expr expr(const Expr& e) override {
      auto it = by_.find(e.get());
      return it == by_.end() ? Rewriter::expr(e) : it->second;
    }

   private:
    const Replacements& by_;
  };
  return Replacer(by).stmt(stmt);
}

Stmt map_elements(const Stmt& stmt, const MapElement& fn) {
  return rewrite(
      stmt,
      [&](const Ref<BufferLoad>& node) -> std::optional<Expr> {
        auto to = fn(node->buffer, node->indices);
        if (!to) return std::nullopt;
        return make(BufferLoad{to->buffer, to->indices, node->predicate}, node.type(), node.span());
      },
      [&](const Ref<BufferStore>& node) -> std::optional<Stmt> {
        auto to = fn(node->buffer, node->indices);
        if (!to) return std::nullopt;
        return make(BufferStore{to->buffer, node->value, to->indices, node->predicate}, node.span());
      });
}

std::optional<AffineLanes> as_affine_lanes(const Expr& e) {
  if (const Broadcast* node = e.as<Broadcast>()) return AffineLanes{node->value, 0, node->lanes};
  if (const Ramp* node = e.as<Ramp>()) {
    auto stride = as_int(node->stride);
    return stride ? std::optional(AffineLanes{node->base, *stride, node->lanes}) : std::nullopt;
  }
  const Binary* node = e.as<Binary>();
  if (!node || !dtype_of(e).is_int()) return std::nullopt;
  bool is_sum = node->op == BinaryOp::kAdd || node->op == BinaryOp::kSub;
  if (!is_sum && node->op != BinaryOp::kMul) return std::nullopt;
  auto a = as_affine_lanes(node->a), b = as_affine_lanes(node->b);
  if (!a || !b) return std::nullopt;
  if (is_sum) {
    bool adds = node->op == BinaryOp::kAdd;
    return AffineLanes{adds ? a->base + b->base : a->base - b->base, a->stride + (adds ? b->stride : -b->stride),
                       a->lanes};
  }
  if (a->stride != 0) std::swap(a, b);
  auto factor = b->stride != 0 ? as_int(a->base) : 0;
  if (a->stride != 0 || !factor) return std::nullopt;
  return AffineLanes{b->base * a->base, b->stride * *factor, a->lanes};
}

Expr lane_of(const Expr& e, const Expr& lane, const std::function<Expr(const Expr&)>& other) {
  if (dtype_of(e).lanes == 1) return e;
  auto of = [&](const Expr& child) { return lane_of(child, lane, other); };
  if (const Ramp* node = e.as<Ramp>()) return node->base + node->stride * cast_to(lane, dtype_of(node->stride));
  if (const Broadcast* node = e.as<Broadcast>()) return node->value;
  if (const Binary* node = e.as<Binary>()) return binary(node->op, of(node->a), of(node->b), e.span());
  if (const Not* node = e.as<Not>()) return not_(of(node->value));
  if (const Cast* node = e.as<Cast>()) return cast_to(of(node->value), dtype_of(e).element());
  if (const Select* node = e.as<Select>()) return select(of(node->condition), of(node->a), of(node->b));
  if (const Call* node = as_call(e, ops::kIfThenElse))
    return if_then_else(of(node->args[0]), of(node->args[1]), of(node->args[2]));
  return other(e);
}

std::optional<Stmt> row_by_row(const Stmt& tile, const std::unordered_set<const NodeHeader*>& rows, const Expr& count,
                               const Analyzer& facts) {
  VarRef row = make_dim("row");
  bool fits = true;
  walk(tile, [&](const For& loop) {
    if (!rows.contains(loop.var.get())) return;
    fits = fits && is_int(loop.min, 0) && dtype_of(loop.var) == kInt64;
    walk(loop.body, [&](const For& inner) { fits = fits && !rows.contains(inner.var.get()); });
  });
  if (!fits) return std::nullopt;
  Stmt body = rewrite(tile, [&](const Ref<For>& loop) -> std::optional<Stmt> {
    if (!rows.contains(loop->var.get())) return std::nullopt;
    return substitute(loop->body, {{loop->var.get(), Expr(row)}});
  });
  // All accesses to a buffer that the body writes must have the index row + c in some dim, with the same c. Rows then
  // use different elements, so the order of rows, and of the statements of different rows, does not matter.
  if (holds<Evaluate, Bind, While, Assert>(body)) return std::nullopt;
  std::unordered_set<const NodeHeader*> written, moving{row.get()};
  std::vector<std::pair<Buffer, std::vector<Expr>>> accesses;
  walk(
      body, [&](const For& loop) { moving.insert(loop.var.get()); },
      [&](const BufferStore& store) {
        written.insert(store.buffer.get());
        accesses.emplace_back(store.buffer, store.indices);
      },
      [&](const BufferLoad& load) { accesses.emplace_back(load.buffer, load.indices); });
  std::unordered_map<const NodeHeader*, std::vector<std::optional<Expr>>> offsets;  // per dim; absent where they differ
  for (const auto& [buffer, indices] : accesses) {
    if (!written.contains(buffer.get())) continue;
    auto [known, is_new] = offsets.try_emplace(buffer.get());
    for (size_t d = 0; d < indices.size(); ++d) {
      std::optional<Expr> offset;
      if (dtype_of(indices[d]).lanes == 1) offset = facts.simplify(cast_to(indices[d], kInt64) - row);
      if (is_new) known->second.push_back(offset);
      std::optional<Expr>& same = known->second[d];
      if (!offset || uses_var(*offset, moving) || (same && !structural_equal(*same, *offset))) same.reset();
    }
  }
  for (const auto& [buffer, dims] : offsets) {
    fits = fits && std::any_of(dims.begin(), dims.end(), [](const std::optional<Expr>& e) { return e.has_value(); });
  }
  if (!fits) return std::nullopt;
  return loop(row, count, body);
}

}  // namespace relaxc
