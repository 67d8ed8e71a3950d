#include "tir/schedule/freedom.h"

#include <algorithm>

#include "support/joined.h"
#include "tir/analysis/combiner.h"
#include "tir/analysis/nests.h"
#include "tir/edit/blocks.h"
#include "tir/edit/step.h"
#include "tir/primitives/reorder.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Returns the block with an init, which decompose_reduction may have taken away.
Block with_init(Block block) {
  if (block.init) return block;
  std::vector<Stmt> inits;
  walk(block.body, [&](const BufferStore& each) {
    inits.push_back(store(each.buffer, scalar_imm(0, buffer_type(each.buffer).dtype), each.indices));
  });
  block.init = seq(std::move(inits));
  return block;
}

// Returns the kind of a block that combines new values with the elements that it stores; absent: it does not read them,
// or reads others as well.
std::optional<std::string> kind_of_reduction(const Block& block) {
  bool reads_elements = false, reads_others = false;
  std::vector<const BufferStore*> stores;
  walk(block.body, [&](const BufferStore& store) { stores.push_back(&store); });
  for (const Ref<BufferLoad>& load : loads_of(block.body)) {
    for (const BufferStore* store : stores) {
      if (!same_node(store->buffer, load->buffer)) continue;
      (is_element(Expr(load), *store) ? reads_elements : reads_others) = true;
    }
  }
  if (!reads_elements || reads_others) return std::nullopt;
  std::optional<Combiner> combiner = find_combiner(with_init(block));
  if (!combiner) return "update";
  if (combiner->is_choice()) return "choice";
  auto is_other = [&](const Combiner::Part& part) { return part.op != combiner->parts[0].op; };
  if (std::ranges::any_of(combiner->parts, is_other)) return "update";
  constexpr std::pair<BinaryOp, const char*> kNames[] = {
      {BinaryOp::kAdd, "sum"}, {BinaryOp::kMul, "product"}, {BinaryOp::kMax, "max"}, {BinaryOp::kMin, "min"}};
  for (const auto& [op, name] : kNames) {
    if (op == combiner->parts[0].op) return name;
  }
  return "update";
}

// Returns whether the buffer is memory of one iteration of the loop, in which all that is loaded was stored before.
bool is_covered(const TreeNode* loop, const Buffer& buffer) {
  return is_private_to(loop, buffer) && std::ranges::none_of(blocks_below(loop), [&](const TreeNode* block) {
           return block->carried && accesses(block, buffer);
         });
}

// Lets the primitive say whether it would exchange two loops.
bool can_exchange(Workspace& workspace, TreeNode* outer, TreeNode* inner) {
  auto variable = [&](TreeNode* loop) { return LoopRV{workspace.name_node(loop, false)}; };
  Reorder exchange{Loops{variable(inner), variable(outer)}};
  return bool(Step(workspace, Reorder::kInfo.name, true).run([&](Step& step) { return exchange.orders(step); }));
}

}  // namespace

namespace {

LoopFreedom freedom_of(TreeNode* loop, const LoopedAccesses& accesses, const Analyzer& facts) {
  LoopFreedom result{.loop = loop, .dependence = not_parallel(loop)};
  Nodes combining;
  for (TreeNode* block : blocks_below(loop)) {
    if (!drives(loop, block->axes()).reduce) continue;
    std::optional<std::string> kind = kind_of_reduction(*block->block);
    if (!kind) continue;
    combining.push_back(block);
    std::string into = joined(block->block->writes, [](const BufferRegion& write) { return write.buffer->name; });
    result.reductions.push_back({block, fmt::format("{} into {}", *kind, into), block->in_order});
  }
  result.strides = strides_in(accesses, loop->var(), facts);
  result.effect = effect_in(accesses, loop->var());
  if (!result.dependence) return result;
  IterationOrder order = find_order(accesses, loop->var(), facts, combining);
  result.effect = std::move(order.unknown);
  result.carried = std::move(order.carried);
  std::erase_if(result.carried, [&](const CarriedAccess& carried) { return is_covered(loop, carried.buffer); });
  for (std::string& update : order.updates) {
    auto is_same = [&](const LoopReduction& known) { return known.what == update; };
    if (std::ranges::none_of(result.reductions, is_same))
      result.reductions.push_back({nullptr, std::move(update), false});
  }
  return result;
}

}  // namespace

std::vector<LoopFreedom> find_freedoms(Workspace& workspace) {
  std::vector<LoopFreedom> result;
  std::unordered_map<const TreeNode*, size_t> entry_of;
  const LoopedAccesses accesses = accesses_of(workspace.tree().root());
  Analyzer facts = workspace.tree().facts;
  for (const Ref<For>& loop : accesses.loops) facts.bind(loop->var, loop->min, loop->extent);
  for (TreeNode* node : subtree(workspace.tree().root())) {
    if (!node->is_loop()) continue;
    entry_of.emplace(node, result.size());
    result.push_back(freedom_of(node, accesses, facts));
    for (TreeNode* outer : loops_above(node)) {
      if (!can_exchange(workspace, outer, node)) continue;
      result.back().exchanged.push_back(outer);
      result[entry_of.at(outer)].exchanged.push_back(node);
    }
  }
  return result;
}

}  // namespace relaxc
