// relaxc compile: compiles to an artifact, or to the text of any level.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "codegen/bytecode.h"
#include "codegen/target.h"
#include "ir/attr_names.h"
#include "ir/text/printer.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"
#include "tir/rules/builtin_rules.h"
#include "tir/schedule/draw.h"
#include "tir/schedule/schedule.h"
#include "tir/schedule/script.h"
#include "tir/schedule/tuning_database.h"
#include "tools/accuracy.h"
#include "tools/kernel_calls.h"
#include "tools/progress_line.h"
#include "tools/tool.h"
#include "vm/disassembler.h"
#include "vm/output_file.h"
#include "vm/user_library.h"

namespace relaxc::tools {

namespace {

// A text of the compilation, and the file to which it goes ("-": standard output); "" where the command does not say.
struct Emitted {
  std::string level, file;
};

struct CompileCommand {
  std::string model, output;
  std::vector<std::string> emit;  // LEVEL or LEVEL=FILE
  PrintedConstants constants;
  CompilerOptions compiler;
  CacheOptions cache;
  CalibrationOptions checked{.flag = "--check-inputs", .paths = {}};
};

// The program that a schedule works on: its name, and that of the program in it that a rule names, if it is another.
struct ScheduledProgram {
  std::string name, part;
  explicit ScheduledProgram(const Schedule& schedule)
      : name(schedule.module().functions.begin()->first),
        part(schedule.function()->attrs.get_string(attr_names::kScheduledPart, "")) {
    if (part == name) part.clear();
  }
};

// Returns the steps on one program, which do not name it: those of a schedule beside the module may.
Trace steps_on_program(const Schedule& schedule) {
  Trace trace = schedule.trace();
  for (TraceStep& step : trace.steps) {
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      const scheduling::Param& param = step.primitive->params[i];
      if (param.name == "func_name") step.arguments[i] = *param.otherwise;
    }
  }
  return trace;
}

// Prints the steps that the rule took, as a schedule for the program that it took them on. That fusion makes the same
// program again, the schedule has to say which one in it a rule named. Steps on a module with several functions print
// as steps beside it.
std::string definition(const std::string& rule, const Schedule& schedule) {
  if (schedule.module().functions.size() > 1)
    return "# steps beside the module, in its file\nsch = tvm.tir.Schedule(Module)\n" + schedule.trace().text();
  std::string text = steps_on_program(schedule).text();
  auto indented = [](std::string_view line) { return fmt::format("    {}\n", line); };
  ScheduledProgram program(schedule);
  return fmt::format("@S.schedule(\"{}\")\n{}def {}(sch):\n{}", program.name,
                     program.part.empty() ? "" : fmt::format("@S.rule(\"{}\")\n", program.part), rule,
                     text.empty() ? indented("pass") : joined(parts_of(text, '\n'), indented, ""));
}

// Prints the rule with all of the decisions that it took for the program.
std::string use_of(const std::string& rule, const Schedule& schedule, const Decisions& decisions) {
  Attrs values;
  for (const Decision& decision : decisions.all()) values.set(decision.name, decision.value);
  ScheduledProgram program(schedule);
  return fmt::format("S.use(\"{}\", function=\"{}\"{}, decisions={})\n", rule, program.name,
                     program.part.empty() ? "" : fmt::format(", op=\"{}\"", program.part),
                     to_string(AttrValue(values)));
}

// Adds the intrinsics that the trace uses and that are not built in.
void add_used_intrins(const Schedule& schedule, TensorIntrins& to) {
  for (const TraceStep& step : schedule.trace().steps) {
    if (step.primitive->name != std::string_view("tensorize")) continue;
    const TensorIntrin* used = schedule.intrins().find(*step.arguments[1].as<std::string>());
    const TensorIntrin* known = builtin_tensor_intrins().find(used->name);
    if (!known || !same_node(known->description, used->description)) to.add(*used);
  }
}

// Prints steps and decisions as a file of schedules that repeats them: the steps of the user's rules, and the decisions
// of built-in ones. The steps that follow from these are comments.
std::string traces(const std::string& model, CompileSettings settings) {
  std::vector<std::pair<std::string, std::string>> scheduled;  // the program, and what was done
  std::map<std::string, std::string> decided;                  // by rule and operator
  TensorIntrins intrins;
  settings.scheduled = [&](const ScheduleRule& rule, const Schedule& schedule, const Decisions& decisions) {
    std::string steps = definition(rule.name, schedule);
    auto comment = [](std::string_view line) { return fmt::format("# {}\n", line); };
    bool is_built_in = find_builtin_rule(rule.name) == &rule;
    if (is_built_in) steps = use_of(rule.name, schedule, decisions) + joined(parts_of(steps, '\n'), comment, "");
    bool is_module = schedule.module().functions.size() > 1;
    scheduled.emplace_back(is_module ? "" : ScheduledProgram(schedule).name, std::move(steps));
    add_used_intrins(schedule, intrins);
  };
  settings.decided = [&](const std::string& rule, const std::string& op, const Decision& decision) {
    if (decision.value == decision.formula) return;
    decided[fmt::format("S.use({}, at={}", to_string(AttrValue(rule)), to_string(AttrValue(op)))] +=
        fmt::format(", {}={}", decision.name, to_string(decision.value));
  };
  const IRModule module = run_pipeline(read_scheduled_module(model, settings), settings);
  const CallsByName calls = calls_of(module).programs;
  // The steps are commented out: their comments have two signs.
  auto steps_with_nodes = [&](const auto& entry) {
    const std::string nodes = nodes_comment(calls, entry.first);
    return (nodes.empty() ? "" : "# " + nodes) + entry.second;
  };
  std::vector<std::string> parts = map_each(scheduled, steps_with_nodes);
  auto use = [](const auto& entry) { return fmt::format("{}{})\n", entry.first, entry.second); };
  std::string uses = joined(decided, use, "");
  if (!uses.empty()) parts.insert(parts.begin(), uses);
  if (!intrins.names().empty()) parts.insert(parts.begin(), print_intrins(intrins));
  return joined(parts, "\n");
}

// Writes the steps of all rules as tuning records, with the programs as they were before.
void write_database(const std::string& model, const std::string& folder, CompileSettings settings) {
  if (settings.passes == "default") settings.passes = "simplify,kernels";
  CompileSettings before = settings;
  before.runner.stop_after = "check_lowerable";
  before.report = nullptr;
  before.warn = nullptr;
  std::map<std::string, PrimFuncRef> programs;
  for (const auto& [name, program] : programs_of(run_pipeline(read_module(model, before), before)))
    programs.emplace(name, program);
  std::vector<TunedProgram> tuned;
  settings.scheduled = [&](const ScheduleRule&, const Schedule& schedule, const Decisions&) {
    if (schedule.module().functions.size() > 1) return;  // steps beside a module: a record is of one program
    std::string name = schedule.module().functions.begin()->first;
    if (auto it = programs.find(name); it != programs.end())
      tuned.push_back({name, it->second, steps_on_program(schedule)});
  };
  run_pipeline(read_scheduled_module(model, settings), settings);
  std::ranges::sort(tuned, {}, &TunedProgram::name);
  vm::make_folder(folder);
  std::filesystem::path path = folder;
  write_text((path / kWorkloads).string(), print_workloads(tuned));
  write_text((path / kTuningRecords).string(), print_tuning_records(tuned, codegen::parse_target(settings.target)));
}

// Returns the text of a module with the nodes of each tensor program in a comment above it.
std::string with_nodes(const std::string& text, const CallsByName& calls) {
  constexpr std::string_view kDecorator = "@T.prim_func", kDef = "def ";
  std::string result;
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line(text.data() + at, end - at), next(text.data() + end, text.size() - end);
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (line.substr(indent).starts_with(kDecorator) && next.substr(std::min(indent, next.size())).starts_with(kDef)) {
      const std::string_view head = next.substr(indent + kDef.size());
      const std::string comment = nodes_comment(calls, std::string(head.substr(0, head.find('('))));
      if (!comment.empty()) result += std::string(indent, ' ') + comment;
    }
    result += line;
  }
  return result;
}

// Returns the text of the level. Machine code is compiled once for all levels that need it.
std::string emit(const CompileCommand& options, const std::string& level, const CompileSettings& settings,
                 std::optional<CompiledModule>& compiled) {
  bool is_graph = level == "graph";
  if (is_graph || level == "tir" || level == "loops" || level == "trace") {
    CompileSettings shorter = settings;
    if (settings.passes == "default") shorter.passes = is_graph ? "simplify" : "simplify,kernels";
    if (level == "trace") return traces(options.model, shorter);
    IRModule module = run_pipeline(read_scheduled_module(options.model, settings), shorter);
    const PrintOptions print = options.constants.get(options.compiler.files(options.model));
    if (is_graph) return print_module(module, print);
    const CallsByName calls = calls_of(module).programs;
    if (level == "tir") return with_nodes(print_module(module, print), calls);
    auto drawing_of = [&](const auto& entry) {
      return nodes_comment(calls, entry.first) + draw_loops(entry.first, entry.second);
    };
    return joined(programs_of(module), drawing_of, "\n");
  }
  if (!compiled) compiled = compile(read_scheduled_module(options.model, settings), settings);
  for (const codegen::Backend::Text& text : codegen::backend_of(compiled->target()).texts) {
    if (level == text.level) return text.print(compiled->kernels(), compiled->target(), settings);
  }
  return vm::disassemble(compiled->executable());
}

// Says which kernels in C are not in the artifact, nor in a library that it names.
void note_kernels_of_host(const CompiledModule& compiled, const std::vector<std::string>& of_host) {
  const vm::Executable& executable = compiled.executable();
  auto names = [&](std::string_view key) {
    const std::string* lines = find_value(executable.metadata, std::string(key));
    return lines ? parts_of(*lines, '\n') : std::vector<std::string_view>();
  };
  vm::UserLibraries libraries;
  for (std::string_view path : names(vm::kNeededLibrariesKey))
    libraries.push_back(vm::UserLibrary::open(std::string(path), vm::UserLibrary::Table::kOptional));
  vm::Registry registry;
  vm::add_libraries(libraries, registry);
  const std::vector<std::string_view> linked = names(vm::kLinkedKernelsKey);
  auto is_of_host = [&](const std::string& symbol) {  // "f*" stands for all names that begin so
    return std::ranges::any_of(of_host, [&](std::string_view name) {
      return name.ends_with('*') ? symbol.starts_with(name.substr(0, name.size() - 1)) : symbol == name;
    });
  };
  for (const vm::KernelInfo& kernel : executable.kernels) {
    const std::string& symbol = kernel.symbol;
    if (kernel.source != vm::KernelSource::kRegistry || std::ranges::count(linked, symbol) > 0 ||
        registry.find_kernel(symbol) || registry.find_tensor_kernel(symbol) || is_of_host(symbol))
      continue;
    print_note(
        "note: kernel '{0}' is not in the artifact: link the file that has it (--link FILE), or, where the program "
        "that "
        "loads the artifact registers it, name it (--host-symbols {0})\n",
        printable(symbol));
  }
}

// Returns where each level goes. One alone goes to -o or to standard output; of several each names its file, but for
// one, and -o is the artifact.
std::vector<Emitted> emitted(CompileCommand& options) {
  std::vector<Emitted> result;
  for (const std::string& text : options.emit) {
    const size_t equals = text.find('=');
    result.push_back({text.substr(0, equals), equals == std::string::npos ? "" : text.substr(equals + 1)});
    if (equals != std::string::npos && result.back().file.empty())
      throw CLI::ValidationError(fmt::format("--emit {}: a file is missing behind '='", text));
  }
  if (result.size() == 1 && result[0].file.empty()) result[0].file = std::exchange(options.output, "");
  for (Emitted& one : result) {
    const bool is_database = one.level == "database";
    if (is_database && (one.file.empty() || one.file == "-"))
      throw CLI::ValidationError(
          "tuning records are two files: give their folder, -o FOLDER or --emit database=FOLDER");
    if (one.file.empty()) one.file = "-";
  }
  return result;
}

// Each module that is printed has other constants.
void check_constants_file(const CompileCommand& options, const std::vector<Emitted>& levels) {
  const auto modules =
      std::ranges::count_if(levels, [](const Emitted& one) { return one.level == "graph" || one.level == "tir"; });
  if (!options.constants.file.empty() && modules != 1)
    throw CLI::ValidationError(
        "--constants is one file, for the constants of one module: --emit=graph and --emit=tir have different ones, so "
        "give it with one of these, and the other one in a run of its own");
}

int run(CompileCommand options) {
  const std::vector<Emitted> levels = emitted(options);
  check_constants_file(options, levels);
  std::vector<std::string> outputs = map_each(levels, &Emitted::file);
  for (const Emitted& one : levels) {
    if (one.level != "database") continue;
    for (const char* file : {kWorkloads, kTuningRecords}) outputs.push_back(one.file + "/" + file);
  }
  outputs.insert(outputs.end(), {options.output, options.constants.file});
  check_outputs(outputs, options.compiler.files(options.model));
  CompileSettings settings = options.compiler.get(options.model);
  if (options.checked.has_samples())
    report_accuracy(options.model, options.compiler, 0,
                    [&](const auto& inputs) { return options.checked.samples(inputs, {}); });
  std::optional<CompiledModule> known;
  for (const Emitted& one : levels) {
    if (one.level == "database")
      write_database(options.model, one.file, settings);
    else
      write_text(one.file, emit(options, one.level, settings, known));
  }
  if (!levels.empty() && options.output.empty()) return kRight;
  if (options.output.empty() && options.checked.has_samples()) return kRight;
  if (options.output.empty()) throw CLI::ValidationError("give -o FILE.so, or --emit=LEVEL to print");
  if (options.output == "-" && isatty(STDOUT_FILENO) == 1)
    throw CLI::ValidationError("an artifact is not for a terminal: give -o FILE.so, or let a pipe or file take it");
  if (options.output == "-") options.output = "/dev/stdout";
  settings.store = kernels_in(options.cache.get(options.compiler, options.model));
  CompiledModule compiled = compile_file(options.model, settings);
  compiled.write(options.output);
  std::string line = fmt::format("{}: {} for {}\n", options.output, counted(compiled.kernels().size(), "kernel"),
                                 compiled.target().cpu);
  // When the artifact goes to standard output, a line after it would damage it.
  progress_line().end();
  note_kernels_of_host(compiled, settings.host_symbols);
  if (vm::is_standard_output(options.output)) {
    print_note("{}", line);
  } else if (!console().quiet) {
    print_message("{}", line);
  }
  return kRight;
}

}  // namespace

void add_compile(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CompileCommand>();
  CLI::App* command = app.add_subcommand("compile", "compile a model (.onnx) or module (.py) to an artifact");
  command->add_option("model", options->model, "the file")->required();
  command->add_option("-o,--output", options->output,
                      "the artifact (.so), or the text file with --emit (-: standard output)");
  std::vector<std::string> levels{"graph", "tir", "loops", "trace", "database", "bytecode"};
  for (const codegen::Backend& backend : codegen::backends()) {
    for (const codegen::Backend::Text& text : backend.texts) levels.push_back(text.level);
  }
  auto is_level = [levels](const std::string& text) {
    const std::string level = text.substr(0, text.find('='));
    return std::ranges::count(levels, level) ? ""
                                             : fmt::format("'{}' is not a level; there are {}", level, joined(levels));
  };
  command->add_option("--emit", options->emit, "print a level instead, or write it to a file beside the artifact")
      ->type_name("LEVEL[=FILE]")
      ->check(CLI::Validator(is_level, "{" + joined(levels, ",") + "}").name(one_of(levels).get_name()))
      ->allow_extra_args(false);
  command->add_option("--check-inputs", options->checked.paths,
                      "print the error of --precision against float32 for these inputs: files and folders");
  options->constants.add_to(*command);
  options->compiler.add_dims(*command);
  options->compiler.add_to(*command);
  options->cache.add_to(*command);
  command->footer(
      "Example: relaxc compile model.onnx -o model.so\n         relaxc compile model.onnx --emit=tir\n"
      "         relaxc compile model.onnx -o model.so --emit tir=model.py --emit asm=model.s");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace relaxc::tools
