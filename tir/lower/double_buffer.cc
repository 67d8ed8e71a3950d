// Double buffering, as in TVM's InjectDoubleBuffer: the data of the next iteration is copied before the current one
// computes, so that the loads of the copy overlap with the arithmetic.
#include "tir/analysis/annotations.h"
#include "tir/analysis/conditions.h"
#include "tir/analysis/pointers.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/program.h"

namespace relaxc {

namespace {

class DoubleBufferer final : public Rewriter {
 public:
  explicit DoubleBufferer(Analyzer facts) : facts_(std::move(facts)) {}

  Stmt stmt(const Stmt& s) override {
    if (const For* loop = s.as<For>()) facts_.bind(loop->var, loop->min, loop->extent);
    Stmt result = Rewriter::stmt(s);
    if (!result.is<For>()) return result;
    // Each round yields the allocation, the first fill and the loop, which may contain another such buffer.
    std::vector<Stmt> stmts;
    while (std::optional<Stmt> next = double_next_buffer(result)) {
      const std::vector<Stmt>& parts = next->as<Seq>()->stmts;
      stmts.insert(stmts.end(), parts.begin(), parts.end() - 1);
      result = Stmt(parts.back());
    }
    return stmts.empty() ? result : followed_by(std::move(stmts), result, s.span());
  }

 private:
  // Returns whether the statement may write to other memory than the buffer and its own allocations, as calls may.
  static bool has_other_effects(const Stmt& s, const Buffer& buffer) {
    bool found = holds<Evaluate, Assert, While>(s);
    std::unordered_set<const NodeHeader*> allowed{buffer.get()};
    walk(
        s, [&](const AllocBuffer& alloc) { allowed.insert(alloc.buffer.get()); },
        [&](const BufferStore& store) { found = found || !allowed.contains(store.buffer.get()); });
    return found;
  }

  // Builds the allocation, the first fill, and the loop with the next fill before the uses.
  std::optional<Stmt> double_next_buffer(const Stmt& s) {
    const For& loop = *s.as<For>();
    const Seq* body = loop.body.as<Seq>();
    if (!body || loop.kind != ForKind::kSerial) return std::nullopt;
    for (const Stmt& one : body->stmts) {
      const AllocBuffer* alloc = one.as<AllocBuffer>();
      if (!alloc || !alloc->annotations.get_bool(annotation<"double_buffer">(), false)) continue;
      if (auto fill = only_fill(*body, *alloc)) return doubled(s, loop, *body, *alloc, *fill);
    }
    return std::nullopt;
  }

  // Returns the position of the only statement that fills the buffer, if no other statement writes data that it reads.
  static std::optional<size_t> only_fill(const Seq& body, const AllocBuffer& alloc) {
    const BufferType& type = buffer_type(alloc.buffer);
    if (!type.strides.empty() || type.elem_offset || type.data || alloc.contents) return std::nullopt;
    std::optional<size_t> fill;
    for (size_t i = 0; i < body.stmts.size(); ++i) {
      const Stmt& s = body.stmts[i];
      bool uses = uses_var(s, alloc.buffer) && !s.is<AllocBuffer>(), fills = stores_to(s, alloc.buffer);
      if ((fills && fill) || (uses && !fills && !fill)) return std::nullopt;
      if (fills) fill = i;
    }
    if (!fill || has_other_effects(body.stmts[*fill], alloc.buffer)) return std::nullopt;
    std::unordered_set<const NodeHeader*> changed;  // by the other statements
    for (size_t i = 0; i < body.stmts.size(); ++i) {
      if (i == *fill) continue;
      if (const Bind* bind = body.stmts[i].as<Bind>()) changed.insert(bind->var.get());
      walk(body.stmts[i], [&](const BufferStore& store) { changed.insert(store.buffer.get()); });
    }
    return uses_var(body.stmts[*fill], changed) ? std::nullopt : fill;
  }

  Stmt doubled(const Stmt& s, const For& loop, const Seq& body, const AllocBuffer& alloc, size_t fill) {
    BufferType type = buffer_type(alloc.buffer);
    DType dtype = type.shape.empty() ? kInt64 : dtype_of(type.shape[0]);
    type.shape.insert(type.shape.begin(), int_imm(2, dtype));
    Buffer both = make_var(alloc.buffer->name, make(std::move(type)), alloc.buffer.span());
    auto in_slot = [&](const Stmt& stmt) {
      return map_elements(stmt, [&](const Buffer& buffer, std::vector<Expr> indices) -> std::optional<Element> {
        if (!same_node(buffer, alloc.buffer)) return std::nullopt;
        indices.insert(indices.begin(), facts_.simplify(floor_mod(loop.var - loop.min, 2)));
        return Element{both, indices};
      });
    };
    auto fill_for = [&](const Expr& iteration) {
      return simplify(instantiate(in_slot(body.stmts[fill]), {{loop.var.get(), iteration}}), facts_);
    };
    Expr one = int_imm(1, dtype_of(loop.var)), end = loop.min + loop.extent, next = loop.var + one;
    Stmt first = fill_for(loop.min);
    Expr runs = loop.extent > int_imm(0, dtype_of(loop.extent));
    if (!facts_.can_prove(runs)) first = make(IfThenElse{runs, first, std::nullopt});
    std::vector<Stmt> stmts;
    for (size_t i = 0; i < body.stmts.size(); ++i) {
      const AllocBuffer* other = body.stmts[i].as<AllocBuffer>();
      if (other && same_node(other->buffer, alloc.buffer)) continue;
      if (i == fill) {
        stmts.push_back(make(IfThenElse{facts_.simplify(next < end), fill_for(next), std::nullopt}));
      } else {
        stmts.push_back(in_slot(body.stmts[i]));
      }
    }
    Stmt rest = edited<For>(s, [&](For& copy) { copy.body = seq(std::move(stmts), loop.body.span()); });
    Attrs annotations = alloc.annotations.without(annotation<"double_buffer">());
    return seq({make(AllocBuffer{both, annotations}), first, rest}, s.span());
  }

  Analyzer facts_;
};

}  // namespace

// Doubles the buffers that blocks mark with {"double_buffer_scope": position among the writes} and that are allocated
// in a serial loop at this point: the contents for the next iteration are written before those of the current one are
// used. A buffer stays single if several statements fill it, or if the loop writes the data that it is filled from.
PrimFuncRef double_buffer(const PrimFuncRef& function) {
  if (uses_pointers(function)) return function;
  bool wanted = false;
  walk(function->body, [&](const AllocBuffer& alloc) {
    wanted = wanted || alloc.annotations.get_bool(annotation<"double_buffer">(), false);
  });
  if (!wanted) return function;
  return with_body(function, DoubleBufferer(facts_of_params(function)).stmt(function->body));
}

}  // namespace relaxc
