// Buffers of the interpreter: elements in memory, index checks, allocation.
#include <algorithm>

#include "support/checked_math.h"
#include "tir/interpret/internal.h"

namespace relaxc::interpreter {

// Integers are in memory as on every machine that relaxc runs on, the lowest byte first.
Word read_element(const char* at, DType dtype) {
  auto read = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  RELAXC_CHECK(!dtype.is_handle(), "element of {}", to_string(dtype));
  if (dtype.is_small_float()) return Word{.f = small_float_to_double(read(uint8_t{}), dtype)};
  if (dtype.code == DTypeCode::kBFloat) return Word{.f = bfloat16_to_float(read(uint16_t{}))};
  if (dtype == kFloat32) return Word{.f = read(float{})};
  if (dtype.is_float()) return Word{.f = dtype.bits == 64 ? read(double{}) : half_to_float(read(uint16_t{}))};
  Word word{.i = 0};
  std::memcpy(&word.i, at, dtype.bits / 8);
  return Word{.i = wrap_int(word.i, dtype)};
}

void write_element(char* at, DType dtype, Word value) {
  auto write = [&](auto bits) { std::memcpy(at, &bits, sizeof bits); };
  float single = static_cast<float>(value.f);
  if (dtype.is_small_float()) return write(double_to_small_float(value.f, dtype));
  if (dtype.code == DTypeCode::kBFloat) return write(float_to_bfloat16(single));
  if (dtype.is_float() && dtype.bits == 16) return write(float_to_half(single));
  if (dtype.is_float() && dtype.bits == 32) return write(single);
  std::memcpy(at, &value, dtype.bits / 8);
}

Place Access::place(Frame& frame) const {
  const BufferState& state = frame.buffers[slot];
  int64_t lane = frame.lane, part = dtype.lanes > 1 ? lane % dtype.lanes : 0;
  if (dtype.lanes > 1) frame.lane = lane / dtype.lanes;
  int64_t flat = state.offset;
  for (size_t d = 0; d < indices.size(); ++d) {
    int64_t index = indices[d]->as_int(frame);
    // As covers_rows() in ir/regions.h says.
    bool covers_rows = d > 0 && d + 1 == indices.size() && index == frame.lane && state.shape[d] > 0 &&
                       index_lanes % state.shape[d] == 0;
    if ((index < 0 || index >= state.shape[d]) && !covers_rows) {
      fail(span, "buffer '{}': index {} of dim {} is out of range [0, {})", buffer->name, index, d, state.shape[d]);
    }
    flat += index * state.strides[d];
  }
  if (frame.running && state.depth < frame.depth) check_declared(frame);
  frame.lane = lane;
  if (flat < 0 || flat >= state.capacity) {
    fail(span, "buffer '{}': element {} is outside of its memory of {} elements", buffer->name, flat, state.capacity);
  }
  int64_t at = flat * dtype.bytes() + part * dtype.element().bytes();
  return {state.data + at, state.written ? state.written + at : nullptr};
}

Word Access::read(Frame& frame) const {
  Place from = place(frame);
  DType element = dtype.element();
  bool checked = from.written && frame.check_unwritten && !frame.result_unused;
  if (checked && std::memchr(from.written, 0, static_cast<size_t>(element.bytes())))
    fail(span, "buffer '{}': element {} is read but was never written", buffer->name, position(frame));
  return read_element(from.at, dtype);
}

void Access::write(const Place& place, Word value) const {
  write_element(place.at, dtype, value);
  if (place.written) std::memset(place.written, 1, static_cast<size_t>(dtype.element().bytes()));
}

std::string Access::position(Frame& frame) const {
  std::string at;
  return at_lane(frame, frame.lane / dtype.lanes, [&] {
    for (const CodePtr& index : indices) at += (at.empty() ? "" : ", ") + std::to_string(index->as_int(frame));
    return "[" + at + "]";
  });
}

void Access::check_declared(Frame& frame) const {
  for (const DeclaredRegion& region : frame.running->regions) {
    bool applies = region.slot == slot && (region.is_write == is_write || (region.is_write && frame.running->has_init));
    for (size_t d = 0; applies && d < indices.size(); ++d) {
      int64_t index = indices[d]->as_int(frame);
      applies = index >= region.ranges[d].first && index < region.ranges[d].second;
    }
    if (applies) return;
  }
  fail(span, "block '{}' {} buffer '{}' at {}, which it does not declare", *frame.running->name,
       is_write ? "writes" : "reads", buffer->name, position(frame));
}

Access make_access(Compiler& compiler, const Buffer& buffer, const std::vector<Expr>& indices,
                   const std::optional<Expr>& predicate, const Span& span) {
  const BufferType& type = buffer_type(buffer);
  if (indices.size() != type.shape.size()) {
    fail(span, "buffer '{}' of rank {} is accessed with {} indices", buffer->name, type.shape.size(), indices.size());
  }
  if (type.dtype.is_handle() || (type.dtype.bits % 8 != 0 && !type.dtype.is_small_float()))
    fail_unsupported(span, "interpreter: buffer '{}' of {}", buffer->name, to_string(type.dtype));
  int index_lanes = indices.empty() ? 1 : dtype_of(indices.back()).lanes;
  Access access{buffer, compiler.buffer_slot(buffer, span), {}, index_lanes, nullptr, type.dtype, span, false};
  for (const Expr& index : indices) access.indices.push_back(compiler.expr(index));
  if (predicate) access.predicate = compiler.expr(*predicate);
  return access;
}

BufferCode Compiler::buffer_code(const Buffer& buffer, int slot) {
  const BufferType& type = buffer_type(buffer);
  BufferCode code{buffer, slot, {}, {}, nullptr};
  for (const Expr& dim : type.shape) code.shape.push_back(expr(dim));
  for (const Expr& stride : type.strides) code.strides.push_back(expr(stride));
  if (type.elem_offset && !type.elem_offset->is<Var>()) code.offset = expr(*type.elem_offset);
  return code;
}

void allocate(Frame& frame, const BufferCode& code) {
  const Span& span = code.buffer.span();
  const std::string& name = code.buffer->name;
  BufferState& state = frame.buffers[code.slot];
  state.shape.clear();
  for (const CodePtr& dim : code.shape) {
    state.shape.push_back(dim->as_int(frame));
    if (state.shape.back() < 0) fail(span, "buffer '{}': dim {} is negative", name, state.shape.back());
  }
  std::optional<int64_t> count = element_count(state.shape);
  state.strides.assign(state.shape.size(), 1);
  if (count && !code.strides.empty()) {  // strided: up to the last element's position
    std::optional<int64_t> last = 0;
    for (size_t d = 0; d < state.shape.size(); ++d) {
      state.strides[d] = code.strides[d]->as_int(frame);
      auto step = checked_mul(state.strides[d], std::max<int64_t>(state.shape[d] - 1, 0));
      last = last && step ? checked_add(*last, *step) : std::nullopt;
    }
    if (*count > 0) count = last ? checked_add(*last, 1) : std::nullopt;
  } else {
    for (size_t d = state.shape.size(); d-- > 1;) {
      if (count) state.strides[d - 1] = state.strides[d] * std::max<int64_t>(state.shape[d], 1);
    }
  }
  state.offset = code.offset ? code.offset->as_int(frame) : 0;
  if (count && *count > 0) count = checked_add(*count, state.offset);
  DType dtype = buffer_type(code.buffer).dtype;
  if (code.source >= 0) {
    const BufferState& source = frame.buffers[code.source];
    state.data = source.data;
    state.written = source.written;
    state.capacity = source.capacity * source.element_bytes / dtype.bytes();
    state.element_bytes = dtype.bytes();
    state.depth = frame.depth;  // what it touches is not traced to the source
    return;
  }
  state.element_bytes = dtype.bytes();
  std::optional<int64_t> bytes = count ? checked_mul(*count, dtype.bytes()) : std::nullopt;
  int64_t held = static_cast<int64_t>(state.storage.size() * sizeof(uint64_t));
  if (!bytes || *bytes < 0 || *bytes - held > frame.alloc_bytes_left) {
    fail(span, "buffer '{}': an allocation of {} bytes exceeds the limit", name, bytes ? *bytes : INT64_MAX);
  }
  size_t words = static_cast<size_t>((*bytes + 7) / 8);
  if (words > state.storage.size()) {
    frame.alloc_bytes_left -= static_cast<int64_t>(words * 8) - held;
    state.storage.resize(words);
  }
  std::fill_n(state.storage.begin(), words, ~uint64_t{0});
  state.data = reinterpret_cast<char*>(state.storage.data());
  if (code.contents) std::memcpy(state.data, code.contents->raw(), static_cast<size_t>(code.contents->bytes()));
  state.written_storage.assign(code.contents ? 0 : words * sizeof(uint64_t), 0);
  state.written = code.contents ? nullptr : state.written_storage.data();
  state.capacity = *count;
  state.depth = frame.depth;
}

}  // namespace relaxc::interpreter
