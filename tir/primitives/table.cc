// The table of primitives: an #include and a row for each. The only place that derives rows from fields().
#include "ir/visit.h"
#include "tir/primitives/add_unit_loop.h"
#include "tir/primitives/annotate.h"
#include "tir/primitives/annotate_buffer_access.h"
#include "tir/primitives/bind.h"
#include "tir/primitives/blockize.h"
#include "tir/primitives/cache_index.h"
#include "tir/primitives/cache_inplace.h"
#include "tir/primitives/cache_read.h"
#include "tir/primitives/cache_write.h"
#include "tir/primitives/codec.h"
#include "tir/primitives/compute_at.h"
#include "tir/primitives/compute_inline.h"
#include "tir/primitives/decompose_padding.h"
#include "tir/primitives/decompose_reduction.h"
#include "tir/primitives/enter_postproc.h"
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

namespace {

template <class P>
constexpr size_t kNumArguments = std::tuple_size_v<decltype(P::fields())>;

template <class P>
std::shared_ptr<const void> decode_step(const AttrList& values) {
  CHECK(values.size() == kNumArguments<P>, "expected {} values for '{}', got {}", kNumArguments<P>, P::kName,
        values.size());
  auto step = std::make_shared<P>();
  [[maybe_unused]] size_t i = 0;
  for_each_field<P>([&](const auto& f) {
    using Member = typename std::remove_cvref_t<decltype(f)>::Member;
    const AttrValue& value = values[i++];
    try {
      *step.*f.member = Codec<Member>::decode(value);
    } catch (const WrongKind& wrong) {
      const Expr* e = value.as<Expr>();
      fail(e ? e->span() : Span(), "{}: argument '{}' is {}, expected {}", P::kName, f.name, relaxc::to_string(value),
           wrong.expected);
    }
  });
  return step;
}

template <class P>
AttrList encode_step(const void* step, const Workspace& workspace) {
  [[maybe_unused]] const P& given = *static_cast<const P*>(step);
  auto encode = [](const P& p) {
    AttrList values;
    for_each_field<P>([&](const auto& f) {
      using Member = typename std::remove_cvref_t<decltype(f)>::Member;
      values.push_back(Codec<Member>::encode(p.*f.member));
    });
    return values;
  };
  if constexpr (requires { given.recorded(workspace); }) return encode(given.recorded(workspace));
  return encode(given);
}

std::vector<VarRef> variables(const BlockRV& block) { return {block.var}; }
std::vector<VarRef> variables(const LoopRV& loop) { return {loop.var}; }
std::vector<VarRef> variables(const Expr& number) { return {cast<Var>(number)}; }
template <class T>
std::vector<VarRef> variables(const std::vector<T>& items) {
  std::vector<VarRef> result;
  for (const T& item : items) result.push_back(variables(item)[0]);
  return result;
}

template <class P>
std::vector<VarRef> apply_step(const void* step, Step& context) {
  const P& given = *static_cast<const P*>(step);
  if constexpr (std::is_void_v<typename P::Result>) {
    given.apply(context);
    return {};
  } else {
    return variables(given.apply(context));
  }
}

template <class R>
constexpr ResultKind kResultKind = ResultKind::kNone;
template <>
constexpr ResultKind kResultKind<BlockRV> = ResultKind::kBlock;
template <>
constexpr ResultKind kResultKind<LoopRV> = ResultKind::kLoop;
template <>
constexpr ResultKind kResultKind<Expr> = ResultKind::kNumber;
template <>
constexpr ResultKind kResultKind<Blocks> = ResultKind::kBlocks;
template <>
constexpr ResultKind kResultKind<Loops> = ResultKind::kLoops;
template <>
constexpr ResultKind kResultKind<Exprs> = ResultKind::kNumbers;

template <class P>
Primitive row() {
  static_assert(lists_all_members<P>(), "an argument is missing in fields()");
  Primitive result{P::kName,       P::kDoc, kResultKind<typename P::Result>, {}, &decode_step<P>, &encode_step<P>,
                   &apply_step<P>, nullptr};
  [[maybe_unused]] const P defaults{};
  for_each_field<P>([&](const auto& f) {
    using Member = typename std::remove_cvref_t<decltype(f)>::Member;
    Param param{f.name, f.doc, Codec<Member>::kKind, {}};
    if (!f.is_required) param.otherwise = Codec<Member>::encode(defaults.*f.member);
    result.params.push_back(std::move(param));
  });
  if constexpr (requires(const P& p, Step& context) { p.map_rank(context); })
    result.map_rank = [](const void* step, Step& context) { return static_cast<const P*>(step)->map_rank(context); };
  return result;
}

}  // namespace

std::span<const Primitive> primitives() {
  static const std::vector<Primitive> kRows = {
      row<GetBlock>(),
      row<GetLoops>(),
      row<GetChildBlocks>(),
      row<GetProducers>(),
      row<GetConsumers>(),
      row<GetOutputBlocks>(),
      row<Split>(),
      row<Fuse>(),
      row<Reorder>(),
      row<ReorderBlockIterVar>(),
      row<AddUnitLoop>(),
      row<Parallel>(),
      row<Vectorize>(),
      row<Unroll>(),
      row<BindThread>(),
      row<CacheRead>(),
      row<CacheWrite>(),
      row<ComputeAt>(),
      row<ReverseComputeAt>(),
      row<ComputeInline>(),
      row<ReverseComputeInline>(),
      row<RollingBuffer>(),
      row<MergeEpilogue>(),
      row<DecomposeReduction>(),
      row<Blockize>(),
      row<Tensorize>(),
      row<SetScope>(),
      row<StorageAlign>(),
      row<UnsafeSetDtype>(),
      row<AnnotateBufferAccess>(),
      row<TransformLayout>(),
      row<Rfactor>(),
      row<Merge>(),
      row<LoopPartition>(),
      row<CacheInplace>(),
      row<Reindex>(),
      row<ReindexCacheRead>(),
      row<ReindexCacheWrite>(),
      row<CacheIndex>(),
      row<ReadAt>(),
      row<WriteAt>(),
      row<TransformBlockLayout>(),
      row<DecomposePadding>(),
      row<PadEinsum>(),
      row<FuseReductionEpilogue>(),
      row<SampleCategorical>(),
      row<SamplePerfectTile>(),
      row<SamplePartitionedTile>(),
      row<SampleComputeLocation>(),
      row<Annotate>(),
      row<Unannotate>(),
      row<EnterPostproc>(),
  };
  return kRows;
}

}  // namespace relaxc::scheduling
