// Reads the statements of a text, with the Python around its definitions done where that takes no interpreter:
//
//   def tile(mod, factor):                          # written out where it is called
//       sch = tvm.tir.Schedule(mod)                 # sch = tvm.tir.Schedule(MyModule)
//       i, j = sch.get_loops("C")                   # i, j = sch.get_loops("C")
//       sch.split(j, [None, factor])                # sch.split(j, [None, 8])
//       return sch
//   if __name__ == "__main__":                      # its statements stand outside of it
//       sch = tile(MyModule, 8)
//
// Only functions that hold definitions, make programs or schedule are written out. A function of one expression is that
// expression where it is called, and a lambda where te.compute or a schedule takes it. What cannot be done is left as
// it is.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "ir/text/syntax.h"

namespace relaxc::text {

// Returns the syntax, or the statement, with names replaced as the map says, those that it binds by names. Lambdas and
// definitions in it keep the names that they bind themselves.
using Replacements = std::map<std::string_view, const Syntax*>;
const Syntax* with_names(const Syntax* at, const Replacements& names, SyntaxTree& tree);
const Line& with_names(const Line& line, const Replacements& names, SyntaxTree& tree);
// Visits the nodes of an expression, or of a statement and those below it.
void for_each(const Syntax* at, const std::function<void(const Syntax&)>& visit);
void for_each(const Line& line, const std::function<void(const Syntax&)>& visit);
// Returns what is called: "Schedule" of tvm.tir.Schedule(f).
inline std::string_view callee_name(const Syntax& call) { return call.children[0]->text; }
inline bool is_docstring(const Line& line) {
  return line.kind == LineKind::kExpression && line.value->kind == SyntaxKind::kString;
}
// Adds the names that the statement binds, in the statements below it too; those of definitions in it only `within`.
void add_bound_names(const Line& line, std::set<std::string_view>& names, bool within = true);
// Adds the names of a target: of an assignment, a loop.
void add_names(const Syntax* target, std::set<std::string_view>& names);
// Returns whether the statement is a definition of a module, or holds one.
bool is_script_function(const Line& line);
bool holds_definition(const Line& line);
// Returns whether the statement computes with te: te.compute(...), or tvm.compute(...) as until 2020.
bool computes_with_te(const Line& line);

class Unfolder {
 public:
  Unfolder(const Source& source, Diagnostics& diagnostics) : reader_(source, diagnostics), diagnostics_(diagnostics) {}
  // As SyntaxReader::next. `withheld`: the statement that was read comes later, or not at all.
  bool next(SyntaxTree& tree, Lines& out);
  bool in_class() const { return !ended_ && reader_.in_class(); }
  bool withheld() const { return withheld_; }
  // Owns the functions, of which statements that come later have parts.
  const std::shared_ptr<SyntaxTree>& kept() const { return kept_; }

 private:
  struct Function {
    const Line* line;
    std::vector<Diagnostic> errors;  // of its syntax
    bool unfolds = false;            // it holds definitions, makes programs or schedules
    const Syntax* lambda = nullptr;  // if it is one expression
    bool of_te = false;              // its body names te, so ir/text/parse_te.cc keeps it, too
    bool used = false, active = false;
    bool called = false;  // and written out
  };
  static constexpr int kDeepest = 16;           // calls in calls
  static constexpr size_t kMostLines = 20'000;  // that calls are written out as
  void statement(const Line& line, Lines& out);
  bool keeps(const Line& line);
  const Line& with_workload(const Line& line);
  void call_only_function(Lines& out);
  void add_globals(const Line& line);
  bool unfolds(const Line& line, const Line& function) const;
  bool calls_worth(const Syntax* at, const Line& function) const;
  const Syntax* as_lambda(const Line& function);
  const Syntax* with_functions(const Syntax* at, bool in_lambda = false);
  const Line& with_functions(const Line& line);
  static std::optional<Replacements> arguments_of(const Syntax& lambda, const std::vector<const Syntax*>& call,
                                                  const std::vector<Syntax::Keyword>& keywords);
  const Syntax* find_call(const Syntax* at) const;
  bool unfold(const Line& line, const Syntax& call, Lines& out);
  bool bind_params(Function& function, const Syntax& call, Replacements& names, Lines& assigned);
  bool flatten(const Lines& body, Lines& out, const Syntax*& result, bool& returned) const;
  void rename_locals(const Lines& body, const Syntax* result, const Syntax* target, Replacements& names);
  std::optional<bool> truth(const Syntax& at) const;
  const Syntax* known(const Syntax& at) const;
  const Line* assignment(const Place& at, const Syntax* target, const Syntax* value);
  Syntax& made(SyntaxKind kind, const Place& at, std::string_view text = {});

  SyntaxReader reader_;
  Diagnostics& diagnostics_;
  std::shared_ptr<SyntaxTree> kept_ = std::make_shared<SyntaxTree>();
  SyntaxTree* tree_ = nullptr;
  std::map<std::string, Function, std::less<>> functions_;
  std::vector<std::string> order_;  // of the functions
  std::map<std::string, const Syntax*, std::less<>> constants_;
  std::set<std::string> bound_, changed_;
  std::vector<Diagnostic> errors_;  // of the statement that was read
  int depth_ = 0;
  size_t produced_ = 0;
  bool withheld_ = false, ended_ = false;
  bool has_module_ = false;  // or what may be one
};

}  // namespace relaxc::text
