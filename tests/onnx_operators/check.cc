#include "tests/onnx_operators/check.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/compile.h"
#include "frontend/onnx/test_data.h"
#include "ir/visit.h"
#include "support/diagnostic.h"
#include "tests/process.h"
#include "tests/run_reference.h"
#include "tools/compare.h"
#include "tools/values.h"
#include "vm/error.h"

namespace relaxc::test::onnx_operators {

namespace {

namespace fs = std::filesystem;

constexpr double kLimitSeconds = 60;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Draw {
  std::string folder, about;
  double rtol = 0, atol = 0;
  std::optional<std::pair<double, double>> limits = {};  // of the elements of random results

  explicit Draw(std::string place) : folder(std::move(place)) {
    std::ifstream file(folder + "/about.txt");
    std::getline(file, about);
    file >> rtol >> atol;
    if (double low, high; file >> low >> high) limits = {low, high};
  }
  std::string data(const char* what, size_t i) const {
    return fmt::format("{}/test_data_set_0/{}_{}.pb", folder, what, i);
  }
  bool has_expected_results() const { return fs::exists(data("expected", 0)); }
  bool has_runtime_results() const {
    return fs::exists(folder + "/ort_done") && !fs::exists(folder + "/ort_error.txt");
  }
};

// Random results agree in dtype and shape, and keep to their limits.
std::string compare_random(const std::string& name, const vm::Value& got, const vm::Value& wanted, const Draw& draw) {
  const Tensor &x = got.tensor(), &y = wanted.tensor();
  if (x.dtype() != y.dtype() || x.shape() != y.shape())
    return fmt::format("{}: got {}[{}], expected {}[{}]", name, to_string(x.dtype()), fmt::join(x.shape(), ", "),
                       to_string(y.dtype()), fmt::join(y.shape(), ", "));
  for (int64_t i = 0; i < x.size(); ++i) {
    if (!(x.as_double(i) >= draw.limits->first && x.as_double(i) <= draw.limits->second))
      return fmt::format("{}: element {} is {}, expected {} to {}", name, i, x.as_double(i), draw.limits->first,
                         draw.limits->second);
  }
  return {};
}

std::string compare_all(const char* with, const std::vector<tools::NamedValue>& got,
                        const std::vector<tools::NamedValue>& wanted, const Draw& draw) {
  for (size_t i = 0; i < got.size(); ++i) {
    std::string name = fmt::format("output {}", i);
    std::string difference = draw.limits
                                 ? compare_random(name, got[i].value, wanted.at(i).value, draw)
                                 : tools::compare_values(name, got[i].value, wanted.at(i).value, draw.rtol, draw.atol);
    if (!difference.empty()) return fmt::format("{}{}: {}", kCompared, with, difference);
  }
  return {};
}

std::vector<tools::NamedValue> run(const IRModule& module, const std::vector<vm::Value>& inputs,
                                   const CompileSettings& settings) {
  Program program = compile(module, settings).load();
  Session session(program, {.threads = 1, .step_limit = 1'000'000});
  return tools::flat_results(session.run_values(inputs), program.function("main").outputs);
}

bool has_known_dims(const Type& type) {
  const std::vector<Expr>* shape = known_shape(type);
  return shape && std::all_of(shape->begin(), shape->end(), [](const Expr& dim) { return as_int(dim).has_value(); });
}

// References compute in float64.
bool fits_float64(const Tensor& tensor) {
  if (!tensor.dtype().is_integral() || tensor.dtype().bits < 64) return true;
  constexpr int64_t kMost = int64_t{1} << 53;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.dtype().is_uint() && tensor.as_int(i) < 0) return false;  // beyond int64
    if (tensor.as_int(i) < -kMost || tensor.as_int(i) > kMost) return false;
  }
  return true;
}

// The reference of the row, where the module is one call on tensors of known dims.
std::optional<std::vector<Tensor>> reference_results(const IRModule& module, const std::vector<vm::Value>& inputs) {
  const Function& main = *module.functions.at("main").as<Function>();
  int calls = 0;
  bool is_simple = true;
  walk(
      main.body, [&](const Call& call) { calls += call.callee.as<OpRef>() != nullptr; },
      [&](const Constant& constant) { is_simple &= fits_float64(constant.data); });
  for (const VarRef& param : main.params) is_simple &= has_known_dims(param.type());
  std::vector<Tensor> tensors;
  for (const vm::Value& input : inputs) {
    is_simple &= input.get_if<Tensor>() && fits_float64(input.tensor());
    if (is_simple) tensors.push_back(input.tensor());
  }
  if (calls != 1 || !is_simple) return std::nullopt;
  return run_reference(module, tensors);
}

// What the parent process reads: "reference " if there was one, then the kind of failure, if any.
std::string judge_here(const Draw& draw) {
  std::string compared;
  try {
    CompileSettings settings, interpreted;
    settings.jobs = 1;
    interpreted.interpret.emplace();
    interpreted.passes = "legalize";
    IRModule module = read_module(draw.folder + "/model.onnx", settings);
    Program program = compile(module, settings).load();
    const vm::Function& main = program.function("main");
    std::vector<vm::Value> inputs;
    for (size_t i = 0; i < main.inputs.size(); ++i)
      inputs.push_back(read_value_pb(draw.data("input", i), main.inputs[i]));
    Session session(program, {.threads = 1, .step_limit = 1'000'000});
    std::vector<tools::NamedValue> got = tools::flat_results(session.run_values(inputs), main.outputs);
    std::string wrong;
    auto compare = [&](const char* with, const std::vector<tools::NamedValue>& wanted) {
      std::string difference = compare_all(with, got, wanted, draw);
      if (!difference.empty()) wrong += (wrong.empty() ? "" : "\n") + difference;
    };
    auto from_files = [&](const char* what) {
      std::vector<tools::NamedValue> wanted;
      for (size_t i = 0; i < got.size(); ++i)
        wanted.push_back({"", read_value_pb(draw.data(what, i), main.outputs.at(i)), {}});
      return wanted;
    };
    if (draw.has_runtime_results()) compare("ONNX Runtime", from_files("output"));
    if (draw.has_expected_results()) compare("the formula", from_files("expected"));
    compare("the interpreter", run(module, inputs, interpreted));
    if (auto reference = reference_results(module, inputs)) {
      compared = "reference ";
      std::vector<tools::NamedValue> wanted;
      for (const Tensor& tensor : *reference) wanted.push_back({"", tensor, {}});
      compare("the reference", wanted);
    }
    return compared + (wrong.empty() ? wrong : "wrong: " + wrong);
  } catch (const CompileError& error) {
    bool is_unsupported = error.kind() == ErrorKind::kUnsupported;
    return fmt::format("{}{}: {}", compared, is_unsupported ? "unsupported" : "refused", error.what());
  } catch (const RuntimeError& error) {
    return fmt::format("{}refused: at run time: {}", compared, error.what());
  } catch (const std::exception& error) {
    return fmt::format("{}crashed: {}", compared, error.what());
  }
}

Verdict verdict_of(const Draw& draw, const Outcome& outcome) {
  Verdict verdict;
  verdict.about = draw.about;
  verdict.by_ort = draw.has_runtime_results();
  verdict.by_formula = draw.has_expected_results() || draw.limits;
  std::string text = outcome.out;
  constexpr std::string_view kReference = "reference ";
  verdict.by_reference = text.starts_with(kReference);
  if (verdict.by_reference) text.erase(0, kReference.size());
  if (outcome.exit_code != 0) text = "crashed: " + outcome.how_it_ended() + " " + outcome.err.substr(0, 2000);
  verdict.text = text;
  auto is = [&](const char* word) { return text.starts_with(word); };
  std::string error = read_file(draw.folder + "/ort_error.txt");
  if (is("crashed")) verdict.kind = Kind::kCrashed;
  if (is("wrong")) verdict.kind = Kind::kWrong;
  if (is("unsupported")) verdict.kind = Kind::kUnsupported;
  // Without results a refusal is not known to be wrong: some draws leave the specification.
  bool is_known_right = verdict.by_ort || draw.has_expected_results();
  if (is("refused")) verdict.kind = is_known_right ? Kind::kRefused : Kind::kRefusedByAll;
  if (!error.empty()) verdict.text += (text.empty() ? "" : "\n") + ("ONNX Runtime: " + error);
  return verdict;
}

}  // namespace

std::vector<Verdict> judge(const std::vector<std::string>& folders) {
  std::vector<Draw> draws(folders.begin(), folders.end());
  std::vector<Verdict> verdicts(draws.size());
  op_table();  // made once here, not in each child
  run_forked(
      static_cast<int>(draws.size()), 2, kLimitSeconds,
      [&](int i) { return judge_here(draws[static_cast<size_t>(i)]); },
      [&](int i, const Outcome& outcome) {
        auto at = static_cast<size_t>(i);
        verdicts[at] = verdict_of(draws[at], outcome);
      });
  return verdicts;
}

}  // namespace relaxc::test::onnx_operators
