// Runs verified bytecode: frames, limits, and the place that an error names. The instructions are in instructions.cc.
#include "vm/interpreter.h"

#include <algorithm>

#include "support/temporarily.h"
#include "vm/artifact.h"
#include "vm/bytecode.h"
#include "vm/error.h"
#include "vm/frame.h"
#include "vm/user_library.h"

namespace relaxc::vm {

namespace {

// A frame of the VM uses a frame of the C++ stack, so the depth is limited.
constexpr int kMaxDepth = 512;

// Returns an argument of a kernel's call of a host function.
[[gnu::cold]] Value value_of(const relaxc_value& given) {
  switch (static_cast<relaxc_value_kind>(given.kind)) {
    case relaxc_none:
      return {};
    case relaxc_int:
      return given.integer;
    case relaxc_float:
      return given.real;
    case relaxc_string:
      return std::string(static_cast<const char*>(given.pointer));
    case relaxc_tensor: {
      auto dtype = unpack_dtype(given.dtype);
      if (!dtype) throw_runtime_error("an argument is a tensor of an unknown dtype");
      Shape shape(given.shape, given.shape + given.ndim);
      return Tensor::view(std::move(shape), *dtype, given.pointer, nullptr);
    }
    case relaxc_pointer:
      return static_cast<int64_t>(reinterpret_cast<intptr_t>(given.pointer));
  }
  throw_runtime_error("an argument is of kind {}", given.kind);
}
[[gnu::cold]] relaxc_value result_of(const Value& value) {
  relaxc_value result{};
  if (const int64_t* integer = value.get_if<int64_t>()) {
    result.kind = relaxc_int;
    result.integer = *integer;
    result.real = static_cast<double>(*integer);
  } else if (const double* real = value.get_if<double>()) {
    result.kind = relaxc_float;
    result.real = *real;
  } else if (!value.is_none()) {
    throw_runtime_error("returns {} to a kernel, which takes numbers", describe(value));
  }
  return result;
}

// An error whose message already names its place.
struct Placed {};
template <class Error>
struct PlacedError : Error, Placed {
  using Error::Error;
};

}  // namespace

std::string Interpreter::Frame::place_of(const Word* at) const {
  Word found = -1;
  for (size_t i = 0; i + 1 < function->places.size() && function->places[i] <= at - code; i += 2)
    found = function->places[i + 1];
  return found == -1 ? "" : string(found) + ": ";
}

std::optional<Word> Interpreter::Frame::binder(Word slot, const Word* here) const {
  std::optional<Word> found;
  auto words = executable->code_of(*function);
  for (size_t offset = 0; offset < words.size() && words.data() + offset <= here;) {
    auto decoded = decode(words, offset);
    if (!decoded) break;
    if (decoded->instruction.op == Opcode::kMatchShape) {
      Operands<Opcode::kMatchShape> match(words.data() + offset);
      ListWords pattern = match.list<"pattern">();
      for (size_t i = 0; i < pattern.size; ++i) {
        bool binds = pattern.element(i)[0] == static_cast<Word>(MatchAction::kBind);
        if (binds && pattern.value(i) == slot) found = match.word<"context">();
      }
    }
    offset = decoded->next;
  }
  return found;
}

[[gnu::cold]] Interpreter::Interpreter(std::shared_ptr<const Image> image, SessionOptions options)
    : image_(std::move(image)),
      memory_(options.memory_limit, options.allocator),
      kernels_(std::move(options.pool), memory_),
      step_limit_(options.step_limit),
      shapes_(image_->executable.code.size() / kWordsPerShape + 1) {
  size_t tensors = 0, scalars = 0;
  for (const KernelInfo& kernel : image_->executable.kernels) {
    tensors = std::max(tensors, static_cast<size_t>(kernel.num_tensors));
    scalars = std::max(scalars, static_cast<size_t>(kernel.num_scalars));
  }
  kernel_data_.resize(tensors);
  kernel_tensors_.resize(tensors);
  kernel_scalars_.resize(scalars);
  kernels_.set_packed_call([this](std::string_view name, std::span<const relaxc_value> args) {
    const std::vector<std::string>& names = image_->executable.builtins;
    auto found = std::ranges::find(names, name);
    if (found == names.end()) throw_runtime_error("the program does not list this function");
    std::vector<Value> values;
    for (const relaxc_value& arg : args) values.push_back(value_of(arg));
    BuiltinContext context{memory_, kernels_.context(), nullptr};
    return result_of(image_->builtins[static_cast<size_t>(found - names.begin())](context, values));
  });
}

[[gnu::cold]] Interpreter::~Interpreter() = default;

void Interpreter::begin() {
  if (depth_ != 0) throw_runtime_error("a session cannot be run from inside its own run, or on two threads at once");
  cancelled_.store(false, std::memory_order_relaxed);
}

// A system call for each file takes as long as a small program runs, and reading this clock is none.
void Interpreter::check_files() {
  timespec tick{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &tick);
  if (tick.tv_nsec == files_checked_at_.tv_nsec && tick.tv_sec == files_checked_at_.tv_sec) return;
  check_unchanged(image_->files);
  for (const auto& library : image_->libraries) library->check_unchanged();
  files_checked_at_ = tick;
}

Value Interpreter::run(const Function& function, std::span<const Value> inputs,
                       std::span<const Tensor* const> bound_outputs) {
  struct RunScope {
    TaskPool& pool;
    ~RunScope() { pool.leave(); }
  };
  check_files();
  if (image_->weights) image_->weights->run();
  kernels_.pool().enter();
  RunScope scope{kernels_.pool()};
  Temporarily outputs(bound_outputs_, bound_outputs);
  steps_ = 0;
  try {
    std::unique_ptr<Frame> frame = enter(function);
    std::copy(inputs.begin(), inputs.end(), frame->registers.begin());
    if (image_->watcher) image_->watcher->begins();
    Value result = execute(std::move(frame));
    if (image_->watcher) image_->watcher->ends(result);
    return result;
  } catch (const std::bad_alloc&) {
    throw_runtime_error("out of memory in function '{}'", function.name);
  }
}

// Returns a frame with empty registers.
std::unique_ptr<Interpreter::Frame> Interpreter::enter(const Function& function) {
  if (idle_frames_.empty()) idle_frames_.push_back(std::make_unique<Frame>());
  std::unique_ptr<Frame> frame = std::move(idle_frames_.back());
  idle_frames_.pop_back();
  frame->executable = &image_->executable;
  frame->function = &function;
  frame->code = image_->executable.code.data() + function.code_begin;
  frame->registers.resize(static_cast<size_t>(function.num_registers));
  frame->slots.resize(function.slot_names.size());
  return frame;
}

Value Interpreter::execute(std::unique_ptr<Frame> frame) {
  if (depth_ >= kMaxDepth)
    throw_runtime_error("function '{}' is called {} deep, the limit is {}", frame->function->name, depth_ + 1,
                        kMaxDepth);
  Temporarily deeper(depth_, depth_ + 1);
  const Word* pc = frame->code;
  try {
    run_code(*frame, pc);
  } catch (const Placed&) {
    throw;
  } catch (const Cancelled&) {
    throw;
  } catch (const RuntimeError& error) {
    std::string place = frame->place_of(pc);
    if (place.empty()) throw;
    if (dynamic_cast<const ShapeError*>(&error)) throw PlacedError<ShapeError>(place + error.what());
    if (dynamic_cast<const OutOfMemory*>(&error)) throw PlacedError<OutOfMemory>(place + error.what());
    throw PlacedError<RuntimeError>(place + error.what());
  }
  Value result = std::move(frame->result);
  frame->registers.clear();
  idle_frames_.push_back(std::move(frame));
  return result;
}

void Interpreter::count_step() {
  check_cancelled();
  ++steps_;
  if (step_limit_ > 0 && steps_ > step_limit_)
    throw_runtime_error("the run takes more than {} calls and backward jumps", step_limit_);
}

}  // namespace relaxc::vm
