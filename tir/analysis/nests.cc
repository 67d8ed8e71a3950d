#include "tir/analysis/nests.h"

#include <algorithm>

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
  auto block = try_cast<Block>(inner);
  if (!block || (*block)->predicate || !(*block)->alloc_buffers.empty() || !(*block)->match_buffers.empty())
    return std::nullopt;
  if ((*block)->iter_vars.size() != loops.size()) return std::nullopt;
  for (const For* loop : loops) {
    bool found = std::any_of((*block)->iter_vars.begin(), (*block)->iter_vars.end(), [&](const IterVar& axis) {
      return same_node(axis.value, loop->var) && axis.kind != IterKind::kOpaque && axis.kind != IterKind::kScan &&
             is_int(axis.domain.min, 0) && structural_equal(axis.domain.extent, loop->extent);
    });
    if (!found) return std::nullopt;
  }
  return block;
}

// Returns the root block if it only holds the nests.
const Block* root_of(const PrimFuncRef& function) {
  const Block* root = function->body.as<Block>();
  bool holds = root && root->iter_vars.empty() && !root->init && root->match_buffers.empty() && !root->predicate;
  return holds && (root->body.is<Seq>() || root->body.is<For>() || root->body.is<Block>()) ? root : nullptr;
}

std::vector<Stmt> statements(const Stmt& body) {
  const Seq* list = body.as<Seq>();
  return list ? list->stmts : std::vector<Stmt>{body};
}

// Returns whether an axis (of that kind) has an extent of 0.
bool has_empty(const Block& block, std::optional<IterKind> kind) {
  return std::any_of(block.iter_vars.begin(), block.iter_vars.end(), [&](const IterVar& axis) {
    auto extent = as_int(axis.domain.extent);
    return (!kind || axis.kind == *kind) && extent && *extent <= 0;
  });
}

// Returns what is left of a nest: all of it; the initialization alone for a reduction over nothing; nothing when there
// are no elements.
std::optional<Stmt> live_nest(const Stmt& nest, const Ref<Block>& block) {
  if (!has_empty(*block, std::nullopt)) return nest;
  if (has_empty(*block, IterKind::kSpatial) || !block->init) return std::nullopt;
  Block first = *block;
  first.iter_vars = axes_of(*block, IterKind::kSpatial);
  first.body = *block->init;
  first.reads = find_accesses(first.body).reads;
  first.init.reset();
  auto is_kept = [&](const For& loop) {
    return std::any_of(first.iter_vars.begin(), first.iter_vars.end(),
                       [&](const IterVar& axis) { return same_node(axis.value, loop.var); });
  };
  std::vector<const For*> loops;
  for (const For* loop = nest.as<For>(); loop; loop = loop->body.as<For>()) {
    if (is_kept(*loop)) loops.push_back(loop);
  }
  Stmt result = make(Block(first), block.span());
  for (size_t i = loops.size(); i-- > 0;) result = loop(loops[i]->var, loops[i]->extent, result);
  return result;
}

}  // namespace

std::optional<std::vector<Ref<Block>>> find_nests(const PrimFuncRef& function) {
  const Block* root = root_of(function);
  std::vector<Ref<Block>> blocks;
  for (const Stmt& nest : statements(root ? root->body : function->body)) {
    std::optional<Ref<Block>> block = find_nest(nest);
    if (!block) return std::nullopt;
    blocks.push_back(*block);
  }
  return blocks;
}

PrimFuncRef without_empty_nests(const PrimFuncRef& function) {
  std::optional<std::vector<Ref<Block>>> blocks = find_nests(function);
  auto any_empty = [](const Ref<Block>& block) { return has_empty(*block, std::nullopt); };
  if (!blocks || std::none_of(blocks->begin(), blocks->end(), any_empty)) return function;
  const Block* root = root_of(function);
  std::vector<Stmt> nests = statements(root ? root->body : function->body), live;
  for (size_t i = 0; i < nests.size(); ++i) {
    if (auto nest = live_nest(nests[i], (*blocks)[i])) live.push_back(*nest);
  }
  Stmt body = seq(std::move(live), function->body.span());
  if (!root) return with_body(function, body);
  Block copy = *root;
  copy.body = body;
  return with_body(function, make(std::move(copy), function->body.span()));
}

std::vector<IterVar> axes_of(const Block& block, IterKind kind) {
  std::vector<IterVar> result;
  for (const IterVar& axis : block.iter_vars) {
    if (axis.kind == kind) result.push_back(axis);
  }
  return result;
}

std::vector<Ref<BufferLoad>> loads_of(const NodeRef& node) {
  std::vector<Ref<BufferLoad>> result;
  walk(node, [&](const Ref<BufferLoad>& load) { result.push_back(load); });
  return result;
}

bool is_element(const std::vector<Expr>& indices) {
  return std::all_of(indices.begin(), indices.end(), [](const Expr& index) { return dtype_of(index).lanes == 1; });
}

const BufferStore* single_store(const Block& block) {
  const BufferStore* store = block.body.as<BufferStore>();
  bool scalar = store && !store->predicate && is_element(store->indices);
  if (scalar) walk(block.body, [&](const BufferLoad& load) { scalar = scalar && is_element(load.indices); });
  return scalar ? store : nullptr;
}

bool is_zero(const Expr& value) {
  const FloatImm* real = value.as<FloatImm>();
  return is_int(value, 0) || (real && real->value == 0);
}

bool is_at(const std::vector<Expr>& indices, const std::vector<IterVar>& axes) {
  return std::equal(indices.begin(), indices.end(), axes.begin(), axes.end(),
                    [](const Expr& index, const IterVar& axis) { return same_node(index, axis.var); });
}

std::optional<Reduction> match_reduction(const Block& block) {
  const BufferStore* store = single_store(block);
  const BufferStore* init = block.init ? block.init->as<BufferStore>() : nullptr;
  if (!store || !init || !same_node(store->buffer, init->buffer) || store->predicate) return std::nullopt;
  std::vector<IterVar> axes = axes_of(block, IterKind::kSpatial);
  if (axes.size() == block.iter_vars.size() || !is_at(store->indices, axes) || !is_at(init->indices, axes))
    return std::nullopt;
  const Binary* combine = store->value.as<Binary>();
  const BufferLoad* sum = combine ? combine->a.as<BufferLoad>() : nullptr;
  if (!sum || !same_node(sum->buffer, store->buffer) || !is_at(sum->indices, axes)) return std::nullopt;
  bool known = combine->op == BinaryOp::kAdd || combine->op == BinaryOp::kMul || combine->op == BinaryOp::kMax ||
               combine->op == BinaryOp::kMin;
  bool constant = init->value.is<IntImm>() || init->value.is<FloatImm>();
  if (!known || !constant || mentions(combine->b, store->buffer)) return std::nullopt;
  return Reduction{store->buffer, init->value, combine->b, combine->op};
}

bool is_contraction(const Block& block) {
  std::optional<Reduction> reduction = match_reduction(block);
  if (!reduction) return false;
  for (const Ref<BufferLoad>& load : loads_of(reduction->value)) {
    for (const IterVar& axis : axes_of(block, IterKind::kSpatial)) {
      if (is_int(axis.domain.extent, 1)) continue;
      if (!mentions(load->indices, axis.var)) return true;
    }
  }
  return false;
}

}  // namespace relaxc
