#include "tir/schedule/schedule.h"

#include <algorithm>

#include "ir/text/printer.h"
#include "ir/visit.h"
#include "support/temporarily.h"
#include "tir/primitives/get_block.h"
#include "tir/program.h"

namespace relaxc {

using namespace scheduling;

Schedule::Schedule(IRModule module, ScheduleOptions options)
    : show_program_(options.show_program), workspace_(std::move(module), options.seed) {
  workspace_.intrins = options.intrins;
}
Schedule::Schedule(const PrimFuncRef& function, ScheduleOptions options)
    : Schedule(IRModule{{{"main", function}}, {}, {}}, options) {}

void Schedule::add_intrins(const TensorIntrins& more) {
  std::vector<std::string> names = more.names();
  if (names.empty()) return;
  auto table = std::make_shared<TensorIntrins>(intrins());
  for (const std::string& name : names) table->add(*more.find(name));
  workspace_.intrins = table.get();
  added_intrins_ = std::move(table);
}

PrimFuncRef Schedule::function(const std::string& name) const { return with_distinct_lets(tree(name).function()); }

Stmt Schedule::get_node(const VarRef& var) const {
  TreeNode* node = workspace_.node(var);
  if (!node) fail(var.span(), "get: '{}' is not a block or loop of this schedule", var->name);
  if (!is_alive(node)) fail(var.span(), "get: '{}' is no longer part of the program", var->name);
  return node->tree->stmt(*node);
}
int64_t Schedule::get(const Expr& number) const {
  VarMap known;
  walk(number, [&](const Ref<Var>& var) {
    if (auto value = workspace_.number(var)) known.emplace(var.get(), int_imm(*value, dtype_of(var)));
  });
  auto value = as_int(simplify(substitute(number, known)));
  if (!value) fail(number.span(), "get: {} is not a number of this schedule", print_expr(number));
  return *value;
}

Outcome<std::vector<VarRef>> Schedule::run(const Primitive& primitive, const void* step, const AttrValue& decision) {
  AttrList arguments = primitive.encode(step, workspace_);
  Step context(workspace_, primitive.name, false, decision);
  auto outcome = context.run([&](Step& running) {
    check_arguments(primitive, arguments, running);
    return primitive.apply(step, running);
  });
  if (outcome)
    trace_.steps.push_back(
        {&primitive, std::move(arguments), *outcome, primitive.samples() ? context.decision() : AttrValue()});
  return outcome;
}

std::vector<VarRef> Schedule::checked(Outcome<std::vector<VarRef>> outcome) const {
  if (!outcome) throw CompileError({outcome.refusal().diagnostic(show_program_)});
  return *outcome;
}

std::optional<Diagnostic> Schedule::try_steps(const std::function<void()>& steps, Reason reason) {
  Temporarily shows_program(show_program_, show_program_ && reason == Reason::kWithProgram);
  try {
    steps();
  } catch (const CompileError& error) {
    if (error.kind() != ErrorKind::kDoesNotFit) throw;
    return error.diagnostics()[0];
  }
  return std::nullopt;
}

AttrValue Schedule::with_blocks_found(const AttrValue& argument) {
  if (const std::string* name = argument.as<std::string>()) return Expr(apply(GetBlock{*name}).var);
  const AttrList* items = argument.as<AttrList>();
  return items ? map_each(*items, [&](const AttrValue& item) { return with_blocks_found(item); }) : argument;
}

AttrList Schedule::with_blocks_found(const Primitive& primitive, AttrList arguments) {
  for (size_t i = 0; i < std::min(arguments.size(), primitive.params.size()); ++i) {
    const ArgumentKind& kind = primitive.params[i].kind;
    if (!kind.takes_block_names) continue;
    arguments[i] = with_blocks_found(arguments[i]);
    if (kind.is_list && arguments[i].as<Expr>()) arguments[i] = AttrList{arguments[i]};
  }
  return arguments;
}

std::vector<VarRef> Schedule::apply(const Primitive& primitive, const AttrList& arguments, const AttrValue& decision) {
  std::vector<std::string> names = workspace_.take_result_names();
  std::shared_ptr<const void> step = primitive.decode(with_blocks_found(primitive, arguments));
  workspace_.name_results(std::move(names));
  return checked(run(primitive, step.get(), decision));
}

size_t Schedule::map_rank(const Primitive& primitive, AttrList& arguments) {
  if (!primitive.map_rank) fail({}, "{} takes no map", primitive.name);
  arguments = with_blocks_found(primitive, std::move(arguments));
  std::shared_ptr<const void> step = primitive.decode(arguments);
  Outcome<size_t> rank =
      Step(workspace_, primitive.name).run([&](Step& context) { return primitive.map_rank(step.get(), context); });
  if (!rank) throw CompileError({rank.refusal().diagnostic(show_program_)});
  return *rank;
}

}  // namespace relaxc
