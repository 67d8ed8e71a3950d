// relaxc fmt, check and diff: format, verify and compare modules as text.
#include <limits>
#include <memory>

#include "codegen/text_file.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"
#include "ir/visit.h"
#include "passes/kernel_rules.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "tir/lower/lower.h"
#include "tir/schedule/script.h"
#include "tools/tool.h"

namespace relaxc::tools {

namespace {

struct TextOptions {
  std::string file, other, dialect = "0.23";
  PrintedConstants constants;
  bool in_place = false;
  std::vector<std::string> plugins, kernels;
  CompileSettings settings() const {
    CompileSettings result;
    result.tables = load_plugins(plugins);
    return result;
  }
};

std::string canonical(const TextOptions& options) {
  PrintOptions print = options.constants.get({options.file});
  print.dialect = options.dialect == "0.26" ? Dialect::kTvm26 : Dialect::kTvm23;
  // A text keeps all of its constants. A model's weights are left out when there is not a file for them.
  const bool is_model = !is_text_file(split_text_path(options.file).file),
             keeps_all = !is_model && options.constants.file.empty();
  if (keeps_all && options.constants.most_elements)
    throw CLI::ValidationError("--inline of a text needs --constants FILE for the larger constants");
  if (keeps_all) print.inline_elements = std::numeric_limits<int64_t>::max();
  if (is_model && options.in_place) throw CLI::ValidationError("-i writes text; '" + options.file + "' is a model");
  bool has_steps = !is_model && read_module_schedule(read_text(split_text_path(options.file).file), options.file);
  if (has_steps || holds_schedules(options.file)) {
    if (options.in_place)
      fail({}, "'{}' holds kernels or schedules (@S), which would be lost: keep them in a file of their own",
           options.file);
    print_note("warning: the kernels and schedules (@S) in '{}' are not printed\n", options.file);
  }
  return print_module(read_module(options.file, options.settings()), print);
}

int format(const TextOptions& options) {
  std::string text = canonical(options);
  write_text(options.in_place ? options.file : "-", text);
  return kRight;
}

// Returns the kernels of a file of --kernels, text or library. Its schedules are read, too.
std::vector<KernelRule> kernels_of(const std::string& file, const TextOptions& options) {
  CompilerOptions compiler;
  compiler.kernels = {file};
  compiler.plugins = options.plugins;
  const CompileSettings settings = compiler.get("");
  return settings.kernels ? *settings.kernels : std::vector<KernelRule>();
}

// Adds what the work throws to the problems.
template <class Work>
void collect(Diagnostics& problems, const Work& work) {
  try {
    work();
  } catch (const CompileError& error) {
    for (const Diagnostic& diagnostic : error.diagnostics()) problems.add(diagnostic);
  }
}

int check(const TextOptions& options) {
  // The functions that could be read are verified too, in spite of errors elsewhere.
  Diagnostics problems;
  const CompileSettings settings = options.settings();
  IRModule module = read_module(options.file, settings, problems);
  verify(module, tables_of(settings).ops(), problems);
  if (!problems.has_errors()) verify_ranges(module, Ranges::kAxes, problems);
  std::vector<KernelRule> rules;
  collect(problems, [&] {
    if (!problems.has_errors() && is_text_file(options.file))
      rules = read_kernel_rules(read_text(options.file), options.file, tables_of(settings).ops(), nullptr, &problems);
  });
  for (const std::string& file : options.kernels)
    collect(problems, [&] { std::ranges::move(kernels_of(file, options), std::back_inserter(rules)); });
  if (module.functions.empty() && rules.empty() && problems.all().empty() && !holds_schedules(options.file))
    fail({}, "'{}' has no function: expected @R.function, @T.prim_func, or a class of them with @I.ir_module",
         options.file);
  IRModule kernels = programs_of_rules(rules), programs = module;
  programs.functions.merge(kernels.functions);
  for (const auto& [_, program] : programs_of(programs)) collect(problems, [&] { check_annotations(program); });
  problems.throw_if_errors();
  for (const Diagnostic& warning : problems.all()) print_error("{}", to_string(warning));
  const std::string found = rules.empty()       ? ""
                            : rules.size() == 1 ? ", 1 kernel or pattern"
                                                : fmt::format(", {} kernels and patterns", rules.size());
  const std::string warnings = problems.all().empty() ? "" : ", " + counted(problems.all().size(), "warning");
  print_message("{}: {}{}, no errors{}\n", options.file, counted(module.functions.size(), "function"), found, warnings);
  return kRight;
}

int diff(const TextOptions& options) {
  const CompileSettings settings = options.settings();
  IRModule a = read_module(options.file, settings), b = read_module(options.other, settings);
  Difference difference;
  if (structural_equal(a, b, {.difference = &difference, .print = print_node})) {
    print_message("equal\n");
    return kRight;
  }
  print_message("{}\n", printable(difference.text, std::string::npos));
  for (const Span& place : {difference.left, difference.right}) {
    if (place) print_message("{}\n{}", to_string(place), source_excerpt(place));
  }
  return kWrong;
}

}  // namespace

void add_text(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TextOptions>();
  CLI::App* formatter = app.add_subcommand("fmt", "print a module (.py or .onnx) as canonical text");
  formatter->add_option("file", options->file, "the file")->required();
  formatter->add_option("--dialect", options->dialect, "spelling of TVM 0.23 or 0.26")
      ->check(one_of({"0.23", "0.26"}))
      ->capture_default_str();
  options->constants.add_to(*formatter);
  formatter->add_flag("-i,--in-place", options->in_place, "write the text back to the file");
  add_plugins(*formatter, options->plugins);
  formatter->footer("Example: relaxc fmt model.onnx --constants model.safetensors > model.py");
  formatter->callback([options, &exit_code] { exit_code = format(*options); });

  CLI::App* checker = app.add_subcommand("check", "read and verify a module, and report every error");
  checker->add_option("file", options->file, "the file")->required();
  checker
      ->add_option("--kernels", options->kernels,
                   "a file of kernels and schedules, or a library of C kernels (.so), that is checked too, repeatable")
      ->check(CLI::ExistingFile)
      ->allow_extra_args(false);
  add_plugins(*checker, options->plugins);
  checker->footer("Example: relaxc check module.py");
  checker->callback([options, &exit_code] { exit_code = check(*options); });

  CLI::App* differ = app.add_subcommand("diff", "show the first difference of two modules");
  differ->add_option("a", options->file, "a file")->required();
  differ->add_option("b", options->other, "another file")->required();
  add_plugins(*differ, options->plugins);
  differ->footer("Example: relaxc diff before.py after.py");
  differ->callback([options, &exit_code] { exit_code = diff(*options); });
}

}  // namespace relaxc::tools
