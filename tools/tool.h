// Options, inputs, outputs and exit codes, which the subcommands of relaxc share. They use the compiler only through
// its C++ API (codegen/compile.h, vm/program.h).
#pragma once
#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/artifact_cache.h"
#include "codegen/compile.h"
#include "tools/console.h"
#include "tools/picture.h"
#include "tools/values.h"

namespace relaxc::tools {

// Reports a mistake on the command line (ValidationError) where the output would replace the file that is read.
void check_output(const std::string& output, const std::string& input);

// Accept a whole number, or any number, of this range.
CLI::Validator whole_number_in(int64_t least, int64_t most);
CLI::Validator number_from(double least);
constexpr int64_t kMostThreads = 1024, kMostRuns = 1'000'000'000;
// Adds --threads.
void add_threads(CLI::App& app, int& threads);
// Adds --rtol and --atol, whose values are the defaults; `what` stands before their descriptions.
void add_tolerances(CLI::App& app, double& rtol, double& atol, const std::string& what = "");

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
  // Adds --dim to a command that only compiles.
  void add_dims(CLI::App& app);
  // Returns the settings with the texts parsed. Schedules come also from the model's file, beside its programs.
  CompileSettings get(const std::string& model) const;
  // Returns the files with kernels and schedules that get() reads.
  std::vector<std::string> rule_files(const std::string& model) const;

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
};

// Adds --plugin, which all subcommands have.
void add_plugins(CLI::App& app, std::vector<std::string>& plugins);

// The sources of inputs: .npy files by name, .pb files by position, else random values in declared shapes.
struct InputOptions {
  std::vector<std::string> named;       // x=x.npy, or x.npy for the only input, or all.npz
  std::vector<std::string> positional;  // in0.pb in1.pb
  std::vector<std::string> dims;        // batch=4, for random inputs
  uint64_t seed = 0;
  bool has_fixed_dims = false;
  PictureOptions picture;
  void add_to(CLI::App& app);
  // Adds --mean and --scale.
  void add_picture(CLI::App& app);
  // Adds --fix-dims to a command that compiles and runs. With it, fix_dims() compiles for the values of --dim only.
  void add_fix_dims(CLI::App& app);
  void fix_dims(const std::string& model, CompilerOptions& compiler) const;
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
  std::vector<vm::Value> make(const std::vector<vm::ValueInfo>& inputs, std::vector<WrittenValue> written,
                              std::vector<std::string>* notes) const;
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
void add_cache(CLI::App& app, int& exit_code);
void add_help(CLI::App& app);

// Returns what `relaxc --version` prints.
std::string version_report();
// Returns what is wrong with the command line, and the nearest command or flag that it may mean.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace relaxc::tools
