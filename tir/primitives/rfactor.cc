#include "tir/primitives/rfactor.h"

#include <algorithm>

#include "tir/analysis/combiner.h"
#include "tir/analysis/nests.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Returns the combiner of a reduction whose values may be combined in groups.
Combiner regrouping_combiner(Step& step, TreeNode* block) {
  const Block& content = *block->block;
  std::optional<Combiner> combiner = find_combiner(content);
  if (!combiner)
    step.refuse({block},
                "block '{}' is neither a sum, product, max or min of values for each buffer that it writes, nor "
                "chooses between such values by comparing them",
                content.name);
  if (!combiner->regroups)
    step.refuse({block},
                "the choice of block '{}' depends on how its iterations are grouped (of equal elements the last "
                "counts, or the like)",
                content.name);
  size_t rank = combiner->parts.front().store->indices.size();
  for (const Combiner::Part& part : combiner->parts) {
    if (!is_element(part.store->indices))
      step.refuse({block}, "block '{}' reduces vectors of '{}'; write their lanes as a loop", content.name,
                  part.store->buffer);
    if (part.store->indices.size() != rank)
      step.refuse({block}, "the buffers that block '{}' writes differ in rank", content.name);
  }
  return *combiner;
}

// Divides a reduction at one of its loops: a block before it makes partial results, one for each iteration of the loop.
class FactoredReduction {
 public:
  FactoredReduction(Step& step, TreeNode* loop, TreeNode* block, Combiner combiner, int64_t factor_axis)
      : step_(step),
        tree_(*loop->tree),
        loop_(loop),
        block_(block),
        combiner_(std::move(combiner)),
        factor_axis_(factor_axis),
        loops_(loops_above(block)) {
    find_shared_loops();
    find_axes();
    divide_conditions();
    find_elements();
  }

  // Returns the block of the partial results. It takes the place of the other, which comes behind it.
  TreeNode* apply() {
    TreeNode* partial = partial_block();
    TreeNode* scope = scope_of(block_);
    tree_.replace(block_, partial);
    TreeNode* nest = nest_of_partial_results();
    tree_.insert(top_->parent, top_->position() + 1, nest);
    for (const Buffer& buffer : buffers_) scope->block->alloc_buffers.push_back(buffer);
    refresh_regions_above(block_);
    return partial;
  }

 private:
  bool is_spatial(const TreeNode* at) const { return contains(spatial_loops_, at); }

  void find_shared_loops() {
    step_.require_independent(loops_);
    bool drives_reduce = false, reduces = false, is_outermost = false;
    for (TreeNode* at : loops_) {
      bool reduce = drives(at, block_->axes()).reduce;
      if (at == loop_) drives_reduce = reduce;
      if (at == loop_) is_outermost = !reduces;
      reduces = reduces || (reduce && !is_int(at->loop->extent, 1));
      if (!top_ && reduce) top_ = at;
      if (top_ && at->children.size() != 1)
        step_.refuse({at, block_}, "loop '{}' holds more than block '{}'", at, block_);
      if (!reduce) spatial_loops_.push_back(at);
    }
    if (!drives_reduce) step_.refuse({loop_, block_}, "loop '{}' drives no reduce axis of block '{}'", loop_, block_);
    if (!is_outermost && !combiner_.commutes)
      step_.refuse({loop_, block_},
                   "block '{}' keeps the first of equal elements: of its reduce loops only the outermost can be "
                   "factored, '{}' is not",
                   block_, loop_);
    top_ = top_of_exclusive_loops(top_);
  }

  // Returns the loops that drive the reduce axes that this loop drives, and others that drive axes together with them.
  Nodes tied_loops() const {
    Nodes tied = {loop_};
    for (size_t known = 0; known != tied.size();) {
      known = tied.size();
      for (const IterVar& axis : block_->axes()) {
        if (axis.kind != IterKind::kReduce || !mentions_any(axis.value, tied)) continue;
        for (TreeNode* at : loops_) {
          if (uses_var(axis.value, at->var()) && !contains(tied, at)) tied.push_back(at);
        }
      }
    }
    return tied;
  }

  // Makes the loops that drive the same reduce axes separate axes, and this loop a spatial axis. Of a loop that was
  // fused and split again, an outer axis may depend on the outer part alone, and is still none of its own beside it.
  void find_axes() {
    const Nodes tied = tied_loops();
    DType dtype = dtype_of(loop_->var());
    factor_ = make_var("v" + loop_->name(), prim_type(dtype));
    axes_.push_back({*factor_, {int_imm(0, dtype), loop_->loop->extent}, IterKind::kSpatial, loop_->var()});
    loop_axes_.emplace(loop_->var().get(), *factor_);
    std::vector<IterVar> reduce_axes;
    for (const IterVar& axis : block_->axes()) {
      if (!mentions_any(axis.value, axis.kind == IterKind::kReduce ? tied : Nodes{loop_})) {
        IterVar again = fresh_axis(axis, {}, positions_);
        (axis.kind == IterKind::kSpatial ? axes_ : reduce_axes).push_back(again);
        continue;
      }
      for (TreeNode* at : loops_) {
        if (!uses_var(axis.value, at->var()) || loop_axes_.contains(at->var().get())) continue;
        VarRef fresh = make_var("v" + at->name(), at->var().type());
        loop_axes_.emplace(at->var().get(), fresh);
        reduce_axes.push_back({fresh, {at->loop->min, at->loop->extent}, IterKind::kReduce, at->var()});
      }
      positions_.emplace(axis.var.get(), substitute(axis.value, loop_axes_));
    }
    axes_.insert(axes_.end(), reduce_axes.begin(), reduce_axes.end());
  }

  // A condition on the factor's iterations would leave elements without a value, so the update takes the identity
  // there. The guard is written over the axes, which requires that all of its loops are axes.
  void divide_conditions() {
    for (const Expr& condition : conjuncts(block_->block->predicate)) {
      if (uses_var(condition, loop_->var())) {
        guards_.push_back(substitute(condition, loop_axes_));
        if (mentions_any(guards_.back(), loops_))
          step_.refuse({block_}, "a condition of the block ties the loop to loops that drive other axes");
        continue;
      }
      bool reduces = std::ranges::any_of(
          loops_, [&](const TreeNode* at) { return !is_spatial(at) && uses_var(condition, at->var()); });
      conditions_.push_back(condition);
      if (!reduces) shared_conditions_.push_back(condition);
      leaves_out_ = leaves_out_ || reduces;
    }
  }

  std::vector<Expr> with_factor(std::vector<Expr> list, const Expr& e) const {
    list.insert(list.begin() + factor_axis_, e);
    return list;
  }

  void find_elements() {
    for (const Combiner::Part& part : combiner_.parts) {
      const Buffer& whole = part.store->buffer;
      const BufferType& type = buffer_type(whole);
      const Expr& extent = loop_->loop->extent;
      Expr dim = type.shape.empty() ? extent : cast_to(extent, dtype_of(type.shape[0]));
      buffers_.push_back(make_buffer(whole->name + "_rf", type.dtype, with_factor(type.shape, dim), type.scope));
      std::vector<Expr> at = substitute(part.store->indices, positions_);
      partial_elements_.push_back(cast<BufferLoad>(load(buffers_.back(), with_factor(at, *factor_))));
      whole_elements_.push_back(cast<BufferLoad>(load(whole, part.store->indices)));
    }
  }

  TreeNode* partial_block() {
    const Block& content = *block_->block;
    // The block's own condition is the inner one: it may read memory that the others guard.
    std::vector<Expr> nested;
    if (combiner_.condition) nested.push_back(substitute(*combiner_.condition, positions_));
    if (!guards_.empty()) nested.push_back(*conjunction(guards_));
    std::vector<Expr> values;
    std::vector<Stmt> inits;
    for (size_t i = 0; i < combiner_.parts.size(); ++i) {
      const Combiner::Part& part = combiner_.parts[i];
      Expr init = part.op ? combiner_.identity(i) : part.init;
      if (structural_equal(init, part.init)) init = part.init;
      inits.push_back(store(buffers_[i], substitute(init, positions_), partial_elements_[i]->indices));
      values.push_back(substitute(part.value, positions_));
      if (!part.op) continue;
      for (const Expr& guard : nested) values[i] = if_then_else(guard, values[i], init);
    }
    Stmt body = combiner_.body(partial_elements_, values);
    if (combiner_.is_choice()) {
      for (const Expr& guard : nested) body = make(IfThenElse{guard, body, std::nullopt}, content.body.span());
    }
    TreeNode* result = leaf_block(tree_, content.name + "_rf", axes_, body, seq(inits));
    result->partial = leaves_out_;
    result->in_order = block_->in_order;
    result->block->predicate = conjunction(conditions_);
    result->block->annotations = content.annotations;
    result->span = block_->span;
    return result;
  }

  // Returns copies of the factor's loop and of the spatial loops that are not shared.
  Nodes loops_again(VarMap& renamed) {
    Nodes result;
    for (auto it = std::ranges::find(loops_, top_); it != loops_.end(); ++it) {
      if (!is_spatial(*it) && *it != loop_) continue;
      const For& old = *(*it)->loop;
      result.push_back(tree_.new_loop(old.var->name, old.extent, *it == loop_ ? ForKind::kSerial : old.kind));
      result.back()->loop->thread = old.thread;
      result.back()->loop->annotations = old.annotations;
      renamed.emplace(old.var.get(), result.back()->var());
    }
    return result;
  }

  // Gives new loops to the block itself, which now reduces the partial results.
  TreeNode* nest_of_partial_results() {
    VarMap renamed;
    Nodes again = loops_again(renamed);
    Block& content = *block_->block;
    Range domain = axes_.front().domain;
    VarRef last = make_var((*factor_)->name, factor_->type());
    tree_.facts.bind(last, domain.min, domain.extent);
    std::vector<IterVar> axes{{last, domain, IterKind::kReduce, renamed.at(loop_->var().get())}};
    for (const IterVar& axis : content.iter_vars) {
      if (axis.kind == IterKind::kSpatial)
        axes.push_back({axis.var, axis.domain, axis.kind, substitute(axis.value, renamed)});
    }
    std::vector<Expr> values;
    for (size_t i = 0; i < buffers_.size(); ++i)
      values.push_back(load(buffers_[i], with_factor(whole_elements_[i]->indices, last)));
    content.iter_vars = axes;
    content.body = combiner_.body(whole_elements_, values);
    content.annotations = {};
    content.predicate = conjunction(substitute(shared_conditions_, renamed));
    block_->affine.reset();
    refresh_regions(block_);
    return tree_.wrap(block_, again);
  }

  Step& step_;
  Tree& tree_;
  TreeNode *loop_, *block_;
  const Combiner combiner_;
  const int64_t factor_axis_;
  const Nodes loops_;  // around the block
  Nodes spatial_loops_;
  TreeNode* top_ = nullptr;  // the outermost loop that both blocks cannot share
  std::optional<VarRef> factor_;
  std::vector<IterVar> axes_;     // of the new block, the factor first
  VarMap loop_axes_, positions_;  // loops, and the block's axes, in terms of them
  std::vector<Expr> conditions_, guards_, shared_conditions_;
  bool leaves_out_ = false;  // a condition on what are axes now leaves out some of their values
  std::vector<Buffer> buffers_;
  std::vector<Ref<BufferLoad>> partial_elements_, whole_elements_;  // of one buffer after the other
};

}  // namespace

// Lets the loop's iterations reduce side by side into elements along a new dim (rfactor of Halide and TVM). A second
// block, which keeps the name, reduces those.
BlockRV Rfactor::apply(Step& step) const {
  TreeNode* loop = step.loop(this->loop);
  Nodes below = blocks_below(loop);
  if (below.size() != 1) step.refuse({loop}, "loop '{}' holds {} blocks, expected one", loop, below.size());
  TreeNode* block = below[0];
  step.require_all(block, not_reduction, not_reorderable, not_movable);
  Combiner combiner = regrouping_combiner(step, block);
  auto rank = static_cast<int64_t>(combiner.parts.front().store->indices.size());
  if (factor_axis < -rank - 1 || factor_axis > rank)
    step.refuse({block}, "factor_axis {} is not in [{}, {}]", factor_axis, -rank - 1, rank);
  int64_t axis = factor_axis < 0 ? factor_axis + rank + 1 : factor_axis;
  return step.block_result(FactoredReduction(step, loop, block, combiner, axis).apply());
}

}  // namespace relaxc
