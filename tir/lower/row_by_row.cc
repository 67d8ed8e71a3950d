#include "tir/lower/row_by_row.h"

#include <algorithm>

#include "ir/visit.h"
#include "tir/analysis/linear.h"

namespace relaxc {

std::optional<Stmt> row_by_row(const Stmt& tile, const NodeSet& rows, const Expr& count, const Analyzer& facts) {
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
  // Every access to a buffer that the body writes must be at the same offset within the row, and no other row may have
  // that element. Then the order of rows, and of the statements of different rows, does not matter.
  if (holds<Evaluate, Bind, While, Assert>(body)) return std::nullopt;
  NodeSet written, moving{row.get()};
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
      std::optional<Expr> own;
      if (dtype_of(indices[d]).lanes == 1) own = facts.simplify(cast_to(indices[d], kInt64) - row);
      if (is_new) known->second.push_back(own);
      std::optional<Expr>& same = known->second[d];
      if (!own || mentions(*own, moving) || (same && !structural_equal(*same, *own))) same.reset();
    }
  }
  auto is_separate = [](const auto& entry) {
    return std::ranges::any_of(entry.second, [](const std::optional<Expr>& offset) { return offset.has_value(); });
  };
  if (!std::ranges::all_of(offsets, is_separate)) return std::nullopt;
  return loop(row, count, body);
}

}  // namespace relaxc
