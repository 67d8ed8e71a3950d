// The lines of a file of schedules or kernels, and a schedule among them, ready to run. Internal to the readers of such
// files: tir/schedule/script*.cc, passes/read_kernels.cc.
#pragma once
#include "ir/text/syntax.h"
#include "tir/schedule/rule.h"
#include "tir/schedule/script.h"

namespace relaxc {

struct ScheduleBody {
  std::shared_ptr<const Origin> origin;
  std::shared_ptr<const TensorIntrins> intrins;  // of the file
  text::Lines lines;
  std::string schedule_name;
  std::vector<std::shared_ptr<text::SyntaxTree>> trees;  // own the lines
  // Runs the statements, as ScheduleRule::apply. Throws a CompileError at the first line that fails.
  void operator()(Schedule& schedule, const Target&, Decisions&) const;
};

// Returns the tensor intrinsics that S.intrin(...) or TensorIntrin.register(...) among the lines declare.
std::shared_ptr<const TensorIntrins> read_intrins(const std::shared_ptr<const Origin>& origin, const text::Lines& lines,
                                                  const std::string& filename, Diagnostics& diagnostics);
// The lines of a file of schedules, without those of a module beside them, which parse_module reads.
struct ScriptFile {
  std::shared_ptr<const Origin> origin;
  text::Lines lines;
  std::vector<std::shared_ptr<text::SyntaxTree>> trees = {};
  std::vector<std::pair<const text::Line*, text::Lines>> classes = {};  // heads and members

  Span span(const auto& at) const { return {origin, at.line, at.column, at.length}; }
};
ScriptFile read_script_file(std::string_view text, const std::string& filename, Diagnostics& diagnostics);
// Returns the decorator of this name, such as "prim_func", of this object unless that is empty; null when there is
// none.
const text::Syntax* find_decorator(const text::Line& line, std::string_view name, std::string_view object = {});
// Returns whether the line is part of the kernels of a file (passes/kernel_rules.h): @S.implements, @S.pattern and so
// on.
bool is_of_kernels(const text::Line& line);
// Returns the first line of the definition, that of a decorator if it has any.
uint32_t first_line(const text::Line& line);

// Returns the names that the results of an assigned call get, up to a target that is not a name.
std::vector<std::string> names_of_targets(const text::Syntax& target);

std::shared_ptr<const Origin> origin_of(std::string_view text, const std::string& filename);
// Returns the value of an expression that calls no primitive.
AttrValue evaluate(const text::Syntax& at, const std::shared_ptr<const Origin>& origin, ScheduleNames names = {});

// Blocks and loops, which a script can hand on and compare, but not look into.
inline bool is_handle(const AttrValue& value) {
  const Expr* e = value.as<Expr>();
  return e && e->is<Var>() && !e->type().is<PrimType>();
}
inline bool is_same_handle(const AttrValue& x, const AttrValue& y) {
  return is_handle(x) && is_handle(y) && same_node(*x.as<Expr>(), *y.as<Expr>());
}

}  // namespace relaxc
