#include "ir/module.h"

#include <fmt/format.h>

#include <ranges>
#include <unordered_set>

#include "ir/visit.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"

namespace relaxc {

Range whole_range(const Expr& extent) { return {int_imm(0, dtype_of(extent)), extent}; }
Stmt seq(std::vector<Stmt> stmts, const Span& span) {
  if (stmts.size() == 1) return stmts[0];
  std::vector<Stmt> flat;
  for (Stmt& stmt : stmts) {
    if (const Seq* inner = stmt.as<Seq>()) {
      flat.insert(flat.end(), inner->stmts.begin(), inner->stmts.end());
    } else {
      flat.push_back(std::move(stmt));
    }
  }
  if (flat.size() == 1) return flat[0];
  return make(Seq{std::move(flat)}, span);
}
Stmt store(Buffer buffer, Expr value, std::vector<Expr> indices, const Span& span) {
  RELAXC_CHECK(indices.size() == buffer_type(buffer).shape.size(), "{} indices for buffer '{}' of rank {}",
               indices.size(), buffer->name, buffer_type(buffer).shape.size());
  RELAXC_CHECK(dtype_of(value).element() == buffer_type(buffer).dtype.element(), "{} stored to '{}' of {}",
               to_string(dtype_of(value)), buffer->name, to_string(buffer_type(buffer).dtype));
  return make(BufferStore{std::move(buffer), std::move(value), std::move(indices), std::nullopt}, span);
}
Stmt evaluate(Expr value, const Span& span) { return make(Evaluate{std::move(value)}, span); }
Stmt no_op() { return make(Seq{}); }
Stmt loop(VarRef var, Expr extent, Stmt body, ForKind kind, const Span& span) {
  Expr min = int_imm(0, dtype_of(var));
  return make(For{std::move(var), std::move(min), std::move(extent), kind, {}, {}, std::move(body)}, span);
}

Type function_type(const std::vector<VarRef>& params, const Type& result, bool pure) {
  return make(FuncType{map_each(params, &VarRef::type), result, pure});
}
FunctionRef make_function(Function function, const Span& span) {
  Type type = function_type(function.params, function.result, function.pure);
  return make(std::move(function), type, span);
}
PrimFuncRef make_prim_func(PrimFunc function, const Span& span) {
  Type type = function_type(function.params, tuple_type({}), true);
  return make(std::move(function), type, span);
}

const Expr* IRModule::find(std::string_view name) const { return find_value(functions, std::string(name)); }

template <class T>
static Ref<T> function_of_kind(const IRModule& module, std::string_view name, const char* what,
                               const Span& asked_at = {}) {
  const Expr* found = module.find(name);
  if (found && found->template is<T>()) return cast<T>(*found);
  auto is_of_kind = [](const auto& entry) { return entry.second.template is<T>(); };
  std::string names =
      joined(module.functions | std::views::filter(is_of_kind), [](const auto& entry) { return entry.first; });
  fail(asked_at, "the module has no {} '{}'; it has: {}", what, name, names.empty() ? "none" : names);
}

FunctionRef IRModule::graph_function(std::string_view name) const {
  return function_of_kind<Function>(*this, name, "function");
}
PrimFuncRef IRModule::prim_func(std::string_view name, const Span& asked_at) const {
  return function_of_kind<PrimFunc>(*this, name, "tensor program", asked_at);
}

std::string IRModule::fresh_name(std::string name) const {
  if (!find(name)) return name;
  auto numbered = [&](int64_t i) { return fmt::format("{}_{}", name, i); };
  // The search doubles its steps and then bisects, so that thousands of calls for the same name stay cheap.
  int64_t taken = 0, free = 1;
  for (; find(numbered(free)); free *= 2) taken = free;
  while (free - taken > 1) {
    int64_t middle = taken + (free - taken) / 2;
    (find(numbered(middle)) ? taken : free) = middle;
  }
  return numbered(free);
}

std::vector<Buffer> buffer_params(const PrimFuncRef& function) {
  std::vector<Buffer> result;
  for (const VarRef& param : function->params) {
    if (param.type().is<BufferType>()) result.push_back(param);
  }
  return result;
}

std::vector<VarRef> scalar_arguments(const PrimFuncRef& function) {
  std::vector<VarRef> result;
  std::unordered_set<const NodeHeader*> seen;
  auto add = [&](const VarRef& var) {
    if (seen.insert(var.get()).second) result.push_back(var);
  };
  for (const VarRef& param : function->params) {
    if (param.type().is<PrimType>()) add(param);
  }
  for (const Buffer& buffer : buffer_params(function)) {
    visit_children(buffer.type(), [&](const NodeRef& dim, Slot) {
      if (dim.is<Var>()) add(cast<Var>(dim));
    });
  }
  return result;
}

}  // namespace relaxc
