#include "tools/reproducer.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "frontend/onnx/test_data.h"
#include "ir/text/printer.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "support/temporary_folder.h"
#include "tir/analysis/buffer_uses.h"
#include "tools/timing.h"
#include "vm/npy.h"

namespace relaxc::tools {

namespace {

constexpr double kMostReductionMs = 60'000;

using NamedValues = std::map<std::string, vm::Value>;

// Compiles and runs a model in memory.
NamedValues run_case(const ModelCase& model, const CompileSettings& settings) {
  CompileSettings copy = settings;
  copy.contents = std::as_bytes(std::span(model.model));
  copy.runner = settings.runner.verification_only();
  copy.progress = nullptr;
  copy.warn = nullptr;
  copy.report = nullptr;
  copy.types.clear(), copy.dims.clear();  // of inputs that may be gone
  const Program program = compile(read_module("model.onnx", copy), copy).load();
  const vm::Function& function = program.function();
  std::vector<vm::Value> inputs;
  for (const vm::ValueInfo& info : function.inputs) {
    const vm::Value* value = find_value(model.inputs, info.name);
    if (!value) fail({}, "input '{}' has no value", info.name);
    inputs.push_back(*value);
  }
  NamedValues results;
  const vm::Value result = Session(program, {.threads = 1}).run_values(inputs, function.name);
  for (NamedValue& named : flat_results(result, function.outputs)) {
    std::optional<Tensor> tensor = as_tensor(named);
    results.emplace(named.name, tensor ? vm::Value(*tensor) : named.value);
  }
  return results;
}

CompileSettings of_operators(CompileSettings settings) {
  settings.passes = "legalize";
  settings.interpret.emplace();
  return settings;
}

}  // namespace

NamedValues results_of_operators(const ModelCase& model, const CompileSettings& settings) {
  try {
    return run_case(model, of_operators(settings));
  } catch (const CompileError&) {
  } catch (const RuntimeError&) {
  }
  return {};
}

bool differs_from_operators(const ModelCase& model, const CompileSettings& settings, const Closeness& closeness) {
  try {
    const NamedValues right = run_case(model, of_operators(settings)), found = run_case(model, settings);
    return std::ranges::any_of(right, [&](const auto& entry) {
      const vm::Value* value = find_value(found, entry.first);
      return value && !compare_closely(entry.first, *value, entry.second, closeness).empty();
    });
  } catch (const CompileError&) {
  } catch (const RuntimeError&) {
  }
  return false;
}

void Reproducer::add_line(const std::string& line) {
  print_message("{}\n", line);
  lines_ += line + "\n";
}

// Returns why no file can be made in the folder; "" where one can.
static std::string why_not_writable(const std::string& folder) {
  try {
    vm::make_folder(folder);
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return access(folder.c_str(), W_OK | X_OK) == 0
             ? ""
             : fmt::format("cannot write to the folder '{}': {}", folder, std::strerror(errno));
}

const std::string& Reproducer::folder() {
  if (is_made_) return folder_;
  is_made_ = true;
  const std::string why = why_not_writable(folder_);
  if (why.empty()) return folder_;
  const std::string temporary = make_temporary_folder("relaxc-debug");
  if (temporary.empty()) throw_runtime_error("{}; name another folder: -o DIR", why);
  print_note("note: {}; the reproducer goes to '{}' (-o DIR names another folder)\n", why, temporary);
  folder_ = temporary;
  return folder_;
}

void Reproducer::write() { vm::write_file(folder() + "/report.txt", lines_); }

// Writes the model with its inputs, and those results that have a value.
void Reproducer::write_case(const ModelCase& model, const NamedValues& results) {
  const std::string data = folder() + "/test_data_set_0";
  vm::make_folder(data);
  vm::write_file(folder_ + "/model.onnx", model.model);
  int count = 0;
  for (const vm::ValueInfo& info : inputs_of_onnx(model.model)) {
    const vm::Value* value = find_value(model.inputs, info.name);
    if (value) write_value_pb(fmt::format("{}/input_{}.pb", data, count), *value, info.name, info.is_optional);
    ++count;
  }
  count = 0;
  for (const std::string& name : outputs_of_onnx(model.model)) {
    const vm::Value* value = find_value(results, name);
    if (value) write_value_pb(fmt::format("{}/output_{}.pb", data, count), *value, name, false);
    ++count;
  }
}

void Reproducer::write_kernel(const std::string& name, const PrimFuncRef& program, const std::vector<Tensor>& tensors,
                              const std::string& flags) {
  const std::vector<BufferUse> uses = buffer_uses(program);
  if (uses.size() != tensors.size()) return;
  folder();
  std::string command = fmt::format("relaxc debug {}/kernel.py", folder_);
  if (flags.find("--function") == std::string::npos) command += " --function " + name;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (!uses[i].is_read) continue;
    const std::string file = fmt::format("{}/{}.npy", folder_, uses[i].buffer->name);
    try {
      write_npy(file, tensors[i]);
    } catch (const RuntimeError& error) {  // bfloat16
      print_note("note: the kernel is not written by itself: {}\n", error.what());
      return;
    }
    command += fmt::format(" --input {}={}", uses[i].buffer->name, file);
  }
  IRModule module;
  module.functions.insert_or_assign(name, program);
  const PrintOptions print{.constants_file = folder_ + "/kernel.safetensors"};
  vm::write_file(folder_ + "/kernel.py", print_module(module, print));
  say("reproducer: {}{}", command, flags);
}

void Reproducer::write_reduced(const ModelCase& model, const CompileSettings& settings, const Closeness& closeness,
                               const std::string& flags) {
  if (!differs_from_operators(model, settings, closeness)) return;
  const double deadline = now_ms() + kMostReductionMs;
  ReductionJudge judge;
  judge.fails = [&](const ModelCase& candidate) {
    return now_ms() < deadline && differs_from_operators(candidate, settings, closeness);
  };
  judge.record = [&](const ModelCase& candidate) { return results_of_operators(candidate, settings); };
  judge.report = [](const std::string& line) { print_note("{}\n", line); };
  const ModelCase small = reduce_onnx(model, judge);
  write_case(small, results_of_operators(small, settings));
  std::string text = print_onnx(small);
  if (text.ends_with('\n')) text.pop_back();
  say("what is left of the model:\n{}", text);
  say("reproducer: relaxc debug {0}/model.onnx --reference {0}/test_data_set_0{1}", folder_, flags);
}

}  // namespace relaxc::tools
