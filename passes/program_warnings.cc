#include "passes/program_warnings.h"

#include <algorithm>
#include <map>

#include "ir/kernel_call.h"
#include "ir/verify/verify.h"
#include "passes/compose.h"
#include "tir/analysis/unwritten.h"

namespace relaxc {

namespace {

// The results of a program, as its calls show them.
struct CalledAs {
  std::vector<Buffer> results;
  bool is_open = false;  // a call writes over an operand, is of a tensor program, or is not understood
};

std::map<std::string, CalledAs> calls_in(const IRModule& module) {
  std::map<std::string, CalledAs> result;
  std::map<std::string, int> understood, mentioned;
  for (const auto& [_, function] : module.functions) {
    walk(function, [&](const GlobalVar& callee) { ++mentioned[callee.name]; });
    if (!function.is<Function>()) continue;
    walk(function, [&](const Ref<Call>& at) {
      std::optional<KernelCall> call = calls_kernel(op_name(at)) ? as_kernel_call(at, module) : std::nullopt;
      std::optional<PrimFuncRef> program = call ? called_program(call->callee, module) : std::nullopt;
      if (!program) return;
      CalledAs& known = result[call->name()];
      ++understood[call->name()];
      known.is_open |= std::ranges::any_of(call->in_place, [](int64_t tensor) { return tensor >= 0; });
      for (const KernelOperand& operand : match_kernel(*call, *program).operands) {
        if (operand.is_output) known.results.push_back(operand.param);
      }
    });
  }
  for (const auto& [name, count] : mentioned) {
    if (understood[name] < count) result[name].is_open = true;
  }
  return result;
}

// Adds those that stand at no place of which something has been said.
void add_new(std::vector<Diagnostic>& known, const std::vector<Diagnostic>& more) {
  for (const Diagnostic& one : more) {
    const std::string place = to_string(one.span);
    if (std::ranges::none_of(known, [&](const Diagnostic& other) { return to_string(other.span) == place; }))
      known.push_back(one);
  }
}

std::vector<Diagnostic> range_warnings(const std::string& name, const PrimFuncRef& program) {
  Diagnostics result;
  verify_ranges({{{name, program}}, {}, {}}, Ranges::kIndices, result);
  return result.all();
}

std::vector<Diagnostic> warnings_of(const std::string& name, const PrimFuncRef& program, const CalledAs* calls) {
  std::vector<Diagnostic> result = range_warnings(name, program);
  if (!calls || !calls->is_open)
    add_new(result, unwritten_results(program, calls ? calls->results : likely_results(program)));
  return result;
}

// Adds what the constant dims of the calls prove about the programs with these names.
void add_warnings_of_calls(std::vector<Diagnostic>& known, const IRModule& module, const std::set<std::string>& names) {
  const IRModule called = with_constant_dims(module);
  const std::map<std::string, CalledAs> calls = calls_in(called);
  std::set<std::string> places;  // a version for constant dims has the place of its program
  for (const std::string& name : names) places.insert(to_string(module.prim_func(name).span()));
  for (const auto& [name, program] : programs_of(called)) {
    const Expr* before = module.find(name);
    const bool is_new = !before || !same_node(*before, program);
    if (is_new && places.contains(to_string(program.span())))
      add_new(known, warnings_of(name, program, find_value(calls, name)));
  }
}

}  // namespace

std::vector<Diagnostic> program_warnings(const IRModule& module) {
  std::vector<Diagnostic> result;
  std::set<std::string> names;
  const std::map<std::string, CalledAs> calls = calls_in(module);
  for (const auto& [name, program] : programs_of(module)) {
    names.insert(name);
    add_new(result, warnings_of(name, program, find_value(calls, name)));
  }
  add_warnings_of_calls(result, module, names);
  return result;
}

std::vector<Diagnostic> warnings_of_calls(const IRModule& module, const std::set<std::string>& programs) {
  std::vector<Diagnostic> known;
  for (const std::string& name : programs) add_new(known, warnings_of(name, module.prim_func(name), nullptr));
  const std::ptrdiff_t of_any_dims = std::ssize(known);
  add_warnings_of_calls(known, module, programs);
  known.erase(known.begin(), known.begin() + of_any_dims);
  return known;
}

std::vector<Diagnostic> kernel_warnings(const std::vector<KernelRule>& rules) {
  std::vector<Diagnostic> result;
  for (const auto& [name, program] : programs_of(programs_of_rules(rules)))
    add_new(result, range_warnings(name, program));
  for (const KernelRule& rule : rules) {
    if (!rule.kernel || !rule.kernel->symbol.empty()) continue;
    const std::vector<Buffer> params = buffer_params(rule.kernel->program);
    const size_t count = std::min(params.size(), rule.pattern ? rule.pattern->results.size() : size_t{1});
    // A kernel must not write its operands: what it writes is a result, too.
    std::vector<Buffer> results = likely_results(rule.kernel->program);
    results.insert(results.end(), params.end() - static_cast<std::ptrdiff_t>(count), params.end());
    add_new(result, unwritten_results(rule.kernel->program, results));
  }
  return result;
}

}  // namespace relaxc
