#include "tir/interpret/interpreter.h"

#include "support/checked_math.h"
#include "tir/interpret/internal.h"
#include "tir/lower/lower.h"
#include "tir/scalable.h"

namespace relaxc {

using namespace interpreter;

struct Interpreter::State {
  // A dim, stride or offset of a param: binds its variable, or is checked against the tensor once all are bound.
  struct ParamNumber {
    int bind_slot = -1;
    CodePtr expected;
    std::string text;  // the expression, for messages
  };
  struct Param {
    Buffer buffer;
    int slot;
    std::vector<ParamNumber> shape, strides;
    std::optional<ParamNumber> offset;
  };

  PrimFuncRef function;
  InterpretOptions options;
  Compiler compiler;
  std::vector<std::pair<VarRef, int>> scalars;
  std::vector<Param> params;
  StepPtr body;
  Frame frame;

  State(PrimFuncRef f, InterpretOptions o) : function(std::move(f)), options(o), compiler(o.check_regions) {}
  void compile();
  ParamNumber param_number(const Expr& value);
  void begin(std::span<const int64_t> values);
  void bind_shape(const Param& param, const Tensor& tensor);
  void bind_memory(const Param& param, const Tensor& tensor, uint8_t* written);
  void check(const Param& param);
  void finish();
};

namespace {

// "n", "4", or the fallback print.
std::string dim_text(const Expr& dim) {
  if (const Var* var = dim.as<Var>()) return var->name;
  if (auto known = as_int(dim)) return std::to_string(*known);
  return debug_print(dim);
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(shape[d], 1);
  return strides;
}

}  // namespace

Interpreter::State::ParamNumber Interpreter::State::param_number(const Expr& value) {
  ParamNumber number;
  number.text = dim_text(value);
  if (value.is<Var>() && !compiler.is_defined(cast<Var>(value))) number.bind_slot = compiler.define(cast<Var>(value));
  return number;
}

void Interpreter::State::compile() {
  for (const VarRef& param : function->params) {
    if (param.type().is<PrimType>()) scalars.emplace_back(param, compiler.define(param));
  }
  std::vector<Buffer> buffers = buffer_params(function);
  for (const Buffer& buffer : buffers) {
    const BufferType& type = buffer_type(buffer);
    Param param{buffer, compiler.define_buffer(buffer), {}, {}, std::nullopt};
    for (const Expr& dim : type.shape) param.shape.push_back(param_number(dim));
    for (const Expr& stride : type.strides) param.strides.push_back(param_number(stride));
    if (type.elem_offset) param.offset = param_number(*type.elem_offset);
    params.push_back(std::move(param));
  }
  for (Param& param : params) {  // a dim may use what a later buffer binds
    const BufferType& type = buffer_type(param.buffer);
    for (size_t d = 0; d < param.shape.size(); ++d) param.shape[d].expected = compiler.expr(type.shape[d]);
    for (size_t d = 0; d < param.strides.size(); ++d) param.strides[d].expected = compiler.expr(type.strides[d]);
    if (param.offset) param.offset->expected = compiler.expr(*type.elem_offset);
  }
  body = compiler.stmt(initialize_empty_reductions(function)->body);
  frame.slots.resize(compiler.slot_count());
  frame.buffers.resize(compiler.buffer_count());
}

void Interpreter::State::begin(std::span<const int64_t> values) {
  if (values.size() != scalars.size())
    fail(function.span(), "expected {} scalar arguments, got {}", scalars.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    DType dtype = dtype_of(scalars[i].first);
    Word& word = frame.slots[scalars[i].second];
    if (dtype.is_float()) {
      std::memcpy(&word.f, &values[i], sizeof word.f);
      word.f = round_float(word.f, dtype);
    } else {
      word.i = wrap_int(values[i], dtype);
    }
  }
  frame.lane = 0;
  frame.steps_left = options.max_steps;
  frame.check_regions = options.check_regions;
  frame.check_unwritten = options.check_unwritten;
  frame.depth = 0;
  frame.leave = Frame::Leave::kNo;
  frame.running = nullptr;
  frame.reverse_parallel_loops = options.reverse_parallel_loops;
  frame.alloc_bytes_left = options.max_alloc_bytes;
  frame.result_unused = false;
  for (BufferState& state : frame.buffers) state.storage = {};
}

void Interpreter::State::bind_shape(const Param& param, const Tensor& tensor) {
  const BufferType& type = buffer_type(param.buffer);
  if (tensor.dtype() != type.dtype || tensor.shape().size() != param.shape.size()) {
    fail(param.buffer.span(), "buffer '{}': got {}, expected {} of rank {}", param.buffer->name, describe(tensor),
         to_string(type.dtype), param.shape.size());
  }
  std::vector<int64_t> strides = dense_strides(tensor.shape());
  for (size_t d = 0; d < param.shape.size(); ++d) {
    if (param.shape[d].bind_slot >= 0) frame.slots[param.shape[d].bind_slot].i = tensor.shape()[d];
  }
  for (size_t d = 0; d < param.strides.size(); ++d) {
    if (param.strides[d].bind_slot >= 0) frame.slots[param.strides[d].bind_slot].i = strides[d];
  }
  if (param.offset && param.offset->bind_slot >= 0) frame.slots[param.offset->bind_slot].i = 0;
}

void Interpreter::State::bind_memory(const Param& param, const Tensor& tensor, uint8_t* written) {
  BufferState& state = frame.buffers[param.slot];
  state.written = written;
  state.data = static_cast<char*>(tensor.raw());
  state.capacity = tensor.size();
  state.element_bytes = tensor.dtype().bytes();
  state.offset = 0;
  state.shape = tensor.shape();
  state.strides = dense_strides(tensor.shape());
}

void Interpreter::State::check(const Param& param) {
  const BufferState& state = frame.buffers[param.slot];
  auto compare = [&](const ParamNumber& number, int64_t value, const std::string& what) {
    int64_t expected = number.expected->as_int(frame);
    if (value == expected) return;
    fail(param.buffer.span(), "buffer '{}': {} is {}, expected {} = {}", param.buffer->name, what, value, number.text,
         expected);
  };
  for (size_t d = 0; d < param.shape.size(); ++d) compare(param.shape[d], state.shape[d], fmt::format("dim {}", d));
  for (size_t d = 0; d < param.strides.size(); ++d) {
    if (state.shape[d] > 1) compare(param.strides[d], state.strides[d], fmt::format("the stride of dim {}", d));
  }
  if (param.offset) compare(*param.offset, 0, "the element offset");
}

void Interpreter::State::finish() {
  for (const Param& param : params) check(param);
  body->run(frame);
}

Interpreter::Interpreter(PrimFuncRef function, InterpretOptions options)
    : state_(std::make_unique<State>(with_vscale(function, options.vscale), options)) {
  state_->compile();
}
Interpreter::~Interpreter() = default;

void Interpreter::run(std::span<const Tensor> buffers, std::span<const int64_t> scalars,
                      std::span<WrittenBytes* const> written) {
  State& s = *state_;
  if (buffers.size() != s.params.size())
    fail(s.function.span(), "expected {} buffers, got {}", s.params.size(), buffers.size());
  s.begin(scalars);
  for (size_t i = 0; i < buffers.size(); ++i) s.bind_shape(s.params[i], buffers[i]);
  for (size_t i = 0; i < buffers.size(); ++i) {
    WrittenBytes* flags = i < written.size() ? written[i] : nullptr;
    RELAXC_CHECK(!flags || static_cast<int64_t>(flags->size()) == buffers[i].bytes(), "flags for {} bytes of {}",
                 flags->size(), describe(buffers[i]));
    s.bind_memory(s.params[i], buffers[i], flags ? flags->data() : nullptr);
  }
  s.finish();
}

std::vector<Tensor> Interpreter::run_on(std::span<const Tensor> inputs, std::span<const int64_t> scalars) {
  State& s = *state_;
  if (inputs.size() > s.params.size())
    fail(s.function.span(), "expected at most {} buffers, got {}", s.params.size(), inputs.size());
  s.begin(scalars);
  for (size_t i = 0; i < inputs.size(); ++i) s.bind_shape(s.params[i], inputs[i]);
  for (size_t i = 0; i < inputs.size(); ++i) s.bind_memory(s.params[i], inputs[i], nullptr);
  std::vector<Tensor> outputs;
  std::vector<WrittenBytes> written(s.params.size());
  for (size_t i = inputs.size(); i < s.params.size(); ++i) {
    const State::Param& param = s.params[i];
    std::vector<int64_t> shape;
    for (const State::ParamNumber& dim : param.shape) {
      if (dim.bind_slot >= 0) {
        fail(param.buffer.span(), "buffer '{}': the inputs do not determine dim '{}'", param.buffer->name, dim.text);
      }
      shape.push_back(dim.expected->as_int(s.frame));
    }
    std::optional<int64_t> count = element_count(shape);
    DType dtype = buffer_type(param.buffer).dtype;
    std::optional<int64_t> bytes = count ? checked_mul(*count, dtype.bytes()) : std::nullopt;
    if (!bytes || *bytes > s.options.max_alloc_bytes)
      fail(param.buffer.span(), "output '{}' is too large or has a negative dim", param.buffer->name);
    outputs.push_back(Tensor::empty(std::move(shape), dtype));
    if (*bytes > 0) std::memset(outputs.back().raw(), 0xff, static_cast<size_t>(*bytes));
    s.bind_shape(param, outputs.back());
    written[i].assign(static_cast<size_t>(*bytes), 0);
    s.bind_memory(param, outputs.back(), written[i].data());
  }
  s.finish();
  return outputs;
}

void interpret(const PrimFuncRef& function, std::span<const Tensor> buffers, std::span<const int64_t> scalars,
               const InterpretOptions& options) {
  Interpreter(function, options).run(buffers, scalars);
}
std::vector<Tensor> interpret_on(const PrimFuncRef& function, std::span<const Tensor> inputs,
                                 std::span<const int64_t> scalars, const InterpretOptions& options) {
  return Interpreter(function, options).run_on(inputs, scalars);
}

}  // namespace relaxc
