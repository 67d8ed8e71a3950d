// The passes, each with one row, and the pipelines that they form.
#include "passes/pass.h"
#include "tir/lower/lower.h"

namespace relaxc {

// Passes over modules: passes/<name>.cc.
#define RELAXC_MODULE_PASSES(X)                                                                                       \
  X(lambda_lift, "make functions inside of functions functions of the module, which get what they capture")           \
  X(gradient, "add functions with gradients beside those that ask for them (require_grads)")                          \
  X(wrap_programs, "give tensor programs that are run by themselves a graph function that calls them")                \
  X(inline_calls, "write out calls of tensor programs by others, and store the values that programs return")          \
  X(spread_tuples, "write out the items of tuple values that operators and tensor programs take")                     \
  X(decompose, "write operators that stand for several others, or whose size the run decides, as those")              \
  X(decompose_rest, "do that for operators that the user's kernels name and did not take")                            \
  X(fold_known_values, "compute small tensors of integers over dims, such as shapes, and the dims that they give")    \
  X(check_dims, "test at run time what operators and kernels demand of dims and types and nothing proves")            \
  X(recognize, "turn tensor programs that compute convolutions, products or pools into these operators")              \
  X(canonicalize, "apply the table of algebraic and structural rules to the graph until none applies")                \
  X(fold_batch_norm, "turn inference batch norms into a scale and shift, and those into the convolution before")      \
  X(lower_precision, "store what products read in 16 bits (--precision), and let them add up in float32")             \
  X(split_weight_batches, "multiply each matrix of a constant batch of few bits by itself, so that it stays in them") \
  X(pack_quantized, "keep weights of 2, 4 or 8 bits in panels of words, which their products unpack")                 \
  X(move_scales, "scale the left operands of products in place of the right ones, which lie where they are read")     \
  X(thin_products, "write products with few rows or columns as sums along rows, without transposing a matrix")        \
  X(widen_bytes, "keep bytes that products read in 16 bits where the target multiplies these")                        \
  X(choose_layouts, "choose the layout of each value, by the cost of each edge, and write the transforms")            \
  X(pack_weights, "store constant weights of convolutions and products in the order that kernels read them")          \
  X(apply_kernels, "call the user's kernels (--kernels) for the operators and patterns that they implement")          \
  X(fold_constants, "compute what depends on constants only")                                                         \
  X(fold_parameters, "do that, but leave weights in 8 bits for what computes with them")                              \
  X(expand_quantization, "write quantize and dequantize as arithmetic, of which backends know patterns")              \
  X(integer_regions, "compute with the integers of quantized values where that is exact")                             \
  X(lookup_tables, "take bytes that depend on one byte from a table of all results where that is faster")             \
  X(merge_common_subexpressions, "compute equal pure values once")                                                    \
  X(remove_dead_code, "drop bindings and functions that nothing uses")                                                \
  X(find_extremes, "compute the least and the greatest element of a tensor in one kernel")                            \
  X(legalize, "turn each operator into a call_tir of its tensor program")                                             \
  X(compose, "make one tensor program of each Primitive function that a rule names or a pattern found")               \
  X(fuse_attention, "make one tensor program of two products, the softmax between them and what is around that")      \
  X(fuse_cells, "give products in bands, or with several results behind them, all that is computed from them")        \
  X(find_views, "turn kernels that copy memory as it lies into views, or into joins of what other kernels write")     \
  X(fuse, "group call_tirs (elementwise chains, epilogues of reductions) into one tensor program each")               \
  X(exact_sums, "split weights of which two products make more than 16 bits, where the target would clamp these")     \
  X(merge_kernels, "keep one of several equal tensor programs")                                                       \
  X(note_constants, "note which operands of products are constant in all calls, for built-in rules")                  \
  X(rewrite_weights, "compute what schedules make of constant weights alone (layout_rewrite_preproc)")                \
  X(note_extremes, "let kernels note the least and the greatest element that they store, where others look for them") \
  X(fuse_loops, "make one tensor program of each loop whose iterations do nothing but call tensor programs")          \
  X(destination_passing, "allocate each call_tir's outputs explicitly and pass them to the kernel")                   \
  X(place_parts, "allocate joined tensors as a whole, and let kernels write the parts in place")                      \
  X(plan_memory, "place all temporaries in one arena by their lifetimes, with symbolic offsets")

// Passes over one tensor program each, the lowering steps: tir/lower/<name>.cc. Those in Y read figures of the target.
#define RELAXC_LOWERING_STEPS(X, Y)                                                                                \
  X(dense_params, "give strides and offsets of params the values that dense tensors have")                         \
  X(lower_jumps, "turn break, continue and return into conditions")                                                \
  X(expand_builtins, "write builtins that stand for arithmetic as such")                                           \
  X(resolve_views, "access views of whole buffers by the buffers' names")                                          \
  X(run_threads, "turn loops over GPU threads into plain and parallel loops")                                      \
  X(normalize_loops, "let loops count iterations and blocks read their axes, and drop hints that change nothing")  \
  X(promote_indices, "compute indices in int64")                                                                   \
  X(check_lowerable, "refuse programs with constructs that no later step knows")                                   \
  X(explicit_scalars, "pass symbolic dims as scalar params", .expects = expect_destinations)                       \
  X(initialize_empty_reductions, "store the init of reductions whose domain is empty at run time")                 \
  X(align_storage, "give buffers the strides that blocks ask for (storage_align)")                                 \
  X(check_bounds, "assert before accesses that they are in range", .setting = &PassSettings::check_bounds)         \
  X(lower_blocks, "turn blocks into their bodies, with branches for predicates and inits")                         \
  X(simplify_program, "simplify with dims and loop ranges as facts")                                               \
  X(compact_buffers, "move allocations to the innermost loop that fills them, and shrink them to what it touches") \
  X(double_buffer, "fill a buffer for the next iteration before this one's contents are used")                     \
  X(skip_empty_loops, "test before a nest of loops whether the inner ones have iterations")                        \
  X(partition_loops, "cut loops where their conditions change, so that the largest part has none")                 \
  X(guard_tiles, "give unrolled loops at a border of unknown place a copy without conditions")                     \
  X(hoist_conditions, "move conditions that all iterations agree on out of serial loops")                          \
  Y(prefetch, "prefetch where loops ask for it")                                                                   \
  X(flatten_buffers, "make every buffer one-dimensional and dense", .expects = expect_destinations)                \
  Y(tile_registers, "place buffers of scope amx.tmm in matrix registers, and make nests over them instructions")   \
  X(whole_bytes, "run parallel loops serially where two iterations would store in one byte of packed elements")    \
  Y(find_vectors, "vectorize serial loops whose iterations are independent and store neighbouring elements")       \
  Y(unroll_loops, "unroll loops that pragma_auto_unroll_max_step leaves few enough steps")                         \
  Y(join_vectors, "copy neighbouring vectors that are shorter than a register as one")                             \
  Y(whole_registers, "split vectorized loops into as many lanes as a register has, and a rest")                    \
  X(vectorize_loops, "turn vectorized loops into vector statements")                                               \
  Y(transpose_tiles, "read the rows of a tile where vectors are its columns, and transpose it in registers")       \
  Y(promote_accumulators, "keep the results of a loop's reduction in registers while it runs")                     \
  X(narrow_indices, "compute indices in int32 where that is exact and faster")                                     \
  X(share_storage, "let buffers that are not alive at the same time share memory")                                 \
  X(merge_subexpressions, "compute subexpressions that occur several times once, where that shortens the program")

#define X(name, doc) IRModule name(IRModule module, PassContext& context);
RELAXC_MODULE_PASSES(X)
#undef X
#define X(name, ...) PrimFuncRef name(const PrimFuncRef& program);
#define Y(name, ...) PrimFuncRef name(const PrimFuncRef& program, const Target& target);
RELAXC_LOWERING_STEPS(X, Y)
#undef X
#undef Y
PrimFuncRef count_work(const std::string& name, const PrimFuncRef& program, const PassContext& context);
PrimFuncRef apply_rules(const std::string& name, const PrimFuncRef& program, const PassContext& context);
void expect_rules(const IRModule& module, const PassContext& context);         // apply_rules.cc
void expect_destinations(const IRModule& module, const PassContext& context);  // destination_passing.cc

namespace {

template <PrimFuncRef (*step)(const PrimFuncRef&)>
PrimFuncRef lowering_step(const std::string&, const PrimFuncRef& program, const PassContext&) {
  return step(program);
}
template <PrimFuncRef (*step)(const PrimFuncRef&, const Target&)>
PrimFuncRef lowering_step(const std::string&, const PrimFuncRef& program, const PassContext& context) {
  return step(program, context.target);
}

using Step = PrimFuncRef (*)(const std::string&, const PrimFuncRef&, const PassContext&);

}  // namespace

const std::vector<Pass>& passes() {
  static const std::vector<Pass> kPasses = {
#define X(pass, text) {.name = #pass, .doc = text, .on_module = pass},
      RELAXC_MODULE_PASSES(X)
#undef X
          {.name = "count_work",
           .doc = "note the operations and accesses of each tensor program as formulas, for profiles",
           .on_program = count_work},
      {.name = "apply_rules",
       .doc = "give every unscheduled tensor program parallel, vectorized, register-tiled loops",
       .on_program = apply_rules,
       .expects = expect_rules},
#define X(pass, text, ...) {.name = #pass, .doc = text, .on_program = Step(lowering_step<pass>), __VA_ARGS__},
      RELAXC_LOWERING_STEPS(X, X)
#undef X
  };
  return kPasses;
}

const std::vector<Pipeline>& pipelines() {
  static const std::vector<Pipeline> kPipelines = {
      {"default", "from operators to kernels and planned memory", {"simplify", "kernels", "lower"}},
      // A compilation runs these before all others.
      {"entries",
       "functions with gradients, a graph function for each program that is run by itself, and none inside of another",
       {"gradient", "inline_calls", "wrap_programs", "lambda_lift"}},
      // clang-format off
      {"simplify",
       "the graph made small, still operators",
       {"lambda_lift", "inline_calls", "spread_tuples", "decompose", "fold_known_values", "check_dims", "recognize",
        "canonicalize", "fold_batch_norm", "fold_parameters", "apply_kernels", "decompose_rest", "integer_regions",
        "lookup_tables", "split_weight_batches", "fold_constants", "lower_precision", "pack_quantized", "move_scales",
        "thin_products", "widen_bytes", "choose_layouts", "remove_dead_code",
        "pack_weights", "fold_constants", "canonicalize",
        "merge_common_subexpressions", "remove_dead_code"}},
      // clang-format on
      // Equal programs are merged before they are scheduled: the work is done once for equal layers.
      {"kernels",
       "operators to scheduled tensor programs",
       {"inline_calls",    "spread_tuples",    "find_extremes", "legalize",       "compose",
        "fuse_attention",  "remove_dead_code", "fuse_cells",    "find_views",     "fuse",
        "exact_sums",      "remove_dead_code", "merge_kernels", "note_constants", "schedule",
        "rewrite_weights", "merge_kernels",    "note_extremes", "merge_kernels",  "fuse_loops",
        "remove_dead_code"}},
      {"schedule",
       "tensor programs in normal form, scheduled",
       {"dense_params", "lower_jumps", "expand_builtins", "resolve_views", "run_threads", "normalize_loops",
        "promote_indices", "check_lowerable", "count_work", "apply_rules"}},
      {"lower",
       "call_tir to kernels and planned memory",
       {"destination_passing", "place_parts", "plan_memory", "lower_kernels", "remove_dead_code"}},
      // Indices are int64 before anything else: loops that count in int32 would hide from the vectorizer, behind
      // casts, that lanes are neighbours.
      // clang-format off
      {"lower_kernels",
       "tensor programs to flat buffers, plain loops and vectors, for CPUs",
       {"dense_params", "lower_jumps", "expand_builtins", "resolve_views", "run_threads",
        "normalize_loops", "promote_indices", "check_lowerable", "explicit_scalars",
        "initialize_empty_reductions", "align_storage", "check_bounds", "lower_blocks",
        "simplify_program", "compact_buffers", "double_buffer", "skip_empty_loops", "partition_loops",
        "guard_tiles", "hoist_conditions", "prefetch", "flatten_buffers", "simplify_program",
        "tile_registers", "whole_bytes",
        "find_vectors", "unroll_loops", "join_vectors", "whole_registers", "vectorize_loops",
        "transpose_tiles",
        "promote_accumulators",
        "narrow_indices", "share_storage", "merge_subexpressions"}},
      // clang-format on
  };
  return kPipelines;
}

}  // namespace relaxc
