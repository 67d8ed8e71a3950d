// Options, inputs, outputs and exit codes, which the subcommands of relaxc share. They use the compiler only through
// its C++ API (codegen/compile.h, vm/program.h).
#pragma once
#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/compile.h"
#include "support/printable.h"
#include "tools/values.h"
#include "vm/output_file.h"

namespace relaxc::tools {

// The exit codes of all subcommands.
enum ExitCode : int { kRight = 0, kWrong = 1, kUsage = 2, kUnsupported = 3 };

// Prints lines for a person to standard output, with control characters in quoted names escaped. Throws RuntimeError
// when they cannot be written, as print_text does.
template <class... Args>
void print_message(fmt::format_string<Args...> format, Args&&... args) {
  vm::print_to(stdout, printable_lines(fmt::format(format, std::forward<Args>(args)...)));
}
// Prints a module, code or figures unchanged, for programs to read.
inline void print_text(std::string_view text) { vm::print_to(stdout, text); }
// Reports a mistake on the command line (ValidationError) where the output would replace the file that is read.
void check_output(const std::string& output, const std::string& input);
// Writes to the file; "-" is standard output.
void write_text(const std::string& path, std::string_view text);
// Prints lines for a person to standard error. A failure to write them is ignored, because it cannot be reported.
template <class... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(printable_lines(fmt::format(format, std::forward<Args>(args)...)).c_str(), stderr);
}

// The files of a folder that MetaSchedule's tuners write.
inline constexpr const char *kTuningRecords = "database_tuning_record.json", *kWorkloads = "database_workload.json";

// The options of the compiler, for every subcommand that compiles.
struct CompilerOptions {
  CompileSettings settings;
  std::vector<std::string> fixed_dims, bound, types;
  std::string verify_each = "group";
  std::string print_after;
  std::string gather = "error";
  std::string schedules;                       // a file, or a folder of tuning records
  std::vector<std::string> kernels;            // files
  std::vector<std::string> plugins, backends;  // files
  void add_to(CLI::App& app);
  // Returns the settings with the texts parsed. Schedules come also from the model's file, beside its programs.
  CompileSettings get(const std::string& model) const;

 private:
  std::string flags_of_passes(const std::vector<std::string>& files) const;
};
// Returns whether the file is a text that holds schedules (@S.schedule, @S.rule).
bool holds_schedules(const std::string& file);

// Adds --plugin, which all subcommands have.
void add_plugins(CLI::App& app, std::vector<std::string>& plugins);

// The sources of inputs: .npy files by name, .pb files by position, else random values in declared shapes.
struct InputOptions {
  std::vector<std::string> named;       // x=x.npy
  std::vector<std::string> positional;  // in0.pb in1.pb
  std::vector<std::string> dims;        // batch=4, for random inputs
  uint64_t seed = 0;
  void add_to(CLI::App& app);
  // Returns the options with names of buffers in place of the handles by which the programs of a text get them.
  InputOptions with_buffer_names(const std::string& model) const;
  // Dims of these names are numbers in the types of the inputs.
  std::vector<vm::Value> make(const std::vector<vm::ValueInfo>& inputs,
                              const std::map<std::string, int64_t>& fixed = {}) const;
  // Reports options that contradict the inputs of a folder of reference data.
  void check(const std::vector<vm::ValueInfo>& inputs, const std::vector<vm::Value>& given,
             const std::map<std::string, int64_t>& fixed = {}) const;
  // Returns the types of the tensors and sequences of tensors among the inputs that are given, or that lie in the
  // folder of reference data, unless its name is empty. Their dims are numbers.
  std::map<std::string, Type> types(const std::vector<vm::ValueInfo>& inputs, const std::string& folder) const;
  // Returns the types of the inputs that are files (.npy).
  std::map<std::string, Type> types() const;

 private:
  std::vector<WrittenValue> given(const std::vector<vm::ValueInfo>& inputs) const;
};

// Reads input_0.pb ... for the inputs.
std::vector<vm::Value> read_inputs(const std::string& folder, const std::vector<vm::ValueInfo>& inputs);
// Reads output_0.pb ... for these results.
std::vector<vm::Value> read_outputs(const std::string& folder, const std::vector<NamedValue>& results);

// Parses "batch=4" to {"batch", 4}. Throws CLI::ValidationError for other forms.
std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& texts);

// Returns a line for each result that differs from the expected one by more than these tolerances (tools/compare.h).
std::vector<std::string> differences(const std::vector<NamedValue>& results, const std::vector<vm::Value>& expected,
                                     double rtol, double atol);

// Describes the ONNX operators that can be imported: docs/operators.md (tools/operators.cc).
std::string describe_onnx_operators(const CompileSettings& settings);

// Each of these adds its subcommand to the app. The subcommand's callback returns its result through `exit_code`.
void add_run(CLI::App& app, int& exit_code);
void add_compile(CLI::App& app, int& exit_code);
void add_opt(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_reduce(CLI::App& app, int& exit_code);
void add_text(CLI::App& app, int& exit_code);  // fmt, check, diff

}  // namespace relaxc::tools
