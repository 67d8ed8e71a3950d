#include "tir/rules/default.h"

#include <algorithm>

#include "support/diagnostic.h"
#include "tir/analysis/nests.h"
#include "tir/primitives/compute_inline.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_child_blocks.h"
#include "tir/primitives/get_consumers.h"
#include "tir/rules/contraction.h"
#include "tir/rules/elementwise.h"
#include "tir/rules/reduction.h"

namespace relaxc {

namespace {

bool reduces(const Block& block) { return axes_of(block, IterKind::kReduce).size() > 0; }

// Cheap enough to be computed at each of several uses: loads, casts and selects, no arithmetic on data to speak of.
// Index arithmetic costs nothing, but its size is bounded too: each of a chain of x + x doubles it.
bool is_cheap(const Expr& value) {
  int work = 0, size = 0;
  walk_nodes(value, [&](const NodeRef&) { return ++size <= 100; });
  if (size > 100) return false;
  walk(
      value, [&](const Ref<Call>& call) { work += op_name(call) == "tir.if_then_else" ? 1 : 10; },
      [&](const Binary& op) { work += dtype_of(op.a).is_float() ? 2 : 0; }, [&](const BufferLoad&) { work += 1; });
  return work <= 5;
}

bool is_worth_inlining(Schedule& sch, const BlockRV& rv) {
  Ref<Block> block = cast<Block>(sch.get(rv));
  const BufferStore* store = single_store(*block);
  if (reduces(*block) || !store || !is_at(store->indices, block->iter_vars)) return false;
  if (sch.tree("").is_param(store->buffer)) return false;
  Blocks readers = sch.apply(GetConsumers{rv});
  bool cheap = is_cheap(store->value);
  return std::all_of(readers.begin(), readers.end(), [&](const BlockRV& reader_rv) {
    Ref<Block> reader = cast<Block>(sch.get(reader_rv));
    int loads = 0;
    bool loops = false, axis_by_axis = true;
    walk(
        reader->body, [&](const For&) { loops = true; }, [&](const While&) { loops = true; },
        [&](const BufferLoad& load) {
          if (!same_node(load.buffer, store->buffer)) return;
          ++loads;
          for (const Expr& index : load.indices) axis_by_axis = axis_by_axis && (index.is<Var>() || index.is<IntImm>());
        });
    // Loops of their own may read an element any number of times; a product reads each many times and wants its
    // operands in the layout that they have; a window (pooling) reads an element for several outputs.
    if (loops || is_contraction(*reader)) return false;
    return cheap || (readers.size() == 1 && loads == 1 && (axis_by_axis || !reduces(*reader)));
  });
}

void schedule_program(Schedule& sch, const Target& target, Decisions& decisions) {
  if (!find_nests(sch.function())) fail_to_fit({}, "the program is not a list of plain nests");
  BlockRV root = sch.apply(GetBlock{"root"});
  // Steps that are refused leave a program that means the same; what else can be done with it is.
  for (const BlockRV& block : sch.apply(GetChildBlocks{root})) {
    if (is_worth_inlining(sch, block)) sch.try_apply(ComputeInline{block});
  }
  Blocks blocks = sch.apply(GetChildBlocks{root});
  for (size_t i = 0; i < blocks.size(); ++i) {
    Ref<Block> block = cast<Block>(sch.get(blocks[i]));
    decisions.set_prefix(block->name + ".");
    if (!reduces(*block)) {
      sch.try_steps([&] { schedule_elementwise(sch, blocks[i], target, decisions); });
      continue;
    }
    std::optional<BlockRV> epilogue;
    if (i + 1 < blocks.size() && fits_as_epilogue(sch, blocks[i], blocks[i + 1])) epilogue = blocks[i + 1];
    // A block behind a product in panels would be taken into its tiles.
    bool ends_with_it = i + (epilogue ? 2 : 1) == blocks.size();
    std::vector<Ref<Block>> behind;
    for (size_t next = i + 1; next < blocks.size(); ++next) behind.push_back(cast<Block>(sch.get(blocks[next])));
    auto panels = ends_with_it ? choose_contraction(*block, behind, target, decisions) : std::nullopt;
    sch.try_steps([&] {
      if (panels) return schedule_contraction(sch, blocks[i], target, *panels);
      schedule_reduction(sch, blocks[i], epilogue, target, decisions);
    });
    if (epilogue) ++i;
  }
  decisions.set_prefix("");
}

}  // namespace

ScheduleRule default_rule() {
  std::vector<DecisionRow> decisions = elementwise_decisions();
  for (const DecisionRow& row : reduction_decisions()) decisions.push_back(row);
  return {.name = "default",
          .apply = schedule_program,
          .fits = [](const PrimFuncRef& program, const Target&) -> std::optional<std::string> {
            if (find_nests(program)) return std::nullopt;
            return "it is not a list of plain nests";
          },
          .doc = "any list of plain nests, block by block; products in panels have the decisions of 'contraction'",
          .decisions = std::move(decisions)};
}

}  // namespace relaxc
