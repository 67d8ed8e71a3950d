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
  X(rolling_buffer, void, (BlockRV block, BufferArg write_buffer_index),                                                 \
    "what a block makes for its readers' loop, in windows that overlap, stays in a ring: only new rows are made")        \
  X(merge_epilogue, Blocks, (BlockRV block),                                                                             \
    "the elementwise blocks behind the block, inlined into the last; gives that one, or none. Not in TVM")               \
  X(decompose_reduction, BlockRV, (BlockRV block, LoopRV loop), "the init as a block of its own before the loop")        \
  X(blockize, BlockRV, (Subtree target, bool preserve_unit_iters = true), "a block around a subtree")                    \
  X(tensorize, void, (Place block_or_loop, std::string tensor_intrin, bool preserve_unit_iters = true),                  \
    "the subtree as the instruction whose description it matches")                                                       \
  X(set_scope, void, (BlockRV block, BufferArg buffer_index, std::string storage_scope),                                 \
    "the memory of a buffer that the block writes is of that scope")                                                     \
  X(storage_align, void, (BlockRV block, int64_t buffer_index, int64_t axis, int64_t factor, int64_t offset),            \
    "the stride of a dim of what the block writes is offset modulo factor")                                              \
  X(unsafe_set_dtype, void, (BlockRV block, BufferArg buffer_index, DType dtype),                                        \
    "a buffer that the block writes holds values of another dtype, converted at each access")                            \
  X(annotate_buffer_access, void, (BlockRV block, int64_t buffer_index, std::string buf_type,                            \
                                   IndexMap gen_new_ranges),                                                             \
    "the region of a read or write is as said: a position or (begin, end) per dim, from the block's axes. Not checked: one that is too small makes results wrong")               \
  X(transform_layout, void, (BlockRV block, BufferArg buffer, IndexMap index_map, AttrValue pad_value = {},              \
                             bool assume_injective_transform = false),                                                   \
    "elements of the buffer stand elsewhere: every access goes through the map. A param's type changes with it, so "     \
    "callers must pass the new layout")                                                                                  \
  X(rfactor, BlockRV, (LoopRV loop, int64_t factor_axis),                                                                \
    "a reduction in two stages: the loop's iterations reduce side by side, a second block reduces what they made")       \
  X(merge, LoopRV, (Variadic loops),                                                                                     \
    "loops side by side, or the nests down to them, as one that does all of their work")                                 \
  X(loop_partition, Loops, (LoopRV loop, Factors factors, bool preserve_unit_iters = true),                              \
    "a loop as loops one after the other of so many iterations each; one number may be None")                            \
  X(cache_inplace, Blocks, (BlockRV block, BufferArg read_buffer_index, std::string storage_scope),                      \
    "a block that updates a buffer works on a copy, taken before and brought back after; gives both copying blocks")     \
  X(reindex, BlockRV, (BlockRV block, BufferArg buffer),                                                                 \
    "a copy of what the block reads or writes, laid out by its axes; gives the copying block")                           \
  X(reindex_cache_read, BlockRV, (BlockRV block, BufferArg read_buffer_index, std::string storage_scope,                 \
                                  IndexMap index_map),                                                                   \
    "the same for a read, laid out by the map of the block's axes")                                                      \
  X(reindex_cache_write, BlockRV, (BlockRV block, BufferArg write_buffer_index, std::string storage_scope,               \
                                   IndexMap index_map),                                                                  \
    "the same for a write")                                                                                              \
  X(cache_index, Blocks, (BlockRV block, std::string storage_scope, int64_t cse_thresh = 0),                             \
    "index expressions of loads that occur so often, computed beforehand into buffers; gives the computing blocks")      \
  X(read_at, BlockRV, (LoopRV loop, BlockRV block, BufferArg read_buffer_index, std::string storage_scope),              \
    "in each iteration a copy of what the block reads in it")                                                            \
  X(write_at, BlockRV, (LoopRV loop, BlockRV block, BufferArg write_buffer_index, std::string storage_scope),            \
    "what the block writes in an iteration goes to memory of its own and is copied at the end of it")                    \
  X(transform_block_layout, void, (BlockRV block, IndexMap index_map),                                                   \
    "the block's axes, and new loops for them, run over the images of the map, which is one to one and onto")            \
  X(decompose_padding, BlockRV, (BlockRV block, LoopRV loop),                                                            \
    "a block that copies or pads as one that fills with the pad value, before the loop, and one that copies")            \
  X(pad_einsum, void, (BlockRV block, Ints padding),                                                                     \
    "an einsum over axes whose extents are padded to multiples; operands and result go through padded copies")           \
  X(fuse_reduction_epilogue, void, (BlockRV reduction_block, BlockRV epilogue_block),                                    \
    "a summand that is added to each result of a sum becomes the sum's init")                                            \
  X(sample_categorical, Expr, (Ints candidates, Doubles probs), "one of the numbers")                                    \
  X(sample_perfect_tile, Exprs, (LoopRV loop, int64_t n, int64_t max_innermost_factor = 16),                             \
    "n factors whose product is the loop's extent")                                                                      \
  X(sample_partitioned_tile, Exprs, (LoopRV loop, int64_t n, int64_t partition_pos = 0, int64_t innerpart_factor = 1),   \
    "the same; the product of the factors from partition_pos on is a multiple of innerpart_factor")                      \
  X(sample_compute_location, LoopRV, (BlockRV block), "a loop that the block may be computed at")                        \
  X(annotate, void, (Place block_or_loop, std::string ann_key, AttrValue ann_val), "a note for later passes")            \
  X(unannotate, void, (Place block_or_loop, std::string ann_key), "takes the note away")                                 \
  X(enter_postproc, void, (), "what follows is postprocessing of a trace")
// clang-format on
