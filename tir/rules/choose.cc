#include "tir/rules/choose.h"

#include <algorithm>

#include "ir/attr_names.h"
#include "ir/text/printer.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/nests.h"
#include "tir/analysis/pointers.h"
#include "tir/compute.h"
#include "tir/program.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/versions.h"
#include "tir/schedule/schedule.h"

namespace relaxc {

const ScheduleRule* find_rule(std::string_view name, const std::vector<ScheduleRule>& added) {
  const ScheduleRule* built_in = find_builtin_rule(name);
  return built_in ? built_in : find_item(added, name, &ScheduleRule::name);
}

namespace {

// Returns the name of the program in this one that a rule names; empty if there is none.
std::string part_of(const PrimFuncRef& program) { return program->attrs.get_string(attr_names::kScheduledPart, ""); }

// Returns the body with the operator's name on the block of the part, if it has none.
Stmt with_part_as(const std::string& op, const Stmt& body) {
  return rewrite(body, [&](const Ref<Block>& block) -> std::optional<Stmt> {
    if (!block->annotations.has(annotation<"program">()) || block->annotations.has(annotation<"op">()))
      return std::nullopt;
    return edited<Block>(block, [&](Block& named) { named.annotations.set(annotation<"op">(), op); });
  });
}

// Returns the place and the message.
std::string line_of(const Diagnostic& diagnostic) {
  const std::string place = diagnostic.span ? to_string(diagnostic.span) + ": " : "";
  return place + diagnostic.message;
}

// Takes the nests out of the statement that copy constants when the program is compiled (passes/rewrite_weights.cc).
std::vector<Stmt> take_constant_copies(Stmt& body) {
  const char* name = annotation<"meta_schedule.layout_rewrite_preproc">();
  std::vector<Stmt> copies, others;
  const Seq* list = body.as<Seq>();
  for (const Stmt& each : list ? list->stmts : std::vector<Stmt>{body}) {
    const bool copies_constant = any_node(
        each, [&](const NodeRef& node) { return node.is<Block>() && node.as<Block>()->annotations.has(name); });
    (copies_constant ? copies : others).push_back(each);
  }
  body = seq(std::move(others), body.span());
  return copies;
}

// Lets a version read the constants that `copies` have made in place of those that it copies into `buffers` itself.
// Returns whether all of them are equal.
bool share_constant_copies(Stmt& version, std::vector<Buffer>& buffers, const std::vector<Stmt>& copies) {
  std::vector<Stmt> mine = take_constant_copies(version);
  if (mine.size() != copies.size()) return false;
  auto result_of = [](const Stmt& copy) {
    std::optional<Buffer> result;
    walk(copy, [&](const BufferStore& store) { result = store.buffer; });
    return result;
  };
  for (size_t i = 0; i < mine.size(); ++i) {
    std::optional<Buffer> from = result_of(mine[i]), to = result_of(copies[i]);
    if (!from || !to || (*from)->name != (*to)->name || !structural_equal(from->type(), to->type())) return false;
    const VarMap renamed = {{from->get(), *to}};
    if (!structural_equal(substitute(mine[i], renamed), copies[i])) return false;
    version = substitute(version, renamed);
    std::erase_if(buffers, [&](const Buffer& buffer) { return same_node(buffer, *from); });
  }
  return true;
}

// Puts the scheduled versions of a program together, in branches by its dims.
class VersionsOfProgram {
 public:
  VersionsOfProgram(PrimFuncRef given, PrimFuncRef general) : given_(std::move(given)), general_(std::move(general)) {
    body_ = take_root(general_->body, buffers_);
    copies_ = take_constant_copies(body_);
  }

  // Adds a version for dims of which the condition holds; none that needs constants in another form.
  void add(const Expr& condition, const PrimFuncRef& version) {
    VarMap params;
    for (size_t i = 0; i < version->params.size(); ++i) params.emplace(version->params[i].get(), given_->params[i]);
    std::vector<Buffer> own;
    Stmt body = take_root(instantiate(substitute(version->body, params), {}), own);
    if (!share_constant_copies(body, own, copies_)) return;
    std::ranges::move(own, std::back_inserter(buffers_));
    body_ = make(IfThenElse{condition, body, body_}, given_.span());
  }
  PrimFuncRef program() const {
    std::vector<Stmt> all = copies_;
    all.push_back(body_);
    return with_body(general_, root_block(buffers_, seq(std::move(all), given_.span())));
  }

 private:
  PrimFuncRef given_, general_;
  Stmt body_ = no_op();
  std::vector<Buffer> buffers_;
  std::vector<Stmt> copies_;
};

// Applies one rule to one program, and to its versions for certain values of a dim.
struct Application {
  const ScheduleRule& rule;
  const std::string& name;
  const Target& target;
  bool show_program;
  const OnScheduled& on_scheduled;
  const MoreRules& more;
  const ScheduleRule& actual = rule.uses.empty() ? rule : *find_rule(rule.uses, more.rules);

  RuleResult run(const PrimFuncRef& given) const {
    PrimFuncRef program = find_builtin_rule(actual.name) == &actual ? without_empty_nests(given) : given;
    // A user who names a program of their own, or whose kernel implements the operator, says that it is the rule's.
    bool is_named = !rule.function.empty() || !rule.op.empty() || part_of(program) == actual.op;
    is_named = is_named && !rule.uses.empty();
    if (is_named && !actual.op.empty()) program = with_body(program, with_part_as(actual.op, program->body));
    Decisions decisions = decisions_with(rule.given);
    std::optional<Versions> versions;
    std::optional<Schedule> schedule;
    RuleResult result = scheduled(program, decisions, schedule, &versions);
    if (result.program && versions) result = with_versions(program, *result.program, *versions, decisions);
    if (result.program) result.program = with_rule(*result.program, decisions);
    if (result.program && on_scheduled) on_scheduled(actual, *schedule, decisions);
    return result;
  }

  // Notes the rule and what it decided, for profiles.
  PrimFuncRef with_rule(const PrimFuncRef& program, const Decisions& decisions) const {
    std::string text = joined(decisions.all(), [](const Decision& decision) {
      const auto* word = decision.value.as<std::string>();
      return fmt::format("{}={}", decision.name, word ? *word : to_string(decision.value));
    });
    PrimFunc function = *program;
    function.attrs.set(attr_names::kRule, text.empty() ? actual.name : fmt::format("{}: {}", actual.name, text));
    return make_prim_func(std::move(function), program.span());
  }

  Decisions decisions_with(Attrs given) const {
    return {actual.name, actual.decisions, std::move(given), rule.span, name};
  }

  // Schedules a program. `versions`, if not null, receives those that it has; null for a version.
  RuleResult scheduled(const PrimFuncRef& program, Decisions& decisions, std::optional<Schedule>& schedule,
                       std::optional<Versions>* versions) const {
    if (auto why = actual.fits ? actual.fits(program, target, decisions) : std::nullopt) return {std::nullopt, *why};
    std::optional<Versions> found = actual.space ? actual.space(program, target, decisions) : std::nullopt;
    if (versions) *versions = found;
    schedule.emplace(IRModule{{{name, program}}, {}, {}},
                     ScheduleOptions{.show_program = show_program, .intrins = more.intrins.get()});
    std::optional<Diagnostic> refusal = apply_rule(actual, *schedule, target, decisions);
    // A schedule for this very program leaves blocks as they are on purpose.
    if (!refusal && rule.uses.empty() && rule.function != name) schedule_blocks_beside(*schedule, target);
    if (refusal) {
      // A refusal is an error for a rule that names its function, and for values from the user without which it fits.
      bool fits_otherwise =
          !rule.given.empty() && Application{actual, name, target, false, nullptr, more}.run(program).program;
      if (fits_otherwise || !rule.function.empty()) throw CompileError({*refusal});
      return {std::nullopt, line_of(*refusal)};
    }
    if (versions) decisions.check_all_asked();
    return {schedule->function(), ""};
  }

  // Adds the versions to the general program. Their decisions are made again, since their dims are known. Only values
  // other than those of the general program's formulas hold for them, too.
  RuleResult with_versions(const PrimFuncRef& program, const PrimFuncRef& general, const Versions& versions,
                           const Decisions& taken) const {
    const auto& [dim, list] = versions;
    std::vector<int64_t> values;
    Attrs given;
    for (const Decision& decision : taken.all()) {
      if (decision.name == list) {
        from_attr(decision.value, values);
      } else if (decision.value != decision.formula) {
        given.set(decision.name, decision.value);
      }
    }
    const int64_t others = program->attrs.get_int(attr_names::kHasVersions, 0);
    std::erase_if(values, [&](int64_t value) { return value <= others; });
    if (values.empty()) return {general, ""};
    VersionsOfProgram all(program, general);
    for (int64_t value : values) {
      Decisions decisions = decisions_with(given);
      const PrimFuncRef specialized = with_sizes(program, {{dim.get(), int_imm(value)}});
      std::optional<Schedule> schedule;
      RuleResult known = scheduled(specialized, decisions, schedule, nullptr);
      if (!known.program) return known;
      all.add(equal(dim, int_imm(value)), *known.program);
    }
    return {all.program(), ""};
  }
};

// Reports the schedules for the program that stand behind the rule for an operator which it has taken. Those behind a
// schedule for the program are reported for all of its programs at once (passes/apply_rules.cc).
void report_left_out(const ScheduleRule& taken, const std::vector<ScheduleRule>& users, const std::string& name,
                     const PrimFuncRef& program, const MoreRules& more, const RuleReport& report) {
  if (!taken.function.empty()) return;
  for (const ScheduleRule& rule : users) {
    const bool is_behind = &rule > &taken && (rule.uses.empty() || rule.uses != taken.uses);
    if (!is_behind || rule.function.empty() || !concerns(rule, name, program, more)) continue;
    report(fmt::format(
        "schedule rule '{}' is not used for '{}': '{}'{} comes first and fits; put a schedule for one "
        "program before rules for operators",
        rule.name, name, taken.name, taken.span.line > 0 ? fmt::format(" of line {}", taken.span.line) : ""));
  }
}

// Removes the annotations by which rules found their programs after fusion: code does not depend on them.
Stmt without_marks(const Stmt& body) {
  const char* kMarks[] = {annotation<"program">(), annotation<"fused_beside">(), annotation<"constant_operand">()};
  return rewrite(body, [&](const Ref<Block>& block) -> std::optional<Stmt> {
    if (std::ranges::none_of(kMarks, [&](const char* mark) { return block->annotations.has(mark); }))
      return std::nullopt;
    Block copy = *block;
    for (const char* mark : kMarks) copy.annotations = copy.annotations.without(mark);
    copy.body = without_marks(block->body);
    return make(std::move(copy), block.span());
  });
}

}  // namespace

bool concerns(const ScheduleRule& rule, const std::string& name, const PrimFuncRef& program, const MoreRules& more) {
  const std::string part = part_of(program);
  if (!rule.function.empty()) return rule.function == name || rule.function == part;
  const ScheduleRule* used = rule.uses.empty() ? nullptr : find_rule(rule.uses, more.rules);
  if (!rule.uses.empty() && !used) return false;  // a decision about the graph
  const std::string& op = used && rule.op.empty() ? used->op : rule.op;
  return op.empty() || op == part || find_anchor(program, op);
}

RuleResult schedule_by_rule(const ScheduleRule& rule, const std::string& name, const PrimFuncRef& program,
                            const Target& target, bool show_program, const OnScheduled& scheduled,
                            const MoreRules& more) {
  return Application{rule, name, target, show_program, scheduled, more}.run(program);
}

// Schedules each version by a rule for it. A user's rule for the program may fit only some of them.
static PrimFuncRef schedule_versions(const std::string& name, const PrimFuncRef& program,
                                     const VersionsByDims& versions, const std::vector<ScheduleRule>& users,
                                     const Target& target, const RuleReport& report, const OnScheduled& scheduled,
                                     const MoreRules& more) {
  std::optional<CompileError> refusal;
  bool fits_any = false;
  auto of_version = [&](const PrimFuncRef& version, const std::string& sizes, const OnScheduled& on_scheduled) {
    RuleReport said = nullptr;
    if (report) said = [&](const std::string& text) { report(fmt::format("{} (the version for {})", text, sizes)); };
    try {
      const PrimFuncRef result = schedule_by_rules(name, version, users, target, said, on_scheduled, more);
      fits_any = true;
      return result;
    } catch (const CompileError& error) {
      refusal = error;
      if (said) said(error.what());
      return schedule_by_rules(name, version, {}, target, said, on_scheduled, more);
    }
  };
  VersionsOfProgram all(program, of_version(versions.general, "all other sizes", scheduled));
  for (const VersionsByDims::Special& special : versions.special)
    all.add(special.condition, of_version(special.program, print_plain(special.condition), nullptr));
  if (!fits_any) throw *refusal;
  PrimFunc function = *all.program();
  function.attrs = function.attrs.without(attr_names::kHasVersions);
  return make_prim_func(std::move(function), program.span());
}

PrimFuncRef schedule_by_rules(const std::string& name, const PrimFuncRef& program,
                              const std::vector<ScheduleRule>& users, const Target& target, const RuleReport& report,
                              const OnScheduled& scheduled, const MoreRules& more) {
  if (program->attrs.get_bool(attr_names::kIsScheduled, false)) return program;
  if (const auto versions = versions_by_dims(program))
    return schedule_versions(name, program, *versions, users, target, report, scheduled, more);
  const std::string part = part_of(program) == name ? "" : part_of(program);
  for (const std::vector<ScheduleRule>* rules : {&users, &more.rules, &builtin_schedule_rules()}) {
    if (rules != &users && uses_pointers(program)) break;  // the built-in rules see accesses to buffers only
    const RuleReport& report_here = rules == &users ? report : nullptr;
    for (const ScheduleRule& rule : *rules) {
      if (!concerns(rule, name, program, more)) continue;
      // A rule for a program in this one leaves it to a rule for this very one.
      bool is_for_part = !part.empty() && (rule.function.empty() ? rule.op : rule.function) == part;
      if (is_for_part && std::ranges::count(users, name, &ScheduleRule::function) > 0) continue;
      // An error shows the program. One line is enough for a rule that is tried on many.
      bool shows_program = report_here && (!rule.function.empty() || !rule.given.empty());
      RuleResult result = schedule_by_rule(rule, name, program, target, shows_program, scheduled, more);
      if (!result.program) {
        std::string text = fmt::format("schedule rule '{}' does not fit '{}': {}", rule.name, name, result.refusal);
        if (!rule.function.empty()) fail_to_fit(rule.span, "{}", text);
        if (report_here) report_here(text + " (--emit=loops --stop-after=merge_kernels shows it)");
        continue;
      }
      if (report_here) report_here(fmt::format("schedule rule '{}' is applied to '{}'", rule.name, name));
      if (report_here) report_left_out(rule, users, name, program, more, report_here);
      PrimFunc function = **result.program;
      function.attrs.set(attr_names::kIsScheduled, true);
      function.body = without_marks(function.body);
      function.attrs = function.attrs.without(attr_names::kScheduledPart);
      return make_prim_func(std::move(function), program.span());
    }
  }
  return program;
}

}  // namespace relaxc
