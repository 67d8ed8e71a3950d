#include "tools/results.h"

#include <fstream>

#include "support/file_kind.h"
#include "support/joined.h"
#include "tools/console.h"
#include "tools/inputs.h"
#include "vm/npy.h"

namespace relaxc::tools {

namespace {

// Writes the value to a file. Without messages of ONNX, an item of a sequence is a file of its own, and so are the keys
// and values of a map; text is one that ends in .txt. Functions have no file.
void write_result(const std::string& path, const NamedValue& result, const ResultOptions& options) {  // NOLINT: bounded
  const auto* sequence = result.value.get_if<vm::Sequence>();
  const auto* map = result.value.get_if<vm::Map>();
  if (options.format == "pb" && (sequence || map || result.is_optional)) return options.value_pb(path + ".pb", result);
  if (map) {
    write_npy(path + "_keys.npy", map->keys());
    return write_npy(path + "_values.npy", map->values());
  }
  if (sequence) {
    int64_t i = 0;
    for (const vm::Value& item : sequence->items.fields())
      write_result(fmt::format("{}_{}", path, i++), {result.name, item, {}}, options);
    return;
  }
  if (const auto* text = result.value.get_if<std::string>()) return vm::write_file(path + ".txt", *text);
  std::optional<Tensor> tensor = as_tensor(result);
  if (!tensor) return print_error("{} is not written to a file\n", summary(result));
  options.format == "pb" ? options.tensor_pb(path + ".pb", *tensor, result.name) : write_npy(path + ".npy", *tensor);
}

// Writes the only result to standard output.
void write_only_result(const std::vector<NamedValue>& results, const ResultOptions& options) {
  const std::optional<Tensor> tensor = results.size() == 1 ? as_tensor(results[0]) : std::nullopt;
  if (!tensor)
    fail_usage({}, "standard output takes one tensor, and the results are {}; --output-dir DIR writes each to a file",
               results.empty() ? "none" : joined(results, [](const auto& result) { return printable(result.name); }));
  const std::string path = "/dev/stdout";
  options.format == "pb" ? options.tensor_pb(path, *tensor, results[0].name) : write_npy(path, *tensor);
}

// Returns the lines of the file, each the name of a class.
std::vector<std::string> labels_of(const ResultOptions& options) {
  if (options.labels.empty()) return {};
  std::ifstream file(options.labels, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  expect_text(options.labels, text, "a file with the name of a class on each line");
  std::vector<std::string> labels;
  for (std::string_view line : parts_of(without_byte_order_mark(text), '\n'))
    labels.emplace_back(line.substr(0, line.size() - (line.ends_with('\r') ? 1 : 0)));
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  return labels;
}

// Says so where a row of the result has more classes than the file has lines.
void note_missing_labels(const NamedValue& result, size_t count) {
  const std::optional<Tensor> tensor = as_tensor(result);
  const bool has_classes = tensor && tensor->ndim() > 0 && !tensor->dtype().is_complex();
  const int64_t classes = has_classes ? tensor->shape().back() : 0;
  if (classes > static_cast<int64_t>(count))
    print_note("note: result '{}' has {} classes, and the file of --labels {}\n", printable(result.name), classes,
               counted(count, "line"));
}

// Prints what --top and --labels ask for, or why there is nothing.
void show_largest(const NamedValue& result, int64_t count, const std::vector<std::string>& labels) {
  const std::string text = largest_elements(result, count, labels);
  const auto* tensor = result.value.get_if<Tensor>();
  const bool is_empty = tensor && tensor->size() == 0;
  if (text.empty() && !is_empty)
    print_note("note: result '{}' ({}) has no largest elements, which tensors of real numbers have\n",
               printable(result.name), printable(describe(result.value)));
  print_message("{}", text);
}

}  // namespace

void ResultOptions::add_to(CLI::App& app) {
  app.add_option("--output-dir", output_dir,
                 fmt::format("write output_0.npy{} ... there; -: the only result to standard output",
                             tensor_pb ? " (or .pb)" : ""));
  if (tensor_pb) {
    app.add_option("--format", format, "the format of written outputs")
        ->check(one_of({"npy", "pb"}))
        ->capture_default_str();
  }
  app.add_option("--top", top, "print the largest elements of each row of the results (5 with --labels)")
      ->check(whole_number_in(1, kMostRuns));
  app.add_option("--labels", labels, "a file with the name of a class on each line, for --top")
      ->check(CLI::ExistingFile);
}

void ResultOptions::check(const std::vector<std::string>& inputs) const {
  console().has_result = output_dir == "-";
  if (!console().has_result) check_output_folder(output_dir, inputs);
}

void show_results(const std::vector<NamedValue>& results, const std::string& function, const ResultOptions& options) {
  constexpr int64_t kUsualTop = 5;
  const int64_t top = options.top > 0 ? options.top : options.labels.empty() ? 0 : kUsualTop;
  const bool has_folder = !options.output_dir.empty() && !console().has_result;
  if (console().has_result) write_only_result(results, options);
  if (has_folder) vm::make_folder(options.output_dir);
  if (results.empty()) print_message("{} has no results\n", function);
  const std::vector<std::string> labels = labels_of(options);
  for (size_t i = 0; i < results.size(); ++i) {
    print_message("{}\n", summary(results[i]));
    if (!labels.empty()) note_missing_labels(results[i], labels.size());
    if (top > 0) show_largest(results[i], top, labels);
    if (has_folder) write_result(fmt::format("{}/output_{}", options.output_dir, i), results[i], options);
  }
}

}  // namespace relaxc::tools
