#pragma once
#include <algorithm>

#include "tir/analysis/annotations.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct AnnotateBufferAccess {
  BlockRV block;
  int64_t buffer_index;
  std::string buf_type;
  IndexMap gen_new_ranges;

  static constexpr PrimitiveInfo kInfo{
      "annotate_buffer_access",
      "sets the region of a read or write. It is not checked: one that is too small makes results wrong"};
  static constexpr auto fields() {
    return list(required<&AnnotateBufferAccess::block>("accesses the buffer"),
                required<&AnnotateBufferAccess::buffer_index>("the position among its reads or writes"),
                required<&AnnotateBufferAccess::buf_type>("\"read\" or \"write\""),
                required<&AnnotateBufferAccess::gen_new_ranges>(
                    "from the block's axes, a position or (begin, end) for each dim"));
  }
  // From now on the region stays as it is given here: a position, or (begin, end), for each dim.
  void apply(scheduling::Step& step) const {
    auto* block = step.block(this->block);
    if (buf_type != "read" && buf_type != "write")
      step.refuse({block}, "buf_type is '{}', expected 'read' or 'write'", buf_type);
    bool is_read = buf_type == "read";
    Buffer buffer = step.buffer(block, static_cast<int>(buffer_index),
                                is_read ? scheduling::AccessKind::kRead : scheduling::AccessKind::kWrite);
    step.require_rank(gen_new_ranges, block);
    size_t rank = buffer_type(buffer).shape.size(), results = gen_new_ranges.map->results.size();
    if (results != rank && results != 2 * rank)
      step.refuse({block}, "the map gives {} numbers, '{}' has {} dims", results, buffer, rank);
    std::vector<Expr> ends = gen_new_ranges(axis_vars(block));
    std::vector<Range> ranges;
    for (size_t d = 0; d < rank; ++d) {
      bool is_position = results == rank;
      const Expr &begin = is_position ? ends[d] : ends[2 * d], one = int_imm(1, dtype_of(begin));
      ranges.push_back({begin, is_position ? one : block->tree->facts.simplify(ends[2 * d + 1] - begin)});
    }
    auto& regions = is_read ? block->block->reads : block->block->writes;
    regions[static_cast<size_t>(buffer_index)].ranges = ranges;
    const char* key = is_read ? annotation<"explicit_read_region">() : annotation<"explicit_write_region">();
    AttrList marked;
    if (const AttrValue* before = block->block->annotations.find(key)) marked = *before->as<AttrList>();
    if (std::ranges::find(marked, AttrValue(buffer_index)) == marked.end()) marked.push_back(buffer_index);
    block->block->annotations.set(key, marked);
    refresh_regions_above(block);
  }
  size_t map_rank(scheduling::Step& step) const { return step.block(block)->axes().size(); }
};

}  // namespace relaxc
