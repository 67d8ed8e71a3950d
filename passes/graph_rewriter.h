// <relaxc/graph_rewriter.h>: the rewriter of graph functions, from which most graph passes derive, and calls of new
// tensor programs.
#pragma once
#include <set>

#include "ir/builder.h"
#include "ir/kernel_call.h"
#include "ir/sequence.h"
#include "passes/pass.h"

namespace relaxc {

// Rebuilds a graph function binding by binding, branches of If and local functions included; one that nothing changes
// stays the same node. `visit` sees each binding with its operands already replaced; it returns the leaf or value that
// stands for the variable from then on, and may emit more through the builder. Returning nullopt keeps the binding.
// Passes that go from the last binding to the first use rewrite_blocks() (ir/sequence.h).
class GraphRewriter {
 public:
  explicit GraphRewriter(const OpTable& ops) : ops_(ops) {}
  virtual ~GraphRewriter() = default;
  FunctionRef run(const FunctionRef& function);

 protected:
  virtual std::optional<Expr> visit(const Binding& binding, Builder& builder) = 0;
  // Called around each branch of an If and the body of each local function. Facts learned inside hold only there.
  virtual void enter_scope() {}
  virtual void leave_scope() {}
  // Returns whether dataflow blocks stay; else their bindings become plain ones.
  virtual bool keeps_dataflow() const { return true; }
  // Replaces a variable in what follows, types included.
  void replace(const VarRef& var, const Expr& by) { replaced_.add(var, by); }
  const OpTable& ops_;
  bool in_dataflow_ = false;  // whether the binding that is visited stands in a dataflow block

 private:
  Expr sequence(const Expr& seq);
  Expr scoped(const Expr& seq);
  Expr value(const Expr& value);
  Expr local_function(const FunctionRef& function);
  bool binding(const Binding& original, Builder& builder);
  Substitution replaced_;
};

// Emit the operators of these names.
Expr reshape(const Expr& x, std::vector<Expr> dims, Builder& builder, std::string hint = {});
Expr permute_dims(const Expr& x, std::vector<int64_t> axes, Builder& builder);
// Returns the tensor with so many zeros at the end of an axis; none: itself.
Expr pad_axis(const Expr& x, size_t axis, int64_t amount, Builder& builder);

// Returns the call of an operator with the type that it has on its operands, where that says more than `declared`.
std::optional<Expr> with_better_type(const Expr& call, const Type& declared, const OpTable& ops);

// Returns the variables that the function uses elsewhere than in the values of the bindings of which `is_inside` holds.
VarSet used_outside(const FunctionRef& function, const std::function<bool(const Binding&)>& is_inside);

// Replaces each graph function by fn's result. fn may add functions to the module that it gets.
IRModule map_functions(IRModule module, const std::function<FunctionRef(const FunctionRef&)>& fn);
IRModule map_functions(IRModule module, const std::function<FunctionRef(const FunctionRef&, IRModule& module)>& fn);

// Removes the functions that none of these reach.
void keep_reached(IRModule& module, std::vector<std::string> roots);

// Replaces reshape and permute_dims of constants, and chains of them (reshape of permute_dims of reshape ...), by
// constants: one copy in C++ for a whole chain, without intermediate results, code, or a weight that has to be in
// memory as a whole. Equal chains on one constant give one constant. (passes/fold_layout.cc)
FunctionRef fold_layout(const FunctionRef& function, const OpTable& ops);

// Writes the operators that have OpRow::decompose with others, except those in `kept`. (passes/decompose.cc)
IRModule decompose_operators(const IRModule& module, const OpTable& ops, const std::set<std::string>& kept);

struct NamedDims {
  PrimFuncRef program;
  VarMap values;  // of the new variables, in the terms of the old ones
};
// Replaces expressions of dims by new variables where the program needs nothing but their value. A convolution behind
// four poolings has buffers of height `(((H + 1) // 2 - 1) // 2 ...` and uses H nowhere else: to schedule and lower it
// with a new variable as its height costs the same at any depth of the network, and gives the same kernel.
// Nothing that the simplifier could prove is lost: an expression with an upper bound, or with a common factor, stays.
NamedDims name_dims(const PrimFuncRef& program);  // in name_dims.cc

// Adds the program to the module under a name like `name`, and returns the variable that names it.
Expr add_program(IRModule& module, const std::string& name, const PrimFuncRef& program);
// Adds the program to the module under a name like `name`, and returns a call_tir of it. The program may mention the
// graph's dims: it gets its own variables, and scalar params for dims that its buffers do not give.
// One-element constants become immediates.
Expr make_call_tir(IRModule& module, std::string name, PrimFuncRef program, std::vector<Expr> tensors,
                   std::vector<Type> outputs, const Span& span);

// Returns the kernel call with leaves for tensors; a tuple value in their place is a CompileError (see spread_tuples).
std::optional<KernelCall> as_spread_kernel_call(const Expr& value, const IRModule& module);

}  // namespace relaxc
