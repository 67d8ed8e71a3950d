// Elements of tables of 256 bytes, as many as a vector has: AVX-512's vpermi2b takes one of 128 bytes for each lane,
// AArch64's tbl and tbx one of 64.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/function_emitter.h"
#include "tir/analysis/byte_tables.h"

namespace relaxc::codegen {

static constexpr int kTableBytes = 256;

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

Value FunctionEmitter::lookup(const BufferLoad& load, DType dtype) {
  if (!has_byte_tables(kernel_.target) || dtype.lanes < 2 || dtype.is_scalable()) return nullptr;
  const std::optional<Expr> index = byte_table_index(load);
  if (!index) return nullptr;
  const int width = static_cast<int>(kernel_.target.vector_bytes());
  std::vector<Value> table;
  for (int first = 0; first < kTableBytes; first += width)
    table.push_back(load_contiguous(load.buffer, b_.getInt64(static_cast<uint64_t>(first)),
                                    dtype.element().with_lanes(width), nullptr));
  Value places = expr(*index);
  std::vector<Value> parts;
  for (int first = 0; first < dtype.lanes; first += width)
    parts.push_back(lookup_vector(table, lanes_from(b_, places, first, width, dtype.lanes)));
  Value all = llvm::concatenateVectors(b_, parts);
  return lanes_from(b_, all, 0, dtype.lanes, dtype.lanes);
}

}  // namespace relaxc::codegen
