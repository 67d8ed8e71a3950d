// The attributes that code reads or sets by name, outside of the attribute structs of operators (ops/attributes.h) and
// the table of annotations (tir/analysis/annotations.h). A function may have others: they are kept and printed.
#pragma once

namespace relaxc::attr_names {

// ---- Of every function

// A string: the function is visible from outside under this name, that of the function. Absent: private. The reader of
// text and the importer set it; merge_kernels and remove_dead_code read it.
inline constexpr const char* kGlobalSymbol = "global_symbol";

// ---- Of graph functions

// A string: the name that callers from outside know the function by, where it is another one's in the module.
// wrap_programs sets it, codegen/bytecode.cc reads it.
inline constexpr const char* kEntryName = "entry_name";
// A flag of a pure function: calls in its body count as pure. The verifier reads it.
inline constexpr const char* kForcePure = "relax.force_pure";
// A flag (True, or TVM's 1) of a private function: it becomes one tensor program where a rule of the user's names it
// (passes/compose.cc).
inline constexpr const char* kPrimitive = "Primitive";
// Lists of strings: the model's names of the inputs and outputs. The importer sets them (passes/gradient.cc adds
// to them), codegen/bytecode.cc reads them.
inline constexpr const char* kInputNames = "input_names";
inline constexpr const char* kOutputNames = "output_names";
// A string: the function that takes the same inputs where their dims fail the tests of this one, such as that two dims
// are equal. The importer sets it, codegen/bytecode.cc reads it, and a run calls it (vm/program.cc).
inline constexpr const char* kOtherwise = "otherwise";
// Dictionaries from names of symbolic dims to ints: the least and the greatest size that a run may have. Texts and
// codegen/bind_values.cc set them, codegen/bytecode.cc reads them.
inline constexpr const char *kLowerBound = "tir_var_lower_bound", *kUpperBound = "tir_var_upper_bound";
// A string and a list of ints: the caches that a run extends in place, as vm/caches.h writes them, and the params whose
// memory the run may write to. codegen/grow_caches.cc sets them; codegen/bytecode.cc reads the first,
// destination_passing the second.
inline constexpr const char *kCaches = "caches", *kUpdatedInputs = "updated_inputs";
// A list of strings: the params by which the function is differentiated; none: all of floats. The pass gradient reads
// it.
inline constexpr const char* kRequireGrads = "require_grads";
// A string: the backend outside of the compiler that makes the function's code. codegen/compile.cc refuses it.
inline constexpr const char* kCodegen = "Codegen";
// Strings that plan_memory sets and the metadata of bytecode repeats: the formula of the bytes of the planned arena,
// and that of all memory of tensors that a run takes beside inputs and weights (absent where only the run can tell).
inline constexpr const char *kArenaBytes = "arena_bytes", *kPeakBytes = "peak_bytes";

// ---- Of tensor programs

// A flag: the program has its schedule, which no rule and no fusion may change. Rules set it.
inline constexpr const char* kIsScheduled = "tir.is_scheduled";
// A dictionary: the formulas of the program's operations and accesses (tir/analysis/work.h). count_work sets it,
// codegen/bytecode.cc reads it.
inline constexpr const char* kWork = "work";
// A string: the rule that scheduled the program, and its decisions. Rules set it, codegen/bytecode.cc reads it.
inline constexpr const char* kRule = "rule";
// A flag: the program computes the least and the greatest element of its only input. find_extremes sets it,
// note_extremes reads it.
inline constexpr const char* kFindsExtremes = "finds_extremes";
// A string: the tensor program that a user's rule names, of which this one was fused; of a graph function that becomes
// a tensor program (kPrimitive), the name by which rules know it. compose and fuse set it and the annotation of the
// block of its result by that name; rules find the program by it, and it is gone when the program is scheduled.
inline constexpr const char* kScheduledPart = "scheduled_part";
// An integer, 0 when absent: there are other programs for dims of at most that size. versions_by_dims sets it; rules
// make no versions for these, and it is gone when the program is scheduled.
inline constexpr const char* kHasVersions = "has_versions";
// A flag, true when absent: no two buffer params overlap. merge_subexpressions and the emitter read it.
inline constexpr const char* kNoAlias = "tir.noalias";
// A list of strings: buffer params of which the program reads only what it has written, where that is known without
// looking at the indices. The reader sets it for te.scan, buffer_uses() reads it.
inline constexpr const char* kOutputBuffers = "output_buffers";
// An int: that many last params are the symbolic dims. explicit_scalars sets it, symbolic_dims() reads it.
inline constexpr const char* kNumDims = "num_dims";
// A string: the tensor intrinsic that the program describes or implements. parse_tensor_intrin() reads it.
inline constexpr const char* kTensorIntrin = "tensor_intrin";

// ---- Of a call of R.call_tir_inplace

// A list of ints: for each output the position of the argument that it is written over, or -1 for a new tensor.
inline constexpr const char* kInplaceIndices = "inplace_indices";

// ---- Of a module

// A dictionary: the tensor programs that cannot be run from outside, each with the reason. wrap_programs sets it, the
// bytecode's metadata repeats it.
inline constexpr const char* kRefused = "refused";

}  // namespace relaxc::attr_names
