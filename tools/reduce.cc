// relaxc reduce: shrinks a model that fails. Every candidate runs in processes of `relaxc run`, so that crashes count.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "codegen/text_file.h"
#include "frontend/onnx/reduce.h"
#include "frontend/onnx/test_data.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/temporary_folder.h"
#include "tools/process.h"
#include "tools/progress_line.h"
#include "tools/tool.h"

namespace relaxc::tools {

namespace {

namespace fs = std::filesystem;

struct ReduceOptions {
  std::string model, output = "reduced";
  InputOptions inputs;
  std::string reference, test, message;
  double rtol = 1e-3, atol = 1e-5, limit = 60;
  std::vector<std::string> run_flags;  // of relaxc run
};

// How a model fails: "" when it does not.
struct Failure {
  std::string kind;       // "crash", "hang", "error", "wrong result", "test", or kOpenDims
  std::string text = {};  // for people
  std::string key = {};   // what is compared: of an error, the message without names and numbers
  bool same_as(const Failure& other) const { return kind == other.kind && key == other.key; }
};

// Returns "wrong result: ...". The text of an error begins with the word already.
std::string text_of(const Failure& failure) {
  const std::string kind = failure.kind + ": ";
  return failure.text.starts_with(kind) ? failure.text : kind + failure.text;
}

// A model that runs, but cannot be compiled for all sizes of its symbolic dims: `relaxc run` then is for those of its
// inputs, and says so.
constexpr const char* kOpenDims = "error for all shapes";

// The first line with "error:", from there on, without quoted names, digits and the dims that stand at its end.
std::string key_of_message(const std::string& text) {
  size_t at = text.find("error: ");
  std::string line = at == std::string::npos ? text : text.substr(at + 7);
  line = line.substr(0, line.find('\n'));
  if (line.ends_with(')')) line = line.substr(0, line.rfind(" ("));
  std::string key;
  bool is_quoted = false;
  for (char c : line) {
    if (c == '\'') is_quoted = !is_quoted;
    if (!is_quoted && !std::isdigit(static_cast<unsigned char>(c))) key += c;
  }
  return key;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string quoted_for_shell(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

// Runs candidates in a folder of their own.
class Trials {
 public:
  explicit Trials(const ReduceOptions& options) : options_(options), folder_(make_temporary_folder("relaxc-reduce")) {
    if (folder_.empty()) throw_runtime_error("cannot make a folder for temporary files: {}", std::strerror(errno));
    if (!options.reference.empty() && !is_command(options.reference)) read_expected_names();
  }
  ~Trials() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Trials(const Trials&) = delete;
  Trials& operator=(const Trials&) = delete;

  bool has_expected_outputs() const { return !expected_names_.empty(); }
  int count() const { return count_; }
  // Keeps the folder of the last model that was observed.
  void copy_to(const std::string& place) const {
    fs::create_directories(place);
    fs::copy(folder_, place, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }

  // The model's failure. `wanted` says what is looked for, and spares runs that cannot show it.
  Failure observe(const ModelCase& model, const Failure* wanted = nullptr) {
    ++count_;
    progress_line().show(fmt::format("trial {}", count_));
    InterruptScope::check();
    write(model);
    if (!options_.test.empty()) return observe_test();
    Failure open;
    bool may_be_wrong = !wanted || wanted->kind == "wrong result";
    if (!wanted || wanted->kind != "wrong result") {
      Outcome outcome = run_tool({});
      Failure failure = failure_of(outcome);
      if (!failure.kind.empty()) return failure;
      open = failure_of_open_dims(outcome);
      if (!may_be_wrong) return open;
    }
    if (!make_reference()) return open;
    Outcome outcome = run_tool({"--test-data", data(), "--rtol", fmt::format("{}", options_.rtol), "--atol",
                                fmt::format("{}", options_.atol)});
    size_t at = outcome.err.find("wrong result: ");
    if (at == std::string::npos) {
      Failure failure = failure_of(outcome);
      return failure.kind.empty() ? open : failure;
    }
    return {"wrong result", outcome.err.substr(at, outcome.err.find('\n', at) - at)};
  }

  // The outputs' values, by the interpreter; none where it does not run to its end.
  std::map<std::string, vm::Value> record(const ModelCase& model) {
    progress_line().show("recording values in the interpreter");
    write(model);
    fs::path results = folder_ / "recorded";
    fs::remove_all(results);
    Outcome outcome = run_tool({"--interpret", "--format", "pb", "--output-dir", results.string()});
    std::map<std::string, vm::Value> values;
    std::vector<std::string> names = outputs_of_onnx(model.model);
    for (size_t i = 0; outcome.exit_code == 0 && i < names.size(); ++i) {
      try {
        values[names[i]] = read_tensor_pb((results / fmt::format("output_{}.pb", i)).string());
      } catch (const CompileError&) {  // a sequence, say
      }
    }
    fs::remove_all(results);
    return values;
  }

 private:
  static bool is_command(const std::string& reference) { return reference.find("{}") != std::string::npos; }
  std::string model_path() const { return (folder_ / "model.onnx").string(); }
  std::string data() const { return (folder_ / "test_data_set_0").string(); }

  // Test data names outputs by position.
  void read_expected_names() {
    std::vector<std::string> names = outputs_of_onnx(read_text(options_.model));
    for (size_t i = 0; i < names.size(); ++i) {
      std::string file = fmt::format("{}/output_{}.pb", options_.reference, i);
      if (fs::exists(file)) expected_names_[names[i]] = file;
    }
    if (expected_names_.empty())
      fail({}, "--reference '{}' is neither a folder with output_0.pb nor a command with {{}}", options_.reference);
  }

  void write(const ModelCase& model) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) fs::remove_all(entry);
    fs::create_directories(data());
    vm::write_file(model_path(), model.model);
    files_.clear();
    names_ = outputs_of_onnx(model.model);
    for (const vm::ValueInfo& info : inputs_of_onnx(model.model)) {
      std::string file = fmt::format("{}/input_{}.pb", data(), files_.size());
      auto it = model.inputs.find(info.name);
      if (it == model.inputs.end()) fail({}, "input '{}' has no value", info.name);
      write_value_pb(file, it->second, info.name, info.is_optional);
      files_.push_back(file);
    }
  }

  // `relaxc run` on the model and its inputs.
  Outcome run_tool(const std::vector<std::string>& flags) {
    std::vector<std::string> command = {fs::read_symlink("/proc/self/exe").string(), "run", model_path()};
    command.insert(command.end(), options_.run_flags.begin(), options_.run_flags.end());
    command.insert(command.end(), flags.begin(), flags.end());
    bool has_data = std::ranges::count(flags, "--test-data") > 0;
    if (!files_.empty() && !has_data) {
      command.push_back("--input-pb");
      command.insert(command.end(), files_.begin(), files_.end());
    }
    return run_program(command, options_.limit);
  }

  Outcome run_command(const std::string& command, const std::string& place) const {
    return run_program({"/bin/sh", "-c", replaced(command, "{}", quoted_for_shell(place))}, options_.limit);
  }

  Failure observe_test() const {
    Outcome outcome = run_command(options_.test, model_path());
    if (outcome.exit_code == 127 || outcome.exit_code == 126)
      fail({}, "--test '{}' cannot be run: {}", options_.test, outcome.err);
    if (outcome.exit_code != 0) return {};
    return {"test", "the command of --test exits with 0"};
  }

  // Writes output_N.pb of the reference into the data. Returns false where there is none for this candidate.
  bool make_reference() {
    if (has_expected_outputs()) {
      for (size_t i = 0; i < names_.size(); ++i) {
        auto it = expected_names_.find(names_[i]);
        if (it == expected_names_.end()) return false;
        fs::copy_file(it->second, fmt::format("{}/output_{}.pb", data(), i));
      }
      return true;
    }
    if (is_command(options_.reference)) {
      Outcome outcome = run_command(options_.reference, folder_.string());
      if (outcome.exit_code != 0 && count_ == 1)
        fail({}, "the command of --reference failed: {}\n{}", outcome.how_it_ended(), outcome.err);
    } else {
      Outcome outcome = run_tool({"--interpret", "--format", "pb", "--output-dir", data()});
      if (outcome.exit_code != 0) return false;
    }
    return fs::exists(data() + "/output_0.pb");
  }

  Failure failure_of(Outcome outcome) const {
    outcome.err = replaced(outcome.err, model_path(), "model.onnx");
    if (outcome.timed_out) return {"hang", outcome.how_it_ended()};
    if (outcome.signal != 0) return {"crash", outcome.how_it_ended(), std::to_string(outcome.signal)};
    if (outcome.exit_code == kRight) return {};
    std::string first = outcome.err.substr(0, outcome.err.find('\n'));
    if (!options_.message.empty()) {
      if (outcome.err.find(options_.message) == std::string::npos) return {};
      return {"error", first, options_.message};
    }
    bool is_crash = outcome.err.find("segmentation fault") != std::string::npos;
    return {is_crash ? "crash" : "error", first, key_of_message(outcome.err)};
  }

  Failure failure_of_open_dims(const Outcome& outcome) const {
    constexpr std::string_view kNote = "for all shapes: ";
    size_t at = outcome.err.find(kNote);
    if (at == std::string::npos) return {};
    std::string why = replaced(outcome.err.substr(at + kNote.size()), model_path(), "model.onnx");
    why = why.substr(0, why.find('\n'));
    if (options_.message.empty()) return {kOpenDims, why, key_of_message(why)};
    return why.find(options_.message) == std::string::npos ? Failure{} : Failure{kOpenDims, why, options_.message};
  }

  const ReduceOptions& options_;
  fs::path folder_;
  std::map<std::string, std::string> expected_names_;  // of outputs: the files of --reference
  std::vector<std::string> files_, names_;             // of the model that was written last
  int count_ = 0;
};

ModelCase read_case(const ReduceOptions& options) {
  ModelCase model = read_model_case(options.model);
  std::vector<vm::ValueInfo> infos = inputs_of_onnx(model.model);
  bool has_data = fs::exists(options.reference + "/input_0.pb");
  std::vector<vm::Value> values = has_data ? read_inputs(options.reference, infos) : options.inputs.make(infos);
  if (values.size() != infos.size()) fail({}, "{} inputs are given, the model has {}", values.size(), infos.size());
  for (size_t i = 0; i < infos.size(); ++i) model.inputs[infos[i].name] = values[i];
  return model;
}

std::string how_it_passed(const ReduceOptions& options) {
  if (!options.test.empty()) return "the command of --test does not exit with 0";
  if (!options.message.empty()) return "it has no error that contains the text of --message";
  std::string with = options.reference.empty() ? "those of the interpreter" : "the reference";
  return fmt::format("it runs, and its results agree with {} (rtol {}, atol {})", with, options.rtol, options.atol);
}

int reduce(const ReduceOptions& options) {
  const InterruptScope interrupts;  // which lets Trials remove its folder
  if (is_text_file(options.model))
    throw CLI::ValidationError("reduce takes an ONNX model; for texts there is relaxc opt --bisect");
  Trials trials(options);
  ModelCase original = read_case(options);
  Failure failure = trials.observe(original);
  if (failure.kind.empty()) {
    print_error("{} does not fail: {}\n", options.model, how_it_passed(options));
    print_error(
        "  note: --reference and --test say what a failure is, --input which inputs show it "
        "(docs/relaxc.md)\n");
    return kWrong;
  }
  if (!console().quiet) print_message("{}\n", text_of(failure));
  ReductionJudge judge;
  judge.fails = [&](const ModelCase& model) { return trials.observe(model, &failure).same_as(failure); };
  judge.record = [&](const ModelCase& model) { return trials.record(model); };
  judge.report = [](const std::string& line) {
    if (!console().quiet) print_message("  {}\n", line);
  };
  judge.keeps_outputs = trials.has_expected_outputs() && failure.kind == "wrong result";
  ModelCase small = reduce_onnx(original, judge);
  Failure left = trials.observe(small, &failure);
  vm::make_folder(options.output);
  trials.copy_to(options.output);
  if (!console().quiet) print_message("\n{}\n", print_onnx(small));
  print_message("{}\n", text_of(left));
  print_message("{} bytes of {} are left after {} trials: {}/model.onnx, with its inputs in {}/test_data_set_0\n",
                small.model.size(), original.model.size(), trials.count(), options.output, options.output);
  bool has_results = fs::exists(options.output + "/test_data_set_0/output_0.pb");
  std::string flags = options.run_flags.empty() ? "" : " " + joined(options.run_flags, " ");
  if (failure.kind == "wrong result" && has_results)
    print_message("  note: relaxc run {}/model.onnx --test-data {}/test_data_set_0 --atol {}{} repeats it\n",
                  options.output, options.output, options.atol, flags);
  if (failure.kind == "error" || failure.kind == "crash")
    print_message("  note: relaxc run {}/model.onnx{} repeats it\n", options.output, flags);
  if (failure.kind == kOpenDims)
    print_message(
        "  note: relaxc run {}/model.onnx{} with the inputs says it again; so does relaxc compile, unless only "
        "the run can tell\n",
        options.output, flags);
  return kRight;
}

}  // namespace

void add_reduce(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReduceOptions>();
  CLI::App* command = app.add_subcommand("reduce", "shrink an ONNX model that fails");
  command->add_option("model", options->model, "the file (.onnx)")->required();
  command->add_option("-o,--output", options->output, "the folder for the small model and its inputs")
      ->capture_default_str();
  add_inputs(*command, options->inputs);
  command->add_option("--reference", options->reference,
                      "right results: a folder of input_N.pb and output_N.pb, or a command in which {} stands for a "
                      "folder with model.onnx and test_data_set_0/input_N.pb and that writes output_N.pb there "
                      "(without it: the interpreter)");
  command->add_option("--test", options->test,
                      "a command that exits with 0 when the model, whose path stands for {}, still fails");
  command->add_option("--message", options->message, "the failure is an error that contains this text");
  add_tolerances(*command, options->rtol, options->atol);
  command->add_option("--limit", options->limit, "seconds that a run may take")
      ->check(number_from(0.001))
      ->capture_default_str();
  command->add_option("--run-flag", options->run_flags, "a flag for each relaxc run, as --run-flag=--passes=legalize");
  command->footer("Example: relaxc reduce model.onnx --reference test_data_set_0 -o small");
  command->callback([options, &exit_code] {
    try {
      exit_code = reduce(*options);
    } catch (const Interrupted& interrupted) {
      progress_line().end();
      InterruptScope::end_process(interrupted);
    }
  });
}

}  // namespace relaxc::tools
