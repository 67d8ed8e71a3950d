// A CPU runs the threads of a GPU one after another: loops over threads are loops. Those over blocks of threads, which
// never wait for each other, are parallel.
//
// In programs of blocks (TensorIR) every loop runs as it stands: a nested loop over the same axis, such as one that
// fills shared memory together, does the work of all threads. Below T.launch_thread, and in programs without blocks,
// the variable of an axis is the number of the thread that runs, and barriers stand where threads use what others have
// written: there the loops are split. Where TVM would insert the barrier, the program is refused.
#include <algorithm>

#include "support/diagnostic.h"
#include "support/temporarily.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

bool is_block_axis(std::string_view thread) { return thread.starts_with("blockIdx"); }
// Loops over one virtual axis are different axes.
bool is_virtual_axis(std::string_view thread) { return thread.starts_with("vthread") || thread == "cthread"; }

class ThreadRunner final : public Rewriter {
 public:
  explicit ThreadRunner(bool has_blocks) : has_blocks_(has_blocks) {}

  Stmt stmt(const Stmt& s) override {
    const For* loop = s.as<For>();
    if (!loop) return Rewriter::stmt(s);
    Temporarily parallel(in_parallel_, in_parallel_ || loop->kind == ForKind::kParallel);
    if (!binds_thread(loop->kind)) return Rewriter::stmt(s);
    for (const For* outer : around_) {
      if (has_blocks_ || outer->thread != loop->thread || is_virtual_axis(loop->thread)) continue;
      if (!structural_equal(outer->extent, loop->extent) || !structural_equal(outer->min, loop->min))
        fail_unsupported(s.span(), "loops '{}' and '{}' are bound to the thread axis '{}' with different extents",
                         outer->var->name, loop->var->name, loop->thread);
      return stmt(substitute(loop->body, {{loop->var.get(), cast_to(outer->var, dtype_of(loop->var))}}));
    }
    bool is_parallel = is_block_axis(loop->thread) && !in_parallel_;
    Temporarily inside(in_parallel_, in_parallel_ || is_parallel);
    around_.push_back(loop);
    Stmt result = Rewriter::stmt(s);
    around_.pop_back();
    return edited<For>(result, [&](For& copy) {
      copy.kind = is_parallel ? ForKind::kParallel : ForKind::kSerial;
      copy.thread.clear();
    });
  }

 private:
  bool has_blocks_;
  std::vector<const For*> around_;
  bool in_parallel_ = false;
};

// Refuses threads that use what others write, in programs without blocks.
class BarrierCheck {
 public:
  void visit(const Stmt& s, const For* threads) {
    const For* loop = s.as<For>();
    bool is_outermost = !threads && loop && binds_thread(loop->kind) && !is_block_axis(loop->thread);
    if (is_outermost) {
      threads = loop;
      check_elements(*loop);
    }
    if (const AllocBuffer* alloc = s.as<AllocBuffer>()) {
      std::string_view scope = buffer_type(alloc->buffer).scope;
      bool is_of_thread = scope.starts_with("local") || scope == "warp";
      if (!threads && is_of_thread) users_.emplace(alloc->buffer.get(), nullptr);
    }
    visit_children(s, [&](const NodeRef& child, Slot) {
      if (is_stmt_kind(child.kind())) return visit(cast_handle<Stmt>(child), threads);
      if (threads) walk(child, [&](const Ref<Var>& var) { use(var, *threads); });
    });
  }

 private:
  // The loops would share memory that each thread has for itself.
  void use(const VarRef& var, const For& threads) {
    auto known = users_.find(var.get());
    if (known == users_.end()) return;
    if (known->second && known->second != &threads) refuse_barrier(var, threads);
    known->second = &threads;
  }
  static void check_elements(const For& threads) {
    std::vector<std::pair<Buffer, std::vector<Expr>>> stored;
    walk(threads.body, [&](const BufferStore& store) { stored.emplace_back(store.buffer, store.indices); });
    walk(threads.body, [&](const BufferLoad& load) {
      std::string_view scope = buffer_type(load.buffer).scope;
      if (scope.starts_with("local") || scope == "warp") return;
      bool is_stored = false, is_own = false;
      for (const auto& [buffer, indices] : stored) {
        if (!same_node(buffer, load.buffer)) continue;
        is_stored = true;
        is_own = is_own || std::ranges::equal(indices, load.indices,
                                              [](const Expr& a, const Expr& b) { return structural_equal(a, b); });
      }
      if (is_stored && !is_own) refuse_barrier(load.buffer, threads);
    });
  }
  [[noreturn]] static void refuse_barrier(const Buffer& buffer, const For& threads) {
    fail_unsupported(
        threads.var.span(),
        "threads of '{}' use elements of '{}' that others may have written, which takes a barrier; a CPU "
        "runs the threads one after another. Put T.tvm_storage_sync(\"shared\") there, or give the program "
        "as blocks, before it is lowered",
        threads.thread, buffer->name);
  }

  std::unordered_map<const NodeHeader*, const For*> users_;  // the loop over threads that uses the memory of each
};

}  // namespace

// Turns loops over GPU threads into serial loops, and the outermost one over blocks of threads into a parallel one.
PrimFuncRef run_threads(const PrimFuncRef& function) {
  bool has_threads = any_node(function->body, [](const NodeRef& node) {
    const For* loop = node.as<For>();
    return loop && binds_thread(loop->kind);
  });
  if (!has_threads) return function;
  bool has_blocks = holds<Block>(function->body);
  Stmt body = has_blocks ? function->body : split_at_barriers(function->body);
  if (!has_blocks) BarrierCheck().visit(body, nullptr);
  return with_body(function, ThreadRunner(has_blocks).stmt(body));
}

}  // namespace relaxc
