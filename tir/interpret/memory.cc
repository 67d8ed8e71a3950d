// Buffers of the interpreter: elements in memory, index checks, allocation.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "support/checked_math.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/interpret/internal.h"

namespace relaxc::interpreter {

namespace {

// Returns the bits of the nearest number of a float dtype, and the number of such bits.
uint64_t encode(double value, DType dtype) {
  if (dtype.bits == 64) return std::bit_cast<uint64_t>(value);
  return dtype.bits == 32 ? std::bit_cast<uint32_t>(static_cast<float>(value)) : float_bits(value, dtype);
}
double decode(uint64_t bits, DType dtype) {
  if (dtype.bits == 64) return std::bit_cast<double>(bits);
  return dtype.bits == 32 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                          : float_from_bits(static_cast<uint16_t>(bits), dtype);
}

}  // namespace

// The machines that relaxc knows are little-endian.
Word read_element(const char* at, DType dtype) {
  if (dtype.is_complex()) {
    Word number;
    number.bits = {};
    std::memcpy(number.bits.data(), at, static_cast<size_t>(dtype.element().bytes()));
    return number;
  }
  uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<size_t>(dtype.element().bytes()));
  return dtype.is_float() ? Word(decode(bits, dtype)) : Word(wrap_int(static_cast<int64_t>(bits), dtype));
}

void write_element(char* at, DType dtype, Word value) {
  if (dtype.is_complex()) {
    std::memcpy(at, value.bits.data(), static_cast<size_t>(dtype.element().bytes()));
    return;
  }
  uint64_t bits = dtype.is_float() ? encode(value.f, dtype) : static_cast<uint64_t>(value.i);
  std::memcpy(at, &bits, static_cast<size_t>(dtype.element().bytes()));
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(shape[d], 1);
  return strides;
}

int64_t BufferNumber::of(const BufferState& state) const {
  size_t rank = state.shape.size();
  if (place < rank) return state.shape[place];
  return place < 2 * rank ? state.strides[place - rank] : state.offset;
}

void BufferNumber::bind(Frame& frame, const BufferState& state) const {
  if (slot >= 0) frame.slots[slot] = of(state);
}

void BufferNumber::check(Frame& frame, const BufferState& state, const char* role, const Buffer& buffer) const {
  size_t rank = state.shape.size();
  bool is_stride = place >= rank && place < 2 * rank;
  int64_t actual = of(state), wanted = expected->as_int(frame);
  if (actual == wanted || (is_stride && state.shape[place - rank] <= 1)) return;
  std::string name = place < rank ? fmt::format("dim {}", place)
                     : is_stride  ? fmt::format("the stride of dim {}", place - rank)
                                  : "the element offset";
  const Var* var = value.as<Var>();
  auto known = as_int(value);
  fail(buffer.span(), "{} '{}': {} is {}, expected {} = {}", role, buffer->name, name, actual,
       var     ? var->name
       : known ? std::to_string(*known)
               : debug_print(value),
       wanted);
}

std::vector<BufferNumber> Compiler::numbers_of(const BufferType& type) {
  std::vector<BufferNumber> result;
  auto add = [&](const Expr& value, size_t place) { result.push_back({value, place, define_if_new(value)}); };
  size_t rank = type.shape.size();
  for (size_t d = 0; d < rank; ++d) add(type.shape[d], d);
  for (size_t d = 0; d < type.strides.size(); ++d) add(type.strides[d], rank + d);
  if (type.elem_offset) add(*type.elem_offset, 2 * rank);
  return result;
}

void Compiler::set_expected(std::vector<BufferNumber>& numbers) {
  for (BufferNumber& number : numbers) number.expected = expr(number.value);
}

Place Access::place(Frame& frame) const {
  const BufferState& state = frame.buffers[slot];
  int64_t lane = frame.lane, part = 0;
  if (dtype.lanes > 1) {
    part = lane % dtype.lanes;
    frame.lane = lane / dtype.lanes;
  }
  int64_t flat = state.offset;
  for (size_t d = 0; d < indices.size(); ++d) {
    int64_t index = indices[d]->as_int(frame);
    // As covers_rows() in ir/regions.h says.
    bool covers_rows = d > 0 && d + 1 == indices.size() && index == frame.lane && state.shape[d] > 0 &&
                       index_lanes % state.shape[d] == 0;
    if ((index < 0 || index >= state.shape[d]) && !covers_rows)
      fail(span, "buffer '{}': index {} of dim {} is out of range [0, {})", buffer->name, index, d, state.shape[d]);
    flat += index * state.strides[d];
  }
  if (frame.running && state.depth < frame.depth) check_declared(frame);
  frame.lane = lane;
  if (flat < 0 || flat >= state.capacity)
    fail(span, "buffer '{}': element {} is outside of its memory of {} elements", buffer->name, flat, state.capacity);
  int64_t at = state.byte_of(flat) + part * dtype.element().bytes();
  return {state.data + at, state.written ? state.written + at : nullptr, flat % dtype.per_byte(),
          flat + 1 == state.capacity};
}

MemoryAt memory_at(const Frame& frame, const char* at) {
  for (const BufferState& state : frame.buffers) {
    const char* end = state.data + state.dtype.bytes_of(state.capacity);
    bool holds = state.data && std::less_equal<>()(static_cast<const char*>(state.data), at) && std::less<>()(at, end);
    if (holds) return {end - at, state.written ? state.written + (at - state.data) : nullptr, true};
  }
  return {};
}

CodePtr Compiler::address_code(const Call& node, const Span& span) {
  const std::string& name = node.callee.as<OpRef>()->name;
  if (name == ops::kBufferData || name == kBufferElemOffset) {
    Buffer buffer = cast<Var>(node.args[0]);
    const BufferType& type = buffer_type(buffer);
    // The pointer to a window that says nothing about its offset is where the window begins.
    bool has_offset = type.elem_offset || type.offset_factor > 0, asks_offset = name == kBufferElemOffset;
    return code([slot = static_cast<size_t>(buffer_slot(buffer, span)), has_offset, asks_offset](Frame& frame) -> Word {
      const BufferState& state = frame.buffers[slot];
      if (asks_offset) return state.offset;
      return word_of(state.data + (has_offset ? 0 : state.byte_of(state.offset)));
    });
  }
  if (name == ops::kAddressOf) {
    const BufferLoad* element = node.args[0].as<BufferLoad>();
    if (!element) fail(span, "T.address_of takes an element of a buffer");
    return code([at = access(*element, span)](Frame& frame) { return word_of(at.place(frame).at); });
  }
  CodePtr pointer = expr(node.args[0]);
  if (name == ops::kIsNullPtr)
    return code([pointer = std::move(pointer)](Frame& frame) -> Word { return pointer->as_int(frame) == 0; });
  return code([pointer = std::move(pointer), bytes = expr(node.args[1])](Frame& frame) -> Word {
    return pointer->as_int(frame) + bytes->as_int(frame);
  });
}

Word Access::read(Frame& frame) const {
  Place from = place(frame);
  bool checked = from.written && frame.options->check_unwritten && !frame.result_unused;
  if (checked && std::memchr(from.written, 0, static_cast<size_t>(dtype.element().bytes())))
    fail(span, "buffer '{}': element {} is read but was never written", buffer->name, position(frame));
  if (!dtype.is_packed()) return read_element(from.at, dtype);
  char bits = static_cast<char>(packed_bits(from.at, from.part, dtype));
  return read_element(&bits, dtype);
}

void Access::write(const Place& place, Word value) const {
  if (!dtype.is_packed()) write_element(place.at, dtype, value);
  if (dtype.is_packed()) {
    char bits = 0;
    write_element(&bits, dtype, value);
    set_packed_bits(place.at, place.part, dtype, static_cast<uint8_t>(bits));
    for (int64_t i = place.part + 1; place.is_last && i < dtype.per_byte(); ++i) set_packed_bits(place.at, i, dtype, 0);
  }
  if (place.written) std::memset(place.written, 1, static_cast<size_t>(dtype.element().bytes()));
}

std::string Access::position(Frame& frame) const {
  Temporarily lane(frame.lane, frame.lane / dtype.lanes);
  return fmt::format("[{}]", joined(map_each(indices, [&](const CodePtr& at) { return at->as_int(frame); })));
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

template <class Node>
Access Compiler::access(const Node& node, const Span& span) {
  const BufferType& type = buffer_type(node.buffer);
  if (node.indices.size() != type.shape.size())
    fail(span, "buffer '{}' of rank {} is accessed with {} indices", node.buffer->name, type.shape.size(),
         node.indices.size());
  if (type.dtype.is_handle() || (type.dtype.lanes > 1 && type.dtype.element().is_packed()))
    fail_unsupported(span, "interpreter: buffer '{}' of {}", node.buffer->name, to_string(type.dtype));
  return {.buffer = node.buffer,
          .slot = buffer_slot(node.buffer, span),
          .is_write = std::is_same_v<Node, BufferStore>,
          .indices = exprs(node.indices),
          .index_lanes = node.indices.empty() ? 1 : dtype_of(node.indices.back()).lanes,
          .predicate = node.predicate ? expr(*node.predicate) : nullptr,
          .dtype = type.dtype,
          .span = span};
}
template Access Compiler::access(const BufferLoad&, const Span&);
template Access Compiler::access(const BufferStore&, const Span&);

namespace {

// An allocation, or a view of another buffer's memory.
struct Allocation {
  Buffer buffer;
  int slot;
  std::vector<CodePtr> shape, strides;  // dense where there are no strides
  CodePtr offset;                       // null: 0
  CodePtr pointer = nullptr;            // of a view: where its memory is
  std::optional<Tensor> contents = {};  // what the memory holds at first

  // Sets shape, strides and memory.
  void operator()(Frame& frame) const {
    const Span& span = buffer.span();
    BufferState& state = frame.buffers[slot];
    state.shape.clear();
    for (const CodePtr& dim : shape) {
      state.shape.push_back(dim->as_int(frame));
      if (state.shape.back() < 0) fail(span, "buffer '{}': dim {} is negative", buffer->name, state.shape.back());
    }
    std::optional<int64_t> count = element_count(state.shape);
    state.strides = count ? dense_strides(state.shape) : std::vector<int64_t>(state.shape.size(), 1);
    if (count && !strides.empty()) {  // up to the last element's position
      std::optional<int64_t> last = 0;
      for (size_t d = 0; d < state.shape.size(); ++d) {
        state.strides[d] = strides[d]->as_int(frame);
        auto step = checked_mul(state.strides[d], std::max<int64_t>(state.shape[d] - 1, 0));
        last = last && step ? checked_add(*last, *step) : std::nullopt;
      }
      if (*count > 0) count = last ? checked_add(*last, 1) : std::nullopt;
    }
    state.offset = offset ? offset->as_int(frame) : 0;
    if (count && *count > 0) count = checked_add(*count, state.offset);
    state.depth = frame.depth;  // accesses of a view are not traced to its source
    state.dtype = buffer_type(buffer).dtype;
    if (pointer) {
      char* at = pointer_of(pointer->word(frame));
      state.data = nullptr;  // an earlier view under this name does not count
      MemoryAt memory = memory_at(frame, at);
      state.data = at;
      state.written = memory.written;
      // Memory that no buffer has, such as what an external function returned, is taken to be large enough.
      state.capacity =
          memory.is_known ? memory.bytes / state.dtype.bytes() * state.dtype.per_byte() : count.value_or(0);
    } else {
      take_memory(frame, state, count);
    }
  }
  void take_memory(Frame& frame, BufferState& state, std::optional<int64_t> count) const {
    std::optional<int64_t> bytes = count ? tensor_bytes(std::array{*count}, state.dtype) : std::nullopt;
    int64_t held = static_cast<int64_t>(state.storage.size() * sizeof(uint64_t));
    if (!bytes || *bytes < 0 || *bytes - held > frame.alloc_bytes_left)
      fail(buffer.span(), "buffer '{}': an allocation of {} bytes exceeds the limit", buffer->name,
           bytes.value_or(INT64_MAX));
    size_t words = static_cast<size_t>((*bytes + 7) / 8);
    if (words > state.storage.size()) {
      frame.alloc_bytes_left -= static_cast<int64_t>(words * 8) - held;
      state.storage.resize(words);
    }
    std::fill_n(state.storage.begin(), words, ~uint64_t{0});
    state.data = reinterpret_cast<char*>(state.storage.data());
    if (contents) std::memcpy(state.data, contents->raw(), static_cast<size_t>(contents->bytes()));
    state.written_storage.assign(contents ? 0 : words * sizeof(uint64_t), 0);
    state.written = contents ? nullptr : state.written_storage.data();
    state.capacity = *count;
  }
};

}  // namespace

StepPtr Compiler::alloc_step(const AllocBuffer& node, const Span& span) {
  const BufferType& type = buffer_type(node.buffer);
  CodePtr pointer = type.data ? expr(*type.data) : nullptr;
  bool has_offset = type.elem_offset && !type.elem_offset->is<Var>();
  Allocation allocation{node.buffer,
                        define_buffer(node.buffer),
                        exprs(type.shape),
                        exprs(type.strides),
                        has_offset ? expr(*type.elem_offset) : nullptr,
                        std::move(pointer)};
  if (node.contents) allocation.contents = node.contents->as<Constant>()->data;
  return counted(span, std::move(allocation));
}

}  // namespace relaxc::interpreter
