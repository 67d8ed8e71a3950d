#include "support/diagnostic.h"
#include "tests/vm/programs.h"
#include "vm/operands.h"
#include "vm/serialization.h"
#include "vm/verifier.h"

#include "tests/catch.h"

using namespace relaxc;
using namespace relaxc::vm;
using namespace relaxc::vm::test;

namespace {

// Returns the weights section, which artifact.cc writes piece by piece.
std::vector<std::byte> serialize_weights(const Executable& executable) {
  WeightsLayout layout = layout_weights(executable);
  std::vector<std::byte> bytes(static_cast<size_t>(layout.bytes));
  for (size_t i = 0; i < executable.constants.size(); ++i) {
    const Tensor& constant = executable.constants[i];
    if (constant.bytes() == 0) continue;
    std::memcpy(bytes.data() + layout.offsets[i], constant.raw(), static_cast<size_t>(constant.bytes()));
  }
  return bytes;
}

// One operand of each kind.
Operand sample(OperandKind kind) {
  switch (kind) {
    case OperandKind::kScalar:
      return Scalar(Slot{1});
    case OperandKind::kRegs:
      return std::vector{Reg{0}, Reg{1}};
    case OperandKind::kScalars:
      return std::vector<Scalar>{Slot{0}, 5};
    case OperandKind::kPattern:
      return std::vector{MatchDim::bind({0}), MatchDim::skip(), MatchDim::check(7)};
    case OperandKind::kArguments:
      return std::vector<Argument>{Reg{0}, Slot{1}, 3, 2.5, StringIndex{0}};
    case OperandKind::kDType:
      return kFloat32;
    case OperandKind::kOperator:
      return SlotOp::kMin;
    default:
      return Operand(kind, {0});
  }
}

// An executable of one function "main" with this code, 4 registers (one input), 4 slots and one entry per table.
Executable with_code(const std::vector<Instruction>& instructions) {
  Executable executable;
  Function main;
  main.name = "main";
  main.inputs.push_back(tensor_info("x", {{-1, "n"}}));
  main.num_registers = 4;
  main.slot_names = {"n", "m", "", ""};
  main.places = {0, 0};
  for (const Instruction& instruction : instructions) encode(instruction, executable.code);
  main.code_end = static_cast<int64_t>(executable.code.size());
  executable.functions.push_back(main);
  executable.kernels.push_back({"relaxc_k_f", "f", KernelSource::kArtifact, 1, 1});
  executable.strings = {"text"};
  executable.builtins = {"vm.builtin.copy"};
  executable.constants.push_back(Tensor::of<float>({1}, kFloat32, {1}));
  return executable;
}

std::string first_message(const std::vector<Instruction>& instructions) {
  std::vector<std::string> messages = verify(with_code(instructions));
  return messages.empty() ? "sound" : messages[0];
}

Instruction make(Opcode op, std::vector<Operand> operands) { return make_instruction(op, std::move(operands)); }
const Instruction kReturn = make(Opcode::kRet, {Reg{0}});

bool rejects(const Instruction& instruction, const std::string& part) {
  std::string message = first_message({instruction, kReturn});
  INFO(message);
  bool found = message.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("every instruction survives encoding", "[vm]") {
  for (const InstructionInfo& row : kInstructions) {
    Instruction instruction{row.op, {}};
    for (int i = 0; i < row.num_operands; ++i) {
      Operand operand = sample(row.operands[i].kind);
      operand.kind = row.operands[i].kind;
      instruction.operands.push_back(operand);
    }
    std::vector<Word> code;
    encode(instruction, code);
    auto decoded = decode(code, 0);
    REQUIRE(decoded);
    CHECK(decoded->instruction == instruction);
    CHECK(decoded->next == code.size());
    for (size_t size = 0; size < code.size(); ++size) CHECK_FALSE(decode(std::span(code).first(size), 0));
  }
  CHECK_FALSE(decode(std::vector<Word>{-1}, 0));
  CHECK_FALSE(decode(std::vector<Word>{kNumInstructions}, 0));
  CHECK_THROWS_AS(make(Opcode::kRet, {Slot{0}}), InternalError);
  CHECK_THROWS_AS(make(Opcode::kRet, {}), InternalError);
}

TEST_CASE("operands stand where the encoder put them", "[vm]") {
  std::vector<Word> code;
  encode(make(Opcode::kCallKernel,
              {KernelIndex{3}, std::vector{Reg{4}, Reg{5}}, std::vector<Scalar>{Slot{6}, 7, 8}, StringIndex{9}}),
         code);
  Operands<Opcode::kCallKernel> call(code.data());
  CHECK(call.word<"kernel">() == 3);
  CHECK(call.list<"tensors">().size == 2);
  CHECK(call.list<"tensors">().value(1) == 5);
  CHECK(call.list<"scalars">().size == 3);
  CHECK(call.list<"scalars">().element(0)[0] == static_cast<Word>(ScalarTag::kSlot));
  CHECK(call.list<"scalars">().value(2) == 8);
  CHECK(call.word<"label">() == 9);
  CHECK(call.next() == code.data() + code.size());
  CHECK(fewest_words(Opcode::kCallKernel) == 5);
}

TEST_CASE("the version of the bytecode follows from the rows", "[vm]") {
  auto changed = [](auto change) {
    auto rows = kInstructions;
    change(rows);
    return hash_instructions(rows) != hash_instructions(kInstructions);
  };
  CHECK(changed([](auto& rows) { rows[1].name = "copy"; }));
  CHECK(changed([](auto& rows) { std::swap(rows[1], rows[2]); }));
  CHECK(changed([](auto& rows) { rows[1].operands[0].name = "to"; }));
  CHECK(changed([](auto& rows) { rows[1].operands[1].kind = OperandKind::kConstant; }));
  CHECK(changed([](auto& rows) { --rows.back().num_operands; }));

  // The program begins with a version that follows from these rows and from the fields of the executable.
  std::vector<std::byte> program = serialize_program(with_code({kReturn}));
  alignas(64) std::byte weights[64] = {};
  auto error = [&](std::vector<std::byte> bytes, size_t at) {
    bytes[at] ^= std::byte{1};
    try {
      deserialize(bytes, weights, nullptr);
    } catch (const CompileError& failure) {
      return std::string(failure.what());
    }
    return std::string("no error");
  };
  CHECK(error(program, 0).find("program section is damaged or of another version of relaxc") != std::string::npos);
  CHECK(error(program, 7).find("program section is damaged or of another version of relaxc") != std::string::npos);
}

TEST_CASE("the verifier rejects what leaves the frame or its tables", "[vm]") {
  CHECK(first_message({kReturn}) == "sound");
  CHECK(first_message({make(Opcode::kMove, {Reg{1}, Reg{9}}), kReturn}) ==
        "function 'main', word 0 (move): register 9 is out of range, there are 4");
  rejects(make(Opcode::kMove, {Reg{-1}, Reg{0}}), "register -1");
  rejects(make(Opcode::kSlotSet, {Slot{4}, 1}), "slot 4 is out of range");
  rejects(make(Opcode::kConstLoad, {Reg{1}, ConstantIndex{1}}), "constant 1 is out of range");
  rejects(make(Opcode::kCallBuiltin, {Reg{1}, BuiltinIndex{2}, std::vector<Argument>{}}), "builtin 2");
  rejects(make(Opcode::kCallBuiltin, {Reg{1}, BuiltinIndex{0}, std::vector<Argument>{StringIndex{5}}}), "string 5");
  rejects(make(Opcode::kCall, {Reg{1}, FunctionIndex{1}, std::vector<Reg>{}}), "function 1");
  rejects(make(Opcode::kCall, {Reg{1}, FunctionIndex{0}, std::vector<Reg>{}}), "0 arguments, expected 1");
  rejects(make(Opcode::kMakeClosure, {Reg{1}, FunctionIndex{1}, std::vector<Reg>{}}), "function 1");
  rejects(make(Opcode::kMakeClosure, {Reg{1}, FunctionIndex{0}, std::vector{Reg{0}, Reg{0}}}), "captures 2 values");
  rejects(make(Opcode::kCallKernel, {KernelIndex{1}, std::vector<Reg>{}, std::vector<Scalar>{}, -1}), "kernel 1");
  rejects(make(Opcode::kCallKernel, {KernelIndex{0}, std::vector{Reg{0}}, std::vector<Scalar>{}, -1}),
          "1 tensors and 0 scalars, expected 1 and 1");
  rejects(make(Opcode::kCallKernel, {KernelIndex{0}, std::vector{Reg{0}}, std::vector<Scalar>{1}, StringIndex{1}}),
          "label 1");
  rejects(make(Opcode::kFail, {StringIndex{1}}), "string 1");
  rejects(make(Opcode::kNewTensor, {Reg{1}, kFloat32, std::vector<Scalar>{}, 0}), "output 0");
  rejects(make(Opcode::kNewTensor, {Reg{1}, Operand(OperandKind::kDType, {99}), std::vector<Scalar>{}, -1}), "dtype");
  rejects(make(Opcode::kNewTensor, {Reg{1}, std::optional<DType>(), std::vector<Scalar>{}, -1}), "dtype");
  rejects(make(Opcode::kMatchShape, {Reg{0}, std::vector{MatchDim::bind({7})}, StringIndex{0}}), "slot 7");
  rejects(make(Opcode::kJump, {Label{1}}), "target 1 is not an instruction");
  rejects(make(Opcode::kJump, {Label{100}}), "target 100 is not an instruction");
  CHECK(first_message({make(Opcode::kMove, {Reg{1}, Reg{0}})}).find("does not end in ret") != std::string::npos);
  CHECK(first_message({}).find("does not end in ret") != std::string::npos);
  Executable damaged = with_code({kReturn});
  damaged.code[0] = 77;
  CHECK(verify(damaged).at(0) == "function 'main': word 0 is not an instruction");
  damaged = with_code({kReturn});
  damaged.functions[0].code_end = 9;
  CHECK_FALSE(verify(damaged).empty());
  damaged = with_code({kReturn});
  damaged.functions[0].num_registers = int64_t{1} << 40;
  CHECK_FALSE(verify(damaged).empty());
  damaged = with_code({kReturn});
  damaged.kernels[0].symbol = "system";
  CHECK_FALSE(verify(damaged).empty());
  damaged = with_code({kReturn});
  damaged.functions.push_back(damaged.functions[0]);
  CHECK_FALSE(verify(damaged).empty());
}

TEST_CASE("the verifier finds reads before writes", "[vm]") {
  rejects(make(Opcode::kMove, {Reg{2}, Reg{1}}), "register r1 is read before it is written");
  rejects(make(Opcode::kSlotSet, {Slot{1}, Slot{0}}), "slot s0 (n) is read before it is written");
  rejects(make(Opcode::kMatchShape, {Reg{0}, std::vector{MatchDim::check(Slot{1})}, StringIndex{0}}), "slot s1 (m)");
  rejects(make(Opcode::kCallBuiltin, {Reg{1}, BuiltinIndex{0}, std::vector<Argument>{Reg{1}}}), "register r1");
  rejects(make(Opcode::kDrop, {Reg{0}}), "register r0 is read");
  CHECK(first_message({make(Opcode::kMatchShape,
                            {Reg{0}, std::vector{MatchDim::bind({1}), MatchDim::check(Slot{1})}, StringIndex{0}}),
                       kReturn}) == "sound");
  // Word offsets: slot_set 4 words, branch_if 4, move 3. The branch skips the move that writes r1.
  std::vector<Instruction> skipping = {make(Opcode::kBranchIf, {1, Label{7}}), make(Opcode::kMove, {Reg{1}, Reg{0}}),
                                       make(Opcode::kRet, {Reg{1}})};
  CHECK(first_message(skipping).find("word 7 (ret): register r1") != std::string::npos);
  // Both ways write it.
  std::vector<Instruction> both = {make(Opcode::kBranchIf, {1, Label{9}}), make(Opcode::kMove, {Reg{1}, Reg{0}}),
                                   make(Opcode::kJump, {Label{12}}), make(Opcode::kMove, {Reg{1}, Reg{0}}),
                                   make(Opcode::kRet, {Reg{1}})};
  CHECK(first_message(both) == "sound");
  // A loop that drops what its head reads.
  std::vector<Instruction> loop = {make(Opcode::kMove, {Reg{1}, Reg{0}}), make(Opcode::kMove, {Reg{2}, Reg{1}}),
                                   make(Opcode::kDrop, {Reg{1}}), make(Opcode::kBranchIf, {1, Label{3}}), kReturn};
  CHECK(first_message(loop).find("the jump back to 3 leaves a register unwritten") != std::string::npos);
  std::vector<Instruction> hidden = {make(Opcode::kJump, {Label{4}}), make(Opcode::kRet, {Reg{1}}),
                                     make(Opcode::kJump, {Label{2}})};
  CHECK(first_message(hidden).find("reached by this jump only") != std::string::npos);
}

TEST_CASE("offsets of strings that do not fit the weights are refused", "[vm]") {
  Executable executable = add_program();
  executable.constants = {Tensor::strings({3}, {"one", "", "three"}), Tensor::strings({0}, std::vector<std::string>())};
  std::vector<std::byte> program = serialize_program(executable), weights = serialize_weights(executable);
  auto aligned = std::make_shared<Tensor>(Tensor::empty({static_cast<int64_t>(weights.size())}, DType::uint(8)));
  std::copy(weights.begin(), weights.end(), static_cast<std::byte*>(aligned->raw()));
  auto read = [&] {
    return deserialize(program, {static_cast<std::byte*>(aligned->raw()), weights.size()}, aligned).constants;
  };
  CHECK(read()[0].string(2) == "three");
  CHECK(read()[1].size() == 0);
  auto* offsets = static_cast<int64_t*>(aligned->raw());
  const std::vector<int64_t> sound(offsets, offsets + 4);
  for (size_t i = 0; i < sound.size(); ++i) {
    for (int64_t wrong : {int64_t{-1}, int64_t{1} << 62, INT64_MIN, INT64_MAX, std::ssize(weights) + 1}) {
      offsets[i] = wrong;
      INFO("offset " << i << " is " << wrong);
      std::string message;
      try {
        read();
      } catch (const CompileError& error) {
        message = error.what();
      }
      CHECK(message.find("the strings of a constant at offset 0 do not fit the") != std::string::npos);
    }
    offsets[i] = sound[i];
  }
  CHECK(read()[0].string(0) == "one");
}

TEST_CASE("an executable survives serialization, its damage does not", "[vm]") {
  Executable executable = add_program();
  std::vector<std::byte> program = serialize_program(executable), weights = serialize_weights(executable);
  auto aligned = std::make_shared<Tensor>(Tensor::empty({static_cast<int64_t>(weights.size())}, DType::uint(8)));
  std::copy(weights.begin(), weights.end(), static_cast<std::byte*>(aligned->raw()));
  std::span<const std::byte> in_place(static_cast<std::byte*>(aligned->raw()), weights.size());
  Executable copy = deserialize(program, in_place, aligned);
  CHECK(copy.code == executable.code);
  CHECK(copy.functions == executable.functions);
  CHECK(copy.kernels == executable.kernels);
  CHECK(copy.strings == executable.strings);
  CHECK(copy.metadata == executable.metadata);
  REQUIRE(copy.constants.size() == 2);
  CHECK(same_contents(copy.constants[0], executable.constants[0]));
  CHECK(same_contents(copy.constants[1], executable.constants[1]));
  CHECK(copy.constants[0].raw() == aligned->raw());

  for (size_t size = 0; size < program.size(); ++size) {
    CHECK_THROWS_AS(deserialize(std::span(program).first(size), in_place, aligned), std::exception);
  }
  CHECK_THROWS_AS(deserialize(program, in_place.first(in_place.size() - 1), aligned), std::exception);
  // Without the hash in front: any flip gives an error, or an executable that the verifier judges and that, if it is
  // sound, runs without harm.
  int survivors = 0;
  for (size_t bit = 0; bit < program.size() * 8; ++bit) {
    std::vector<std::byte> flipped = program;
    flipped[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    try {
      Executable damaged = deserialize(flipped, in_place, aligned);
      if (!verify(damaged).empty()) continue;
      ++survivors;
      relaxc_kernel nothing = [](const relaxc_kernel_args*) -> int32_t { return 0; };
      Session session(Program::from(damaged, [&](const std::string&) { return nothing; }),
                      {.threads = 1, .memory_limit = 1 << 20, .step_limit = 100});
      Tensor x = Tensor::empty({2, 4}, kFloat32);
      session.run({x, x});
    } catch (const CompileError&) {
    } catch (const RuntimeError&) {
    }
  }
  CHECK(survivors > 0);
}
