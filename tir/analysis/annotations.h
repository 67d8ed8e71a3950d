// The annotations of loops, blocks and allocations: the name of each, its value, and its reader. Code that reads or
// sets an annotation names its row here. `annotate` refuses a name that is not in the table. In a program that is
// compiled such a name is ignored, since it may belong to another tool, unless it looks like a misspelt one of these.
#pragma once
#include <string>

#include "ir/attrs.h"

namespace relaxc {

enum class AnnotatedPlace : uint8_t { kLoop, kBlock, kAllocation, kAnywhere };
enum class AnnotationValue : uint8_t { kFlag, kInt, kString, kStrings, kStringAndInt, kInts, kLists, kAny };

struct Annotation {
  const char* name;  // a trailing '*' matches any suffix
  AnnotatedPlace place;
  AnnotationValue value;
  const char* reader;  // the file that reads it; empty if none does: it is kept and printed
  const char* doc;
  // Returns whether a value is of this row's kind.
  bool takes(const AttrValue& given) const;
  friend bool operator==(const Annotation& a, const Annotation& b) { return std::string_view(a.name) == b.name; }
};

// The table: the constant in namespace annotations, the name, the annotated node, the value, the reader, the meaning.
// clang-format off
#define RELAXC_ANNOTATIONS(X) \
  X(kOp, "op", kBlock, kString, "tir/schedule/rule.cc", \
    "the operator whose result the block computes; legalization sets it") \
  X(kPrefetch, "prefetch", kLoop, kStrings, "tir/lower/prefetch.cc", \
    "buffers: an iteration prefetches the elements that the next one reads and it does not, into the L2 cache") \
  X(kPrefetchOwn, "prefetch_own", kLoop, kStrings, "tir/lower/prefetch.cc", \
    "buffers: an iteration prefetches the elements that it reads or stores itself, into the L1 cache") \
  X(kPrefetchAhead, "prefetch_ahead", kLoop, kStringAndInt, "tir/lower/prefetch.cc", \
    "a buffer and a number: an iteration prefetches its elements that many rows further on, into the L1 cache") \
  X(kExactTails, "exact_tails", kLoop, kFlag, "tir/lower/partition_loops.cc", \
    "the tail of the loop is a copy of its body for each number of rows that may be left") \
  X(kKeepWhole, "keep_whole", kLoop, kFlag, "tir/lower/partition_loops.cc", \
    "the loop is not cut where its conditions change") \
  X(kDoubleBufferScope, "double_buffer_scope", kBlock, kInt, "tir/lower/lower_blocks.cc", \
    "the position among the block's writes of a buffer to double: iterations alternate between the two copies") \
  X(kDoubleBuffer, "double_buffer", kAllocation, kFlag, "tir/lower/double_buffer.cc", \
    "the same for the allocation; lower_blocks sets it") \
  X(kBufferDimAlign, "buffer_dim_align", kBlock, kLists, "tir/lower/align_storage.cc", \
    "[[buffer, axis, factor, offset], ...]: strides of written buffers; storage_align sets it") \
  X(kExplicitReadRegion, "explicit_read_region", kBlock, kInts, "tir/edit/blocks.cc", \
    "positions of reads whose region stays as it is; annotate_buffer_access sets it") \
  X(kExplicitWriteRegion, "explicit_write_region", kBlock, kInts, "tir/edit/blocks.cc", \
    "positions of writes whose region stays as it is; annotate_buffer_access sets it") \
  X(kAutoCopy, "auto_copy", kBlock, kInt, "", \
    "the block copies; read_at and write_at set it, as in TVM")
// clang-format on

namespace annotations {

using enum AnnotatedPlace;
using enum AnnotationValue;

#define RELAXC_CONSTANT(constant, name, place, value, reader, doc) \
  inline constexpr Annotation constant = {name, place, value, reader, doc};
RELAXC_ANNOTATIONS(RELAXC_CONSTANT)
#undef RELAXC_CONSTANT

}  // namespace annotations

// Returns null when no annotation has that name. Beside the rows above there are annotations of TVM's that nothing here
// reads, and a prefix that is free for users.
const Annotation* find_annotation(std::string_view name);
// Returns all of them as --list-annotations shows them.
std::string describe_annotations();
// Returns the known name that this unknown one was probably meant to be; "" when none is near, or for a known name.
std::string nearest_annotation(std::string_view name);
// Returns a text such as "True or False".
std::string_view to_string(AnnotationValue value);
// Returns a text such as "a loop".
std::string_view to_string(AnnotatedPlace place);

}  // namespace relaxc
