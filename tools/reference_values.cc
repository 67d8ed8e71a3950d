#include "tools/reference_values.h"

#include <filesystem>

#include "support/diagnostic.h"
#include "support/lists.h"
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
  if (!path.ends_with(".npz")) fail({}, "'{}' is neither an archive of values (.npz) nor a folder of them", path);
  read_archive(path, values.named);
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
  for (size_t i = 0; i < infos.size(); ++i) {
    const bool is_open = given[i].open == 0 && given[i].text == "_" && !given[i].value && !given[i].tensor;
    if (!is_open) continue;
    if (const Tensor* value = find_value(named, infos[i].name))
      given[i] = written_value(*value);
    else if (!empty())  // its values are not those of inputs at random
      fail({},
           "the reference has no value of input '{0}', and its other values depend on it: add input_{1}.pb or {0}.npy "
           "to it, or give --input {0}=FILE",
           printable(infos[i].name), i);
  }
  std::vector<std::string> notes;
  std::vector<vm::Value> values = flags.make(infos, std::move(given), &notes);
  for (const std::string& note : notes) print_note("note: {}\n", note);
  return values;
}

std::vector<std::optional<vm::Value>> ReferenceValues::outputs(const std::vector<NamedValue>& results) const {
  if (has_outputs)
    return map_each(read_outputs(folder, results), [](const vm::Value& value) { return std::optional(value); });
  return map_each(results, [&](const NamedValue& result) -> std::optional<vm::Value> {
    const Tensor* value = find_value(named, result.name);
    return value ? std::optional(vm::Value(*value)) : std::nullopt;
  });
}

}  // namespace relaxc::tools
