// Statements of Python as syntax: the names that they bind, use and change, and copies of them.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "ir/text/syntax.h"

namespace relaxc::text {

// Return a copy of the syntax, or of the statement, with names replaced as the map says, those that it binds by names.
// Lambdas and definitions in it keep the names that they bind themselves.
using Replacements = std::map<std::string_view, const Syntax*>;
const Syntax* with_names(const Syntax* at, const Replacements& names, SyntaxTree& tree);
const Line& with_names(const Line& line, const Replacements& names, SyntaxTree& tree);
// Adds the names that the statement binds, in the statements below it too; those of definitions in it only `within`.
void add_bound_names(const Line& line, std::set<std::string_view>& names, bool within = true);
// Adds the names of a target: of an assignment, a loop.
void add_names(const Syntax* target, std::set<std::string_view>& names);
// Returns whether the statement is a definition of a module, or holds one.
bool is_script_function(const Line& line);
bool holds_definition(const Line& line);
// Returns whether the statement computes with te: te.compute(...), or tvm.compute(...) as until 2020.
bool computes_with_te(const Line& line);
// The decorators of functions that are written for te: straight statements, and statements of a program.
inline constexpr std::string_view kWrittenForTe = "$te", kExternStatements = "$statements";
inline bool is_decorated(const Line& line, std::string_view name) {
  return line.decorators.size() == 1 && line.decorators[0]->text == name;
}
inline bool is_written_for_te(const Line& line) {
  return is_decorated(line, kWrittenForTe) || is_decorated(line, kExternStatements);
}
// Returns whether the text of a decorator is one of definitions of a module.
bool names_script(std::string_view text);
// Calls `visit` for each node of the statement, of the statements below it, and of its decorators and params.
void for_each(const Syntax* at, const std::function<void(const Syntax&)>& visit);
void for_each(const Line& line, const std::function<void(const Syntax&)>& visit);

// Returns whether the test holds for the statement or one below it.
bool holds(const Line& line, const std::function<bool(const Line&)>& test);
bool holds_errors(const Line& line);

// What a statement may do to values that it does not bind, whether it is run now or later.
struct PythonEffects {
  std::set<std::string_view> uses;     // all names in it
  std::set<std::string_view> changes;  // those of objects that it changes: x.append(1), x[0] = 1, x += y
  std::set<std::string_view> outer;    // those that it declares as global or nonlocal

  void add(const Syntax* at);
  void add(const Line& line);
  // Adds what an assignment to the target changes.
  void add_changed(const Syntax& target, bool in_place);

 private:
  void add_words(const Line& line);
};
// Returns the name of which the expression is an item, attribute or slice; empty for others.
std::string_view root_name(const Syntax& at);

}  // namespace relaxc::text
