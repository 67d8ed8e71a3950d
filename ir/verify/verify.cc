// The rules of a module. Each has a test that breaks only it: tests/ir/verify/<rule>.test, or, where the text format
// cannot say it, tests/ir/verify_test.cc.
//
// Modules
//   M1  functions are graph functions, tensor programs or external functions, and their names are identifiers
//   M2  a graph function's global_symbol is its name in the module
// Graph functions (ir/verify/graph.cc)
//   G1  a variable is defined before it is used
//   G2  a variable is defined once in the module
//   G3  operands are leaves: variables, constants, scalars, shapes, tuples of leaves
//   G4  a variable of a dataflow block is visible after it only as an output; outputs are bound in the block
//   G5  a dataflow block holds no branches and no calls with side effects
//   G6  a pure function holds no calls with side effects
//   G7  a symbolic dim is bound before it is used: bare in a param's type or in an earlier match_cast
//   G8  functions that are named exist in the module
//   G9  a call of a kernel fits its tensor program: number of tensors and scalars, ranks, dtypes, and no dim provably
//       different; this holds for call_tir, its variants, and calls with destinations
//   G10 a call fits its operator or function: number of arguments, attributes, operand types
//   G11 the type a variable is declared with agrees with the type of its value
//   G12 the index of a tuple's item is in range
//   G13 both branches of an `if` give the declared type, and the condition is a bool scalar
//   G14 the returned value has the declared result type
//   G15 plain binding blocks are not empty and do not follow each other
//   G16 relax.force_pure stands on pure functions only; calls with side effects count as pure below it
// Tensor programs (ir/verify/prim_func.cc)
//   T1  a buffer is defined in scope: a param, an allocation, a window
//   T2  a scalar variable is defined in scope
//   T3  a variable is defined once
//   T4  one index per dim, and only the last is a vector
//   T5  indices, loop bounds, extents and axis values are integers
//   T6  a stored value has the buffer's dtype and the index's lanes
//   T7  conditions, predicates and assertions are bool
//   T8  loop bounds and steps have the loop variable's dtype, steps are positive; thread axes belong to thread loops
//   T9  an axis has the dtype of its domain
//   T10 init mentions no reduce axis (a reduction over no axes has an init all the same)
//   T11 reads and writes cover the buffers that the block accesses, and their elements where that can be decided; a
//       warning, as TVM accepts blocks that declare less (opaque ones nothing), and no pass relies on it
//   T12 vectors have the lanes that their operation says
//   T13 params are buffers, scalars or handles
//   T14 blocks stand below a root block
//   T15 a sequence is flat: no sequence inside of it, and not of one statement
//   T16 a view is over a pointer; the contents of an allocation have its dtype and shape
//   T17 intrinsics get the number of arguments that they take
//   T18 break and continue stand in a serial or while loop
//   T19 a program calls programs of the module, with as many arguments as they take
//   T23 complex numbers are loaded, stored and chosen between: they are no operand or result of other operations
// Ranges (ir/verify/ranges.cc; asked for what users wrote only)
//   T20 no axis provably leaves its domain in an iteration in which its block's predicate holds
//   T21 no index is provably out of range; a warning
//   T22 no dense view is larger than the memory below it; a warning
#include "ir/verify/verify.h"

#include <algorithm>
#include <cctype>

#include "ir/attr_names.h"
#include "ir/text/names.h"
#include "ir/verify/internal.h"
#include "ir/visit.h"

namespace relaxc {

Span place_of(std::string_view name, const Span& statement) {
  if (!statement || !statement.origin->text || statement.line == 0 || name.empty()) return statement;
  const std::string& text = *statement.origin->text;
  size_t at = 0;
  for (uint32_t line = 1; line < statement.line && at != std::string::npos; ++line) at = text.find('\n', at) + 1;
  Span here = statement;
  int depth = 0;  // the number of open brackets, in which a statement goes on in the next line
  auto is_word = [&](size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
  };
  for (size_t i = at + statement.column - 1; i < text.size(); ++i, ++here.column) {
    char c = text[i];
    depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if (c == '\n') {
      if (depth <= 0) return statement;
      ++here.line;
      here.column = 0;
    }
    if (c == '#') i = std::min(text.find('\n', i), text.size()) - 1;
    if (text.compare(i, name.size(), name) != 0 || is_word(i + name.size()) || (i > 0 && is_word(i - 1))) continue;
    here.length = static_cast<uint32_t>(name.size());
    return here;
  }
  return statement;
}

void verify(const IRModule& module, const OpTable& ops, Diagnostics& diagnostics, const IRModule* known_module) {
  std::unordered_set<const NodeHeader*> defined;
  for (const auto& [name, function] : module.functions) {
    bool known = function.is<Function>() || function.is<PrimFunc>() || function.is<ExternFunc>();
    if (!known)
      diagnostics.error(function.span(), "'{}' is a {}, not a function [M1]", name, kind_name(function.kind()));
    if (name.empty() || text::identifier(name) != name)
      diagnostics.error(function.span(),
                        "'{}' is not a name of a function: expected a to z, A to Z, digits and '_' [M1]", name);
    if (auto graph = try_cast<Function>(function)) {
      std::string symbol = (*graph)->attrs.get_string(attr_names::kGlobalSymbol, name);
      if (symbol != name) diagnostics.error(function.span(), "'{}' has global_symbol '{}' [M2]", name, symbol);
      verify_graph(*graph, module, ops, defined, diagnostics);
    }
    auto program = try_cast<PrimFunc>(function);
    const Expr* verified = program && known_module ? known_module->find(name) : nullptr;
    if (!program || (verified && same_node(*verified, function))) continue;
    verify_program(*program, defined, diagnostics);
    walk((*program)->body, [&](const Ref<Call>& call) {
      const GlobalVar* callee = call->callee.as<GlobalVar>();
      const Expr* found = callee ? module.find(callee->name) : nullptr;
      const PrimFunc* called = found ? found->as<PrimFunc>() : nullptr;
      if (callee && !called)
        diagnostics.error(call.span(), "'{}' is not a tensor program of the module [T19]", callee->name);
      if (called && called->params.size() != call->args.size())
        diagnostics.error(call.span(), "'{}' takes {} arguments, got {} [T19]", callee->name, called->params.size(),
                          call->args.size());
    });
  }
}

}  // namespace relaxc
