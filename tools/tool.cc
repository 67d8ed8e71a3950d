#include "tools/tool.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <ranges>
#include <set>

#include "codegen/open_types.h"
#include "codegen/options.h"
#include "codegen/rule_files.h"
#include "codegen/target.h"
#include "codegen/text_file.h"
#include "frontend/onnx/test_data.h"
#include "ir/text/lexer.h"
#include "ir/text/parser.h"
#include "passes/kernel_rules.h"
#include "passes/precision.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/library_file.h"
#include "support/lists.h"
#include "support/whole_number.h"
#include "tools/compare.h"
#include "tools/progress_line.h"
#include "vm/npy.h"

namespace relaxc::tools {

void add_plugins(CLI::App& app, std::vector<std::string>& plugins) {
  app.add_option("--plugin", plugins, "FILE.so ..., each adds operators, passes, rules (docs/plugins.md)")
      ->allow_extra_args(false);
}

void PrintedConstants::add_to(CLI::App& app) {
  app.add_option("--constants", file, "file for large constants (safetensors), named in the text");
  app.add_option(
         "--inline", most_elements,
         "print constants of at most this many elements in full (16; without --constants fmt prints all of a text)")
      ->check(whole_number_in(0, std::numeric_limits<int64_t>::max()));
}
PrintOptions PrintedConstants::get(const std::vector<std::string>& inputs) const {
  if (file == "-") throw CLI::ValidationError("--constants takes a file; the text goes to standard output");
  check_outputs({file}, inputs);
  PrintOptions result;
  result.constants_file = file;
  result.inline_elements = most_elements.value_or(result.inline_elements);
  return result;
}

// Loads plug-ins, the last of which are compilers for parts of the graph.
static std::shared_ptr<const Tables> load_all(const std::vector<std::string>& plugins,
                                              const std::vector<std::string>& backends) {
  std::shared_ptr<Tables> tables = load_plugins(plugins);
  if (!tables && !backends.empty()) tables = std::make_shared<Tables>();
  for (const std::string& path : backends) {
    size_t before = tables->external_compilers().size();
    tables->load_plugin(path);
    if (tables->external_compilers().size() == before)
      fail({}, "'{}' is not a backend: it adds no ExternalCompiler (docs/plugins.md); load it with --plugin", path);
  }
  return tables;
}

// Adds the flags of a group of the table.
static void add_group(CLI::App& app, OptionGroup group, CompileSettings& settings) {
  for (const CompileOption& row : compile_options()) {
    auto add = [&](auto* value) {
      using T = std::remove_pointer_t<decltype(value)>;
      if constexpr (std::is_same_v<T, bool>) {
        app.add_flag(row.flag, *value, row.help);
      } else if constexpr (std::is_enum_v<T>) {
        const std::vector<std::string> names = names_of_values(*value);
        auto set = [=](const std::string& name) {
          *value = static_cast<T>(std::ranges::find(names, name) - names.begin());
        };
        CLI::Option* option = app.add_option_function<std::string>(row.flag, set, row.help)->type_name("WHAT");
        option->check(one_of(names).description(""))->default_str(row.text(settings));
      } else {
        CLI::Option* option = app.add_option(row.flag, *value, row.help)->capture_default_str();
        if (*row.unit) option->type_name(row.unit);
        if constexpr (std::is_same_v<T, int>)
          option->check(one_of(map_each(std::views::iota(0, row.most + 1), [](int i) { return std::to_string(i); })));
        if constexpr (std::is_same_v<T, double>) option->check(number_from(0));
      }
    };
    if (row.group == group) std::visit(add, row.value(settings));
  }
}

static CacheNames parse_caches(const std::vector<std::string>& texts) {
  CacheNames result;
  for (const std::string& text : texts) {
    if (text == "auto") {
      result.by_name = true;
    } else {
      result.named.insert(parse_cache(text));
    }
  }
  return result;
}

// Returns the forms of a target that are names as they stand, such as host.
static std::vector<std::string> named_targets() {
  const std::string forms = codegen::target_forms();
  std::vector<std::string> names;
  for (std::string_view form : parts_of(forms, ',')) {
    form.remove_prefix(std::min(form.find_first_not_of(' '), form.size()));
    auto is_of_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; };
    if (std::ranges::all_of(form, is_of_name) && !form.starts_with('-')) names.emplace_back(form);
  }
  return names;
}

void CompilerOptions::add_to(CLI::App& app) {
  add_group(app, OptionGroup::kSubject, settings);
  app.get_option("--target")->check(such_as(named_targets()));
  app.add_option("--bind", bound, "NAME=FILE.npy, a param of the function that becomes a constant, repeatable")
      ->allow_extra_args(false);
  app.add_option("--type", types,
                 "NAME=float32[n, 4], the type of an input of which the model or text says less, repeatable")
      ->allow_extra_args(false);
  app.add_option_function<std::vector<std::string>>(
         "--in-place", [this](const std::vector<std::string>& texts) { settings.caches = parse_caches(texts); },
         "PAST=PRESENT, a decoder's cache that runs extend in place, or auto, repeatable (docs/relaxc.md)")
      ->allow_extra_args(false);
  add_group(app, OptionGroup::kPasses, settings);
  app.add_option("--jobs", settings.jobs, "threads that compile (0: all cores)")
      ->check(whole_number_in(0, vm::kMostThreads));
  app.add_option("--schedules", schedules,
                 "a file of schedules and rules, or MetaSchedule's tuning records (docs/schedules.md)")
      ->check(CLI::Validator(CLI::ExistingPath).description("PATH"));
  app.add_option("--kernels", kernels,
                 "a file of kernels and schedules for them, or a library of C kernels (.so), repeatable "
                 "(docs/own-kernels.md)")
      ->check(CLI::ExistingFile);
  add_plugins(app, plugins);
  app.add_option("--backend", backends, "FILE.so ..., a plug-in that compiles parts of the graph (docs/plugins.md)")
      ->allow_extra_args(false);
  app.add_option("--link", settings.linked,
                 "object files and archives (.o, .a) with C kernels, which become part of it")
      ->check(CLI::ExistingFile);
  app.add_option("--dim-range", ranges, "NAME=LEAST:MOST, sizes of a symbolic dim: a run with another is refused");
  add_group(app, OptionGroup::kNumbers, settings);
  app.add_option("--print-after", print_after, "print the module after these passes or pipelines (or: all)");
  app.add_option("--dump-dir", settings.runner.dump_dir, "write what each pass changed to numbered files there");
  app.add_option("--stop-after", settings.runner.stop_after, "the last pass or pipeline to run");
  app.add_option("--bisect-limit", settings.runner.bisect_limit, "run only that many passes")
      ->check(whole_number_in(0, kMostRuns));
  app.add_flag("--time-passes", settings.runner.time_passes, "print the time of each pass, summed over programs");
  app.add_option("--verify-each", verify_each,
                 "verify after each pass, after each group of passes over programs, or never")
      ->type_name("WHEN")
      ->check(one_of({"pass", "group", "never"}).description(""))
      ->capture_default_str();
}

void CompilerOptions::add_dims(CLI::App& app) {
  app.add_option("--host-symbols", settings.host_symbols,
                 "NAMES that --link leaves to the program that will load the artifact, such as 'GOMP_*,omp_*'")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--dim", fixed_dims, "NAME=VALUE, the size of a symbolic dim: it is compiled for this size only");
}

bool holds_schedules(const std::string& path) {
  const std::string file = split_text_path(path).file;
  if (!is_text_file(file)) return false;
  std::string text = "\n" + read_text(file);
  return has_schedule_rules(text) || text.find("\n@R.rewriter") != std::string::npos;
}

// Returns a word as a shell takes it.
static std::string shell_word(const std::string& word) {
  bool is_plain = std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) || std::string_view("_./=-+,:@%").find(c) != std::string::npos;
  });
  if (is_plain && !word.empty()) return word;
  std::string quoted;
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + quoted + "'";
}

// Returns the flags that a pass by itself needs in order to do the same; `files` are those with kernels and schedules.
// Dims and params that were bound are part of the module.
std::string CompilerOptions::flags_of_passes(const std::vector<std::string>& files) const {
  std::string result;
  for (const std::string& file : files)
    result += fmt::format(" {} {}", file == schedules ? "--schedules" : "--kernels", shell_word(file));
  for (const CompileOption& row : compile_options()) {
    if (row.group == OptionGroup::kPasses || !row.is_given(settings)) continue;
    result += fmt::format(" {}{}", row.flag, row.is_flag() ? "" : " " + shell_word(row.text(settings)));
  }
  return result;
}

// Returns whether the text begins as a type does, such as float32[ or sequence(.
static bool is_type(const std::string&, const std::string& text) {
  const size_t end = text.find_first_of("[(=");
  return end != std::string::npos && text[end] != '=';
}

std::vector<std::string> CompilerOptions::rule_files(const std::string& model) const {
  std::vector<std::string> files = kernels;
  if (!schedules.empty()) files.push_back(schedules);
  const std::string model_file = split_text_path(model).file;
  if (holds_schedules(model) && !std::ranges::count(files, model_file)) files.push_back(model_file);
  return files;
}

// Parses "batch=1:64", of which either number may be left out.
static DimRanges parse_dim_ranges(const std::vector<std::string>& texts) {
  DimRanges result;
  for (const std::string& text : texts) {
    auto is_range = [](const auto&, const std::string& value) { return value.find(':') != std::string::npos; };
    const auto [name, range] = split_at_equals(text, "a range such as batch=1:64", is_range);
    const std::string numbers(range);
    const size_t colon = numbers.find(':');
    if (colon == std::string::npos)
      throw CLI::ValidationError(fmt::format("'{}': expected a range such as batch=1:64", text));
    DimRange parsed;
    auto read = [&](const std::string& number, int64_t& to) {
      const std::optional<int64_t> value = number.empty() ? to : whole_number(number);
      if (!value) throw CLI::ValidationError(fmt::format("'{}': the ends of a range are numbers from 0", text));
      to = *value;
    };
    read(numbers.substr(0, colon), parsed.least);
    read(numbers.substr(colon + 1), parsed.most);
    if (numbers == ":")
      throw CLI::ValidationError(fmt::format("'{}': the range has no end: expected one such as batch=1:64", text));
    if (parsed.least > parsed.most)
      throw CLI::ValidationError(fmt::format("'{}': the range begins above its end", text));
    if (!result.emplace(name, parsed).second)
      throw CLI::ValidationError(fmt::format("'{}': the dim has a range already", text));
  }
  return result;
}

std::vector<std::string> CompilerOptions::files(const std::string& model) const {
  std::vector<std::string> result = rule_files(model);
  result.push_back(split_text_path(model).file);
  for (const std::vector<std::string>* more : {&settings.linked, &plugins, &backends})
    result.insert(result.end(), more->begin(), more->end());
  for (const std::string& text : bound) result.push_back(text.substr(text.find('=') + 1));
  return result;
}

void CompilerOptions::set_params(CompileSettings& result) const {
  for (const std::string& text : bound) {
    auto [name, file] = split_at_equals(text, "a param such as w=w.npy", names_file);
    Tensor tensor = file.ends_with(".pb") ? read_tensor_pb(file) : read_npy(file);
    result.params.insert_or_assign(std::string(name), std::move(tensor));
  }
  std::map<std::string, Expr> type_dims;
  for (const std::string& text : types) {
    auto [name, type] = split_at_equals(text, "a type such as x=float32[n, 4]", is_type);
    result.types.insert_or_assign(std::string(name), parse_type(type, type_dims));
  }
}

CompileSettings CompilerOptions::get(const std::string& model) const {
  CompileSettings result = settings;
  result.dims = parse_dims(fixed_dims);
  result.dim_ranges = parse_dim_ranges(ranges);
  set_params(result);
  result.tables = load_all(plugins, backends);
  result.runner.verify_each = verify_each == "pass"    ? VerifyEach::kPass
                              : verify_each == "never" ? VerifyEach::kNever
                                                       : VerifyEach::kGroup;
  for (std::string_view name : parts_of(print_after, ',')) result.runner.print_after.emplace_back(name);
  const std::vector<std::string> files = rule_files(model);
  const std::string model_file = split_text_path(model).file;
  result.runner.flags = flags_of_passes(files);
  RuleFiles rules(result);
  for (const std::string& file : files) rules.read(file, file == model_file);
  rules.finish();
  // A model may be compiled more than once (tools/given_shapes.h, tools/accuracy.h).
  auto say = [said = said](const std::string& text) {
    if (said->insert(text).second) print_note("{}", text);
  };
  for (const std::string& note : rules.notes) say(note + "\n");
  for (const Diagnostic& warning : rules.warnings.all()) say(to_string(warning));
  if (!result.schedules.empty() || result.kernels) result.report = [say](const std::string& line) { say(line + "\n"); };
  result.warn = [say](const Diagnostic& warning) { say(to_string(warning)); };
  result.progress = [](const Progress& progress) { progress_line().show(progress); };
  for (const std::string& name : result.runner.print_after) {
    if (name != "all") parse_passes(name, result);
  }
  if (!result.runner.stop_after.empty()) parse_passes(result.runner.stop_after, result);
  return result;
}

CompileSettings settings_beside(const std::string& file, const std::string& other, const CompileSettings& settings) {
  if (other.empty() || !is_library_file(file) || is_library_file(other)) return settings;
  CompileSettings result;
  result.function = settings.function, result.libraries = settings.libraries;
  return result;
}

void add_inputs(CLI::App& app, InputOptions& inputs) {
  inputs.readers = {read_tensor_pb, read_value_pb};
  inputs.add_to(app);
  // Scripts give `--input-pb` without files for a model without inputs, and CLI11 then takes one empty text.
  app.add_option("--input-pb", inputs.positional, "FILE.pb ..., inputs by position (ONNX TensorProto)")
      ->expected(0, -1);
}

void fix_dims(const InputOptions& inputs, const std::string& model, CompilerOptions& compiler) {
  if (!inputs.has_fixed_dims) return;
  if (inputs.dims.empty()) throw CLI::ValidationError("--fix-dims needs the sizes: --dim NAME=VALUE");
  if (is_library_file(model))
    throw CLI::ValidationError("'" + model + "' is compiled already; give --dim when it is compiled (relaxc compile)");
  compiler.fixed_dims = inputs.dims;
}

InputOptions with_buffer_names(const InputOptions& inputs, const std::string& model) {
  InputOptions result = inputs;
  const std::string file = split_text_path(model).file;
  if (inputs.named.empty() || !is_text_file(file)) return result;
  std::map<std::string, std::string> handles = matched_handles(read_text(file));
  for (std::string& text : result.named) {
    size_t equals = text.find('=');
    if (const std::string* buffer = find_value(handles, text.substr(0, equals)); buffer && equals != text.npos)
      text = *buffer + text.substr(equals);
  }
  return result;
}

std::map<std::string, Type> types_of_files(const InputOptions& inputs) {
  std::map<std::string, Type> result;
  for (const std::string& text : inputs.named) {
    if (is_nameless(text)) continue;
    auto [name, value] = split_at_equals(text, "an input such as x=x.npy", names_file);
    if (!value.ends_with(".npy")) continue;
    Tensor tensor = read_npy(value);
    std::vector<Expr> dims = map_each(tensor.shape(), [](int64_t dim) -> Expr { return int_imm(dim); });
    result.insert_or_assign(name, tensor_type(std::move(dims), tensor.dtype()));
  }
  return result;
}

// Returns the type of a tensor, or of a sequence whose items have one rank; nullopt for other values.
static std::optional<Type> type_of_value(const vm::Value& value) {
  auto type_of_shape = [](const vm::Shape& shape) {
    return tensor_type(map_each(shape, [](int64_t dim) -> Expr { return int_imm(dim); }), std::nullopt);
  };
  if (const Tensor* tensor = value.get_if<Tensor>()) return type_of_shape(tensor->shape());
  const auto* sequence = value.get_if<vm::Sequence>();
  if (!sequence || sequence->items.fields().empty()) return std::nullopt;
  std::optional<vm::Shape> first;
  bool are_equal = true;
  DType dtype = kFloat32;
  for (const vm::Value& item : sequence->items.fields()) {
    const Tensor* tensor = item.get_if<Tensor>();
    if (!tensor || (first && first->size() != tensor->shape().size())) return std::nullopt;
    are_equal = are_equal && (!first || *first == tensor->shape());
    first = tensor->shape();
    dtype = tensor->dtype();
  }
  return sequence_type(are_equal ? tensor_type(*known_shape(type_of_shape(*first)), dtype)
                                 : tensor_type_of_rank(std::ssize(*first), dtype));
}

std::map<std::string, Type> types_of_inputs(const InputOptions& options, const std::vector<vm::ValueInfo>& inputs,
                                            const std::string& folder) {
  std::map<std::string, Type> result;
  auto add = [&](const vm::ValueInfo& info, const vm::Value& value) {
    std::optional<Type> type = info.is_optional ? std::nullopt : type_of_value(value);
    if (type) result.emplace(info.name, *type);
  };
  std::vector<vm::Value> values = folder.empty() ? std::vector<vm::Value>() : read_inputs(folder, inputs);
  for (size_t i = 0; i < std::min(values.size(), inputs.size()); ++i) add(inputs[i], values[i]);
  std::vector<WrittenValue> written = options.given(inputs);
  for (size_t i = 0; i < inputs.size() && folder.empty(); ++i) {
    bool is_given = written[i].open != 0 || written[i].text != "_" || written[i].value || written[i].tensor;
    if (is_given) add(inputs[i], options.make({inputs[i]}, {written[i]}, nullptr).at(0));
  }
  return result;
}

namespace {

// Reads PREFIX_0.pb, PREFIX_1.pb ... of a folder for values of these types, and one more if there is one, so that the
// counts can be compared.
std::vector<vm::Value> read_numbered(const std::string& folder, const char* prefix,
                                     const std::vector<vm::ValueInfo>& values) {
  if (!std::filesystem::exists(folder)) fail({}, "the folder '{}' does not exist", folder);
  if (!std::filesystem::is_directory(folder))
    fail({}, "'{0}' is not a folder; expected one with {1}_0.pb, {1}_1.pb, ...", folder, prefix);
  std::vector<vm::Value> result;
  for (size_t i = 0; i <= values.size(); ++i) {
    std::string path = fmt::format("{}/{}_{}.pb", folder, prefix, i);
    if (!std::filesystem::exists(path)) break;
    result.push_back(read_value_pb(path, i < values.size() ? values[i] : vm::ValueInfo{}));
  }
  if (result.empty() && !values.empty()) fail({}, "the folder '{}' has no {}_0.pb", folder, prefix);
  return result;
}

}  // namespace

std::vector<vm::Value> read_inputs(const std::string& folder, const std::vector<vm::ValueInfo>& inputs) {
  return read_numbered(folder, "input", inputs);
}

// The files are of the kinds that the results have.
std::vector<vm::Value> read_outputs(const std::string& folder, const std::vector<NamedValue>& results) {
  std::vector<vm::ValueInfo> infos = map_each(results, [](const NamedValue& result) {
    std::optional<Tensor> tensor = as_tensor(result);
    vm::ValueInfo info{result.name, tensor ? vm::ValueKind::kTensor : result.value.kind(), {}, {}};
    if (tensor) info.dtype = tensor->dtype();
    info.is_optional = result.is_optional;
    return info;
  });
  std::vector<vm::Value> expected = read_numbered(folder, "output", infos);
  if (expected.size() != results.size())
    fail({}, "{} has {} outputs, the model {}", folder, expected.size(), results.size());
  return expected;
}

std::vector<std::string> differences(const std::vector<NamedValue>& results, const std::vector<vm::Value>& expected,
                                     double rtol, double atol) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < results.size(); ++i) {
    std::optional<Tensor> tensor = as_tensor(results[i]);
    std::string line =
        compare_values(results[i].name, tensor ? vm::Value(*tensor) : results[i].value, expected[i], rtol, atol);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace relaxc::tools
