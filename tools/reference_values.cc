#include "tools/reference_values.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/nearest.h"
#include "tools/npz.h"
#include "vm/npy.h"

namespace relaxc::tools {

namespace fs = std::filesystem;

static void read_archive(const std::string& path, std::map<std::string, Tensor>& named) {
  for (const NpzMember& member : read_npz(path)) {
    const std::string place = fmt::format("{}: {}", path, printable(member.name));
    named.insert_or_assign(member.name, with_compile_errors({}, [&] { return read_npy_bytes(member.content, place); }));
  }
}

static void read_values_folder(const std::string& path, ReferenceValues& values) {
  const bool has_inputs = fs::exists(path + "/input_0.pb"), has_outputs = fs::exists(path + "/output_0.pb");
  if (has_inputs || has_outputs) values.folder = path;
  values.has_inputs |= has_inputs;
  values.has_outputs |= has_outputs;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".npy") continue;
    const std::string name = fs::relative(entry.path(), path).replace_extension().string();
    values.named.insert_or_assign(name, with_compile_errors({}, [&] { return read_npy(entry.path().string()); }));
  }
}

static void read_values(const std::string& path, ReferenceValues& values) {
  try {
    if (fs::is_directory(path)) return read_values_folder(path, values);
  } catch (const fs::filesystem_error& error) {
    fail({}, "the folder '{}' cannot be read: {}", path, error.code().message());
  }
  if (path.ends_with(".npy")) {
    values.named.insert_or_assign(fs::path(path).stem(), with_compile_errors({}, [&] { return read_npy(path); }));
    return;
  }
  if (!path.ends_with(".npz"))
    fail({}, "'{}' is neither an archive of values (.npz) nor a folder of them, nor NAME.npy", path);
  read_archive(path, values.named);
}

static bool is_left_open(const WrittenValue& given) {
  return given.open == 0 && given.text == "_" && !given.value && !given.tensor;
}

ReferenceValues read_reference_values(const std::vector<std::string>& paths) {
  ReferenceValues values;
  for (const std::string& path : paths) {
    const ReferenceValues before = values;
    read_values(path, values);
    const bool has_more = values.named.size() > before.named.size() || values.folder != before.folder;
    if (!has_more) fail({}, "'{}' has no values: expected output_0.pb, or NAME.npy for values of the model", path);
  }
  return values;
}

static bool same_elements(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return false;
  auto is_number = [](const Tensor& tensor) { return !tensor.dtype().is_complex() && !tensor.dtype().is_string(); };
  if (!is_number(a) || !is_number(b)) return true;  // nothing is said of these
  for (int64_t i = 0; i < a.size(); ++i) {
    if (a.as_double(i) != b.as_double(i) && !std::isnan(a.as_double(i))) return false;
  }
  return true;
}

std::vector<vm::Value> ReferenceValues::inputs(const std::vector<vm::ValueInfo>& infos,
                                               const InputOptions& flags) const {
  if (has_inputs) {
    std::vector<vm::Value> values = read_inputs(folder, infos);
    flags.check(infos, values);
    if (values.size() != infos.size()) fail({}, "{} has {} inputs, the model {}", folder, values.size(), infos.size());
    return values;
  }
  flags.check_dims(infos);
  std::vector<WrittenValue> given = flags.given(infos);
  std::vector<std::string> notes;
  for (size_t i = 0; i < infos.size(); ++i) {
    if (!is_left_open(given[i])) continue;
    if (const Tensor* value = find_value(named, infos[i].name))
      given[i] =
          written_value(infos[i].dtype ? with_dtype(*value, *infos[i].dtype, printable(infos[i].name), notes) : *value);
    else if (!empty())  // its values are not those of inputs at random
      fail({},
           "the reference has no value of input '{0}', and its other values depend on it: add input_{1}.pb or {0}.npy "
           "to it, or give --input {0}=FILE",
           printable(infos[i].name), i);
  }
  std::vector<vm::Value> values = flags.make(infos, std::move(given), &notes);
  for (const std::string& note : notes) print_note("note: {}\n", note);
  for (size_t i = 0; i < infos.size(); ++i) {
    const Tensor *stated = find_value(named, infos[i].name), *given = values[i].get_if<Tensor>();
    if (stated && given && !same_elements(*stated, *given))
      print_note("note: --reference has another '{0}' than --input, and its other values may depend on it\n",
                 printable(infos[i].name));
  }
  return values;
}

std::vector<vm::ValueInfo> ReferenceValues::drawn(const std::vector<vm::ValueInfo>& infos,
                                                  const InputOptions& flags) const {
  std::vector<vm::ValueInfo> drawn;
  if (has_inputs || !empty()) return drawn;
  const std::vector<WrittenValue> given = flags.given(infos);
  for (size_t i = 0; i < infos.size(); ++i) {
    if (is_left_open(given[i])) drawn.push_back(infos[i]);
  }
  return drawn;
}

void ReferenceValues::check_names(const std::vector<vm::ValueInfo>& infos,
                                  const std::vector<std::string>& values) const {
  std::vector<std::string> unknown;
  size_t num_known = 0;
  for (const auto& [name, _] : named) {
    if (find_item(infos, name, &vm::ValueInfo::name)) continue;
    std::ranges::count(values, name) > 0 ? void(++num_known) : unknown.push_back(name);
  }
  if (unknown.empty() && (num_known > 0 || has_outputs)) return;
  auto quoted = [](const std::string& name) { return fmt::format("'{}'", printable(name)); };
  constexpr size_t kMostShown = 5;
  const std::string shown = joined(std::span(unknown).first(std::min(unknown.size(), kMostShown)), quoted),
                    meant = unknown.empty() ? "" : nearest(unknown.front(), values);
  const std::string hint = meant.empty() ? "" : fmt::format("; did you mean '{}'?", printable(meant));
  if (num_known > 0 || has_outputs)
    return print_note(
        "note: {} of the values of --reference are not compared, since the model has none of these names: "
        "{}{}\n",
        unknown.size(), shown, hint);
  fail({}, "--reference has no value to compare with: it has {}, and the model's values are {}{}",
       unknown.empty() ? "inputs alone" : shown,
       joined(std::span(values).first(std::min(values.size(), kMostShown)), quoted) +
           (values.size() > kMostShown ? ", ..." : ""),
       hint);
}

std::vector<std::optional<vm::Value>> ReferenceValues::outputs(const std::vector<NamedValue>& results,
                                                               size_t num_own) const {
  std::vector<std::optional<vm::Value>> values =
      map_each(results, [&](const NamedValue& result) -> std::optional<vm::Value> {
        const Tensor* value = find_value(named, result.name);
        return value ? std::optional(vm::Value(*value)) : std::nullopt;
      });
  if (has_outputs)
    std::ranges::copy(read_outputs(folder, {results.begin(), results.begin() + num_own}), values.begin());
  return values;
}

void ReferenceValues::fit_floats(const std::string& name, const vm::Value& actual) {
  const auto stated = named.find(name);
  const Tensor* tensor = actual.get_if<Tensor>();
  if (stated == named.end() || !tensor || stated->second.dtype() == tensor->dtype()) return;
  if (!stated->second.dtype().is_float() || !tensor->dtype().is_float()) return;
  print_note("note: the {} values of '{}' are converted to {}\n", to_string(stated->second.dtype()), printable(name),
             to_string(tensor->dtype()));
  std::vector<std::string> notes;
  stated->second = with_dtype(stated->second, tensor->dtype(), printable(name), notes);
}

}  // namespace relaxc::tools
