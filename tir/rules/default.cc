// The last of the built-in rules, which takes any program. Elementwise blocks are inlined into their readers where that
// saves memory traffic without repeating work. Each remaining block is scheduled on its own, as a reduction or element
// by element (blocks.h). A program that is not a list of plain nests (find_nests), such as one that somebody scheduled
// by hand, stays as it is.
//
// What can be chosen for a block depends on the blocks that were inlined into it, so the decisions about a block are
// taken just before it is scheduled. Into a product nothing is inlined: of one with a symbolic number of rows the
// decisions are taken before (`space`), since some numbers of rows get separate code.

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "ir/op_names.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/conditions.h"
#include "tir/rules/blocks.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/contraction.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/windows.h"

namespace relaxc {

namespace {

bool reduces(const Block& block) { return !axes_of(block, IterKind::kReduce).empty(); }

// Returns whether the value is cheap enough to be computed at each of several uses: loads, casts and selects, and
// hardly any arithmetic on data. Index arithmetic costs nothing, but its size is bounded, too.
bool is_cheap(const Expr& value) {
  using namespace cost_model;
  int work = 0, size = 0;
  walk_nodes(value, [&](const NodeRef&) { return ++size <= kMostNodes; });
  if (size > kMostNodes) return false;
  walk(
      value, [&](const Ref<Call>& call) { work += op_name(call) == ops::kIfThenElse ? kCondition : kCall; },
      [&](const Binary& op) { work += dtype_of(op.a).is_float() ? kFloatOperation : 0; },
      [&](const BufferLoad&) { work += kLoad; });
  return work <= kMostRepeated;
}

// Returns whether each point of the axes computes an element of an internal buffer, so that readers can compute it.
bool can_be_inlined(Schedule& sch, const Block& block) {
  const BufferStore* store = single_store(block);
  if (block.annotations.get_bool(annotation<"stored">(), false)) return false;
  return store && !reduces(block) && is_at(store->indices, block.iter_vars) && !sch.tree("").is_param(store->buffer);
}

// Returns whether the reader would compute an element again and again: the load does not depend on an axis around
// others on which it depends. What depends on outer axes alone moves out of the inner loops.
bool repeats_along_outer_axis(const Block& reader, const BufferLoad& load) {
  bool is_missing = false;
  for (const IterVar& axis : reader.iter_vars) {
    bool is_used = std::ranges::any_of(load.indices, [&](const Expr& index) { return uses_var(index, axis.var); });
    if (is_used && is_missing) return true;
    is_missing = is_missing || (!is_used && !is_int(axis.domain.extent, 1));
  }
  return false;
}

bool is_worth_inlining(Schedule& sch, const BlockRV& rv) {
  Ref<Block> block = cast<Block>(sch.get(rv));
  const BufferStore* store = single_store(*block);
  Blocks readers = sch.apply(GetConsumers{rv});
  bool cheap = is_cheap(store->value);
  return std::ranges::all_of(readers, [&](const BlockRV& reader_rv) {
    Ref<Block> reader = cast<Block>(sch.get(reader_rv));
    int loads = 0;
    bool axis_by_axis = true, repeats = false;
    walk(reader->body, [&](const BufferLoad& load) {
      if (!same_node(load.buffer, store->buffer)) return;
      ++loads;
      repeats = repeats || repeats_along_outer_axis(*reader, load);
      for (const Expr& index : load.indices) axis_by_axis = axis_by_axis && (index.is<Var>() || index.is<IntImm>());
    });
    // Loops inside of the reader may read an element any number of times; a product reads each many times and needs
    // its operands in the layout that they have; a window (pooling) reads an element for several outputs, but the
    // conditions of its border hold in most tiles.
    if (holds<For, While>(reader->body) || (is_contraction(*reader) && !reads_windows(reader))) return false;
    return cheap || (readers.size() == 1 && loads == 1 && !repeats && (axis_by_axis || !reduces(*reader)));
  });
}

// Returns whether only windows read the block, which has a border that they should not test.
bool is_open_border(Schedule& sch, const BlockRV& rv) {
  const BufferStore* store = single_store(*cast<Block>(sch.get(rv)));
  Blocks readers = sch.apply(GetConsumers{rv});
  if (readers.size() != 1 || !holds<Call>(store->value)) return false;
  Ref<Block> reader = cast<Block>(sch.get(readers[0]));
  return reads_windows(reader) && has_open_border(reader, sch.tree("").facts);
}

// Applies the steps of a block until one is refused, which ends the schedule of the block and not the rule. Each step
// keeps the program's meaning: a block whose loop cannot be parallel, since its iterations may store to one element, is
// right with the loops that it has by then. No rule comes after this one that could do better.
void apply_while_they_fit(Schedule& sch, const std::function<void()>& steps) { (void)sch.try_steps(steps); }

// A block that is not inlined, so far, and what its decisions begin with.
struct KeptBlock {
  BlockRV block;
  std::string prefix;
  bool in_tile = false;           // it is computed in a tile of the windows that read it
  std::optional<Buffer> part_of;  // an internal buffer of which it is one of several blocks that write parts
};

// Returns the internal buffers that several blocks write.
std::vector<Buffer> buffers_in_parts(Schedule& sch, const Blocks& blocks) {
  std::vector<Buffer> written, result;
  for (const BlockRV& rv : blocks) {
    const BufferStore* store = single_store(*cast<Block>(sch.get(rv)));
    if (!store || sch.tree("").is_param(store->buffer)) continue;
    if (contains(written, store->buffer) && !contains(result, store->buffer)) result.push_back(store->buffer);
    written.push_back(store->buffer);
  }
  return result;
}

// Inlines parts of a buffer into the block, which selects one by the index, where that repeats no work; else an
// elementwise block into the parts. Returns whether the block is gone. One loop over all parts is faster than one for
// each: 24 us and 37 us for two parts of 0.7 MB on two cores.
bool inline_parts(Schedule& sch, const BlockRV& rv, const std::vector<Buffer>& in_parts, std::vector<KeptBlock>& kept,
                  Decisions& decisions) {
  for (const Buffer& buffer : in_parts) {
    const BufferStore* store = single_store(*cast<Block>(sch.get(rv)));
    if (!uses_var(sch.get(rv), buffer) || (store && same_node(store->buffer, buffer))) continue;
    auto is_part = [&](const KeptBlock& each) { return each.part_of && same_node(*each.part_of, buffer); };
    auto part = std::ranges::find_if(kept, is_part);
    if (part == kept.end()) continue;
    bool repeats_nothing = std::ranges::all_of(
        kept, [&](const KeptBlock& each) { return !is_part(each) || is_worth_inlining(sch, each.block); });
    decisions.set_prefix(part->prefix);
    if (decisions.flag("inline", repeats_nothing) && sch.try_apply(ComputeInline{part->block})) {
      std::erase_if(kept, is_part);
    } else if (sch.try_apply(ReverseComputeInline{rv})) {
      return true;
    }
  }
  return false;
}

// Inlines blocks where that saves memory traffic. Returns the others.
std::vector<KeptBlock> inline_blocks(Schedule& sch, const Blocks& given, Decisions& decisions) {
  std::map<std::string, int> blocks_of_name;  // several blocks may have one name, and each has its own decisions
  std::vector<KeptBlock> kept;
  std::vector<Buffer> in_parts = buffers_in_parts(sch, given);
  // A block whose inlining is refused stays, and the others are still tried.
  for (const BlockRV& rv : given) {
    Ref<Block> block = cast<Block>(sch.get(rv));
    int number = ++blocks_of_name[block->name];
    std::string prefix = number == 1 ? block->name + "." : fmt::format("{}#{}.", block->name, number);
    if (inline_parts(sch, rv, in_parts, kept, decisions)) continue;
    block = cast<Block>(sch.get(rv));
    decisions.set_prefix(prefix);
    const BufferStore* store = single_store(*block);
    bool is_part = store && contains(in_parts, store->buffer);
    const bool can_be = !is_part && can_be_inlined(sch, *block), is_border = can_be && is_open_border(sch, rv);
    bool is_inlined = can_be && decisions.flag("inline", !is_border && is_worth_inlining(sch, rv)) &&
                      sch.try_apply(ComputeInline{rv});
    if (!is_inlined) kept.push_back({rv, prefix, is_border, is_part ? std::optional(store->buffer) : std::nullopt});
  }
  return kept;
}

// A loop that threads share, the outermost one of a block.
struct SharedLoop {
  LoopRV loop;
  Expr extent;
};
std::optional<SharedLoop> shared_loop_of(Schedule& sch, const BlockRV& rv) {
  const auto loops = sch.try_apply(GetLoops{rv});
  if (!loops || loops->empty()) return std::nullopt;
  const Ref<For> loop = cast<For>(sch.get((*loops)[0]));
  const bool is_shared = loop->kind == ForKind::kParallel && as_int(loop->extent).value_or(2) > 1;
  return is_shared ? std::optional(SharedLoop{(*loops)[0], loop->extent}) : std::nullopt;
}

// Returns the extents of the axes of which the rows of the buffer are one axis, those from the inside; none where the
// buffer's first axes are others.
std::vector<int64_t> axes_of_rows(const Buffer& buffer, int64_t rows) {
  std::vector<int64_t> result;
  for (const Expr& dim : buffer_type(buffer).shape) {
    const auto extent = as_int(dim);
    if (rows == 1 || !extent || *extent == 0 || rows % *extent != 0) break;
    rows /= *extent;
    result.insert(result.begin(), *extent);
  }
  return rows == 1 ? result : std::vector<int64_t>();
}

// Returns whether every so many rows are a box of their axes: 4 rows of [12, 16] are, 3 rows may begin in one row of 16
// and end in the next.
bool are_boxes(int64_t rows, const std::vector<int64_t>& axes_from_inside) {
  for (const int64_t extent : axes_from_inside) {
    if (extent % rows == 0) return true;
    if (rows % extent != 0) return false;
    rows /= extent;
  }
  return true;
}

// Returns how many iterations of the loop that these blocks share a thread takes at a time. What one block passes to
// the next then stays in the L1 cache, and each block has enough work to hide its latency; 0 where there is no such
// number.
int64_t rows_together(Schedule& sch, const Blocks& blocks, int64_t extent, const Target& target) {
  using namespace cost_model;
  int64_t row_bytes = 0;
  std::vector<int64_t> axes;
  for (const BlockRV& rv : blocks) {
    const Ref<Block> block = cast<Block>(sch.get(rv));
    for (const BufferRegion& write : block->writes) {
      row_bytes = std::max(row_bytes, bytes_of(write.buffer, 0) / extent);
      if (axes.empty()) axes = axes_of_rows(write.buffer, extent);
    }
  }
  if (row_bytes == 0) return 0;
  const int64_t fit = target.l1_of_core() * kPieceQuartersOfL1 / 4 / row_bytes;
  std::vector<int64_t> candidates =
      divisors_between(1, std::clamp<int64_t>(fit, 1, std::max<int64_t>(1, extent / kLoopShares)), extent);
  std::erase_if(candidates, [&](int64_t rows) { return !are_boxes(rows, axes); });
  const int64_t rows = candidates.back();
  return rows * row_bytes >= kFewestBytesTogether ? rows : 0;
}

// The same for an unknown number of iterations: 1, unless rows are known to be short.
int64_t rows_together(Schedule& sch, const Blocks& blocks, const Expr& extent, const Target& target) {
  if (auto known = as_int(extent)) return rows_together(sch, blocks, *known, target);
  auto is_short = [&](const BufferRegion& write) {
    const BufferType& of = buffer_type(write.buffer);
    const Expr elements = std::accumulate(of.shape.begin(), of.shape.end(), Expr(int_imm(1)), std::multiplies<>());
    const auto of_row = as_int(sch.tree("").facts.simplify(floor_div(elements, extent)));
    return of_row && *of_row * of.dtype.bytes() < cost_model::kFewestBytesTogether;
  };
  const bool are_short = std::ranges::all_of(
      blocks, [&](const BlockRV& rv) { return std::ranges::all_of(cast<Block>(sch.get(rv))->writes, is_short); });
  return are_short ? 0 : 1;
}

// Merges the shared loops of blocks in a row, such as the stages of a softmax, where each of their iterations reads
// what it has made itself.
void merge_shared_loops(Schedule& sch, const Blocks& blocks, const Target& target) {
  for (size_t first = 0; first < blocks.size();) {
    const auto shared = shared_loop_of(sch, blocks[first]);
    Loops loops;
    size_t end = first;
    for (; shared && end < blocks.size(); ++end) {
      const auto next = shared_loop_of(sch, blocks[end]);
      if (!next || !structural_equal(next->extent, shared->extent)) break;
      auto counter = [&](const LoopRV& loop) { return cast<For>(sch.get(loop))->var; };
      const bool is_same = !loops.empty() && same_node(counter(loops.back()), counter(next->loop));
      if (!is_same) loops.push_back(next->loop);
    }
    const Blocks group(blocks.begin() + static_cast<long>(first), blocks.begin() + static_cast<long>(end));
    first = std::max(end, first + 1);
    const int64_t rows = loops.size() > 1 ? rows_together(sch, group, shared->extent, target) : 0;
    if (rows == 0) continue;
    // A loop that is annotated stays as it is, and so do the others.
    auto is_cut = [&](LoopRV& loop) {
      auto parts = sch.try_apply(Split{loop, {std::nullopt, rows}});
      if (parts) loop = (*parts)[0];
      return static_cast<bool>(parts);
    };
    if (rows > 1 && !std::ranges::all_of(loops, is_cut)) continue;
    LoopRV merged = loops[0];
    for (size_t i = 1; i < loops.size(); ++i) {
      auto outcome = sch.try_apply(Merge{{merged, loops[i]}});
      merged = outcome ? *outcome : loops[i];
    }
  }
}

// Schedules blocks in plain nests, in their order.
void schedule_blocks(Schedule& sch, const Blocks& given, const Target& target, Decisions& decisions) {
  std::vector<KeptBlock> kept = inline_blocks(sch, given, decisions);
  Blocks blocks = map_each(kept, &KeptBlock::block);
  std::vector<size_t> in_tile;  // those for the next reduction
  auto schedule_plain = [&](size_t i) {
    decisions.set_prefix(kept[i].prefix);
    ElementwisePlan plan = choose_elementwise(cast<Block>(sch.get(blocks[i])), sch.tree("").facts, target, decisions);
    apply_while_they_fit(sch, [&] { schedule_elementwise(sch, blocks[i], plan); });
  };
  for (size_t i = 0; i < blocks.size(); ++i) {
    Ref<Block> block = cast<Block>(sch.get(blocks[i]));
    const Analyzer& facts = sch.tree("").facts;
    if (kept[i].in_tile) {
      in_tile.push_back(i);
      continue;
    }
    if (!reduces(*block)) {
      schedule_plain(i);
      continue;
    }
    decisions.set_prefix(kept[i].prefix);
    std::optional<BlockRV> epilogue;
    if (i + 1 < blocks.size() && fits_as_epilogue(sch, blocks[i], blocks[i + 1])) epilogue = blocks[i + 1];
    const bool takes_next = epilogue.has_value();  // merge_last_axes may add an epilogue that is not one of the blocks
    // A product in panels would move all blocks after it into its tiles.
    bool is_last = i + (takes_next ? 2 : 1) == blocks.size();
    Stage stage{block, {}};
    for (size_t j = i + 1; j < blocks.size(); ++j) stage.epilogue.push_back(cast<Block>(sch.get(blocks[j])));
    ContractionMatch product = is_last ? match_contraction(stage, target, decisions) : ContractionMatch();
    if (is_last && product.index() == 0) {
      ContractionTile tile = choose_contraction(stage, std::get<ContractionTile>(product), target, decisions);
      apply_while_they_fit(sch, [&] { schedule_contraction(sch, blocks[i], tile); });
    } else {
      if (in_tile.empty()) {
        merge_last_axes(sch, blocks[i], epilogue, target);
        block = cast<Block>(sch.get(blocks[i]));
      }
      ReductionPlan plan = choose_reduction(block, facts, target, decisions, !in_tile.empty());
      if (!plan.band) std::ranges::for_each(std::exchange(in_tile, {}), schedule_plain);
      Blocks producers = map_each(std::exchange(in_tile, {}), [&](size_t each) { return blocks[each]; });
      apply_while_they_fit(sch, [&] { schedule_reduction(sch, blocks[i], epilogue, plan, producers); });
    }
    if (takes_next) ++i;
  }
  merge_shared_loops(sch, blocks, target);
  decisions.set_prefix("");
}

// Takes the decision which numbers of rows have separate code, for a product that begins the program and that
// elementwise blocks follow, where the number is symbolic.
std::optional<Versions> versions_of_product(const PrimFuncRef& program, const Target& target, Decisions& decisions) {
  const std::vector<Ref<Block>> blocks = plain_nests(program);
  auto is_elementwise = [](const Ref<Block>& block) { return !reduces(*block); };
  const bool is_product = !blocks.empty() && reduces(*blocks[0]) && is_contraction(*blocks[0]) &&
                          std::all_of(blocks.begin() + 1, blocks.end(), is_elementwise);
  if (!is_product) return std::nullopt;
  Stage stage{blocks[0], {blocks.begin() + 1, blocks.end()}};
  auto is_symbolic = [](const IterVar& axis) { return axis.domain.extent.is<Var>(); };
  if (std::ranges::none_of(axes_of(*stage.block, IterKind::kSpatial), is_symbolic)) return std::nullopt;
  decisions.set_prefix(stage.block->name + ".");
  ContractionMatch match = match_contraction(stage, target, decisions);
  std::optional<Versions> versions;
  if (auto* found = std::get_if<ContractionTile>(&match)) {
    const ContractionTile tile = choose_contraction(stage, *found, target, decisions);
    versions = choose_specialized_rows(stage, tile, target, decisions);
  }
  if (versions) versions->decision = stage.block->name + "." + versions->decision;
  decisions.set_prefix("");
  return versions;
}

void schedule_program(Schedule& sch, const Target& target, Decisions& decisions) {
  schedule_blocks(sch, sch.apply(GetChildBlocks{sch.apply(GetBlock{"root"})}), target, decisions);
}

}  // namespace

ScheduleRule default_rule() {
  std::vector<DecisionRow> decisions = {{"inline", "readers compute the block's elements instead of loading them",
                                         "where that repeats no work, or only loads, casts and selects"}};
  for (const auto& more : {elementwise_decisions(), reduction_decisions(), contraction_decisions()}) {
    for (const DecisionRow& row : more) {
      if (std::ranges::count(decisions, row.name, &DecisionRow::name) == 0) decisions.push_back(row);
    }
  }
  decisions.push_back({kSpecialize, "symbolic rows of a product that have separate code", "as 'contraction' does"});
  for (DecisionRow& row : decisions) row.name = "*." + row.name;
  return {.name = "default",
          .apply = schedule_program,
          .fits = [](const PrimFuncRef& program, const Target&, Decisions&) -> std::optional<std::string> {
            if (find_nests(program)) return std::nullopt;
            return "it is not a list of plain nests";
          },
          .space = versions_of_product,
          .doc = "any list of plain nests, decided block by block; products in panels as 'contraction' does",
          .decisions = std::move(decisions)};
}

void schedule_blocks_by_default(Schedule& sch, const Blocks& blocks, const Target& target) {
  ScheduleRule rule = default_rule();
  Decisions decisions(rule.name, rule.decisions);
  if (!blocks.empty()) schedule_blocks(sch, blocks, target, decisions);
}

void schedule_blocks_beside(Schedule& sch, const Target& target) {
  Blocks left;
  for (const Ref<Block>& block : plain_nests(sch.function())) {
    if (!block->annotations.get_bool(annotation<"fused_beside">(), false)) continue;
    if (auto found = sch.try_apply(GetBlock{block->name})) left.push_back(*found);
  }
  schedule_blocks_by_default(sch, left, target);
}

}  // namespace relaxc
