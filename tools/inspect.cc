// relaxc inspect: what a model, text or artifact holds. A model is described even where it cannot be compiled.
#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <set>

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
#include "tir/schedule/trace.h"
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

std::string text_of_attr(const AttrValue& value) {
  const auto* text = value.as<std::string>();
  if (const AttrList* list = value.as<AttrList>()) return joined(*list, text_of_attr);
  return text ? *text : to_string(value);
}

std::string json_of_attr(const AttrValue& value) {
  if (const auto* text = value.as<std::string>()) return json_string(*text);
  if (const AttrList* list = value.as<AttrList>()) return fmt::format("[{}]", joined(*list, json_of_attr));
  const Attrs* members = value.as<Attrs>();
  if (!members) return to_string(value);
  auto member = [&](std::string_view key) {
    return fmt::format("{}: {}", json_string(key), json_of_attr(*members->find(key)));
  };
  return fmt::format("{{{}}}", joined(members->ordered_keys(), member));
}

// Prints a list of records as a table without a head, whose columns are as wide as their widest field.
std::string table_of(const AttrList& rows) {
  std::vector<size_t> widths;
  std::vector<std::vector<std::string>> lines;
  for (const AttrValue& row : rows) {
    const Attrs* fields = row.as<Attrs>();
    std::vector<std::string>& line = lines.emplace_back();
    if (!fields) line.push_back(text_of_attr(row));
    for (std::string_view key : fields ? fields->ordered_keys() : std::vector<std::string_view>()) {
      bool is_count = fields->find(key)->as<int64_t>() != nullptr;
      line.push_back(is_count ? fmt::format("{} {}", key, text_of_attr(*fields->find(key)))
                              : text_of_attr(*fields->find(key)));
    }
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  std::string result;
  for (const std::vector<std::string>& line : lines) {
    std::string text = " ";
    for (size_t c = 0; c < line.size(); ++c) text += fmt::format(" {:<{}}", line[c], widths[c]);
    result += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  }
  return result;
}

bool has_texts(const Attrs& members) {
  return std::ranges::any_of(members, [](const auto& entry) { return entry.second.template as<std::string>(); });
}

std::string report_text(const Attrs& report) {
  std::string result;
  for (std::string_view key : report.ordered_keys()) {
    const AttrValue& value = *report.find(key);
    const AttrList* list = value.as<AttrList>();
    bool is_table = list && std::ranges::any_of(*list, [](const AttrValue& item) {
                      const auto* text = item.as<std::string>();
                      return item.as<Attrs>() || (text && text->size() > 40);
                    });
    const Attrs* members = value.as<Attrs>();
    const auto* text = value.as<std::string>();
    bool is_empty = (list && list->empty()) || (members && members->ordered_keys().empty()) || (text && text->empty());
    if (is_empty) continue;
    if (is_table) {
      result += fmt::format("{}:\n{}", key, table_of(*list));
    } else if (members && has_texts(*members)) {
      AttrList rows;
      for (std::string_view name : members->ordered_keys())
        rows.push_back(Attrs{{"", std::string(name)}, {"value", *members->find(name)}});
      result += fmt::format("{}:\n{}", key, table_of(rows));
    } else if (members) {
      auto member = [&](std::string_view name) {
        return fmt::format("{} {}", text_of_attr(*members->find(name)), name);
      };
      result += fmt::format("{}: {}\n", key, joined(members->ordered_keys(), member));
    } else {
      result += fmt::format("{}: {}\n", key, text_of_attr(value));
    }
  }
  return result;
}

AttrList described(const std::vector<vm::ValueInfo>& infos) {
  return map_each(infos, [](const vm::ValueInfo& info) { return AttrValue(vm::to_string(info)); });
}

// Lists graph functions with their types, and tensor programs.
void add_functions(Attrs& report, const IRModule& module) {
  AttrList functions;
  for (const auto& [name, function] : module.functions) {
    const Function* graph = function.as<Function>();
    std::vector<std::string> params;
    for (const VarRef& param : graph ? graph->params : std::vector<VarRef>())
      params.push_back(fmt::format("{}: {}", param->name, print_type(param.type())));
    std::string type = graph ? fmt::format("({}) -> {}", joined(params), print_type(graph->result)) : "tensor program";
    Attrs row{{"name", name}, {"type", type}};
    row.order({"name", "type"});
    functions.push_back(row);
  }
  report.set("functions", functions);
}

// The inputs and outputs of public functions; kernels, by where they come from; constants; what the compiler noted.
Attrs report_of_artifact(const std::string& path) {
  vm::Artifact artifact = vm::load_artifact(path);
  artifact.weights->run();
  const vm::Executable& executable = artifact.executable;
  AttrList functions, kernels;
  const std::string names = copy_value(executable.metadata, vm::kLinkedKernelsKey).value_or("");
  const std::vector<std::string_view> linked = parts_of(names, '\n');
  for (const vm::Function& function : executable.functions) {
    if (!function.is_public) continue;
    Attrs row{
        {"name", function.name}, {"inputs", described(function.inputs)}, {"outputs", described(function.outputs)}};
    row.order({"name", "inputs", "outputs"});
    functions.push_back(row);
  }
  for (const vm::KernelInfo& kernel : executable.kernels) {
    bool is_own = kernel.source == vm::KernelSource::kArtifact;
    bool is_linked = std::ranges::count(linked, std::string_view(kernel.symbol)) > 0;
    Attrs row{{"name", kernel.display_name},
              {"by", is_own ? "machine code"
                            : fmt::format("function '{}' {}", kernel.symbol,
                                          is_linked ? "that is linked in" : "of a library or the host")}};
    row.order({"name", "by"});
    kernels.push_back(row);
  }
  int64_t constant_bytes = 0;
  for (const Tensor& constant : executable.constants) constant_bytes += constant.bytes();
  Attrs metadata;
  for (const auto& [key, value] : executable.metadata) metadata.set(key, value);
  Attrs report{
      {"kind", "artifact"},
      {"bytes", static_cast<int64_t>(artifact.file->bytes().size())},
      {"functions", functions},
      {"constants", Attrs{{"tensors", executable.constants.size()}, {"bytes", constant_bytes}}},
      {"kernels", kernels},
      {"runtime_functions", map_each(executable.builtins, [](const std::string& name) { return AttrValue(name); })},
      {"metadata", metadata}};
  report.order({"kind", "bytes", "functions", "constants", "kernels", "runtime_functions", "metadata"});
  return report;
}

AttrList rows_of(const CallsByName& calls) {
  constexpr size_t kShown = 3;
  AttrList rows;
  for (const auto& [name, call] : calls) {
    Attrs row{{"name", name}, {"calls", call.count}, {"nodes", text_of_nodes(call, kShown)}};
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

// Says what operators become: tensor programs, fused with their neighbours, or functions of the runtime.
// `unconverted` are the types of nodes that nothing implements.
void add_kernels(Attrs& report, IRModule module, CompileSettings settings, const std::set<std::string>& unconverted) {
  // The graph as the pipeline "simplify" leaves it, but for the layouts of weights, which take time to compute.
  settings.passes =
      "lambda_lift,inline_calls,spread_tuples,decompose,recognize,canonicalize,fold_batch_norm,fold_constants,"
      "apply_kernels,decompose_rest,legalize,compose,fuse,remove_dead_code,merge_kernels";
  module = run_pipeline(std::move(module), settings);
  ModuleCalls calls = calls_of(module);
  for (const std::string& type : unconverted) calls.functions.erase(type);
  report.set("kernels", rows_of(calls.programs));
  AttrList called = rows_of(calls.functions);
  for (AttrValue& row : called) {
    Attrs fields = *row.as<Attrs>();
    fields.set("why", why_called(*fields.find("name")->as<std::string>(), tables_of(settings).ops()));
    fields.order({"name", "calls", "nodes", "why"});
    row = fields;
  }
  report.set("runtime_functions", called);
}

// Says how the operators of a text's graph functions are lowered, and the size of its constants.
void add_operators(Attrs& report, const IRModule& module, const OpTable& ops) {
  std::map<std::string, int64_t> counts;
  int64_t tensors = 0, bytes = 0;
  for (const auto& [_, function] : module.functions) {
    if (!function.is<Function>()) continue;
    walk(
        function, [&](const Call& call) { counts[call.callee.is<OpRef>() ? call.callee.as<OpRef>()->name : ""] += 1; },
        [&](const Constant& constant) { ++tensors, bytes += constant.data.bytes(); });
  }
  AttrList rows;
  for (const auto& [name, count] : counts) {
    const OpRow* row = ops.find(name);
    if (!row) continue;
    std::string by = !row->why.empty()           ? "does not run here: " + row->why
                     : !row->why_runtime.empty() ? "a function of the runtime"
                     : row->legalize             ? "a tensor program"
                     : row->decompose            ? "other operators"
                     : has_lowering(*row)        ? "bytecode"
                                                 : "unsupported";
    Attrs fields{{"operator", "R." + name.substr(name.find('.') + 1)}, {"nodes", count}, {"by", by}};
    fields.order({"operator", "nodes", "by"});
    rows.push_back(fields);
  }
  report.set("operators", rows);
  report.set("weights", Attrs{{"tensors", tensors}, {"bytes", bytes}});
}

// A node that cannot be compiled can get a kernel, whatever the reason is.
std::string remedy_for(const Diagnostic& diagnostic) {
  if (diagnostic.kind != ErrorKind::kUnsupported || !diagnostic.span || diagnostic.span.origin->op_type.empty())
    return "";
  if (diagnostic.message.find("@S.implements") != std::string::npos) return "";
  std::string type = diagnostic.span.origin->op_type;  // "com.me.FancyGelu", or "Relu" of ai.onnx
  size_t dot = type.rfind('.');
  type = dot == std::string::npos ? "ai.onnx::" + type : type.substr(0, dot) + "::" + type.substr(dot + 1);
  return fmt::format("\n  note: a kernel can be given for it: --kernels FILE with @S.implements(\"{}\")", type);
}

Attrs report_of_model(const InspectCommand& command, bool is_text) {
  CompileSettings settings = command.compiler.get(command.file);
  ImportOptions options;
  options.converters = tables_of(settings).converters();
  Attrs report = is_text ? Attrs() : summarize_onnx(command.file, options);
  AttrList problems;
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
    std::ranges::for_each(error.diagnostics(), add_problem);
  }
  report.set("kind", is_text ? "text" : "ONNX model");
  report.set("problems", problems);
  report.order({"kind", "ir_version", "producer", "opsets", "functions", "inputs", "outputs", "dims", "weights",
                "weight_dtypes", "operators", "kernels", "runtime_functions", "problems"});
  return report;
}

// Returns whether the file begins with these bytes.
bool begins_with(const std::string& path, std::string_view bytes) {
  std::ifstream file(path, std::ios::binary);
  std::string head(bytes.size(), '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == bytes;
}

int run(const InspectCommand& command) {
  const std::string& file = command.file;
  bool is_artifact = file.ends_with(".so") || begins_with(file,
                                                          "\x7f"
                                                          "ELF");
  bool is_text = is_text_path(split_text_path(file).file);
  Attrs report = is_artifact ? report_of_artifact(file) : report_of_model(command, is_text);
  command.json ? print_text(json_of_attr(report) + "\n") : print_message("{}", report_text(report));
  return kRight;
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
