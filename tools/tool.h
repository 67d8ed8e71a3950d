// Options, inputs, outputs and exit codes, which the subcommands of relaxc share. They use the compiler only through
// its C++ API (codegen/compile.h, vm/program.h).
#pragma once
#include <CLI/CLI.hpp>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/artifact_cache.h"
#include "codegen/compile.h"
#include "codegen/rule_files.h"
#include "ir/text/printer.h"
#include "tools/console.h"
#include "tools/inputs.h"

namespace relaxc::tools {

// The options of the compiler, for every subcommand that compiles.
struct CompilerOptions {
  CompileSettings settings;
  std::vector<std::string> fixed_dims, ranges, bound, types;
  std::string verify_each = "group";
  std::string print_after;
  std::string schedules;                       // a file, or a folder of tuning records
  std::vector<std::string> kernels;            // files
  std::vector<std::string> plugins, backends;  // files
  // The notes and warnings of all compilations of the command, each of which is printed once.
  std::shared_ptr<std::set<std::string>> said = std::make_shared<std::set<std::string>>();
  void add_to(CLI::App& app);
  // Adds --dim and --host-symbols to a command that only compiles.
  void add_dims(CLI::App& app);
  // Returns the model's file and all others that the flags name, which no output may replace.
  std::vector<std::string> files(const std::string& model) const;
  // Returns the settings with the texts parsed. Schedules come also from the model's file, beside its programs.
  CompileSettings get(const std::string& model) const;
  // Returns the files with kernels and schedules that get() reads.
  std::vector<std::string> rule_files(const std::string& model) const;
  // Sets what flags say about params of the function: values, types.
  void set_params(CompileSettings& result) const;

 private:
  std::string flags_of_passes(const std::vector<std::string>& files) const;
};
// Returns whether the file is a text that holds schedules (@S.schedule, @S.rule).
bool holds_schedules(const std::string& file);

// The cache of artifacts, for subcommands that compile a model in order to run it (codegen/artifact_cache.h).
struct CacheOptions {
  std::string folder = default_cache_folder();
  bool off = false;
  void add_to(CLI::App& app);
  ArtifactCache get(const CompilerOptions& compiler, const std::string& model) const;
  // Returns the bytes that are free in the folder's file system; nullopt where there is no folder.
  std::optional<uint64_t> free_bytes() const;
  // Returns why models may not be kept there, each with what to do about it.
  std::vector<std::string> problems() const;
  // Loads the model's artifact from the cache, or compiles the model. -v tells which of the two, and why.
  CachedProgram load(const std::string& model, const CompileSettings& settings, const CompilerOptions& compiler) const;
  // Says so where the flags of the cache change nothing, since all of the files are compiled. One may be "".
  void note_artifacts(const std::vector<std::string>& files) const;
};

// Returns the settings for one of two files that are run side by side: those of the compiler belong to the model where
// the other file is an artifact, which is compiled already, and of which only the function is picked.
CompileSettings settings_beside(const std::string& file, const std::string& other, const CompileSettings& settings);

// Adds --plugin, which all subcommands have.
void add_plugins(CLI::App& app, std::vector<std::string>& plugins);

// The flags that say which constants a printed module has in full: only then can it be read back.
struct PrintedConstants {
  std::string file;  // for the larger ones
  std::optional<int64_t> most_elements;
  void add_to(CLI::App& app);
  // Returns the options of the printer, with which nothing replaces the inputs.
  PrintOptions get(const std::vector<std::string>& inputs) const;
};

// Adds the flags of inputs, files of ONNX's messages included.
void add_inputs(CLI::App& app, InputOptions& inputs);
// With --fix-dims, lets the compiler compile for the sizes of --dim only.
void fix_dims(const InputOptions& inputs, const std::string& model, CompilerOptions& compiler);
// Returns the options with names of buffers in place of the handles by which the programs of a text get them.
InputOptions with_buffer_names(const InputOptions& inputs, const std::string& model);
// Returns the types of the tensors and sequences of tensors among the inputs that are given, or that lie in the
// folder of reference data, unless its name is empty. Their dims are numbers.
std::map<std::string, Type> types_of_inputs(const InputOptions& options, const std::vector<vm::ValueInfo>& inputs,
                                            const std::string& folder);
// Returns the types of the inputs that are files (.npy).
std::map<std::string, Type> types_of_files(const InputOptions& inputs);

// Reads input_0.pb ... for the inputs.
std::vector<vm::Value> read_inputs(const std::string& folder, const std::vector<vm::ValueInfo>& inputs);
// Reads output_0.pb ... for these results.
std::vector<vm::Value> read_outputs(const std::string& folder, const std::vector<NamedValue>& results);

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
void add_generate(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_reduce(CLI::App& app, int& exit_code);
void add_debug(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_text(CLI::App& app, int& exit_code);  // fmt, check, diff
void add_quantize(CLI::App& app, int& exit_code);
void add_cache(CLI::App& app, int& exit_code);
void add_view(CLI::App& app, int& exit_code);
void add_compare(CLI::App& app, int& exit_code);

}  // namespace relaxc::tools
