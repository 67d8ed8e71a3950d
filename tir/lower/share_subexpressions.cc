// Equal expressions of a statement become one node. The code generator computes a node once for a statement, loads
// included, so that LLVM gets a fraction of the instructions of an unrolled tile or a fused body; finding them again is
// what its passes over the kernel would spend their time on. What is the same across iterations stays LLVM's business.
#include "ir/intrinsics.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

class Interner final : public Rewriter {
 public:
  // Dims of types are no part of the statement.
  VarRef var(const VarRef& v) override { return v; }
  Type type(const Type& t) override { return t; }
  Expr expr(const Expr& e) override {
    Expr result = Rewriter::expr(e);
    if (result.is<Var>() || result.is<IntImm>() || result.is<FloatImm>() || result.is<StringImm>()) return result;
    uint64_t hash = structural_hash(result);
    auto [first, last] = known_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if (structural_equal(it->second, result)) return it->second;
    }
    known_.emplace(hash, result);
    return result;
  }

 private:
  std::unordered_multimap<uint64_t, Expr> known_;  // of the statement
};

bool has_effects(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Ref<Call>& call) {
    const Builtin* builtin = find_builtin(op_name(call));
    found = found || (builtin && !builtin->pure);
  });
  return found;
}

}  // namespace

PrimFuncRef share_subexpressions(const PrimFuncRef& function) {
  PrimFunc copy = *function;
  copy.body = rewrite(function->body, [](const Ref<BufferStore>& store) -> std::optional<Stmt> {
    return has_effects(store) ? std::nullopt : std::optional(Interner().stmt(store));
  });
  if (same_node(copy.body, function->body)) return function;
  return make_prim_func(std::move(copy), function.span());
}

}  // namespace relaxc
