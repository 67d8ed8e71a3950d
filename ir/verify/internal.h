// The parts of the verifier. Internal to ir/verify/.
#pragma once
#include <fmt/format.h>

#include "ir/verify/verify.h"
#include "ir/visit.h"
#include "support/temporarily.h"

namespace relaxc {

// Every variable that a function of the module has defined so far.
using DefinedVars = VarSet;

// Returns the place of the name in the statement that begins at the span, or the span when the name is not in it.
Span place_of(std::string_view name, const Span& statement);

// The variables in scope, and the reports of a verifier of functions.
class ScopedVerifier {
 protected:
  ScopedVerifier(std::string_view rule, DefinedVars& defined, Diagnostics& diagnostics)
      : rule_of_definitions_(rule), defined_(defined), diagnostics_(diagnostics) {}

  // A node without a span is reported at the place of the statement around it.
  template <class... Args>
  void error(const Span& span, FormatString<Args...> pattern, const Args&... args) {
    diagnostics_.error(span ? span : place_, pattern, args...);
  }
  template <class... Args>
  void warning(const Span& span, FormatString<Args...> pattern, const Args&... args) {
    diagnostics_.warning(span ? span : place_, pattern, args...);
  }

  void define(const VarRef& var) {
    if (!defined_.insert(var.get()).second)
      error(var.span(), "'{}' is defined twice [{}]", var->name, rule_of_definitions_);
    enter(var.get());
  }
  void enter(const NodeHeader* var) {
    if (scope_.insert(var).second) order_.push_back(var);
  }
  // Variables that enter after it leave with it.
  struct Scope {
    explicit Scope(ScopedVerifier& v) : verifier(v), size(v.order_.size()) {}
    ~Scope() {
      for (; verifier.order_.size() > size; verifier.order_.pop_back()) verifier.scope_.erase(verifier.order_.back());
    }
    ScopedVerifier& verifier;
    size_t size;
  };

  std::string_view rule_of_definitions_;
  DefinedVars& defined_;
  Diagnostics& diagnostics_;
  Span place_;  // that of the statement or binding being verified
  VarSet scope_;
  std::vector<const NodeHeader*> order_;  // the variables in scope in the order of their definitions
};

void verify_graph(const FunctionRef& function, const IRModule& module, const OpTable& ops, DefinedVars& defined,
                  Diagnostics& diagnostics);
void verify_program(const PrimFuncRef& function, DefinedVars& defined, Diagnostics& diagnostics);

}  // namespace relaxc
