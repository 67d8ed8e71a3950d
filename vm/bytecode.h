// The VM's instructions, a row each. Encoder, decoder, disassembler and verifier derive from the rows; only the
// interpreter's loop is written by hand.
//
// A frame has registers (Values) and slots (int64 symbolic values). Code is a sequence of 64-bit words: the opcode,
// then the operands in the row's order. An operand is one element, or a count followed by that many elements; an
// element is one word, or a tag and a value (see operand_layout). Jump targets are word offsets from the function's
// first word.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <initializer_list>
#include <span>
#include <vector>

#include "support/lists.h"
#include "support/short_text.h"
#include "vm/executable.h"

namespace relaxc::vm {

// The meaning of an element of an operand: an index of a register, slot or entry of a table, or a value.
enum class ElementKind : uint8_t {
  kRegister,
  kSlot,
  kConstant,
  kKernel,
  kBuiltin,
  kFunction,
  kString,
  kLabel,   // a string that names a call, or -1
  kTarget,  // word offset of an instruction of the same function
  kInt,
  kDouble,    // the bits of a double
  kOperator,  // a SlotOp
  kDType,     // pack_dtype
  kNothing,   // 0
};
enum class Effect : uint8_t { kRead, kWrite, kRelease };  // on a register or slot; kRelease: it becomes unwritten
struct ElementInfo {
  ElementKind kind;
  Effect effect = Effect::kRead;
};

enum class ScalarTag : uint8_t { kImm, kSlot };
enum class MatchAction : uint8_t { kBind, kCheckSlot, kCheckImm, kSkip };
enum class ArgumentTag : uint8_t { kReg, kSlot, kImm, kDouble, kString };

// A row per kind of operand: whether it is a list, the number of tags, and the meaning of an element, per tag. With
// tags an element is a tag below their number and a value, else only a value. The tags of scalars are ScalarTag, those
// of a pattern MatchAction, and those of arguments ArgumentTag.
// clang-format off
#define RELAXC_OPERAND_KINDS(X) \
  X(kDst, false, 0, {E::kRegister, Effect::kWrite}) \
  X(kReg, false, 0, {E::kRegister}) \
  X(kReleased, false, 0, {E::kRegister, Effect::kRelease}) \
  X(kRegs, true, 0, {E::kRegister}) \
  X(kDstSlot, false, 0, {E::kSlot, Effect::kWrite}) \
  X(kScalar, false, 2, {E::kInt}, {E::kSlot}) \
  X(kScalars, true, 2, {E::kInt}, {E::kSlot}) \
  X(kImm, false, 0, {E::kInt}) \
  X(kOperator, false, 0, {E::kOperator}) \
  X(kDType, false, 0, {E::kDType}) \
  X(kConstant, false, 0, {E::kConstant}) \
  X(kKernel, false, 0, {E::kKernel}) \
  X(kBuiltin, false, 0, {E::kBuiltin}) \
  X(kFunction, false, 0, {E::kFunction}) \
  X(kString, false, 0, {E::kString}) \
  X(kLabel, false, 0, {E::kLabel}) \
  X(kTarget, false, 0, {E::kTarget}) \
  X(kPattern, true, 4, {E::kSlot, Effect::kWrite}, {E::kSlot}, {E::kInt}, {E::kNothing}) \
  X(kArguments, true, 5, {E::kRegister}, {E::kSlot}, {E::kInt}, {E::kDouble}, {E::kString})
// clang-format on
#define RELAXC_ROW(kind, ...) kind,
enum class OperandKind : uint8_t { RELAXC_OPERAND_KINDS(RELAXC_ROW) };
#undef RELAXC_ROW
struct OperandLayout {
  bool is_list;
  int tags;
  std::array<ElementInfo, 5> elements;
  int words = tags > 0 ? 2 : 1;  // per element
};
inline constexpr auto kOperandLayouts = [] {
  using E = ElementKind;
#define RELAXC_ROW(kind, is_list, tags, ...) OperandLayout{is_list, tags, {{__VA_ARGS__}}},
  return std::array{RELAXC_OPERAND_KINDS(RELAXC_ROW)};
#undef RELAXC_ROW
}();
constexpr const OperandLayout& operand_layout(OperandKind kind) { return kOperandLayouts[static_cast<int>(kind)]; }

struct OperandInfo {
  ShortText<10> name;
  OperandKind kind = OperandKind::kImm;
};

// One row per instruction: opcode, name, meaning, operands.
// clang-format off
#define RELAXC_INSTRUCTIONS(X) \
  X(kConstLoad, "const_load", "dst = the constant tensor, not copied", {"dst", kDst}, {"constant", kConstant}) \
  X(kMove, "move", "dst = src, elements shared", {"dst", kDst}, {"src", kReg}) \
  X(kDrop, "drop", "release the value in reg, which must be written again before it is read", {"reg", kReleased}) \
  X(kSlotSet, "slot_set", "dst = value", {"dst", kDstSlot}, {"value", kScalar}) \
  X(kSlotOp, "slot_op", "dst = a op b; overflow and division by zero are errors", \
    {"dst", kDstSlot}, {"op", kOperator}, {"a", kScalar}, {"b", kScalar}) \
  X(kSlotSelect, "slot_select", "dst = condition != 0 ? a : b", \
    {"dst", kDstSlot}, {"condition", kScalar}, {"a", kScalar}, {"b", kScalar}) \
  X(kSlotFromTensor, "slot_from_tensor", "dst = element `index` (flat) of an integer or bool tensor", \
    {"dst", kDstSlot}, {"tensor", kReg}, {"index", kImm}) \
  X(kSlotFromValue, "slot_from_value", "dst = an int, or the one element of an integer or bool tensor", \
    {"dst", kDstSlot}, {"value", kReg}) \
  X(kMakeShape, "make_shape", "dst = a shape value", {"dst", kDst}, {"dims", kScalars}) \
  X(kValueFromSlot, "value_from_slot", "dst = an int value", {"dst", kDst}, {"value", kScalar}) \
  X(kMatchShape, "match_shape", \
    "bind slots to the dims of a tensor or shape, or compare them; the rank must equal the pattern's", \
    {"value", kReg}, {"pattern", kPattern}, {"context", kString}) \
  X(kCheckRange, "check_range", "the number must be from `least` to `most`", \
    {"value", kScalar}, {"least", kImm}, {"most", kImm}, {"context", kString}) \
  X(kCheckTensor, "check_tensor", "the value must be a tensor of this dtype (or `any`) and rank (-1: any)", \
    {"value", kReg}, {"dtype", kDType}, {"ndim", kImm}, {"context", kString}) \
  X(kCheckIndices, "check_indices", "integers must lie in [-dim, dim); several dims: one per item of the last axis", \
    {"indices", kReg}, {"dims", kScalars}, {"context", kString}) \
  X(kAllocStorage, "alloc_storage", "dst = uninitialised memory, 64-byte aligned, from the session's pool", \
    {"dst", kDst}, {"bytes", kScalar}) \
  X(kAllocTensor, "alloc_tensor", "dst = a tensor at a byte offset (a multiple of 64) of a storage", \
    {"dst", kDst}, {"storage", kReg}, {"offset", kScalar}, {"dtype", kDType}, {"shape", kScalars}) \
  X(kNewTensor, "new_tensor", \
    "dst = a tensor of its own; output >= 0: flat result of the entry function, host memory if bound", \
    {"dst", kDst}, {"dtype", kDType}, {"shape", kScalars}, {"output", kImm}) \
  X(kReshapeView, "reshape_view", "dst = the same elements under another shape of equal size", \
    {"dst", kDst}, {"tensor", kReg}, {"shape", kScalars}) \
  X(kView, "view", "dst = the elements from a byte offset (a multiple of 64) on of a tensor, as many as the shape has", \
    {"dst", kDst}, {"tensor", kReg}, {"offset", kScalar}, {"shape", kScalars}) \
  X(kCallKernel, "call_kernel", \
    "run a kernel on tensors (inputs, then outputs); label names the call in errors and profiles", \
    {"kernel", kKernel}, {"tensors", kRegs}, {"scalars", kScalars}, {"label", kLabel}) \
  X(kCallBuiltin, "call_builtin", "dst = result of a builtin or registered function", \
    {"dst", kDst}, {"builtin", kBuiltin}, {"arguments", kArguments}) \
  X(kCall, "call", "dst = result of another function of this executable", \
    {"dst", kDst}, {"function", kFunction}, {"arguments", kRegs}) \
  X(kMakeClosure, "make_closure", "dst = a function of this executable, with the values of its last parameters", \
    {"dst", kDst}, {"function", kFunction}, {"captured", kRegs}) \
  X(kInvoke, "invoke", "dst = result of a closure on these arguments, then the captured ones", \
    {"dst", kDst}, {"closure", kReg}, {"arguments", kRegs}) \
  X(kLoop, "loop", \
    "dst = (carried values, rows) after at most `trips` calls of a closure on (i, carried values), which gives " \
    "([condition,] carried values, a row of each tensor of rows); it ends when the condition is 0", \
    {"dst", kDst}, {"closure", kReg}, {"trips", kScalar}, {"condition", kScalar}, {"carried", kRegs}, {"rows", kRegs}) \
  X(kMakeTuple, "make_tuple", "dst = a tuple", {"dst", kDst}, {"fields", kRegs}) \
  X(kTupleGet, "tuple_get", "dst = field of a tuple", {"dst", kDst}, {"tuple", kReg}, {"index", kImm}) \
  X(kJump, "jump", "continue at target", {"target", kTarget}) \
  X(kBranchIf, "branch_if", "continue at target when condition != 0, else at the next instruction", \
    {"condition", kScalar}, {"target", kTarget}) \
  X(kRet, "ret", "return value to the caller", {"value", kReg}) \
  X(kFail, "fail", "stop with this error", {"message", kString})
// clang-format on

#define RELAXC_ROW(op, ...) op,
enum class Opcode : uint8_t { RELAXC_INSTRUCTIONS(RELAXC_ROW) };
#undef RELAXC_ROW

struct InstructionInfo {
  Opcode op;
  ShortText<18> name;
  int num_operands;
  std::array<OperandInfo, 6> operands;
};
inline constexpr auto kInstructions = [] {
  using enum OperandKind;
  auto row = [](Opcode op, ShortText<18> name, std::initializer_list<OperandInfo> operands) {
    InstructionInfo info{op, name, static_cast<int>(operands.size()), {}};
    std::copy(operands.begin(), operands.end(), info.operands.begin());
    return info;
  };
#define RELAXC_ROW(op, name, doc, ...) row(Opcode::op, name, {__VA_ARGS__}),
  return std::array{RELAXC_INSTRUCTIONS(RELAXC_ROW)};
#undef RELAXC_ROW
}();
inline constexpr int kNumInstructions = static_cast<int>(kInstructions.size());
constexpr const InstructionInfo& info(Opcode op) { return kInstructions[static_cast<int>(op)]; }

// The operators of slot_op: the name, and the value for a and b, nullopt on overflow or division by zero. Comparisons
// and logic give 0 or 1; and/or take any nonzero value as true and do not short-circuit. The enumerators are spelled as
// those of the compiler's BinaryOp (codegen/bytecode_scalars.cc).
// clang-format off
#define RELAXC_SLOT_OPS(X) \
  X(kAdd, "add", checked_add(a, b)) \
  X(kSub, "sub", checked_sub(a, b)) \
  X(kMul, "mul", checked_mul(a, b)) \
  X(kFloorDiv, "floordiv", divisible ? std::optional(floor_div(a, b)) : std::nullopt) \
  X(kFloorMod, "floormod", divisible ? std::optional(floor_mod(a, b)) : std::nullopt) \
  X(kDiv, "truncdiv", divisible ? std::optional(a / b) : std::nullopt) \
  X(kTruncMod, "truncmod", divisible ? std::optional(a % b) : std::nullopt) \
  X(kMin, "min", std::min(a, b)) \
  X(kMax, "max", std::max(a, b)) \
  X(kEQ, "eq", a == b) \
  X(kNE, "ne", a != b) \
  X(kLT, "lt", a < b) \
  X(kLE, "le", a <= b) \
  X(kGT, "gt", a > b) \
  X(kGE, "ge", a >= b) \
  X(kAnd, "and", a != 0 && b != 0) \
  X(kOr, "or", a != 0 || b != 0)
// clang-format on
#define RELAXC_ROW(op, name, value) op,
enum class SlotOp : uint8_t { RELAXC_SLOT_OPS(RELAXC_ROW) };
#undef RELAXC_ROW
#define RELAXC_ROW(op, name, value) name,
inline constexpr ShortText<8> kSlotOpNames[] = {RELAXC_SLOT_OPS(RELAXC_ROW)};
#undef RELAXC_ROW

// FNV-1a, for what is known when relaxc is compiled.
class ConstantHash {
 public:
  constexpr void number(int64_t value) {
    for (int byte = 0; byte < 8; ++byte) mix(static_cast<uint8_t>(value >> (8 * byte)));
  }
  constexpr void text(std::string_view text) {
    for (char c : text) mix(static_cast<uint8_t>(c));
    number(std::ssize(text));
  }
  constexpr uint64_t value() const { return value_; }

 private:
  constexpr void mix(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }
  uint64_t value_ = 0xcbf29ce484222325;
};

// Hashes everything that bytecode depends on: names and order of the instructions, names, kinds and layout of their
// operands, and the operators of slot_op. Artifacts carry the hash (vm/serialization.cc), so that bytecode of another
// instruction set is rejected instead of misread.
constexpr uint64_t hash_instructions(std::span<const InstructionInfo> rows) {
  ConstantHash hash;
  for (const ShortText<8>& name : kSlotOpNames) hash.text(name);
  for (const InstructionInfo& row : rows) {
    hash.text(row.name);
    hash.number(row.num_operands);
    for (size_t i = 0; i < static_cast<size_t>(row.num_operands); ++i) {
      const OperandLayout& layout = operand_layout(row.operands[i].kind);
      hash.text(row.operands[i].name);
      for (int number : {static_cast<int>(row.operands[i].kind), int{layout.is_list}, layout.words, layout.tags})
        hash.number(number);
    }
  }
  return hash.value();
}

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

// A slot or an immediate. In Scalar, MatchDim and Argument kList is the kind of the lists of them.
struct Scalar {
  static constexpr OperandKind kList = OperandKind::kScalars;
  ScalarTag tag = ScalarTag::kImm;
  int64_t value = 0;
  Scalar(Slot slot) : tag(ScalarTag::kSlot), value(slot.value) {}
  template <std::integral T>
  Scalar(T imm) : value(static_cast<int64_t>(imm)) {}
};

struct MatchDim {
  static constexpr OperandKind kList = OperandKind::kPattern;
  MatchAction tag = MatchAction::kSkip;
  int64_t value = 0;
  static MatchDim bind(Slot slot) { return {MatchAction::kBind, slot.value}; }
  static MatchDim check(Slot slot) { return {MatchAction::kCheckSlot, slot.value}; }
  static MatchDim check(int64_t imm) { return {MatchAction::kCheckImm, imm}; }
  static MatchDim skip() { return {}; }
};

struct Argument {
  static constexpr OperandKind kList = OperandKind::kArguments;
  ArgumentTag tag = ArgumentTag::kImm;
  int64_t value = 0;
  Argument(Reg reg) : tag(ArgumentTag::kReg), value(reg.value) {}
  Argument(Slot slot) : tag(ArgumentTag::kSlot), value(slot.value) {}
  Argument(StringIndex string) : tag(ArgumentTag::kString), value(string.value) {}
  Argument(double number) : tag(ArgumentTag::kDouble), value(std::bit_cast<int64_t>(number)) {}
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
  Operand(const std::vector<Reg>& regs) : kind(OperandKind::kRegs), words(map_each(regs, &Reg::value)) {}
  template <class Element>
    requires requires { Element::kList; }
  Operand(const std::vector<Element>& elements) : kind(Element::kList) {
    for (const Element& element : elements) words.insert(words.end(), {static_cast<Word>(element.tag), element.value});
  }
  friend bool operator==(const Operand&, const Operand&) = default;
};

// Calls fn(ElementInfo, value) on each element of the operand.
template <class Fn>
void for_each_element(const Operand& operand, Fn fn) {
  const OperandLayout& layout = operand_layout(operand.kind);
  const size_t step = static_cast<size_t>(layout.words);
  for (size_t i = 0; i < operand.words.size(); i += step) {
    size_t tag = layout.tags > 0 ? static_cast<size_t>(operand.words[i]) : 0;
    fn(layout.elements[tag], operand.words[i + step - 1]);
  }
}

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
// Returns nullopt when the words at `offset` are cut off, have a bad tag or are not an instruction. Indices may be bad.
std::optional<Decoded> decode(std::span<const Word> code, size_t offset);

}  // namespace relaxc::vm
