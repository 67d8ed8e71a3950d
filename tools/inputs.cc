#include "tools/inputs.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/whole_number.h"
#include "tools/console.h"
#include "tools/npz.h"
#include "vm/artifact_notes.h"
#include "vm/npy.h"

namespace relaxc::tools {

// Splits NAME=VALUE at the first '=' whose parts fit, since names of a model may contain the character too; else at
// the first one.
std::pair<std::string, std::string> split_at_equals(
    const std::string& text, const char* example,
    const std::function<bool(const std::string& name, const std::string& value)>& fits) {
  const size_t first = text.find('=', 1);
  if (first == std::string::npos || text[0] == '=')
    throw CLI::ValidationError(fmt::format("'{}': expected {}", text, example));
  auto parts = [&](size_t equals) { return std::pair(text.substr(0, equals), text.substr(equals + 1)); };
  for (size_t equals = first; equals != std::string::npos; equals = text.find('=', equals + 1)) {
    auto [name, value] = parts(equals);
    if (fits(name, value)) return {name, value};
  }
  return parts(first);
}
bool names_file(const std::string&, const std::string& path) {
  std::error_code ignored;  // where it does not exist, reading it reports that
  return std::filesystem::is_regular_file(path, ignored);
}

void check_output(const std::string& output, const std::string& input) {
  std::error_code ignored;  // one of them may not exist
  if (std::filesystem::is_regular_file(input, ignored) && std::filesystem::equivalent(output, input, ignored))
    throw CLI::ValidationError(fmt::format("'{}' is the input and would be replaced; name another output", output));
}

void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs) {
  std::set<std::string> places;
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    for (const std::string& input : inputs) check_output(output, input);
    std::error_code ignored;
    const bool is_standard = output == "-";
    const std::filesystem::path place =
        is_standard ? "-" : std::filesystem::weakly_canonical(std::filesystem::absolute(output), ignored);
    const bool is_file = !std::filesystem::exists(place, ignored) || std::filesystem::is_regular_file(place, ignored);
    if ((is_standard || is_file) && !places.insert(place.string()).second)
      throw CLI::ValidationError(fmt::format("two outputs go to '{}': name another file for one of them",
                                             is_standard ? "standard output" : output));
  }
}

void check_writable(const std::vector<std::string>& outputs) {
  for (const std::string& output : outputs) {
    if (output.empty() || output == "-") continue;
    const std::string parent = std::filesystem::path(output).parent_path().string(),
                      folder = parent.empty() ? "." : parent;
    if (access(folder.c_str(), W_OK | X_OK) != 0)
      fail({}, "cannot write '{}': the folder '{}': {}", output, folder, std::strerror(errno));
  }
}

void check_output_folder(const std::string& folder, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  for (const std::filesystem::path input : inputs) {
    const std::filesystem::path parent = input.has_parent_path() ? input.parent_path() : ".";
    if (input.filename().string().starts_with("output_") && std::filesystem::equivalent(parent, folder, ignored))
      throw CLI::ValidationError(
          fmt::format("'{}' is an input and may be replaced by a result; name another folder", input.string()));
  }
}

std::vector<std::string> InputOptions::files() const {
  std::vector<std::string> result = positional;
  for (const std::string& text : named) {
    result.push_back(text);
    for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1))
      result.push_back(text.substr(at + 1));
  }
  return result;
}

CLI::Validator whole_number_in(int64_t least, int64_t most) {
  auto check = [=](std::string& text) -> std::string {
    const bool is_negative = text.starts_with('-');
    std::optional<int64_t> number = whole_number(std::string_view(text).substr(is_negative ? 1 : 0));
    if (number && is_negative) number = -*number;
    if (number && *number >= least && *number <= most) return "";
    return fmt::format("'{}': expected a whole number from {} to {}", text, least, most);
  };
  return CLI::Validator(check, "");
}

CLI::Validator number_from(double least) {
  auto check = [=](std::string& text) -> std::string {
    double number = 0;
    if (CLI::detail::lexical_cast(text, number) && std::isfinite(number) && number >= least) return "";
    return fmt::format("'{}': expected a number from {}", text, least);
  };
  return CLI::Validator(check, "");
}

CLI::Validator number_in(double least, double most) {
  auto check = [=](std::string& text) -> std::string {
    double number = 0;
    if (CLI::detail::lexical_cast(text, number) && number >= least && number <= most) return "";  // not NaN
    return fmt::format("'{}': expected a number from {} to {}", text, least, most);
  };
  return CLI::Validator(check, "");
}

CLI::Validator finite_number() {
  auto check = [](std::string& text) -> std::string {
    double number = 0;
    if (CLI::detail::lexical_cast(text, number) && std::isfinite(number)) return "";
    return fmt::format("'{}': expected a number", text);
  };
  return CLI::Validator(check, "");
}

// The name of a validator tells the choices to completions; its description tells them to --help, where it is kept.
constexpr std::string_view kOneOf = "one of ", kSuchAs = "such as ";

CLI::Validator one_of(const std::vector<std::string>& choices) {
  auto is_member = [choices](const std::string& text) {
    return std::ranges::count(choices, text) ? "" : fmt::format("'{}': expected {}", text, joined(choices, " or "));
  };
  return CLI::Validator(is_member, "{" + joined(choices, ",") + "}")
      .name(fmt::format("{}{}", kOneOf, joined(choices, ",")));
}

CLI::Validator such_as(const std::vector<std::string>& examples) {
  auto any = [](const std::string&) { return std::string(); };
  return CLI::Validator(any, "").name(fmt::format("{}{}", kSuchAs, joined(examples, ",")));
}

// Returns the list in the name of the option's validator that begins so; none where it has no such validator.
static std::vector<std::string> listed(const CLI::Option& option, std::string_view begin) {
  // CLI11 lets only options that can change be asked for a validator by its place.
  auto& asked = const_cast<CLI::Option&>(option);
  for (int i = 0;; ++i) {
    try {
      const std::string name = asked.get_validator(i)->get_name();
      if (name.starts_with(begin))
        return map_each(parts_of(std::string_view(name).substr(begin.size()), ','),
                        [](std::string_view choice) { return std::string(choice); });
    } catch (const CLI::OptionNotFound&) {
      return {};
    }
  }
}

std::vector<std::string> choices_of(const CLI::Option& option) { return listed(option, kOneOf); }
std::vector<std::string> examples_of(const CLI::Option& option) { return listed(option, kSuchAs); }

void add_threads(CLI::App& app, int& threads) {
  app.add_option("--threads", threads, "threads that run kernels (0: all cores)")
      ->check(whole_number_in(0, vm::kMostThreads));
}

void add_memory_limit(CLI::App& app, int64_t& bytes) {
  app.add_option("--memory-limit", bytes, "bytes that a run may use (docs/deploy.md)")
      ->check(whole_number_in(0, std::numeric_limits<int64_t>::max()));
}

void add_tolerances(CLI::App& app, double& rtol, double& atol, const std::string& what) {
  app.add_option("--rtol", rtol, what + "allowed relative error")->check(number_from(0))->capture_default_str();
  app.add_option("--atol", atol, what + "allowed absolute error")->check(number_from(0))->capture_default_str();
}

std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> result;
  for (const std::string& text : texts) {
    auto [name, number] = split_at_equals(text, "a dim such as batch=4", [](const auto&, const std::string& value) {
      return whole_number(value).has_value();
    });
    std::optional<int64_t> value = whole_number(number);
    if (!value)
      throw CLI::ValidationError(
          fmt::format("'{}': a dim is a whole number from 0 to {}", text, std::numeric_limits<int64_t>::max()));
    auto [known, is_new] = result.emplace(name, *value);
    if (!is_new && known->second != *value)
      throw CLI::ValidationError(fmt::format("'{}': the dim is {} already", text, known->second));
  }
  return result;
}

std::pair<std::string, std::string> parse_cache(const std::string& text) {
  auto any = [](const std::string&, const std::string&) { return true; };
  return split_at_equals(text, "an input and an output such as past_0=present_0", any);
}

bool is_nameless(const std::string& text) { return text.find('=', 1) == std::string::npos || names_file("", text); }

// Returns whether the name is that of a scalar input, or occurs in a dim of the input.
static bool has_dim(const vm::ValueInfo& info, const std::string& name) {
  if (info.kind == vm::ValueKind::kInt && info.name == name) return true;
  auto mentions = [&](const vm::DimInfo& dim) { return names_in_dim(dim.text).contains(name); };
  return (info.dims && std::ranges::any_of(*info.dims, mentions)) ||
         std::ranges::any_of(info.fields, [&](const vm::ValueInfo& field) { return has_dim(field, name); });
}

std::map<std::string, int64_t> fixed_dims_of(const Program& program, std::map<std::string, int64_t> dims) {
  const std::string* noted = find_value(program.executable().metadata, std::string(vm::kMadeKey) + "dims");
  std::string name;  // the parts of one that has commas
  for (std::string_view part : parts_of(noted ? std::string_view(*noted) : "", ',')) {
    if (name.empty() && part.starts_with(' ')) part.remove_prefix(1);
    const size_t equals = part.rfind('=');
    const std::optional<int64_t> size = equals == part.npos ? std::nullopt : whole_number(part.substr(equals + 1));
    name += size ? part.substr(0, equals) : part;
    if (size)
      dims.emplace(std::exchange(name, {}), *size);
    else
      name += ',';
  }
  return dims;
}

// Reports a name of --dim that no input has. Those of `fixed` are numbers there, and have this size only.
static void check_names(const std::map<std::string, int64_t>& dims, const std::vector<vm::ValueInfo>& inputs,
                        const std::map<std::string, int64_t>& fixed) {
  for (const auto& [name, value] : dims) {
    if (const int64_t* size = find_value(fixed, name)) {
      if (*size != value) fail_usage({}, "--dim {}={}: the program is compiled for {}={}", name, value, name, *size);
      continue;
    }
    if (std::ranges::any_of(inputs, [&, wanted = name](const vm::ValueInfo& info) { return has_dim(info, wanted); }))
      continue;
    fail_usage({}, "no input has a dim '{}'; the inputs are {}", name,
               joined(inputs, [](const vm::ValueInfo& info) { return to_string(info); }));
  }
}

// Reports a size of --dim that an input does not have. `source` are the inputs: "the reference data".
static void check_sizes(const std::map<std::string, int64_t>& dims, const std::vector<vm::ValueInfo>& inputs,
                        const std::vector<vm::Value>& values, std::string_view source) {
  for (size_t i = 0; i < std::min(inputs.size(), values.size()); ++i) {
    const Tensor* tensor = values[i].get_if<Tensor>();
    if (!tensor || !inputs[i].dims || inputs[i].dims->size() != tensor->shape().size()) continue;
    for (size_t d = 0; d < tensor->shape().size(); ++d) {
      const std::string& text = (*inputs[i].dims)[d].text;
      std::optional<int64_t> wanted = text.empty() ? std::nullopt : evaluate_dim(text, dims);
      if (!wanted || *wanted == tensor->shape()[d]) continue;
      const std::string name = printable(inputs[i].name);
      const int64_t found = tensor->shape()[d];
      const std::string message =
          dims.contains(text) ? fmt::format("--dim {}={} contradicts {}: dim {} of input '{}' is {}", text, *wanted,
                                            source, d, name, found)
                              : fmt::format("--dim contradicts {}: dim {} ({}) of input '{}' is {}, expected {}",
                                            source, d, text, name, found, *wanted);
      throw Contradiction({{.message = message}});
    }
  }
}

void InputOptions::add_to(CLI::App& app) {
  app.add_option(
      "--input", named,
      fmt::format("[NAME=]FILE (.npy,{} an image), FILE.npz, or NAME=VALUE: 3, [1, n], _ for random (docs/relaxc.md)",
                  readers.tensor_pb ? " .pb," : ""));
  app.add_option("--dim", dims, "NAME=VALUE, the size of a symbolic dim in the inputs that are not given");
  app.add_option("--seed", seed, "the seed of random inputs")
      ->check(whole_number_in(0, std::numeric_limits<int64_t>::max()))
      ->capture_default_str();
}

void InputOptions::add_picture(CLI::App& app) {
  auto is_not_zero = [](std::string& text) -> std::string {
    double number = 0;
    const bool is_zero = CLI::detail::lexical_cast(text, number) && number == 0;
    return is_zero ? fmt::format("'{}': expected another number than 0, which would make all pixels equal", text) : "";
  };
  app.add_option("--mean", picture.mean, "subtracted from the pixels of images (0 to 255): one number, or R,G,B")
      ->delimiter(',')
      ->check(finite_number());
  app.add_option("--scale", picture.scale,
                 "by which the difference is multiplied (1/255 for floats): one number, or R,G,B")
      ->delimiter(',')
      ->check(finite_number())
      ->check(CLI::Validator(is_not_zero, ""));
  app.add_option("--layout", picture.layout, "of images, where the dims could mean both")
      ->check(one_of({"nchw", "nhwc"}));
}

void InputOptions::add_fix_dims(CLI::App& app) {
  app.add_flag("--fix-dims", has_fixed_dims, "compile for the sizes of --dim only, as relaxc compile --dim does");
}

void InputOptions::check(const std::vector<vm::ValueInfo>& inputs, const std::vector<vm::Value>& given,
                         const std::map<std::string, int64_t>& fixed) const {
  if (!named.empty() || !positional.empty())
    throw CLI::ValidationError("the folder of reference data has the inputs; leave out --input and --input-pb");
  check_picture();
  const std::map<std::string, int64_t> dim_values = parse_dims(dims);
  check_names(dim_values, inputs, fixed);
  check_sizes(dim_values, inputs, given, "the reference data");
}

// Gives the members of an archive to the inputs of their names, and those that NumPy numbered (arr_0) by position.
static void give_members(const std::string& file, const std::vector<vm::ValueInfo>& inputs,
                         const std::function<void(const vm::ValueInfo&, WrittenValue)>& give) {
  constexpr std::string_view kNumbered = "arr_";
  for (const NpzMember& member : read_npz(file)) {
    const vm::ValueInfo* input = find_item(inputs, member.name, &vm::ValueInfo::name);
    const auto number = member.name.starts_with(kNumbered)
                            ? whole_number(std::string_view(member.name).substr(kNumbered.size()))
                            : std::nullopt;
    if (!input && number && *number < std::ssize(inputs)) input = &inputs[static_cast<size_t>(*number)];
    if (!input)
      fail({}, "{}: no input is called '{}'; there are {}", file, printable(member.name),
           joined(inputs, [](const vm::ValueInfo& info) { return fmt::format("'{}'", printable(info.name)); }));
    NpyNotes notes;
    const std::string place = fmt::format("{}: {}", file, printable(member.name));
    Tensor tensor =
        with_compile_errors({}, [&] { return read_npy_bytes(member.content, place, input->dtype, &notes); });
    if (input->dtype && input->kind == vm::ValueKind::kTensor)
      tensor = with_dtype(tensor, *input->dtype, printable(input->name), notes);
    for (const std::string& note : notes) print_note("note: {}\n", note);
    give(*input, written_value(tensor));
  }
}

// Returns what the flags give for each input, and _ for the others.
std::vector<WrittenValue> InputOptions::given(const std::vector<vm::ValueInfo>& inputs) const {
  std::vector<std::string> files = positional;
  if (files.size() == 1 && files[0].empty()) files.clear();
  if (files.size() > inputs.size()) fail({}, "{} input files for {} inputs", files.size(), inputs.size());
  std::vector<WrittenValue> given(inputs.size(), parse_value("_"));
  for (size_t i = 0; i < files.size(); ++i) given[i] = written_value(readers.value_pb(files[i], inputs[i]));
  std::set<const vm::ValueInfo*> seen;
  auto give = [&](const vm::ValueInfo& input, WrittenValue value) {
    if (!seen.insert(&input).second) fail({}, "input '{}' is given twice by --input", printable(input.name));
    given[static_cast<size_t>(&input - inputs.data())] = std::move(value);
  };
  for (const std::string& text : named) {
    if (is_nameless(text) && text.ends_with(".npz")) {
      give_members(text, inputs, give);
      continue;
    }
    if (is_nameless(text)) {
      if (inputs.size() != 1)
        fail({}, "'{}' has no name, and there are {} inputs: {}; give --input NAME={}", text, inputs.size(),
             joined(inputs, [](const vm::ValueInfo& info) { return fmt::format("'{}'", printable(info.name)); }), text);
      give(inputs[0], parse_value(text));
      continue;
    }
    auto [name, value] = split_at_equals(text, "an input such as x=x.npy", [&](const std::string& tried, const auto&) {
      auto is_longer = [&](const vm::ValueInfo& info) {
        return info.name.size() > tried.size() && text.starts_with(info.name + "=");
      };
      return find_item(inputs, tried, &vm::ValueInfo::name) && std::ranges::none_of(inputs, is_longer);
    });
    const vm::ValueInfo* known = find_item(inputs, name, &vm::ValueInfo::name);
    if (!known)
      fail_usage({}, "no input is called '{}'; there are {}", printable(name),
                 joined(inputs, [](const vm::ValueInfo& info) { return fmt::format("'{}'", printable(info.name)); }));
    give(*known, parse_value(value));
  }
  return given;
}

// Returns the input with numbers for the sizes of an image, to which it is scaled; its batch stays as it is.
static vm::ValueInfo with_sizes_of_picture(vm::ValueInfo info, const std::map<std::string, int64_t>& dims) {
  constexpr size_t kDimsOfPicture = 3;
  const size_t rank = info.dims ? info.dims->size() : 0;
  for (size_t d = rank - std::min(rank, kDimsOfPicture); d < rank; ++d) {
    vm::DimInfo& dim = (*info.dims)[d];
    const std::optional<int64_t> size = dim.text.empty() ? std::nullopt : evaluate_dim(dim.text, dims);
    if (size) dim = {.value = *size, .text = ""};
  }
  return info;
}

std::vector<vm::Value> InputOptions::make(const std::vector<vm::ValueInfo>& inputs, std::vector<WrittenValue> written,
                                          std::vector<std::string>* notes) const {
  FileReaders all = readers;
  const std::map<std::string, int64_t> dim_values = parse_dims(dims);
  all.picture = [&](const std::string& path, const vm::ValueInfo& info, std::vector<std::string>& more) {
    return read_picture(path, with_sizes_of_picture(info, dim_values), picture, more);
  };
  InputMaker maker(dim_values, seed, std::move(all), integers);
  std::vector<vm::Value> values = maker.make(inputs, std::move(written));
  check_sizes(dim_values, inputs, values, "an input that is given");
  if (notes) *notes = maker.notes();
  return values;
}

void InputOptions::check_picture() const {
  // The file may stand behind a name and in a list: "x=[a.png, b.png]".
  auto ends_a_word = [](char c) { return c == '=' || c == ',' || c == ' ' || c == '[' || c == ']'; };
  auto holds_picture = [&](const std::string& text) {
    for (size_t i = 0; i <= text.size(); ++i) {
      if ((i == text.size() || ends_a_word(text[i])) && is_picture(text.substr(0, i))) return true;
    }
    return false;
  };
  const char* flag = !picture.mean.empty()     ? "--mean"
                     : !picture.scale.empty()  ? "--scale"
                     : !picture.layout.empty() ? "--layout"
                                               : nullptr;
  if (flag && std::ranges::none_of(named, holds_picture))
    throw CLI::ValidationError(fmt::format(
        "{} is for inputs that are images, and none is: give one, --input NAME=FILE.png, or leave out {}", flag, flag));
}

void InputOptions::check_dims(const std::vector<vm::ValueInfo>& inputs) const {
  relaxc::tools::check_names(parse_dims(dims), inputs, {});
}

std::vector<vm::Value> InputOptions::make(const std::vector<vm::ValueInfo>& inputs,
                                          const std::map<std::string, int64_t>& fixed) const {
  check_names(parse_dims(dims), inputs, fixed);
  check_picture();
  std::vector<std::string> notes;
  std::vector<vm::Value> values = make(inputs, given(inputs), &notes);
  for (const std::string& note : notes) print_note("note: {}\n", note);
  return values;
}

}  // namespace relaxc::tools
