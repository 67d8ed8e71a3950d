#include "tir/primitives/rolling_buffer.h"

#include <algorithm>

#include "ir/text/printer.h"
#include "tir/analysis/conditions.h"
#include "tir/edit/accesses.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// The window of the buffer that an iteration makes. It slides along one dim with one of the loops.
struct Slide {
  TreeNode* loop;
  size_t dim, axis;  // of the buffer; of the block
  Expr begin, extent;
  int64_t step;
};

class SlideFinder {
 public:
  // `shared`: the loops around the block and its consumers, outermost first.
  SlideFinder(TreeNode* block, const BufferRegion& write, const Nodes& shared)
      : block_(block),
        write_(write),
        shared_(shared),
        inner_(loops_above(block, shared.back())),
        facts_(block->tree->facts) {}

  // Returns at most one slide per loop, outermost first. If there is none, `why` says what hinders the last one.
  std::vector<Slide> find(std::string& why) const {
    std::vector<Slide> result;
    for (TreeNode* loop : shared_) {
      for (size_t dim = 0; dim < write_.ranges.size(); ++dim) {
        if (auto slide = along(loop, dim, why)) {
          result.push_back(*slide);
          break;
        }
      }
    }
    return result;
  }

 private:
  std::optional<Slide> along(TreeNode* loop, size_t dim, std::string& why) const {
    const std::vector<IterVar>& axes = block_->axes();
    auto axis = std::ranges::find_if(axes, [&](const IterVar& a) { return same_node(a.var, write_.ranges[dim].min); });
    const std::string &name = loop->name(), &buffer = write_.buffer->name;
    if (axis == axes.end() || !uses_var(axis->value, loop->var())) return std::nullopt;
    auto no = [&](std::string text) {
      why = std::move(text);
      return std::nullopt;
    };
    if (loop->loop->kind != ForKind::kSerial && loop->loop->kind != ForKind::kUnrolled)
      return no(message("the iterations of loop '{}' do not come one after the other", name));
    // The window is [begin, begin + extent) while the block's own loops run, in the axis' domain or not.
    auto window = bounds_over(axis->value, running(inner_), facts_);
    if (!window)
      return no(message("the rows of '{}' that an iteration of loop '{}' makes are not known", buffer, name));
    Expr extent = facts_.simplify(window->max - window->min + 1);
    auto step = coefficient(window->min, loop->var(), facts_);
    bool slides = step && *step > 0 && !mentions_any(extent, shared_);
    Expr begin_less = step ? facts_.simplify(window->min - loop->var() * *step) : window->min;
    slides = slides && !uses_var(begin_less, loop->var());
    if (!slides) return no(message("the window in dim {} of '{}' does not slide along loop '{}'", dim, buffer, name));
    if (!facts_.can_prove(extent > int_imm(*step, dtype_of(extent))))
      return no(message("iterations of loop '{}' make parts of '{}' that do not overlap: steps of {}, {} rows", name,
                        buffer, *step, print_plain(extent)));
    // Nothing else may move the window until the loop comes back to the same rows.
    Nodes within = loops_above(block_, loop);
    if (mentions_any(begin_less, within))
      return no(message("loops inside of loop '{}' also move in dim {} of '{}'", name, dim, buffer));
    for (const IterVar& other : axes) {
      if (&other != &*axis && uses_var(other.value, loop->var()))
        return no(message("loop '{}' drives axis '{}', too", name, other.var));
    }
    for (const TreeNode* other : within) {
      if (uses_var(other->loop->extent, loop->var()) || uses_var(other->loop->min, loop->var()))
        return no(message("the range of loop '{}' depends on loop '{}'", other, name));
    }
    // Conditions must leave out the same rows in each iteration.
    for (const Expr& condition : conjuncts(block_->block->predicate)) {
      bool cuts_window = std::ranges::any_of(inner_, [&](const TreeNode* inner) {
        return uses_var(condition, inner->var()) && uses_var(axis->value, inner->var());
      });
      if (cuts_window && !uses_var(condition, loop->var()))
        return no(message("a condition leaves out rows that loops inside of '{}' seem to make", name));
      if (!uses_var(condition, loop->var())) continue;
      auto gap = slack(condition);
      auto factor = gap ? coefficient(*gap, loop->var(), facts_) : std::nullopt;
      bool about_row = factor && *factor % *step == 0;
      if (about_row) {
        Expr rest = facts_.simplify(*gap - axis->value * (*factor / *step));
        about_row = !uses_var(rest, loop->var()) && !mentions_any(rest, inner_);
      }
      if (!about_row)
        return no(message("a condition of the block says more about loop '{}' than which rows there are", name));
    }
    return Slide{loop, dim, static_cast<size_t>(axis - axes.begin()), window->min, extent, *step};
  }

  TreeNode* block_;
  const BufferRegion& write_;
  const Nodes& shared_;
  const Nodes inner_;
  const Analyzer& facts_;
};

// Returns the loops around the block and its readers, outermost first. Refuses when there are none, and loops whose
// iterations would not write the ring one after the other.
Nodes shared_loops(Step& step, TreeNode* block, const Buffer& buffer, const Nodes& users) {
  TreeNode* inner = common_ancestor({block, common_ancestor(users)});
  if (!inner->is_loop())
    step.refuse({block}, "block '{}' and the readers of '{}' share no loop (compute_at makes one)", block, buffer);
  for (TreeNode* user : users) {
    if (!precedes(block, user)) step.refuse({user, block}, "block '{}' reads '{}' before", user, buffer);
  }
  Nodes shared = loops_down_to(inner);
  for (TreeNode* loop : shared) {
    if (loop->loop->kind == ForKind::kVectorized)
      step.refuse({loop, block}, "the lanes of loop '{}' run at once, in one ring", loop);
  }
  if (auto driven = find_unfinished(block, inner))
    step.refuse({block}, "axis '{}' moves with a loop that readers of '{}' share: results are not final",
                driven->axis->var, buffer);
  return shared;
}

// Returns the blocks that read the buffer. Refuses a buffer that is not memory of the scope or is used in other ways.
Nodes readers_of_ring(Step& step, TreeNode* block, const Buffer& buffer) {
  TreeNode* scope = scope_of(block);
  if (allocating_block(*block->tree, buffer) != scope)
    step.refuse({block}, "'{}' is not memory of the scope: it is seen outside", buffer);
  step.require(other_uses(scope, buffer), block);
  Nodes users = readers(scope, buffer);
  std::erase(users, block);
  if (users.empty()) step.refuse({block}, "nothing reads '{}'", buffer);
  return users;
}

// Returns the windows that slide; the first one becomes the ring.
std::vector<Slide> find_slides(Step& step, TreeNode* block, const Buffer& buffer, const Nodes& shared,
                               const Nodes& users) {
  TreeNode* inner = shared.back();
  std::string why = message("no index of '{}' is an axis that moves with a shared loop", buffer);
  std::vector<Slide> slides = SlideFinder(block, *write_of(block, buffer), shared).find(why);
  if (slides.empty()) step.refuse({block, inner}, why);
  if (!written_at({block}, buffer, inner))
    step.refuse({block, inner}, "cannot prove that an iteration of loop '{}' makes a box of '{}'", inner, buffer);
  auto read = region_at(users, buffer, AccessKind::kRead, inner);
  Range window{slides[0].begin, slides[0].extent};
  if (!covers(window, (*read)[slides[0].dim], block->tree->facts))
    step.refuse({block, inner}, "cannot prove that an iteration reads only rows of '{}' that it computes", buffer);
  return slides;
}

// Makes the buffer as large as the window. Later rows take the places of the first ones.
void fold_buffer(TreeNode* block, const Buffer& buffer, const Slide& ring) {
  BufferType type = buffer_type(buffer);
  type.shape[ring.dim] = cast_to(ring.extent, dtype_of(type.shape[ring.dim]));
  Buffer small = with_buffer_type(buffer, type);
  auto around = [&](std::vector<Expr> indices) {
    Expr& index = indices[ring.dim];
    index = floor_mod(index, cast_to(ring.extent, dtype_of(index)));
    return indices;
  };
  rewrite_accesses(scope_of(block), buffer,
                   {[&](const BufferLoad& l) { return load(small, around(l.indices)); },
                    [&](const BufferStore& s) { return store(small, s.value, around(s.indices)); }});
  replace_definition(*block->tree, buffer, small);
}

// Lets the block make all rows of the window in the loop's first iteration, and only new ones later.
void make_new_rows_only(TreeNode* block, const Slide& slide) {
  const For& loop = *slide.loop->loop;
  const Expr& row = block->axes()[slide.axis].value;
  Expr overlap = slide.extent - int_imm(slide.step, dtype_of(slide.extent));
  Expr is_new = block->tree->facts.simplify(row - slide.begin >= cast_to(overlap, dtype_of(row)));
  restrict_block(block, equal(loop.var, loop.min) || is_new);
}

}  // namespace

// The outermost window that slides is the ring. Along the others, too, only new rows are made. An iteration finds the
// rows of the one before at the same place modulo the window's size.
void RollingBuffer::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  step.require_all(block, not_movable, not_complete_or_reduction);
  const Buffer buffer = step.accessed(block, write_buffer_index, AccessKind::kWrite);
  Nodes users = readers_of_ring(step, block, buffer);
  Nodes shared = shared_loops(step, block, buffer, users);
  std::vector<Slide> slides = find_slides(step, block, buffer, shared, users);
  fold_buffer(block, buffer, slides[0]);
  for (const Slide& slide : slides) make_new_rows_only(block, slide);
  block->partial = block->carried = true;
  for (TreeNode* user : users) user->carried = true;
  refresh_regions_above(block);
}

}  // namespace relaxc
