// Buffers of one statement list whose lifetimes do not overlap take the same memory, which saves scratch memory and
// cache, as TVM's StorageRewrite does. Small buffers keep separate memory: a buffer that fits into registers or the
// first cache lines of the stack would gain nothing, and LLVM keeps an accumulator in registers more easily when it
// does not share memory.
#include <algorithm>

#include "tir/analysis/conditions.h"
#include "tir/analysis/pointers.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

constexpr int64_t kSmallBytes = 4096;

class Sharer final : public Rewriter {
 public:
  explicit Sharer(Analyzer facts) : facts_(std::move(facts)) {}

  Stmt stmt(const Stmt& s) override {
    Stmt result = Rewriter::stmt(s);
    const Seq* list = result.as<Seq>();
    return list ? shared(*list, result) : result;
  }

 private:
  struct Lifetime {
    Ref<AllocBuffer> alloc;
    size_t first, last;  // statements that use it
  };
  struct Memory {
    Buffer buffer;
    Expr size;
    size_t last;
    std::vector<size_t> tenants = {};  // indices into the lifetimes
  };

  static bool is_shareable(const AllocBuffer& alloc) {
    const BufferType& type = buffer_type(alloc.buffer);
    if (type.shape.size() != 1 || !type.strides.empty() || type.elem_offset || type.data || alloc.contents)
      return false;
    auto size = as_int(type.shape[0]);
    return !size || *size > kSmallBytes / std::max<int64_t>(type.dtype.bytes(), 1);
  }

  static std::vector<Lifetime> lifetimes_of(const Seq& list) {
    std::vector<Lifetime> lives;
    std::unordered_map<const NodeHeader*, size_t> known;
    for (size_t i = 0; i < list.stmts.size(); ++i) {
      if (auto alloc = try_cast<AllocBuffer>(list.stmts[i])) {
        if (!is_shareable(**alloc)) continue;
        known.emplace((*alloc)->buffer.get(), lives.size());
        lives.push_back({*alloc, list.stmts.size(), 0});
        continue;
      }
      walk(list.stmts[i], [&](const Ref<Var>& var) {
        auto it = known.find(var.get());
        if (it == known.end()) return;
        lives[it->second].first = std::min(lives[it->second].first, i);
        lives[it->second].last = i;
      });
    }
    std::ranges::stable_sort(lives, {}, &Lifetime::first);
    return lives;
  }

  Stmt shared(const Seq& list, const Stmt& s) const {
    std::vector<Lifetime> lives = lifetimes_of(list);
    std::vector<Memory> memories;
    for (size_t i = 0; i < lives.size(); ++i) {
      const BufferType& type = buffer_type(lives[i].alloc->buffer);
      Memory* best = nullptr;
      for (Memory& memory : memories) {
        const BufferType& held = buffer_type(memory.buffer);
        bool is_free = memory.last < lives[i].first && held.dtype == type.dtype && held.scope == type.scope;
        auto available = as_int(memory.size), needed = as_int(type.shape[0]);
        if (!is_free || !((available && needed) || facts_.can_prove(type.shape[0] <= memory.size))) continue;
        // Among memory of known size, the best one differs least from the needed size.
        auto better = [&](const Memory& other) {
          auto theirs = as_int(other.size);
          return available && needed && theirs && std::abs(*available - *needed) < std::abs(*theirs - *needed);
        };
        if (!best || better(*best)) best = &memory;
      }
      if (!best) {
        memories.push_back({lives[i].alloc->buffer, type.shape[0], lives[i].last, {i}});
        continue;
      }
      auto available = as_int(best->size), needed = as_int(type.shape[0]);
      if (available && needed && *needed > *available) best->size = type.shape[0];
      best->last = lives[i].last;
      best->tenants.push_back(i);
    }
    VarMap renamed;
    std::unordered_map<const NodeHeader*, std::optional<Stmt>> allocs;  // keyed by the original buffer
    for (const Memory& memory : memories) {
      if (memory.tenants.size() < 2) continue;
      BufferType type = buffer_type(memory.buffer);
      type.shape[0] = memory.size;
      Buffer all = make_var(memory.buffer->name, make(std::move(type)), memory.buffer.span());
      allocs.emplace(memory.buffer.get(), make(AllocBuffer{all, lives[memory.tenants[0]].alloc->annotations}));
      for (size_t tenant : memory.tenants) {
        renamed.emplace(lives[tenant].alloc->buffer.get(), all);
        allocs.try_emplace(lives[tenant].alloc->buffer.get());
      }
    }
    if (renamed.empty()) return s;
    // Memory must be allocated before its first tenant, whichever was allocated first.
    std::vector<Stmt> stmts, rest;
    for (const Stmt& one : list.stmts) {
      const AllocBuffer* alloc = one.as<AllocBuffer>();
      auto it = alloc ? allocs.find(alloc->buffer.get()) : allocs.end();
      if (it == allocs.end()) {
        rest.push_back(substitute(one, renamed));
      } else if (it->second) {
        (size_is_known_first(*it->second, list) ? stmts : rest).push_back(*it->second);
      }
    }
    stmts.insert(stmts.end(), rest.begin(), rest.end());
    return seq(std::move(stmts), s.span());
  }
  // Returns whether no statement of the list defines a variable that the size depends on.
  static bool size_is_known_first(const Stmt& alloc, const Seq& list) {
    const Expr& size = buffer_type(alloc.as<AllocBuffer>()->buffer).shape[0];
    return std::ranges::none_of(list.stmts, [&](const Stmt& one) {
      const Bind* bind = one.as<Bind>();
      return bind && uses_var(size, bind->var);
    });
  }

  Analyzer facts_;
};

}  // namespace

// Lets flat buffers of one statement list that are not alive at the same time share memory. Sizes may be symbolic.
PrimFuncRef share_storage(const PrimFuncRef& function) {
  if (uses_pointers(function)) return function;
  return with_body(function, Sharer(facts_of_params(function)).stmt(function->body));
}

}  // namespace relaxc
