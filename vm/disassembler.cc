#include "vm/disassembler.h"

#include <fmt/ranges.h>

#include <bit>

#include "support/printable.h"

namespace relaxc::vm {

namespace {

// Quotes text on one line, so that a hostile name cannot pass for an instruction.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return printable(out, std::string::npos) + '"';
}

class Printer {
 public:
  Printer(const Executable& executable, const Function& function) : executable_(executable), function_(function) {}

  std::string instruction(const Instruction& instruction) const {
    std::vector<std::string> operands;
    for (const Operand& value : instruction.operands) operands.push_back(operand(value));
    return fmt::format("{} {}", info(instruction.op).name, fmt::join(operands, ", "));
  }

 private:
  std::string slot(int64_t index) const {
    bool named = index >= 0 && index < static_cast<int64_t>(function_.slot_names.size()) &&
                 !function_.slot_names[static_cast<size_t>(index)].empty();
    return named ? fmt::format("s{}:{}", index, printable(function_.slot_names[static_cast<size_t>(index)]))
                 : fmt::format("s{}", index);
  }

  template <class Table, class Name>
  static std::string entry(const Table& table, int64_t index, Name name) {
    if (index < 0 || index >= static_cast<int64_t>(table.size())) return fmt::format("#{}", index);
    return name(table[static_cast<size_t>(index)]);
  }
  std::string string(int64_t index) const {
    return entry(executable_.strings, index, [](const std::string& text) { return quoted(text); });
  }
  static std::string dtype(Word word) {
    if (word == kAnyDType) return "any";
    auto dtype = unpack_dtype(word);
    return dtype ? to_string(*dtype) : fmt::format("#{}", word);
  }

  std::string scalar(Word tag, Word value) const {
    return tag == static_cast<Word>(ScalarTag::kSlot) ? slot(value) : std::to_string(value);
  }
  std::string match(Word action, Word value) const {
    switch (static_cast<MatchAction>(action)) {
      case MatchAction::kBind:
        return "bind " + slot(value);
      case MatchAction::kCheckSlot:
        return slot(value);
      case MatchAction::kCheckImm:
        return std::to_string(value);
      case MatchAction::kSkip:
        return "_";
    }
    return {};
  }
  std::string argument(Word tag, Word value) const {
    switch (static_cast<ArgumentTag>(tag)) {
      case ArgumentTag::kReg:
        return fmt::format("r{}", value);
      case ArgumentTag::kSlot:
        return slot(value);
      case ArgumentTag::kImm:
        return std::to_string(value);
      case ArgumentTag::kDouble:
        return fmt::format("{:#}", std::bit_cast<double>(value));
      case ArgumentTag::kString:
        return string(value);
    }
    return {};
  }

  // Prints a list of pairs or single words.
  template <class Element>
  static std::string list(const Operand& operand, Element element) {
    std::vector<std::string> parts;
    size_t words = static_cast<size_t>(operand_layout(operand.kind).words);
    for (size_t i = 0; i < operand.words.size(); i += words) parts.push_back(element(&operand.words[i]));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }

  std::string operand(const Operand& operand) const {
    const std::vector<Word>& words = operand.words;
    switch (operand.kind) {
      case OperandKind::kDst:
      case OperandKind::kReg:
      case OperandKind::kReleased:
        return fmt::format("r{}", words[0]);
      case OperandKind::kRegs:
        return list(operand, [](const Word* w) { return fmt::format("r{}", *w); });
      case OperandKind::kDstSlot:
        return slot(words[0]);
      case OperandKind::kScalar:
        return scalar(words[0], words[1]);
      case OperandKind::kScalars:
        return list(operand, [this](const Word* w) { return scalar(w[0], w[1]); });
      case OperandKind::kPattern:
        return list(operand, [this](const Word* w) { return match(w[0], w[1]); });
      case OperandKind::kArguments:
        return list(operand, [this](const Word* w) { return argument(w[0], w[1]); });
      case OperandKind::kImm:
        return std::to_string(words[0]);
      case OperandKind::kOperator:
        return std::string(kSlotOpNames[static_cast<size_t>(words[0])]);
      case OperandKind::kDType:
        return dtype(words[0]);
      case OperandKind::kConstant:
        return entry(executable_.constants, words[0],
                     [&](const Tensor& tensor) { return fmt::format("c{} {}", words[0], describe(tensor)); });
      case OperandKind::kKernel:
        return entry(executable_.kernels, words[0], [](const KernelInfo& kernel) { return quoted(kernel.symbol); });
      case OperandKind::kBuiltin:
        return entry(executable_.builtins, words[0], [](const std::string& name) { return quoted(name); });
      case OperandKind::kFunction:
        return entry(executable_.functions, words[0], [](const Function& callee) { return quoted(callee.name); });
      case OperandKind::kString:
        return string(words[0]);
      case OperandKind::kLabel:
        return words[0] == -1 ? "-" : string(words[0]);
      case OperandKind::kTarget:
        return fmt::format("@{}", words[0]);
    }
    return {};
  }

  const Executable& executable_;
  const Function& function_;
};

std::string signature(const std::vector<ValueInfo>& infos) {
  std::vector<std::string> texts;
  for (const ValueInfo& info : infos) texts.push_back(to_string(info));
  return fmt::format("({})", fmt::join(texts, ", "));
}

}  // namespace

std::string disassemble(const Executable& executable, const Function& function) {
  std::string text = fmt::format("function {}{} -> {}  # {} registers, {} slots\n", printable(function.name),
                                 signature(function.inputs), signature(function.outputs), function.num_registers,
                                 function.slot_names.size());
  Printer printer(executable, function);
  auto code = executable.code_of(function);
  for (size_t offset = 0; offset < code.size();) {
    auto decoded = decode(code, offset);
    if (!decoded) return text + fmt::format("{:6}: not an instruction\n", offset);
    text += fmt::format("{:6}: {}\n", offset, printer.instruction(decoded->instruction));
    offset = decoded->next;
  }
  return text;
}

std::string disassemble(const Executable& executable) {
  std::string text;
  for (const auto& [key, value] : executable.metadata)
    text += fmt::format("metadata {} = {}\n", printable(key), quoted(value));
  for (const KernelInfo& kernel : executable.kernels) {
    text += fmt::format("kernel {} {}  # {} tensors, {} scalars{}\n", printable(kernel.symbol),
                        quoted(kernel.display_name), kernel.num_tensors, kernel.num_scalars,
                        kernel.source == KernelSource::kRegistry ? ", from the registry" : "");
  }
  for (size_t i = 0; i < executable.constants.size(); ++i) {
    text += fmt::format("constant c{} {}\n", i, describe(executable.constants[i]));
  }
  for (const Function& function : executable.functions) text += "\n" + disassemble(executable, function);
  return text;
}

}  // namespace relaxc::vm
