// relaxc inspect: what a model, text or artifact holds. A model is described even where it cannot be compiled.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "codegen/text_file.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/summary.h"
#include "ir/kernel_call.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "ir/text/printer.h"
#include "passes/runner.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/library_file.h"
#include "tools/inspect_artifact.h"
#include "tools/kernel_calls.h"
#include "tools/tool.h"
#include "vm/artifact.h"

namespace relaxc::tools {

namespace {

struct InspectCommand {
  std::string file;
  CompilerOptions compiler;
  bool json = false;
};

// Returns what an importer says as a report.
ReportValue value_of(const AttrValue& value);  // NOLINT: bounded
Report report_of(const Attrs& attrs) {         // NOLINT: bounded
  Report report;
  for (std::string_view key : attrs.ordered_keys()) report.set(std::string(key), value_of(*attrs.find(key)));
  return report;
}
ReportValue value_of(const AttrValue& value) {  // NOLINT: bounded
  if (const auto* text = value.as<std::string>()) return *text;
  if (const auto* list = value.as<AttrList>()) return map_each(*list, value_of);
  if (const auto* members = value.as<Attrs>()) return report_of(*members);
  if (const auto* integer = value.as<int64_t>()) return *integer;
  if (const auto* flag = value.as<bool>()) return *flag;
  if (const auto* number = value.as<double>()) return *number;
  return to_string(value);
}

// Lists graph functions with their types, and tensor programs.
void add_functions(Report& report, const IRModule& module) {
  ReportList functions;
  for (const auto& [name, function] : module.functions) {
    const Function* graph = function.as<Function>();
    std::vector<std::string> params;
    for (const VarRef& param : graph ? graph->params : std::vector<VarRef>())
      params.push_back(fmt::format("{}: {}", param->name, print_type(param.type())));
    std::string type = graph ? fmt::format("({}) -> {}", joined(params), print_type(graph->result)) : "tensor program";
    Report row{{"name", name}, {"type", type}};
    row.order({"name", "type"});
    functions.push_back(row);
  }
  report.set("functions", functions);
}

ReportList rows_of(const CallsByName& calls) {
  constexpr size_t kShown = 3;
  ReportList rows;
  for (const auto& [name, call] : calls) {
    Report row{{"name", name}, {"calls", call.count}, {"nodes", text_of_nodes(call, kShown)}};
    row.order({"name", "calls", "nodes"});
    rows.push_back(row);
  }
  return rows;
}

// Returns why the function of the runtime is called; "" for a function of the host, or one without an operator.
std::string why_called(const std::string& symbol, const OpTable& ops) {
  for (const OpRow& row : ops.rows()) {
    std::string builtin = "vm.builtin." + row.name.substr(row.name.find('.') + 1);
    std::ranges::replace(builtin.begin() + std::ssize(std::string("vm.builtin.")), builtin.end(), '.', '_');
    if (builtin == symbol) return row.why_runtime;
  }
  return "";
}

// Returns the passes from operators to fused kernels, as a compilation runs them, but for those that choose layouts,
// pack weights and schedule kernels: these take time, and kernels keep their names.
std::string passes_to_kernels(const Tables& tables) {
  constexpr std::string_view kLeftOut[] = {"lower_precision", "pack_quantized", "choose_layouts",  "pack_weights",
                                           "note_constants",  "schedule",       "rewrite_weights", "fuse_loops"};
  std::string result;
  for (const char* name : {"simplify", "kernels"}) {
    const Pipeline& pipeline = *std::ranges::find(tables.pipelines(), name, &Pipeline::name);
    for (const std::string& pass : pipeline.passes) {
      if (std::ranges::count(kLeftOut, pass) == 0) result += (result.empty() ? "" : ",") + pass;
    }
  }
  return result;
}

// Says what operators become: tensor programs, fused with their neighbours, or functions of the runtime.
// `unconverted` are the types of nodes that nothing implements.
void add_kernels(Report& report, IRModule module, CompileSettings settings, const std::set<std::string>& unconverted) {
  settings.passes = passes_to_kernels(tables_of(settings));
  module = run_pipeline(std::move(module), settings);
  ModuleCalls calls = calls_of(module);
  for (const std::string& type : unconverted) calls.functions.erase(type);
  report.set("kernels", rows_of(calls.programs));
  ReportList called = rows_of(calls.functions);
  for (ReportValue& row : called) {
    Report fields = *row.as<Report>();
    fields.set("why", why_called(*fields.find("name")->as<std::string>(), tables_of(settings).ops()));
    fields.order({"name", "calls", "nodes", "why"});
    row = fields;
  }
  report.set("runtime_functions", called);
}

// Says how the operators of a text's graph functions are lowered, and the size of its constants.
void add_operators(Report& report, const IRModule& module, const OpTable& ops) {
  std::map<std::string, int64_t> counts;
  int64_t tensors = 0, bytes = 0;
  for (const auto& [_, function] : module.functions) {
    if (!function.is<Function>()) continue;
    walk(
        function, [&](const Call& call) { counts[call.callee.is<OpRef>() ? call.callee.as<OpRef>()->name : ""] += 1; },
        [&](const Constant& constant) { ++tensors, bytes += constant.data.bytes(); });
  }
  ReportList rows;
  for (const auto& [name, count] : counts) {
    const OpRow* row = ops.find(name);
    if (!row) continue;
    std::string by = !row->why.empty()           ? "does not run here: " + row->why
                     : !row->why_runtime.empty() ? "a function of the runtime"
                     : row->legalize             ? "a tensor program"
                     : row->decompose            ? "other operators"
                     : has_lowering(*row)        ? "bytecode"
                                                 : "unsupported";
    Report fields{{"operator", "R." + name.substr(name.find('.') + 1)}, {"nodes", count}, {"by", by}};
    fields.order({"operator", "nodes", "by"});
    rows.push_back(fields);
  }
  report.set("operators", rows);
  report.set("weights", Report{{"bytes", bytes}, {"tensors", tensors}});
}

// A node that cannot be compiled can get a kernel, whatever the reason is.
std::string remedy_for(const Diagnostic& diagnostic) {
  if (diagnostic.kind != ErrorKind::kUnsupported || !diagnostic.span || diagnostic.span.origin->op_type.empty())
    return "";
  if (diagnostic.message.find("@S.implements") != std::string::npos) return "";
  std::string type = diagnostic.span.origin->op_type;  // "com.me::FancyGelu", or "Relu" of ai.onnx
  if (type.find("::") == std::string::npos) type = "ai.onnx::" + type;
  return fmt::format("\n  note: a kernel can be given for it: --kernels FILE with @S.implements(\"{}\")", type);
}

bool is_about_dims(const CompileError& error, const std::map<std::string, int64_t>& dims) {
  return std::ranges::any_of(dims, [&](const auto& dim) {
    return std::string_view(error.what()).find(fmt::format("no symbolic dim '{}'", dim.first)) != std::string::npos;
  });
}

Report report_of_model(const InspectCommand& command, bool is_text) {
  CompileSettings settings = command.compiler.get(command.file);
  ImportOptions options;
  options.converters = tables_of(settings).converters();
  Report report = is_text ? Report() : report_of(summarize_onnx(command.file, options));
  ReportList problems;
  std::set<std::string> unconverted;
  auto add_problem = [&](const Diagnostic& diagnostic) {
    std::string text = to_string(diagnostic);
    problems.push_back(text.substr(0, text.find_last_not_of('\n') + 1) + remedy_for(diagnostic));
  };
  settings.unconverted = [&](const UnconvertedNode& node) {
    if (!node.follows) std::ranges::for_each(node.why, add_problem);
    if (node.node) unconverted.insert(node.node.origin->op_type);
  };
  try {
    IRModule module = read_scheduled_module(command.file, settings);
    if (is_text) add_functions(report, module);
    if (is_text) add_operators(report, module, tables_of(settings).ops());
    add_kernels(report, std::move(module), settings, unconverted);
  } catch (const CompileError& error) {
    if (is_about_dims(error, settings.dims)) throw;  // a mistake of the command line, not of the model
    std::ranges::for_each(error.diagnostics(), add_problem);
  }
  report.set("kind", is_text ? "text" : "ONNX model");
  report.set("problems", problems);
  report.order({"kind", "ir_version", "producer", "opsets", "functions", "inputs", "outputs", "dims", "weights",
                "weight_dtypes", "operators", "kernels", "runtime_functions", "problems"});
  return report;
}

int run(const InspectCommand& command) {
  const std::string& file = command.file;
  bool is_text = is_text_file(split_text_path(file).file);
  const bool is_artifact = is_library_file(file);
  if (is_artifact && !command.compiler.fixed_dims.empty())
    fail({}, "--dim is for models: an artifact is described for all dims; 'relaxc bench {} --dim {}' measures a run",
         printable(file), printable(command.compiler.fixed_dims.front()));
  if (is_artifact) check_settings_of_artifact(file, command.compiler.get(file));
  Report report = is_artifact ? report_of_artifact(file) : report_of_model(command, is_text);
  command.json ? print_text(report.json() + "\n") : print_message("{}", report.text());
  // A text with mistakes is wrong; a model with operators that are not supported may be right.
  const ReportValue* problems = is_text ? report.find("problems") : nullptr;
  const ReportList* list = problems ? problems->as<ReportList>() : nullptr;
  return list && !list->empty() ? kWrong : kRight;
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<InspectCommand>();
  CLI::App* command = app.add_subcommand("inspect", "say what a model, module or artifact holds");
  command->add_option("file", options->file, "the file (.onnx, .py or .so)")->required();
  command->add_flag("--json", options->json, "print it as JSON");
  options->compiler.add_dims(*command);
  options->compiler.add_to(*command);
  command->footer("Example: relaxc inspect model.onnx");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace relaxc::tools
