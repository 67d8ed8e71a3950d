// Dims of tensor programs that calls make constants: a program for any `n` that is called for n = 64 becomes one for
// 64, so that a schedule meets the extents that it meets where fusion composes the program with others.
#include <algorithm>
#include <map>

#include "passes/compose.h"
#include "support/lists.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

// A value for each dim that scalar_arguments() lists; absent where a call leaves it open.
using DimConstants = std::vector<std::optional<int64_t>>;

std::vector<VarRef> dims_of(const PrimFuncRef& program) {
  std::vector<VarRef> vars = scalar_arguments(program);
  std::erase_if(vars, [&](const VarRef& var) {
    return std::ranges::any_of(program->params, [&](const VarRef& param) { return same_node(param, var); });
  });
  return vars;
}

// Returns nullopt where the call makes no dim of a tensor program a constant.
std::optional<DimConstants> constants_of(const Expr& value, const IRModule& module) {
  std::optional<KernelCall> call = calls_kernel(op_name(value)) ? as_kernel_call(value, module) : std::nullopt;
  std::optional<PrimFuncRef> program = call ? called_program(call->callee, module) : std::nullopt;
  std::vector<VarRef> dims = program ? dims_of(*program) : std::vector<VarRef>();
  if (dims.empty()) return std::nullopt;
  KernelMatch match = match_kernel(*call, *program);
  if (!match.contradictions.empty()) return std::nullopt;
  bool has_any = false;
  DimConstants result = map_each(dims, [&](const VarRef& dim) {
    const Expr* bound = find_value(match.dims, dim.get());
    std::optional<int64_t> constant = bound ? as_int(*bound) : std::nullopt;
    if (constant && dtype_of(dim) != kInt64 && *constant > INT32_MAX) constant.reset();
    has_any = has_any || constant;
    return constant;
  });
  return has_any ? std::optional(result) : std::nullopt;
}

PrimFuncRef with_constants(const PrimFuncRef& program, const DimConstants& constants) {
  std::vector<VarRef> dims = dims_of(program);
  VarMap map;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (constants[i]) map.emplace(dims[i].get(), int_imm(*constants[i], dtype_of(dims[i])));
  }
  return with_fresh_variables(cast<PrimFunc>(substitute(static_cast<const Expr&>(program), map)));
}

}  // namespace

IRModule with_constant_dims(IRModule module) {
  std::map<std::string, std::map<DimConstants, std::string>> versions;  // by the program's name; each with its name
  std::map<std::string, int64_t> open;                                  // uses of programs beside calls of versions
  const IRModule before = module;
  for (const auto& [_, function] : before.functions) {
    if (!function.is<Function>()) continue;
    walk(function, [&](const Ref<Call>& call) {
      std::optional<DimConstants> constants = constants_of(call, before);
      if (!constants) return;
      const std::string& name = call->args[0].as<GlobalVar>()->name;
      versions[name].emplace(*constants, name);
      --open[name];
    });
  }
  if (versions.empty()) return module;
  for (const auto& [_, function] : before.functions) walk(function, [&](const GlobalVar& used) { ++open[used.name]; });
  for (auto& [name, of_program] : versions) {
    PrimFuncRef program = before.prim_func(name);
    // The only form in which a private program is used keeps its name.
    bool is_only = of_program.size() == 1 && open[name] == 0 && same_node(without_symbol(program), program);
    for (auto& [constants, version] : of_program) {
      if (!is_only) version = module.fresh_name(name);
      module.functions.insert_or_assign(version, with_constants(without_symbol(program), constants));
    }
  }
  for (auto& [_, function] : module.functions) {
    if (!function.is<Function>()) continue;
    function = rewrite(function, [&](const Ref<Call>& call) -> std::optional<Expr> {
      std::optional<DimConstants> constants = constants_of(call, before);
      if (!constants) return std::nullopt;
      Call copy = *call;
      const std::string& version = versions.at(copy.args[0].as<GlobalVar>()->name).at(*constants);
      copy.args[0] = global_var(version, module.prim_func(version).type());
      return make(std::move(copy), call.type(), call.span());
    });
  }
  return module;
}

}  // namespace relaxc
