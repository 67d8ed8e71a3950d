// Algorithms that derive from fields(): children, rebuild, walk, rewrite, substitution, free variables, equality, hash
// and the fallback printer. They are written with match() where every kind matters, with walk() or rewrite() where few
// do.
#pragma once
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "ir/module.h"

namespace relaxc {

template <class... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};

// match(expr, [](const IntImm&) {...}, [](const Var&) {...}, ...): exhaustive, a missing kind does not compile.
// A lambda taking `const auto&` stands for the rest.
#define RELAXC_KIND(name) \
  case NodeKind::k##name: \
    return overload(*node.template as<name>());
#define RELAXC_MATCH(Family, KINDS)                                                       \
  template <class... Fs>                                                                  \
  decltype(auto) match(const Family& node, Fs&&... fs) {                                  \
    Overload overload{std::forward<Fs>(fs)...};                                           \
    switch (node.kind()) { KINDS(RELAXC_KIND) default : break; }                          \
    RELAXC_CHECK(false, "expected {}, got {}", Family::wanted(), kind_name(node.kind())); \
  }
RELAXC_MATCH(Expr, RELAXC_EXPR_KINDS)
RELAXC_MATCH(Stmt, RELAXC_STMT_KINDS)
RELAXC_MATCH(Type, RELAXC_TYPE_KINDS)
RELAXC_MATCH(NodeRef, RELAXC_NODE_KINDS)
#undef RELAXC_MATCH
#undef RELAXC_KIND

// Calls fn on every direct child (an expression's type is not among them; a Var's type is where the Var is bound).
struct Slot {
  Role role;
  bool exact;  // the member is a Ref<T>: a replacement must be of the same kind
};
using ChildFn = std::function<void(const NodeRef& child, Slot slot)>;
void visit_children(const NodeRef& node, const ChildFn& fn);
// Returns the node with each direct child replaced by fn(child), which must return the same family (and for typed
// handles the same kind in exact slots). Returns the same node when nothing changed; an expression keeps its type.
using MapFn = std::function<NodeRef(const NodeRef& child, Slot slot)>;
NodeRef map_children(const NodeRef& node, const MapFn& fn);
// Returns the same expression under another type.
Expr with_type(const Expr& expr, const Type& type);

// Visits a node and all below it in pre-order, types of bound variables included. fn returns false to skip children.
void walk_nodes(const NodeRef& root, const std::function<bool(const NodeRef&)>& fn);
// Calls fn(child, slot, parent) on each child of the node and of those that walk_nodes() visits below it.
template <class F>
void walk_children(const NodeRef& root, F&& fn) {
  walk_nodes(root, [&](const NodeRef& node) {
    visit_children(node, [&](const NodeRef& child, Slot slot) { fn(child, slot, node); });
    return true;
  });
}
// Returns whether such a node occurs.
bool any_node(const NodeRef& root, const std::function<bool(const NodeRef&)>& is_wanted);
// Returns whether a node of one of these kinds occurs: holds<BufferLoad>(e).
template <class... Ts>
bool holds(const NodeRef& root) {
  return any_node(root, [](const NodeRef& node) { return (node.is<Ts>() || ...); });
}

// walk(stmt, [&](const BufferLoad& load) {...}, [&](const Call& call) {...}): pre-order; a lambda's parameter picks the
// kind: `const T&` or `const Ref<T>&`. A lambda returning bool decides whether to go below.
template <class F>
struct LambdaParameter : LambdaParameter<decltype(&F::operator())> {};
template <class C, class R, class A>
struct LambdaParameter<R (C::*)(A) const> {
  using type = std::remove_cvref_t<A>;
};
template <class C, class R, class A>
struct LambdaParameter<R (C::*)(A)> : LambdaParameter<R (C::*)(A) const> {};

template <class... Fs>
void walk(const NodeRef& root, Fs&&... fs) {
  walk_nodes(root, [&](const NodeRef& node) {
    bool descend = true;
    auto try_one = [&](auto& f) {
      using Parameter = typename LambdaParameter<std::remove_cvref_t<decltype(f)>>::type;
      auto invoke = [&](const auto& argument) {
        if constexpr (std::is_same_v<decltype(f(argument)), bool>) {
          descend = f(argument) && descend;
        } else {
          f(argument);
        }
      };
      if constexpr (requires { typename Parameter::Target; }) {
        if (auto ref = try_cast<typename Parameter::Target>(node)) invoke(*ref);
      } else {
        if (const Parameter* payload = node.template as<Parameter>()) invoke(*payload);
      }
    };
    (try_one(fs), ...);
    return descend;
  });
}

// Bottom-up rebuild. The base class maps children and keeps variables consistent: a variable whose type changed
// (because a dim in it did) becomes one new variable everywhere. Override what you need; call the base to descend.
class Rewriter {
 public:
  virtual ~Rewriter() = default;
  virtual Expr expr(const Expr& node) { return cast_handle<Expr>(children(node)); }
  virtual Stmt stmt(const Stmt& node) { return cast_handle<Stmt>(children(node)); }
  virtual Type type(const Type& node) { return cast_handle<Type>(children(node)); }
  // Rewrites a variable at its definition or a use; the base class memoizes. Overriders of expr() need not handle Var
  // unless they replace variables by other expressions.
  virtual VarRef var(const VarRef& node);
  Expr operator()(const Expr& node) { return expr(node); }
  Stmt operator()(const Stmt& node) { return stmt(node); }
  Type operator()(const Type& node) { return type(node); }

 protected:
  NodeRef children(const NodeRef& node);
  std::unordered_map<const NodeHeader*, VarRef> renamed_;

 private:
  std::vector<VarRef> kept_;  // keeps the keys of renamed_ alive
};

// rewrite(node, lambdas): bottom-up; each lambda takes `const Ref<T>&` (children already rewritten) and returns
// std::optional<Expr> (or Stmt), nullopt keeping the node.
template <class Rules>
class LambdaRewriter final : public Rewriter {
 public:
  explicit LambdaRewriter(Rules rules) : rules_(std::move(rules)) {}
  Expr expr(const Expr& node) override { return apply(Rewriter::expr(node)); }
  Stmt stmt(const Stmt& node) override { return apply(Rewriter::stmt(node)); }

 private:
  template <class Family>
  Family apply(Family node) {
    rules_([&](const auto&... rules) { (try_one(rules, node), ...); });
    return node;
  }
  template <class F, class Family>
  void try_one(const F& f, Family& node) {
    using Target = typename LambdaParameter<F>::type::Target;
    if constexpr (std::is_same_v<FamilyOf<Target>, Family>) {
      if (auto ref = try_cast<Target>(node)) {
        if (std::optional<Family> replaced = f(*ref)) node = *replaced;
      }
    }
  }
  Rules rules_;
};
template <class Family, class... Fs>
Family rewrite(const Family& node, Fs&&... fs) {
  LambdaRewriter rewriter(list(std::forward<Fs>(fs)...));
  return cast_handle<Family>(static_cast<const NodeRef&>(rewriter(node)));
}

// Replaces variables by expressions while walking a sequence: the map may grow between calls, and a variable whose type
// changes becomes the same new variable in all of them.
using VarMap = std::unordered_map<const NodeHeader*, Expr>;
using VarSet = std::unordered_set<const NodeHeader*>;
class Substitution : public Rewriter {
 public:
  explicit Substitution(VarMap map = {}) : map_(std::move(map)) {}
  void add(const VarRef& var, const Expr& value);
  Expr expr(const Expr& node) override;
  VarRef var(const VarRef& node) override;

 private:
  VarMap map_;
  std::vector<VarRef> keys_;  // keeps them alive
};

// Replaces variables by expressions, types included. Definitions whose types change get new variables.
Expr substitute(const Expr& node, const VarMap& map);
Stmt substitute(const Stmt& node, const VarMap& map);
Type substitute(const Type& node, const VarMap& map);
// Returns a copy in which every variable defined inside is new, so that it can stand in a module beside the original.
PrimFuncRef with_fresh_variables(const PrimFuncRef& function);
FunctionRef with_fresh_variables(const FunctionRef& function);
// Does the same for a statement, and replaces other variables as substitute() does.
Stmt instantiate(const Stmt& stmt, const VarMap& replaced);

// Returns the variables used but not bound in the node, in order of first use, in types of bound variables too.
std::vector<VarRef> free_vars(const NodeRef& node);
void add_free_vars(const NodeRef& node, VarSet& to);

// Returns whether the variable, or one of the variables, occurs in the node, bound or free.
bool uses_var(const NodeRef& node, const VarRef& var);
bool uses_var(const NodeRef& node, const VarSet& vars);

// Returns the type in which a shape that mentions unknown dims keeps only its rank.
Type without_dims(const Type& type, const std::function<bool(const VarRef&)>& is_unknown);
// Returns the type as a caller of a function with these params may see it: without dims that no param binds.
Type without_unbound_dims(const Type& type, const std::vector<VarRef>& params);

// The first difference of two modules or nodes.
struct Difference {
  std::string text;  // "main: binding lv2, R.sum, attribute axis: [1] and [-1]"
  Span left, right;  // the nearest nodes that have a place
};
// Compares up to the names of bound variables. Free variables are equal to themselves, or (map_free_vars) to one
// partner consistently. Spans and hints do not count.
struct EqualOptions {
  bool map_free_vars = false;
  Difference* difference = nullptr;  // filled in when there is one
  // Prints a node in the difference's text; print_node of ir/text/printer.h suits readers of the text format.
  std::string (*print)(const NodeRef&) = debug_print;
};
bool structural_equal(const NodeRef& a, const NodeRef& b, const EqualOptions& options = {});
bool structural_equal(const IRModule& a, const IRModule& b, const EqualOptions& options = {});
// Equal nodes have equal hashes, which are the same on every machine and in every run.
uint64_t structural_hash(const NodeRef& node, const EqualOptions& options = {});

// Differs also for expressions that are equal up to their variables: in a chain of a thousand additions no two have the
// same hash. It depends on addresses, so it suits tables that are only searched.
uint64_t value_hash(const Expr& value);

}  // namespace relaxc
