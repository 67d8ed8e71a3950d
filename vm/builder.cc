#include "vm/builder.h"

#include <algorithm>

#include "support/check.h"
#include "support/lists.h"
#include "vm/verifier.h"

namespace relaxc::vm {

// Code has an instruction at least.
static bool is_defined(const Function& function) { return function.code_end > function.code_begin; }

// Returns the index of `value` in `table`, appended when `known` does not have it.
template <class Index, class Key, class Element>
static Index intern(std::map<Key, Index>& known, std::vector<Element>& table, Key key, Element element) {
  auto [entry, is_new] = known.emplace(std::move(key), Index{std::ssize(table)});
  if (is_new) table.push_back(std::move(element));
  return entry->second;
}

StringIndex ExecutableBuilder::string(std::string text) { return intern(strings_, executable_.strings, text, text); }

BuiltinIndex ExecutableBuilder::builtin(std::string name) {
  return intern(builtins_, executable_.builtins, name, name);
}

KernelIndex ExecutableBuilder::kernel(KernelInfo kernel) {
  KernelIndex index = intern(kernels_, executable_.kernels,
                             std::tuple(kernel.source, kernel.symbol, kernel.num_tensors, kernel.num_scalars), kernel);
  RELAXC_CHECK(executable_.kernels[static_cast<size_t>(index.value)] == kernel, "two kernels have the symbol {}",
               kernel.symbol);
  return index;
}

ConstantIndex ExecutableBuilder::constant(Tensor tensor) {
  executable_.constants.push_back(std::move(tensor));
  return {std::ssize(executable_.constants) - 1};
}

FunctionIndex ExecutableBuilder::function(const std::string& name) {
  Function function;
  function.name = name;
  return intern(functions_, executable_.functions, name, std::move(function));
}

void ExecutableBuilder::set_metadata(const std::string& key, std::string value) {
  executable_.metadata[key] = std::move(value);
}

namespace {

// Opens the dims of declared results that `others`, those of the function for inputs of other sizes, state otherwise.
void open_other_dims(std::vector<ValueInfo>& infos, const std::vector<ValueInfo>& others) {
  for (size_t i = 0; i < std::min(infos.size(), others.size()); ++i) {
    ValueInfo& info = infos[i];
    const ValueInfo& other = others[i];
    open_other_dims(info.fields, other.fields);
    if (!info.dims) continue;
    if (!other.dims || other.dims->size() != info.dims->size()) {
      info.dims.reset();
      continue;
    }
    for (size_t d = 0; d < info.dims->size(); ++d) {
      if ((*info.dims)[d] != (*other.dims)[d]) (*info.dims)[d] = {.text = "?"};
    }
  }
}

}  // namespace

Executable ExecutableBuilder::finish() {
  for (Function& function : executable_.functions) {
    const std::string* name = find_value(executable_.metadata, std::string(kOtherwiseKey) + function.name);
    const Function* other = name ? executable_.find_function(*name) : nullptr;
    if (other) open_other_dims(function.outputs, other->outputs);
  }
  for (const Function& function : executable_.functions)
    RELAXC_CHECK(is_defined(function), "function {} is called, but not defined", function.name);
  std::vector<std::string> messages = verify(executable_);
  RELAXC_CHECK(messages.empty(), "bytecode is unsound: {}", messages.front());
  return std::move(executable_);
}

FunctionBuilder::FunctionBuilder(ExecutableBuilder& parent, const std::string& name)
    : parent_(parent), index_(parent.function(name)) {
  function_.name = name;
}

Reg FunctionBuilder::add_input(ValueInfo info) {
  RELAXC_CHECK(function_.num_registers == std::ssize(function_.inputs), "inputs come before other registers");
  function_.inputs.push_back(std::move(info));
  return new_register();
}

void FunctionBuilder::add_output(ValueInfo info) { function_.outputs.push_back(std::move(info)); }

Reg FunctionBuilder::new_register() { return {function_.num_registers++}; }

Slot FunctionBuilder::new_slot(std::string name) {
  function_.slot_names.push_back(std::move(name));
  return {std::ssize(function_.slot_names) - 1};
}

Label FunctionBuilder::new_label() {
  labels_.push_back(SIZE_MAX);
  return {std::ssize(labels_) - 1};
}

void FunctionBuilder::bind(Label label) { labels_.at(static_cast<size_t>(label.value)) = instructions_.size(); }

void FunctionBuilder::emit(Opcode op, std::vector<Operand> operands) {
  instructions_.push_back(make_instruction(op, std::move(operands)));
}

void FunctionBuilder::set_place(std::optional<StringIndex> place) {
  Word string = place ? place->value : -1;
  if (string != (places_.empty() ? -1 : places_.back().second)) places_.emplace_back(instructions_.size(), string);
}

void FunctionBuilder::finish() {
  Function& defined = parent_.executable_.functions[static_cast<size_t>(index_.value)];
  RELAXC_CHECK(!is_defined(defined), "function {} is defined twice", function_.name);
  // Labels do not change the size of an instruction, so offsets are known before they are resolved.
  std::vector<Word> offsets, sizing;
  for (const Instruction& instruction : instructions_) {
    offsets.push_back(static_cast<Word>(sizing.size()));
    encode(instruction, sizing);
  }
  for (auto [position, string] : places_) {
    if (position < offsets.size()) function_.places.insert(function_.places.end(), {offsets[position], string});
  }
  function_.code_begin = std::ssize(parent_.executable_.code);
  for (Instruction& instruction : instructions_) {
    for (Operand& operand : instruction.operands) {
      if (operand.kind != OperandKind::kTarget) continue;
      size_t position = labels_.at(static_cast<size_t>(operand.words[0]));
      RELAXC_CHECK(position < offsets.size(), "a label of function {} stands for no instruction", function_.name);
      operand.words[0] = offsets[position];
    }
    encode(instruction, parent_.executable_.code);
  }
  function_.code_end = std::ssize(parent_.executable_.code);
  defined = std::move(function_);
}

}  // namespace relaxc::vm
