// <relaxc/primitives.h>: the table of primitives, an #include and a row for each. Code that uses a few of them includes
// their headers instead, and is not compiled again when a primitive is added.
#pragma once
#include "tir/primitives/add_unit_loop.h"
#include "tir/primitives/annotate.h"
#include "tir/primitives/annotate_buffer_access.h"
#include "tir/primitives/bind.h"
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
#include "tir/primitives/enter_postproc.h"
#include "tir/primitives/extend_axis.h"
#include "tir/primitives/fuse.h"
#include "tir/primitives/fuse_reduction_epilogue.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_child_blocks.h"
#include "tir/primitives/get_consumers.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/get_output_blocks.h"
#include "tir/primitives/get_producers.h"
#include "tir/primitives/loop_partition.h"
#include "tir/primitives/merge.h"
#include "tir/primitives/merge_epilogue.h"
#include "tir/primitives/pad_einsum.h"
#include "tir/primitives/parallel.h"
#include "tir/primitives/read_at.h"
#include "tir/primitives/reindex.h"
#include "tir/primitives/reindex_cache_read.h"
#include "tir/primitives/reindex_cache_write.h"
#include "tir/primitives/reorder.h"
#include "tir/primitives/reorder_block_iter_var.h"
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
#include "tir/primitives/tensorize.h"
#include "tir/primitives/transform_block_layout.h"
#include "tir/primitives/transform_layout.h"
#include "tir/primitives/unannotate.h"
#include "tir/primitives/unroll.h"
#include "tir/primitives/unsafe_set_dtype.h"
#include "tir/primitives/vectorize.h"
#include "tir/primitives/write_at.h"

namespace relaxc::scheduling {

template <class... Ps>
struct Steps {};

// In the order of --list-primitives.
// clang-format off
using AllPrimitives = Steps<
    GetBlock,
    GetLoops,
    GetChildBlocks,
    GetProducers,
    GetConsumers,
    GetOutputBlocks,
    Split,
    Fuse,
    Reorder,
    ReorderBlockIterVar,
    AddUnitLoop,
    Parallel,
    Vectorize,
    Unroll,
    BindThread,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ReverseComputeAt,
    ComputeInline,
    ReverseComputeInline,
    RollingBuffer,
    MergeEpilogue,
    DecomposeReduction,
    Blockize,
    Tensorize,
    SetScope,
    StorageAlign,
    UnsafeSetDtype,
    AnnotateBufferAccess,
    TransformLayout,
    Rfactor,
    Merge,
    LoopPartition,
    CacheInplace,
    Reindex,
    ReindexCacheRead,
    ReindexCacheWrite,
    CacheIndex,
    ReadAt,
    WriteAt,
    TransformBlockLayout,
    DecomposePadding,
    PadEinsum,
    ExtendAxis,
    FuseReductionEpilogue,
    DeferFactors,
    SampleCategorical,
    SamplePerfectTile,
    SamplePartitionedTile,
    SampleComputeLocation,
    Annotate,
    Unannotate,
    EnterPostproc>;
// clang-format on

}  // namespace relaxc::scheduling
