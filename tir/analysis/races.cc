#include "tir/analysis/races.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/arith.h"
#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/text/printer.h"
#include "ir/visit.h"
#include "support/joined.h"
#include "support/lists.h"

namespace relaxc {

namespace {

using Nodes = std::unordered_set<const NodeHeader*>;

// An access that every iteration makes, at elements that no data choose.
struct CertainAccess {
  Buffer buffer;
  std::vector<Expr> indices;  // over the loops
  Span span;
  size_t statement;  // the number of the store that it belongs to
};
// A load of an element that another iteration stores.
struct CarriedLoad {
  CertainAccess load, store;
  int64_t distance;  // in iterations, from the store to the load
};

// Walks the body of one loop. Axes and bindings become expressions over the loops.
class RaceFinder {
 public:
  RaceFinder(const Ref<For>& loop, const Nodes& used_outside) : loop_(loop), used_outside_(used_outside) {
    varies_.insert(loop->var.get());
    walk(loop->body, [&](const BufferStore& store) { stored_.insert(store.buffer.get()); });
  }

  // Looks for both of what follows.
  void run() {
    if (as_int(loop_->extent).value_or(2) >= 2 && !any_node(loop_->body, is_call_with_effect)) look(loop_->body);
  }
  // Returns a store that two iterations make to one element.
  const std::optional<Ref<BufferStore>>& found() const { return found_; }
  // Returns a load that must not run beside the store of another iteration. A vector runs statement by statement, each
  // for all iterations, so that some orders are those of the serial loop.
  std::optional<CarriedLoad> carried() const {
    for (const CertainAccess& load : loads_) {
      for (const CertainAccess& store : stores_) {
        const int64_t distance = same_node(load.buffer, store.buffer) ? distance_of(store, load) : 0;
        const bool is_before = load.statement <= store.statement;
        const bool is_kept = loop_->kind == ForKind::kVectorized && (distance > 0) != is_before;
        if (distance != 0 && !is_kept) return CarriedLoad{load, store, distance};
      }
    }
    return std::nullopt;
  }

 private:
  // Returns whether the value may differ between iterations.
  bool differs(const Expr& e) const {
    return any_node(e, [&](const NodeRef& node) {
      const BufferLoad* load = node.as<BufferLoad>();
      return varies_.contains(node.get()) || is_call_with_effect(node) ||
             (load && stored_.contains(load->buffer.get()));
    });
  }
  bool differs(const std::optional<Expr>& e) const { return e && differs(*e); }

  void look(const Stmt& stmt) {
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
    ++statement_;
    std::vector<Expr> indices = map_each(store->indices, [&](const Expr& e) { return substitute(e, values_); });
    Expr value = substitute(store->value, values_);
    look_at_loads(value, store.span());
    if (!is_certain(indices)) return;
    stores_.push_back({buffer, indices, store.span(), statement_});
    if (!found_ && differs(value) && meet(indices, value)) found_ = store;
  }
  static bool is_certain(const std::vector<Expr>& indices) {
    return std::ranges::none_of(indices,
                                [](const Expr& e) { return holds<BufferLoad, Call>(e) || dtype_of(e).lanes != 1; });
  }
  void look_at_loads(const Expr& value, const Span& span) {
    walk_nodes(value, [&](const NodeRef& node) {
      const Call* call = node.as<Call>();
      if (node.is<Select>() || (call && as_call(cast_handle<Expr>(node), ops::kIfThenElse))) return false;
      const BufferLoad* load = node.as<BufferLoad>();
      if (load && used_outside_.contains(load->buffer.get()) && !buffer_type(load->buffer).data && !load->predicate &&
          is_certain(load->indices))
        loads_.push_back({load->buffer, load->indices, node.span() ? node.span() : span, statement_});
      return true;
    });
  }

  // Returns how many iterations after the store the load comes that reads its element; 0 where it is the same
  // iteration, or is not known.
  int64_t distance_of(const CertainAccess& store, const CertainAccess& load) const {
    const Expr next = static_cast<const Expr&>(loop_->var) + int_imm(1, dtype_of(loop_->var));
    std::optional<int64_t> distance;
    for (size_t d = 0; d < store.indices.size(); ++d) {
      const Expr &stored = store.indices[d], &loaded = load.indices[d];
      const auto step = as_int(simplify(substitute(loaded, {{loop_->var.get(), next}}) - loaded)),
                 gap = as_int(simplify(stored - loaded));
      if (!step || !gap || (*step == 0 ? *gap != 0 : *gap % *step != 0)) return 0;
      if (*step == 0) continue;
      if (distance && *distance != *gap / *step) return 0;
      distance = *gap / *step;
    }
    const int64_t iterations = as_int(loop_->extent).value_or(2);
    return distance && std::abs(*distance) < iterations ? *distance : 0;
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
  std::vector<CertainAccess> loads_, stores_;
  size_t statement_ = 0;
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

static std::string element_text(const Buffer& buffer, const std::vector<Expr>& indices) {
  return fmt::format("{}[{}]", buffer->name, joined(indices, print_plain));
}

static void add_carried(const For& loop, const CarriedLoad& carried, Diagnostics& result) {
  const bool is_vector = loop.kind == ForKind::kVectorized;
  result.warning(carried.load.span, "an iteration of {} loop '{}' reads {}, the element that {} writes as {}: {}",
                 is_vector ? "T.vectorized" : "T.parallel", loop.var->name,
                 element_text(carried.load.buffer, carried.load.indices),
                 carried.distance > 0 ? "an earlier one" : "a later one",
                 element_text(carried.store.buffer, carried.store.indices),
                 is_vector ? "a vector runs all of them at once, so that the result is another one than that of a "
                             "serial loop; use T.serial"
                           : "the result depends on the number of threads; use a serial loop");
}

std::vector<Diagnostic> racing_loops(const PrimFuncRef& program) {
  Diagnostics result;
  walk(program->body, [&](const Ref<For>& loop) {
    if (loop->kind != ForKind::kParallel && loop->kind != ForKind::kVectorized) return;
    const Nodes outside = buffers_outside(program, loop);
    RaceFinder finder(loop, outside);
    finder.run();
    if (finder.found() && loop->kind == ForKind::kParallel) {
      const Ref<BufferStore>& store = *finder.found();
      result.warning(
          store.span(),
          "several iterations of T.parallel loop '{}' write {}: the result depends on the number of threads; "
          "make it a reduction (a block with T.init and a reduce axis), or use a serial loop",
          loop->var->name, element_text(store->buffer, store->indices));
    } else if (std::optional<CarriedLoad> carried = finder.carried()) {
      add_carried(*loop, *carried, result);
    }
  });
  return result.all();
}

}  // namespace relaxc
