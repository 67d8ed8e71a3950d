#include <fmt/format.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/PatternMatch.h>

#include "codegen/function_emitter.h"
#include "codegen/rounding.h"
#include "ir/visit.h"
#include "support/checked_math.h"
#include "support/diagnostic.h"
#include "tir/lower/rewriting.h"
#include "vm/kernel_abi.h"
#include "vm/memory.h"

namespace relaxc::codegen {

static llvm::Align element_alignment(DType dtype) {
  constexpr int64_t kMost = 8;  // of a host's tensors (Tensor::view)
  return llvm::Align(static_cast<uint64_t>(std::clamp<int64_t>(dtype.element().bytes(), 1, kMost)));
}

// ---- Allocation

void FunctionEmitter::alloc_buffer(const AllocBuffer& alloc) {
  const Buffer& buffer = alloc.buffer;
  const BufferType& type = buffer_type(buffer);
  if (type.data) {  // a view
    variables_[buffer.get()] = expr(*type.data);
    return;
  }
  if (alloc.contents) {
    variables_[buffer.get()] = constant_memory(alloc.contents->as<Constant>()->data, buffer->name);
    return;
  }
  int64_t element_bytes = type.dtype.lanes * type.dtype.element().bytes();
  std::optional<int64_t> count = 1;
  bool known_on_entry = true;
  for (const Expr& dim : type.shape) {
    std::optional<int64_t> size = as_int(dim);
    RELAXC_CHECK(!size || *size >= 0, "buffer '{}' has a dim of {}", buffer->name, *size);
    for (const VarRef& var : free_vars(dim)) known_on_entry = known_on_entry && parameters_.contains(var.get());
    count = count && size ? checked_mul(*count, *size) : std::nullopt;
  }
  bool is_packed = type.dtype.is_packed();
  std::optional<int64_t> bytes = count && is_packed ? type.dtype.bytes_of(*count)
                                 : count            ? checked_mul(*count, element_bytes)
                                                    : std::nullopt;
  // The next copy of an unrolled body takes the same memory, whose contents are undefined at first anyway.
  if (known_on_entry && variables_.contains(buffer.get())) return;
  const Target& target = kernel_.target;
  int64_t limit = type.scope == "local" ? target.local.buffer_bytes : target.local.other_bytes;
  if (bytes && *bytes <= limit && stack_bytes_ + *bytes <= target.local.bytes) {
    stack_bytes_ += *bytes;
    int64_t elements = std::max<int64_t>(*bytes / element_bytes, 1);
    auto* array = llvm::ArrayType::get(element_type(buffer), static_cast<uint64_t>(elements * type.dtype.lanes));
    llvm::AllocaInst* memory = stack_memory(array, buffer->name);
    memory->setAlignment(llvm::Align(vm::kAlignment));
    variables_[buffer.get()] = memory;
    return;
  }
  // Scratch lives until the function returns. It is requested once, on entry, so that a loop does not accumulate it.
  // Only a size that is computed inside the function is requested in place.
  auto here = b_.saveIP();
  if (known_on_entry) b_.SetInsertPoint(setup_);
  emitted_.emplace_back();
  auto [size, overflow] = bytes_at_run_time(type);
  emitted_.pop_back();
  return_if(overflow, b_.getInt32(1), "the size of a temporary buffer overflows");
  variables_[buffer.get()] = scratch(buffer, size);
  if (!known_on_entry) return;
  setup_ = b_.GetInsertBlock();
  b_.restoreIP(here);
}

// Returns the bytes of a buffer, and whether their number overflows.
std::pair<Value, Value> FunctionEmitter::bytes_at_run_time(const BufferType& type) {
  bool is_packed = type.dtype.is_packed();
  int64_t element_bytes = type.dtype.lanes * type.dtype.element().bytes();
  Value size = b_.getInt64(static_cast<uint64_t>(element_bytes));
  Value overflow = b_.getFalse();
  for (const Expr& dim : type.shape) {
    Value extent = int64(dim);
    Value product = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smul_with_overflow, size, extent);
    overflow = b_.CreateOr(overflow, b_.CreateExtractValue(product, 1));
    overflow = b_.CreateOr(overflow, b_.CreateICmpSLT(extent, b_.getInt64(0)));
    size = b_.CreateExtractValue(product, 0);
  }
  if (is_packed) {
    int64_t per_byte = type.dtype.per_byte();
    size = b_.CreateLShr(b_.CreateAdd(size, b_.getInt64(static_cast<uint64_t>(per_byte - 1))),
                         llvm::Log2_64(static_cast<uint64_t>(per_byte)));
  }
  return {size, overflow};
}

// Returns read-only memory that holds the tensor's elements.
Value FunctionEmitter::constant_memory(const Tensor& tensor, const std::string& name) {
  llvm::StringRef bytes(static_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes()));
  llvm::Constant* contents = llvm::ConstantDataArray::getString(b_.getContext(), bytes, false);
  llvm::GlobalVariable* memory = make_global(kernel_.module, contents, name);
  memory->setAlignment(llvm::Align(vm::kAlignment));
  return memory;
}

Value FunctionEmitter::scratch(const Buffer& buffer, Value bytes) {
  Value wanted = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, bytes, b_.getInt64(1));
  llvm::CallInst* memory = call_context(offsetof(relaxc_kernel_context, scratch), b_.getPtrTy(), {context_, wanted});
  memory->setName(buffer->name);
  memory->addRetAttr(llvm::Attribute::NoAlias);
  return_if(b_.CreateIsNull(memory), b_.getInt32(1), "out of memory for a temporary buffer");
  return memory;
}

// ---- Addresses

FunctionEmitter::Place FunctionEmitter::place(const Buffer& buffer, const std::vector<Expr>& indices) {
  const BufferType& type = buffer_type(buffer);
  RELAXC_CHECK(type.strides.empty() && (!type.elem_offset || is_int(*type.elem_offset, 0)),
               "{}: buffer '{}' is strided or has an offset; flatten it first", kernel_.symbol, buffer->name);
  RELAXC_CHECK(indices.size() == type.shape.size(), "{}: {} indices for buffer '{}' of rank {}", kernel_.symbol,
               indices.size(), buffer->name, type.shape.size());
  Place result{.offset = b_.getInt64(0)};
  for (size_t d = 0; d < indices.size(); ++d) {
    const Expr& index = indices[d];
    if (d > 0) result.offset = b_.CreateNSWMul(result.offset, int64(type.shape[d]));
    if (dtype_of(index).lanes == 1) {
      result.offset = b_.CreateNSWAdd(result.offset, offset(index));
      continue;
    }
    RELAXC_CHECK(d + 1 == indices.size(), "{}: a vector in another index than the last of '{}'", kernel_.symbol,
                 buffer->name);
    result.lanes = dtype_of(index).lanes;
    if (auto affine = as_affine_lanes(index)) {
      result.offset = b_.CreateNSWAdd(result.offset, offset(affine->base));
      result.stride = affine->stride;
      continue;
    }
    // The part that all lanes share stays a scalar, and the rest stays as narrow as it is computed.
    const Binary* sum = index.as<Binary>();
    const Broadcast* shared = sum && sum->op == BinaryOp::kAdd ? sum->a.as<Broadcast>() : nullptr;
    if (shared) result.offset = b_.CreateNSWAdd(result.offset, int64(shared->value));
    const Expr& rest = shared ? sum->b : index;
    const Cast* wider = rest.as<Cast>();
    bool is_int32 = dtype_of(wider ? wider->value : rest).element() == kInt32;
    result.distances = is_int32 ? expr(wider ? wider->value : rest) : int64(rest);
  }
  if (type.dtype.lanes > 1) {  // elements are vectors themselves
    if (result.lanes > 1 && (result.distances || result.stride != 1))
      fail_unsupported({}, "{}: a gather of vector elements from '{}'", kernel_.symbol, buffer->name);
    result.offset = b_.CreateNSWMul(result.offset, b_.getInt64(type.dtype.lanes));
    result.lanes *= type.dtype.lanes;
    result.stride = 1;
  }
  return result;
}

Value FunctionEmitter::lane_offset(const Place& place, int lane) {
  return b_.CreateAdd(place.offset, b_.getInt64(static_cast<uint64_t>(place.stride * lane)));
}

// Returns one address per lane.
Value FunctionEmitter::pointers(const Buffer& buffer, const Place& place) {
  Value distances = place.distances;
  if (!distances) {
    DType dtype = kInt64.with_lanes(place.lanes);
    distances = b_.CreateMul(b_.CreateStepVector(ops_.type(dtype)), ops_.int_constant(place.stride, dtype));
  }
  return b_.CreateGEP(element_type(buffer), pointer(buffer, place.offset, false), distances);
}

llvm::Type* FunctionEmitter::element_type(const Buffer& buffer) {
  return ops_.memory_type(buffer_type(buffer).dtype.element());
}

// Masked accesses may form addresses outside of the buffer.
Value FunctionEmitter::pointer(const Buffer& buffer, Value offset, bool in_range) {
  DType dtype = buffer_type(buffer).dtype;
  if (dtype.is_packed()) offset = b_.CreateAShr(offset, llvm::Log2_64(static_cast<uint64_t>(dtype.per_byte())));
  return b_.CreateGEP(element_type(buffer), variable(buffer), offset, "", in_range);
}

Value FunctionEmitter::active_lanes(const std::optional<Expr>& predicate, int lanes) {
  Value active = nullptr;
  if (predicate) {
    active = expr(*predicate);
    if (lanes > 1 && !active->getType()->isVectorTy()) active = ops_.splat(active, lanes);
  }
  if (!mask_) return active;
  RELAXC_CHECK(lanes == 1 || mask_->getType() == ops_.type(kBool.with_lanes(lanes)),
               "{}: an access of {} lanes under a condition of another number", kernel_.symbol, lanes);
  Value outer = lanes == 1 ? b_.CreateOrReduce(mask_) : mask_;
  return active ? b_.CreateAnd(active, outer) : outer;
}

// ---- Access

// Returns the vector with as many lanes, the first of which are those of `value`.
static Value resized(llvm::IRBuilder<>& b, Value value, int lanes) {
  int given = static_cast<int>(llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements());
  llvm::SmallVector<int> mask;
  for (int lane = 0; lane < lanes; ++lane) mask.push_back(lane < given ? lane : llvm::PoisonMaskElem);
  return given == lanes ? value : b.CreateShuffleVector(value, mask);
}
// Returns the mask of so many lanes whose first `count` are set.
static Value first_lanes(llvm::IRBuilder<>& b, int lanes, int count) {
  llvm::SmallVector<llvm::Constant*> mask;
  for (int lane = 0; lane < lanes; ++lane) mask.push_back(b.getInt1(lane < count));
  return llvm::ConstantVector::get(mask);
}

// Returns the first lane of a vector of integers whose lanes grow by one; null of another vector.
static Value first_of_neighbours(Value vector) {
  using namespace llvm::PatternMatch;
  Value shared = nullptr, lanes = nullptr;
  if (match(vector, m_Add(m_Value(shared), m_Value(lanes)))) {
    llvm::Constant* first = llvm::dyn_cast_or_null<llvm::Constant>(first_of_neighbours(lanes));
    return first && first->isNullValue() ? llvm::getSplatValue(shared) : nullptr;
  }
  const auto* known = llvm::dyn_cast<llvm::ConstantDataVector>(vector);
  for (unsigned i = 1; known && i < known->getNumElements(); ++i) {
    if (known->getElementAsInteger(i) != known->getElementAsInteger(0) + i) return nullptr;
  }
  return known ? known->getElementAsConstant(0) : nullptr;
}

Value FunctionEmitter::count_of_first_lanes(Value mask) {
  using namespace llvm::PatternMatch;
  Value a = nullptr, b = nullptr;
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
  if (match(mask, m_And(m_Value(a), m_Value(b)))) {
    Value first = count_of_first_lanes(a), second = first ? count_of_first_lanes(b) : nullptr;
    return second ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, first, second) : nullptr;
  }
  if (Value all = llvm::getSplatValue(mask)) return b_.CreateSelect(all, b_.getInt64(lanes), b_.getInt64(0));
  if (!match(mask, m_SpecificICmp(llvm::CmpInst::ICMP_SLT, m_Value(a), m_Value(b)))) return nullptr;
  Value first = first_of_neighbours(a), end = llvm::getSplatValue(b);
  if (!first || !end) return nullptr;
  return b_.CreateSub(b_.CreateSExtOrTrunc(end, b_.getInt64Ty()), b_.CreateSExtOrTrunc(first, b_.getInt64Ty()));
}

int FunctionEmitter::padded_lanes(const Buffer& buffer, DType dtype) {
  constexpr int kMaskedElement = 32;
  const Target& target = kernel_.target;
  bool is_wanted = uses_avx512(target) && !dtype.is_scalable() && dtype.bits >= kMaskedElement &&
                   !llvm::isPowerOf2_32(static_cast<uint32_t>(dtype.lanes)) &&
                   !llvm::isa<llvm::AllocaInst>(variable(buffer));  // LLVM puts that into registers
  if (!is_wanted) return 0;
  uint64_t full = static_cast<uint64_t>(target.vector_lanes(dtype.bits)), lanes = dtype.lanes;
  return static_cast<int>(lanes < full ? llvm::PowerOf2Ceil(lanes) : llvm::alignTo(lanes, full));
}

Value FunctionEmitter::load_contiguous(const Buffer& buffer, Value offset, DType dtype, Value mask) {
  if (int lanes = mask ? 0 : padded_lanes(buffer, dtype)) {
    Value some = first_lanes(b_, lanes, dtype.lanes);
    Value padded = b_.CreateMaskedLoad(ops_.memory_type(dtype.with_lanes(lanes)), pointer(buffer, offset, true),
                                       element_alignment(dtype), some);
    return ops_.from_memory(resized(b_, padded, dtype.lanes), dtype);
  }
  llvm::Type* type = ops_.memory_type(dtype);
  llvm::Align alignment = element_alignment(dtype);
  Value address = pointer(buffer, offset, mask == nullptr);
  Value loaded =
      mask ? static_cast<Value>(b_.CreateMaskedLoad(type, address, alignment, mask, llvm::Constant::getNullValue(type)))
           : b_.CreateAlignedLoad(type, address, alignment);
  return ops_.from_memory(loaded, dtype);
}

Value FunctionEmitter::load_scalar(const Buffer& buffer, Value offset, DType dtype, Value condition) {
  auto read = [&] { return load_contiguous(buffer, offset, dtype.element(), nullptr); };
  return condition ? guarded(condition, ops_.type(dtype.element()), read) : read();
}

// Reads a zero elsewhere where the condition does not hold: a branch around each load would cut a loop into pieces.
Value FunctionEmitter::load_or_zero(const Buffer& buffer, Value offset, DType dtype, Value condition) {
  llvm::Type* type = ops_.memory_type(dtype);
  const std::string name = fmt::format("relaxc_zero_{}", to_string(dtype));
  llvm::GlobalVariable* zero = kernel_.module.getNamedGlobal(name);
  if (!zero) zero = make_global(kernel_.module, llvm::Constant::getNullValue(type), name);
  Value address = b_.CreateSelect(condition, pointer(buffer, offset, false), zero);
  return ops_.from_memory(b_.CreateAlignedLoad(type, address, element_alignment(dtype)), dtype);
}

Value FunctionEmitter::load_strided(const Buffer& buffer, const Place& place, DType dtype, Value active) {
  constexpr int64_t kMostVectors = 4;  // that hold the lanes of one
  constexpr int kLeastBits = 32;
  int full = kernel_.target.vector_lanes(dtype.bits);
  bool is_wanted = place.stride > 1 && place.stride <= kMostVectors && dtype.bits >= kLeastBits && full > 1 &&
                   !llvm::isa<llvm::AllocaInst>(variable(buffer));
  int rest = dtype.lanes % full;
  bool is_whole = rest == 0 || padded_lanes(buffer, dtype.with_lanes(full + 1)) > 0;  // or has masks for the rest
  if (!is_wanted || !is_whole) return nullptr;
  llvm::SmallVector<Value> parts;
  for (int first = 0; first < dtype.lanes; first += full) {
    int count = std::min(full, dtype.lanes - first);
    int64_t span = (count - 1) * place.stride + 1;
    Value begin = lane_offset(place, first), part = llvm::PoisonValue::get(ops_.type(dtype.with_lanes(full)));
    for (int64_t at = 0; at < span; at += full) {
      // The last vector ends with the last lane: what is behind that may not be in the buffer.
      int64_t from = span < full || active ? at : std::min(at, span - full);
      int loaded = static_cast<int>(active ? full : std::min<int64_t>(full, span));
      llvm::SmallVector<int> mask;
      llvm::SmallVector<int> lane_of(static_cast<size_t>(loaded), dtype.lanes);  // without one: an inactive lane
      for (int lane = 0; lane < full; ++lane) {
        int64_t position = lane * place.stride;
        bool is_here = lane < count && position >= at && position < at + full;
        mask.push_back(is_here ? full + static_cast<int>(position - from) : lane);
        if (is_here) lane_of[static_cast<size_t>(position - from)] = first + lane;
      }
      Value offset = b_.CreateAdd(begin, b_.getInt64(static_cast<uint64_t>(from)));
      Value some =
          active ? b_.CreateShuffleVector(active, llvm::Constant::getNullValue(active->getType()), lane_of) : nullptr;
      Value source = resized(b_, load_contiguous(buffer, offset, dtype.with_lanes(loaded), some), full);
      part = b_.CreateShuffleVector(part, source, mask);
    }
    parts.push_back(part);
  }
  return resized(b_, llvm::concatenateVectors(b_, parts), dtype.lanes);
}

Value FunctionEmitter::load_apart(const BufferLoad& load, DType dtype) {
  const Ramp* ramp = load.indices.size() == 1 ? load.indices[0].as<Ramp>() : nullptr;
  bool is_wanted = ramp && !as_int(ramp->stride) && dtype_of(load.indices[0]).element() == kInt64 &&
                   !dtype.is_scalable() && buffer_type(load.buffer).dtype.lanes == 1;
  if (!is_wanted) return nullptr;
  Value at = offset(ramp->base), step = int64(ramp->stride), result = llvm::PoisonValue::get(ops_.type(dtype));
  for (int lane = 0; lane < dtype.lanes; ++lane) {
    if (lane > 0) at = b_.CreateNSWAdd(at, step);
    Value element = load_scalar(load.buffer, at, dtype, nullptr);
    result = b_.CreateInsertElement(result, element, static_cast<uint64_t>(lane));
  }
  return result;
}

Value FunctionEmitter::load(const BufferLoad& load, DType dtype) {
  if (Value elements = lookup(load, dtype)) return elements;
  bool has_mask = load.predicate || mask_;
  if (!has_mask && !buffer_type(load.buffer).dtype.is_packed()) {
    if (Value lanes = load_apart(load, dtype)) return lanes;
  }
  Place where = place(load.buffer, load.indices);
  RELAXC_CHECK(where.lanes == dtype.lanes, "{}: a load of {} lanes from '{}' has type {}", kernel_.symbol, where.lanes,
               load.buffer->name, to_string(dtype));
  Value active = active_lanes(load.predicate, where.lanes);
  if (buffer_type(load.buffer).dtype.is_packed()) return load_packed(load.buffer, where, dtype, active);
  if (where.lanes == 1) return load_scalar(load.buffer, where.offset, dtype, active);
  bool is_regular = !where.distances;
  if (is_regular && where.stride == 1) return load_contiguous(load.buffer, where.offset, dtype, active);
  if (is_regular && where.stride == 0) {
    Value one = active ? load_or_zero(load.buffer, where.offset, dtype.element(), b_.CreateOrReduce(active))
                       : load_scalar(load.buffer, where.offset, dtype, nullptr);
    Value all = ops_.splat(one, where.lanes);
    return active ? b_.CreateSelect(active, all, llvm::Constant::getNullValue(all->getType())) : all;
  }
  if (!is_regular || dtype.is_scalable()) {
    llvm::Type* type = ops_.memory_type(dtype);
    Value all = b_.CreateMaskedGather(type, pointers(load.buffer, where), element_alignment(dtype), active,
                                      llvm::Constant::getNullValue(type));
    return ops_.from_memory(all, dtype);
  }
  if (Value vectors = load_strided(load.buffer, where, dtype, active)) return vectors;
  Value result = llvm::PoisonValue::get(ops_.type(dtype));
  for (int lane = 0; lane < where.lanes; ++lane) {
    Value condition = active ? b_.CreateExtractElement(active, static_cast<uint64_t>(lane)) : nullptr;
    Value element = load_scalar(load.buffer, lane_offset(where, lane), dtype, condition);
    result = b_.CreateInsertElement(result, element, static_cast<uint64_t>(lane));
  }
  return result;
}

void FunctionEmitter::store_contiguous(const Buffer& buffer, Value offset, Value value, DType dtype, Value mask) {
  llvm::Align alignment = element_alignment(dtype);
  Value stored = ops_.to_memory(value, dtype);
  Value address = pointer(buffer, offset, mask == nullptr);
  if (int lanes = mask ? 0 : padded_lanes(buffer, dtype)) {
    b_.CreateMaskedStore(resized(b_, stored, lanes), address, alignment, first_lanes(b_, lanes, dtype.lanes));
  } else if (Value count = mask && has_slow_masks(dtype) ? count_of_first_lanes(mask) : nullptr) {
    store_first_lanes(stored, address, alignment, count);
  } else if (mask) {
    b_.CreateMaskedStore(stored, address, alignment, mask);
  } else {
    b_.CreateAlignedStore(stored, address, alignment);
  }
}

// A masked store takes 20 to 40 cycles on Zen 3, and is a branch for each lane where there is none.
bool FunctionEmitter::has_slow_masks(DType dtype) const {
  return !uses_avx512(kernel_.target) && !dtype.is_scalable() &&
         llvm::isPowerOf2_32(static_cast<uint32_t>(dtype.lanes));
}

void FunctionEmitter::store_first_lanes(Value vector, Value address, llvm::Align alignment, Value count) {
  int lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  auto store_if = [&](Value condition, Value value) {
    guarded(condition, b_.getVoidTy(), [&]() -> Value { return b_.CreateAlignedStore(value, address, alignment); });
  };
  auto number = [&](int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); };
  Value is_whole = b_.CreateICmpSGE(count, number(lanes));
  store_if(is_whole, vector);
  Value is_partial = b_.CreateAnd(b_.CreateNot(is_whole), b_.CreateICmpSGT(count, number(0)));
  guarded(is_partial, b_.getVoidTy(), [&]() -> Value {
    while ((lanes /= 2) > 0) {
      llvm::SmallVector<int> first, second;
      for (int lane = 0; lane < lanes; ++lane) first.push_back(lane), second.push_back(lane + lanes);
      Value low = b_.CreateShuffleVector(vector, first), high = b_.CreateShuffleVector(vector, second);
      Value is_stored = b_.CreateICmpNE(b_.CreateAnd(count, number(lanes)), number(0));
      store_if(is_stored, low);
      vector = b_.CreateSelect(is_stored, high, low);
      address = b_.CreateSelect(is_stored, b_.CreateConstGEP1_64(low->getType(), address, 1), address);
    }
    return nullptr;
  });
}

void FunctionEmitter::store_stmt(const BufferStore& store) {
  DType dtype = dtype_of(store.value);
  set_contraction(kernel_.contracts || (kernel_.target.has_fma && accumulates(store)));
  Value value = expr(store.value);
  set_contraction(kernel_.contracts);
  Place where = place(store.buffer, store.indices);
  if (where.lanes > 1 && dtype.lanes == 1) {
    value = ops_.splat(value, where.lanes);
    dtype = dtype.with_lanes(where.lanes);
  }
  RELAXC_CHECK(where.lanes == dtype.lanes, "{}: a store of {} into {} lanes of '{}'", kernel_.symbol, to_string(dtype),
               where.lanes, store.buffer->name);
  Value active = active_lanes(store.predicate, where.lanes);
  if (buffer_type(store.buffer).dtype.is_packed()) return store_packed(store.buffer, where, value, dtype, active);
  auto store_lane = [&](Value offset, Value element, Value condition) {
    auto write = [&]() -> Value {
      store_contiguous(store.buffer, offset, element, dtype.element(), nullptr);
      return nullptr;
    };
    condition ? guarded(condition, b_.getVoidTy(), write) : write();
  };
  if (where.lanes == 1) return store_lane(where.offset, value, active);
  if (where.stride == 1) return store_contiguous(store.buffer, where.offset, value, dtype, active);
  // The lanes are stored in order, so that the last one wins where addresses are equal.
  if (where.distances || dtype.is_scalable()) {
    b_.CreateMaskedScatter(ops_.to_memory(value, dtype), pointers(store.buffer, where), element_alignment(dtype),
                           active);
    return;
  }
  for (int lane = 0; lane < where.lanes; ++lane) {
    uint64_t position = static_cast<uint64_t>(lane);
    Value condition = active ? b_.CreateExtractElement(active, position) : nullptr;
    store_lane(lane_offset(where, lane), b_.CreateExtractElement(value, position), condition);
  }
}

}  // namespace relaxc::codegen
