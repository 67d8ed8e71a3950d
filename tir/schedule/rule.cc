#include "tir/schedule/rule.h"

#include "ir/attr_names.h"
#include "ir/visit.h"
#include "support/diagnostic.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/nests.h"
#include "tir/program.h"
#include "tir/schedule/schedule.h"

namespace relaxc {

static PrimFuncRef with_anchor_marked(const PrimFuncRef& program, const char* mark, const std::string& value) {
  std::optional<Ref<Block>> anchor;
  walk(program->body, [&](const Ref<Block>& block) {
    auto reduces = [](const Block& b) { return !axes_of(b, IterKind::kReduce).empty(); };
    if (block->name == kRootBlock) return true;
    if (!anchor || reduces(*block) || !reduces(**anchor)) anchor = block;
    return false;
  });
  if (!anchor) return program;
  return with_body(program, rewrite(program->body, [&](const Ref<Block>& block) -> std::optional<Stmt> {
                     if (!same_node(block, *anchor)) return std::nullopt;
                     return edited<Block>(block, [&](Block& marked) { marked.annotations.set(mark, value); });
                   }));
}
PrimFuncRef with_op_name(const PrimFuncRef& program, const std::string& op) {
  return with_anchor_marked(program, annotation<"op">(), op);
}
PrimFuncRef with_program_name(const PrimFuncRef& program, const std::string& name) {
  PrimFunc copy = *with_anchor_marked(program, annotation<"program">(), name);
  copy.attrs.set(attr_names::kScheduledPart, name);
  return make_prim_func(std::move(copy), program.span());
}

static std::string operator_of(const Block& block) { return block.annotations.get_string(annotation<"op">(), ""); }

std::vector<std::string> operators_of(const PrimFuncRef& function) {
  std::vector<std::string> result;
  walk(function->body, [&](const Block& block) { result.push_back(operator_of(block)); });
  std::erase(result, "");
  return result;
}

std::optional<Ref<Block>> find_anchor(const PrimFuncRef& function, std::string_view op) {
  std::optional<Ref<Block>> result;
  walk(function->body, [&](const Ref<Block>& block) {
    if (!result && operator_of(*block) == op) result = block;
  });
  return result;
}

std::optional<Diagnostic> apply_rule(const ScheduleRule& rule, Schedule& schedule, const Target& target,
                                     Decisions& decisions) {
  PrimFuncRef program = schedule.function();
  auto steps = [&] { rule.apply(schedule, target, decisions); };
  if (auto refusal = schedule.try_steps(steps, Schedule::Reason::kWithProgram)) return refusal;
  PrimFuncRef result = schedule.function();
  for (size_t i = 0; i < program->params.size(); ++i) {
    if (same_node(program->params[i], result->params[i])) continue;  // also where it only permutes equal dims
    std::string text = fmt::format(
        "{} '{}' changes the shape or layout of '{}', which callers of '{}' hand over as it was; copy it first "
        "(cache_read, cache_write) and lay out the copy",
        rule.function.empty() ? "rule" : "schedule", rule.name, program->params[i]->name,
        schedule.module().functions.begin()->first);
    return Diagnostic{Severity::kError, ErrorKind::kDoesNotFit, rule.span, std::move(text), {}};
  }
  return std::nullopt;
}

}  // namespace relaxc
