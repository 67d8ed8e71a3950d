// <relaxc/rule.h>: a rule schedules the programs that it fits. One for an operator is written once, against the
// operator's block (the anchor), and is applied to what fusion made around it: it looks for the anchor, tiles it, and
// moves the blocks that follow into the tile (merge_epilogue). The choices that it leaves open are decisions with names
// (decisions.h), so that one rule serves the default, a tuner's record and a user who says "this rule, tile 6 x 64".
#pragma once
#include <functional>

#include "ir/module.h"
#include "ir/stmt.h"
#include "support/diagnostic.h"
#include "tir/schedule/decisions.h"
#include "tir/target.h"

namespace relaxc {

class Schedule;

// The dim for whose values in the decision, a list, a program has separate code (multi-versioning).
struct Versions {
  VarRef dim;
  std::string decision;
};

struct ScheduleRule {
  std::string name = {};
  // The tensor program that it is for, wherever fusion has put it; empty: any that holds `op`.
  std::string function = {};
  std::string op = {};  // the operator that it is for, "nn.conv2d", or a tensor program; empty: any
  Span span = {};
  // Schedules the program worked on. Reads the decisions: asked again, they have the values that `space` took. A step
  // that does not fit ends it.
  std::function<void(Schedule&, const Target&, Decisions&)> apply = nullptr;
  // Returns why the rule does not fit the program with these decisions, some of which users may have given; nullopt
  // when it does. When null, the steps decide.
  std::function<std::optional<std::string>(const PrimFuncRef&, const Target&, Decisions&)> fits = nullptr;
  // Takes the decisions, before any step, and returns the versions, if any. Null for a rule, such as the default one,
  // whose choices for a block depend on the steps before: its `apply` takes them, block by block.
  std::function<std::optional<Versions>(const PrimFuncRef&, const Target&, Decisions&)> space = nullptr;
  std::string doc = {};                     // one line: which programs it fits
  std::vector<DecisionRow> decisions = {};  // those that it may ask for
  // S.use: a built-in rule or a graph decision by name, with these values for decisions instead of the formulas'.
  std::string uses = {};
  Attrs given = {};
  std::string at = {};  // of a graph decision: the operator's name in the model or the text; empty: all that `op` names
};

// Is called with each program that a rule has scheduled. S.use comes as the built-in rule's row (builtin_rules.h).
using OnScheduled = std::function<void(const ScheduleRule&, const Schedule&, const Decisions&)>;

// Schedules the program, or returns why a step does not fit or callers' buffers would change. Throws other errors.
std::optional<Diagnostic> apply_rule(const ScheduleRule& rule, Schedule& schedule, const Target& target,
                                     Decisions& decisions);

// Returns the program with the operator's name on the block of its result: the last that reduces, else the last.
PrimFuncRef with_op_name(const PrimFuncRef& program, const std::string& op);
// Returns the program with its name as an attribute and on that block (annotation `program`), by which schedules find
// them after fusion.
PrimFuncRef with_program_name(const PrimFuncRef& program, const std::string& name);
// Returns the operators of the program's blocks, in order.
std::vector<std::string> operators_of(const PrimFuncRef& function);
// Returns the block that computes the operator's result.
std::optional<Ref<Block>> find_anchor(const PrimFuncRef& function, std::string_view op);

// Returns the rules of a file (script.h); throws a CompileError with all errors in it.
std::vector<ScheduleRule> read_schedule_rules(std::string_view text, const std::string& filename);

}  // namespace relaxc
