#include "tools/bytecode_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "support/joined.h"
#include "vm/bytecode.h"

namespace relaxc::tools {

namespace {

using vm::Instruction, vm::Opcode, vm::Word;

class BytecodeWalker {
 public:
  BytecodeWalker(const vm::Executable& executable, const vm::Function& function, std::span<const vm::Value> inputs)
      : executable_(executable),
        function_(function),
        inputs_(inputs),
        held_(static_cast<size_t>(function.num_registers)),
        slots_(function.slot_names.size()) {
    for (size_t i = 0; i < function.inputs.size() && i < held_.size(); ++i) add_input(i);
  }

  WalkedFunction run() {
    const std::span<const Word> code = executable_.code_of(function_);
    for (size_t offset = 0; offset < code.size();) {
      std::optional<vm::Decoded> decoded = vm::decode(code, offset);
      if (!decoded) break;
      step(decoded->instruction);
      offset = decoded->next;
    }
    return std::move(result_);
  }

 private:
  void add_input(size_t i) {
    const vm::ValueInfo& info = function_.inputs[i];
    const std::string text = vm::to_string(info);
    const Tensor* given = i < inputs_.size() ? inputs_[i].get_if<Tensor>() : nullptr;
    WalkedTensor input{Place::kInput, text.substr(std::min(text.size(), info.name.size() + 2)), std::nullopt};
    input.name = info.name;
    if (given) input.type = type_text(given->dtype(), {given->shape().begin(), given->shape().end()});
    if (given) input.bytes = given->bytes();
    held_[i] = {add(std::move(input))};
  }

  size_t add(WalkedTensor tensor) {
    tensor.first_use = tensor.last_use = result_.calls.size();
    result_.tensors.push_back(std::move(tensor));
    return result_.tensors.size() - 1;
  }

  static const std::vector<Word>& words(const Instruction& instruction, std::string_view name) {
    const vm::InstructionInfo& row = vm::info(instruction.op);
    auto found = std::ranges::find(row.operands, name, &vm::OperandInfo::name);
    return instruction.operands[static_cast<size_t>(found - row.operands.begin())].words;
  }
  static size_t index(const Instruction& instruction, std::string_view name) {
    return static_cast<size_t>(words(instruction, name)[0]);
  }
  std::vector<size_t>& reg(const Instruction& instruction, std::string_view name) {
    return held_[index(instruction, name)];
  }
  std::optional<int64_t> scalar(Word tag, Word value) const {
    return tag == static_cast<Word>(vm::ScalarTag::kSlot) ? slots_[static_cast<size_t>(value)] : value;
  }
  std::optional<int64_t> scalar(const Instruction& instruction, std::string_view name) const {
    const std::vector<Word>& pair = words(instruction, name);
    return scalar(pair[0], pair[1]);
  }

  using Dims = std::vector<std::optional<int64_t>>;
  static std::string type_text(DType dtype, const Dims& dims) {
    return fmt::format("{}[{}]", to_string(dtype),
                       joined(dims, [](const auto& dim) { return dim ? std::to_string(*dim) : "?"; }));
  }
  WalkedTensor planned(Place place, const Instruction& instruction) const {
    const std::vector<Word>& pairs = words(instruction, "shape");
    const DType dtype = vm::unpack_dtype(words(instruction, "dtype")[0]).value_or(DType());
    std::optional<int64_t> elements = 1;
    std::string text;
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const std::optional<int64_t> dim = scalar(pairs[i], pairs[i + 1]);
      elements = elements && dim ? vm::evaluate(vm::SlotOp::kMul, *elements, *dim) : std::nullopt;
      const bool is_slot = pairs[i] == static_cast<Word>(vm::ScalarTag::kSlot);
      const std::string name = is_slot ? function_.slot_names[static_cast<size_t>(pairs[i + 1])] : "";
      text += fmt::format("{}{}", i == 0 ? "" : ", ", dim ? std::to_string(*dim) : name.empty() ? "?" : name);
    }
    const int64_t bits_of_element = dtype.is_packed() ? dtype.bits : dtype.bytes() * 8;
    const std::optional<int64_t> bits =
        elements ? vm::evaluate(vm::SlotOp::kMul, *elements, bits_of_element) : std::nullopt;
    WalkedTensor tensor{place, fmt::format("{}[{}]", to_string(dtype), text), std::nullopt};
    if (bits) tensor.bytes = (*bits + 7) / 8;
    return tensor;
  }

  void bind_dims(const Instruction& match) {
    const std::vector<size_t>& held = reg(match, "value");
    const bool is_input = held.size() == 1 && held[0] < inputs_.size() && held[0] < function_.inputs.size();
    const vm::Value* value = is_input ? &inputs_[held[0]] : nullptr;
    const Tensor* tensor = value ? value->get_if<Tensor>() : nullptr;
    const vm::Shape* shape = value ? value->get_if<vm::Shape>() : nullptr;
    const std::vector<Word>& pattern = words(match, "pattern");
    for (size_t i = 0; i + 1 < pattern.size(); i += 2) {
      if (pattern[i] != static_cast<Word>(vm::MatchAction::kBind)) continue;
      std::optional<int64_t>& slot = slots_[static_cast<size_t>(pattern[i + 1])];
      slot = std::nullopt;
      const size_t dim = i / 2;
      if (tensor && dim < tensor->shape().size()) slot = tensor->shape()[dim];
      if (shape && dim < shape->size()) slot = (*shape)[dim];
    }
  }

  // A tensor of the arguments that nothing has written yet is a result of the call.
  WalkedCall& add_call(WalkedCall::Kind kind, std::string name, const std::vector<size_t>& tensors) {
    const size_t number = result_.calls.size();
    WalkedCall& call = result_.calls.emplace_back(WalkedCall{kind, std::move(name), "", {}, {}});
    for (size_t t : tensors) {
      WalkedTensor& tensor = result_.tensors[t];
      const bool is_memory = tensor.place == Place::kArena || tensor.place == Place::kOwn;
      if (is_memory && !tensor.writer) tensor.writer = number;
      (is_memory && tensor.writer == number ? call.writes : call.reads).push_back(t);
      tensor.last_use = number;
    }
    return call;
  }

  std::vector<size_t> held_by(const std::vector<Word>& registers) const {
    std::vector<size_t> all;
    for (Word r : registers) {
      const std::vector<size_t>& held = held_[static_cast<size_t>(r)];
      all.insert(all.end(), held.begin(), held.end());
    }
    // Without copies, which a hostile program could double with each tuple.
    std::ranges::sort(all);
    all.erase(std::ranges::unique(all).begin(), all.end());
    return all;
  }
  std::vector<size_t> held_by_arguments(const Instruction& call) const {
    std::vector<Word> registers;
    const std::vector<Word>& pairs = words(call, "arguments");
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
      if (pairs[i] == static_cast<Word>(vm::ArgumentTag::kReg)) registers.push_back(pairs[i + 1]);
    }
    return held_by(registers);
  }

  void call_kernel(const Instruction& instruction) {
    const size_t number = index(instruction, "kernel");
    WalkedCall& call = add_call(WalkedCall::Kind::kKernel, executable_.kernels[number].display_name,
                                held_by(words(instruction, "tensors")));
    const Word label = words(instruction, "label")[0];
    if (label >= 0) call.nodes = executable_.strings[static_cast<size_t>(label)];
  }
  // A function returns new values, or some of its arguments.
  void call_function(WalkedCall::Kind kind, const Instruction& instruction, const std::string& name,
                     const std::vector<size_t>& arguments) {
    const size_t number = result_.calls.size();
    WalkedCall& call = add_call(kind, name, arguments);
    for (size_t written : call.writes) call.reads.push_back(written);
    call.writes.clear();
    WalkedTensor made{Place::kValue, "", std::nullopt};
    made.writer = number;
    const size_t tensor = add(std::move(made));
    result_.tensors[tensor].first_use = result_.tensors[tensor].last_use = number;
    call.writes.push_back(tensor);
    std::vector<size_t>& held = reg(instruction, "dst");
    held = {tensor};
    if (kind == WalkedCall::Kind::kFunction) held.insert(held.end(), arguments.begin(), arguments.end());
  }

  void add_memory(const Instruction& instruction) {
    const bool is_arena = instruction.op == Opcode::kAllocTensor;
    WalkedTensor tensor = planned(is_arena ? Place::kArena : Place::kOwn, instruction);
    if (is_arena) {
      const std::optional<int64_t> offset = scalar(instruction, "offset"),
                                   base = storages_[index(instruction, "storage")];
      if (offset && base) tensor.offset = *offset + *base;
    }
    reg(instruction, "dst") = {add(std::move(tensor))};
  }
  void add_storage(const Instruction& instruction) {
    const std::optional<int64_t> bytes = scalar(instruction, "bytes");
    storages_[index(instruction, "dst")] = result_.arena_bytes;
    if (result_.arena_bytes && bytes) {
      *result_.arena_bytes += *bytes;
    } else {
      result_.arena_bytes = std::nullopt;
    }
  }
  void add_constant(const Instruction& instruction) {
    const Tensor& data = executable_.constants[index(instruction, "constant")];
    WalkedTensor tensor{Place::kConstant, type_text(data.dtype(), {data.shape().begin(), data.shape().end()}),
                        data.bytes()};
    reg(instruction, "dst") = {add(std::move(tensor))};
  }

  void compute_slot(const Instruction& instruction) {
    std::optional<int64_t>& slot = slots_[index(instruction, "dst")];
    if (instruction.op == Opcode::kSlotSet) {
      slot = scalar(instruction, "value");
      return;
    }
    const std::optional<int64_t> a = scalar(instruction, "a"), b = scalar(instruction, "b");
    if (instruction.op == Opcode::kSlotSelect) {
      const std::optional<int64_t> condition = scalar(instruction, "condition");
      slot = condition ? (*condition != 0 ? a : b) : std::nullopt;
      return;
    }
    slot = a && b ? vm::evaluate(static_cast<vm::SlotOp>(words(instruction, "op")[0]), *a, *b) : std::nullopt;
  }
  void read_slot(const Instruction& instruction) {
    std::optional<int64_t>& slot = slots_[index(instruction, "dst")];
    slot = std::nullopt;
    if (instruction.op != Opcode::kSlotFromValue) return;
    const std::vector<size_t>& held = reg(instruction, "value");
    const bool is_input = held.size() == 1 && held[0] < inputs_.size() && held[0] < function_.inputs.size();
    const int64_t* number = is_input ? inputs_[held[0]].get_if<int64_t>() : nullptr;
    if (number) slot = *number;
  }

  void end(const Instruction& instruction) {
    const std::vector<size_t>& results = reg(instruction, "value");
    for (size_t i = 0; i < results.size(); ++i) {
      WalkedTensor& tensor = result_.tensors[results[i]];
      tensor.is_result = true;
      tensor.last_use = result_.calls.size();
      if (results.size() != function_.outputs.size()) continue;
      tensor.result_name += (tensor.result_name.empty() ? "" : ", ") + function_.outputs[i].name;
    }
  }

  void step(const Instruction& instruction) {
    switch (instruction.op) {
      case Opcode::kConstLoad:
        return add_constant(instruction);
      case Opcode::kMove:
        return copy(instruction, "src");
      case Opcode::kReshapeView:
      case Opcode::kView:
        return copy(instruction, "tensor");
      case Opcode::kTupleGet:
        return copy(instruction, "tuple");
      case Opcode::kMakeTuple:
        reg(instruction, "dst") = held_by(words(instruction, "fields"));
        return;
      case Opcode::kMakeClosure:
        reg(instruction, "dst") = held_by(words(instruction, "captured"));
        return;
      case Opcode::kMakeShape:
      case Opcode::kValueFromSlot:
        reg(instruction, "dst").clear();
        return;
      case Opcode::kDrop:
        reg(instruction, "reg").clear();
        return;
      case Opcode::kSlotSet:
      case Opcode::kSlotOp:
      case Opcode::kSlotSelect:
        return compute_slot(instruction);
      case Opcode::kSlotFromTensor:
      case Opcode::kSlotFromValue:
        return read_slot(instruction);
      case Opcode::kMatchShape:
        return bind_dims(instruction);
      case Opcode::kAllocStorage:
        return add_storage(instruction);
      case Opcode::kAllocTensor:
      case Opcode::kNewTensor:
        return add_memory(instruction);
      case Opcode::kRet:
        return end(instruction);
      case Opcode::kJump:
      case Opcode::kBranchIf:
        result_.has_branches = true;
        return;
      case Opcode::kCheckRange:
      case Opcode::kCheckTensor:
      case Opcode::kCheckIndices:
      case Opcode::kFail:
        return;
      case Opcode::kCallKernel:
        return call_kernel(instruction);
      case Opcode::kCallBuiltin:
      case Opcode::kCall:
      case Opcode::kInvoke:
      case Opcode::kLoop:
        return call_other(instruction);
    }
  }
  void copy(const Instruction& instruction, const char* from) {
    reg(instruction, "dst") = std::vector(reg(instruction, from));
  }
  void call_other(const Instruction& instruction) {
    using Kind = WalkedCall::Kind;
    if (instruction.op == Opcode::kCallBuiltin) {
      call_function(Kind::kRuntime, instruction, executable_.builtins[index(instruction, "builtin")],
                    held_by_arguments(instruction));
    } else if (instruction.op == Opcode::kCall) {
      call_function(Kind::kFunction, instruction, executable_.functions[index(instruction, "function")].name,
                    held_by(words(instruction, "arguments")));
    } else if (instruction.op == Opcode::kInvoke) {
      call_function(Kind::kFunction, instruction, "a closure", held_by(words(instruction, "arguments")));
    } else {
      std::vector<size_t> arguments = held_by(words(instruction, "carried"));
      for (const char* more : {"closure", "rows"}) {
        const std::vector<size_t> held = held_by(words(instruction, more));
        arguments.insert(arguments.end(), held.begin(), held.end());
      }
      call_function(Kind::kFunction, instruction, "a loop", arguments);
    }
  }

  const vm::Executable& executable_;
  const vm::Function& function_;
  std::span<const vm::Value> inputs_;
  std::vector<std::vector<size_t>> held_;  // the tensors in a register: several in a tuple
  std::vector<std::optional<int64_t>> slots_;
  std::map<size_t, std::optional<int64_t>> storages_;  // by register: where it begins, as they lie behind each other
  WalkedFunction result_;
};

}  // namespace

WalkedFunction walk_bytecode(const vm::Executable& executable, const vm::Function& function,
                             std::span<const vm::Value> inputs) {
  return BytecodeWalker(executable, function, inputs).run();
}

}  // namespace relaxc::tools
