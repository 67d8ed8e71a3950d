#include "tir/schedule/nests.h"

#include <algorithm>

#include "tir/schedule/tree.h"

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

}  // namespace

std::optional<std::vector<Ref<Block>>> find_nests(const PrimFuncRef& function) {
  Stmt body = function->body;
  const Block* root = body.as<Block>();
  if (root && root->iter_vars.empty() && !root->init && root->match_buffers.empty() && !root->predicate) {
    if (root->body.is<Seq>() || root->body.is<For>() || root->body.is<Block>()) body = root->body;
  }
  std::vector<Stmt> nests = {body};
  if (const Seq* list = body.as<Seq>()) nests = list->stmts;
  std::vector<Ref<Block>> blocks;
  for (const Stmt& nest : nests) {
    std::optional<Ref<Block>> block = find_nest(nest);
    if (!block) return std::nullopt;
    blocks.push_back(*block);
  }
  return blocks;
}

std::vector<IterVar> axes_of(const Block& block, IterKind kind) {
  std::vector<IterVar> result;
  for (const IterVar& axis : block.iter_vars) {
    if (axis.kind == kind) result.push_back(axis);
  }
  return result;
}

std::vector<Ref<BufferLoad>> loads_of(const Expr& value) {
  std::vector<Ref<BufferLoad>> result;
  walk(value, [&](const Ref<BufferLoad>& load) { result.push_back(load); });
  return result;
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
  if (!known || !constant || scheduling::mentions(combine->b, store->buffer)) return std::nullopt;
  return Reduction{store->buffer, init->value, combine->b, combine->op};
}

bool is_contraction(const Block& block) {
  std::optional<Reduction> reduction = match_reduction(block);
  if (!reduction) return false;
  for (const Ref<BufferLoad>& load : loads_of(reduction->value)) {
    for (const IterVar& axis : axes_of(block, IterKind::kSpatial)) {
      if (is_int(axis.domain.extent, 1)) continue;
      bool used = std::any_of(load->indices.begin(), load->indices.end(),
                              [&](const Expr& index) { return scheduling::mentions(index, axis.var); });
      if (!used) return true;
    }
  }
  return false;
}

}  // namespace relaxc
