// The primitives of TensorIR schedules: one row each, name, result, params (with defaults, as C++ and as Python spell
// them), doc. Declared as methods of Schedule by this table; primitives/<name>.cc defines each. Recording, replay, the
// text form, JSON and the generated documentation read the table. Names and params are TVM's.
//
// To add one: a row here, and the file with the method, whose first line makes a Step.
#pragma once

// clang-format off
#define RELAXC_SCHEDULE_PRIMITIVES(X)                                                                                    \
  X(get_block, BlockRV, (std::string name, std::optional<std::string> func_name = {}),                                   \
    "the block of that name, or of that operator, in the program worked on or named")                                            \
  X(get_loops, Loops, (BlockRV block), "the loops around a block up to its scope, outermost first")                      \
  X(get_child_blocks, Blocks, (Place block_or_loop), "the blocks directly inside, in program order")                     \
  X(get_producers, Blocks, (BlockRV block), "the blocks of the scope that write what the block reads")                   \
  X(get_consumers, Blocks, (BlockRV block), "the blocks of the scope that read what the block writes")                   \
  X(get_output_blocks, Blocks, (BlockRV scope_block), "the blocks of a scope that write what is seen outside")           \
  X(split, Loops, (LoopRV loop, Factors factors, bool preserve_unit_iters = true, bool disable_predication = false),     \
    "a loop as a nest whose extents are the factors; one factor may be None. Any extent: a tail is a predicate")         \
  X(fuse, LoopRV, (Variadic loops, bool preserve_unit_iters = true), "a perfect nest as one loop")                       \
  X(reorder, void, (Variadic loops), "the loops, which stand in one chain, in this order")                               \
  X(reorder_block_iter_var, void, (BlockRV block, Ints new_order), "the block's axes in this order")                     \
  X(add_unit_loop, LoopRV, (Place block_or_loop), "a loop of extent 1 around it")                                        \
  X(parallel, void, (LoopRV loop), "iterations run on all threads")                                                      \
  X(vectorize, void, (LoopRV loop), "iterations become lanes of vectors")                                                \
  X(unroll, void, (LoopRV loop), "the body is written out for each iteration")                                           \
  X(bind, void, (LoopRV loop, std::string thread_axis), "iterations are threads of the axis")                            \
  X(cache_read, BlockRV, (BlockRV block, BufferArg read_buffer_index, std::string storage_scope = "global",              \
                          Blocks consumer_blocks = {}),                                                                  \
    "a copy of what the block reads, which it (or the consumers named) reads instead; gives the copying block")          \
  X(cache_write, BlockRV, (BlockRV block, BufferArg write_buffer_index, std::string storage_scope = "global",            \
                           Blocks consumer_blocks = {}),                                                                 \
    "the block writes a buffer of its own, which is copied afterwards; gives the copying block")                         \
  X(compute_at, void, (BlockRV block, LoopRV loop, bool preserve_unit_loops = false, int64_t index = -1),                \
    "a producer into its consumers' loop, where it makes what one iteration reads")                                      \
  X(reverse_compute_at, void, (BlockRV block, LoopRV loop, bool preserve_unit_loops = false, int64_t index = -1),        \
    "a consumer into its producers' loop, where it takes what one iteration writes")                                     \
  X(compute_inline, void, (BlockRV block), "an elementwise producer into its consumers")                                 \
  X(reverse_compute_inline, void, (BlockRV block), "an elementwise consumer into its only producer")                     \
  X(merge_epilogue, Blocks, (BlockRV block),                                                                             \
    "the elementwise blocks behind the block, inlined into the last; gives that one, or none. Not in TVM")               \
  X(decompose_reduction, BlockRV, (BlockRV block, LoopRV loop), "the init as a block of its own before the loop")        \
  X(blockize, BlockRV, (Subtree target, bool preserve_unit_iters = true), "a block around a subtree")                     \
  X(tensorize, void, (Place block_or_loop, std::string tensor_intrin, bool preserve_unit_iters = true),                  \
    "the subtree as the instruction whose description it matches")                                                       \
  X(annotate, void, (Place block_or_loop, std::string ann_key, AttrValue ann_val), "a note for later passes")            \
  X(unannotate, void, (Place block_or_loop, std::string ann_key), "takes the note away")                                 \
  X(enter_postproc, void, (), "what follows is postprocessing of a trace")
// clang-format on
