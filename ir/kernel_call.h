// Decomposes a call of a kernel and matches it against the kernel's parameters. A kernel is a tensor program or a C
// function; it writes its results to memory that it is given. Its calls have two forms:
//
//   R.call_tir(f, (inputs...), types of the outputs, scalars) and its variants: the value is the outputs, which are
//   new tensors, except those that R.call_tir_inplace writes over an input.
//   f(inputs..., outputs..., R.shape([scalars])): the destinations are among the arguments and the call has no value.
//   The scalars are the values of scalar_arguments(f). passes/destination_passing.cc turns the first form into this.
//   Without the shape the scalar params are among the arguments, and the types of the tensors give the dims.
//
// The first is Relax's (Lai et al., "Relax: Composable Abstractions for End-to-End Dynamic Machine Learning", 2023),
// the second destination-passing style.
#pragma once
#include "ir/type_relation.h"

namespace relaxc {

struct KernelCall {
  Expr callee;                     // a GlobalVar or an ExternFunc, if the call is sound
  bool has_destinations = false;   // the second form
  std::vector<Expr> tensors = {};  // the inputs, and the outputs where the call has destinations
  std::vector<Expr> scalars = {};
  std::vector<Type> outputs = {};      // none where the call has destinations
  std::vector<int64_t> in_place = {};  // for each output the tensor that it is written over, or -1; empty: all are new

  const std::string& name() const;  // the callee's
};
// Returns whether the operator is one of the first form.
bool calls_kernel(std::string_view op);
// Returns nullopt when `value` does not call a kernel, or is a call of the first form that lacks an argument. When one
// tuple value holds all inputs, they become TupleGetItems.
std::optional<KernelCall> as_kernel_call(const Expr& value, const IRModule& module);
// Returns the tensor program that the callee names, if it is one.
std::optional<PrimFuncRef> called_program(const Expr& callee, const IRModule& module);

// Returns the same call on other tensors, as many as it had.
Expr with_tensors(const Expr& kernel_call, const std::vector<Expr>& tensors);
// Returns the call of the second form.
Expr call_with_destinations(const Expr& callee, std::vector<Expr> tensors, std::vector<Expr> scalars, const Span& span);

// A buffer parameter and the argument or output that the call passes for it. An output that is written over an input
// has that input's parameter.
struct KernelOperand {
  Buffer param;
  Type type;                   // the argument's, or that of the output that the call makes
  bool is_output = false;      // one of KernelCall::outputs, else of KernelCall::tensors
  size_t number = 0;           // its place there
  const char* role = "input";  // "input 2" is what messages call it
};
struct KernelMatch {
  // One per buffer parameter in order, then the outputs that are inputs; none where the numbers of tensors differ.
  std::vector<KernelOperand> operands;
  VarMap dims;                              // the program's dims and scalar params, in the caller's terms
  std::vector<std::string> contradictions;  // numbers, dtypes and ranks that cannot be right, in words
};
// A program with raw handles, which may be any tensors, is not matched.
KernelMatch match_kernel(const KernelCall& call, const PrimFuncRef& program);
// Returns the dims of the operand's buffer with the call's values in them, in the program's integer types; nullopt for
// a dim that the arguments do not determine.
std::vector<std::optional<Expr>> dims_in_call(const KernelMatch& match, const KernelOperand& operand);

// The values of one dim according to the program and to the call, in int64 and the caller's terms, where they are not
// proven equal. Dims that the program computes from unbound variables are left out.
struct KernelDim {
  const KernelOperand* operand;
  size_t dim;
  Expr wanted, given;
  Verdict verdict;
};
std::vector<KernelDim> unproven_dims(const KernelMatch& match);

}  // namespace relaxc
