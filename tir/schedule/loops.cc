#include "tir/schedule/loops.h"

#include <algorithm>

#include "support/checked_math.h"

namespace relaxc {

bool is_small(const std::vector<Expr>& extents, int64_t work_per_iteration) {
  int64_t total = work_per_iteration;
  for (const Expr& extent : extents) {
    auto known = as_int(extent);
    auto product = known ? checked_mul(total, *known) : std::nullopt;
    if (!product) return false;
    total = *product;
  }
  return total < 16384;  // about 2 us of simple elements on one core
}

Stmt fused_loop(const std::vector<Expr>& extents, ForKind kind,
                const std::function<Stmt(const std::vector<Expr>&)>& body) {
  Expr total = int_imm(1);
  std::vector<size_t> real;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (is_int(extents[d], 1)) continue;
    total = total * extents[d];
    real.push_back(d);
  }
  std::vector<Expr> indices(extents.size(), int_imm(0));
  if (real.empty()) return body(indices);
  VarRef var = make_dim("p");
  Expr rest = var;
  for (size_t i = real.size(); i-- > 0;) {
    indices[real[i]] = i == 0 ? rest : floor_mod(rest, extents[real[i]]);
    rest = floor_div(rest, extents[real[i]]);
  }
  return loop(var, total, body(indices), kind);
}

namespace {

class Instantiator final : public Rewriter {
 public:
  Instantiator(const Stmt& root, const VarMap& axes) : axes_(axes) {
    walk_nodes(root, [&](const NodeRef& node) {
      visit_children(node, [&](const NodeRef& child, Slot slot) {
        if (slot.role != Role::kField && child.is<Var>()) bound_.insert(child.get());
      });
      return true;
    });
  }
  Expr expr(const Expr& node) override {
    if (auto it = axes_.find(node.get()); it != axes_.end()) return it->second;
    return Rewriter::expr(node);
  }
  VarRef var(const VarRef& node) override {
    auto it = renamed_.find(node.get());
    if (it != renamed_.end()) return it->second;
    if (!bound_.contains(node.get())) return Rewriter::var(node);
    VarRef fresh = make_var(node->name, type(node.type()), node.span());
    renamed_.emplace(node.get(), fresh);
    return fresh;
  }

 private:
  const VarMap& axes_;
  std::unordered_set<const NodeHeader*> bound_;
};

}  // namespace

Stmt instantiate(const Stmt& stmt, const VarMap& axes) { return Instantiator(stmt, axes).stmt(stmt); }

ColumnTile choose_column_tile(std::optional<int64_t> extent, int lanes) {
  if (!extent) return {lanes, 2};
  for (int candidate : {lanes, lanes / 2, lanes / 4}) {
    for (int vectors : {2, 3, 1}) {
      if (candidate >= 4 && *extent % (candidate * vectors) == 0) return {candidate, vectors};
    }
  }
  ColumnTile tile{lanes, 2};
  while (tile.lanes > 4 && *extent < tile.lanes) tile.lanes /= 2;
  if (*extent < tile.columns()) tile.vectors = 1;
  return tile;
}

int stage_lanes(const Stage& stage, const Target& target) {
  int widest = 8;
  bool vectorizable = true;
  auto see = [&](const Expr& e) {
    if (e.type().is<PrimType>()) widest = std::max<int>(widest, dtype_of(e).bits);
  };
  walk(
      stage.block->body, [&](const Ref<BufferLoad>& e) { see(e); }, [&](const Ref<Cast>& e) { see(e); },
      [&](const BufferStore& store) { see(store.value); }, [&](const For&) { vectorizable = false; },
      [&](const While&) { vectorizable = false; },
      [&](const Call& call) {
        const OpRef* op = call.callee.as<OpRef>();
        if (!op || !op->name.starts_with("tir.")) vectorizable = false;
      });
  return vectorizable ? std::max(target.vector_lanes(widest), 2) : 1;
}

}  // namespace relaxc
