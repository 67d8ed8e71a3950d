#include "tir/interpret/interpreter.h"

#include <bit>

#include "tir/interpret/internal.h"
#include "tir/lower/lower.h"
#include "tir/scalable_vectors.h"

namespace relaxc {

using namespace interpreter;

struct Interpreter::State {
  struct Param {
    Buffer buffer;
    int slot;
    std::vector<BufferNumber> numbers;
  };

  PrimFuncRef function;
  InterpretOptions options;
  PackedFunctions packed = {};
  std::vector<std::pair<VarRef, int>> scalars = {};
  std::vector<Param> params = {};
  StepPtr body = nullptr;
  Frame frame = {};

  void compile();
  void begin(std::span<const int64_t> values);
  void bind(const Param& param, const Tensor& tensor, uint8_t* written);
};

void Interpreter::State::compile() {
  Compiler compiler(options);
  for (const VarRef& param : function->params) {
    if (param.type().is<PrimType>()) scalars.emplace_back(param, compiler.define(param));
  }
  params = map_each(buffer_params(function), [&](const Buffer& buffer) {
    return Param{buffer, compiler.define_buffer(buffer), compiler.numbers_of(buffer_type(buffer))};
  });
  for (Param& param : params) compiler.set_expected(param.numbers);  // a dim may use what a later buffer binds
  body = compiler.stmt(initialize_empty_reductions(expand_builtins(function))->body);
  frame = compiler.frame();
}

void Interpreter::State::begin(std::span<const int64_t> values) {
  if (values.size() != scalars.size())
    fail(function.span(), "expected {} scalar arguments, got {}", scalars.size(), values.size());
  frame = {.slots = std::move(frame.slots),
           .buffers = std::move(frame.buffers),
           .options = &options,
           .packed = &packed,
           .steps_left = options.max_steps,
           .alloc_bytes_left = options.max_alloc_bytes};
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
  state.dtype = tensor.dtype();
  state.offset = 0;
  state.shape = tensor.shape();
  state.strides = dense_strides(tensor.shape());
  for (const BufferNumber& number : param.numbers) number.bind(frame, state);
}

Interpreter::Interpreter(PrimFuncRef function, InterpretOptions options)
    : state_(new State{with_vscale(function, options.vscale), options}) {
  state_->compile();
}
Interpreter::~Interpreter() = default;
void Interpreter::set_packed_functions(PackedFunctions functions) { state_->packed = std::move(functions); }

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
  for (const State::Param& param : s.params) {
    for (const BufferNumber& number : param.numbers)
      number.check(s.frame, s.frame.buffers[param.slot], "buffer", param.buffer);
  }
  s.body->run(s.frame);
}

}  // namespace relaxc
