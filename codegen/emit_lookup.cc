// Elements of tables of bytes, as many as a vector has. Of 256 bytes AVX-512's vpermi2b takes one of 128 for each lane,
// AArch64's tbl and tbx one of 64. Of 16, vpshufb takes one within each 128 bits of a vector, in which the table is
// then repeated, and tbl takes one of 128 bits.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/function_emitter.h"
#include "tir/analysis/byte_tables.h"

namespace relaxc::codegen {

static constexpr int kTableBytes = 256, kNibbleTableBytes = static_cast<int>(kNibbleTableSize);

// Returns lanes [first, first + count) of a vector; those behind its end hold any value.
static Value lanes_from(llvm::IRBuilder<>& b, Value vector, int first, int count, int lanes) {
  llvm::SmallVector<int> mask;
  for (int lane = first; lane < first + count; ++lane) mask.push_back(lane < lanes ? lane : llvm::PoisonMaskElem);
  return b.CreateShuffleVector(vector, mask);
}

// `table` has the bytes in vectors of as many lanes as the index.
Value FunctionEmitter::lookup_vector(const std::vector<Value>& table, Value index) {
  llvm::Type* type = index->getType();
  auto splat = [&](uint64_t number) { return llvm::ConstantInt::get(type, number); };
  if (table.size() == 4) {
    auto half = [&](size_t first) {
      return b_.CreateIntrinsic(type, llvm::Intrinsic::x86_avx512_vpermi2var_qi_512,
                                {table[first], index, table[first + 1]});
    };
    return b_.CreateSelect(b_.CreateICmpSLT(index, splat(0)), half(2), half(0));
  }
  Value result =
      b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_tbl4, {type}, {table[0], table[1], table[2], table[3], index});
  for (size_t first = 4; first < table.size(); first += 4) {
    Value place = b_.CreateSub(index, splat(16 * first));
    result = b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_tbx4, {type},
                                {result, table[first], table[first + 1], table[first + 2], table[first + 3], place});
  }
  return result;
}

// `table` has 16 bytes. The indices are less than 16.
Value FunctionEmitter::lookup_nibbles(Value table, Value index) {
  if (!llvm::StringRef(kernel_.target.triple).starts_with("x86_64"))
    return b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_tbl1, {index->getType()}, {table, index});
  const auto width = llvm::cast<llvm::FixedVectorType>(index->getType())->getNumElements();
  llvm::SmallVector<int> repeated;
  for (unsigned lane = 0; lane < width; ++lane) repeated.push_back(static_cast<int>(lane) % kNibbleTableBytes);
  const llvm::Intrinsic::ID shuffle = width == 64   ? llvm::Intrinsic::x86_avx512_pshuf_b_512
                                      : width == 32 ? llvm::Intrinsic::x86_avx2_pshuf_b
                                                    : llvm::Intrinsic::x86_ssse3_pshuf_b_128;
  return b_.CreateIntrinsic(shuffle, {}, {b_.CreateShuffleVector(table, repeated), index});
}

Value FunctionEmitter::lookup(const BufferLoad& load, DType dtype) {
  if (dtype.lanes < 2 || dtype.is_scalable()) return nullptr;
  const std::optional<Expr> index = byte_table_index(load);
  const bool of_nibbles = index && is_int(buffer_type(load.buffer).shape[0], kNibbleTableSize);
  if (!index || !(of_nibbles ? has_nibble_tables(kernel_.target) : has_byte_tables(kernel_.target))) return nullptr;
  const int width = static_cast<int>(kernel_.target.vector_bytes()), bytes = of_nibbles ? kNibbleTableBytes : width;
  std::vector<Value> table;
  for (int first = 0; first < (of_nibbles ? kNibbleTableBytes : kTableBytes); first += bytes)
    table.push_back(load_contiguous(load.buffer, b_.getInt64(static_cast<uint64_t>(first)),
                                    dtype.element().with_lanes(bytes), nullptr));
  Value places = expr(*index);
  std::vector<Value> parts;
  for (int first = 0; first < dtype.lanes; first += width) {
    Value part = lanes_from(b_, places, first, width, dtype.lanes);
    parts.push_back(of_nibbles ? lookup_nibbles(table[0], part) : lookup_vector(table, part));
  }
  Value all = llvm::concatenateVectors(b_, parts);
  return lanes_from(b_, all, 0, dtype.lanes, dtype.lanes);
}

}  // namespace relaxc::codegen
