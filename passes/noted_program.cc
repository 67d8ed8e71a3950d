#include "passes/noted_program.h"

#include <algorithm>
#include <functional>

#include "ops/common.h"
#include "passes/compose.h"
#include "support/lists.h"
#include "tir/analysis/nests.h"
#include "tir/compute.h"
#include "tir/program.h"

namespace relaxc {

namespace {

constexpr int64_t kFewestElements = 8;  // of the tensor, for each one that is noted
constexpr int64_t kGuessedDim = 64;     // for a dim that only the run knows

class ExtremesNoter {
 public:
  ExtremesNoter(const PrimFuncRef& program, const Buffer& result) : program_(program), result_(result) {}

  std::optional<NotedProgram> run() {
    std::vector<Buffer> buffers;
    const Stmt body = take_root(program_->body, buffers);
    if (!find_stores(body)) return std::nullopt;
    std::vector<Stmt> stmts = noted(body);
    const std::vector<Expr> shape = {int_imm(2), simplify(slots_), int_imm(lanes_)};
    if (num_noted_ != num_stores_ || may_overwrite_ || !is_worth_it(shape)) return std::nullopt;
    const Buffer notes = make_buffer("noted", kFloat32, shape);
    VarMap placeholder = {{notes_.get(), notes}};
    if (has_branches_) stmts.insert(stmts.begin(), neutral_notes(shape[1]));
    buffers.insert(buffers.end(), local_.begin(), local_.end());
    PrimFunc copy = *program_;
    copy.body = substitute(root_block(std::move(buffers), seq(std::move(stmts))), placeholder);
    copy.params.insert(std::ranges::find_if(copy.params, [&](const VarRef& p) { return same_node(p, result_); }) + 1,
                       notes);
    return NotedProgram{make_prim_func(std::move(copy), program_.span()), shape};
  }

 private:
  struct Slot {
    Expr number;             // in all notes
    Expr local;              // in the buffers of this nest
    Buffer least, greatest;  // of [slots of the nest, lanes]
  };

  // Counts the stores of the result, and the lanes of their vectors. Returns whether the program only stores it.
  bool find_stores(const Stmt& body) {
    bool is_only_stored = true;
    walk(
        body, [&](const BufferLoad& load) { is_only_stored = is_only_stored && !same_node(load.buffer, result_); },
        [&](const Block& block) {
          auto is_window = [&](const MatchBuffer& window) { return same_node(window.source.buffer, result_); };
          is_only_stored = is_only_stored && std::ranges::none_of(block.match_buffers, is_window);
        },
        [&](const BufferStore& store) { num_stores_ += same_node(store.buffer, result_); },
        [&](const For& loop) {
          if (stored_in(loop)) lanes_ = std::max(lanes_, *as_int(loop.extent));
        });
    return is_only_stored && num_stores_ > 0 && lanes_ > 0;
  }
  // Returns the block that stores elements of the result side by side as the body of the vectorized loop; null for
  // other loops.
  const Block* stored_in(const For& loop) const {
    const Block* block = loop.kind == ForKind::kVectorized ? loop.body.as<Block>() : nullptr;
    const BufferStore* store = block ? block->body.as<BufferStore>() : nullptr;
    auto holds_load = [](const Expr& index) { return holds<BufferLoad>(index); };
    const bool is_plain = store && same_node(store->buffer, result_) && !store->predicate && !block->init &&
                          is_element(store->indices) && !std::ranges::any_of(store->indices, holds_load) &&
                          axes_of(*block, IterKind::kReduce).empty();
    return is_plain && is_int(loop.min, 0) && as_int(loop.extent) && !loop.step ? block : nullptr;
  }

  // Returns the statements with notes in each nest that stores the result.
  std::vector<Stmt> noted(const Stmt& body) {
    std::vector<Stmt> stmts;
    size_t num_nests = 0;
    for (const Stmt& stmt : statements_of(body)) {
      // A second nest may overwrite elements that the first one stored and noted.
      const bool is_used = uses_var(stmt, result_);
      if (is_used && ++num_nests > 1) may_overwrite_ = true;
      if (!is_used) {
        stmts.push_back(stmt);
      } else if (stmt.is<IfThenElse>()) {
        has_branches_ = true;
        stmts.push_back(edited<IfThenElse>(stmt, [&](IfThenElse& branch) {
          branch.then_body = seq(noted(branch.then_body));
          if (branch.else_body) branch.else_body = seq(noted(*branch.else_body));
        }));
      } else if (const For* loop = stmt.as<For>()) {
        const std::vector<Stmt> nest = noted_nest(stmt, *loop);
        stmts.insert(stmts.end(), nest.begin(), nest.end());
      } else {
        stmts.push_back(stmt);
      }
    }
    return stmts;
  }
  std::vector<Stmt> noted_nest(const Stmt& stmt, const For& loop) {
    const bool is_shared = loop.kind == ForKind::kParallel && is_int(loop.min, 0) && !loop.step;
    const Expr slots = is_shared ? cast_to(loop.extent, kInt64) : int_imm(1);
    const Expr local = is_shared ? cast_to(loop.var, kInt64) : int_imm(0);
    auto make_local = [&](const char* name) {
      return local_.emplace_back(make_buffer(name, kFloat32, {slots, int_imm(lanes_)}, "local"));
    };
    const Slot slot{slots_ + local, local, make_local("least"), make_local("greatest")};
    slots_ = slots_ + slots;
    const Stmt begin = begin_of(slot), end = end_of(slot);
    if (!is_shared) return {begin, noted_stores(stmt, slot), end};
    return {edited<For>(stmt, [&](For& copy) { copy.body = seq({begin, noted_stores(copy.body, slot), end}); })};
  }

  // Returns `for l in T.vectorized(lanes)` over a block with the axes of the places, then the lane.
  Stmt in_lanes(const char* name, const std::vector<Expr>& places, const std::vector<Expr>& extents,
                const std::function<std::vector<Stmt>(const std::vector<Expr>& at)>& stores) const {
    const VarRef lane = make_var("l", prim_type(kInt64));
    Block block{.name = name, .body = no_op()};
    std::vector<Expr> at;
    auto add_axis = [&](const char* axis, const Expr& extent, const Expr& value) {
      const VarRef var = make_var(axis, prim_type(kInt64));
      block.iter_vars.push_back({var, whole_range(extent), IterKind::kSpatial, value});
      at.push_back(var);
    };
    for (size_t i = 0; i < places.size(); ++i) add_axis("v_p", extents[i], places[i]);
    add_axis("v_l", int_imm(lanes_), lane);
    block.body = seq(stores(at));
    walk(
        block.body, [&](const BufferStore& s) { block.writes.push_back(region_at(s.buffer, s.indices)); },
        [&](const BufferLoad& l) { block.reads.push_back(region_at(l.buffer, l.indices)); });
    return loop(lane, int_imm(lanes_), make(std::move(block)), ForKind::kVectorized);
  }
  static BufferRegion region_at(const Buffer& buffer, const std::vector<Expr>& indices) {
    return {buffer, map_each(indices, [](const Expr& index) { return Range{index, int_imm(1)}; })};
  }

  Stmt begin_of(const Slot& slot) const {
    return in_lanes(
        "extremes_init", {slot.local}, {buffer_type(slot.least).shape[0]}, [&](const std::vector<Expr>& at) {
          return std::vector{store(slot.least, highest(kFloat32), at), store(slot.greatest, lowest(kFloat32), at)};
        });
  }
  Stmt end_of(const Slot& slot) const {
    return in_lanes("extremes", {slot.local}, {buffer_type(slot.least).shape[0]}, [&](const std::vector<Expr>& at) {
      const Expr number = substitute(slot.number, slot.local.is<Var>() ? VarMap{{slot.local.get(), at[0]}} : VarMap{});
      return std::vector{store(notes_, load(slot.least, at), {int_imm(0), number, at[1]}),
                         store(notes_, load(slot.greatest, at), {int_imm(1), number, at[1]})};
    });
  }
  // Fills all notes, of which a branch fills its own.
  Stmt neutral_notes(const Expr& slots) const {
    const VarRef s = make_var("s", prim_type(kInt64));
    return loop(s, slots, in_lanes("extremes_init", {s}, {slots}, [&](const std::vector<Expr>& at) {
                  return std::vector{store(notes_, highest(kFloat32), followed_by({int_imm(0)}, at)),
                                     store(notes_, lowest(kFloat32), followed_by({int_imm(1)}, at))};
                }));
  }

  // Returns the statement with each value also noted that it stores in the result.
  Stmt noted_stores(const Stmt& stmt, const Slot& slot) {
    size_t num_blocks = 0;
    return rewrite(stmt, [&](const Ref<For>& loop) -> std::optional<Stmt> {
      const Block* block = stored_in(*loop);
      if (!block) return std::nullopt;
      ++num_noted_;
      if (++num_blocks > 1) may_overwrite_ = true;
      return edited<For>(loop, [&](For& copy) { copy.body = noted_block(*block, *loop, slot, copy.body.span()); });
    });
  }
  static Stmt noted_block(const Block& given, const For& lanes, const Slot& slot, const Span& span) {
    Block block = given;
    const VarRef place = make_var("v_p", prim_type(kInt64)), lane = make_var("v_l", prim_type(kInt64));
    block.iter_vars.push_back({place, whole_range(buffer_type(slot.least).shape[0]), IterKind::kOpaque, slot.local});
    block.iter_vars.push_back(
        {lane, whole_range(cast_to(lanes.extent, kInt64)), IterKind::kOpaque, cast_to(lanes.var, kInt64)});
    const std::vector<Expr> at = {place, lane};
    const BufferStore& stored = *given.body.as<BufferStore>();
    const VarRef value = make_var("value", stored.value.type());
    block.body = seq({make(Bind{value, stored.value}),
                      edited<BufferStore>(given.body, [&](BufferStore& copy) { copy.value = value; }),
                      store(slot.least, combine_min(load(slot.least, at), value), at),
                      store(slot.greatest, combine_max(load(slot.greatest, at), value), at)});
    for (const Buffer& noted : {slot.least, slot.greatest}) {
      block.reads.push_back(region_at(noted, at));
      block.writes.push_back(region_at(noted, at));
    }
    return make(std::move(block), span);
  }

  // Returns whether there are far fewer notes than elements, with a guess for dims that only the run knows.
  bool is_worth_it(const std::vector<Expr>& notes) const {
    VarMap guesses;
    for (const VarRef& var : free_vars(program_)) guesses.emplace(var.get(), int_imm(kGuessedDim, dtype_of(var)));
    for (const VarRef& var : symbolic_dims(program_)) guesses.emplace(var.get(), int_imm(kGuessedDim, dtype_of(var)));
    auto count = [&](const std::vector<Expr>& dims) {
      Expr product = int_imm(1);
      for (const Expr& dim : dims) product = product * cast_to(dim, kInt64);
      return as_int(simplify(substitute(product, guesses)));
    };
    const std::optional<int64_t> elements = count(buffer_type(result_).shape), noted = count(notes);
    return elements && noted && *noted <= *elements / kFewestElements;
  }

  const PrimFuncRef program_;
  const Buffer result_;
  const Buffer notes_ =
      make_buffer("noted", kFloat32, {int_imm(2), int_imm(1), int_imm(1)});  // until slots are counted
  size_t num_stores_ = 0, num_noted_ = 0;
  int64_t lanes_ = 0;
  Expr slots_ = int_imm(0);
  bool has_branches_ = false;
  bool may_overwrite_ = false;  // a store what another one has stored
  std::vector<Buffer> local_;
};

}  // namespace

std::optional<NotedProgram> with_noted_extremes(const PrimFuncRef& program, const Buffer& result) {
  return ExtremesNoter(program, result).run();
}

}  // namespace relaxc
