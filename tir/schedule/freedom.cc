#include "tir/schedule/freedom.h"

#include <algorithm>

#include "tir/analysis/combiner.h"
#include "tir/analysis/nests.h"
#include "tir/edit/step.h"
#include "tir/primitives/reorder.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Returns indices of an access in the block in terms of loops.
std::vector<Expr> in_loops(const TreeNode* block, std::vector<Expr> indices) {
  for (const TreeNode* at = block; at; at = scope_of(at)) indices = substitute(indices, values_of_axes(at));
  return indices;
}

struct PlacedAccess {
  const TreeNode* block;
  BufferLoad access;           // the element that is loaded or stored
  std::vector<Expr> in_loops;  // its indices
};
struct PlacedAccesses {
  std::vector<PlacedAccess> loads, stores;
};
PlacedAccesses accesses_in(const TreeNode* loop) {
  PlacedAccesses result;
  for (const TreeNode* node : subtree(loop)) {
    if (!node->is_leaf_block()) continue;
    auto add = [&](std::vector<PlacedAccess>& to, const Buffer& buffer, const std::vector<Expr>& indices) {
      to.push_back({node, {buffer, indices, {}}, in_loops(node, indices)});
    };
    if (!node->block->match_buffers.empty()) {  // the declared regions stand for what windows see
      auto first_of = [](const Range& range) { return range.min; };
      for (const BufferRegion& read : node->block->reads)
        add(result.loads, read.buffer, map_each(read.ranges, first_of));
      for (const BufferRegion& write : node->block->writes)
        add(result.stores, write.buffer, map_each(write.ranges, first_of));
      continue;
    }
    walk(
        node->block->body, [&](const BufferLoad& load) { add(result.loads, load.buffer, load.indices); },
        [&](const BufferStore& store) { add(result.stores, store.buffer, store.indices); });
  }
  return result;
}

std::vector<AccessStride> strides_in(const TreeNode* loop, const PlacedAccesses& accesses) {
  std::vector<AccessStride> result;
  for (const auto* list : {&accesses.loads, &accesses.stores}) {
    for (const PlacedAccess& at : *list) {
      std::optional<Expr> stride = access_stride(at.access.buffer, at.in_loops, loop->var(), loop->tree->facts);
      bool known = std::ranges::any_of(result, [&](const AccessStride& other) {
        return same_node(other.buffer, at.access.buffer) && other.stride.has_value() == stride.has_value() &&
               (!stride || structural_equal(*other.stride, *stride));
      });
      if (!known) result.push_back({at.access.buffer, stride});
    }
  }
  return result;
}

// Finds by how many iterations of the loop the load comes after the store of the same element, if that is a constant.
// Returns false if the two never meet while the loops around this one stand still.
bool find_distance(const PlacedAccess& store, const PlacedAccess& load, const TreeNode* loop,
                   std::optional<int64_t>& distance) {
  const Analyzer& facts = loop->tree->facts;
  Nodes moving = subtree(loop);
  std::erase_if(moving, [](const TreeNode* node) { return !node->is_loop(); });
  bool is_constant = true;
  for (size_t d = 0; d < store.in_loops.size(); ++d) {
    const Expr &to = store.in_loops[d], from = cast_to(load.in_loops[d], dtype_of(to));
    auto apart = as_int(facts.simplify(to - from));
    if (apart && *apart != 0 && !mentions_any(to, moving)) return false;
    auto step = coefficient(to, loop->var(), facts);
    bool fits = apart && step && step == coefficient(from, loop->var(), facts);
    if (fits && *step == 0) {
      is_constant = is_constant && *apart == 0;
    } else {
      fits = fits && *apart % *step == 0 && distance.value_or(*apart / *step) == *apart / *step;
      is_constant = is_constant && fits;
      if (fits) distance = *apart / *step;
    }
  }
  if (!is_constant) distance.reset();
  return true;
}

std::vector<CarriedAccess> carried_in(const TreeNode* loop, const PlacedAccesses& accesses) {
  std::vector<CarriedAccess> result;
  for (const PlacedAccess& load : accesses.loads) {
    for (const PlacedAccess& store : accesses.stores) {
      bool may_meet = same_node(load.access.buffer, store.access.buffer) && load.block->carried && store.block->carried;
      bool is_element = may_meet && load.block == store.block &&
                        std::ranges::equal(load.access.indices, store.access.indices,
                                           [](const Expr& a, const Expr& b) { return structural_equal(a, b); });
      CarriedAccess carried{load.access.buffer, load.access.indices, {}};
      if (!may_meet || is_element || !find_distance(store, load, loop, carried.distance)) continue;
      if (!carried.distance) carried.how = Meets::kMayLoad;
      result.push_back(carried);
    }
  }
  return result;
}

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

std::string kind_of_reduction(const Block& block) {
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

// Lets the primitive say whether it would exchange two loops.
bool can_exchange(Workspace& workspace, TreeNode* outer, TreeNode* inner) {
  auto variable = [&](TreeNode* loop) { return LoopRV{workspace.name_node(loop, false)}; };
  Reorder exchange{Loops{variable(inner), variable(outer)}};
  return bool(Step(workspace, Reorder::kInfo.name, true).run([&](Step& step) { return exchange.orders(step); }));
}

}  // namespace

std::vector<LoopFreedom> find_freedoms(Workspace& workspace) {
  std::vector<LoopFreedom> result;
  std::unordered_map<const TreeNode*, size_t> entry_of;
  for (TreeNode* node : subtree(workspace.tree().root())) {
    if (!node->is_loop()) continue;
    LoopFreedom freedom{.loop = node, .dependence = not_parallel(node)};
    PlacedAccesses accesses = accesses_in(node);
    freedom.strides = strides_in(node, accesses);
    if (freedom.dependence) freedom.carried = carried_in(node, accesses);
    for (TreeNode* block : blocks_below(node)) {
      if (drives(node, block->axes()).reduce)
        freedom.reductions.push_back({block, kind_of_reduction(*block->block), block->in_order});
    }
    entry_of.emplace(node, result.size());
    result.push_back(std::move(freedom));
    for (TreeNode* outer : loops_above(node)) {
      if (!can_exchange(workspace, outer, node)) continue;
      result.back().exchanged.push_back(outer);
      result[entry_of.at(outer)].exchanged.push_back(node);
    }
  }
  return result;
}

}  // namespace relaxc
