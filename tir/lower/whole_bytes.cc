// Several packed elements (int4 and the like) share a byte, and a store of one of them reads the byte and writes it
// back. So no two threads may store in one byte.
#include "ir/visit.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

class WholeBytes final : public Rewriter {
 public:
  explicit WholeBytes(Analyzer facts) : facts_(std::move(facts)) {}

  Stmt stmt(const Stmt& s) override {
    const For* loop = s.as<For>();
    if (!loop) return Rewriter::stmt(s);
    facts_.bind(loop->var, loop->min, loop->extent);
    if (loop->kind != ForKind::kParallel || keeps_bytes_apart(*loop)) return Rewriter::stmt(s);
    For serial = *loop;
    serial.kind = ForKind::kSerial;
    return Rewriter::stmt(make(std::move(serial), s.span()));
  }

 private:
  // Iteration i stores at positions within [i * step + first, i * step + last].
  struct Range {
    int64_t step, first, last;
  };

  bool keeps_bytes_apart(const For& loop) {
    std::unordered_set<const NodeHeader*> own;
    Analyzer facts = facts_;
    walk(
        loop.body, [&](const AllocBuffer& alloc) { own.insert(alloc.buffer.get()); },
        [&](const For& inner) { facts.bind(inner.var, inner.min, inner.extent); });
    std::unordered_map<const NodeHeader*, Range> ranges;
    bool result = true;
    walk(loop.body, [&](const BufferStore& store) {
      DType dtype = buffer_type(store.buffer).dtype;
      if (!dtype.is_packed() || own.contains(store.buffer.get()) || !result) return;
      std::optional<Range> range = range_of(store, loop.var, facts);
      if (range) {
        Range& all = ranges.emplace(store.buffer.get(), *range).first->second;
        all = {all.step, std::min(all.first, range->first), std::max(all.last, range->last)};
        result = all.step == range->step && all.last < all.first / dtype.per_byte() * dtype.per_byte() + all.step;
      } else {
        result = false;
      }
    });
    return result;
  }

  static std::optional<Range> range_of(const BufferStore& store, const VarRef& var, const Analyzer& facts) {
    int64_t per_byte = buffer_type(store.buffer).dtype.per_byte();
    if (store.indices.size() != 1 || dtype_of(store.indices[0]).lanes != 1) return std::nullopt;
    const Expr& position = store.indices[0];
    Expr zero = int_imm(0, dtype_of(var));
    auto step = as_int(facts.simplify(substitute(position, {{var.get(), var + int_imm(1, dtype_of(var))}}) - position));
    if (!step || *step <= 0 || *step % per_byte != 0) return std::nullopt;
    Interval rest = facts.bounds(facts.simplify(substitute(position, {{var.get(), zero}})));
    if (rest.min < 0 || rest.max == Interval().max) return std::nullopt;
    return Range{*step, rest.min, rest.max};
  }

  Analyzer facts_;
};

}  // namespace

// Runs parallel loops over packed elements one iteration after another where two iterations may store in one byte.
PrimFuncRef whole_bytes(const PrimFuncRef& function) {
  bool has_packed = false;
  walk(function->body,
       [&](const BufferStore& store) { has_packed = has_packed || buffer_type(store.buffer).dtype.is_packed(); });
  if (!has_packed) return function;
  Analyzer facts;
  for (const VarRef& param : function->params) facts.assume_dims(param.type());
  PrimFunc copy = *function;
  copy.body = WholeBytes(std::move(facts)).stmt(function->body);
  return make_prim_func(std::move(copy), function.span());
}

}  // namespace relaxc
