// What the subcommands of relaxc share: options, inputs, outputs, exit codes. The compiler itself is used through its
// C++ API (codegen/compile.h, vm/program.h) only.
#pragma once
#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/compile.h"
#include "support/printable.h"
#include "vm/output_file.h"

namespace relaxc::tools {

// Exit codes, everywhere.
enum ExitCode : int { kRight = 0, kWrong = 1, kUsage = 2, kUnsupported = 3 };

// Lines for a person, on standard output: control characters in names that they quote are escaped. Throws RuntimeError
// when they cannot be written, as print_text does.
template <class... Args>
void print_message(fmt::format_string<Args...> format, Args&&... args) {
  vm::print_to(stdout, printable_lines(fmt::format(format, std::forward<Args>(args)...)));
}
// A module, code or figures as they are, for programs to read.
inline void print_text(std::string_view text) { vm::print_to(stdout, text); }
// A mistake on the command line (ValidationError) where the output would replace the file that is read.
void check_output(const std::string& output, const std::string& input);
// To the file; "-" is standard output.
void write_text(const std::string& path, std::string_view text);
// Lines for a person, on standard error. When they cannot be written there is nobody to tell.
template <class... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(printable_lines(fmt::format(format, std::forward<Args>(args)...)).c_str(), stderr);
}

// Options of the compiler, for every subcommand that compiles.
struct CompilerOptions {
  CompileSettings settings;
  std::vector<std::string> fixed_dims;
  std::string verify_each = "group";
  std::string print_after;
  std::string gather = "error";
  std::string schedules;  // a file
  void add_to(CLI::App& app);
  // With the texts parsed; schedules also from the model's file, where they may stand beside its programs.
  CompileSettings get(const std::string& model) const;
};
// Whether the file, a text, holds schedules (@S.schedule, @S.rule).
bool holds_schedules(const std::string& file);

// Where inputs come from: .npy files by name, .pb files by position, else random values in declared shapes.
struct InputOptions {
  std::vector<std::string> named;       // x=x.npy
  std::vector<std::string> positional;  // in0.pb in1.pb
  std::vector<std::string> dims;        // batch=4, for random inputs
  uint64_t seed = 0;
  void add_to(CLI::App& app);
  std::vector<Tensor> make(const Program& program) const;
};

// PREFIX_0.pb, PREFIX_1.pb ... of a folder, as many as there are, up to one more than `dtypes`, so that the counts can
// be compared.
std::vector<Tensor> read_numbered(const std::string& folder, const char* prefix,
                                  const std::vector<std::optional<DType>>& dtypes);
// input_0.pb ... for the program's inputs.
std::vector<Tensor> read_inputs(const std::string& folder, const Program& program);
// output_0.pb ... for these results.
std::vector<Tensor> read_outputs(const std::string& folder, const std::vector<Tensor>& results);

// "batch=4" to {"batch", 4}; throws CLI::ValidationError otherwise.
std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& texts);

// "name  float32[1, 10]  min ... max ... mean ...  [0.1, 0.2, ...]".
std::string summary(const std::string& name, const Tensor& tensor);

// Each subcommand: adds itself to the app; its callback returns through `exit_code`.
void add_run(CLI::App& app, int& exit_code);
void add_compile(CLI::App& app, int& exit_code);
void add_opt(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_text(CLI::App& app, int& exit_code);  // fmt, check, diff

}  // namespace relaxc::tools
