// Internal to codegen/: emits arithmetic on LLVM values as ir/expr.h and ir/intrinsics.h define it. Includes LLVM.
//
// In registers, bool is i1; intN and uintN are iN; floats of 16 bits and less are integers that hold the bits (each
// operation goes through float32 and rounds once); vectors are <lanes x element>. In memory, bool takes a byte, and so
// do other types below 8 bits that are not packed (codegen/emit_packed.cc).
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <span>
#include <string>
#include <vector>

#include "codegen/lanes.h"
#include "ir/expr.h"
#include "ir/intrinsics.h"
#include "tir/target.h"

namespace relaxc::codegen {

using Value = llvm::Value*;

// Returns whether vectors are those of AVX-512, which has masks.
inline bool uses_avx512(const Target& target) {
  constexpr int kBits = 512;
  return target.vector_bits >= kBits && llvm::StringRef(target.triple).starts_with("x86_64");
}

// Adds a private constant to the module.
llvm::GlobalVariable* make_global(llvm::Module& module, llvm::Constant* contents, const std::string& name);

class ValueEmitter {
 public:
  ValueEmitter(llvm::IRBuilder<>& builder, const Target& target) : b_(builder), target_(target) {}

  llvm::Type* type(DType dtype) const;         // in registers
  llvm::Type* memory_type(DType dtype) const;  // of one element of a buffer
  Value to_memory(Value value, DType dtype);
  Value from_memory(Value value, DType dtype);

  Value int_constant(int64_t value, DType dtype) const;
  Value float_constant(double value, DType dtype) const;
  Value splat(Value scalar, int lanes);

  // These assumptions hold for index arithmetic only. Data arithmetic wraps and may have any sign.
  struct IndexFacts {
    bool no_overflow = false;
    bool non_negative = false;  // both operands; only divisions use it
  };
  Value binary(BinaryOp op, DType dtype, Value x, Value y, IndexFacts facts);
  Value cast(Value value, DType from, DType to);
  // Returns tir.round_within of float32s as int32.
  Value round_within_to_int32(const std::vector<Value>& args, DType from);
  // Emits an intrinsic of ir/intrinsics.h. The arguments have that dtype, lanes included.
  Value intrinsic(const std::string& name, const std::vector<Value>& args, DType dtype, const Span& span);

 private:
  Value float_binary(BinaryOp op, Value x, Value y);
  Value divide_by_constant(Value x, Value y);
  Value int_binary(BinaryOp op, DType dtype, Value x, Value y, IndexFacts facts);
  Value divide(BinaryOp op, DType dtype, Value x, Value y, IndexFacts facts);
  Value shift(BinaryOp op, DType dtype, Value x, Value y);
  Value float_extremum(bool minimum, Value x, Value y);
  Value int_intrinsic(const std::string& name, Value value, DType dtype, const Span& span);
  Value float_intrinsic(const Intrinsic& row, const std::vector<Value>& args, const Span& span);

  Value widen(Value bits, DType from);  // the bits of a float of 16 bits or less to float32
  Value narrow(Value value, DType to);  // float32 or float64 to such bits
  Lanes to_float16(Value value);        // float32
  Lanes widen_small(const SmallFloat& format, const Lanes& bits);
  Lanes to_small_float(const SmallFloat& format, const Lanes& x);
  Value saturated_lanes(Value value, DType to);
  Value limited(const std::vector<Value>& args);
  Value saturated_wide_lanes(Value value, DType to);
  Value round_to_odd(Value value);  // float64 to float32, so that rounding again is exact
  Value call_libm(const std::string& function, const std::vector<Value>& args);

  llvm::IRBuilder<>& b_;
  const Target& target_;
};

// Emits a function of float32 as straight-line IR (emit_math.cc). The result is within 2 ulp of the exact value for
// every argument, with fused multiply-add and without. Infinities, NaN, signed zeros and subnormals are as in C99's
// annex F. docs/math.md has the measured error of each function. Returns null when the function does not have an
// expansion here. Each argument is a float or a vector of float.
Value emit_float32_math(llvm::IRBuilder<>& builder, std::string_view intrinsic, std::span<const Value> args,
                        const Target& target);

}  // namespace relaxc::codegen
