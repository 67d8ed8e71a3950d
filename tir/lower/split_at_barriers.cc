// Programs in which the threads of a GPU wait for each other: the loops over the threads of a block end at each
// barrier, and begin again behind it, so that all threads have come to it before one goes on.
//
//   for ty, tx in threads:                          for ko: (the same for all threads)
//       for ko:                                         for ty, tx in threads: fill shared memory
//           fill shared memory                          for ty, tx in threads: use it
//           T.tvm_storage_sync("shared")
//           use it
//
// Memory that each thread has for itself gets a dim for each of the loops. Memory that a program declares outside of
// the loops over blocks of threads moves into them: the blocks run in parallel.
#include <algorithm>

#include "ir/op_names.h"
#include "support/diagnostic.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"

namespace relaxc {

namespace {

bool is_barrier(const Stmt& s) {
  const Evaluate* statement = s.as<Evaluate>();
  return statement && op_name(statement->value) == "tir.tvm_storage_sync";
}
bool holds_barrier(const Stmt& s) {
  return any_node(s,
                  [](const NodeRef& node) { return is_stmt_kind(node.kind()) && is_barrier(cast_handle<Stmt>(node)); });
}
const For* thread_loop(const Stmt& s) {
  const For* loop = s.as<For>();
  return loop && binds_thread(loop->kind) && loop->thread.starts_with("threadIdx") ? loop : nullptr;
}

std::vector<Stmt> stmts_of(const Stmt& s) {
  const Seq* several = s.as<Seq>();
  return several ? several->stmts : std::vector{s};
}

// Splits the statements below a nest of loops over threads.
class BarrierSplitter {
 public:
  Stmt split(const Stmt& nest) {
    std::vector<Stmt> inner = {nest}, before;
    while (inner.size() == 1 && thread_loop(inner[0])) {
      loops_.push_back(*thread_loop(inner[0]));
      inner = stmts_of(loops_.back().body);
      // Memory between two of the loops is that of the threads.
      auto first = std::ranges::find_if(inner, [](const Stmt& each) { return !each.is<AllocBuffer>(); });
      bool goes_on = inner.end() - first == 1 && thread_loop(*first);
      if (!goes_on) break;
      before.insert(before.end(), inner.begin(), first);
      inner = {*first};
    }
    before.insert(before.end(), inner.begin(), inner.end());
    return seq(parts(before), nest.span());
  }

 private:
  [[noreturn]] static void refuse(const Span& at, const char* why) {
    fail_unsupported(at, "a barrier of a GPU's threads {}; a CPU runs the threads one after another", why);
  }
  bool is_uniform(const Expr& e) const {
    return std::ranges::none_of(loops_, [&](const For& loop) { return uses_var(e, loop.var); });
  }

  // Returns the statements with loops over threads around those between two barriers.
  std::vector<Stmt> parts(const std::vector<Stmt>& stmts) {
    std::vector<Stmt> result, group;
    auto flush = [&] {
      if (!group.empty()) result.push_back(around(std::exchange(group, {})));
    };
    for (const Stmt& each : stmts) {
      Stmt s = substitute(each, values_);
      if (const AllocBuffer* alloc = s.as<AllocBuffer>()) {
        result.push_back(make(AllocBuffer{own(alloc->buffer), alloc->annotations, alloc->contents}, s.span()));
      } else if (const Bind* bind = s.as<Bind>()) {
        if (holds<BufferLoad>(bind->value)) refuse(s.span(), "stands behind a value that is read before");
        values_.insert_or_assign(bind->var.get(), bind->value);
      } else if (is_barrier(s)) {
        flush();
      } else if (!holds_barrier(s)) {
        group.push_back(s);
      } else {
        flush();
        result.push_back(across(s));
      }
    }
    flush();
    return result;
  }

  // Returns a statement that all threads run alike, of which the parts are split.
  Stmt across(const Stmt& s) {
    if (s.is<Seq>()) return seq(parts(stmts_of(s)), s.span());
    auto inside = [&](const Stmt& body) { return seq(parts(stmts_of(body)), body.span()); };
    if (const For* loop = s.as<For>()) {
      bool same = is_uniform(loop->min) && is_uniform(loop->extent) && !binds_thread(loop->kind);
      if (!same) refuse(s.span(), "stands in a loop that threads run differently often");
      For copy = *loop;
      copy.kind = ForKind::kSerial;
      copy.body = inside(loop->body);
      return make(std::move(copy), s.span());
    }
    const IfThenElse* branch = s.as<IfThenElse>();
    if (!branch || !is_uniform(branch->condition))
      refuse(s.span(), "stands below a condition that may differ between threads");
    IfThenElse copy = *branch;
    copy.then_body = inside(branch->then_body);
    if (branch->else_body) copy.else_body = inside(*branch->else_body);
    return make(std::move(copy), s.span());
  }

  // Returns the memory with a dim for each loop over threads; shared memory is that of all of them.
  Buffer own(const Buffer& buffer) {
    const BufferType& type = buffer_type(buffer);
    if (type.scope.starts_with("shared") || type.data) return buffer;
    std::vector<Expr> shape = map_each(loops_, [](const For& loop) { return loop.extent; });
    shape.insert(shape.end(), type.shape.begin(), type.shape.end());
    Buffer result = make_buffer(buffer->name, type.dtype, std::move(shape), "global", buffer.span());
    own_.emplace(buffer.get(), result);
    kept_.push_back(buffer);
    return result;
  }

  Stmt around(std::vector<Stmt> stmts) {
    const Span at = stmts[0].span();
    Stmt body = map_elements(seq(std::move(stmts), at), [&](const Buffer& buffer, const std::vector<Expr>& indices) {
      auto known = own_.find(buffer.get());
      if (known == own_.end()) return std::optional<Element>();
      std::vector<Expr> all = map_each(loops_, [](const For& loop) { return loop.var - loop.min; });
      all.insert(all.end(), indices.begin(), indices.end());
      return std::optional(Element{known->second, std::move(all)});
    });
    walk(body, [&](const Ref<Var>& var) {
      if (own_.contains(var.get())) refuse(at, "stands beside a pointer to memory of one thread");
    });
    for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop) {
      For copy = *loop;
      copy.var = make_var(loop->var->name, loop->var.type(), loop->var.span());
      copy.body = substitute(body, {{loop->var.get(), copy.var}});
      body = make(std::move(copy), at);
    }
    return body;
  }

  std::vector<For> loops_;
  VarMap values_;  // of variables that the threads bind
  std::unordered_map<const NodeHeader*, Buffer> own_;
  std::vector<Buffer> kept_;
};

class BarrierFinder final : public Rewriter {
 public:
  Stmt stmt(const Stmt& s) override {
    if (is_barrier(s)) return no_op();  // outside of the loops over threads: it waits for nobody
    return thread_loop(s) && holds_barrier(s) ? BarrierSplitter().split(s) : Rewriter::stmt(s);
  }
};

// Moves memory of a block of threads, and of one thread, into the loop over these.
class MemorySinker final : public Rewriter {
 public:
  Stmt stmt(const Stmt& s) override {
    const Seq* several = s.as<Seq>();
    if (!several) return Rewriter::stmt(s);
    std::vector<Stmt> stmts = several->stmts;
    for (size_t i = stmts.size(); i-- > 0;) {
      const AllocBuffer* alloc = stmts[i].as<AllocBuffer>();
      if (!alloc || alloc->contents) continue;
      std::vector<size_t> users;
      for (size_t j = 0; j < stmts.size(); ++j) {
        if (j != i && mentions(stmts[j], alloc->buffer)) users.push_back(j);
      }
      if (users.size() != 1 || !belongs_to(*alloc, stmts[users[0]])) continue;
      For loop = *stmts[users[0]].as<For>();
      loop.body = seq({stmts[i], loop.body}, loop.body.span());
      stmts[users[0]] = make(std::move(loop), stmts[users[0]].span());
      stmts.erase(stmts.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (Stmt& each : stmts) each = stmt(each);
    return seq(std::move(stmts), s.span());
  }

 private:
  static bool mentions(const Stmt& s, const Buffer& buffer) {
    return any_node(s, [&](const NodeRef& node) { return node.get() == buffer.get(); });
  }
  static bool belongs_to(const AllocBuffer& alloc, const Stmt& s) {
    const For* loop = s.as<For>();
    if (!loop || !binds_thread(loop->kind)) return false;
    std::string_view scope = buffer_type(alloc.buffer).scope;
    bool of_thread = scope.starts_with("local"), of_block = scope.starts_with("shared") || scope == "warp";
    return of_thread || (of_block && loop->thread.starts_with("blockIdx"));
  }
};

}  // namespace

Stmt split_at_barriers(const Stmt& body) {
  Stmt placed = MemorySinker().stmt(body);
  return holds_barrier(placed) ? BarrierFinder().stmt(placed) : placed;
}

}  // namespace relaxc
