#include "tir/interpret/interpreter.h"

#include <bit>

#include "tir/interpret/internal.h"
#include "tir/lower/lower.h"
#include "tir/scalable.h"

namespace relaxc {

using namespace interpreter;

struct Interpreter::State {
  // A dim, stride or offset of a param: binds its variable, or is checked against the tensor once all are bound.
  struct Number {
    Expr value;
    size_t place;  // among the dims, the strides and the offset
    int slot;      // of the variable to bind, or -1
    CodePtr expected = nullptr;
    int64_t of(const BufferState& state) const;
    std::string name(size_t rank) const;
  };
  struct Param {
    Buffer buffer;
    int slot;
    std::vector<Number> numbers = {};  // the dims first; strides and offset only if the type has them
  };

  PrimFuncRef function;
  InterpretOptions options;
  std::vector<std::pair<VarRef, int>> scalars = {};
  std::vector<Param> params = {};
  StepPtr body = nullptr;
  Frame frame = {};

  void compile();
  void begin(std::span<const int64_t> values);
  void bind(const Param& param, const Tensor& tensor, uint8_t* written);
  // Checks the numbers of all params, and runs the body.
  void finish();
};

namespace {

// "n", "4", or the fallback print.
std::string dim_text(const Expr& dim) {
  if (const Var* var = dim.as<Var>()) return var->name;
  if (auto known = as_int(dim)) return std::to_string(*known);
  return debug_print(dim);
}

}  // namespace

int64_t Interpreter::State::Number::of(const BufferState& state) const {
  size_t rank = state.shape.size();
  if (place < rank) return state.shape[place];
  return place < 2 * rank ? state.strides[place - rank] : state.offset;
}

std::string Interpreter::State::Number::name(size_t rank) const {
  if (place < rank) return fmt::format("dim {}", place);
  return place < 2 * rank ? fmt::format("the stride of dim {}", place - rank) : "the element offset";
}

void Interpreter::State::compile() {
  Compiler compiler(options.check_regions);
  for (const VarRef& param : function->params) {
    if (param.type().is<PrimType>()) scalars.emplace_back(param, compiler.define(param));
  }
  for (const Buffer& buffer : buffer_params(function)) {
    const BufferType& type = buffer_type(buffer);
    Param& param = params.emplace_back(Param{buffer, compiler.define_buffer(buffer)});
    size_t rank = type.shape.size();
    auto add = [&](const Expr& value, size_t place) {
      param.numbers.push_back({value, place, compiler.define_if_new(value)});
    };
    for (size_t d = 0; d < rank; ++d) add(type.shape[d], d);
    for (size_t d = 0; d < type.strides.size(); ++d) add(type.strides[d], rank + d);
    if (type.elem_offset) add(*type.elem_offset, 2 * rank);
  }
  for (Param& param : params) {  // a dim may use what a later buffer binds
    for (Number& number : param.numbers) number.expected = compiler.expr(number.value);
  }
  body = compiler.stmt(initialize_empty_reductions(function)->body);
  frame = compiler.frame();
}

void Interpreter::State::begin(std::span<const int64_t> values) {
  if (values.size() != scalars.size())
    fail(function.span(), "expected {} scalar arguments, got {}", scalars.size(), values.size());
  Frame fresh;
  fresh.slots = std::move(frame.slots);
  fresh.buffers = std::move(frame.buffers);
  fresh.options = &options;
  fresh.steps_left = options.max_steps;
  fresh.alloc_bytes_left = options.max_alloc_bytes;
  frame = std::move(fresh);
  for (size_t i = 0; i < values.size(); ++i) {
    DType dtype = dtype_of(scalars[i].first);
    frame.slots[scalars[i].second] =
        dtype.is_float() ? Word(rounded_to(std::bit_cast<double>(values[i]), dtype)) : wrap_int(values[i], dtype);
  }
  for (BufferState& state : frame.buffers) state.storage = {};
}

void Interpreter::State::bind(const Param& param, const Tensor& tensor, uint8_t* written) {
  const BufferType& type = buffer_type(param.buffer);
  if (tensor.dtype() != type.dtype || tensor.shape().size() != type.shape.size())
    fail(param.buffer.span(), "buffer '{}': got {}, expected {} of rank {}", param.buffer->name, describe(tensor),
         to_string(type.dtype), type.shape.size());
  BufferState& state = frame.buffers[param.slot];
  state.written = written;
  state.data = static_cast<char*>(tensor.raw());
  state.capacity = tensor.size();
  state.element_bytes = tensor.dtype().bytes();
  state.offset = 0;
  state.shape = tensor.shape();
  state.strides = dense_strides(tensor.shape());
  for (const Number& number : param.numbers) {
    if (number.slot >= 0) frame.slots[number.slot] = number.of(state);
  }
}

void Interpreter::State::finish() {
  for (const Param& param : params) {
    const BufferState& state = frame.buffers[param.slot];
    size_t rank = state.shape.size();
    for (const Number& number : param.numbers) {
      bool is_stride = number.place >= rank && number.place < 2 * rank;
      int64_t value = number.of(state), expected = number.expected->as_int(frame);
      if (value == expected || (is_stride && state.shape[number.place - rank] <= 1)) continue;
      fail(param.buffer.span(), "buffer '{}': {} is {}, expected {} = {}", param.buffer->name, number.name(rank), value,
           dim_text(number.value), expected);
    }
  }
  body->run(frame);
}

Interpreter::Interpreter(PrimFuncRef function, InterpretOptions options)
    : state_(new State{with_vscale(function, options.vscale), options}) {
  state_->compile();
}
Interpreter::~Interpreter() = default;

void Interpreter::run(std::span<const Tensor> buffers, std::span<const int64_t> scalars,
                      std::span<WrittenBytes* const> written) {
  State& s = *state_;
  if (buffers.size() != s.params.size())
    fail(s.function.span(), "expected {} buffers, got {}", s.params.size(), buffers.size());
  s.begin(scalars);
  for (size_t i = 0; i < buffers.size(); ++i) {
    WrittenBytes* flags = i < written.size() ? written[i] : nullptr;
    RELAXC_CHECK(!flags || static_cast<int64_t>(flags->size()) == buffers[i].bytes(), "flags for {} bytes of {}",
                 flags->size(), describe(buffers[i]));
    s.bind(s.params[i], buffers[i], flags ? flags->data() : nullptr);
  }
  s.finish();
}

}  // namespace relaxc
