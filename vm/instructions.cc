// One function `run` per row of kInstructions carries out the instruction on the operands that the row names. The
// verifier has accepted the code, so operands are read without checks. A `run` without a result continues at the next
// instruction; one that jumps returns the target, and null leaves the function. This file is compiled for speed but for
// what is marked gnu::cold, where the size counts.

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "support/joined.h"
#include "support/temporarily.h"
#include "vm/error.h"
#include "vm/frame.h"
#include "vm/index_check.h"
#include "vm/row_stack.h"

namespace relaxc::vm {

namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Returns a dtype word that the verifier accepted.
DType known_dtype(Word word) {
  return {static_cast<DTypeCode>(word & 0xff), static_cast<uint8_t>(word >> 8), static_cast<uint16_t>(word >> 16)};
}

[[noreturn, gnu::cold]] void throw_shape_pattern(std::string_view pattern, std::span<const FormatArgument> arguments) {
  throw ShapeError(formatted_text(pattern, arguments));
}
template <class... Args>
[[noreturn]] void throw_shape_error(FormatString<Args...> pattern, const Args&... args) {
  throw_shape_pattern(pattern.text, format_arguments(args...));
}

// A context that has places for both numbers is the whole message.
bool is_sentence(const std::string& context) { return context.find("{}") != std::string::npos; }
[[noreturn]] void throw_as_sentence(const std::string& context, int64_t actual, int64_t expected) {
  const int64_t values[] = {actual, expected};
  throw ShapeError(with_values(context, values));
}

}  // namespace

struct Interpreter::Instructions {
  Interpreter& vm;

  // ---- Values and slots

  void run(In<Opcode::kConstLoad> in) {
    in.reg<"dst">() = vm.image_->executable.constants[static_cast<size_t>(in.word<"constant">())];
  }

  void run(In<Opcode::kMove> in) { in.reg<"dst">() = in.reg<"src">(); }

  void run(In<Opcode::kDrop> in) { in.reg<"reg">() = Value(); }

  void run(In<Opcode::kSlotSet> in) { in.slot<"dst">() = in.scalar<"value">(); }

  void run(In<Opcode::kSlotOp> in) {
    int64_t a = in.scalar<"a">(), b = in.scalar<"b">();
    Word op = in.word<"op">();
    auto result = evaluate(static_cast<SlotOp>(op), a, b);
    if (!result)
      throw_runtime_error("symbolic value {}: {} of {} and {} {}", in.frame().slot_text(in.word<"dst">()),
                          kSlotOpNames[static_cast<size_t>(op)], a, b, b == 0 ? "divides by zero" : "overflows");
    in.slot<"dst">() = *result;
  }

  void run(In<Opcode::kSlotSelect> in) {
    in.slot<"dst">() = in.scalar<"condition">() != 0 ? in.scalar<"a">() : in.scalar<"b">();
  }

  void run(In<Opcode::kSlotFromTensor> in) {
    in.slot<"dst">() =
        integer_element(in.frame().slot_name(in.word<"dst">()), in.reg<"tensor">().tensor(), in.word<"index">());
  }

  [[gnu::cold]] void run(In<Opcode::kSlotFromValue> in) {
    const Value& value = in.reg<"value">();
    const int64_t* number = value.get_if<int64_t>();
    if (number == nullptr && value.tensor().size() != 1)
      throw_runtime_error("expected a scalar, got {}", describe(value));
    in.slot<"dst">() = number ? *number : integer_element(in.frame().slot_name(in.word<"dst">()), value.tensor(), 0);
  }

  void run(In<Opcode::kValueFromSlot> in) { in.reg<"dst">() = in.scalar<"value">(); }

  void run(In<Opcode::kMakeShape> in) {
    ListWords dims = in.list<"dims">();
    Shape shape(dims.size);
    for (size_t i = 0; i < dims.size; ++i) shape[i] = in.frame().scalar(dims.element(i));
    in.reg<"dst">() = std::move(shape);
  }

  [[gnu::cold]] void run(In<Opcode::kMakeTuple> in) {
    ListWords regs = in.list<"fields">();
    std::vector<Value> fields;
    fields.reserve(regs.size);
    for (size_t i = 0; i < regs.size; ++i) fields.push_back(in.frame().reg(regs.value(i)));
    in.reg<"dst">() = Tuple(std::move(fields));
  }

  void run(In<Opcode::kTupleGet> in) {
    auto fields = in.reg<"tuple">().tuple().fields();
    Word index = in.word<"index">();
    if (index < 0 || index >= static_cast<Word>(fields.size()))
      throw_runtime_error("field {} of a tuple of {} is out of range", index, fields.size());
    // The field is copied first, since dst may hold the tuple itself.
    in.reg<"dst">() = Value(fields[static_cast<size_t>(index)]);
  }

  [[gnu::cold]] static int64_t integer_element(const std::string& slot_name, const Tensor& tensor, int64_t index) {
    if (!tensor.dtype().is_integral() && !tensor.dtype().is_bool())
      throw_runtime_error("symbolic value {} comes from {}, expected an integer tensor", slot_name, describe(tensor));
    if (index < 0 || index >= tensor.size())
      throw_runtime_error("symbolic value {} is element {} of {}, which is out of range", slot_name, index,
                          describe(tensor));
    return tensor.as_int(index);
  }

  // ---- Checks of a value's type

  void run(In<Opcode::kMatchShape> in) {
    const Value& value = in.reg<"value">();
    const Shape& shape = value.kind() == ValueKind::kTensor ? value.tensor().shape() : value.shape();
    ListWords pattern = in.list<"pattern">();
    const std::string& context = in.string<"context">();
    if (shape.size() != pattern.size)
      throw_shape_error("{}: has {} dims, expected {}", context, shape.size(), pattern.size);
    Frame& frame = in.frame();
    for (size_t i = 0; i < pattern.size; ++i) {
      Word operand = pattern.value(i);
      switch (static_cast<MatchAction>(pattern.element(i)[0])) {
        case MatchAction::kBind:
          if (shape[i] < 0)
            throw_shape_error("{}: {} is {}, expected a non-negative number", context,
                              frame.dim_text(i, frame.slot_name(operand)), shape[i]);
          frame.slot(operand) = shape[i];
          break;
        case MatchAction::kCheckSlot:
          if (shape[i] != frame.slot(operand)) slot_mismatch(in, i, shape[i], operand);
          break;
        case MatchAction::kCheckImm:
          if (shape[i] != operand && is_sentence(context)) throw_as_sentence(context, shape[i], operand);
          if (shape[i] != operand) throw_shape_error("{}: dim {} is {}, expected {}", context, i, shape[i], operand);
          break;
        case MatchAction::kSkip:
          break;
      }
    }
  }

  // Throws "input 'w': dim 0 (k) is 5, but k is 4 (bound by input 'x')".
  [[noreturn, gnu::cold]] static void slot_mismatch(In<Opcode::kMatchShape> in, size_t dim, int64_t actual, Word slot) {
    const Frame& frame = in.frame();
    const std::string& context = in.string<"context">();
    int64_t expected = frame.slot(slot);
    if (is_sentence(context)) throw_as_sentence(context, actual, expected);
    std::string name = frame.slot_text(slot);
    std::string message =
        formatted("{}: {} is {}, but {} is {}", context, frame.dim_text(dim, name), actual, name, expected);
    if (auto binder = frame.binder(slot, in.at())) {
      message += formatted(" (bound by {})", frame.string(*binder));
      if (context.starts_with("input "))
        message += "; types that are given when compiling (--type) may tell them apart";
    }
    throw ShapeError(message);
  }

  void run(In<Opcode::kCheckRange> in) {
    const int64_t value = in.scalar<"value">(), least = in.word<"least">(), most = in.word<"most">();
    if (value >= least && value <= most) return;
    const std::string& context = in.string<"context">();
    if (most == std::numeric_limits<int64_t>::max())
      throw_runtime_error("{} is {}, and the program takes at least {}", context, value, least);
    throw_runtime_error("{} is {}, and the program takes {} to {}", context, value, least, most);
  }

  void run(In<Opcode::kCheckTensor> in) {
    const Value& value = in.reg<"value">();
    const Tensor* tensor = value.get_if<Tensor>();
    const std::string& context = in.string<"context">();
    Word dtype = in.word<"dtype">(), ndim = in.word<"ndim">();
    if (tensor == nullptr) throw_runtime_error("{}: is {}, expected a tensor", context, describe(value));
    if (dtype != kAnyDType && pack_dtype(tensor->dtype()) != dtype)
      throw_runtime_error("{}: dtype is {}, expected {}", context, to_string(tensor->dtype()),
                          to_string(known_dtype(dtype)));
    if (ndim >= 0 && tensor->ndim() != ndim)
      throw_runtime_error("{}: has {} dims, expected {}", context, tensor->ndim(), ndim);
  }

  void run(In<Opcode::kCheckIndices> in) {
    const Tensor& indices = in.reg<"indices">().tensor();
    ListWords list = in.list<"dims">();
    const std::string& context = in.string<"context">();
    std::vector<int64_t>& dims = vm.index_dims_;
    dims.resize(list.size);
    for (size_t i = 0; i < list.size; ++i) dims[i] = in.frame().scalar(list.element(i));
    bool is_list = dims.size() <= 1 || (indices.ndim() > 0 && indices.shape().back() == std::ssize(dims));
    if (!is_list || !indices.dtype().is_integral())
      throw_runtime_error("{} is {}, expected integers for {} axes", context, describe(indices), dims.size());
    std::optional<BadIndex> bad = find_bad_index(indices, dims, vm.kernels_.context());
    if (bad) [[unlikely]]
      throw_runtime_error("{}{}", context, describe(*bad, indices));
  }

  // ---- Memory

  void run(In<Opcode::kAllocStorage> in) {
    int64_t bytes = in.scalar<"bytes">();
    // The register is released first, so that a loop can get the same block again.
    in.reg<"dst">() = Value();
    in.reg<"dst">() = Storage{vm.memory_.allocate(bytes, Fit::kLargest), bytes};
  }

  void run(In<Opcode::kAllocTensor> in) {
    const Storage& storage = in.reg<"storage">().storage();
    int64_t offset = in.scalar<"offset">();
    DType dtype = known_dtype(in.word<"dtype">());
    SharedShape shape = read_shape(in);
    int64_t bytes = checked_tensor_bytes(*shape, dtype);
    if (offset < 0 || offset % kAlignment != 0 || offset > storage.bytes || bytes > storage.bytes - offset)
      throw_runtime_error("a tensor {}[{}] at offset {} does not fit a storage of {} bytes", to_string(dtype),
                          joined(*shape), offset, storage.bytes);
    void* data = static_cast<char*>(storage.block.get()) + offset;
    in.reg<"dst">() = Tensor::view(std::move(shape), dtype, data, storage.block);
  }

  void run(In<Opcode::kNewTensor> in) {
    DType dtype = known_dtype(in.word<"dtype">());
    Word output = in.word<"output">();
    bool may_be_bound =
        vm.depth_ == vm.bound_depth_ && output >= 0 && output < static_cast<Word>(vm.bound_outputs_.size());
    const Tensor* bound = may_be_bound ? vm.bound_outputs_[static_cast<size_t>(output)] : nullptr;
    if (bound != nullptr && bound->dtype() == dtype && has_shape(in, bound->shape())) {
      in.reg<"dst">() = *bound;
      return;
    }
    SharedShape shape = read_shape(in);
    std::shared_ptr<void> block = vm.memory_.allocate(checked_tensor_bytes(*shape, dtype));
    void* data = block.get();
    in.reg<"dst">() = Tensor::view(std::move(shape), dtype, data, std::move(block));
  }

  void run(In<Opcode::kReshapeView> in) {
    // The view is a temporary, since dst may hold the tensor itself.
    in.reg<"dst">() = in.reg<"tensor">().tensor().reshaped(read_shape(in));
  }

  void run(In<Opcode::kView> in) {
    const Tensor& tensor = in.reg<"tensor">().tensor();
    const DType dtype = tensor.dtype();
    int64_t offset = in.scalar<"offset">();
    SharedShape shape = read_shape(in);
    int64_t bytes = dtype.is_string() ? 0 : checked_tensor_bytes(*shape, dtype);
    if (bytes == 0) offset = 0;  // it may begin anywhere
    if (dtype.is_string() || offset < 0 || offset % kAlignment != 0 || offset > tensor.bytes() ||
        bytes > tensor.bytes() - offset)
      throw_runtime_error("a view {}[{}] at offset {} does not fit {}", to_string(dtype), joined(*shape), offset,
                          describe(tensor));
    // The view is a temporary, since dst may hold the tensor itself.
    in.reg<"dst">() = Tensor::view(std::move(shape), dtype, static_cast<char*>(tensor.raw()) + offset, tensor.owner());
  }

  // Returns the operand `shape`, shared with the last tensor that the instruction made while the dims are unchanged.
  template <Opcode kOp>
  SharedShape read_shape(In<kOp> in) {
    static_assert(fewest_words(kOp) >= kWordsPerShape);
    std::shared_ptr<Shape>& last =
        vm.shapes_[static_cast<size_t>(in.at() - vm.image_->executable.code.data()) / kWordsPerShape];
    if (!last) last = std::make_shared<Shape>();
    if (has_shape(in, *last)) return last;
    // A tensor in a storage, or a part of one, does not leave its run, so the memory of its shape serves the next one.
    const bool is_free = (kOp == Opcode::kAllocTensor || kOp == Opcode::kView) && last.use_count() == 1;
    if (!is_free) last = std::make_shared<Shape>();
    ListWords dims = in.template list<"shape">();
    last->resize(dims.size);
    for (size_t i = 0; i < dims.size; ++i) (*last)[i] = in.frame().scalar(dims.element(i));
    return last;
  }

  // Returns whether the operand `shape` is this one, after a check of its dims.
  template <Opcode kOp>
  static bool has_shape(In<kOp> in, const Shape& shape) {
    const Frame& frame = in.frame();
    ListWords dims = in.template list<"shape">();
    bool same = shape.size() == dims.size;
    for (size_t i = 0; i < dims.size; ++i) {
      int64_t dim = frame.scalar(dims.element(i));
      if (dim < 0) {
        bool is_slot = dims.element(i)[0] == static_cast<Word>(ScalarTag::kSlot);
        throw_runtime_error("{} of a new tensor is {}, expected a non-negative number",
                            frame.dim_text(i, is_slot ? frame.slot_name(dims.value(i)) : ""), dim);
      }
      same = same && shape[i] == dim;
    }
    return same;
  }

  // ---- Calls

  void run(In<Opcode::kCallKernel> in) {
    vm.check_cancelled();
    const Frame& frame = in.frame();
    size_t kernel = static_cast<size_t>(in.word<"kernel">());
    ListWords tensors = in.list<"tensors">(), scalars = in.list<"scalars">();
    for (size_t i = 0; i < tensors.size; ++i) {
      vm.kernel_tensors_[i] = &frame.reg(tensors.value(i)).tensor();
      vm.kernel_data_[i] = vm.kernel_tensors_[i]->raw();
    }
    for (size_t i = 0; i < scalars.size; ++i) vm.kernel_scalars_[i] = frame.scalar(scalars.element(i));

    int64_t start = vm.profiler_ != nullptr ? now_ns() : 0;
    const Kernel& function = vm.image_->kernels[kernel];
    int32_t status = function ? vm.kernels_.call(function, vm.kernel_data_.data(), vm.kernel_scalars_.data())
                              : vm.image_->on_tensors[kernel](std::span(vm.kernel_tensors_.data(), tensors.size),
                                                              vm.kernels_.context());
    if (status == 0 && vm.profiler_ == nullptr) [[likely]]
      return;

    const KernelInfo& info = vm.image_->executable.kernels[kernel];
    Word label_index = in.word<"label">();
    std::string_view label = label_index == -1 ? std::string_view() : frame.string(label_index);
    if (status != 0) fail_kernel(info, label, status);
    vm.profiler_->on_kernel({info.display_name, label, start, now_ns() - start,
                             std::span<const Tensor* const>(vm.kernel_tensors_.data(), tensors.size), &info});
  }

  [[gnu::cold, noreturn]] void fail_kernel(const KernelInfo& info, std::string_view label, int32_t status) {
    const char* error = vm.kernels_.context()->error;
    const std::string message =
        formatted("kernel '{}'{} failed with status {}{}", info.display_name,
                  label.empty() ? "" : formatted(" ({})", label), status, error ? formatted(": {}", error) : "");
    const int64_t refused = vm.kernels_.take_refused_scratch();
    if (refused == 0) throw RuntimeError(message);
    throw OutOfMemory(formatted("{}; it asked for {} bytes of scratch: {}", message, refused, vm.memory_.usage()));
  }

  [[gnu::cold]] void run(In<Opcode::kCallBuiltin> in) {
    ListWords list = in.list<"arguments">();
    std::vector<Value> arguments;
    arguments.reserve(list.size);
    for (size_t i = 0; i < list.size; ++i) arguments.push_back(argument(in.frame(), list.element(i)));
    size_t builtin = static_cast<size_t>(in.word<"builtin">());
    BuiltinContext context{vm.memory_, vm.kernels_.context(), nullptr};
    try {
      in.reg<"dst">() = vm.image_->builtins[builtin](context, arguments);
    } catch (const FormError&) {
      throw;
    } catch (const OutOfMemory& error) {
      throw OutOfMemory(formatted("{}: {}", vm.image_->executable.builtins[builtin], error.what()));
    } catch (const std::exception& error) {
      throw_runtime_error("{}: {}", vm.image_->executable.builtins[builtin], error.what());
    }
  }

  // Returns the value of an element of kArguments.
  static Value argument(const Frame& frame, const Word* words) {
    switch (static_cast<ArgumentTag>(words[0])) {
      case ArgumentTag::kReg:
        return frame.reg(words[1]);
      case ArgumentTag::kSlot:
        return frame.slot(words[1]);
      case ArgumentTag::kImm:
        return words[1];
      case ArgumentTag::kDouble:
        return std::bit_cast<double>(words[1]);
      case ArgumentTag::kString:
        return frame.string(words[1]);
    }
    return {};
  }

  [[gnu::cold]] void run(In<Opcode::kCall> in) {
    vm.count_step();
    size_t function = static_cast<size_t>(in.word<"function">());
    std::unique_ptr<Frame> callee = vm.enter(vm.image_->executable.functions[function]);
    ListWords arguments = in.list<"arguments">();
    for (size_t i = 0; i < arguments.size; ++i) callee->reg(static_cast<Word>(i)) = in.frame().reg(arguments.value(i));
    in.reg<"dst">() = vm.execute(std::move(callee));
  }

  [[gnu::cold]] void run(In<Opcode::kMakeClosure> in) {
    ListWords regs = in.list<"captured">();
    std::vector<Value> captured;
    captured.reserve(regs.size);
    for (size_t i = 0; i < regs.size; ++i) captured.push_back(in.frame().reg(regs.value(i)));
    const Function& function = vm.image_->executable.functions[static_cast<size_t>(in.word<"function">())];
    in.reg<"dst">() = Closure{{vm.image_, &function}, Tuple(std::move(captured))};
  }

  // Returns the result of a closure on the arguments that `argument(i)` gives.
  template <class Argument>
  Value invoke(const Closure& closure, size_t count, Argument argument) {
    vm.count_step();
    const Function& function = *closure.function;
    auto functions = std::span(vm.image_->executable.functions);
    if (std::less<>()(&function, functions.data()) || !std::less<>()(&function, functions.data() + functions.size()))
      throw_runtime_error("function '{}' is of another program and cannot be called here", function.name);
    std::span<const Value> captured = closure.captured.fields();
    if (count + captured.size() != function.inputs.size())
      throw_runtime_error("function '{}' takes {} arguments, got {}", function.name,
                          std::ssize(function.inputs) - std::ssize(captured), count);
    std::unique_ptr<Frame> callee = vm.enter(function);
    for (size_t i = 0; i < count; ++i) callee->registers[i] = argument(i);
    std::ranges::copy(captured, callee->registers.begin() + static_cast<ptrdiff_t>(count));
    return vm.execute(std::move(callee));
  }
  void run(In<Opcode::kInvoke> in) {
    const Closure closure = in.reg<"closure">().closure();  // a copy: dst may hold the closure itself
    ListWords arguments = in.list<"arguments">();
    in.reg<"dst">() = invoke(closure, arguments.size, [&](size_t i) { return in.frame().reg(arguments.value(i)); });
  }

  [[gnu::cold]] void run(In<Opcode::kLoop> in) {
    const Closure closure = in.reg<"closure">().closure();
    ListWords carried = in.list<"carried">(), given = in.list<"rows">();
    std::vector<Value> values;  // carried ones, then rows
    std::vector<RowStack> rows;
    for (size_t i = 0; i < carried.size; ++i) values.push_back(in.frame().reg(carried.value(i)));
    for (size_t i = 0; i < given.size; ++i) rows.emplace_back(in.frame().reg(given.value(i)).tensor());
    int64_t trips = in.scalar<"trips">(), i = 0;
    // The rows are the last results of an iteration, which makes them in their places where it can.
    std::vector<const Tensor*> places(std::max(closure.function->outputs.size(), rows.size()));
    Temporarily bound(vm.bound_outputs_, std::span<const Tensor* const>(places));
    Temporarily depth(vm.bound_depth_, vm.depth_ + 1);
    for (bool goes_on = in.scalar<"condition">() != 0; goes_on && i < trips; ++i) {
      for (size_t k = 0; k < rows.size(); ++k) places[places.size() - rows.size() + k] = rows[k].next();
      Value result =
          invoke(closure, carried.size + 1, [&](size_t k) { return k == 0 ? Value(i) : std::move(values[k - 1]); });
      std::span<const Value> fields = result.tuple().fields();
      size_t expected = carried.size + rows.size(), first = fields.size() - expected;  // 1 with a condition
      if (first > 1)
        throw_runtime_error("function '{}' gives {} values to a loop, expected {} or {}", closure.function->name,
                            fields.size(), expected, expected + 1);
      if (first == 1) goes_on = truth(fields[0]);
      std::ranges::copy(fields.subspan(first, carried.size), values.begin());
      for (size_t k = 0; k < rows.size(); ++k) rows[k].push(fields[first + carried.size + k].tensor(), vm.memory_);
    }
    for (RowStack& stack : rows) values.emplace_back(stack.finish());
    in.reg<"dst">() = Tuple(std::move(values));
  }
  static bool truth(const Value& condition) {
    const Tensor* tensor = condition.get_if<Tensor>();
    if (tensor != nullptr && tensor->size() != 1)
      throw_runtime_error("a loop's condition is {}, expected one bool", describe(*tensor));
    return (tensor != nullptr ? integer_element("condition", *tensor, 0) : condition.integer()) != 0;
  }

  // ---- Control

  // Backward jumps are counted, so that a limit of steps ends every loop.
  template <Opcode kOp>
  const Word* jump(In<kOp> in) {
    const Word* next = in.frame().code + in.template word<"target">();
    if (next <= in.at()) vm.count_step();
    return next;
  }

  const Word* run(In<Opcode::kJump> in) { return jump(in); }

  const Word* run(In<Opcode::kBranchIf> in) { return in.scalar<"condition">() != 0 ? jump(in) : in.next(); }

  const Word* run(In<Opcode::kRet> in) {
    in.frame().result = in.reg<"value">();
    return nullptr;
  }

  [[gnu::cold]] const Word* run(In<Opcode::kFail> in) { throw RuntimeError(in.string<"message">()); }

  // ---- Dispatch

  // Runs the instruction at `at`; returns the next one, or null.
  using Step = const Word* (*)(Interpreter&, Frame&, const Word* at);
  template <Opcode kOp>
  static const Word* step(Interpreter& vm, Frame& frame, const Word* at) {
    Instructions instructions{vm};
    In<kOp> in(frame, at);
    if constexpr (std::is_void_v<decltype(instructions.run(in))>) {
      instructions.run(in);
      return in.next();
    } else {
      return instructions.run(in);
    }
  }
};

// Dispatches through a table of functions with one entry per row: a row without its `run` does not compile.
void Interpreter::run_code(Frame& frame, const Word*& pc) {
  static constexpr auto kSteps = []<size_t... kOps>(std::index_sequence<kOps...>) {
    return std::array<Instructions::Step, sizeof...(kOps)>{&Instructions::step<static_cast<Opcode>(kOps)>...};
  }(std::make_index_sequence<kNumInstructions>());
  while (pc != nullptr) pc = kSteps[static_cast<size_t>(*pc)](*this, frame, pc);
}

}  // namespace relaxc::vm
