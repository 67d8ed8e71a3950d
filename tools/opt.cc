// relaxc opt: runs passes on a module and prints the result, finds a pass that is wrong, or lists tables.

#include <algorithm>
#include <exception>
#include <memory>

#include "codegen/bisect.h"
#include "ir/text/printer.h"
#include "passes/graph_decisions.h"
#include "passes/kernel_rules.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/analysis/annotations.h"
#include "tir/primitives/primitive.h"
#include "tir/rules/builtin_rules.h"
#include "tir/schedule/script.h"
#include "tools/run_progress.h"
#include "tools/tool.h"

namespace relaxc::tools {

namespace {

struct OptOptions {
  PrintedConstants constants;
  std::string model;
  CompilerOptions compiler;
  std::vector<void (*)(const OptOptions&, const Tables&)> lists;  // the lists to print
  bool bisect = false;
  std::string reference;  // a folder
  InputOptions inputs;
  double rtol = 1e-3, atol = 1e-5;
};

using Kind = Tables::Kind;

// Returns " [libmine.so]" for a row of a plug-in.
std::string origin(const Tables& tables, Kind kind, const std::string& name) {
  std::string plugin = tables.origin(kind, name);
  return plugin.empty() ? "" : fmt::format(" [{}]", plugin);
}

// Prints the rules of --kernels that --passes may name.
void list_rules_of_kernels(const CompileSettings& settings) {
  std::string text;
  for (const KernelRule& rule : settings.kernels ? *settings.kernels : std::vector<KernelRule>()) {
    if (rule.pass) text += fmt::format("{:28} {} [{}]\n", rule.name, rule.pass->doc, to_string(rule.span));
  }
  if (!text.empty()) print_message("\nrules of --kernels:\n{}", text);
}

void list_passes(const OptOptions& options, const Tables& tables) {
  for (bool over_modules : {true, false}) {
    print_message("{}", over_modules ? "passes over modules:\n" : "\npasses over one tensor program each:\n");
    for (const Pass& pass : tables.passes()) {
      if (over_modules == (pass.on_module != nullptr))
        print_message("{:28} {}{}\n", pass.name, pass.doc, origin(tables, Kind::kPass, pass.name));
    }
  }
  print_message("\npipelines:\n");
  for (const Pipeline& pipeline : tables.pipelines())
    print_message("{:28} {}{}\n{:28} = {}\n", pipeline.name, pipeline.doc,
                  origin(tables, Kind::kPipeline, pipeline.name), "", joined(pipeline.passes, ","));
  list_rules_of_kernels(options.compiler.get(options.model));
}

void list_ops(const OptOptions&, const Tables& tables) {
  for (const OpRow& row : tables.ops().rows()) {
    std::vector<std::string> arguments = map_each(row.inputs, [](const OpInput& input) {
      if (input.arity == OpInput::Arity::kOptional) return fmt::format("[{}]", input.name);
      return (input.arity == OpInput::Arity::kVariadic ? "*" : "") + std::string(input.name);
    });
    for (const OpAttr& attr : row.attrs)
      arguments.push_back(fmt::format("{}={}", attr.name, to_string(attr.otherwise)));
    print_message("R.{}({})\n    {}{}{}{}\n", row.name.substr(6), joined(arguments), row.doc,
                  row.pure ? "" : " (side effects)", has_lowering(row) ? "" : " (types only)",
                  origin(tables, Kind::kOperator, row.name));
    if (!row.why.empty()) print_message("    does not run here: {}\n", row.why);
    if (!row.why_runtime.empty()) print_message("    a function of the runtime: {}\n", row.why_runtime);
  }
}

void list_all_ops(const OptOptions& options, const Tables& tables) {
  list_ops(options, tables);
  for (const OnnxConverter& row : tables.converters())
    print_message("ONNX operator {}{}\n", row.name, origin(tables, Kind::kConverter, row.name));
}

void list_decisions(const std::string& name, const std::string& op, const std::string& doc,
                    const std::vector<DecisionRow>& decisions) {
  print_message("{} ({}): {}\n", name, op.empty() ? "any operator" : op, doc);
  size_t width = 16;
  for (const DecisionRow& row : decisions) width = std::max(width, row.name.size());
  for (const DecisionRow& row : decisions)
    print_message("    {:{}} {}\n{:{}} = {}\n", row.name, width, row.doc, "", width + 4, row.formula);
}

void list_rules(const OptOptions&, const Tables& tables) {
  print_message("rules of tensor programs, in the order in which they are tried:\n");
  for (const std::vector<ScheduleRule>* rules : {&tables.rules().rules, &builtin_schedule_rules()}) {
    for (const ScheduleRule& rule : *rules)
      list_decisions(rule.name, rule.op, rule.doc + origin(tables, Kind::kRule, rule.name), rule.decisions);
  }
  print_message("\ndecisions about operators of the graph:\n");
  for (const GraphRule& rule : graph_rules()) list_decisions(rule.name, rule.op, rule.doc, rule.decisions);
}

void list_intrins(const OptOptions& options, const Tables& tables) {
  print_message("{}", describe_intrins(tables.intrins()));
  const std::string& file = options.compiler.schedules;
  if (!file.empty()) print_message("\nin {}:\n{}", file, describe_intrins(read_tensor_intrins(read_text(file), file)));
}

struct List {
  const char *flag, *doc;
  void (*print)(const OptOptions&, const Tables&);
};
constexpr List kLists[] = {
    {"--list-passes", "the passes and pipelines", list_passes},
    {"--list-ops", "the operators", list_all_ops},
    {"--list-onnx-ops", "the ONNX operators with their dtypes and how they are lowered (docs/operators.md)",
     [](const OptOptions& options, const Tables&) {
       print_text(describe_onnx_operators(options.compiler.get(options.model)));
     }},
    {"--list-primitives", "the primitives of schedules and their arguments",
     [](const OptOptions&, const Tables&) { print_message("{}", scheduling::describe_primitives()); }},
    {"--list-annotations", "the annotations of loops, blocks and allocations",
     [](const OptOptions&, const Tables&) { print_message("{}", describe_annotations()); }},
    {"--list-rules", "rules, their decisions and formulas", list_rules},
    {"--list-intrins", "tensor intrinsics, built in and of --schedules, and the features that they need", list_intrins},
};

std::vector<vm::Value> values_of(const std::vector<NamedValue>& results) {
  return map_each(results, [](const NamedValue& result) {
    std::optional<Tensor> tensor = as_tensor(result);
    return tensor ? vm::Value(*tensor) : result.value;
  });
}

int bisect(const OptOptions& options, const CompileSettings& settings) {
  std::vector<vm::Value> inputs, expected;
  int num_runs = 0;
  // What is wrong with the inputs or the reference is no difference of results, as which find_culprit() takes errors.
  std::exception_ptr unusable;
  auto keeping_error = [&](const std::function<void()>& read) {
    try {
      read();
    } catch (...) {
      unusable = std::current_exception();
      throw;
    }
  };
  // Compares the runs of one program after the other with reference results: those of the first program, the module as
  // it was read, in the interpreter, or the files of a folder.
  auto difference = [&](const Program& program) -> std::string {
    bool is_first = inputs.empty() && expected.empty(), has_files = !options.reference.empty();
    const vm::Function& function = program.function(settings.function);
    if (is_first)
      keeping_error([&] {
        inputs = has_files ? read_inputs(options.reference, function.inputs)
                           : with_buffer_names(options.inputs, options.model).make(function.inputs);
        if (has_files) options.inputs.check(function.inputs, inputs);
      });
    const vm::Value result = run_in_search(program, inputs, function, ++num_runs);
    std::vector<NamedValue> results = flat_results(result, function.outputs);
    if (is_first)
      keeping_error([&] { expected = has_files ? read_outputs(options.reference, results) : values_of(results); });
    if (results.size() != expected.size())
      return fmt::format("{} results, expected {}", results.size(), expected.size());
    std::vector<std::string> wrong = differences(results, expected, options.rtol, options.atol);
    return wrong.empty() ? "" : wrong.front();
  };
  PassContext context = pass_context(settings);
  std::optional<Culprit> culprit;
  try {
    culprit = find_culprit(read_scheduled_module(options.model, settings), passes_of(settings, context.target),
                           settings, difference, [](const std::string& line) { print_note("{}\n", line); });
  } catch (const CompileError&) {
    if (unusable) std::rethrow_exception(unusable);
    throw;
  }
  if (!culprit) {
    print_message("no pass changes the results, nor does code generation\n");
    return kRight;
  }
  print_message("pass: {}\n", culprit->pass);
  if (!culprit->program.empty()) print_message("tensor program: {}\n", culprit->program);
  print_message("difference: {}\n", culprit->difference);
  if (!culprit->reproducer.empty())
    print_message("reproducer: {}\n",
                  reproducing_command(culprit->reproducer, culprit->pass, settings, settings.runner));
  return kWrong;
}

int run(const OptOptions& options) {
  if (!options.lists.empty()) {
    std::shared_ptr<const Tables> added = options.compiler.get(options.model).tables;
    for (auto* print : options.lists) print(options, added ? *added : builtin_tables());
    return kRight;
  }
  if (options.model.empty()) throw CLI::ValidationError("give a file, or one of " + joined(kLists, &List::flag));
  CompileSettings settings = options.compiler.get(options.model);
  if (options.bisect) return bisect(options, settings);
  settings.dims = parse_dims(options.inputs.dims);
  const PrintOptions print = options.constants.get(options.compiler.files(options.model));
  print_text(print_module(run_pipeline(read_scheduled_module(options.model, settings), settings), print));
  return kRight;
}

}  // namespace

void add_opt(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* command = app.add_subcommand("opt", "run passes on a model or module and print the result");
  command->add_option("model", options->model, "the file (.onnx or .py)");
  for (const List& list : kLists)
    command->add_flag_callback(list.flag, [options, print = list.print] { options->lists.push_back(print); }, list.doc);
  command->add_flag("--bisect", options->bisect,
                    "find the pass and the tensor program that make the results of a run wrong (docs/relaxc.md)");
  command->add_option("--reference", options->reference, "for --bisect: a folder of input_N.pb and output_N.pb")
      ->check(CLI::ExistingDirectory);
  add_tolerances(*command, options->rtol, options->atol, "for --bisect: ");
  add_inputs(*command, options->inputs);
  options->constants.add_to(*command);
  options->compiler.add_to(*command);
  command->footer("Example: relaxc opt model.onnx --passes=canonicalize,fold_constants");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace relaxc::tools
