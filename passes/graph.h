// What graph passes share: rebuilding a function binding by binding.
#pragma once
#include "ir/arith.h"
#include "ir/builder.h"
#include "passes/pass.h"

namespace relaxc {

// Rebuilds a graph function binding by binding, branches of If included; one that nothing changes stays the same node.
// `visit` sees each binding with its operands already replaced; it returns the leaf or value that stands for the
// variable from then on, and may emit more through the builder. Returning nullopt keeps the binding.
class GraphRewriter {
 public:
  explicit GraphRewriter(const OpTable& ops) : ops_(ops) {}
  virtual ~GraphRewriter() = default;
  FunctionRef run(const FunctionRef& function);

 protected:
  virtual std::optional<Expr> visit(const Binding& binding, Builder& builder) = 0;
  // Around each branch of an If: what was learned inside holds only there.
  virtual void enter_branch() {}
  virtual void leave_branch() {}
  const OpTable& ops_;

 private:
  Expr sequence(const Expr& seq);
  Expr branch(const Expr& seq);
  Substitution replaced_;
};

// Calls fn on each graph function and puts its result in the function's place.
IRModule map_functions(IRModule module, const std::function<FunctionRef(const FunctionRef&)>& fn);
// Every binding of a function, branches included, in order.
void for_each_binding(const FunctionRef& function, const std::function<void(const Binding&)>& fn);

// A call_tir of `program` on tensor arguments, the program added to the module under a name like `name`. The program
// may mention the graph's dims: it gets variables of its own, and scalar params for dims that its buffers do not give.
// One-element constants become immediates.
Expr make_call_tir(IRModule& module, std::string name, PrimFuncRef program, std::vector<Expr> tensors,
                   std::vector<Type> outputs, const Span& span);

// Whether the operator is a call in destination-passing form: call_tir or call_dps_packed.
bool calls_program(std::string_view op);
// The pieces of a call_tir (or call_dps_packed): callee, tensor arguments, scalar arguments, output types.
struct CallTir {
  Expr callee;
  std::vector<Expr> tensors;
  std::vector<Expr> scalars;
  std::vector<Type> outputs;
};
std::optional<CallTir> match_call_tir(const Expr& expr);
// Values, in the caller's terms, of the callee's symbolic variables: its scalar params, and dims of its buffer params
// that are no scalar params.
VarMap bind_scalars(const PrimFuncRef& callee, const CallTir& call);

}  // namespace relaxc
