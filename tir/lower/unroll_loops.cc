// The unroll pragmas of TVM's schedules, by the counts of its UnrollLoop: a loop is unrolled when the stores of its
// copies are at most pragma_auto_unroll_max_step, and no loop inside of it stays.
#include <utility>

#include "support/temporarily.h"
#include "tir/analysis/annotations.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"

namespace relaxc {

namespace {

struct UnrollPragmas {
  int64_t max_step = 0;
  bool is_explicit = true;
};

class Unroller final : public Rewriter {
 public:
  Stmt stmt(const Stmt& s) override {
    if (s.is<Seq>()) return map_stmts(s, [&](const Stmt& inner) { return with_own_count(inner); });
    if (s.is<BufferStore>() || s.is<Evaluate>()) ++count_.steps;
    if (const AttrStmt* attr = s.as<AttrStmt>()) {
      Attrs pragma;
      if (auto value = as_int(attr->value)) pragma.set(attr->key, *value);
      Temporarily pragmas(pragmas_, inside(pragma));
      return Rewriter::stmt(s);
    }
    const For* loop = s.as<For>();
    if (!loop) return Rewriter::stmt(s);
    Temporarily pragmas(pragmas_, inside(loop->annotations));
    Stmt rewritten = Rewriter::stmt(s);
    if (loop->kind == ForKind::kVectorized) return rewritten;  // its stores are vectors
    constexpr int kMostNestedLoops = 8;
    std::optional<int64_t> extent = as_int(loop->extent);
    bool fits = loop->kind == ForKind::kSerial && extent && count_.serial_loops == 0 &&
                count_.unrolled_loops <= kMostNestedLoops && *extent * count_.steps <= pragmas_.max_step;
    if (!fits && loop->kind != ForKind::kUnrolled) {
      ++count_.serial_loops;
      return rewritten;
    }
    count_.steps *= extent.value_or(1);
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
  Stmt with_own_count(const Stmt& s) {
    Count before = std::exchange(count_, {});
    Stmt result = stmt(s);
    count_ = {before.steps + count_.steps, std::max(before.serial_loops, count_.serial_loops),
              std::max(before.unrolled_loops, count_.unrolled_loops)};
    return result;
  }

  struct Count {
    int64_t steps = 0;  // stores and calls, those of unrolled loops once for each copy
    int serial_loops = 0, unrolled_loops = 0;
  } count_;
  UnrollPragmas pragmas_;
};

}  // namespace

// Unrolls the loops that pragma_auto_unroll_max_step, on them or on a loop around them, leaves few enough steps. Under
// pragma_unroll_explicit = 0, which the loops then keep, that is a hint to LLVM.
PrimFuncRef unroll_loops(const PrimFuncRef& function) {
  bool wanted = any_node(function->body, [](const NodeRef& node) {
    const For* loop = node.as<For>();
    return (loop && loop->annotations.find(annotation<"pragma_auto_unroll_max_step">())) || node.is<AttrStmt>();
  });
  return wanted ? with_body(function, Unroller().stmt(function->body)) : function;
}

}  // namespace relaxc
