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
    Expr value;
    CodePtr expected = nullptr;
  };
  using Numbers = std::vector<ParamNumber>;
  struct Param {
    Buffer buffer;
    int slot;
    Numbers shape, strides, offset;  // no offset or one
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
  Numbers param_numbers(const std::vector<Expr>& values);
  void begin(std::span<const int64_t> values);
  void bind(const Numbers& numbers, const std::vector<int64_t>& values);
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

Interpreter::State::Numbers Interpreter::State::param_numbers(const std::vector<Expr>& values) {
  Numbers result;
  for (const Expr& value : values) {
    bool is_new = value.is<Var>() && !compiler.is_defined(cast<Var>(value));
    result.push_back({is_new ? compiler.define(cast<Var>(value)) : -1, value});
  }
  return result;
}

void Interpreter::State::compile() {
  for (const VarRef& param : function->params) {
    if (param.type().is<PrimType>()) scalars.emplace_back(param, compiler.define(param));
  }
  for (const Buffer& buffer : buffer_params(function)) {
    const BufferType& type = buffer_type(buffer);
    std::vector<Expr> offset;
    if (type.elem_offset) offset.push_back(*type.elem_offset);
    params.push_back({buffer, compiler.define_buffer(buffer), param_numbers(type.shape), param_numbers(type.strides),
                      param_numbers(offset)});
  }
  for (Param& param : params) {  // a dim may use a variable that a later buffer binds
    for (Numbers* numbers : {&param.shape, &param.strides, &param.offset}) {
      for (ParamNumber& number : *numbers) number.expected = compiler.expr(number.value);
    }
  }
  body = compiler.stmt(initialize_empty_reductions(function)->body);
  frame.slots.resize(compiler.slot_count);
  frame.buffers.resize(compiler.buffer_count);
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
  frame = Frame{.slots = std::move(frame.slots),
                .buffers = std::move(frame.buffers),
                .steps_left = options.max_steps,
                .alloc_bytes_left = options.max_alloc_bytes,
                .reverse_parallel_loops = options.reverse_parallel_loops,
                .check_regions = options.check_regions,
                .check_unwritten = options.check_unwritten};
  for (BufferState& state : frame.buffers) state.storage = {};
}

void Interpreter::State::bind(const Numbers& numbers, const std::vector<int64_t>& values) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i].bind_slot >= 0) frame.slots[numbers[i].bind_slot].i = values[i];
  }
}

void Interpreter::State::bind_shape(const Param& param, const Tensor& tensor) {
  const BufferType& type = buffer_type(param.buffer);
  if (tensor.dtype() != type.dtype || tensor.shape().size() != param.shape.size())
    fail(param.buffer.span(), "buffer '{}': got {}, expected {} of rank {}", param.buffer->name, describe(tensor),
         to_string(type.dtype), param.shape.size());
  bind(param.shape, tensor.shape());
  bind(param.strides, dense_strides(tensor.shape()));
  bind(param.offset, {0});
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
    fail(param.buffer.span(), "buffer '{}': {} is {}, expected {} = {}", param.buffer->name, what, value,
         dim_text(number.value), expected);
  };
  for (size_t d = 0; d < param.shape.size(); ++d) compare(param.shape[d], state.shape[d], fmt::format("dim {}", d));
  for (size_t d = 0; d < param.strides.size(); ++d) {
    if (state.shape[d] > 1) compare(param.strides[d], state.strides[d], fmt::format("the stride of dim {}", d));
  }
  for (const ParamNumber& number : param.offset) compare(number, 0, "the element offset");
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
      if (dim.bind_slot >= 0)
        fail(param.buffer.span(), "buffer '{}': the inputs do not determine dim '{}'", param.buffer->name,
             dim_text(dim.value));
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
