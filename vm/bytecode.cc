#include "vm/bytecode.h"

#include "support/check.h"
#include "support/checked_math.h"

namespace relaxc::vm {

std::optional<int64_t> evaluate(SlotOp op, int64_t a, int64_t b) {
  // INT64_MIN / -1 is the one quotient that does not fit.
  bool divisible = b != 0 && !(a == INT64_MIN && b == -1);
  switch (op) {
#define RELAXC_ROW(op, name, value) \
  case SlotOp::op:                  \
    return value;
    RELAXC_SLOT_OPS(RELAXC_ROW)
#undef RELAXC_ROW
  }
  return std::nullopt;
}

std::optional<DType> unpack_dtype(Word word) {
  if (word < 0 || word >> 32 != 0 || (word & 0xff) > static_cast<Word>(DTypeCode::kFloat4E2M1FN)) return std::nullopt;
  DType dtype{static_cast<DTypeCode>(word & 0xff), static_cast<uint8_t>(word >> 8), static_cast<uint16_t>(word >> 16)};
  if (parse_dtype(to_string(dtype)) != dtype) return std::nullopt;
  return dtype;
}

// Returns the operand in the form that the row asks for, or nullopt.
static std::optional<Operand> conform(const Operand& operand, OperandKind wanted) {
  using enum OperandKind;
  bool is_reg = operand.kind == kReg, is_imm = operand.kind == kImm;
  bool takes_words = operand.kind == wanted || ((wanted == kDst || wanted == kReleased) && is_reg) ||
                     (wanted == kLabel && (operand.kind == kString || (is_imm && operand.words[0] == -1)));
  if (takes_words) return Operand(wanted, operand.words);
  if (wanted == kScalar && is_imm) return Operand(Scalar(operand.words[0]));
  if (wanted == kScalar && operand.kind == kDstSlot) return Operand(Scalar(Slot{operand.words[0]}));
  return std::nullopt;
}

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
    const OperandLayout& layout = operand_layout(operand.kind);
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
    const OperandLayout& layout = operand_layout(kind);
    size_t count = 1;
    if (layout.is_list) {
      if (offset >= code.size() || code[offset] < 0) return std::nullopt;
      count = static_cast<size_t>(code[offset++]);
    }
    if (count > (code.size() - offset) / static_cast<size_t>(layout.words)) return std::nullopt;
    auto words = code.subspan(offset, count * static_cast<size_t>(layout.words));
    offset += words.size();
    auto is_below = [&](size_t w, auto limit) { return words[w] >= 0 && words[w] < static_cast<Word>(limit); };
    for (size_t w = 0; layout.tags > 0 && w < words.size(); w += 2) {
      if (!is_below(w, layout.tags)) return std::nullopt;
    }
    if (kind == OperandKind::kOperator && !is_below(0, std::size(kSlotOpNames))) return std::nullopt;
    decoded.instruction.operands.emplace_back(kind, std::vector<Word>(words.begin(), words.end()));
  }
  decoded.next = offset;
  return decoded;
}

}  // namespace relaxc::vm
