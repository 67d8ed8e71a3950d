// Builds an Executable: tables without duplicates, functions with registers, named slots and labels.
//
//   ExecutableBuilder builder;
//   FunctionBuilder main(builder, "main");
//   Reg x = main.add_input({"x", ValueKind::kTensor, kFloat32, {{{-1, "n"}}}});
//   Slot n = main.new_slot("n");
//   Reg y = main.new_register();
//   main.emit(Opcode::kMatchShape, {x, std::vector{MatchDim::bind(n)}, builder.string("input 'x'")});
//   main.emit(Opcode::kNewTensor, {y, kFloat32, std::vector<Scalar>{n}, 0});
//   main.emit(Opcode::kCallKernel, {kernel, std::vector{x, y}, std::vector<Scalar>{n}, builder.string("Relu_1")});
//   main.emit(Opcode::kRet, {y});
//   main.finish();
//   Executable executable = builder.finish();
#pragma once
#include "vm/bytecode.h"

namespace relaxc::vm {

class ExecutableBuilder {
 public:
  // Equal arguments give equal indices, except for constants: each call adds one.
  StringIndex string(std::string text);
  BuiltinIndex builtin(std::string name);
  // Equal (source, symbol) pairs are one kernel; the other members must agree.
  KernelIndex kernel(KernelInfo kernel);
  ConstantIndex constant(Tensor tensor);
  // Returns the index of a function that is defined before or later.
  FunctionIndex function(const std::string& name);
  void set_metadata(const std::string& key, std::string value);

  // Checks that every function was defined and that the result passes the verifier.
  Executable finish();

 private:
  friend class FunctionBuilder;
  Executable executable_;
  std::map<std::string, StringIndex> strings_;
  std::map<std::string, BuiltinIndex> builtins_;
  // A function of the host may be called with several numbers of arguments, each of which is a kernel.
  std::map<std::tuple<KernelSource, std::string, int64_t, int64_t>, KernelIndex> kernels_;
  std::map<std::string, FunctionIndex> functions_;
};

class FunctionBuilder {
 public:
  FunctionBuilder(ExecutableBuilder& parent, const std::string& name);

  // Must be called before the first new_register.
  Reg add_input(ValueInfo info);
  void add_output(ValueInfo info);
  void make_private() { function_.is_public = false; }
  Reg new_register();
  Slot new_slot(std::string name = {});
  Label new_label();
  // Places the label at the next instruction.
  void bind(Label label);
  void emit(Opcode op, std::vector<Operand> operands);
  // Errors of the instructions from here on begin with this text; without a place they have no prefix.
  void set_place(std::optional<StringIndex> place);
  // Resolves the labels and hands the code to the parent. Must be called once.
  void finish();

 private:
  ExecutableBuilder& parent_;
  FunctionIndex index_;
  Function function_;
  std::vector<Instruction> instructions_;
  std::vector<std::pair<size_t, Word>> places_;  // the first instruction's position, the string or -1
  std::vector<size_t> labels_;                   // the instruction's position; SIZE_MAX until bound
};

}  // namespace relaxc::vm
