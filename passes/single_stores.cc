// The bindings of a block (`a = vk * 2 - 1`) as parts of the store behind them: fusion, and the rules for schedules,
// know blocks of one store.
#include <algorithm>

#include "ir/intrinsics.h"
#include "passes/compose.h"
#include "tir/analysis/nests.h"
#include "tir/program.h"

namespace relaxc {

namespace {

// A value that is used often is written out often.
constexpr size_t kMostNodes = 256, kMostBindings = 64;

// Returns whether the value may be computed later, more than once, or not at all.
bool is_pure_scalar(const Expr& value) {
  return !any_node(value, [](const NodeRef& node) {
    const Call* call = node.as<Call>();
    if (!call) return false;
    const OpRef* op = call->callee.as<OpRef>();
    const Builtin* builtin = op ? find_builtin(op->name) : nullptr;
    return !op || (builtin && !builtin->pure);
  });
}

// Returns what comes behind the binding with the value in its place: written out, or, where that makes a store long or
// repeats loads, as a Let. Returns nullopt where neither can be.
std::optional<Stmt> with_value(const Bind& bind, const Stmt& rest) {
  const BufferStore* store = rest.as<BufferStore>();
  bool loads = holds<BufferLoad>(bind.value);
  if (!is_pure_scalar(bind.value) || (loads && !store)) return std::nullopt;
  size_t uses = 0, size = 0;
  auto count_in = [&](const NodeRef& node) {
    walk(node, [&](const Ref<Var>& var) { uses += same_node(var, bind.var); });
  };
  count_in(rest);
  walk_nodes(bind.value, [&](const NodeRef&) { return ++size <= kMostNodes; });
  if (uses <= 1 || (!loads && uses * size <= kMostNodes)) return substitute(rest, {{bind.var.get(), bind.value}});
  bool is_index = store && std::ranges::any_of(store->indices, [&](const Expr& e) { return uses_var(e, bind.var); });
  if (!store || is_index || store->predicate) return std::nullopt;
  return edited<BufferStore>(rest, [&](BufferStore& copy) { copy.value = let(bind.var, bind.value, copy.value); });
}

Stmt without_bindings(const Stmt& body) {
  return rewrite(body, [](const Ref<Seq>& list) -> std::optional<Stmt> {
    size_t bindings = 0;
    std::vector<Stmt> rest;  // in reverse
    for (size_t i = list->stmts.size(); i-- > 0;) {
      Stmt stmt = without_bindings(list->stmts[i]);
      const Bind* bind = stmt.as<Bind>();
      std::optional<Stmt> joined;
      if (bind && !rest.empty() && ++bindings <= kMostBindings)
        joined = with_value(*bind, rest.size() == 1 ? rest[0] : seq({rest.rbegin(), rest.rend()}));
      if (!joined) {
        rest.push_back(stmt);
        continue;
      }
      std::vector<Stmt> stmts = statements_of(*joined);
      rest.assign(stmts.rbegin(), stmts.rend());
    }
    return seq({rest.rbegin(), rest.rend()}, list.span());
  });
}

}  // namespace

PrimFuncRef with_single_stores(const PrimFuncRef& program) {
  if (!holds<Bind>(program->body)) return program;
  PrimFuncRef result = with_body(program, without_bindings(program->body));
  return find_nests(result) ? result : program;
}

}  // namespace relaxc
