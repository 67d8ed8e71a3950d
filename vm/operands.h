// Locates the operands of an instruction in its words, computed from its row in kInstructions. Code that reads verified
// bytecode names operands and never counts words. Internal to vm/.
#pragma once
#include <algorithm>

#include "vm/bytecode.h"

namespace relaxc::vm {

// An operand's name as a template argument.
template <size_t kSize>
struct OperandName {
  char text[kSize];
  consteval OperandName(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }
  constexpr std::string_view view() const { return {text, kSize - 1}; }
};

// Fails to compile for a name that is not in the row.
consteval int operand_index(Opcode op, std::string_view name) {
  const InstructionInfo& row = info(op);
  for (int i = 0; i < row.num_operands; ++i) {
    if (row.operands[i].name == name) return i;
  }
  throw "the instruction's row has no operand of this name";
}

// Returns the first word of operand `kIndex` of the instruction at `at`; for a list that is its count. The index one
// past the last operand gives the next instruction. The address is a constant distance from `at` unless a list precedes
// the operand.
template <Opcode kOp, int kIndex>
const Word* operand_begin(const Word* at) {
  if constexpr (kIndex == 0) {
    return at + 1;
  } else {
    constexpr OperandLayout kBefore = operand_layout(info(kOp).operands[kIndex - 1].kind);
    const Word* before = operand_begin<kOp, kIndex - 1>(at);
    return kBefore.is_list ? before + 1 + kBefore.words * before[0] : before + kBefore.words;
  }
}

// Returns the words of the shortest instruction of this row, in which every list is empty.
consteval int fewest_words(Opcode op) {
  int words = 1;
  for (int i = 0; i < info(op).num_operands; ++i) {
    const OperandLayout& layout = operand_layout(info(op).operands[i].kind);
    words += layout.is_list ? 1 : layout.words;
  }
  return words;
}

// The elements of a list operand.
struct ListWords {
  const Word* first;
  size_t size;
  size_t words_per_element;
  // Returns the last word of element i: the value, after a tag where elements have one.
  Word value(size_t i) const { return first[i * words_per_element + words_per_element - 1]; }
  const Word* element(size_t i) const { return first + i * words_per_element; }
};

// The operands of one instruction as words.
template <Opcode kOp>
class Operands {
 public:
  explicit Operands(const Word* at) : at_(at) {}

  template <OperandName kName>
  static constexpr OperandKind kind_of() {
    return info(kOp).operands[operand_index(kOp, kName.view())].kind;
  }
  template <OperandName kName>
  const Word* begin() const {
    return operand_begin<kOp, operand_index(kOp, kName.view())>(at_);
  }
  template <OperandName kName>
  Word word() const {
    constexpr OperandLayout kLayout = operand_layout(kind_of<kName>());
    static_assert(!kLayout.is_list && kLayout.words == 1, "an operand of one word");
    return *begin<kName>();
  }
  template <OperandName kName>
  ListWords list() const {
    constexpr OperandLayout kLayout = operand_layout(kind_of<kName>());
    static_assert(kLayout.is_list);
    const Word* count = begin<kName>();
    return {count + 1, static_cast<size_t>(*count), static_cast<size_t>(kLayout.words)};
  }
  const Word* at() const { return at_; }
  const Word* next() const { return operand_begin<kOp, info(kOp).num_operands>(at_); }

 private:
  const Word* at_;
};

}  // namespace relaxc::vm
