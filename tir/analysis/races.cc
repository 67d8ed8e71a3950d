#include "tir/analysis/races.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/arith.h"
#include "ir/intrinsics.h"
#include "ir/text/printer.h"
#include "ir/visit.h"
#include "support/joined.h"
#include "support/lists.h"

namespace relaxc {

namespace {

using Nodes = std::unordered_set<const NodeHeader*>;

// Returns whether the node is a call of a function that may do anything, a jump included.
bool has_effect(const NodeRef& node) {
  const Call* call = node.as<Call>();
  const OpRef* op = call ? call->callee.as<OpRef>() : nullptr;
  const Builtin* builtin = op ? find_builtin(op->name) : nullptr;
  return call && (!op || (builtin && !builtin->pure));
}

// Walks the body of one parallel loop. Axes and bindings become expressions over the loops.
class RaceFinder {
 public:
  RaceFinder(const Ref<For>& loop, const Nodes& used_outside) : loop_(loop), used_outside_(used_outside) {
    varies_.insert(loop->var.get());
    walk(loop->body, [&](const BufferStore& store) { stored_.insert(store.buffer.get()); });
  }

  // Returns a store that two iterations make to one element.
  std::optional<Ref<BufferStore>> run() {
    if (as_int(loop_->extent).value_or(2) < 2 || any_node(loop_->body, has_effect)) return std::nullopt;
    look(loop_->body);
    return found_;
  }

 private:
  // Returns whether the value may differ between iterations.
  bool differs(const Expr& e) const {
    return any_node(e, [&](const NodeRef& node) {
      const BufferLoad* load = node.as<BufferLoad>();
      return varies_.contains(node.get()) || has_effect(node) || (load && stored_.contains(load->buffer.get()));
    });
  }
  bool differs(const std::optional<Expr>& e) const { return e && differs(*e); }

  void look(const Stmt& stmt) {
    if (found_) return;
    if (const Seq* list = stmt.as<Seq>()) {
      for (const Stmt& each : list->stmts) look(each);
    } else if (const For* inner = stmt.as<For>()) {
      Expr min = substitute(inner->min, values_), extent = substitute(inner->extent, values_);
      if (!differs(min) && !differs(extent) && !differs(inner->step)) look(inner->body);
    } else if (const IfThenElse* branch = stmt.as<IfThenElse>()) {
      if (differs(substitute(branch->condition, values_))) return;
      look(branch->then_body);
      if (branch->else_body) look(*branch->else_body);
    } else if (const Bind* bind = stmt.as<Bind>()) {
      values_.insert_or_assign(bind->var.get(), substitute(bind->value, values_));
    } else if (const Block* block = stmt.as<Block>()) {
      look_at(*block);
    } else if (auto store = try_cast<BufferStore>(stmt)) {
      look_at(*store);
    }
  }

  void look_at(const Block& block) {
    for (const IterVar& axis : block.iter_vars)
      values_.insert_or_assign(axis.var.get(), substitute(axis.value, values_));
    if (!block.match_buffers.empty() || (block.predicate && differs(substitute(*block.predicate, values_)))) return;
    look(block.body);
  }

  void look_at(const Ref<BufferStore>& store) {
    const Buffer& buffer = store->buffer;
    // Memory that one iteration alone uses becomes its own when the program is lowered.
    if (!used_outside_.contains(buffer.get()) || buffer_type(buffer).data || differs(store->predicate)) return;
    std::vector<Expr> indices = map_each(store->indices, [&](const Expr& e) { return substitute(e, values_); });
    bool is_certain = std::ranges::none_of(indices, [](const Expr& e) { return holds<BufferLoad, Call>(e); });
    Expr value = substitute(store->value, values_);
    if (is_certain && differs(value) && meet(indices, value)) found_ = store;
  }

  // Returns whether the first iteration and one of the next ones store different values in the same elements.
  bool meet(const std::vector<Expr>& indices, const Expr& value) const {
    bool may_wrap = std::ranges::any_of(indices, [](const Expr& e) {
      return any_node(e, [](const NodeRef& node) {
        const Binary* binary = node.as<Binary>();
        return binary && binary->op == BinaryOp::kFloorMod;
      });
    });
    constexpr int64_t kFarthest = 64;
    int64_t last = may_wrap ? std::min(as_int(loop_->extent).value_or(2) - 1, kFarthest) : 1;
    auto at = [&](const Expr& e, int64_t count) {
      return substitute(e, {{loop_->var.get(), simplify(loop_->min + int_imm(count, dtype_of(loop_->var)))}});
    };
    auto is_same = [&](int64_t count) {
      return std::ranges::all_of(indices, [&](const Expr& e) { return is_int(simplify(at(e, count) - at(e, 0)), 0); });
    };
    bool reads_stored = any_node(value, [&](const NodeRef& node) {
      const BufferLoad* load = node.as<BufferLoad>();
      return load && stored_.contains(load->buffer.get());
    });
    for (int64_t count = 1; count <= last; ++count) {
      if (is_same(count) && (reads_stored || !structural_equal(simplify(at(value, count)), simplify(at(value, 0)))))
        return true;
    }
    return false;
  }

  const Ref<For>& loop_;
  const Nodes& used_outside_;
  Nodes varies_, stored_;
  VarMap values_;
  std::optional<Ref<BufferStore>> found_;
};

// Returns the buffers that are params, or that the program mentions outside of the loop, other than to allocate them.
Nodes buffers_outside(const PrimFuncRef& program, const Ref<For>& loop) {
  Nodes result;
  for (const VarRef& param : program->params) result.insert(param.get());
  walk_nodes(program->body, [&](const NodeRef& node) {
    if (const BufferLoad* load = node.as<BufferLoad>()) result.insert(load->buffer.get());
    if (const BufferStore* store = node.as<BufferStore>()) result.insert(store->buffer.get());
    return node.get() != loop.get();
  });
  return result;
}

}  // namespace

static std::string element_text(const BufferStore& store) {
  auto text = [](const Expr& index) { return as_int(index) ? std::to_string(*as_int(index)) : print_expr(index); };
  return fmt::format("{}[{}]", store.buffer->name, joined(store.indices, text));
}

std::vector<Diagnostic> racing_loops(const PrimFuncRef& program) {
  Diagnostics result;
  walk(program->body, [&](const Ref<For>& loop) {
    if (loop->kind != ForKind::kParallel) return;
    std::optional<Ref<BufferStore>> store = RaceFinder(loop, buffers_outside(program, loop)).run();
    if (!store) return;
    result.warning(store->span(),
                   "several iterations of T.parallel loop '{}' write {}: the result depends on the number of threads; "
                   "make it a reduction (a block with T.init and a reduce axis), or use a serial loop",
                   loop->var->name, element_text(**store));
  });
  return result.all();
}

}  // namespace relaxc
