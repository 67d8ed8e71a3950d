#include "tir/analysis/annotations.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/layout.h"
#include "support/lists.h"
#include "support/nearest.h"

namespace relaxc {

namespace {

using enum AnnotatedPlace;
using enum AnnotationValue;

// The annotations that something here reads or sets: the name, the annotated node, the value, the reader, the meaning.
// clang-format off
#define RELAXC_ANNOTATIONS(X) \
  X("op", kBlock, kString, "tir/schedule/rule.cc", \
    "the operator whose result the block computes; legalization sets it") \
  X("program", kBlock, kString, "tir/schedule/rule.cc", \
    "the tensor program whose result the block computed before fusion, where a schedule names it") \
  X("fused_beside", kBlock, kFlag, "tir/rules/default.cc", \
    "fusion put the block beside such a program: the default rule schedules it where the program's schedule does not") \
  X("layouts", kBlock, kLayouts, "tir/analysis/block_layouts.cc", \
    "the layouts of the block's spatial axes, its reduce axes and its operands; legalization sets it") \
  X("stored", kBlock, kFlag, "tir/rules/default.cc", \
    "the block's elements are stored, also where its readers could compute them: they read each many times or in another order") \
  X("constant_operand", kBlock, kString, "tir/rules/contraction_tile.cc", \
    "the operand of the block that is constant in all calls of the program; note_constants sets it") \
  X("unpacked_columns", kBlock, kInt, "tir/rules/contraction_tile.cc", \
    "the block unpacks a product's right operand from words, which lie in panels of so many columns; pack_quantized sets it") \
  X("scaled_rows", kBlock, kInt, "tir/rules/contraction_tile.cc", \
    "so many rows of what such a block unpacks share a scale; pack_quantized sets it") \
  X("unpacked_lanes", kBlock, kInt, "tir/rules/contraction_tile.cc", \
    "so many numbers of a row are unpacked by one instruction; pack_quantized sets it") \
  X("unpacked_rows", kBlock, kInt, "tir/rules/contraction_tile.cc", \
    "so many rows of a column lie in a word that such a block unpacks; pack_quantized sets it") \
  X("digit_sums", kBlock, kFlag, "tir/rules/digit_product.cc", \
    "the block sums digits of activations times numbers, for a product that has such blocks; pack_quantized sets it") \
  X("chosen_by_dims", kBlock, kFlag, "tir/rules/versions.cc", \
    "the block takes one of two results by a condition on the program's dims; pack_quantized sets it") \
  X("sums_in_int16", kBlock, kFlag, "tir/rules/lanes.cc", \
    "the block's products of bytes may be summed by instructions that clamp sums of two to 16 bits; exact_sums sets it") \
  X("rest_of_sums", kBlock, kFlag, "tir/rules/lanes.cc", \
    "the block sums products that are added to those of the next block; exact_sums sets it") \
  X("skips_zeros", kBlock, kFlag, "tir/lower/lower_blocks.cc", \
    "the block adds no product with `condition ? x : 0` where the condition fails, also if the other factor is infinite") \
  X("prefetch", kLoop, kStrings, "tir/lower/prefetch.cc", \
    "buffers: the elements that the next iteration reads and this one does not are prefetched into the L2 cache") \
  X("prefetch_current", kLoop, kStrings, "tir/lower/prefetch.cc", \
    "buffers: an iteration prefetches the elements that it reads or stores itself, into the L1 cache") \
  X("prefetch_ahead", kLoop, kStringsAndInts, "tir/lower/prefetch.cc", \
    "a buffer and a number: an iteration prefetches its elements that many rows further on, into the L1 cache; there may be several pairs") \
  X("amx", kLoop, kString, "tir/lower/tile_registers.cc", \
    "\"load\", \"zero\", \"multiply\" or \"store\": the nest is that instruction on tiles (scope amx.tmm)") \
  X("turns_back", kLoop, kFlag, "codegen/llvm_emit.cc", \
    "a parallel loop whose iterations run in the reverse order in every second iteration of the loop around it") \
  X("exact_tails", kLoop, kFlag, "tir/lower/partition_loops.cc", \
    "the tail of the loop is a copy of its body for each number of rows that may be left") \
  X("keep_whole", kLoop, kFlag, "tir/lower/partition_loops.cc", \
    "the loop is not cut where its conditions change, but for exact tails") \
  X("pragma_auto_unroll_max_step", kAnywhere, kInt, "tir/lower/unroll_loops.cc", \
    "this loop and those inside are unrolled where their copies have at most that many stores, as in TVM") \
  X("pragma_unroll_explicit", kAnywhere, kSwitch, "tir/lower/unroll_loops.cc", \
    "whether loops that pragma_auto_unroll_max_step finds are written out; 0: LLVM is asked to unroll them") \
  X("meta_schedule.layout_rewrite_preproc", kBlock, kSwitch, "passes/rewrite_weights.cc", \
    "the block copies an operand into another layout: where that is a constant, once, when the program is compiled") \
  X("double_buffer_scope", kBlock, kInt, "tir/lower/lower_blocks.cc", \
    "the position among the block's writes of a buffer to double: iterations alternate between the two copies") \
  X("double_buffer", kAllocation, kFlag, "tir/lower/double_buffer.cc", \
    "iterations alternate between two copies of the buffer; lower_blocks sets it for double_buffer_scope") \
  X("buffer_dim_align", kBlock, kLists, "tir/lower/align_storage.cc", \
    "[[buffer, axis, factor, offset], ...]: strides of written buffers; storage_align sets it") \
  X("explicit_read_region", kBlock, kInts, "tir/edit/blocks.cc", \
    "positions of reads whose region stays as it is; annotate_buffer_access sets it") \
  X("explicit_write_region", kBlock, kInts, "tir/edit/blocks.cc", \
    "positions of writes whose region stays as it is; annotate_buffer_access sets it") \
  X("auto_copy", kBlock, kInt, "", \
    "the block copies; read_at and write_at set it, as in TVM")

// An annotation of TVM's (namespace attr of its tir/stmt.h, pragmas of its tests, attributes of its operator library)
// of which nothing is left to do here, for the reason in `doc`.
constexpr Annotation fulfilled(const char* name, AnnotatedPlace place, const char* doc) {
  return {name, place, kAny, "", doc};
}
// One for other machines or for TVM's search.
constexpr Annotation unused(const char* name, AnnotatedPlace place, const char* doc) {
  return {name, place, kAny, "", doc, true};
}

constexpr Annotation kRows[] = {
#define X(...) {__VA_ARGS__},
    RELAXC_ANNOTATIONS(X)
#undef X
    unused("pragma_unroll", kLoop, "TVM unrolls the loop"),
    unused("pragma_vectorize", kLoop, "TVM vectorizes the loop"),
    unused("pragma_loop_partition_hint", kLoop, "TVM cuts the loop where conditions change"),
    unused("pragma_parallel_*", kLoop, "where TVM starts threads, how it divides work among them, and their barriers"),
    unused("parallel_stride_pattern", kLoop, "TVM gives each thread iterations that are a stride apart"),
    unused("pragma_tensor_core", kLoop, "TVM uses tensor cores for the loop"),
    unused("pragma_debug_skip_region", kLoop, "TVM leaves the loop out"),
    unused("pragma_import_*", kAnywhere, "C source or LLVM IR that the program calls"),
    unused("pragma_aarch64_pstate_*", kBlock, "the function uses streaming mode or the ZA array of AArch64's SME"),
    unused("sparse", kBlock, "the block runs over the elements of a sparse axis"),
    fulfilled("irregular_loop_mark", kLoop, "the loop has break or continue, which are seen without it"),
    unused("software_pipeline_*", kLoop, "stages, order and asynchronous parts of TVM's software pipelines"),
    unused("meta_schedule.parallel", kAnywhere, "the postprocessors, whose steps a whole trace holds, parallelize"),
    unused("meta_schedule.vectorize", kAnywhere, "the postprocessors, whose steps a whole trace holds, vectorize"),
    unused("meta_schedule.unroll_*", kAnywhere, "the postprocessors, whose steps a whole trace holds, unroll"),
    unused("meta_schedule.auto_tensorize*", kAnywhere, "the postprocessors, whose steps a whole trace holds, tensorize"),
    unused("meta_schedule.cooperative_fetch", kAnywhere, "the threads of a GPU's block copy together"),
    unused("meta_schedule.thread_extent_*", kAnywhere, "the fewest and the most threads of a GPU's block"),
    unused("meta_schedule.tensor_core_enabled", kAnywhere, "TVM uses tensor cores for the block"),
    fulfilled("meta_schedule.tiling_structure", kBlock, "how a trace tiles the block; its steps have done so"),
    unused("meta_schedule.*", kAnywhere, "notes of TVM's MetaSchedule"),
    // Attributes of functions.
    fulfilled("op_pattern", kFunction, "how TVM fuses the function; its loops say the same"),
    fulfilled("operator_name", kFunction, "the operator that the function computes, for TVM's dispatch; its loops say the same"),
    fulfilled("tir.is_entry_func", kFunction, "the function is called from outside: all functions that are not private are"),
    fulfilled("tir.is_global_func", kFunction, "the function is called from outside: all functions that are not private are"),
    fulfilled("calling_conv", kFunction, "how TVM's runtime calls the function; that of relaxc calls it in its own way"),
    fulfilled("from_legacy_te_schedule", kFunction, "a te schedule made the function; its loops say the same"),
    fulfilled("hash", kFunction, "the hash of TVM's Relay function"),
    fulfilled("num_input", kFunction, "how many params are inputs and not weights; here all are, and --bind makes params constants"),
    fulfilled("s_tir", kFunction, "the function has blocks, which are seen without it"),
    unused("target", kFunction, "the processor for which TVM compiles the function; here --target names one for all"),
    unused("tir.is_host_func", kFunction, "the function runs on the host of a GPU; here all do"),
    unused("tir.ptx_*", kFunction, "instructions of NVIDIA's GPUs"),
    unused("tir.use_*", kFunction, "TVM's choice of a way to lower the function"),
    unused("tir.disable_cse_tir", kFunction, "TVM does not merge subexpressions in the function"),
    unused("postproc", kFunction, "a step of TVM's search"),
    unused("Composite", kFunction, "the pattern of an external compiler that TVM found; tensor programs are compiled here"),
    unused("Codegen", kFunction, "an external compiler of graph functions; tensor programs are compiled here"),
    // Keys of T.attr.
    fulfilled("realize_scope", kAnywhere, "the memory of a buffer, in texts of 2020; on a CPU there is one"),
    fulfilled("storage_scope", kAnywhere, "the memory of an allocation, in texts of 2020; on a CPU there is one"),
    fulfilled("compute_scope", kAnywhere, "the name under which TVM splits the statement off; it stays in the function"),
    fulfilled("buffer_bind_scope", kAnywhere, "a window of a buffer, in texts of 2020, whose accesses say the same"),
    fulfilled("device_id", kAnywhere, "the number of the device; there is one CPU"),
    fulfilled("device_type", kAnywhere, "the kind of the device: a CPU"),
    unused("storage_alignment", kAnywhere, "the bytes to which memory is aligned; here all is to 64"),
    unused("pragma_scope_prefix", kAnywhere, "a pragma of TVM's without a meaning"),
    unused("extern_scope", kAnywhere, "TVM leaves the statement as it is for an external compiler"),
    unused("coproc_*", kAnywhere, "the statement is for VTA's coprocessor"),
    unused("async_*", kAnywhere, "the copies of the statement run beside others on a GPU; here they are done at once"),
    unused("fragment_*", kAnywhere, "the shape or layout of a tensor core's fragment"),
    unused("schedule_rule", kBlock, "the rule by which TVM's MetaSchedule schedules the block"),
    fulfilled("layout_free_placeholders", kBlock, "buffers whose layout TVM may choose; those of constants are chosen without it"),
    fulfilled("layout_free_buffers", kBlock, "buffers whose layout TVM may choose; those of constants are chosen without it"),
    unused("auto_scheduler_*", kBlock, "notes of TVM's former search"),
    unused("tir.manifest_shared_memory_local_stage", kBlock, "a GPU's block copies to shared memory through registers"),
    fulfilled("tir.script_parsing_detect_access", kBlock, "which regions TVM's parser finds; they are found without it"),
    unused("tir.*", kAnywhere, "notes of TVM's parser and lowering"),
    unused("tirx.*", kAnywhere, "notes of TVM's parser and lowering, by their name since 2026"),
    fulfilled("workload", kBlock, "the operator that the block computes, for TVM's tuning records; its loops say the same"),
    fulfilled("const_matrix", kBlock, "the block computes a matrix of constants, such as one of Winograd's; its loops say the same"),
    fulfilled("axis", kBlock, "the axis along which the block computes a softmax; its loops say the same"),
    fulfilled("src_layout", kBlock, "the layout from which the block transforms a tensor; its loops say the same"),
    fulfilled("dst_layout", kBlock, "the layout into which the block transforms a tensor; its loops say the same"),
    fulfilled("input_shape", kBlock, "the shape of the tensor whose layout the block transforms; its buffers say the same"),
    fulfilled("FLOP", kBlock, "the number of operations, for TVM's search; the loops say the same"),
    unused("require_bound_predicate", kBlock, "TVM guards the block's axes by a condition"),
    unused("warp_execution", kAnywhere, "the statement runs on all threads of a warp"),
    unused("vector_bytes", kBlock, "the bytes that a vector copies to shared memory at once"),
    unused("local_stage", kBlock, "the block's copy to shared memory goes through registers"),
    unused("permuted_layout", kBlock, "the block uses a layout of shared memory without bank conflicts"),
    unused("thread_extent", kBlock, "the number of threads that run the block"),
    unused("virtual_thread", kLoop, "the loop's iterations are TVM's virtual threads"),
    unused("hand_threaded", kAnywhere, "threads are bound by hand"),
    unused("volatile_scope", kAnywhere, "accesses are volatile"),
    unused("disable_lower_builtin", kAllocation, "TVM allocates the buffer on the stack"),
    unused("candidate_memory_pools", kAllocation, "the pools from which TVM's memory planner may take the buffer"),
    fulfilled("user.*", kAnywhere, "a note of a user's, which is kept and printed; the prefix is free for them"),
};
// clang-format on

template <class T>
bool is(const AttrValue& value) {
  return value.as<T>();
}
template <class T>
bool is_list_of(const AttrValue& value) {
  const AttrList* list = value.as<AttrList>();
  return list && std::ranges::all_of(*list, is<T>);
}

// A row for each kind of value, in the order of the enum.
struct ValueRow {
  const char* text;
  bool (*takes)(const AttrValue&);
};
constexpr ValueRow kValues[] = {
    {"True or False", is<bool>},
    {"a whole number", is<int64_t>},
    {"a string", is<std::string>},
    {"a list of buffers' names", is_list_of<std::string>},
    {"a list of layouts",
     [](const AttrValue& value) {
       auto is_layout = [](const AttrValue& item) { return Layout::parse(*item.as<std::string>()).has_value(); };
       return is_list_of<std::string>(value) && std::ranges::all_of(*value.as<AttrList>(), is_layout);
     }},
    {"a buffer's name and a positive number of rows, once or several times",
     [](const AttrValue& value) {
       const AttrList* list = value.as<AttrList>();
       bool fits = list && !list->empty() && list->size() % 2 == 0;
       for (size_t i = 0; fits && i < list->size(); i += 2)
         fits = is<std::string>((*list)[i]) && is<int64_t>((*list)[i + 1]) && *(*list)[i + 1].as<int64_t>() > 0;
       return fits;
     }},
    {"a list of whole numbers", is_list_of<int64_t>},
    {"a list of [buffer, axis, factor > 0, offset >= 0]",
     [](const AttrValue& value) {
       auto is_row = [](const AttrValue& item) {
         const AttrList* row = is_list_of<int64_t>(item) ? item.as<AttrList>() : nullptr;
         return row && row->size() == 4 && *(*row)[2].as<int64_t>() > 0 && *(*row)[3].as<int64_t>() >= 0;
       };
       return is<AttrList>(value) && std::ranges::all_of(*value.as<AttrList>(), is_row);
     }},
    {"True, False, 1 or 0",
     [](const AttrValue& value) {
       const int64_t* number = value.as<int64_t>();
       return is<bool>(value) || (number && (*number == 0 || *number == 1));
     }},
    {"any value", [](const AttrValue&) { return true; }},
};
const ValueRow& row_of(AnnotationValue value) { return kValues[static_cast<size_t>(value)]; }

}  // namespace

#define X(name, ...)               \
  template <>                      \
  const char* annotation<name>() { \
    return name;                   \
  }
RELAXC_ANNOTATIONS(X)
#undef X

bool Annotation::takes(const AttrValue& given) const { return row_of(value).takes(given); }

const Annotation* find_annotation(std::string_view name) {
  for (const Annotation& row : kRows) {
    std::string_view known = row.name;
    bool matches = known.ends_with('*') ? name.starts_with(known.substr(0, known.size() - 1)) : name == known;
    if (matches) return &row;
  }
  return nullptr;
}

static std::string nearest_annotation(std::string_view name) {
  return nearest(name, map_each(kRows, [](const Annotation& row) -> std::string { return row.name; }));
}

bool is_misspelt(std::string_view name) { return !nearest_annotation(name).empty(); }

std::string unknown_annotation(std::string_view name) {
  std::string near = nearest_annotation(name);
  return fmt::format("there is no annotation '{}'; ", name) +
         (near.empty() ? "relaxc opt --list-annotations shows them, and a note of your own begins with 'user.'"
                       : fmt::format("did you mean '{}'?", near));
}

std::string_view to_string(AnnotationValue value) { return row_of(value).text; }

std::string_view to_string(AnnotatedPlace place) {
  constexpr std::string_view kTexts[] = {"a loop", "a block", "an allocation", "a function", "any place"};
  return kTexts[static_cast<size_t>(place)];
}

std::string describe_annotations() {
  std::string out;
  for (const Annotation& row : kRows) {
    std::string reader = *row.reader     ? fmt::format("read by {}", row.reader)
                         : row.is_unused ? "no effect here, with a warning"
                                         : "nothing left to do";
    out += fmt::format("{:<34} of {}: {}; {}\n    {}\n", row.name, to_string(row.place), to_string(row.value), reader,
                       row.doc);
  }
  return out;
}

}  // namespace relaxc
