// One function per instruction that does more than move a value; the loop decodes operands in place, which is sound
// because the verifier has seen the code.
#include "vm/interpreter.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "vm/error.h"
#include "vm/index_check.h"

namespace relaxc::vm {

namespace {

// Frames of the VM are frames of the C++ stack.
constexpr int kMaxDepth = 512;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct Interpreter::Frame {
  const Executable* executable = nullptr;
  const Function* function = nullptr;
  const Word* code = nullptr;
  std::vector<Value> registers;
  std::vector<int64_t> slots;

  Value& reg(Word index) { return registers[static_cast<size_t>(index)]; }
  const Value& reg(Word index) const { return registers[static_cast<size_t>(index)]; }
  int64_t scalar(const Word* words) const {
    return words[0] == static_cast<Word>(ScalarTag::kSlot) ? slots[static_cast<size_t>(words[1])] : words[1];
  }
  const std::string& string(Word index) const { return executable->strings[static_cast<size_t>(index)]; }
  const std::string& slot_name(Word index) const { return function->slot_names[static_cast<size_t>(index)]; }

  // "dim 0 (k)".
  std::string dim_text(size_t dim, std::string_view name) const {
    return name.empty() ? fmt::format("dim {}", dim) : fmt::format("dim {} ({})", dim, name);
  }
  // "node 'conv_1' (Conv): ", or nothing where no node is known.
  std::string place_of(const Word* at) const {
    Word string = -1;
    for (size_t i = 0; i + 1 < function->places.size() && function->places[i] <= at - code; i += 2)
      string = function->places[i + 1];
    return string == -1 ? "" : this->string(string) + ": ";
  }
  // The context of the last match_shape up to `here` that binds the slot; only for messages.
  std::optional<Word> binder(Word slot, const Word* here) const {
    std::optional<Word> found;
    auto words = executable->code_of(*function);
    for (size_t offset = 0; offset < words.size() && words.data() + offset <= here;) {
      auto decoded = decode(words, offset);
      if (!decoded) break;
      if (decoded->instruction.op == Opcode::kMatchShape) {
        const std::vector<Word>& pattern = decoded->instruction.operands[1].words;
        for (size_t i = 0; i < pattern.size(); i += 2) {
          if (pattern[i] == static_cast<Word>(MatchAction::kBind) && pattern[i + 1] == slot) {
            found = decoded->instruction.operands[2].words[0];
          }
        }
      }
      offset = decoded->next;
    }
    return found;
  }
};

Interpreter::Interpreter(std::shared_ptr<const Image> image, InterpreterOptions options)
    : image_(std::move(image)),
      memory_(options.memory_limit),
      kernels_(std::move(options.pool)),
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
}

Interpreter::~Interpreter() = default;

Value Interpreter::run(FunctionIndex function, std::span<const Value> inputs,
                       std::span<const Tensor* const> bound_outputs) {
  struct RunScope {
    Interpreter& interpreter;
    ~RunScope() {
      interpreter.kernels_.pool().leave();
      interpreter.bound_outputs_ = {};
      interpreter.depth_ = 0;
    }
  };
  if (depth_ != 0) throw_runtime_error("a session cannot be run from inside its own run");
  const Function& callee = image_->executable.functions[static_cast<size_t>(function.value)];
  if (inputs.size() != callee.inputs.size()) {
    throw_runtime_error("function '{}' takes {} inputs, got {}", callee.name, callee.inputs.size(), inputs.size());
  }
  check_unchanged(image_->files);
  kernels_.pool().enter();
  RunScope scope{*this};
  bound_outputs_ = bound_outputs;
  steps_ = 0;
  try {
    std::unique_ptr<Frame> frame = enter(function);
    std::copy(inputs.begin(), inputs.end(), frame->registers.begin());
    if (image_->watcher) image_->watcher->begins();
    Value result = execute(std::move(frame));
    if (image_->watcher) image_->watcher->ends(result);
    return result;
  } catch (const std::bad_alloc&) {
    throw_runtime_error("out of memory in function '{}'", callee.name);
  }
}

// A frame whose registers are none.
std::unique_ptr<Interpreter::Frame> Interpreter::enter(FunctionIndex index) {
  std::unique_ptr<Frame> frame;
  if (idle_frames_.empty()) {
    frame = std::make_unique<Frame>();
  } else {
    frame = std::move(idle_frames_.back());
    idle_frames_.pop_back();
  }
  const Function& function = image_->executable.functions[static_cast<size_t>(index.value)];
  frame->executable = &image_->executable;
  frame->function = &function;
  frame->code = image_->executable.code.data() + function.code_begin;
  frame->registers.resize(static_cast<size_t>(function.num_registers));
  frame->slots.resize(function.slot_names.size());
  return frame;
}

Value Interpreter::execute(std::unique_ptr<Frame> frame) {
  if (depth_ >= kMaxDepth) {
    throw_runtime_error("function '{}' is called {} deep, the limit is {}", frame->function->name, depth_ + 1,
                        kMaxDepth);
  }
  ++depth_;
  Value result = loop(*frame);
  --depth_;
  frame->registers.clear();
  idle_frames_.push_back(std::move(frame));
  return result;
}

void Interpreter::count_step() {
  ++steps_;
  if (step_limit_ > 0 && steps_ > step_limit_) {
    throw_runtime_error("the run takes more than {} calls and backward jumps", step_limit_);
  }
}

namespace {
// An error whose message names its place already.
struct PlacedError : RuntimeError {
  using RuntimeError::RuntimeError;
};
}  // namespace

Value Interpreter::loop(Frame& frame) {
  const Word* pc = frame.code;
  try {
    return run_code(frame, pc);
  } catch (const PlacedError&) {
    throw;
  } catch (const RuntimeError& error) {
    std::string place = frame.place_of(pc);
    if (place.empty()) throw;
    throw PlacedError(place + error.what());
  }
}

// `pc` is the instruction that runs, also after an exception.
Value Interpreter::run_code(Frame& frame, const Word*& pc) {
  // A list is its count and its elements; these step over it.
  auto after_singles = [](const Word* list) { return list + 1 + list[0]; };
  auto after_pairs = [](const Word* list) { return list + 1 + 2 * list[0]; };
  auto jump = [&](Word target) {
    const Word* next = frame.code + target;
    if (next <= pc) count_step();
    pc = next;
  };
  for (;;) {
    const Word* w = pc + 1;  // operands
    switch (static_cast<Opcode>(*pc)) {
      case Opcode::kConstLoad:
        frame.reg(w[0]) = image_->executable.constants[static_cast<size_t>(w[1])];
        pc = w + 2;
        break;
      case Opcode::kMove:
        if (w[0] != w[1]) frame.reg(w[0]) = frame.reg(w[1]);
        pc = w + 2;
        break;
      case Opcode::kDrop:
        frame.reg(w[0]) = Value();
        pc = w + 1;
        break;
      case Opcode::kSlotSet:
        frame.slots[static_cast<size_t>(w[0])] = frame.scalar(w + 1);
        pc = w + 3;
        break;
      case Opcode::kSlotOp:
        slot_op(frame, w);
        pc = w + 6;
        break;
      case Opcode::kSlotSelect:
        frame.slots[static_cast<size_t>(w[0])] = frame.scalar(w + 1) != 0 ? frame.scalar(w + 3) : frame.scalar(w + 5);
        pc = w + 7;
        break;
      case Opcode::kSlotFromTensor:
        frame.slots[static_cast<size_t>(w[0])] = integer_element(frame, w[0], frame.reg(w[1]).tensor(), w[2]);
        pc = w + 3;
        break;
      case Opcode::kSlotFromValue: {
        const Value& value = frame.reg(w[1]);
        const int64_t* number = value.get_if<int64_t>();
        if (number == nullptr && value.tensor().size() != 1) {
          throw_runtime_error("a scalar is wanted, got {}", describe(value));
        }
        frame.slots[static_cast<size_t>(w[0])] = number ? *number : integer_element(frame, w[0], value.tensor(), 0);
        pc = w + 2;
        break;
      }
      case Opcode::kMakeShape: {
        Shape shape(static_cast<size_t>(w[1]));
        for (size_t i = 0; i < shape.size(); ++i) shape[i] = frame.scalar(w + 2 + 2 * i);
        frame.reg(w[0]) = std::move(shape);
        pc = after_pairs(w + 1);
        break;
      }
      case Opcode::kValueFromSlot:
        frame.reg(w[0]) = frame.scalar(w + 1);
        pc = w + 3;
        break;
      case Opcode::kMatchShape:
        match_shape(frame, w);
        pc = after_pairs(w + 1) + 1;
        break;
      case Opcode::kCheckTensor:
        check_tensor(frame, w);
        pc = w + 4;
        break;
      case Opcode::kCheckIndices:
        check_indices(frame, w);
        pc = after_pairs(w + 1) + 1;
        break;
      case Opcode::kAllocStorage: {
        int64_t bytes = frame.scalar(w + 1);
        // Released first, so that a loop can get the same block again.
        frame.reg(w[0]) = Value();
        frame.reg(w[0]) = Storage{memory_.allocate(bytes), bytes};
        pc = w + 3;
        break;
      }
      case Opcode::kAllocTensor:
        frame.reg(w[0]) = alloc_tensor(frame, w);
        pc = after_pairs(w + 5);
        break;
      case Opcode::kNewTensor:
        frame.reg(w[0]) = new_tensor(frame, w);
        pc = after_pairs(w + 2) + 1;
        break;
      case Opcode::kReshapeView: {
        const Tensor& tensor = frame.reg(w[1]).tensor();
        SharedShape shape = read_shape(frame, w, w + 2);
        // Through a temporary: dst may hold the tensor itself.
        frame.reg(w[0]) = tensor.reshaped(std::move(shape));
        pc = after_pairs(w + 2);
        break;
      }
      case Opcode::kCallKernel:
        call_kernel(frame, w);
        pc = after_pairs(after_singles(w + 1)) + 1;
        break;
      case Opcode::kCallBuiltin:
        frame.reg(w[0]) = call_builtin(frame, w);
        pc = after_pairs(w + 2);
        break;
      case Opcode::kCall: {
        count_step();
        std::unique_ptr<Frame> callee = enter({w[1]});
        for (Word i = 0; i < w[2]; ++i) callee->reg(i) = frame.reg(w[3 + i]);
        frame.reg(w[0]) = execute(std::move(callee));
        pc = after_singles(w + 2);
        break;
      }
      case Opcode::kMakeTuple: {
        std::vector<Value> fields;
        fields.reserve(static_cast<size_t>(w[1]));
        for (Word i = 0; i < w[1]; ++i) fields.push_back(frame.reg(w[2 + i]));
        frame.reg(w[0]) = Tuple(std::move(fields));
        pc = after_singles(w + 1);
        break;
      }
      case Opcode::kTupleGet: {
        auto fields = frame.reg(w[1]).tuple().fields();
        if (w[2] < 0 || w[2] >= static_cast<Word>(fields.size())) {
          throw_runtime_error("field {} of a tuple of {} is out of range", w[2], fields.size());
        }
        // Through a copy: dst may hold the tuple itself.
        Value field = fields[static_cast<size_t>(w[2])];
        frame.reg(w[0]) = std::move(field);
        pc = w + 3;
        break;
      }
      case Opcode::kJump:
        jump(w[0]);
        break;
      case Opcode::kBranchIf:
        if (frame.scalar(w) != 0) {
          jump(w[2]);
        } else {
          pc = w + 3;
        }
        break;
      case Opcode::kRet:
        return frame.reg(w[0]);
      case Opcode::kFail:
        throw RuntimeError(frame.string(w[0]));
    }
  }
}

void Interpreter::slot_op(Frame& frame, const Word* w) {
  int64_t a = frame.scalar(w + 2), b = frame.scalar(w + 4);
  auto result = evaluate(static_cast<SlotOp>(w[1]), a, b);
  if (!result) {
    const std::string& name = frame.slot_name(w[0]);
    throw_runtime_error("symbolic value {}: {} of {} and {} {}", name.empty() ? fmt::format("s{}", w[0]) : name,
                        kSlotOpNames[static_cast<size_t>(w[1])], a, b, b == 0 ? "divides by zero" : "overflows");
  }
  frame.slots[static_cast<size_t>(w[0])] = *result;
}

int64_t Interpreter::integer_element(const Frame& frame, Word slot, const Tensor& tensor, int64_t index) const {
  if (!tensor.dtype().is_integral() && !tensor.dtype().is_bool()) {
    throw_runtime_error("symbolic value {} comes from {}, expected an integer tensor", frame.slot_name(slot),
                        describe(tensor));
  }
  if (index < 0 || index >= tensor.size()) {
    throw_runtime_error("symbolic value {} is element {} of {}, which is out of range", frame.slot_name(slot), index,
                        describe(tensor));
  }
  return tensor.as_int(index);
}

// A context that has places for both numbers is the whole message.
static bool is_sentence(const std::string& context) { return context.find("{}") != std::string::npos; }
[[noreturn]] static void throw_as_sentence(const std::string& context, int64_t actual, int64_t expected) {
  const int64_t values[] = {actual, expected};
  throw RuntimeError(with_values(context, values));
}

void Interpreter::match_shape(Frame& frame, const Word* w) {
  const Value& value = frame.reg(w[0]);
  const Shape& shape = value.kind() == ValueKind::kTensor ? value.tensor().shape() : value.shape();
  size_t ndim = static_cast<size_t>(w[1]);
  const std::string& context = frame.string(w[2 + 2 * ndim]);
  if (shape.size() != ndim) throw_runtime_error("{}: has {} dims, expected {}", context, shape.size(), ndim);
  for (size_t i = 0; i < ndim; ++i) {
    Word operand = w[3 + 2 * i];
    switch (static_cast<MatchAction>(w[2 + 2 * i])) {
      case MatchAction::kBind:
        if (shape[i] < 0) {
          throw_runtime_error("{}: {} is {}, expected a non-negative number", context,
                              frame.dim_text(i, frame.slot_name(operand)), shape[i]);
        }
        frame.slots[static_cast<size_t>(operand)] = shape[i];
        break;
      case MatchAction::kCheckSlot:
        if (shape[i] != frame.slots[static_cast<size_t>(operand)]) slot_mismatch(frame, w, i, shape[i], operand);
        break;
      case MatchAction::kCheckImm:
        if (shape[i] != operand && is_sentence(context)) throw_as_sentence(context, shape[i], operand);
        if (shape[i] != operand) throw_runtime_error("{}: dim {} is {}, expected {}", context, i, shape[i], operand);
        break;
      case MatchAction::kSkip:
        break;
    }
  }
}

// "input 'w': dim 0 (k) is 5, but k is 4 (bound by input 'x')".
void Interpreter::slot_mismatch(const Frame& frame, const Word* w, size_t dim, int64_t actual, Word slot) const {
  Word context = w[2 + 2 * w[1]];
  if (is_sentence(frame.string(context)))
    throw_as_sentence(frame.string(context), actual, frame.slots[static_cast<size_t>(slot)]);
  std::string name = frame.slot_name(slot);
  if (name.empty()) name = fmt::format("s{}", slot);
  std::string message = fmt::format("{}: {} is {}, but {} is {}", frame.string(context), frame.dim_text(dim, name),
                                    actual, name, frame.slots[static_cast<size_t>(slot)]);
  if (auto binder = frame.binder(slot, w)) message += fmt::format(" (bound by {})", frame.string(*binder));
  throw RuntimeError(message);
}

void Interpreter::check_tensor(const Frame& frame, const Word* w) const {
  const Value& value = frame.reg(w[0]);
  const Tensor* tensor = value.get_if<Tensor>();
  const std::string& context = frame.string(w[3]);
  if (tensor == nullptr) throw_runtime_error("{}: is {}, expected a tensor", context, describe(value));
  if (w[1] != kAnyDType && pack_dtype(tensor->dtype()) != w[1]) {
    throw_runtime_error("{}: dtype is {}, expected {}", context, to_string(tensor->dtype()),
                        to_string(unpack_dtype(w[1]).value_or(DType())));
  }
  if (w[2] >= 0 && tensor->ndim() != w[2]) {
    throw_runtime_error("{}: has {} dims, expected {}", context, tensor->ndim(), w[2]);
  }
}

void Interpreter::check_indices(const Frame& frame, const Word* w) {
  const Tensor& indices = frame.reg(w[0]).tensor();
  const size_t count = static_cast<size_t>(w[1]);
  const std::string& context = frame.string(w[2 + 2 * count]);
  index_dims_.resize(count);
  for (size_t i = 0; i < count; ++i) index_dims_[i] = frame.scalar(w + 2 + 2 * i);
  bool is_list = count <= 1 || (indices.ndim() > 0 && indices.shape().back() == static_cast<int64_t>(count));
  if (!is_list || !indices.dtype().is_integral())
    throw_runtime_error("{} is {}, expected integers for {} axes", context, describe(indices), count);
  std::optional<BadIndex> bad = find_bad_index(indices, index_dims_, kernels_.context());
  if (bad) [[unlikely]]
    throw_runtime_error("{}{}", context, describe(*bad, indices));
}

// The dims of a list of scalars. Shapes are shared with the last tensor that the same instruction made: with unchanged
// dims a run builds no shape. `w` is any word of the instruction's first kWordsPerShape.
Interpreter::SharedShape Interpreter::read_shape(const Frame& frame, const Word* w, const Word* list) {
  size_t ndim = static_cast<size_t>(list[0]);
  const Word* scalars = list + 1;
  SharedShape& last = shapes_[static_cast<size_t>(w - 1 - image_->executable.code.data()) / kWordsPerShape];
  bool same = last != nullptr && last->size() == ndim;
  for (size_t i = 0; i < ndim; ++i) {
    int64_t dim = frame.scalar(scalars + 2 * i);
    if (dim < 0) {
      bool is_slot = scalars[2 * i] == static_cast<Word>(ScalarTag::kSlot);
      throw_runtime_error("{} of a new tensor is {}, expected a non-negative number",
                          frame.dim_text(i, is_slot ? frame.slot_name(scalars[2 * i + 1]) : ""), dim);
    }
    same = same && (*last)[i] == dim;
  }
  if (same) return last;
  Shape shape(ndim);
  for (size_t i = 0; i < ndim; ++i) shape[i] = frame.scalar(scalars + 2 * i);
  last = std::make_shared<const Shape>(std::move(shape));
  return last;
}

// Bytes of a tensor; RuntimeError on overflow.
int64_t Interpreter::tensor_bytes(const Shape& shape, DType dtype) {
  auto count = element_count(shape);
  int64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, dtype.bytes(), &bytes)) {
    throw_runtime_error("size of a tensor {}[{}] overflows", to_string(dtype), fmt::join(shape, ", "));
  }
  return bytes;
}

namespace {

// A dtype word that the verifier accepted.
DType known_dtype(Word word) {
  return {static_cast<DTypeCode>(word & 0xff), static_cast<uint8_t>(word >> 8), static_cast<uint16_t>(word >> 16)};
}

}  // namespace

Tensor Interpreter::alloc_tensor(const Frame& frame, const Word* w) {
  const Storage& storage = frame.reg(w[1]).storage();
  int64_t offset = frame.scalar(w + 2);
  DType dtype = known_dtype(w[4]);
  SharedShape shape = read_shape(frame, w, w + 5);
  int64_t bytes = tensor_bytes(*shape, dtype);
  if (offset < 0 || offset % kAlignment != 0 || offset > storage.bytes || bytes > storage.bytes - offset) {
    throw_runtime_error("a tensor {}[{}] at offset {} does not fit a storage of {} bytes", to_string(dtype),
                        fmt::join(*shape, ", "), offset, storage.bytes);
  }
  void* data = static_cast<char*>(storage.block.get()) + offset;
  return Tensor::view(std::move(shape), dtype, data, storage.block);
}

Tensor Interpreter::new_tensor(const Frame& frame, const Word* w) {
  DType dtype = known_dtype(w[1]);
  SharedShape shape = read_shape(frame, w, w + 2);
  Word output = w[3 + 2 * w[2]];
  if (depth_ == 1 && output >= 0 && output < static_cast<Word>(bound_outputs_.size())) {
    const Tensor* bound = bound_outputs_[static_cast<size_t>(output)];
    if (bound != nullptr && bound->dtype() == dtype && bound->shape() == *shape) return *bound;
  }
  std::shared_ptr<void> block = memory_.allocate(tensor_bytes(*shape, dtype));
  void* data = block.get();
  return Tensor::view(std::move(shape), dtype, data, std::move(block));
}

void Interpreter::call_kernel(const Frame& frame, const Word* w) {
  size_t kernel = static_cast<size_t>(w[0]);
  const Word* regs = w + 2;
  size_t num_tensors = static_cast<size_t>(w[1]);
  const Word* scalars = regs + num_tensors + 1;
  size_t num_scalars = static_cast<size_t>(scalars[-1]);
  for (size_t i = 0; i < num_tensors; ++i) {
    kernel_tensors_[i] = &frame.reg(regs[i]).tensor();
    kernel_data_[i] = kernel_tensors_[i]->raw();
  }
  for (size_t i = 0; i < num_scalars; ++i) kernel_scalars_[i] = frame.scalar(scalars + 2 * i);

  int64_t start = profiler_ != nullptr ? now_ns() : 0;
  int32_t status = kernels_.call(image_->kernels[kernel], kernel_data_.data(), kernel_scalars_.data());
  if (status == 0 && profiler_ == nullptr) [[likely]]
    return;

  const KernelInfo& info = image_->executable.kernels[kernel];
  Word label_index = scalars[2 * num_scalars];
  std::string_view label = label_index == -1 ? std::string_view() : frame.string(label_index);
  if (status != 0) {
    const char* error = kernels_.context()->error;
    throw_runtime_error("kernel '{}'{} failed with status {}{}", info.display_name,
                        label.empty() ? "" : fmt::format(" ({})", label), status,
                        error == nullptr ? "" : fmt::format(": {}", error));
  }
  profiler_->on_kernel({info.display_name, label, start, now_ns() - start,
                        std::span<const Tensor* const>(kernel_tensors_.data(), num_tensors)});
}

Value Interpreter::call_builtin(const Frame& frame, const Word* w) {
  std::vector<Value> arguments;
  arguments.reserve(static_cast<size_t>(w[2]));
  for (Word i = 0; i < w[2]; ++i) {
    Word value = w[4 + 2 * i];
    switch (static_cast<ArgumentTag>(w[3 + 2 * i])) {
      case ArgumentTag::kReg:
        arguments.push_back(frame.reg(value));
        break;
      case ArgumentTag::kSlot:
        arguments.emplace_back(frame.slots[static_cast<size_t>(value)]);
        break;
      case ArgumentTag::kImm:
        arguments.emplace_back(value);
        break;
      case ArgumentTag::kDouble:
        arguments.emplace_back(std::bit_cast<double>(value));
        break;
      case ArgumentTag::kString:
        arguments.emplace_back(frame.string(value));
        break;
    }
  }
  BuiltinContext context{memory_, kernels_.context(), nullptr};
  try {
    return image_->builtins[static_cast<size_t>(w[1])](context, arguments);
  } catch (const std::exception& error) {
    throw_runtime_error("{}: {}", image_->executable.builtins[static_cast<size_t>(w[1])], error.what());
  }
}

}  // namespace relaxc::vm
