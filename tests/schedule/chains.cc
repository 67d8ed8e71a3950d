#include "tests/schedule/chains.h"

#include <cmath>
#include <random>

#include "codegen/compile.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"
#include "passes/pass.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "tests/interpret.h"
#include "tests/kernel_harness.h"
#include "tests/lowering.h"
#include "tests/narrow_dims.h"
#include "tir/primitives/add_unit_loop.h"
#include "tir/primitives/annotate.h"
#include "tir/primitives/blockize.h"
#include "tir/primitives/cache_index.h"
#include "tir/primitives/cache_inplace.h"
#include "tir/primitives/cache_read.h"
#include "tir/primitives/cache_write.h"
#include "tir/primitives/compute_at.h"
#include "tir/primitives/compute_inline.h"
#include "tir/primitives/decompose_padding.h"
#include "tir/primitives/decompose_reduction.h"
#include "tir/primitives/defer_factors.h"
#include "tir/primitives/extend_axis.h"
#include "tir/primitives/fuse.h"
#include "tir/primitives/fuse_reduction_epilogue.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_child_blocks.h"
#include "tir/primitives/get_consumers.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/loop_partition.h"
#include "tir/primitives/merge.h"
#include "tir/primitives/pad_einsum.h"
#include "tir/primitives/parallel.h"
#include "tir/primitives/read_at.h"
#include "tir/primitives/reindex.h"
#include "tir/primitives/reindex_cache_read.h"
#include "tir/primitives/reindex_cache_write.h"
#include "tir/primitives/reorder.h"
#include "tir/primitives/reverse_compute_at.h"
#include "tir/primitives/reverse_compute_inline.h"
#include "tir/primitives/rfactor.h"
#include "tir/primitives/rolling_buffer.h"
#include "tir/primitives/sample_categorical.h"
#include "tir/primitives/sample_compute_location.h"
#include "tir/primitives/sample_partitioned_tile.h"
#include "tir/primitives/sample_perfect_tile.h"
#include "tir/primitives/set_scope.h"
#include "tir/primitives/split.h"
#include "tir/primitives/storage_align.h"
#include "tir/primitives/transform_block_layout.h"
#include "tir/primitives/transform_layout.h"
#include "tir/primitives/unroll.h"
#include "tir/primitives/unsafe_set_dtype.h"
#include "tir/primitives/vectorize.h"
#include "tir/primitives/write_at.h"
#include "tir/scalable_vectors.h"
#include "tir/schedule/script.h"

namespace relaxc::test {

namespace {

constexpr int kLightest = 0;  // of the levels of PassSettings::opt_level: code as it is emitted

// Blocks and loops that a move may use, drawn before it.
struct Place {
  Blocks blocks;
  BlockRV block;
  Loops loops;  // around the block
  BlockRV other;
  Loops other_loops;
};

// A schedule in the making: moves of the table below, with random arguments.
class Chain {
 public:
  // Every fifth chain splits by multiples of T.vscale(), too.
  Chain(Schedule& schedule, uint32_t seed) : sch_(schedule), random_(seed), is_scalable_(seed % 5 == 0) {}

  void step();
  int steps() const { return static_cast<int>(sch_.trace().simplified().steps.size()); }

  // ---- For the rows of the table
  template <class Primitive>
  auto apply(Primitive primitive) {
    return sch_.apply(std::move(primitive));
  }
  // A reader in tiles and what it reads computed there: windows that slide.
  void roll(const BlockRV& block) {
    Blocks consumers = apply(GetConsumers{block});
    if (consumers.empty()) return;
    Loops around = apply(GetLoops{pick(consumers)});
    if (around.empty()) return;
    LoopRV loop = pick(around);
    if (below(2)) loop = apply(Split{loop, {std::nullopt, static_cast<int64_t>(2 + below(3))}})[0];
    apply(ComputeAt{block, loop});
    apply(RollingBuffer{block, 0});
  }
  size_t below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }
  // The pragmas that TVM's traces end with, on the outermost loops.
  void unroll_some() {
    for (const BlockRV& block : all_blocks()) {
      Loops around = apply(GetLoops{block});
      if (around.empty() || below(2)) continue;
      apply(Annotate{around[0], annotation<"pragma_auto_unroll_max_step">(), below(2) ? 16 : 64});
      apply(Annotate{around[0], annotation<"pragma_unroll_explicit">(), static_cast<int>(below(2))});
    }
  }
  template <class T>
  const T& pick(const std::vector<T>& items) {
    return items[below(items.size())];
  }
  const char* scope() { return below(2) ? "global" : "local"; }
  int side() { return static_cast<int>(below(2)); }
  Loops neighbors(const Loops& loops) {
    size_t first = below(loops.size() - 1), count = 2 + below(loops.size() - first - 1);
    auto begin = loops.begin() + static_cast<long>(first);
    return Loops(begin, begin + static_cast<long>(count));
  }
  void reorder(const Loops& loops) {
    Loops some;
    for (const LoopRV& loop : loops) {
      if (below(3)) some.push_back(loop);
    }
    std::shuffle(some.begin(), some.end(), random_);
    if (some.size() >= 2) apply(Reorder{some});
  }
  void merge(const Blocks& blocks) {
    Loops some;
    for (const BlockRV& one : blocks) {
      Loops around = apply(GetLoops{one});
      if (!around.empty() && below(2)) some.push_back(around[below(2) ? 0 : below(around.size())]);
    }
    if (some.size() >= 2) apply(Merge{Loops(some.begin(), some.begin() + 2)});
  }
  void change_scope(const BlockRV& block) {
    Buffer buffer = accessed(block);
    if (is_param(buffer)) return;
    apply(SetScope{block, 0, scope()});
    size_t rank = buffer_type(buffer).shape.size();
    if (rank > 0) apply(StorageAlign{block, 0, static_cast<int64_t>(below(rank)), 8, 3});
  }
  void pad(const BlockRV& block) {
    Ints padding;
    for (size_t i = axes(block); i > 0; --i) padding.push_back(below(2) ? 1 : 4);
    apply(PadEinsum{block, padding});
  }
  void extend(const BlockRV& block) {
    const std::vector<IterVar> all = content(block)->iter_vars;
    if (all.empty()) return;
    const size_t axis = below(all.size());
    const int64_t extent = as_int(all[axis].domain.extent).value_or(0);
    apply(ExtendAxis{block, static_cast<int64_t>(axis), extent + static_cast<int64_t>(below(4))});
  }
  void blockize_pair(const Blocks& blocks) {
    size_t first = below(blocks.size());
    if (blocks.size() - first < 2) return;
    auto begin = blocks.begin() + static_cast<long>(first);
    apply(Blockize{Blocks(begin, begin + 2)});
  }
  Factors factors() {
    static constexpr int64_t kNumbers[] = {1, 2, 3, 4, 5, 8, 16};
    Factors result;
    size_t count = 2 + below(2), open = below(count);
    for (size_t i = 0; i < count; ++i) {
      if (i == open) {
        result.emplace_back(std::nullopt);
      } else {
        int64_t number = kNumbers[below(std::size(kNumbers))];
        if (is_scalable_ && below(3) == 0) {
          result.emplace_back(vscale(kInt64) * number);
        } else {
          result.emplace_back(number);
        }
      }
    }
    return result;
  }
  // Some of the axes tiled, and the order changed; or a fused pair.
  IndexMap map_of(size_t rank) {
    static constexpr int64_t kTiles[] = {2, 3, 4, 8};
    int64_t tile = kTiles[below(std::size(kTiles))];
    size_t kind = below(3), which = rank ? below(rank) : 0;
    return IndexMap(rank, [=](const Exprs& i) {
      Exprs result = i;
      if (rank == 0) return result;
      if (kind == 2) {
        std::reverse(result.begin(), result.end());
        return result;
      }
      result[which] = floor_div(i[which], tile);
      result.insert(kind == 0 ? result.end() : result.begin() + static_cast<long>(which) + 1,
                    floor_mod(i[which], tile));
      return result;
    });
  }
  Ref<Block> content(const BlockRV& block) { return cast<Block>(sch_.get(block)); }
  size_t axes(const BlockRV& block) { return content(block)->iter_vars.size(); }
  Buffer accessed(const BlockRV& block) {
    Ref<Block> at = content(block);
    const std::vector<BufferRegion>& regions = below(2) || at->reads.empty() ? at->writes : at->reads;
    return regions.empty() ? make_buffer("none", kFloat32, {}) : regions[below(regions.size())].buffer;
  }
  DType dtype_of_first_write(const BlockRV& block) {
    Ref<Block> at = content(block);
    return at->writes.empty() ? kInt64 : buffer_type(at->writes[0].buffer).dtype;
  }
  bool is_param(const Buffer& buffer) {
    PrimFuncRef function = sch_.function();
    return std::any_of(function->params.begin(), function->params.end(),
                       [&](const VarRef& param) { return same_node(param, buffer); });
  }
  Blocks all_blocks() {
    Blocks result{apply(GetBlock{"root"})};
    for (size_t i = 0; i < result.size(); ++i) {
      for (const BlockRV& child : apply(GetChildBlocks{result[i]})) result.push_back(child);
    }
    if (result.size() > 1) result.erase(result.begin());
    return result;
  }

 private:
  Schedule& sch_;
  std::mt19937 random_;
  bool is_scalable_;
};

enum class Needs : uint8_t { kNothing, kLoops, kTwoLoops, kOtherLoops };

// A row per primitive, or per way to use it. The seeds of chains_test.cc depend on the order of rows and draws.
struct Move {
  size_t choices;  // its weight
  Needs needs;
  void (*make)(Chain& c, const Place& at);
};
constexpr Move kMoves[] = {
    {2, Needs::kLoops, [](Chain& c, const Place& at) { c.apply(Split{c.pick(at.loops), c.factors()}); }},
    {1, Needs::kTwoLoops, [](Chain& c, const Place& at) { c.apply(Fuse{c.neighbors(at.loops)}); }},
    {2, Needs::kNothing, [](Chain& c, const Place& at) { c.reorder(at.loops); }},
    {1, Needs::kLoops, [](Chain& c, const Place& at) { c.apply(Parallel{c.pick(at.loops)}); }},
    {1, Needs::kLoops, [](Chain& c, const Place& at) { c.apply(Vectorize{c.pick(at.loops)}); }},
    {1, Needs::kLoops, [](Chain& c, const Place& at) { c.apply(Unroll{c.pick(at.loops)}); }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.apply(CacheRead{at.block, c.side(), c.scope()}); }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.apply(CacheWrite{at.block, 0, c.scope()}); }},
    {2, Needs::kOtherLoops,
     [](Chain& c, const Place& at) {
       c.apply(ComputeAt{at.block, c.pick(at.other_loops), c.below(4) == 0, c.below(3) == 0 ? -2 : -1});
     }},
    {2, Needs::kOtherLoops,
     [](Chain& c, const Place& at) {
       c.apply(ReverseComputeAt{at.block, c.pick(at.other_loops), c.below(4) == 0, c.below(3) == 0 ? -2 : -1});
     }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.apply(ComputeInline{at.block}); }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.apply(ReverseComputeInline{at.block}); }},
    {1, Needs::kLoops, [](Chain& c, const Place& at) { c.apply(DecomposeReduction{at.block, c.pick(at.loops)}); }},
    {1, Needs::kLoops, [](Chain& c, const Place& at) { c.apply(Blockize{c.pick(at.loops), c.below(2) == 0}); }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.apply(AddUnitLoop{at.block}); }},
    {1, Needs::kNothing,
     [](Chain& c, const Place& at) {
       if (Buffer buffer = c.accessed(at.block); !c.is_param(buffer))
         c.apply(TransformLayout{at.block, buffer->name.c_str(), c.map_of(buffer_type(buffer).shape.size()),
                                 c.below(2) ? AttrValue() : AttrValue(2)});
     }},
    {1, Needs::kLoops, [](Chain& c, const Place& at) { c.apply(Rfactor{c.pick(at.loops), c.side()}); }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.change_scope(at.block); }},
    {1, Needs::kNothing,
     [](Chain& c, const Place& at) {
       // Wider, so that nothing is lost.
       if (c.dtype_of_first_write(at.block) == kFloat32) c.apply(UnsafeSetDtype{at.block, 0, kFloat64});
     }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.merge(at.blocks); }},
    {1, Needs::kLoops, [](Chain& c, const Place& at) { c.apply(LoopPartition{c.pick(at.loops), c.factors()}); }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.apply(CacheInplace{at.block, 0, "local"}); }},
    {1, Needs::kNothing,
     [](Chain& c, const Place& at) { c.apply(Reindex{at.block, {c.below(2) ? "read" : "write", c.side()}}); }},
    {1, Needs::kNothing,
     [](Chain& c, const Place& at) {
       if (c.below(2)) {
         c.apply(ReindexCacheRead{at.block, c.side(), "global", c.map_of(c.axes(at.block))});
       } else {
         c.apply(ReindexCacheWrite{at.block, 0, "global", c.map_of(c.axes(at.block))});
       }
     }},
    {1, Needs::kNothing,
     [](Chain& c, const Place& at) { c.apply(CacheIndex{at.block, "global", static_cast<int64_t>(c.below(3))}); }},
    {1, Needs::kLoops,
     [](Chain& c, const Place& at) { c.apply(ReadAt{c.pick(at.loops), at.block, c.side(), "local"}); }},
    {1, Needs::kLoops, [](Chain& c, const Place& at) { c.apply(WriteAt{c.pick(at.loops), at.block, 0, "local"}); }},
    {1, Needs::kNothing,
     [](Chain& c, const Place& at) { c.apply(TransformBlockLayout{at.block, c.map_of(c.axes(at.block))}); }},
    {1, Needs::kLoops, [](Chain& c, const Place& at) { c.apply(DecomposePadding{at.block, c.pick(at.loops)}); }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.pad(at.block); }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.apply(FuseReductionEpilogue{at.block, at.other}); }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.apply(DeferFactors{at.block}); }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.blockize_pair(at.blocks); }},
    {1, Needs::kLoops,
     [](Chain& c, const Place& at) {
       LoopRV loop = c.pick(at.loops);
       Exprs tile = c.apply(SamplePerfectTile{loop, 2 + c.side(), 8});
       c.apply(Split{loop, Factors(tile.begin(), tile.end())});
     }},
    {1, Needs::kLoops,
     [](Chain& c, const Place& at) {
       LoopRV loop = c.pick(at.loops);
       Exprs tile = c.apply(SamplePartitionedTile{loop, 3, 1, 2});
       c.apply(Split{loop, Factors(tile.begin(), tile.end())});
     }},
    {1, Needs::kNothing,
     [](Chain& c, const Place& at) {
       if (c.below(2)) {
         c.apply(ComputeAt{at.block, c.apply(SampleComputeLocation{at.block})});
       } else if (!at.loops.empty()) {
         c.apply(Split{c.pick(at.loops), {std::nullopt, c.apply(SampleCategorical{{2, 4, 8}, {0.5, 0.25, 0.25}})}});
       }
     }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.apply(RollingBuffer{at.block, 0}); }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.roll(at.block); }},
    {1, Needs::kNothing, [](Chain& c, const Place& at) { c.extend(at.block); }},
};

bool can_make(const Place& at, Needs needs) {
  switch (needs) {
    case Needs::kNothing:
      return true;
    case Needs::kLoops:
      return !at.loops.empty();
    case Needs::kTwoLoops:
      return at.loops.size() >= 2;
    case Needs::kOtherLoops:
      return !at.other_loops.empty();
  }
  return false;
}

void Chain::step() {
  Place at;
  at.blocks = all_blocks();
  at.block = pick(at.blocks);
  at.loops = apply(GetLoops{at.block});
  at.other = pick(at.blocks);
  at.other_loops = apply(GetLoops{at.other});
  size_t choices = 0;
  for (const Move& move : kMoves) choices += move.choices;
  size_t choice = below(choices);
  const Move* move = kMoves;
  while (choice >= move->choices) choice -= (move++)->choices;
  if (can_make(at, move->needs)) move->make(*this, at);
}

Tensor random_tensor(const Buffer& buffer, const std::vector<int64_t>& shape, std::mt19937& random) {
  DType dtype = buffer_type(buffer).dtype;
  Tensor tensor = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    // Small whole numbers: sums are exact in any order.
    int64_t number = std::uniform_int_distribution<int64_t>(dtype.is_uint() ? 0 : -6, 6)(random);
    dtype.is_float() ? tensor.set_double(i, static_cast<double>(number)) : tensor.set_int(i, number);
  }
  return tensor;
}

struct Data {
  std::vector<Tensor> tensors;  // inputs, then outputs
  std::vector<int64_t> scalars;
};

Data make_data(const PrimFuncRef& function, const std::map<std::string, int64_t>& sizes, uint32_t seed) {
  std::mt19937 random(seed);
  VarMap dims;
  Data data;
  for (const VarRef& var : scalar_arguments(function)) {
    dims.emplace(var.get(), int_imm(sizes.at(var->name), dtype_of(var)));
    data.scalars.push_back(sizes.at(var->name));
  }
  for (const Buffer& buffer : buffer_params(function)) {
    std::vector<int64_t> shape;
    for (const Expr& dim : buffer_type(buffer).shape) shape.push_back(*as_int(simplify(substitute(dim, dims))));
    data.tensors.push_back(random_tensor(buffer, shape, random));
  }
  return data;
}

Data copy(const Data& data) {
  Data result = data;
  for (Tensor& tensor : result.tensors) {
    Tensor fresh = Tensor::empty(tensor.shape(), tensor.dtype());
    std::memcpy(fresh.raw(), tensor.raw(), static_cast<size_t>(tensor.bytes()));
    tensor = fresh;
  }
  return result;
}

std::string compare(const Data& expected, const Data& got) {
  for (size_t t = 0; t < expected.tensors.size(); ++t) {
    const Tensor &a = expected.tensors[t], &b = got.tensors[t];
    if (same_contents(a, b)) continue;
    for (int64_t i = 0; i < a.size(); ++i) {
      double x = a.as_double(i), y = b.as_double(i);
      bool equal = x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= 1e-4 * (1 + std::abs(x));
      if (!equal) return fmt::format("tensor {}, element {}: expected {}, got {}", t, i, x, y);
    }
  }
  return "";
}

std::string compare_for(const PrimFuncRef& original, const PrimFuncRef& scheduled, const PrimFuncRef& lowered,
                        const std::optional<codegen::CompiledKernel>& kernel,
                        const std::map<std::string, int64_t>& dims, uint32_t seed, InterpretOptions machine) {
  machine.check_unwritten = false;
  Data given = make_data(original, dims, seed);
  Data expected = copy(given), got = copy(given);
  bool is_empty =
      std::any_of(given.tensors.begin(), given.tensors.end(), [](const Tensor& t) { return t.size() == 0; });
  try {
    interpret(original, expected.tensors, {});
  } catch (const std::exception&) {
    // The nearest of no elements: such a program means nothing for these sizes.
    if (is_empty) return "";
    throw;
  }
  interpret(scheduled, got.tensors, {}, machine);
  std::string problem = compare(expected, got);
  if (!problem.empty()) return problem;
  got = copy(given);
  std::vector<Tensor> flat;
  for (const Tensor& tensor : got.tensors) flat.push_back(tensor.reshaped({tensor.size()}));
  interpret(lowered, flat, got.scalars, machine);
  problem = compare(expected, got);
  if (!problem.empty()) return "lowered: " + problem + "\n" + print_function("lowered", lowered);
  if (!kernel) return "";
  got = copy(given);
  std::vector<void*> pointers;
  for (Tensor& tensor : got.tensors) pointers.push_back(tensor.raw());
  codegen::RunResult result = kernel->run(pointers, got.scalars, 2);
  problem = result.status != 0 ? "it fails: " + result.error : compare(expected, got);
  return problem.empty() ? "" : "machine code: " + problem;
}

}  // namespace

void apply_random_chain(Schedule& schedule, int length, uint32_t seed) {
  Chain chain(schedule, seed);
  for (int tries = 0; tries < 3 * length && chain.steps() < length; ++tries) {
    try {
      chain.step();
    } catch (const CompileError&) {
    }
  }
  chain.unroll_some();
}

bool runs_here(const PrimFuncRef& function) {
  try {
    codegen::CompiledKernel kernel(lower_program(function));
    return true;
  } catch (const CompileError& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
    return false;
  }
}

std::string compare_programs(const PrimFuncRef& original, const PrimFuncRef& scheduled,
                             const std::vector<std::map<std::string, int64_t>>& sizes, uint32_t seed,
                             const ChainOptions& options) {
  // Some with checks, which find nothing in a right program and change none of its results.
  Target target = options.target ? codegen::parse_target(options.target) : Target{};
  PrimFuncRef lowered = lower_program(scheduled, {.check_bounds = seed % 4 == 0}, target);
  bool is_scalable = !same_node(with_vscale(lowered, 1), lowered);
  InterpretOptions machine{.max_steps = options.max_steps, .reverse_parallel_loops = true, .vscale = 1 << seed % 3};
  std::optional<codegen::CompiledKernel> kernel;
  // LLVM's passes take most of the time; the product's own run for every fifth chain.
  std::vector<std::string> here = codegen::runnable_targets();
  bool runs = options.target && std::ranges::count(here, std::string_view(options.target));
  if (options.compile && !is_scalable)
    kernel.emplace(lowered, runs ? options.target : "host", seed % 5 == 1 ? 2 : kLightest);
  for (const std::map<std::string, int64_t>& dims : sizes) {
    std::string problem = compare_for(original, scheduled, lowered, kernel, dims, seed, machine);
    if (!problem.empty()) {
      auto dim = [](const auto& entry) { return fmt::format("{} = {}", entry.first, entry.second); };
      return fmt::format("with {}: {}", joined(dims, dim), problem);
    }
  }
  return "";
}

ChainResult try_chain(const TestProgram& program, uint32_t seed, const ChainOptions& options) {
  PrimFuncRef function = options.int32 ? counted_in(program.function, kInt32) : program.function;
  Schedule schedule(function, {.show_program = false});
  PrimFuncRef scheduled = function;
  std::string problem;
  try {
    apply_random_chain(schedule, options.length, seed);
    scheduled = schedule.function();
    Diagnostics diagnostics;
    IRModule module{{{"main", scheduled}}, {}, {}};
    verify(module, op_table(), diagnostics);
    for (Ranges wanted : {Ranges::kAxes, Ranges::kIndices}) verify_ranges(module, wanted, diagnostics);
    diagnostics.throw_if_errors();
    for (const Diagnostic& warning : diagnostics.all()) {
      if (warning.message.find("[T21]") != std::string::npos) throw CompileError({warning});
    }
    problem = compare_programs(function, scheduled, program.sizes, seed, options);
    if (problem.empty()) {
      // The trace as text does the same again.
      std::string text = schedule.trace().simplified().text();
      Schedule again(function, {.show_program = false});
      run_schedule_text(again, text, "trace.py");
      if (!structural_equal(again.function(), scheduled)) problem = "the printed trace gives another program";
      Schedule from_json(function, {.show_program = false});
      Trace::from_json(schedule.trace().simplified().json()).replay(from_json);
      if (!structural_equal(from_json.function(), scheduled)) problem = "the trace from JSON gives another program";
    }
  } catch (const std::exception& error) {
    problem = error.what();
    // Said by the schedule's lowering, at run time, for sizes with a sum of nothing.
    if (problem.find("to initialize are not known") != std::string::npos) return {};
    if (problem.find("the step limit is reached") != std::string::npos) return {.problem = "", .gave_up = true};
  }
  if (problem.empty()) return {};
  return {.problem = fmt::format("{}{} (seed {}): {}\n{}\n{}", program.name, options.int32 ? " in int32" : "", seed,
                                 problem, schedule.trace().simplified().text(), print_function("main", scheduled))};
}

}  // namespace relaxc::test
