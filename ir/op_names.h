// The operators and intrinsics that code outside of their rows recognizes, one constant each, which cannot be misspelt,
// and by which a search finds all code that treats the operator specially. A test checks that each one has a row.
#pragma once
#include "ir/expr.h"

#define RELAXC_KNOWN_OPS(X)                              \
  X(kAdd, "relax.add")                                   \
  X(kSubtract, "relax.subtract")                         \
  X(kMultiply, "relax.multiply")                         \
  X(kDivide, "relax.divide")                             \
  X(kPower, "relax.power")                               \
  X(kMaximum, "relax.maximum")                           \
  X(kMinimum, "relax.minimum")                           \
  X(kAbs, "relax.abs")                                   \
  X(kFloor, "relax.floor")                               \
  X(kCeil, "relax.ceil")                                 \
  X(kRelu, "relax.nn.relu")                              \
  X(kAstype, "relax.astype")                             \
  X(kMean, "relax.mean")                                 \
  X(kSum, "relax.sum")                                   \
  X(kMax, "relax.max")                                   \
  X(kMin, "relax.min")                                   \
  X(kArgmax, "relax.argmax")                             \
  X(kArgmin, "relax.argmin")                             \
  X(kArgsort, "relax.argsort")                           \
  X(kTopK, "relax.topk")                                 \
  X(kDynTopK, "relax.dyn.topk")                          \
  X(kMatmul, "relax.matmul")                             \
  X(kDequantize, "relax.dequantize")                     \
  X(kConv1d, "relax.nn.conv1d")                          \
  X(kConv2d, "relax.nn.conv2d")                          \
  X(kConv3d, "relax.nn.conv3d")                          \
  X(kMaxPool2d, "relax.nn.max_pool2d")                   \
  X(kAvgPool2d, "relax.nn.avg_pool2d")                   \
  X(kAdaptiveAvgPool2d, "relax.nn.adaptive_avg_pool2d")  \
  X(kBatchNorm, "relax.nn.batch_norm")                   \
  X(kResize, "relax.image.resize")                       \
  X(kPad, "relax.nn.pad")                                \
  X(kReshape, "relax.reshape")                           \
  X(kFlatten, "relax.flatten")                           \
  X(kSqueeze, "relax.squeeze")                           \
  X(kExpandDims, "relax.expand_dims")                    \
  X(kLayoutTransform, "relax.layout_transform")          \
  X(kPermuteDims, "relax.permute_dims")                  \
  X(kBroadcastTo, "relax.broadcast_to")                  \
  X(kConcat, "relax.concat")                             \
  X(kStridedSlice, "relax.strided_slice")                \
  X(kTake, "relax.take")                                 \
  X(kGatherElements, "relax.gather_elements")            \
  X(kGatherNd, "relax.gather_nd")                        \
  X(kCheckIndices, "relax.check_indices")                \
  X(kArange, "relax.arange")                             \
  X(kScalarToTensor, "relax.scalar_to_tensor")           \
  X(kShapeToTensor, "relax.shape_to_tensor")             \
  X(kTensorToShape, "relax.tensor_to_shape")             \
  X(kShapeOf, "relax.shape_of")                          \
  X(kTensorItem, "relax.inspect.tensor_item")            \
  X(kHintOnDevice, "relax.hint_on_device")               \
  X(kCallTir, "relax.call_tir")                          \
  X(kCallTirWithGrad, "relax.call_tir_with_grad")        \
  X(kCallTirInplace, "relax.call_tir_inplace")           \
  X(kCallTirLocalView, "relax.dist.call_tir_local_view") \
  X(kCallDpsPacked, "relax.call_dps_packed")             \
  X(kCallPurePacked, "relax.call_pure_packed")           \
  X(kCallInplacePacked, "relax.call_inplace_packed")     \
  X(kMakeClosure, "relax.make_closure")                  \
  X(kInvokeClosure, "relax.invoke_closure")              \
  X(kInvokePureClosure, "relax.invoke_pure_closure")     \
  X(kLoop, "relax.loop")                                 \
  X(kBuiltinAllocTensor, "relax.builtin.alloc_tensor")   \
  X(kMemoryAllocStorage, "relax.memory.alloc_storage")   \
  X(kMemoryAllocTensor, "relax.memory.alloc_tensor")     \
  X(kMemoryJoin, "relax.memory.join")                    \
  X(kMemoryView, "relax.memory.view")                    \
  X(kSequenceMake, "relax.sequence.make")                \
  X(kOptionalNone, "relax.optional.none")                \
  X(kAttentionVarLen, "relax.nn.attention_var_len")

// Those of tensor programs. `kScalar` tells a function of scalars from the operator of the same name.
#define RELAXC_KNOWN_INTRINSICS(X)                    \
  X(kIfThenElse, "tir.if_then_else")                  \
  X(kVscale, "tir.vscale")                            \
  X(kBufferData, "tir.buffer_data")                   \
  X(kPrefetch, "tir.prefetch")                        \
  X(kAddressOf, "tir.address_of")                     \
  X(kAssume, "tir.assume")                            \
  X(kLikely, "tir.likely")                            \
  X(kBreakLoop, "tir.break_loop")                     \
  X(kContinueLoop, "tir.continue_loop")               \
  X(kRet, "tir.ret")                                  \
  X(kGetActiveLaneMask, "tir.get_active_lane_mask")   \
  X(kReinterpret, "tir.reinterpret")                  \
  X(kCallLlvmIntrin, "tir.call_llvm_intrin")          \
  X(kCallLlvmPureIntrin, "tir.call_llvm_pure_intrin") \
  X(kCallExtern, "tir.call_extern")                   \
  X(kCallPureExtern, "tir.call_pure_extern")          \
  X(kCallPacked, "tir.tvm_call_packed")               \
  X(kCallCPacked, "tir.tvm_call_cpacked")             \
  X(kStackMakeArray, "tir.tvm_stack_make_array")      \
  X(kStackMakeShape, "tir.tvm_stack_make_shape")      \
  X(kAddByteOffset, "tir.handle_add_byte_offset")     \
  X(kAllocWorkspace, "tir.TVMBackendAllocWorkspace")  \
  X(kFreeWorkspace, "tir.TVMBackendFreeWorkspace")    \
  X(kIsNullPtr, "tir.isnullptr")                      \
  X(kFma, "tir.fma")                                  \
  X(kCommReducer, "tir.comm_reducer")                 \
  X(kIterVar, "tir.iter_var")                         \
  X(kShuffle, "tir.shuffle")                          \
  X(kScalarAbs, "tir.abs")                            \
  X(kScalarBitwiseNot, "tir.bitwise_not")             \
  X(kScalarCeil, "tir.ceil")                          \
  X(kScalarFloor, "tir.floor")                        \
  X(kScalarIsFinite, "tir.isfinite")                  \
  X(kScalarIsInf, "tir.isinf")                        \
  X(kScalarIsNan, "tir.isnan")                        \
  X(kScalarRound, "tir.round")                        \
  X(kScalarRsqrt, "tir.rsqrt")                        \
  X(kScalarSigmoid, "tir.sigmoid")                    \
  X(kScalarSqrt, "tir.sqrt")                          \
  X(kScalarTrunc, "tir.trunc")                        \
  X(kCopysign, "tir.copysign")                        \
  X(kNearbyint, "tir.nearbyint")                      \
  X(kPopcount, "tir.popcount")

namespace relaxc::ops {

#define RELAXC_OP(constant, text) inline constexpr OpName constant{text};
RELAXC_KNOWN_OPS(RELAXC_OP)
RELAXC_KNOWN_INTRINSICS(RELAXC_OP)
#undef RELAXC_OP
inline constexpr OpName kKnownOps[] = {
#define RELAXC_OP(constant, text) constant,
    RELAXC_KNOWN_OPS(RELAXC_OP)};
inline constexpr OpName kKnownIntrinsics[] = {RELAXC_KNOWN_INTRINSICS(RELAXC_OP)
#undef RELAXC_OP
};
// `T.target(...)` in text, which only the reader and the printer know: it has no row.
inline constexpr OpName kTarget{"tir.target"};

// ---- Families, by the beginning of the name

// An operator of graphs: R.nn.relu in text.
inline bool is_relax_op(std::string_view name) { return name.starts_with("relax."); }
// An intrinsic of tensor programs: T.exp in text.
inline bool is_tir_op(std::string_view name) { return name.starts_with("tir."); }
// An operator that defines where its result lies among several devices.
inline bool is_distributed_op(std::string_view name) { return name.starts_with("relax.dist."); }
// An operator whose value is a place in memory: two equal calls give two places.
inline bool is_memory_op(std::string_view name) {
  return name.starts_with("relax.builtin.") || name.starts_with("relax.memory.") || name.starts_with("relax.vm.");
}
// Returns the name of a graph operator with "relax." in front, which may be left out where operators are looked up.
inline std::string full_name(std::string name) { return is_relax_op(name) ? name : "relax." + name; }
// Returns the name without "relax." in front.
inline std::string short_name(std::string_view name) { return std::string(is_relax_op(name) ? name.substr(6) : name); }
inline std::string short_name(OpName op) { return short_name(op.text); }
// Returns the name in the text form: "R.sum" for relax.sum, "T.exp" for tir.exp.
inline std::string name_in_text(const std::string& name) {
  if (is_relax_op(name)) return "R." + short_name(name);
  return is_tir_op(name) ? "T." + name.substr(4) : name;
}

}  // namespace relaxc::ops
