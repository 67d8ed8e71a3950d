#include "tools/plain_model.h"

#include <utility>

#include "codegen/text_file.h"
#include "ir/visit.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "tools/console.h"

namespace relaxc::tools {

PlainModel::PlainModel(std::string path, CompileSettings settings)
    : path_(std::move(path)), settings_(std::move(settings)) {
  settings_.runner = settings_.runner.verification_only();
  settings_.passes = "legalize";
  settings_.interpret.emplace();
  settings_.report = nullptr;  // of rules for passes that do not run
}

void PlainModel::set_inputs(const std::string& function, const std::vector<vm::ValueInfo>& infos,
                            const std::vector<vm::Value>& inputs) {
  function_ = function;
  infos_ = infos;
  inputs_ = inputs;
  run_.reset();
  for (size_t i = 0; i < infos.size(); ++i) named_inputs_.insert_or_assign(infos[i].name, inputs[i]);
  if (is_text_file(split_text_path(path_).file)) return;
  try {
    case_ = read_model_case(path_);
    case_->inputs = named_inputs_;
    nodes_ = nodes_of_onnx(case_->model);
  } catch (const CompileError& error) {
    print_note("note: nodes cannot be run one by one: {}\n", error.what());
    case_.reset();
  }
}

std::optional<size_t> PlainModel::find_node(std::string_view name) const {
  const OnnxGraphNode* node = find_item(nodes_, name, &OnnxGraphNode::name);
  return node ? std::optional(static_cast<size_t>(node - nodes_.data())) : std::nullopt;
}

std::string PlainModel::place_of(const std::string& nodes, const std::string& kernel) const {
  if (const auto node = find_node(nodes)) return fmt::format("'{}' ({})", nodes, nodes_[*node].op_type);
  return nodes.empty() ? fmt::format("kernel '{}'", kernel) : fmt::format("'{}'", nodes);
}

std::vector<std::string> PlainModel::constants_with_nan(const IRModule& module) const {
  std::vector<std::string> lines;
  auto add = [&](const std::string& name, const Tensor& tensor) {
    if (has_nan(tensor)) lines.push_back(fmt::format("{} has {}", name, not_finite(tensor)));
  };
  if (case_) {
    for (const auto& [name, tensor] : initializers_of_onnx(case_->model))
      add(fmt::format("initializer '{}'", printable(name)), tensor);
  }
  if (!lines.empty()) return lines;
  for (const auto& [name, function] : module.functions) {
    walk(function, [&](const Ref<Constant>& constant) {
      const std::string place = to_string(constant.span());
      add("a constant of " + (place.empty() ? fmt::format("'{}'", name) : place), constant->data);
    });
  }
  return lines;
}

std::optional<ModelCase> PlainModel::single(size_t node, const std::map<std::string, vm::Value>& values) const {
  try {
    return single_node(*case_, node, values);
  } catch (const CompileError& error) {
    print_detail("{} does not run by itself: {}\n", place_of(nodes_[node].name), error.what());
    return std::nullopt;
  }
}

const ObservedRun& PlainModel::run() {
  if (run_) return *run_;
  if (!std::exchange(has_told_, true))
    print_note("the operators run in the interpreter, which takes about 1000 times as long as machine code\n");
  if (case_) {
    const std::string model = with_all_results(case_->model);
    CompileSettings shown = settings_;
    shown.contents = std::as_bytes(std::span(model));
    try {
      interpret(shown);
    } catch (const CompileError& error) {  // a value that no result can be, say
      print_detail("not all values can be results: {}\n", error.what());
    }
  }
  // Results of the model need not be those of nodes.
  auto has_value = [&](const std::string& name) { return find_item(values_, name, &NamedValue::name) != nullptr; };
  if (!run_ || !std::ranges::all_of(outputs_of_onnx(case_->model), has_value)) interpret(settings_);
  return *run_;
}

void PlainModel::interpret(const CompileSettings& settings) {
  const CompiledModule compiled = compile(read_scheduled_module(path_, settings), settings);
  const Program program = compiled.load();
  run_ = observe(program, compiled.lowered(), inputs_, function_, {.pieces = "operators run in the interpreter"});
  values_ = flat_results(run_->result, program.function(function_).outputs);
  if (!run_->is_complete) print_note("note: only the first 2 GiB of values are compared\n");
}

const vm::Value* PlainModel::find(const std::string& name) {
  run();
  const NamedValue* found = find_item(values_, name, &NamedValue::name);
  return found ? &found->value : nullptr;
}

vm::Value PlainModel::result(const NamedValue& named, size_t place) {
  const vm::Value* found = find(named.name);
  const NamedValue value = found ? NamedValue{named.name, *found, named.dtype} : values_.at(place);
  std::optional<Tensor> tensor = as_tensor(value);
  return tensor ? vm::Value(*tensor) : value.value;
}

std::map<std::string, vm::Value> PlainModel::values_with(const std::map<std::string, Tensor>& others) {
  run();
  std::map<std::string, vm::Value> values = named_inputs_;
  for (const auto& [name, tensor] : others) values.insert_or_assign(name, tensor);
  for (const NamedValue& value : values_) values.try_emplace(value.name, value.value);
  return values;
}

}  // namespace relaxc::tools
