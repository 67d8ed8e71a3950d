// Scalar replacement of the results of a reduction (Callahan, Carr and Kennedy, 1990): a tile of them, at the same
// elements in all iterations, is read before the loop, kept in registers while it runs, and stored behind it.
#include "support/temporarily.h"
#include "tir/analysis/conditions.h"
#include "tir/lower/loop_accesses.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/target.h"

namespace relaxc {

namespace {

// Registers of the operands beside the tile of results.
constexpr int kOperandRegisters = 2;

// An access to elements that are the same in all iterations of a loop; `loops` are those inside that its index depends
// on.
struct Tile {
  Buffer buffer;
  Access access;
  bool is_set_first;  // its values before the loop do not matter
};

// Returns how many registers hold the access's elements, or 0 if they cannot be in registers.
int64_t registers_of(const Access& access, const LoopAccesses& all, const Target& target) {
  DType dtype = access.value.as<PrimType>()->dtype;
  if (!access.is_loaded || !access.is_stored || !access.is_certain || dtype.is_scalable()) return 0;
  int64_t registers = (dtype.lanes * dtype.element().bytes() * 8 + target.vector_bits - 1) / target.vector_bits;
  NodeSet others = all.defined;
  for (const Ref<For>& loop : access.loops) {
    bool is_fixed = as_int(loop->min) && (loop->kind == ForKind::kSerial || loop->kind == ForKind::kUnrolled);
    int64_t extent = as_int(loop->extent).value_or(0);
    if (!is_fixed || extent > target.num_vector_registers) return 0;
    registers *= extent;
    others.erase(loop->var.get());
  }
  return uses_var(access.index, others) || holds<BufferLoad, Call>(access.index) ? 0 : registers;
}

// Returns the allocations whose elements are all known once unrolled loops are written out: LLVM puts those into
// registers.
NodeSet registers_already(const Stmt& body) {
  NodeSet allocated, moving;
  walk(body, [&](const AllocBuffer& alloc) { allocated.insert(alloc.buffer.get()); });
  NodeSet running;
  walk(body, [&](const For& loop) {
    if (loop.kind != ForKind::kUnrolled || !as_int(loop.min)) running.insert(loop.var.get());
  });
  walk(body, [&](const Bind& bind) { running.insert(bind.var.get()); });
  auto look = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    for (const Expr& index : indices) {
      if (uses_var(index, running)) moving.insert(buffer.get());
    }
  };
  walk(
      body, [&](const BufferStore& store) { look(store.buffer, store.indices); },
      [&](const BufferLoad& load) { look(load.buffer, load.indices); });
  std::erase_if(allocated, [&](const NodeHeader* buffer) { return moving.contains(buffer); });
  return allocated;
}

class Promoter final : public Rewriter {
 public:
  Promoter(const PrimFuncRef& function, const Target& target)
      : facts_(facts_of_params(function)), target_(target), skipped_(registers_already(function->body)) {
    if (!may_alias(function)) return;
    for (const VarRef& param : function->params) skipped_.insert(param.get());
    walk(function->body, [&](const AllocBuffer& alloc) { skipped_.insert(alloc.buffer.get()); });
  }

  Stmt stmt(const Stmt& s) override {
    const For* loop = s.as<For>();
    if (!loop) return Rewriter::stmt(s);
    Temporarily facts(facts_, facts_);
    facts_.bind(loop->var, loop->min, loop->extent);
    if (loop->kind != ForKind::kSerial && loop->kind != ForKind::kUnrolled) return Rewriter::stmt(s);
    std::vector<Tile> tiles = tiles_of(*loop);
    if (tiles.empty()) return Rewriter::stmt(s);
    std::vector<Stmt> allocations, before, after;
    Stmt rest = s;
    for (const Tile& tile : tiles) rest = promoted(tile, rest, allocations, before, after);
    before.push_back(Rewriter::stmt(rest));
    before.insert(before.end(), after.begin(), after.end());
    Stmt around = seq(std::move(before), s.span());
    Expr runs = facts_.simplify(loop->extent > int_imm(0, dtype_of(loop->extent)));
    if (!is_int(runs, 1)) around = make(IfThenElse{runs, around, std::nullopt}, s.span());
    return followed_by(std::move(allocations), around, s.span());
  }

 private:
  // Returns the tiles that can be in registers while the loop runs.
  std::vector<Tile> tiles_of(const For& loop) const {
    LoopAccesses all = accesses_of(loop);
    if (!all.is_plain) return {};
    int64_t left = target_.num_vector_registers - kOperandRegisters;
    std::vector<Tile> tiles;
    for (BufferAccesses& one : all.buffers) {
      bool is_candidate = !one.is_masked && !skipped_.contains(one.buffer.get()) &&
                          !all.defined.contains(one.buffer.get()) && buffer_type(one.buffer).dtype.lanes == 1;
      if (!is_candidate) continue;
      int64_t registers = 0;
      std::vector<Tile> found;
      for (Access& access : one.each) {
        bool is_set_first = access.set_if && holds_at_first(*access.set_if, access, loop);
        std::erase_if(access.loops, [&](const Ref<For>& inner) { return !uses_var(access.index, inner->var); });
        int64_t count = registers_of(access, all, target_);
        registers += count;
        if (count > 0) found.push_back({one.buffer, access, is_set_first});
      }
      if (registers == 0 || registers > left || !are_disjoint(one.each, facts_)) continue;
      left -= registers;
      tiles.insert(tiles.end(), found.begin(), found.end());
    }
    return tiles;
  }

  // Returns whether the conditions hold in the first iterations of the loop and of those inside that do not change the
  // element.
  bool holds_at_first(const std::vector<Expr>& conditions, const Access& access, const For& loop) const {
    VarMap first{{loop.var.get(), loop.min}};
    for (const Ref<For>& inner : access.loops) {
      if (!uses_var(access.index, inner->var)) first.emplace(inner->var.get(), inner->min);
    }
    return std::ranges::all_of(conditions,
                               [&](const Expr& condition) { return facts_.can_prove(substitute(condition, first)); });
  }

  // Adds the statements around the loop to the lists, and returns the loop as it uses the registers.
  Stmt promoted(const Tile& tile, const Stmt& loop, std::vector<Stmt>& allocations, std::vector<Stmt>& before,
                std::vector<Stmt>& after) {
    const BufferType& type = buffer_type(tile.buffer);
    DType dtype = tile.access.value.as<PrimType>()->dtype, of_index = dtype_of(tile.access.index).element();
    int64_t lanes = std::max<int64_t>(dtype.lanes, 1), elements = lanes;
    Expr place = int_imm(0, of_index);
    NodeSet unrolled;
    for (const Ref<For>& inner : tile.access.loops) {
      place = place + (inner->var - inner->min) * int_imm(elements, of_index);
      elements *= *as_int(inner->extent);
      unrolled.insert(inner->var.get());
    }
    place = facts_.simplify(place);
    if (lanes > 1) place = ramp(place, int_imm(1, of_index), static_cast<int>(lanes));
    Buffer registers = make_buffer(tile.buffer->name + "_tile", type.dtype, {int_imm(elements, of_index)}, "local",
                                   tile.buffer.span());
    skipped_.insert(registers.get());
    allocations.push_back(make(AllocBuffer{registers, {}}));
    if (!tile.is_set_first) before.push_back(copied(tile, registers, place, tile.buffer, tile.access.index));
    after.push_back(copied(tile, tile.buffer, tile.access.index, registers, place));
    Stmt moved = map_elements(loop, [&](const Buffer& buffer, const std::vector<Expr>& at) -> std::optional<Element> {
      if (!same_node(buffer, tile.buffer) || !structural_equal(at[0], tile.access.index)) return std::nullopt;
      return Element{registers, {place}};
    });
    return rewrite(moved, [&](const Ref<For>& inner) -> std::optional<Stmt> {
      if (!unrolled.contains(inner->var.get()) || inner->kind == ForKind::kUnrolled) return std::nullopt;
      return edited<For>(inner, [](For& copy) { copy.kind = ForKind::kUnrolled; });
    });
  }

  static Stmt copied(const Tile& tile, const Buffer& to, const Expr& at, const Buffer& from, const Expr& index) {
    Expr value = make(BufferLoad{from, {index}, std::nullopt}, tile.access.value, tile.buffer.span());
    Stmt result = make(BufferStore{to, value, {at}, std::nullopt}, tile.buffer.span());
    for (size_t i = tile.access.loops.size(); i-- > 0;) {
      For around = *tile.access.loops[i];
      around.kind = ForKind::kUnrolled;
      around.annotations = {};
      around.body = result;
      result = make(std::move(around));
    }
    return instantiate(result, {});
  }

  Analyzer facts_;
  const Target& target_;
  NodeSet skipped_;
};

}  // namespace

// Gives the elements that a serial loop combines values into, the same in all iterations, a place of constant indices
// where they fit into registers, and unrolls the loops over them. Loops whose results are in registers as written, such
// as those of the built-in rules, stay as they are.
PrimFuncRef promote_accumulators(const PrimFuncRef& function, const Target& target) {
  return with_body(function, Promoter(function, target).stmt(function->body));
}

}  // namespace relaxc
