#include "tir/analysis/nests.h"

#include <algorithm>
#include <ranges>

#include "ir/regions.h"
#include "tir/analysis/conditions.h"
#include "tir/program.h"

namespace relaxc {

namespace {

std::optional<Ref<Block>> find_nest(const Stmt& nest) {
  std::vector<const For*> loops;
  Stmt inner = nest;
  while (const For* loop = inner.as<For>()) {
    if (loop->kind != ForKind::kSerial || !loop->annotations.empty() || !is_int(loop->min, 0)) return std::nullopt;
    loops.push_back(loop);
    inner = loop->body;
  }
  const Block* block = inner.as<Block>();
  if (!block || block->predicate || !block->alloc_buffers.empty() || !block->match_buffers.empty() ||
      block->iter_vars.size() != loops.size())
    return std::nullopt;
  auto is_axis = [&](const For* loop) {
    return std::ranges::any_of(block->iter_vars, [&](const IterVar& axis) {
      return same_node(axis.value, loop->var) && axis.kind != IterKind::kOpaque && axis.kind != IterKind::kScan &&
             is_int(axis.domain.min, 0) && structural_equal(axis.domain.extent, loop->extent);
    });
  };
  return std::ranges::all_of(loops, is_axis) ? try_cast<Block>(inner) : std::nullopt;
}

// Returns the root block if it only holds the nests.
const Block* root_of(const PrimFuncRef& function) {
  const Block* root = function->body.as<Block>();
  bool is_root = root && root->iter_vars.empty() && !root->init && root->match_buffers.empty() && !root->predicate;
  return is_root && (root->body.is<Seq>() || root->body.is<For>() || root->body.is<Block>()) ? root : nullptr;
}

std::vector<Stmt> nests_of(const PrimFuncRef& function) {
  const Block* root = root_of(function);
  return statements_of(root ? root->body : function->body);
}

// Returns whether an axis (of that kind) has an extent of 0.
bool has_empty(const Block& block, std::optional<IterKind> kind = std::nullopt) {
  return std::ranges::any_of(block.iter_vars, [&](const IterVar& axis) {
    return (!kind || axis.kind == *kind) && as_int(axis.domain.extent).value_or(1) <= 0;
  });
}

// Returns the nest if no extent is 0, only the init of an empty reduction, and nullopt when there are no outputs.
std::optional<Stmt> live_nest(const Stmt& nest, const Ref<Block>& block) {
  if (!has_empty(*block)) return nest;
  if (has_empty(*block, IterKind::kSpatial) || !block->init) return std::nullopt;
  Block first = *block;
  first.iter_vars = axes_of(*block, IterKind::kSpatial);
  first.body = *block->init;
  first.reads = find_accesses(first.body).reads;
  first.init.reset();
  std::vector<const For*> loops;
  for (const For* loop = nest.as<For>(); loop; loop = loop->body.as<For>()) {
    if (std::ranges::any_of(first.iter_vars, [&](const IterVar& axis) { return same_node(axis.value, loop->var); }))
      loops.push_back(loop);
  }
  Stmt result = make(Block(first), block.span());
  for (const For* each : std::views::reverse(loops)) result = loop(each->var, each->extent, result);
  return result;
}

}  // namespace

std::optional<std::vector<Ref<Block>>> find_nests(const PrimFuncRef& function) {
  return all_or_none(nests_of(function), find_nest);
}

std::vector<Ref<Block>> plain_nests(const PrimFuncRef& function) {
  std::vector<Ref<Block>> result;
  for (const Stmt& nest : nests_of(function)) {
    if (auto block = find_nest(nest)) result.push_back(*block);
  }
  return result;
}

PrimFuncRef without_empty_nests(const PrimFuncRef& function) {
  std::optional<std::vector<Ref<Block>>> blocks = find_nests(function);
  if (!blocks || std::ranges::none_of(*blocks, [](const Ref<Block>& block) { return has_empty(*block); }))
    return function;
  std::vector<Stmt> nests = nests_of(function), live;
  for (size_t i = 0; i < nests.size(); ++i) {
    if (auto nest = live_nest(nests[i], (*blocks)[i])) live.push_back(*nest);
  }
  Stmt body = seq(std::move(live), function->body.span());
  if (!root_of(function)) return with_body(function, body);
  return with_body(function, edited<Block>(function->body, [&](Block& root) { root.body = body; }));
}

std::vector<Stmt> statements_of(const Stmt& body) {
  const Seq* list = body.as<Seq>();
  return list ? list->stmts : std::vector<Stmt>{body};
}

std::vector<IterVar> axes_of(const Block& block, IterKind kind) {
  std::vector<IterVar> result;
  std::ranges::copy_if(block.iter_vars, std::back_inserter(result), [&](const IterVar& v) { return v.kind == kind; });
  return result;
}

size_t position_of_axis(const std::vector<IterVar>& axes, const Expr& e) {
  auto axis = std::ranges::find_if(axes, [&](const IterVar& each) { return same_node(each.var, e); });
  return static_cast<size_t>(axis - axes.begin());
}

std::vector<Ref<BufferLoad>> loads_of(const NodeRef& node) {
  std::vector<Ref<BufferLoad>> result;
  walk(node, [&](const Ref<BufferLoad>& load) { result.push_back(load); });
  return result;
}

std::optional<Expr> access_stride(const Buffer& buffer, const std::vector<Expr>& indices, const VarRef& axis,
                                  const Analyzer& facts) {
  Expr position = int_imm(0), steps = int_imm(0);
  bool is_sum = true;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (holds<BufferLoad>(indices[d]) || dtype_of(indices[d]).lanes != 1) return std::nullopt;
    Expr dim = cast_to(buffer_type(buffer).shape[d], kInt64);
    position = position * dim + cast_to(indices[d], kInt64);
    Expr step = facts.simplify(stepped(indices[d], axis) - indices[d]);
    is_sum = is_sum && !uses_var(step, axis);
    steps = steps * dim + cast_to(step, kInt64);
  }
  // A step in each dim is found beneath casts, one over quotients and remainders in the position alone.
  Expr stride = facts.simplify(is_sum ? steps : stepped(position, axis) - position);
  return uses_var(stride, axis) ? std::nullopt : std::optional(stride);
}

bool is_element(const std::vector<Expr>& indices) {
  return std::ranges::all_of(indices, [](const Expr& index) { return dtype_of(index).lanes == 1; });
}

const BufferStore* single_store(const Block& block) {
  const BufferStore* store = block.body.as<BufferStore>();
  auto is_scalar = [](const Ref<BufferLoad>& load) { return is_element(load->indices); };
  bool fits = store && !store->predicate && is_element(store->indices);
  return fits && std::ranges::all_of(loads_of(block.body), is_scalar) ? store : nullptr;
}

bool is_zero(const Expr& value) {
  const FloatImm* real = value.as<FloatImm>();
  return is_int(value, 0) || (real && real->value == 0);
}

bool is_at(const std::vector<Expr>& indices, const std::vector<IterVar>& axes) {
  return std::equal(indices.begin(), indices.end(), axes.begin(), axes.end(),
                    [](const Expr& index, const IterVar& axis) {
                      return same_node(index, axis.var) || (is_int(index, 0) && is_int(axis.domain.extent, 1));
                    });
}

bool is_at_offset(const std::vector<Expr>& indices, const std::vector<IterVar>& axes) {
  return std::equal(indices.begin(), indices.end(), axes.begin(), axes.end(),
                    [&](const Expr& index, const IterVar& axis) {
                      return std::ranges::all_of(axes, [&](const IterVar& each) {
                        return coefficient(index, each.var, {}) == (same_node(each.var, axis.var) ? 1 : 0);
                      });
                    });
}

std::optional<Reduction> match_reduction(const Block& block) {
  const BufferStore* store = single_store(block);
  const BufferStore* init = block.init ? block.init->as<BufferStore>() : nullptr;
  if (!store || !init || !same_node(store->buffer, init->buffer)) return std::nullopt;
  std::vector<IterVar> axes = axes_of(block, IterKind::kSpatial);
  if (axes.size() == block.iter_vars.size() || !is_at(store->indices, axes) || !is_at(init->indices, axes))
    return std::nullopt;
  const Binary* combine = store->value.as<Binary>();
  const BufferLoad* sum = combine ? combine->a.as<BufferLoad>() : nullptr;
  if (!sum || !same_node(sum->buffer, store->buffer) || !is_at(sum->indices, axes)) return std::nullopt;
  bool known = combine->op == BinaryOp::kAdd || combine->op == BinaryOp::kMul || combine->op == BinaryOp::kMax ||
               combine->op == BinaryOp::kMin;
  bool constant = init->value.is<IntImm>() || init->value.is<FloatImm>();
  if (!known || !constant || uses_var(combine->b, store->buffer)) return std::nullopt;
  return Reduction{store->buffer, init->value, combine->b, combine->op};
}

bool is_contraction(const Block& block) {
  std::optional<Reduction> reduction = match_reduction(block);
  return reduction && std::ranges::any_of(loads_of(reduction->value), [&](const Ref<BufferLoad>& load) {
           return std::ranges::any_of(axes_of(block, IterKind::kSpatial), [&](const IterVar& axis) {
             return !is_int(axis.domain.extent, 1) && !uses_var(load->indices, axis.var);
           });
         });
}

}  // namespace relaxc
