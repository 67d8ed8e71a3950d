#include "ir/arith.h"

namespace relaxc {

namespace {

// Carries the facts of the enclosing scopes: loop ranges, axis domains, conditions.
class StmtSimplifier {
 public:
  explicit StmtSimplifier(Analyzer facts) : facts_(std::move(facts)) {}

  Stmt stmt(const Stmt& s) {
    if (const For* node = s.as<For>()) return for_loop(s, *node);
    if (const IfThenElse* node = s.as<IfThenElse>()) return branch(s, *node);
    if (s.is<Seq>()) {  // statements that became none, or several, are merged into it
      Stmt now = children(s, *this);
      return same_node(now, s) ? s : seq(now.as<Seq>()->stmts, s.span());
    }
    if (const Block* node = s.as<Block>()) {
      StmtSimplifier inner(facts_);
      if (node->predicate) inner.facts_.assume(facts_.simplify(*node->predicate));
      for (const IterVar& axis : node->iter_vars) inner.facts_.bind(axis.var, axis.domain.min, axis.domain.extent);
      Stmt now = children(s, inner);
      const Block* block = now.as<Block>();
      if (!block->predicate || !is_int(*block->predicate, 1)) return now;
      Block copy = *block;
      copy.predicate.reset();
      return make(std::move(copy), s.span());
    }
    if (const Bind* node = s.as<Bind>()) {
      Stmt now = children(s, *this);
      if (now.as<Bind>()->value.is<IntImm>()) facts_.bind(node->var, now.as<Bind>()->value);
      return now;
    }
    return children(s, *this);
  }

 private:
  // Simplifies expressions under the facts of this scope, and statements (and a block's body) by `inner`.
  Stmt children(const Stmt& s, StmtSimplifier& inner) {
    NodeRef mapped = map_children(s, [&](const NodeRef& child, Slot slot) -> NodeRef {
      if (is_stmt_kind(child.kind())) return inner.stmt(cast_handle<Stmt>(child));
      if (slot.exact || !is_expr_kind(child.kind())) return child;
      return inner.facts_.simplify(cast_handle<Expr>(child));
    });
    return cast_handle<Stmt>(mapped);
  }

  Stmt for_loop(const Stmt& s, const For& node) {
    Expr min = facts_.simplify(node.min), extent = facts_.simplify(node.extent);
    if (auto known = as_int(extent); known && *known <= 0) return no_op();
    StmtSimplifier inner(facts_);
    bool once = is_int(extent, 1) && !binds_thread(node.kind) && !node.step && node.annotations.empty();
    if (once) {
      inner.facts_.bind(node.var, min);
      return inner.stmt(substitute(node.body, {{node.var.get(), min}}));
    }
    inner.facts_.bind(node.var, min, extent);
    Stmt body = inner.stmt(node.body);
    if (const Seq* empty = body.as<Seq>(); empty && empty->stmts.empty()) return no_op();
    if (same_node(min, node.min) && same_node(extent, node.extent) && same_node(body, node.body)) return s;
    For copy = node;
    copy.min = min;
    copy.extent = extent;
    copy.body = body;
    return make(std::move(copy), s.span());
  }

  Stmt branch(const Stmt& s, const IfThenElse& node) {
    Expr condition = facts_.simplify(node.condition);
    if (auto known = as_int(condition)) {
      if (*known) return stmt(node.then_body);
      return node.else_body ? stmt(*node.else_body) : no_op();
    }
    StmtSimplifier sides[] = {StmtSimplifier(facts_), StmtSimplifier(facts_)}, *side = sides;
    sides[0].facts_.assume(condition);
    sides[1].facts_.assume(!condition);
    return cast_handle<Stmt>(map_children(s, [&](const NodeRef& child, Slot) -> NodeRef {
      return is_stmt_kind(child.kind()) ? side++->stmt(cast_handle<Stmt>(child)) : NodeRef(condition);
    }));
  }

  Analyzer facts_;
};

}  // namespace

Stmt simplify(const Stmt& stmt, const Analyzer& facts) { return StmtSimplifier(facts).stmt(stmt); }

}  // namespace relaxc
