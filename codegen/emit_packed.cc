// Accesses of packed elements (int4 and the like): several are in a byte, the first one in its low bits. A vector of
// neighbours is loaded as the bytes that hold it, and stored as whole bytes where it begins at one. Other stores change
// part of a byte, one element after another; tir/lower/whole_bytes.cc keeps other threads from that byte.
#include <llvm/Support/MathExtras.h>

#include "codegen/function_emitter.h"
#include "support/diagnostic.h"

namespace relaxc::codegen {

// Returns the positions of the lanes in the buffer, as int64.
Value FunctionEmitter::lane_positions(const Place& place) {
  DType dtype = kInt64.with_lanes(place.lanes);
  Value distances = place.distances
                        ? b_.CreateSExt(place.distances, ops_.type(dtype))
                        : b_.CreateMul(b_.CreateStepVector(ops_.type(dtype)), ops_.int_constant(place.stride, dtype));
  return b_.CreateAdd(ops_.splat(place.offset, place.lanes), distances);
}

// Returns by how many bits the elements at these positions are shifted in their bytes, as bytes.
Value FunctionEmitter::packed_shift(Value position, DType dtype) {
  llvm::Type* type = position->getType();
  Value part = b_.CreateAnd(position, llvm::ConstantInt::get(type, static_cast<uint64_t>(dtype.per_byte() - 1)));
  Value shift = b_.CreateMul(part, llvm::ConstantInt::get(type, dtype.bits));
  return b_.CreateTrunc(shift, type->getWithNewType(b_.getInt8Ty()));
}

Value FunctionEmitter::load_packed(const Buffer& buffer, const Place& place, DType dtype, Value active) {
  DType element = dtype.element();
  llvm::Type* bytes_type = ops_.type(DType::uint(8).with_lanes(place.lanes));
  llvm::Align alignment(1);
  auto finished = [&](Value bytes, Value shift) {
    return b_.CreateTrunc(b_.CreateLShr(bytes, shift), ops_.type(dtype));
  };
  if (place.lanes == 1) {
    auto read = [&] {
      Value byte = b_.CreateAlignedLoad(b_.getInt8Ty(), pointer(buffer, place.offset, true), alignment);
      return finished(byte, packed_shift(place.offset, element));
    };
    return active ? guarded(active, ops_.type(dtype), read) : read();
  }
  if (active || place.distances || place.stride != 1 || dtype.is_scalable()) {
    Value positions = lane_positions(place);
    Value distances = b_.CreateLShr(positions, llvm::Log2_64(static_cast<uint64_t>(element.per_byte())));
    Value addresses = b_.CreateGEP(b_.getInt8Ty(), variable(buffer), distances);
    Value bytes =
        b_.CreateMaskedGather(bytes_type, addresses, alignment, active, llvm::Constant::getNullValue(bytes_type));
    return finished(bytes, packed_shift(positions, element));
  }
  // The lanes lie in `count` bytes if the first is at the start of one, and perhaps in one more if it is not. That last
  // byte is read by itself, and a funnel shift moves the first lane to the start.
  int per_byte = static_cast<int>(element.per_byte()), count = (place.lanes + per_byte - 1) / per_byte;
  llvm::Type* type = ops_.type(DType::uint(8).with_lanes(count));
  Value bytes = b_.CreateAlignedLoad(type, pointer(buffer, place.offset, true), alignment);
  Value end = b_.CreateAdd(place.offset, b_.getInt64(static_cast<uint64_t>(place.lanes - 1)));
  Value last = b_.CreateAlignedLoad(b_.getInt8Ty(), pointer(buffer, end, true), alignment);
  auto lane = [&](int i) { return count == 1 ? bytes : b_.CreateExtractElement(bytes, static_cast<uint64_t>(i)); };
  Value next = last;
  if (count > 1) {
    llvm::SmallVector<int> mask;
    for (int i = 0; i < count; ++i) mask.push_back(i + 1);
    next = b_.CreateShuffleVector(bytes, ops_.splat(last, count), mask);
  }
  Value shift = ops_.splat(packed_shift(place.offset, element), count);
  if (count == 1) shift = packed_shift(place.offset, element);
  Value moved = b_.CreateIntrinsic(llvm::Intrinsic::fshr, {bytes->getType()}, {next, bytes, shift});
  bytes = moved;
  llvm::SmallVector<int> repeated;
  for (int i = 0; i < place.lanes; ++i) repeated.push_back(i / per_byte);
  Value wide = count == 1 ? ops_.splat(lane(0), place.lanes) : b_.CreateShuffleVector(bytes, repeated);
  Value steps = b_.CreateStepVector(ops_.type(kInt64.with_lanes(place.lanes)));
  return finished(wide, packed_shift(steps, element));
}

// Replaces one element. Behind the last element of a buffer the byte becomes 0.
void FunctionEmitter::store_packed_element(const Buffer& buffer, Value position, Value bits) {
  const BufferType& type = buffer_type(buffer);
  Value address = pointer(buffer, position, true), shift = packed_shift(position, type.dtype);
  Value mask = b_.getInt8(static_cast<uint8_t>((1 << type.dtype.bits) - 1));
  if (!type.data) {
    Value size = b_.getInt64(1);
    for (const Expr& dim : type.shape) size = b_.CreateNSWMul(size, int64(dim));
    Value is_last = b_.CreateICmpEQ(b_.CreateNSWAdd(position, b_.getInt64(1)), size);
    mask = b_.CreateSelect(is_last, b_.getInt8(0xff), mask);
  }
  Value before = b_.CreateAlignedLoad(b_.getInt8Ty(), address, llvm::Align(1));
  Value kept = b_.CreateAnd(before, b_.CreateNot(b_.CreateShl(mask, shift)));
  b_.CreateAlignedStore(b_.CreateOr(kept, b_.CreateShl(bits, shift)), address, llvm::Align(1));
}

// Stores the lanes in a loop, in order, so that the last one wins where positions are equal.
void FunctionEmitter::store_packed_in_turn(const Buffer& buffer, Value positions, Value bits, Value active, int lanes) {
  auto spilled = [&](Value vector, const char* name) -> Value {
    llvm::AllocaInst* memory = stack_memory(vector->getType(), name);
    b_.CreateStore(vector, memory);
    return memory;
  };
  Value bits_memory = spilled(bits, "bits"), positions_memory = spilled(positions, "positions");
  Value active_memory = nullptr;
  if (active) active_memory = spilled(b_.CreateZExt(active, bits->getType()), "active");
  llvm::BasicBlock *before = b_.GetInsertBlock(), *loop = new_block("lane"), *after = new_block("after_lanes");
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* lane = b_.CreatePHI(b_.getInt64Ty(), 2, "lane");
  lane->addIncoming(b_.getInt64(0), before);
  auto value = [&](llvm::Type* type, Value memory) { return b_.CreateLoad(type, b_.CreateGEP(type, memory, lane)); };
  auto write = [&]() -> Value {
    store_packed_element(buffer, value(b_.getInt64Ty(), positions_memory), value(b_.getInt8Ty(), bits_memory));
    return nullptr;
  };
  if (active) {
    Value is_active = b_.CreateICmpNE(value(b_.getInt8Ty(), active_memory), b_.getInt8(0));
    guarded(is_active, b_.getVoidTy(), write);
  } else {
    write();
  }
  Value next = b_.CreateAdd(lane, b_.getInt64(1));
  lane->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpULT(next, b_.getInt64(static_cast<uint64_t>(lanes))), loop, after);
  b_.SetInsertPoint(after);
}

void FunctionEmitter::store_packed(const Buffer& buffer, const Place& place, Value value, DType dtype, Value active) {
  if (dtype.is_scalable()) fail_unsupported({}, "vectors of scalable length of {}", to_string(dtype));
  int per_byte = static_cast<int>(dtype.element().per_byte());
  Value bits = b_.CreateZExt(value, value->getType()->getWithNewType(b_.getInt8Ty()));
  if (place.lanes == 1) {
    auto write = [&]() -> Value {
      store_packed_element(buffer, place.offset, bits);
      return nullptr;
    };
    active ? guarded(active, b_.getVoidTy(), write) : write();
    return;
  }
  auto in_turn = [&] { store_packed_in_turn(buffer, lane_positions(place), bits, active, place.lanes); };
  if (active || place.distances || place.stride != 1 || place.lanes % per_byte != 0) return in_turn();
  // LLVM drops the branch where it knows that the offset is a multiple.
  llvm::BasicBlock *whole = new_block("whole_bytes"), *parts = new_block("parts"), *after = new_block("after_bytes");
  Value part = b_.CreateAnd(place.offset, b_.getInt64(static_cast<uint64_t>(per_byte - 1)));
  b_.CreateCondBr(b_.CreateICmpEQ(part, b_.getInt64(0)), whole, parts);
  b_.SetInsertPoint(whole);
  Value bytes = nullptr;
  for (int k = 0; k < per_byte; ++k) {
    llvm::SmallVector<int> mask;
    for (int i = k; i < place.lanes; i += per_byte) mask.push_back(i);
    Value shifted = b_.CreateShl(b_.CreateShuffleVector(bits, mask), static_cast<uint64_t>(k * dtype.bits));
    bytes = bytes ? b_.CreateOr(bytes, shifted) : shifted;
  }
  b_.CreateAlignedStore(bytes, pointer(buffer, place.offset, true), llvm::Align(1));
  b_.CreateBr(after);
  b_.SetInsertPoint(parts);
  in_turn();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

}  // namespace relaxc::codegen
