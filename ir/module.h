// Functions and the module that holds them: graph functions, tensor programs and extern functions side by side.
#pragma once
#include "ir/stmt.h"

namespace relaxc {

// A graph function (R.function). Symbolic dims are bound where they occur bare in a param's type; each later occurrence
// is a check at run time. The body is a SeqExpr.
struct Function {
  std::vector<VarRef> params;
  Expr body;
  Type result;  // declared result type
  bool pure = true;
  Attrs attrs;  // global_symbol (absent: private), ...
  RELAXC_FIELDS(Function, (binds_deep)params, body, result, pure, attrs);
};

// A tensor program (T.prim_func): params are buffers (inputs, then outputs) and scalars. Dims that occur bare in a
// buffer's shape, strides or offset are bound by the argument. `result` is what tir.ret gives, to callers in C.
struct PrimFunc {
  std::vector<VarRef> params;
  Stmt body;
  Attrs attrs;  // global_symbol, tir.noalias, op_pattern, ...
  std::optional<DType> result = {};
  RELAXC_FIELDS(PrimFunc, (binds_deep)params, body, attrs, result);
};

using FunctionRef = Ref<Function>;
using PrimFuncRef = Ref<PrimFunc>;

// Returns the type of a function with these params.
Type function_type(const std::vector<VarRef>& params, const Type& result, bool pure);
FunctionRef make_function(Function function, const Span& span = {});
PrimFuncRef make_prim_func(PrimFunc function, const Span& span = {});

// A global that a module's functions may refer to: a device, a mesh of devices, or (for tests of passes) nothing.
struct DummyInfo {
  friend bool operator==(const DummyInfo&, const DummyInfo&) = default;
};
// TensorType::vdevice names it "llvm:0:global": the target's kind, its number among those of that kind, the scope.
struct VDevice {
  AttrValue target;  // "llvm -mcpu=znver4", or a dictionary with "kind"
  int64_t id = 0;
  std::string memory_scope = "global";
  friend bool operator==(const VDevice&, const VDevice&) = default;
};
using GlobalInfo = std::variant<DummyInfo, VDevice, DeviceMesh>;

// Passes map modules to modules; a module is a value, copies are cheap (the functions are shared).
struct IRModule {
  std::map<std::string, Expr> functions;  // Function, PrimFunc or ExternFunc
  Attrs attrs;
  std::map<std::string, std::vector<GlobalInfo>> global_infos;  // "vdevice", "mesh", ...

  const Expr* find(std::string_view name) const;
  // Returns the function under `name`. Throws a CompileError that lists the functions when there is none.
  FunctionRef graph_function(std::string_view name) const;
  PrimFuncRef prim_func(std::string_view name, const Span& asked_at = {}) const;
  // Returns `name`, or `name` with a free number, the lowest if the used ones have no gaps: "fused_add", "fused_add_1".
  std::string fresh_name(std::string name) const;
};

// Returns the variables whose values a kernel gets in relaxc_kernel_args::scalars, in order: the scalar params as they
// stand, then the dims bound by buffer params in order of first occurrence.
std::vector<VarRef> scalar_arguments(const PrimFuncRef& function);
// Returns the buffer params, in order.
std::vector<Buffer> buffer_params(const PrimFuncRef& function);

}  // namespace relaxc
