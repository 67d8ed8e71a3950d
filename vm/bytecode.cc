#include "vm/bytecode.h"

#include <algorithm>
#include <bit>

#include "support/check.h"
#include "support/checked_math.h"

namespace relaxc::vm {

std::optional<int64_t> evaluate(SlotOp op, int64_t a, int64_t b) {
  // INT64_MIN / -1 is the one quotient that does not fit.
  bool divisible = b != 0 && !(a == INT64_MIN && b == -1);
  switch (op) {
    case SlotOp::kAdd:
      return checked_add(a, b);
    case SlotOp::kSub:
      return checked_sub(a, b);
    case SlotOp::kMul:
      return checked_mul(a, b);
    case SlotOp::kFloorDiv:
      return divisible ? std::optional(floor_div(a, b)) : std::nullopt;
    case SlotOp::kFloorMod:
      return divisible ? std::optional(floor_mod(a, b)) : std::nullopt;
    case SlotOp::kTruncDiv:
      return divisible ? std::optional(a / b) : std::nullopt;
    case SlotOp::kTruncMod:
      return divisible ? std::optional(a % b) : std::nullopt;
    case SlotOp::kMin:
      return std::min(a, b);
    case SlotOp::kMax:
      return std::max(a, b);
    case SlotOp::kEq:
      return a == b;
    case SlotOp::kNe:
      return a != b;
    case SlotOp::kLt:
      return a < b;
    case SlotOp::kLe:
      return a <= b;
    case SlotOp::kGt:
      return a > b;
    case SlotOp::kGe:
      return a >= b;
    case SlotOp::kAnd:
      return a != 0 && b != 0;
    case SlotOp::kOr:
      return a != 0 || b != 0;
  }
  return std::nullopt;
}

std::optional<DType> unpack_dtype(Word word) {
  if (word < 0 || word >> 32 != 0 || (word & 0xff) > static_cast<Word>(DTypeCode::kHandle)) return std::nullopt;
  DType dtype{static_cast<DTypeCode>(word & 0xff), static_cast<uint8_t>(word >> 8), static_cast<uint16_t>(word >> 16)};
  if (parse_dtype(to_string(dtype)) != dtype) return std::nullopt;
  return dtype;
}

Argument::Argument(double number) : tag(ArgumentTag::kDouble), value(std::bit_cast<int64_t>(number)) {}

Operand::Operand(const std::vector<Reg>& regs) : kind(OperandKind::kRegs) {
  for (Reg reg : regs) words.push_back(reg.value);
}

namespace {

// Appends an element of a tag and a value.
template <class Tag>
void append_pair(std::vector<Word>& words, Tag tag, int64_t value) {
  words.push_back(static_cast<Word>(tag));
  words.push_back(value);
}

}  // namespace

Operand::Operand(const std::vector<Scalar>& scalars) : kind(OperandKind::kScalars) {
  for (const Scalar& scalar : scalars) append_pair(words, scalar.tag, scalar.value);
}
Operand::Operand(const std::vector<MatchDim>& pattern) : kind(OperandKind::kPattern) {
  for (const MatchDim& dim : pattern) append_pair(words, dim.action, dim.value);
}
Operand::Operand(const std::vector<Argument>& arguments) : kind(OperandKind::kArguments) {
  for (const Argument& argument : arguments) append_pair(words, argument.tag, argument.value);
}

namespace {

// Returns the operand in the form that the row asks for, or nullopt.
std::optional<Operand> conform(const Operand& operand, OperandKind wanted) {
  if (operand.kind == wanted) return operand;
  switch (wanted) {
    case OperandKind::kDst:
    case OperandKind::kReleased:
      if (operand.kind == OperandKind::kReg) return Operand(wanted, operand.words);
      return std::nullopt;
    case OperandKind::kScalar:
      if (operand.kind == OperandKind::kImm) return Operand(Scalar(operand.words[0]));
      if (operand.kind == OperandKind::kDstSlot) return Operand(Scalar(Slot{operand.words[0]}));
      return std::nullopt;
    case OperandKind::kLabel:
      if (operand.kind == OperandKind::kString) return Operand(wanted, operand.words);
      if (operand.kind == OperandKind::kImm && operand.words[0] == -1) return Operand(wanted, operand.words);
      return std::nullopt;
    case OperandKind::kReg:
    case OperandKind::kRegs:
    case OperandKind::kDstSlot:
    case OperandKind::kScalars:
    case OperandKind::kImm:
    case OperandKind::kOperator:
    case OperandKind::kDType:
    case OperandKind::kConstant:
    case OperandKind::kKernel:
    case OperandKind::kBuiltin:
    case OperandKind::kFunction:
    case OperandKind::kString:
    case OperandKind::kTarget:
    case OperandKind::kPattern:
    case OperandKind::kArguments:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Instruction make_instruction(Opcode op, std::vector<Operand> operands) {
  const InstructionInfo& row = info(op);
  RELAXC_CHECK(static_cast<int>(operands.size()) == row.num_operands, "{} takes {} operands, got {}", row.name,
               row.num_operands, operands.size());
  for (int i = 0; i < row.num_operands; ++i) {
    auto fitting = conform(operands[i], row.operands[i].kind);
    RELAXC_CHECK(fitting.has_value(), "operand '{}' of {} has the wrong kind", row.operands[i].name, row.name);
    operands[i] = std::move(*fitting);
  }
  return {op, std::move(operands)};
}

void encode(const Instruction& instruction, std::vector<Word>& code) {
  code.push_back(static_cast<Word>(instruction.op));
  for (const Operand& operand : instruction.operands) {
    OperandLayout layout = operand_layout(operand.kind);
    if (layout.is_list) code.push_back(static_cast<Word>(operand.words.size()) / layout.words);
    code.insert(code.end(), operand.words.begin(), operand.words.end());
  }
}

std::optional<Decoded> decode(std::span<const Word> code, size_t offset) {
  if (offset >= code.size()) return std::nullopt;
  Word opcode = code[offset++];
  if (opcode < 0 || opcode >= kNumInstructions) return std::nullopt;
  const InstructionInfo& row = kInstructions[static_cast<size_t>(opcode)];
  Decoded decoded;
  decoded.instruction.op = row.op;
  for (int i = 0; i < row.num_operands; ++i) {
    OperandKind kind = row.operands[i].kind;
    OperandLayout layout = operand_layout(kind);
    size_t count = 1;
    if (layout.is_list) {
      if (offset >= code.size() || code[offset] < 0) return std::nullopt;
      count = static_cast<size_t>(code[offset++]);
    }
    if (count > (code.size() - offset) / static_cast<size_t>(layout.words)) return std::nullopt;
    auto words = code.subspan(offset, count * static_cast<size_t>(layout.words));
    offset += words.size();
    for (size_t w = 0; layout.tags > 0 && w < words.size(); w += 2) {
      if (words[w] < 0 || words[w] >= layout.tags) return std::nullopt;
    }
    if (kind == OperandKind::kOperator && (words[0] < 0 || words[0] >= static_cast<Word>(kSlotOpNames.size()))) {
      return std::nullopt;
    }
    decoded.instruction.operands.emplace_back(kind, std::vector<Word>(words.begin(), words.end()));
  }
  decoded.next = offset;
  return decoded;
}

}  // namespace relaxc::vm
