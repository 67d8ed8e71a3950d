// Tensor programs made of several: what fuse and compose share.
#pragma once
#include "passes/graph_rewriter.h"
#include "passes/kernel_rules.h"

namespace relaxc {

// Composes calls of tensor programs into one program, their blocks one after the other.
class ProgramComposer {
 public:
  using Edit = std::function<Stmt(const Stmt&)>;
  // Adds a call that computes these tensors of the graph. It has matching operands (match_kernel), and each output's
  // shape and dtype are known. `edit` changes the body.
  void add(const KernelCall& call, const PrimFuncRef& called, const std::vector<Expr>& outputs,
           const Edit& edit = nullptr);
  // Adds a program of one output, whose buffers have the dims of these tensors, in the graph's variables.
  void add(const PrimFuncRef& program, const std::vector<Expr>& inputs, const Expr& output, const Edit& edit = nullptr);
  // Returns whether a call that was added computes the tensor.
  bool computes(const Expr& tensor) const;
  // Returns the program with these outputs, which calls that were added compute, each once in the list.
  PrimFuncRef finish(const std::vector<Expr>& outputs, const Span& span, Attrs attrs = {});
  // The tensors that the program reads, in the order of its params.
  const std::vector<Expr>& inputs() const { return inputs_; }

 private:
  Buffer buffer_of(const Expr& tensor, const std::string& hint);
  Buffer buffer_for(const Expr& output, const std::string& name);
  void add_stage(const PrimFuncRef& program, const VarMap& values, const Edit& edit);

  std::vector<VarRef> params_;
  std::vector<Expr> inputs_;
  std::vector<Buffer> computed_;
  std::vector<Stmt> stages_;
  std::unordered_map<const NodeHeader*, Buffer> buffers_;  // by the graph's variable or constant
};

// Returns whether the graph function is to be one tensor program, if a rule names it (attribute Primitive). Passes that
// choose layouts leave it as it is.
bool is_primitive(const Function& function);
// Replaces each graph function by what a new rewriter of the type makes of it; those that are to be one tensor program
// stay.
template <class T>
IRModule rewrite_by(IRModule module, const PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& function) {
    return is_primitive(*function) ? function : T(context.ops).run(function);
  });
}

// Maps the graph functions but those that compose makes one tensor program of: nobody else takes parts of these.
IRModule map_uncomposed(IRModule module, const PassContext& context,
                        const std::function<FunctionRef(const FunctionRef&, IRModule& module)>& fn);

// Returns the program with the bindings in its blocks as parts of the stores behind them, where that makes it a list of
// plain nests (find_nests). (passes/single_stores.cc)
PrimFuncRef with_single_stores(const PrimFuncRef& program);

// Returns the operator, or program, that the rule is for; of S.use the operator of the rule that it names, unless it
// says another. Empty for one program, and for decisions about the graph.
std::string operator_of(const ScheduleRule& rule, const PassContext& context);

// Returns the name of the program, or of the user's kernel of which it is a copy, if a rule has it; else the operator
// that the kernel implements, if a rule is for that. A rule for an operator may have the name of the operator's
// program. (passes/fuse.cc)
std::optional<std::string> name_in_rules(const std::string& name, const PrimFuncRef& program,
                                         const PassContext& context);

// Returns why fusion leaves the program alone; nullopt where it takes part. (passes/fuse.cc)
std::optional<std::string> why_not_fused(const PrimFuncRef& program);

// Returns whether the program, which takes part in fusion, is of several blocks without a reduction that schedules
// cannot make one block of. (passes/fuse.cc)
bool keeps_blocks_together(const PrimFuncRef& program);

// Classifies what the program computes by its blocks. (passes/fuse.cc)
OpPattern pattern_of(const PrimFuncRef& program);

// A call_tir of one result that may become part of another program.
struct KernelNode {
  KernelCall call;
  PrimFuncRef program;
  OpPattern pattern;
  std::vector<Ref<Block>> blocks;  // empty where it is not a list of plain nests
};
// Returns nullopt for other bindings, and for programs that a rule names. (passes/compose.cc)
std::optional<KernelNode> kernel_node_of(const Binding& binding, const IRModule& module);

// Returns whether the shapes of two tensors are proven to be equal.
inline bool same_shape(const Expr& a, const Expr& b) { return equal_shapes(a.type(), b.type()) == Verdict::kProven; }

// Returns the program that copies a tensor.
PrimFuncRef copy_program(const Type& type);

// Gives the tensor programs that are called on tensors with constant dims these constants for their own dims: calls
// with the same ones share a program, and the program itself stays for other calls. (passes/constant_dims.cc)
IRModule with_constant_dims(IRModule module);

// Returns the rule of the user's kernel (CompileSettings::kernels) of which the module's program is a copy, for some
// attributes; null for other programs.
const KernelRule* kernel_of(const std::string& program, const PassContext& context);

}  // namespace relaxc
