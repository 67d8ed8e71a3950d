#include "tir/lower/row_by_row.h"

#include <algorithm>

#include "ir/visit.h"
#include "tir/lower/linear.h"

namespace relaxc {

std::optional<Stmt> row_by_row(const Stmt& tile, const std::unordered_set<const NodeHeader*>& rows, const Expr& count,
                               const Analyzer& facts) {
  VarRef row = make_dim("row");
  bool fits = true;
  Stmt body = rewrite(tile, [&](const Ref<For>& loop) -> std::optional<Stmt> {
    if (!rows.contains(loop->var.get())) return std::nullopt;
    walk(loop->body, [&](const For& inner) { fits = fits && !rows.contains(inner.var.get()); });
    fits = fits && is_int(loop->min, 0) && !loop->step;
    return substitute(loop->body, {{loop->var.get(), Expr(row)}});
  });
  // Every access to what the body writes must be at the same place of the row, which no other row has: then the order
  // of rows and of the statements of different rows does not matter.
  std::unordered_set<const NodeHeader*> written, moving{row.get()};
  std::vector<std::pair<Buffer, std::vector<Expr>>> accesses;
  walk(
      body, [&](const For& loop) { moving.insert(loop.var.get()); },
      [&](const BufferStore& store) {
        written.insert(store.buffer.get());
        accesses.emplace_back(store.buffer, store.indices);
      },
      [&](const BufferLoad& load) { accesses.emplace_back(load.buffer, load.indices); },
      [&](const Evaluate&) { fits = false; }, [&](const Bind&) { fits = false; }, [&](const While&) { fits = false; },
      [&](const Assert&) { fits = false; });
  auto offset = [&](const std::vector<Expr>& indices, size_t d) { return facts.simplify(indices[d] - row); };
  std::unordered_map<const NodeHeader*, std::vector<std::optional<Expr>>> offsets;  // per dim; absent: they differ
  for (const auto& [buffer, indices] : accesses) {
    if (!written.contains(buffer.get())) continue;
    auto [known, is_new] = offsets.try_emplace(buffer.get());
    for (size_t d = 0; d < indices.size(); ++d) {
      Expr own = offset(indices, d);
      if (is_new) known->second.emplace_back(own);
      std::optional<Expr>& same = known->second[d];
      if (same && (mentions(own, moving) || !structural_equal(*same, own))) same.reset();
    }
  }
  for (const auto& [buffer, dims] : offsets) {
    fits = fits && std::any_of(dims.begin(), dims.end(), [](const std::optional<Expr>& e) { return e.has_value(); });
  }
  if (!fits) return std::nullopt;
  return loop(row, count, body);
}

}  // namespace relaxc
