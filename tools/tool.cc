#include "tools/tool.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "codegen/target.h"
#include "frontend/onnx/test_data.h"
#include "ir/text/lexer.h"
#include "passes/kernel_rules.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tools/compare.h"
#include "vm/npy.h"

namespace relaxc::tools {

static std::pair<std::string, std::string> split_at_equals(const std::string& text, const char* example) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw CLI::ValidationError(fmt::format("'{}': expected {}", text, example));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void check_output(const std::string& output, const std::string& input) {
  std::error_code ignored;  // one of them may not exist
  if (std::filesystem::is_regular_file(input, ignored) && std::filesystem::equivalent(output, input, ignored))
    throw CLI::ValidationError(fmt::format("'{}' is the input and would be replaced; name another output", output));
}

void write_text(const std::string& path, std::string_view text) {
  if (path == "-") return print_text(text);
  vm::write_file(path, text);
}

std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> result;
  for (const std::string& text : texts) {
    auto [name, number] = split_at_equals(text, "a dim such as batch=4");
    std::optional<int64_t> value = text::whole_number(number);
    if (!value) throw CLI::ValidationError(fmt::format("'{}': a dim is a number from 0", text));
    result[name] = *value;
  }
  return result;
}

void add_plugins(CLI::App& app, std::vector<std::string>& plugins) {
  app.add_option("--plugin", plugins, "FILE.so ..., each adds operators, passes, rules (docs/plugins.md)")
      ->allow_extra_args(false);
}

void CompilerOptions::add_to(CLI::App& app) {
  app.add_option("--target", settings.target, codegen::target_forms())->capture_default_str();
  app.add_flag("--strict", settings.strict, "make contradictions in a model errors, not warnings");
  app.add_option("--passes", settings.passes, "passes and pipelines by name")->capture_default_str();
  app.add_option("--jobs", settings.jobs, "threads that compile (0: all cores)");
  app.add_option("-O", settings.opt_level, "LLVM's effort")->check(CLI::Range(0, 3))->capture_default_str();
  app.add_option("--schedules", schedules, "a file of schedules and rules (docs/schedules.md)")
      ->check(CLI::ExistingFile);
  app.add_option("--kernels", kernels,
                 "a file of kernels and schedules for them, or a library of C kernels (.so), repeatable "
                 "(docs/own-kernels.md)")
      ->check(CLI::ExistingFile);
  add_plugins(app, plugins);
  app.add_flag("--check-bounds", settings.check_bounds,
               "machine code tests every index that is not proven to be in range (docs/relaxc.md)");
  app.add_flag("!--no-winograd", settings.winograd, "compute all convolutions directly (docs/relaxc.md)");
  app.add_option("--gather", gather, "indices out of range: error, or clamp to the nearest element")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"error", "clamp"}).description(""))
      ->capture_default_str();
  app.add_option("--print-after", print_after, "print the module after these passes or pipelines (or: all)");
  app.add_option("--dump-dir", settings.runner.dump_dir, "write what each pass changed to numbered files there");
  app.add_option("--stop-after", settings.runner.stop_after, "the last pass or pipeline to run");
  app.add_option("--bisect-limit", settings.runner.bisect_limit, "run only that many passes");
  app.add_flag("--time-passes", settings.runner.time_passes, "print the time of each pass, summed over programs");
  app.add_option("--verify-each", verify_each,
                 "verify after each pass, after each group of passes over programs, or never")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"pass", "group", "never"}).description(""))
      ->capture_default_str();
}

bool holds_schedules(const std::string& file) {
  if (!file.ends_with(".py")) return false;
  std::string text = "\n" + read_text(file);
  return text.find("\n@S.") != std::string::npos || text.find("\nS.") != std::string::npos ||
         text.find("\n@R.rewriter") != std::string::npos;
}

CompileSettings CompilerOptions::get(const std::string& model) const {
  CompileSettings result = settings;
  result.dims = parse_dims(fixed_dims);
  result.tables = load_plugins(plugins);
  result.gather = gather == "clamp" ? OutOfRange::kClamp : OutOfRange::kError;
  result.runner.verify_each = verify_each == "pass"    ? VerifyEach::kPass
                              : verify_each == "never" ? VerifyEach::kNever
                                                       : VerifyEach::kGroup;
  for (std::string_view name : parts_of(print_after, ',')) result.runner.print_after.emplace_back(name);
  for (const std::string& name : result.runner.print_after) {
    if (name != "all") parse_passes(name, result);
  }
  std::vector<std::string> files = kernels;
  if (!schedules.empty()) files.push_back(schedules);
  if (holds_schedules(model) && !std::ranges::count(files, model)) files.push_back(model);
  std::vector<KernelRule> rules;
  for (const std::string& file : files) {
    if (file.ends_with(".so")) {
      const auto& library = result.libraries.emplace_back(vm::UserLibrary::open(std::filesystem::absolute(file)));
      for (const relaxc_kernel_row& row : library->rows()) {
        if (!row.implements) continue;
        std::string place = fmt::format("{}: {}", file, row.name);
        std::ranges::move(read_kernel_rules(row.implements, place, tables_of(result).ops()), std::back_inserter(rules));
      }
      continue;
    }
    const std::string text = read_text(file);
    std::ranges::move(read_schedule_rules(text, file), std::back_inserter(result.schedules));
    std::ranges::move(read_kernel_rules(text, file, tables_of(result).ops()), std::back_inserter(rules));
  }
  if (!rules.empty()) result.kernels = std::make_shared<const std::vector<KernelRule>>(std::move(rules));
  if (!result.schedules.empty()) result.report = [](const std::string& line) { print_error("{}\n", line); };
  result.warn = [](const Diagnostic& warning) { print_error("{}", to_string(warning)); };
  if (!result.runner.stop_after.empty()) parse_passes(result.runner.stop_after, result);
  return result;
}

void InputOptions::add_to(CLI::App& app) {
  app.add_option("--input", named, "NAME=FILE.npy, for each input");
  // Scripts give `--input-pb` without files for a model without inputs, and CLI11 then takes one empty text.
  app.add_option("--input-pb", positional, "FILE.pb ..., inputs by position (ONNX TensorProto)")->expected(0, -1);
  app.add_option("--dim", dims, "NAME=VALUE, a symbolic dim of random inputs (else 1)");
  app.add_option("--seed", seed, "the seed of random inputs")->capture_default_str();
}

static Tensor random_tensor(const vm::ValueInfo& info, const std::map<std::string, int64_t>& dims,
                            std::mt19937_64& random) {
  std::vector<int64_t> shape;
  for (const vm::DimInfo& dim : info.dims.value_or(std::vector<vm::DimInfo>{}))
    shape.push_back(dim.value >= 0 ? dim.value : copy_value(dims, dim.text).value_or(1));
  if (!info.dims) fail({}, "input '{0}' has no declared rank; give it with --input {0}=FILE.npy", printable(info.name));
  DType dtype = info.dtype.value_or(kFloat32);
  Tensor tensor = Tensor::empty(shape, dtype);
  std::uniform_real_distribution<double> real(-1, 1);
  std::uniform_int_distribution<int64_t> integer(0, 1);  // right as flags, masks, and indices of short axes
  for (int64_t i = 0; i < tensor.size(); ++i)
    dtype.is_float() ? tensor.set_double(i, real(random)) : tensor.set_int(i, integer(random));
  return tensor;
}

std::vector<Tensor> InputOptions::make(const Program& program) const {
  const std::vector<vm::ValueInfo>& inputs = program.inputs();
  std::vector<std::string> files = positional;
  if (files.size() == 1 && files[0].empty()) files.clear();
  std::map<std::string, int64_t> dim_values = parse_dims(dims);
  for (const auto& [name, value] : dim_values) {
    auto has_dim = [&, wanted = name](const vm::ValueInfo& info) {
      return info.dims && find_item(*info.dims, wanted, &vm::DimInfo::text);
    };
    if (std::ranges::any_of(inputs, has_dim)) continue;
    fail({}, "no input has a dim '{}'; the inputs are {}", name,
         joined(inputs, [](const vm::ValueInfo& info) { return to_string(info); }));
  }
  if (files.size() > inputs.size()) fail({}, "{} input files for {} inputs", files.size(), inputs.size());
  std::map<std::string, Tensor> by_name;
  for (const std::string& text : named) {
    auto [name, path] = split_at_equals(text, "an input such as x=x.npy");
    const vm::ValueInfo* known = find_item(inputs, name, &vm::ValueInfo::name);
    if (!known)
      fail({}, "no input is called '{}'; there are {}", printable(name),
           joined(inputs, [](const vm::ValueInfo& info) { return fmt::format("'{}'", printable(info.name)); }));
    by_name.emplace(name, path.ends_with(".pb") ? read_tensor_pb(path, known->dtype) : read_npy(path));
  }
  std::mt19937_64 random(seed);
  std::vector<Tensor> result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (const Tensor* named_input = find_value(by_name, inputs[i].name)) {
      result.push_back(*named_input);
    } else if (i < files.size()) {
      result.push_back(read_tensor_pb(files[i], inputs[i].dtype));
    } else {
      result.push_back(random_tensor(inputs[i], dim_values, random));
    }
  }
  return result;
}

namespace {

// Reads PREFIX_0.pb, PREFIX_1.pb ... of a folder for values with these dtypes, and one more if there is one, so that
// the counts can be compared.
template <class Values, class DTypeOf>
std::vector<Tensor> read_numbered(const std::string& folder, const char* prefix, const Values& values, DTypeOf dtype) {
  if (!std::filesystem::is_directory(folder)) fail({}, "the folder '{}' does not exist", folder);
  std::vector<Tensor> result;
  for (size_t i = 0; i <= values.size(); ++i) {
    std::string path = fmt::format("{}/{}_{}.pb", folder, prefix, i);
    if (!std::filesystem::exists(path)) break;
    std::optional<DType> declared;
    if (i < values.size()) declared = std::invoke(dtype, values[i]);
    result.push_back(read_tensor_pb(path, declared));
  }
  return result;
}

}  // namespace

std::vector<Tensor> read_inputs(const std::string& folder, const Program& program) {
  return read_numbered(folder, "input", program.inputs(), &vm::ValueInfo::dtype);
}

std::vector<Tensor> read_outputs(const std::string& folder, const std::vector<Tensor>& results) {
  std::vector<Tensor> expected = read_numbered(folder, "output", results, &Tensor::dtype);
  if (expected.size() != results.size())
    fail({}, "{} has {} outputs, the model {}", folder, expected.size(), results.size());
  return expected;
}

std::vector<std::string> differences(const Program& program, const std::vector<Tensor>& results,
                                     const std::vector<Tensor>& expected, double rtol, double atol) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < results.size(); ++i) {
    std::string name = i < program.outputs().size() ? program.outputs()[i].name : std::to_string(i);
    std::string line = compare(name, results[i], expected[i], rtol, atol);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

std::string summary(const std::string& name, const Tensor& tensor) {
  std::string text = fmt::format("{}: {}", printable(name), describe(tensor));
  if (tensor.size() == 0) return text + "  empty";
  double min = INFINITY, max = -INFINITY, sum = 0, count = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    double value = tensor.as_double(i);
    if (std::isnan(value)) continue;
    min = std::min(min, value);
    max = std::max(max, value);
    sum += value;
    ++count;
  }
  if (count > 0) text += fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}", min, max, sum / count);
  if (int64_t nans = tensor.size() - static_cast<int64_t>(count)) text += fmt::format("  {} NaN", nans);
  text += "  [";
  for (int64_t i = 0; i < std::min<int64_t>(tensor.size(), 6); ++i)
    text += fmt::format("{}{:.6g}", i ? ", " : "", tensor.as_double(i));
  return text + (tensor.size() > 6 ? ", ...]" : "]");
}

}  // namespace relaxc::tools
