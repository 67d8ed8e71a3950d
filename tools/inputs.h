// Flags that commands share: numbers, dims, threads, and the inputs of a run. They need the runtime only.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/picture.h"
#include "tools/values.h"

namespace relaxc::tools {

// Splits NAME=VALUE at the first '=' whose parts fit, since names of a model may contain the character too; else at
// the first one. Throws CLI::ValidationError that shows the example where there is none.
std::pair<std::string, std::string> split_at_equals(
    const std::string& text, const char* example,
    const std::function<bool(const std::string& name, const std::string& value)>& fits);
// Returns whether the second text is the path of a file.
bool names_file(const std::string& name, const std::string& path);
// Returns whether the text is a value or file without the name of an input.
bool is_nameless(const std::string& text);

// Reports a mistake on the command line (ValidationError) where the output would replace the file that is read.
void check_output(const std::string& output, const std::string& input);
// Throws CLI::ValidationError where an output would replace one of the inputs, or another output. "" and "-" are none.
void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs);
// Throws CompileError if the folder of an output is missing or cannot be written to. Commands ask before long work.
void check_writable(const std::vector<std::string>& outputs);
// Does so where results in this folder, output_0.npy and so on, would replace one of the inputs.
void check_output_folder(const std::string& folder, const std::vector<std::string>& inputs);

// Accept a whole number, or any number, of this range.
CLI::Validator whole_number_in(int64_t least, int64_t most);
CLI::Validator number_from(double least);
// Accepts any number but infinities and NaN.
CLI::Validator finite_number();
CLI::Validator number_in(double least, double most);
// Accepts one of these texts. Completions offer them (choices_of).
CLI::Validator one_of(const std::vector<std::string>& choices);
// Accepts any text. Completions offer these examples (examples_of).
CLI::Validator such_as(const std::vector<std::string>& examples);
// Return the texts that such a validator of the option lists; none for another option.
std::vector<std::string> choices_of(const CLI::Option& option);
std::vector<std::string> examples_of(const CLI::Option& option);
constexpr int64_t kMostRuns = 1'000'000'000;
// Adds --threads.
void add_threads(CLI::App& app, int& threads);
// Adds --memory-limit, as which SessionOptions take it.
void add_memory_limit(CLI::App& app, int64_t& bytes);
// Adds --rtol and --atol, whose values are the defaults; `what` stands before their descriptions.
void add_tolerances(CLI::App& app, double& rtol, double& atol, const std::string& what = "");

// Parses "batch=4" to {"batch", 4}. Throws CLI::ValidationError for other forms.
std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& texts);

// Parses "past_0=present_0", an input and the output that is its next value. Throws CLI::ValidationError for other
// forms.
std::pair<std::string, std::string> parse_cache(const std::string& text);

// A size of --dim is another one than that of an input that is given; no settings make such a run right.
struct Contradiction : CompileError {
  using CompileError::CompileError;
};

// The sources of inputs: files and values by name, files by position, else random values in declared shapes.
struct InputOptions {
  // Reports --mean and --scale where no input is an image.
  void check_picture() const;
  // Reports a name of --dim that no input has.
  void check_dims(const std::vector<vm::ValueInfo>& inputs) const;
  // Returns the files that the inputs may be read from.
  std::vector<std::string> files() const;
  std::vector<std::string> named;       // x=x.npy, or x.npy for the only input, or all.npz
  std::vector<std::string> positional;  // in0.pb in1.pb
  std::vector<std::string> dims;        // batch=4, for random inputs
  uint64_t seed = 0;
  RandomIntegers integers;
  bool has_fixed_dims = false;
  PictureOptions picture;
  FileReaders readers;  // of messages of ONNX
  void add_to(CLI::App& app);
  // Adds --mean and --scale.
  void add_picture(CLI::App& app);
  // Adds --fix-dims to a command that compiles and runs.
  void add_fix_dims(CLI::App& app);
  // Dims of these names are numbers in the types of the inputs.
  std::vector<vm::Value> make(const std::vector<vm::ValueInfo>& inputs,
                              const std::map<std::string, int64_t>& fixed = {}) const;
  // Makes them from these values, and _ for random ones. `notes`, unless it is null, gets what was converted.
  std::vector<vm::Value> make(const std::vector<vm::ValueInfo>& inputs, std::vector<WrittenValue> written,
                              std::vector<std::string>* notes) const;
  // Returns what the flags give for each input, and _ for the others.
  std::vector<WrittenValue> given(const std::vector<vm::ValueInfo>& inputs) const;
  // Reports options that contradict the inputs of a folder of reference data.
  void check(const std::vector<vm::ValueInfo>& inputs, const std::vector<vm::Value>& given,
             const std::map<std::string, int64_t>& fixed = {}) const;
};

// Returns the sizes for which an artifact was compiled, besides these.
std::map<std::string, int64_t> fixed_dims_of(const Program& program, std::map<std::string, int64_t> dims = {});

}  // namespace relaxc::tools
