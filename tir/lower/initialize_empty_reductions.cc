#include <fmt/format.h>

#include <algorithm>

#include "tir/analysis/conditions.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

// Returns the condition that one of the block's axes of that kind has an empty domain.
Expr is_empty(const Block& block, IterKind kind) {
  Expr result = bool_imm(false);
  for (const IterVar& axis : block.iter_vars) {
    if (axis.kind == kind) result = result || axis.domain.extent <= int_imm(0, dtype_of(axis.domain.extent));
  }
  return result;
}

// Returns the condition, or true where it would divide by 0: the loops of such an axis have no iterations anywhere.
Expr unless_dividing_by_zero(const Expr& condition) {
  Expr result = condition;
  walk(condition, [&](const Binary& node) {
    if (!is_division(node.op) || as_int(node.b)) return;
    result = if_then_else(equal(node.b, int_imm(0, dtype_of(node.b))), bool_imm(true), result);
  });
  return result;
}

// Builds the initialisation of the blocks below a reduce loop for the case that the loop does not run: the spatial
// loops are kept and the reduce loops dropped.
class InitNest {
 public:
  explicit InitNest(const Ref<For>& loop) : empty_(loop->var) { drop(*loop); }

  std::vector<Stmt> find(const Stmt& stmt) {
    std::vector<Stmt> result;
    if (const Seq* node = stmt.as<Seq>()) {
      for (const Stmt& inner : node->stmts) std::ranges::move(find(inner), std::back_inserter(result));
    } else if (const AttrStmt* node = stmt.as<AttrStmt>()) {
      return find(node->body);
    } else if (const For* node = stmt.as<For>()) {
      if (is_spatial(*node)) {
        for (const Stmt& init : find(node->body)) {
          For copy = *node;
          copy.var = make_var(node->var->name, node->var.type(), stmt.span());
          copy.body = instantiate(init, {{node->var.get(), copy.var}});
          result.push_back(make(std::move(copy), stmt.span()));
        }
        return result;
      }
      drop(*node);
      result = find(node->body);
      dropped_.erase(node->var.get());
      first_.erase(node->var.get());
    } else if (auto block = try_cast<Block>(stmt)) {
      if (!(*block)->init) return find_in(**block);
      if (auto init = init_of(*block)) result.push_back(*init);
    }
    return result;
  }

  // Returns the blocks that may need their init for elements that cannot be determined.
  const std::vector<Ref<Block>>& without_init() const { return without_init_; }

 private:
  // Returns whether the init stores to memory that exists only while the block runs.
  static bool uses_block_memory(const Stmt& init, const Block& block) {
    std::unordered_set<const NodeHeader*> local;
    for (const Buffer& buffer : block.alloc_buffers) local.insert(buffer.get());
    for (const MatchBuffer& window : block.match_buffers) local.insert(window.buffer.get());
    return uses_var(init, local);
  }
  // Returns the inits inside of a block that has none itself, with its axes replaced by their values.
  std::vector<Stmt> find_in(const Block& block) {
    VarMap axes;
    for (const IterVar& axis : block.iter_vars) axes.emplace(axis.var.get(), axis.value);
    std::vector<Stmt> result = find(substitute(block.body, axes));
    std::erase_if(result, [&](const Stmt& init) { return uses_block_memory(init, block); });
    for (const Expr& condition : conjuncts(block.predicate)) {
      if (uses_var(condition, dropped_)) continue;
      for (Stmt& init : result) init = make(IfThenElse{condition, init, std::nullopt});
    }
    return result;
  }
  void drop(const For& loop) {
    dropped_.insert(loop.var.get());
    first_.emplace(loop.var.get(), substitute(loop.min, first_));
  }
  // Returns whether only spatial axes of blocks inside depend on the loop.
  static bool is_spatial(const For& loop) {
    bool found = false, reduces = false;
    walk(loop.body, [&](const Block& block) {
      for (const IterVar& axis : block.iter_vars) {
        if (uses_var(axis.value, loop.var)) (axis.kind == IterKind::kReduce ? reduces : found) = true;
      }
    });
    return found && !reduces;
  }
  // Returns the block's init at its spatial position. A reduce axis must depend on the empty loop (a loop that drives
  // no axis skips the whole block). Each spatial axis must depend on no dropped loop, or on dropped loops only. Where
  // outer loops also drive reduce axes, init runs only in their first iteration, before anything is accumulated.
  std::optional<Stmt> init_of(const Ref<Block>& node) {
    const Block& block = *node;
    bool reduces = false, is_known = true;
    VarMap axes;
    std::vector<Expr> conditions;
    std::vector<std::pair<VarRef, Expr>> whole;
    for (const IterVar& axis : block.iter_vars) {
      bool dropped = uses_var(axis.value, dropped_);
      if (axis.kind == IterKind::kReduce) {
        reduces = reduces || uses_var(axis.value, empty_);
        Expr first = simplify(equal(substitute(axis.value, first_), axis.domain.min));
        if (!is_int(first, 1)) conditions.push_back(first);
      } else if (dropped) {
        // The empty loop drives this axis, too (fused loops). If nothing else drives it, init covers all of the axis.
        bool is_alone = is_int(simplify(equal(substitute(axis.value, first_), axis.domain.min)), 1);
        is_known = is_known && is_alone && !uses_var(axis.domain.extent, dropped_);
        VarRef var = make_var(axis.var->name, axis.var.type());
        axes.emplace(axis.var.get(), axis.domain.min + var);
        whole.emplace_back(var, axis.domain.extent);
      } else {
        axes.emplace(axis.var.get(), axis.value);
        // A part of a partitioned loop that never runs may give a constant value outside of the domain.
        bool is_alone = free_vars(axis.value).empty() && !is_int(axis.value, 0);
        Expr inside = is_alone ? simplify(axis.value < axis.domain.min + axis.domain.extent) : bool_imm(true);
        if (!is_int(inside, 1)) conditions.push_back(inside);
      }
    }
    if (!reduces || uses_block_memory(*block.init, block)) return std::nullopt;
    if (!is_known) {
      without_init_.push_back(node);
      return std::nullopt;
    }
    // A fused loop may also be empty because it has no spatial elements (a part of a partitioned loop).
    if (!whole.empty()) {
      Expr nothing = simplify(is_empty(block, IterKind::kReduce));
      if (is_int(nothing, 0)) return std::nullopt;
      conditions.push_back(nothing);
    }
    Stmt init = instantiate(*block.init, axes);
    for (const auto& [var, extent] : whole) init = loop(var, extent, init);
    for (const Expr& condition : conjuncts(block.predicate)) {
      if (!uses_var(condition, dropped_)) conditions.push_back(condition);
    }
    for (const Expr& condition : conditions)
      init = make(IfThenElse{unless_dividing_by_zero(condition), init, std::nullopt});
    return init;
  }

  VarRef empty_;
  std::vector<Ref<Block>> without_init_;
  std::unordered_set<const NodeHeader*> dropped_;
  VarMap first_;  // maps dropped loops to their first iteration
};

}  // namespace

// Where the elements to initialize cannot be determined, the kernel fails rather than leaving them uninitialized.
PrimFuncRef initialize_empty_reductions(const PrimFuncRef& function) {
  std::unordered_set<const NodeHeader*> inside;
  walk(
      function->body, [&](const For& loop) { inside.insert(loop.var.get()); },
      [&](const Bind& bind) { inside.insert(bind.var.get()); });
  std::vector<Stmt> checks;
  Stmt body = rewrite(function->body, [&](const Ref<For>& loop) -> std::optional<Stmt> {
    if (auto extent = as_int(loop->extent); extent && *extent > 0) return std::nullopt;
    InitNest nest(loop);
    std::vector<Stmt> inits = nest.find(loop->body);
    for (const Ref<Block>& block : nest.without_init()) {
      // The block must reduce over something, or have no elements either.
      Expr condition = simplify(!is_empty(*block, IterKind::kReduce) || is_empty(*block, IterKind::kSpatial));
      if (is_int(condition, 1) || uses_var(condition, inside)) continue;
      std::string message = fmt::format(
          "the reduction of block '{}' is empty, and its schedule fuses spatial and reduce loops, so that the elements "
          "to initialize are not known; apply decompose_reduction before fuse",
          block->name);
      checks.push_back(make(Assert{condition, {message}}, loop.span()));
    }
    if (inits.empty()) return std::nullopt;
    Expr empty = loop->extent <= int_imm(0, dtype_of(loop->extent));
    Stmt when_empty = make(IfThenElse{empty, seq(std::move(inits)), std::nullopt}, loop.span());
    return seq({when_empty, loop}, loop.span());
  });
  if (checks.empty()) return with_body(function, body);
  const Block* root = body.as<Block>();
  checks.push_back(root ? root->body : body);
  if (!root) return with_body(function, seq(checks, body.span()));
  return with_body(function, edited<Block>(body, [&](Block& checked) { checked.body = seq(checks); }));
}

}  // namespace relaxc
