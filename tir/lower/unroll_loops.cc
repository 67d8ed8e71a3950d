// The unroll pragmas of TVM's schedules, by the counts of its UnrollLoop: a loop is unrolled when the stores of its
// copies are at most pragma_auto_unroll_max_step, and no loop inside of it stays.
#include <limits>
#include <utility>

#include "support/checked_math.h"
#include "support/temporarily.h"
#include "tir/analysis/annotations.h"
#include "tir/lower/loop_accesses.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/target.h"

namespace relaxc {

namespace {

// The most registers that the copies of a loop store. In longer straight code LLVM's scheduler loads operands so early
// that it spills them: 144 multiply-adds into 16 registers stay in order, of 336 and more a third are loads and stores
// of the stack, and a convolution takes up to 1.8 of its time.
constexpr int64_t kMostRegisters = 192;

struct UnrollPragmas {
  int64_t max_step = 0;
  bool is_explicit = true;
};

int64_t times(int64_t a, int64_t b) { return checked_mul(a, b).value_or(std::numeric_limits<int64_t>::max()); }
int64_t sum(int64_t a, int64_t b) { return checked_add(a, b).value_or(std::numeric_limits<int64_t>::max()); }

// Returns whether the copies of a loop's body load more than `most` elements, or vectors, that no iteration of the loop
// around stores or moves: LLVM loads them before that loop.
bool many_loads_stay(const For& loop, const For& around, int64_t most) {
  NodeSet stored;
  walk(
      around.body, [&](const BufferStore& store) { stored.insert(store.buffer.get()); },
      [&](const AllocBuffer& alloc) { stored.insert(alloc.buffer.get()); });
  std::vector<For> copied{loop};
  walk(loop.body, [&](const For& inner) {
    if (inner.kind != ForKind::kVectorized) copied.push_back(inner);
  });
  std::vector<BufferLoad> seen;
  int64_t left = most;
  walk(loop.body, [&](const BufferLoad& load) {
    const Expr& index = load.indices[0];
    bool may_move = left < 0 || stored.contains(load.buffer.get()) || uses_var(index, around.var);
    auto is_it = [&](const BufferLoad& one) {
      return same_node(one.buffer, load.buffer) && structural_equal(one.indices[0], index);
    };
    if (may_move || std::ranges::any_of(seen, is_it)) return;
    seen.push_back(load);
    int64_t copies = 1;
    for (const For& one : copied) copies = times(copies, uses_var(index, one.var) ? as_int(one.extent).value_or(1) : 1);
    left -= std::max<int64_t>(copies, 1);
  });
  return left < 0;
}

class Unroller final : public Rewriter {
 public:
  explicit Unroller(const Target& target) : target_(target) {}

  Stmt stmt(const Stmt& s) override {
    if (s.is<Seq>()) return map_stmts(s, [&](const Stmt& inner) { return with_own_count(inner); });
    if (s.is<BufferStore>() || s.is<Evaluate>()) {
      ++count_.steps;
      ++count_.registers;
    }
    if (const AttrStmt* attr = s.as<AttrStmt>()) {
      Attrs pragma;
      if (auto value = as_int(attr->value)) pragma.set(attr->key, *value);
      Temporarily pragmas(pragmas_, inside(pragma));
      return Rewriter::stmt(s);
    }
    const For* loop = s.as<For>();
    if (!loop) return Rewriter::stmt(s);
    Temporarily pragmas(pragmas_, inside(loop->annotations));
    const For* around = around_;
    Stmt rewritten = [&] {
      Temporarily inside(around_, loop);
      return Rewriter::stmt(s);
    }();
    if (loop->kind == ForKind::kVectorized) {  // its stores are vectors
      count_.registers = times(count_.registers, registers_of(*loop));
      return rewritten;
    }
    constexpr int kMostNestedLoops = 8;
    std::optional<int64_t> extent = as_int(loop->extent);
    bool fits = loop->kind == ForKind::kSerial && extent && count_.serial_loops == 0 &&
                count_.unrolled_loops <= kMostNestedLoops && times(*extent, count_.steps) <= pragmas_.max_step;
    // Memory on the stack would take what registers cannot.
    fits = fits && times(*extent, count_.registers) <= kMostRegisters &&
           !(around && many_loads_stay(*rewritten.as<For>(), *around, target_.num_vector_registers));
    if (!fits && loop->kind != ForKind::kUnrolled) {
      ++count_.serial_loops;
      return rewritten;
    }
    count_.steps = times(count_.steps, extent.value_or(1));
    count_.registers = times(count_.registers, extent.value_or(1));
    ++count_.unrolled_loops;
    if (!fits) return rewritten;
    return edited<For>(rewritten, [&](For& copy) {
      copy.kind = ForKind::kUnrolled;
      if (!pragmas_.is_explicit) copy.annotations.set(annotation<"pragma_unroll_explicit">(), int64_t{0});
    });
  }

 private:
  UnrollPragmas inside(const Attrs& annotations) const {
    const char* switched = annotation<"pragma_unroll_explicit">();
    bool is_explicit = annotations.get_bool(switched, annotations.get_int(switched, pragmas_.is_explicit) != 0);
    return {annotations.get_int(annotation<"pragma_auto_unroll_max_step">(), pragmas_.max_step), is_explicit};
  }
  int64_t registers_of(const For& loop) const {
    int64_t bits = times(as_int(loop.extent).value_or(1), widest_bits(loop.body));
    return bits / target_.vector_bits + (bits % target_.vector_bits > 0);
  }
  Stmt with_own_count(const Stmt& s) {
    Count before = std::exchange(count_, {});
    Stmt result = stmt(s);
    count_ = {sum(before.steps, count_.steps), sum(before.registers, count_.registers),
              std::max(before.serial_loops, count_.serial_loops),
              std::max(before.unrolled_loops, count_.unrolled_loops)};
    return result;
  }

  struct Count {
    int64_t steps = 0;      // stores and calls, those of unrolled loops once for each copy
    int64_t registers = 0;  // that these store: a vector may take several
    int serial_loops = 0, unrolled_loops = 0;
  } count_;
  UnrollPragmas pragmas_;
  const For* around_ = nullptr;
  const Target& target_;
};

}  // namespace

// Unrolls the loops that pragma_auto_unroll_max_step, on them or on a loop around them, leaves few enough steps. Under
// pragma_unroll_explicit = 0, which the loops then keep, that is a hint to LLVM. A loop stays whose copies load more
// than registers hold of what does not change in the loop around it.
PrimFuncRef unroll_loops(const PrimFuncRef& function, const Target& target) {
  bool wanted = any_node(function->body, [](const NodeRef& node) {
    const For* loop = node.as<For>();
    return (loop && loop->annotations.find(annotation<"pragma_auto_unroll_max_step">())) || node.is<AttrStmt>();
  });
  return wanted ? with_body(function, Unroller(target).stmt(function->body)) : function;
}

}  // namespace relaxc
