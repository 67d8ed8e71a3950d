// Buffers of one statement list whose lifetimes do not overlap take the same memory, which saves scratch memory and
// cache. (Tillet et al. and TVM call it storage rewrite.) Small buffers are left alone: a buffer that fits into
// registers or the first cache lines of the stack would gain nothing, and LLVM keeps an accumulator in registers more
// easily when it does not share memory.
#include <algorithm>

#include "tir/analysis/conditions.h"
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
  struct Life {
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

  static std::vector<Life> lives_of(const Seq& list) {
    std::vector<Life> lives;
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
    std::ranges::stable_sort(lives, {}, &Life::first);
    return lives;
  }

  // Returns the memory, free before the lifetime, whose size fits best: among memory of known size it has to grow
  // least, or is larger by the least. Null: there is none.
  Memory* best_memory(std::vector<Memory>& memories, const Life& life) const {
    const BufferType& type = buffer_type(life.alloc->buffer);
    auto wants = as_int(type.shape[0]);
    Memory* best = nullptr;
    for (Memory& memory : memories) {
      const BufferType& other = buffer_type(memory.buffer);
      bool is_free = memory.last < life.first && other.dtype == type.dtype && other.scope == type.scope;
      auto has = as_int(memory.size), best_has = best ? as_int(best->size) : std::nullopt;
      if (!is_free || !((has && wants) || facts_.can_prove(type.shape[0] <= memory.size))) continue;
      bool is_better = has && wants && best_has && std::abs(*has - *wants) < std::abs(*best_has - *wants);
      if (!best || is_better) best = &memory;
    }
    return best;
  }

  Stmt shared(const Seq& list, const Stmt& s) const {
    std::vector<Life> lives = lives_of(list);
    std::vector<Memory> memories;
    for (size_t i = 0; i < lives.size(); ++i) {
      const Expr& size = buffer_type(lives[i].alloc->buffer).shape[0];
      Memory* best = best_memory(memories, lives[i]);
      if (!best) best = &memories.emplace_back(Memory{lives[i].alloc->buffer, size, 0});
      auto has = as_int(best->size), wants = as_int(size);
      if (has && wants && *wants > *has) best->size = size;
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
      for (size_t tenant : memory.tenants) {
        const NodeHeader* buffer = lives[tenant].alloc->buffer.get();
        renamed.emplace(buffer, all);
        allocs.emplace(buffer, std::nullopt);
      }
      AllocBuffer alloc = *lives[memory.tenants[0]].alloc;
      alloc.buffer = all;
      allocs.at(memory.buffer.get()) = make(std::move(alloc));
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
      return bind && mentions(size, bind->var);
    });
  }

  Analyzer facts_;
};

}  // namespace

PrimFuncRef share_storage(const PrimFuncRef& function) {
  return with_body(function, Sharer(facts_of_params(function)).stmt(function->body));
}

}  // namespace relaxc
