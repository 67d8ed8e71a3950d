#include "tir/primitives/tensorize.h"

#include "support/joined.h"
#include "support/nearest.h"
#include "tir/analysis/windows.h"
#include "tir/edit/move.h"
#include "tir/intrin/match_intrin.h"
#include "tir/primitives/blockize.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Returns the params of the description or the implementation as windows of the buffers that match.
std::vector<MatchBuffer> windows_on(const IntrinMatch& match, const PrimFuncRef& program) {
  std::vector<MatchBuffer> result;
  std::unordered_set<const NodeHeader*> defined;
  for (const Buffer& param : buffer_params(program)) {
    MatchBuffer window{match.regions[result.size()], param, {}};
    const BufferType& type = buffer_type(param);
    auto define = [&](const Expr& e) {
      if (e.is<Var>() && defined.insert(e.get()).second) window.defines.push_back(cast<Var>(e));
    };
    for (const Expr& stride : type.strides) define(stride);
    if (type.elem_offset) define(*type.elem_offset);
    result.push_back(std::move(window));
  }
  return result;
}

// Returns the match if its memory is also laid out as both programs of the intrinsic require.
std::optional<IntrinMatch> match_with_memory(const TreeNode& block, const TensorIntrin& intrin, std::string* why) {
  std::optional<IntrinMatch> match = match_intrin(block, intrin, why);
  if (!match) return std::nullopt;
  PrimFuncRef function = block.tree->function();
  for (const PrimFuncRef& program : {intrin.description, intrin.implementation}) {
    std::vector<MatchBuffer> windows = windows_on(*match, program);
    VarMap numbers = window_numbers(windows);
    for (const MatchBuffer& window : windows) {
      std::optional<std::string> misfits = misfit(window, program->body, function, numbers, block.tree->facts);
      if (!misfits) continue;
      *why = *misfits;
      return std::nullopt;
    }
  }
  return match;
}

struct Found {
  IntrinMatch match;
  PrimFuncRef implementation;
};
// Looks for the first layout of the intrinsic that matches; `why` is about its main one.
std::optional<Found> find_layout(const TreeNode& block, const TensorIntrin& intrin, std::string* why) {
  if (auto match = match_with_memory(block, intrin, why)) return Found{*match, intrin.implementation};
  std::string ignored;
  for (const TensorIntrin& other : intrin.other_layouts) {
    if (auto found = find_layout(block, other, &ignored)) return found;
  }
  return std::nullopt;
}

std::string misfit_text(const std::string& intrin, const std::string& why) {
  return message("the program does not match intrinsic '{}': {}", intrin, why);
}

// A mistake in the schedule, whatever the program is.
std::string unknown_intrin(const std::string& name, const TensorIntrins& intrins) {
  const std::string near = nearest(name, intrins.names());
  return fmt::format("there is no intrinsic '{}'; {}there are: {}", name,
                     near.empty() ? "" : fmt::format("did you mean '{}'? ", near), joined(intrins.names()));
}

// Makes the loop a block on a copy of the program first, so that a failure leaves the program as it was.
void require_match_of_loop(Step& step, const Tensorize& given, TreeNode* loop, const TensorIntrin& intrin) {
  Workspace trial(IRModule{{{"main", loop->tree->function()}}, {}, {}});
  for (TreeNode* at : subtree(trial.tree().root())) {
    if (!at->is_loop() || !same_node(at->var(), loop->var())) continue;
    Blockize blockize{LoopRV{trial.name_node(at)}, given.preserve_unit_iters};
    auto made = Step(trial, Blockize::kInfo.name, true).run([&](Step& inside) { return blockize.apply(inside); });
    // The refusal is about the copy, so it is repeated about this loop.
    if (!made) Step(step.workspace(), made.refusal().step, true).refuse({loop}, made.refusal().condition);
    std::string why;
    if (!find_layout(*trial.node(made->var), intrin, &why)) step.refuse({loop}, misfit_text(given.tensor_intrin, why));
    return;
  }
}

}  // namespace

void Tensorize::apply(Step& step) const {
  const TensorIntrins* given = step.workspace().intrins;
  const TensorIntrins& intrins = given ? *given : builtin_tensor_intrins();
  const TensorIntrin* intrin = intrins.find(tensor_intrin);
  if (!intrin) fail({}, "tensorize: {}", unknown_intrin(tensor_intrin, intrins));
  TreeNode* node = step.place(block_or_loop);
  TreeNode* block = node;
  if (node->is_loop()) {
    require_match_of_loop(step, *this, node, *intrin);
    LoopRV loop{std::visit([](const auto& rv) { return rv.var; }, block_or_loop)};
    block = step.block(step.apply(Blockize{loop, preserve_unit_iters}));
  }
  std::string why;
  std::optional<Found> found = find_layout(*block, *intrin, &why);
  if (!found) step.refuse({block}, misfit_text(tensor_intrin, why));
  // The block becomes the implementation on windows of the buffers.
  PrimFuncRef implementation = with_fresh_variables(found->implementation);
  Block& content = *block->block;
  content.match_buffers = windows_on(found->match, implementation);
  Stmt body = implementation->body;
  if (const Block* root = body.as<Block>(); root && root->iter_vars.empty()) {
    content.alloc_buffers.insert(content.alloc_buffers.end(), root->alloc_buffers.begin(), root->alloc_buffers.end());
    body = root->body;
  }
  for (TreeNode* child : std::vector(block->children)) block->tree->detach(child);
  content.body = body;
  content.reads = {found->match.reads.begin(), found->match.reads.end()};
  content.writes = {found->match.writes.begin(), found->match.writes.end()};
  refresh_regions_above(block);
}

}  // namespace relaxc
