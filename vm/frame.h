// One call of a function: its registers and slots, and operands of instructions looked up in them. Internal to vm/.
#pragma once

#include "support/formatted.h"
#include "vm/interpreter.h"
#include "vm/operands.h"

namespace relaxc::vm {

struct Interpreter::Frame {
  const Executable* executable = nullptr;
  const Function* function = nullptr;
  const Word* code = nullptr;
  std::vector<Value> registers;
  std::vector<int64_t> slots;
  Value result;  // set when the function returns

  Value& reg(Word index) { return registers[static_cast<size_t>(index)]; }
  const Value& reg(Word index) const { return registers[static_cast<size_t>(index)]; }
  int64_t& slot(Word index) { return slots[static_cast<size_t>(index)]; }
  int64_t slot(Word index) const { return slots[static_cast<size_t>(index)]; }
  // Returns the value of a kScalar's two words.
  int64_t scalar(const Word* words) const {
    return words[0] == static_cast<Word>(ScalarTag::kSlot) ? slot(words[1]) : words[1];
  }
  const std::string& string(Word index) const { return executable->strings[static_cast<size_t>(index)]; }
  const std::string& slot_name(Word index) const { return function->slot_names[static_cast<size_t>(index)]; }
  // Returns "n", or "s2" for a slot without a name.
  std::string slot_text(Word index) const {
    return slot_name(index).empty() ? formatted("s{}", index) : slot_name(index);
  }
  // Returns "dim 0 (k)".
  static std::string dim_text(size_t dim, std::string_view name) {
    return name.empty() ? formatted("dim {}", dim) : formatted("dim {} ({})", dim, name);
  }

  // Returns "node 'conv_1' (Conv): ", or an empty string where no node is known.
  std::string place_of(const Word* at) const;
  // Returns the context of the last match_shape up to `here` that binds the slot, by decoding: it is for messages.
  std::optional<Word> binder(Word slot, const Word* here) const;
};

// The operands of the instruction at `at`, with their values in the frame.
template <Opcode kOp>
class Interpreter::In : public Operands<kOp> {
  using Base = Operands<kOp>;

 public:
  In(Frame& frame, const Word* at) : Base(at), frame_(frame) {}
  Frame& frame() const { return frame_; }

  template <OperandName kName>
  Value& reg() const {
    constexpr OperandKind kKind = Base::template kind_of<kName>();
    static_assert(kKind == OperandKind::kDst || kKind == OperandKind::kReg || kKind == OperandKind::kReleased);
    return frame_.reg(Base::template word<kName>());
  }
  template <OperandName kName>
  int64_t& slot() const {
    static_assert(Base::template kind_of<kName>() == OperandKind::kDstSlot);
    return frame_.slot(Base::template word<kName>());
  }
  template <OperandName kName>
  int64_t scalar() const {
    static_assert(Base::template kind_of<kName>() == OperandKind::kScalar);
    return frame_.scalar(Base::template begin<kName>());
  }
  template <OperandName kName>
  const std::string& string() const {
    static_assert(Base::template kind_of<kName>() == OperandKind::kString);
    return frame_.string(Base::template word<kName>());
  }

 private:
  Frame& frame_;
};

}  // namespace relaxc::vm
