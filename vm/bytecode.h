// The VM's instructions. kInstructions has one row per instruction. Encoder, decoder, disassembler and verifier derive
// from the rows; only the interpreter's loop is written by hand.
//
// A frame has registers (Values) and slots (int64 symbolic values). Code is a sequence of 64-bit words: the opcode,
// then the operands in the row's order. An operand is one element, or a count followed by that many elements; an
// element is one word, or a tag and a value (see operand_layout). Jump targets are word offsets from the function's
// first word.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vm/dtype.h"

namespace relaxc::vm {

using Word = int64_t;

enum class Opcode : uint8_t {
  kConstLoad,
  kMove,
  kDrop,
  kSlotSet,
  kSlotOp,
  kSlotSelect,
  kSlotFromTensor,
  kSlotFromValue,
  kMakeShape,
  kValueFromSlot,
  kMatchShape,
  kCheckTensor,
  kCheckIndices,
  kAllocStorage,
  kAllocTensor,
  kNewTensor,
  kReshapeView,
  kCallKernel,
  kCallBuiltin,
  kCall,
  kMakeTuple,
  kTupleGet,
  kJump,
  kBranchIf,
  kRet,
  kFail,
};

enum class OperandKind : uint8_t {
  kDst,        // register written
  kReg,        // register read
  kReleased,   // register that becomes unwritten
  kRegs,       // list of registers read
  kDstSlot,    // slot written
  kScalar,     // a slot read, or an immediate: (ScalarTag, value)
  kScalars,    // list of kScalar
  kImm,        // immediate int64
  kOperator,   // a SlotOp
  kDType,      // pack_dtype
  kConstant,   // index into the constants
  kKernel,     // index into the kernel table
  kBuiltin,    // index into the builtin names
  kFunction,   // index into the function table
  kString,     // index into the string table
  kLabel,      // index into the string table, or -1 for none
  kTarget,     // word offset of an instruction of the same function
  kPattern,    // list of (MatchAction, value)
  kArguments,  // list of (ArgumentTag, value)
};

struct OperandInfo {
  std::string_view name;
  OperandKind kind = OperandKind::kImm;
};

struct InstructionInfo {
  Opcode op;
  std::string_view name;
  int num_operands;
  std::array<OperandInfo, 6> operands;
  std::string_view doc;
};

namespace detail {
constexpr InstructionInfo row(Opcode op, std::string_view name, std::initializer_list<OperandInfo> operands,
                              std::string_view doc) {
  InstructionInfo info{op, name, static_cast<int>(operands.size()), {}, doc};
  int i = 0;
  for (const OperandInfo& operand : operands) info.operands[i++] = operand;
  return info;
}
}  // namespace detail

inline constexpr auto kInstructions = [] {
  using enum OperandKind;
  using enum Opcode;
  using detail::row;
  return std::array{
      row(kConstLoad, "const_load", {{"dst", kDst}, {"constant", kConstant}}, "dst = the constant tensor, not copied"),
      row(kMove, "move", {{"dst", kDst}, {"src", kReg}}, "dst = src, elements shared"),
      row(kDrop, "drop", {{"reg", kReleased}}, "release what reg holds; reg must be written again before it is read"),
      row(kSlotSet, "slot_set", {{"dst", kDstSlot}, {"value", kScalar}}, "dst = value"),
      row(kSlotOp, "slot_op", {{"dst", kDstSlot}, {"op", OperandKind::kOperator}, {"a", kScalar}, {"b", kScalar}},
          "dst = a op b; overflow and division by zero are errors"),
      row(kSlotSelect, "slot_select", {{"dst", kDstSlot}, {"condition", kScalar}, {"a", kScalar}, {"b", kScalar}},
          "dst = condition != 0 ? a : b"),
      row(kSlotFromTensor, "slot_from_tensor", {{"dst", kDstSlot}, {"tensor", kReg}, {"index", kImm}},
          "dst = element `index` (flat) of an integer or bool tensor"),
      row(kSlotFromValue, "slot_from_value", {{"dst", kDstSlot}, {"value", kReg}},
          "dst = an int, or the one element of an integer or bool tensor"),
      row(kMakeShape, "make_shape", {{"dst", kDst}, {"dims", kScalars}}, "dst = a shape value"),
      row(kValueFromSlot, "value_from_slot", {{"dst", kDst}, {"value", kScalar}}, "dst = an int value"),
      row(kMatchShape, "match_shape", {{"value", kReg}, {"pattern", kPattern}, {"context", kString}},
          "bind slots to the dims of a tensor or shape, or compare them; the rank must equal the pattern's"),
      row(kCheckTensor, "check_tensor", {{"value", kReg}, {"dtype", kDType}, {"ndim", kImm}, {"context", kString}},
          "the value must be a tensor of this dtype (or `any`) and rank (-1: any)"),
      row(kCheckIndices, "check_indices", {{"indices", kReg}, {"dims", kScalars}, {"context", kString}},
          "integers must lie in [-dim, dim); several dims: one per item of the last axis"),
      row(kAllocStorage, "alloc_storage", {{"dst", kDst}, {"bytes", kScalar}},
          "dst = uninitialised memory, 64-byte aligned, from the session's pool"),
      row(kAllocTensor, "alloc_tensor",
          {{"dst", kDst}, {"storage", kReg}, {"offset", kScalar}, {"dtype", kDType}, {"shape", kScalars}},
          "dst = a tensor at a byte offset (a multiple of 64) of a storage"),
      row(kNewTensor, "new_tensor", {{"dst", kDst}, {"dtype", kDType}, {"shape", kScalars}, {"output", kImm}},
          "dst = a tensor of its own; output >= 0: flat result of the entry function, host memory if bound"),
      row(kReshapeView, "reshape_view", {{"dst", kDst}, {"tensor", kReg}, {"shape", kScalars}},
          "dst = the same elements under another shape of equal size"),
      row(kCallKernel, "call_kernel",
          {{"kernel", kKernel}, {"tensors", kRegs}, {"scalars", kScalars}, {"label", kLabel}},
          "run a kernel on tensors (inputs, then outputs); label names the call in errors and profiles"),
      row(kCallBuiltin, "call_builtin", {{"dst", kDst}, {"builtin", kBuiltin}, {"arguments", kArguments}},
          "dst = result of a builtin or registered function"),
      row(kCall, "call", {{"dst", kDst}, {"function", kFunction}, {"arguments", kRegs}},
          "dst = result of another function of this executable"),
      row(kMakeTuple, "make_tuple", {{"dst", kDst}, {"fields", kRegs}}, "dst = a tuple"),
      row(kTupleGet, "tuple_get", {{"dst", kDst}, {"tuple", kReg}, {"index", kImm}}, "dst = field of a tuple"),
      row(kJump, "jump", {{"target", kTarget}}, "continue at target"),
      row(kBranchIf, "branch_if", {{"condition", kScalar}, {"target", kTarget}},
          "continue at target when condition != 0, else at the next instruction"),
      row(kRet, "ret", {{"value", kReg}}, "return value to the caller"),
      row(kFail, "fail", {{"message", kString}}, "stop with this error"),
  };
}();
inline constexpr int kNumInstructions = static_cast<int>(kInstructions.size());
static_assert(
    [] {
      for (int i = 0; i < kNumInstructions; ++i) {
        if (kInstructions[i].op != static_cast<Opcode>(i)) return false;
      }
      return kInstructions.back().op == Opcode::kFail;
    }(),
    "rows in the order of Opcode, none left out");

constexpr const InstructionInfo& info(Opcode op) { return kInstructions[static_cast<int>(op)]; }

enum class ScalarTag : uint8_t { kImm, kSlot };
enum class MatchAction : uint8_t { kBind, kCheckSlot, kCheckImm, kSkip };  // value of kSkip is 0
enum class ArgumentTag : uint8_t { kReg, kSlot, kImm, kDouble, kString };  // kDouble: the bits of a double

// The layout of an operand kind in words.
struct OperandLayout {
  bool is_list;
  int words;     // per element
  int tags = 0;  // an element's first word is a tag below this number; 0: elements have only a value
};
constexpr OperandLayout operand_layout(OperandKind kind) {
  switch (kind) {
    case OperandKind::kScalar:
      return {false, 2, static_cast<int>(ScalarTag::kSlot) + 1};
    case OperandKind::kRegs:
      return {true, 1};
    case OperandKind::kScalars:
      return {true, 2, static_cast<int>(ScalarTag::kSlot) + 1};
    case OperandKind::kPattern:
      return {true, 2, static_cast<int>(MatchAction::kSkip) + 1};
    case OperandKind::kArguments:
      return {true, 2, static_cast<int>(ArgumentTag::kString) + 1};
    case OperandKind::kDst:
    case OperandKind::kReg:
    case OperandKind::kReleased:
    case OperandKind::kDstSlot:
    case OperandKind::kImm:
    case OperandKind::kOperator:
    case OperandKind::kDType:
    case OperandKind::kConstant:
    case OperandKind::kKernel:
    case OperandKind::kBuiltin:
    case OperandKind::kFunction:
    case OperandKind::kString:
    case OperandKind::kLabel:
    case OperandKind::kTarget:
      return {false, 1};
  }
  return {false, 1};
}

// Comparisons and logic give 0 or 1; and/or take any nonzero value as true and do not short-circuit.
enum class SlotOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kFloorDiv,
  kFloorMod,
  kTruncDiv,
  kTruncMod,
  kMin,
  kMax,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
};
inline constexpr std::array<std::string_view, 17> kSlotOpNames = {
    "add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max",
    "eq",  "ne",  "lt",  "le",       "gt",       "ge",       "and",      "or"};

// Computes FNV-1a over everything that bytecode depends on: names and order of the instructions, names, kinds and
// layout of their operands, and the operators of slot_op. Artifacts carry the hash, so that bytecode of another
// instruction set is rejected instead of misread.
constexpr uint64_t hash_instructions(std::span<const InstructionInfo> rows) {
  uint64_t hash = 0xcbf29ce484222325;
  auto byte = [&](uint8_t value) { hash = (hash ^ value) * 0x100000001b3; };
  auto text = [&](std::string_view value) {
    for (char c : value) byte(static_cast<uint8_t>(c));
    byte(0);
  };
  for (const InstructionInfo& row : rows) {
    text(row.name);
    for (int i = 0; i < row.num_operands; ++i) {
      OperandLayout layout = operand_layout(row.operands[i].kind);
      text(row.operands[i].name);
      byte(static_cast<uint8_t>(row.operands[i].kind));
      byte(static_cast<uint8_t>(layout.is_list));
      byte(static_cast<uint8_t>(layout.words));
      byte(static_cast<uint8_t>(layout.tags));
    }
    byte(1);
  }
  for (std::string_view name : kSlotOpNames) text(name);
  return hash;
}
inline constexpr uint64_t kInstructionSet = hash_instructions(kInstructions);

// Returns nullopt on overflow or division by zero.
std::optional<int64_t> evaluate(SlotOp op, int64_t a, int64_t b);

// Packs a dtype into one word; kAnyDType means "any" where check_tensor allows it.
constexpr Word pack_dtype(DType dtype) {
  return static_cast<Word>(dtype.code) | (Word{dtype.bits} << 8) | (Word{dtype.lanes} << 16);
}
inline constexpr Word kAnyDType = -1;
// Returns nullopt for words that are not a dtype the runtime knows (kAnyDType included).
std::optional<DType> unpack_dtype(Word word);

// ---- Operands as C++ values, for code that emits instructions. ----

template <OperandKind kKind>
struct Index {
  int64_t value = -1;
  friend bool operator==(const Index&, const Index&) = default;
};
using Reg = Index<OperandKind::kReg>;
using Slot = Index<OperandKind::kDstSlot>;
using ConstantIndex = Index<OperandKind::kConstant>;
using KernelIndex = Index<OperandKind::kKernel>;
using BuiltinIndex = Index<OperandKind::kBuiltin>;
using FunctionIndex = Index<OperandKind::kFunction>;
using StringIndex = Index<OperandKind::kString>;
// A place in the code under construction; FunctionBuilder turns it into a word offset.
using Label = Index<OperandKind::kTarget>;

// A slot or an immediate.
struct Scalar {
  ScalarTag tag = ScalarTag::kImm;
  int64_t value = 0;
  Scalar(Slot slot) : tag(ScalarTag::kSlot), value(slot.value) {}
  template <std::integral T>
  Scalar(T imm) : value(static_cast<int64_t>(imm)) {}
};

struct MatchDim {
  MatchAction action = MatchAction::kSkip;
  int64_t value = 0;
  static MatchDim bind(Slot slot) { return {MatchAction::kBind, slot.value}; }
  static MatchDim check(Slot slot) { return {MatchAction::kCheckSlot, slot.value}; }
  static MatchDim check(int64_t imm) { return {MatchAction::kCheckImm, imm}; }
  static MatchDim skip() { return {}; }
};

struct Argument {
  ArgumentTag tag = ArgumentTag::kImm;
  int64_t value = 0;
  Argument(Reg reg) : tag(ArgumentTag::kReg), value(reg.value) {}
  Argument(Slot slot) : tag(ArgumentTag::kSlot), value(slot.value) {}
  Argument(StringIndex string) : tag(ArgumentTag::kString), value(string.value) {}
  Argument(double number);
  template <std::integral T>
  Argument(T imm) : value(static_cast<int64_t>(imm)) {}
};

// One operand in words, without the count of a list.
struct Operand {
  OperandKind kind = OperandKind::kImm;
  std::vector<Word> words;

  Operand() = default;
  Operand(OperandKind operand_kind, std::vector<Word> operand_words)
      : kind(operand_kind), words(std::move(operand_words)) {}
  template <OperandKind kKind>
  Operand(Index<kKind> index) : kind(kKind), words{index.value} {}
  template <std::integral T>
  Operand(T imm) : words{static_cast<Word>(imm)} {}
  Operand(SlotOp op) : kind(OperandKind::kOperator), words{static_cast<Word>(op)} {}
  Operand(DType dtype) : kind(OperandKind::kDType), words{pack_dtype(dtype)} {}
  Operand(std::optional<DType> dtype) : kind(OperandKind::kDType), words{dtype ? pack_dtype(*dtype) : kAnyDType} {}
  Operand(Scalar scalar) : kind(OperandKind::kScalar), words{static_cast<Word>(scalar.tag), scalar.value} {}
  Operand(const std::vector<Reg>& regs);
  Operand(const std::vector<Scalar>& scalars);
  Operand(const std::vector<MatchDim>& pattern);
  Operand(const std::vector<Argument>& arguments);
  friend bool operator==(const Operand&, const Operand&) = default;
};

struct Instruction {
  Opcode op = Opcode::kFail;
  std::vector<Operand> operands;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

// Makes an instruction whose operands fit the row: an integer becomes a kScalar where the row asks for one, a register
// becomes a destination, and an absent label becomes -1. Operands that do not fit fail a check.
Instruction make_instruction(Opcode op, std::vector<Operand> operands);

void encode(const Instruction& instruction, std::vector<Word>& code);

struct Decoded {
  Instruction instruction;
  size_t next = 0;  // offset of the next instruction
};
// Returns nullopt when the words at `offset` are not an instruction, are cut off, or have a bad tag. The verifier
// checks indices.
std::optional<Decoded> decode(std::span<const Word> code, size_t offset);

}  // namespace relaxc::vm
