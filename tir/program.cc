#include "tir/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/attr_names.h"
#include "ir/text/printer.h"
#include "support/joined.h"

namespace relaxc {

namespace {

class LetSeparator final : public Rewriter {
 public:
  Expr expr(const Expr& node) override {
    const Let* let = node.as<Let>();
    if (!let || defined_.insert(let->var.get()).second) return Rewriter::expr(node);
    Expr value = (*this)(let->value);
    VarRef fresh = make_var(let->var->name, let->var.type(), let->var.span());
    auto [entry, is_new] = renamed_.try_emplace(let->var.get(), fresh);
    VarRef before = std::exchange(entry->second, fresh);
    Expr body = (*this)(let->body);
    renamed_.insert_or_assign(let->var.get(), before);
    return relaxc::let(fresh, value, body, node.span());
  }

 private:
  std::unordered_set<const NodeHeader*> defined_;
};

}  // namespace

PrimFuncRef with_distinct_lets(const PrimFuncRef& function) {
  return with_body(function, LetSeparator().stmt(function->body));
}

PrimFuncRef with_body(const PrimFuncRef& function, const Stmt& body) {
  if (same_node(body, function->body)) return function;
  PrimFunc copy = *function;
  copy.body = body;
  return make_prim_func(std::move(copy), function.span());
}

std::vector<VarRef> symbolic_dims(const PrimFuncRef& function) {
  const std::vector<VarRef>& params = function->params;
  auto listed = std::clamp<int64_t>(function->attrs.get_int(attr_names::kNumDims, 0), 0, std::ssize(params));
  std::vector<VarRef> result(params.end() - listed, params.end());
  std::erase_if(result, [](const VarRef& param) { return !param.type().is<PrimType>(); });
  if (!result.empty()) return result;
  result = scalar_arguments(function);
  auto is_param = [&](const VarRef& var) {
    return std::ranges::any_of(params, [&](const VarRef& param) { return same_node(param, var); });
  };
  std::erase_if(result, is_param);
  return result;
}

Analyzer facts_of_params(const PrimFuncRef& function) {
  Analyzer facts;
  for (const VarRef& param : function->params) facts.assume_dims(param.type());
  for (const VarRef& dim : symbolic_dims(function)) facts.bind(dim, Interval{.min = 0});
  return facts;
}

std::string size_text(const Expr& size) {
  auto number = as_int(size);
  return number ? std::to_string(*number) : print_expr(size);
}

std::string buffer_text(const BufferType& type) {
  std::string scope = type.scope == "global" ? "" : " " + type.scope;
  return fmt::format("{}[{}]{}", to_string(type.dtype), joined(type.shape, size_text), scope);
}

}  // namespace relaxc
