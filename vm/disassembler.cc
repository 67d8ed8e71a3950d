#include "vm/disassembler.h"

#include <bit>

#include "support/joined.h"
#include "support/printable.h"
#include "vm/bytecode.h"

namespace relaxc::vm {

namespace {

class Printer {
 public:
  Printer(const Executable& executable, const Function& function) : executable_(executable), function_(function) {}

  std::string instruction(const Instruction& instruction) const {
    auto text = [&](const Operand& value) { return operand(value); };
    return formatted("{} {}", info(instruction.op).name, joined(instruction.operands, text));
  }

 private:
  std::string slot(int64_t index) const {
    bool named = index >= 0 && index < std::ssize(function_.slot_names) &&
                 !function_.slot_names[static_cast<size_t>(index)].empty();
    return named ? formatted("s{}:{}", index, printable(function_.slot_names[static_cast<size_t>(index)]))
                 : formatted("s{}", index);
  }

  template <class Table, class Name>
  static std::string entry(const Table& table, int64_t index, Name name) {
    if (index < 0 || index >= std::ssize(table)) return formatted("#{}", index);
    return name(table[static_cast<size_t>(index)]);
  }
  static std::string dtype(Word word) {
    if (word == kAnyDType) return "any";
    auto dtype = unpack_dtype(word);
    return dtype ? to_string(*dtype) : formatted("#{}", word);
  }

  std::string element(ElementKind kind, Word value) const {
    switch (kind) {
      case ElementKind::kRegister:
        return formatted("r{}", value);
      case ElementKind::kSlot:
        return slot(value);
      case ElementKind::kConstant:
        return entry(executable_.constants, value,
                     [&](const Tensor& tensor) { return formatted("c{} {}", value, describe(tensor)); });
      case ElementKind::kKernel:
        return entry(executable_.kernels, value, [](const KernelInfo& kernel) { return python_string(kernel.symbol); });
      case ElementKind::kBuiltin:
        return entry(executable_.builtins, value, python_string);
      case ElementKind::kFunction:
        return entry(executable_.functions, value, [](const Function& callee) { return python_string(callee.name); });
      case ElementKind::kString:
        return entry(executable_.strings, value, python_string);
      case ElementKind::kLabel:
        return value == -1 ? "-" : entry(executable_.strings, value, python_string);
      case ElementKind::kTarget:
        return formatted("@{}", value);
      case ElementKind::kInt:
        return std::to_string(value);
      case ElementKind::kDouble:
        return formatted("{:#}", std::bit_cast<double>(value));
      case ElementKind::kOperator:
        return std::string(kSlotOpNames[static_cast<size_t>(value)]);
      case ElementKind::kDType:
        return dtype(value);
      case ElementKind::kNothing:
        return "_";
    }
    return {};
  }

  std::string operand(const Operand& operand) const {
    std::vector<std::string> parts;
    for_each_element(operand, [&](ElementInfo info, Word value) {
      bool binds = operand.kind == OperandKind::kPattern && info.effect == Effect::kWrite;
      parts.push_back((binds ? "bind " : "") + element(info.kind, value));
    });
    std::string text = joined(parts);
    return operand_layout(operand.kind).is_list ? "[" + text + "]" : text;
  }

  const Executable& executable_;
  const Function& function_;
};

std::string signature(const std::vector<ValueInfo>& infos) {
  return formatted("({})", joined(infos, [](const ValueInfo& info) { return to_string(info); }));
}

}  // namespace

std::string disassemble(const Executable& executable, const Function& function) {
  std::string text =
      formatted("function {}{} -> {}  # {} registers, {} slots\n", printable(function.name), signature(function.inputs),
                signature(function.outputs), function.num_registers, function.slot_names.size());
  Printer printer(executable, function);
  auto code = executable.code_of(function);
  for (size_t offset = 0; offset < code.size();) {
    auto decoded = decode(code, offset);
    if (!decoded) return text + formatted("{:6}: not an instruction\n", offset);
    text += formatted("{:6}: {}\n", offset, printer.instruction(decoded->instruction));
    offset = decoded->next;
  }
  return text;
}

std::string disassemble(const Executable& executable) {
  std::string text;
  for (const auto& [key, value] : executable.metadata)
    text += formatted("metadata {} = {}\n", printable(key), python_string(value));
  for (const KernelInfo& kernel : executable.kernels)
    text += formatted("kernel {} {}  # {} tensors, {} scalars{}\n", printable(kernel.symbol),
                      python_string(kernel.display_name), kernel.num_tensors, kernel.num_scalars,
                      kernel.source == KernelSource::kRegistry ? ", from the registry" : "");
  for (size_t i = 0; i < executable.constants.size(); ++i)
    text += formatted("constant c{} {}\n", i, describe(executable.constants[i]));
  for (const Function& function : executable.functions) text += "\n" + disassemble(executable, function);
  return text;
}

}  // namespace relaxc::vm
