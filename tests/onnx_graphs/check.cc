#include "tests/onnx_graphs/check.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/compile.h"
#include "frontend/onnx/reduction_model.h"
#include "frontend/onnx/test_data.h"
#include "support/diagnostic.h"
#include "tests/differential/differential.h"
#include "tests/interpret_module.h"
#include "tests/onnx_graphs/runtime.h"
#include "tests/process.h"
#include "vm/error.h"

namespace relaxc::test::onnx_graphs {

namespace {

namespace fs = std::filesystem;

constexpr double kLimitSeconds = 120;
constexpr double kSlack = 32;  // times the error bound, which counts one rounding an operator or so

std::string compare(const Tensor& got, const Tensor& want, double error) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return fmt::format("got {}, expected {}", describe(got), describe(want));
  for (int64_t i = 0; i < want.size(); ++i) {
    if (want.dtype().is_integral() && got.as_int(i) != want.as_int(i))
      return fmt::format("element {} of {} is {}, expected {}", i, describe(want), got.as_int(i), want.as_int(i));
    double a = got.as_double(i), b = want.as_double(i);
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= kSlack * error + 1e-6 * std::fabs(b))
      continue;
    return fmt::format("element {} of {} is {}, expected {} within {:.3g}", i, describe(want), a, b, kSlack * error);
  }
  return {};
}

// Compares results with expected ones; the first difference, or nothing.
std::string compare_all(const Graph& graph, const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  if (got.size() != want.size()) return fmt::format("{} results, expected {}", got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    std::string difference = compare(got[i], want[i], graph.values.at(graph.outputs[i]).range.error);
    if (!difference.empty()) return fmt::format("output {}: {}", graph.outputs[i], difference);
  }
  return {};
}

IRModule through(const IRModule& module, const char* passes) {
  CompileSettings settings;
  settings.passes = passes;
  return run_pipeline(module, settings);
}

std::vector<Tensor> read_outputs(const Graph& graph, const std::string& folder, int binding) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    tensors.push_back(read_tensor_pb(fmt::format("{}/test_data_set_{}/output_{}.pb", folder, binding, i)));
  return tensors;
}

// Text for the parent process: what was compared, then the kind of failure, if any.
struct Checker {
  const Graph& graph;
  const std::string& folder;
  bool has_ort;
  std::string compared = {};

  std::string run() {
    try {
      return levels();
    } catch (const CompileError& error) {
      return fmt::format("{}: {}", error.kind() == ErrorKind::kUnsupported ? "unsupported" : "rejected", error.what());
    } catch (const RuntimeError& error) {
      return fmt::format("rejected: at run time: {}", error.what());
    } catch (const std::exception& error) {
      return fmt::format("crashed: {}", error.what());
    }
  }

  std::string levels() {
    CompileSettings settings;
    settings.jobs = 1;
    IRModule module = read_module(folder + "/model.onnx", settings);
    IRModule legal = through(module, "legalize"), scheduled = through(module, "simplify,kernels");
    Program program = compile(module, settings).load();
    Session one(program, {.threads = 1}), two(program, {.threads = 2});
    for (int binding = 0; binding < graph.bindings(); ++binding) {
      std::vector<Tensor> inputs = graph.make_inputs(binding);
      std::string wrong = binding_levels(binding, inputs, legal, scheduled, one, two);
      if (!wrong.empty()) return fmt::format("wrong: under binding {}, {}", binding, wrong);
    }
    return fixed_dims();
  }

  std::string binding_levels(int binding, const std::vector<Tensor>& inputs, const IRModule& legal,
                             const IRModule& scheduled, Session& one, Session& two) {
    std::vector<Tensor> results = one.run(inputs), parallel = two.run(inputs);
    for (size_t i = 0; i < results.size(); ++i) {
      if (!same_contents(results[i], parallel.at(i))) return "1 and 2 threads differ";
    }
    if (has_ort) {
      std::vector<Tensor> theirs = read_outputs(graph, folder, binding);
      // Of the stacked values of a loop without iterations it knows the first dim only, if no shape was inferred.
      for (size_t i = 0; i < theirs.size() && i < results.size(); ++i) {
        const bool is_unknown = theirs[i].ndim() == 1 && theirs[i].size() == 0;
        if (is_unknown && results[i].ndim() > 1 && results[i].shape()[0] == 0) theirs[i] = results[i];
      }
      std::string wrong = compare_all(graph, results, theirs);
      if (!wrong.empty()) return "compared with ONNX Runtime: " + wrong;
    }
    std::vector<Tensor> expected = interpret_module(legal, inputs, "legalize", {.check_regions = true});
    compared = "interpreted ";
    auto level = [&](const char* name, const std::vector<Tensor>& got) {
      std::string wrong = compare_all(graph, got, expected);
      return wrong.empty() ? wrong : fmt::format("{}: {}", name, wrong);
    };
    std::string wrong =
        level("scheduled", interpret_module(scheduled, inputs, "legalize", {.reverse_parallel_loops = true}));
    if (wrong.empty())
      wrong = level("lowered", interpret_module(scheduled, inputs, "destination_passing,lower_kernels"));
    if (wrong.empty()) wrong = level("compiled", results);
    return wrong;
  }

  // A third of the graphs also with the dims of one binding instead of symbols.
  std::string fixed_dims() {
    auto binding = static_cast<size_t>(graph.seed % 9);
    if (binding >= kBindings || !graph.given.empty()) return {};
    CompileSettings settings;
    settings.jobs = 1;
    std::vector<Tensor> inputs = graph.make_inputs(static_cast<int>(binding));
    for (const std::string& name : graph.inputs) {
      for (const Dim& dim : graph.values.at(name).shape) {
        if (!dim.symbol.empty()) settings.dims[dim.symbol] = dim.sizes[binding];
      }
    }
    IRModule module = read_module(folder + "/model.onnx", settings);
    std::vector<Tensor> got = Session(compile(module, settings).load(), {.threads = 1}).run(inputs);
    std::vector<Tensor> want =
        has_ort ? read_outputs(graph, folder, static_cast<int>(binding)) : interpret_module(module, inputs);
    std::string wrong = compare_all(graph, got, want);
    return wrong.empty() ? wrong : fmt::format("wrong: with the dims of binding {}: {}", binding, wrong);
  }
};

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Verdict verdict_of(const Outcome& outcome, const std::string& folder) {
  Verdict verdict;
  std::string text = outcome.out;
  verdict.interpreted = text.starts_with("interpreted ");
  if (verdict.interpreted) text.erase(0, 12);
  if (outcome.exit_code != 0) text = "crashed: " + outcome.how_it_ended() + " " + outcome.err.substr(0, 2000);
  std::string refused = read_file(folder + "/ort_error.txt");
  verdict.by_ort = fs::exists(folder + "/ort_done") && refused.empty();
  auto is = [&](const char* word) { return text.starts_with(word); };
  verdict.text = text;
  if (is("crashed")) verdict.kind = Kind::kCrashed;
  if (is("wrong")) verdict.kind = Kind::kWrong;
  if (is("unsupported")) verdict.kind = Kind::kUnsupported;
  if (is("rejected")) verdict.kind = refused.empty() ? Kind::kRejected : Kind::kRejectedByAll;
  if (verdict.kind == Kind::kRejectedByAll) verdict.text += "\n  ONNX Runtime: " + refused;
  return verdict;
}

}  // namespace

std::vector<Verdict> check_graphs(const std::vector<Graph>& graphs, const std::string& folder,
                                  const std::string& runtime) {
  std::vector<std::string> folders;
  for (const Graph& graph : graphs) {
    folders.push_back(fmt::format("{}/{}", folder, graph.seed));
    graph.write(folders.back());
  }
  if (!runtime.empty()) run_onnx_runtime(folders, runtime, kLimitSeconds);
  op_table();  // made once here, not in each child
  std::vector<Verdict> verdicts(graphs.size());
  run_forked(
      static_cast<int>(graphs.size()), 2, kLimitSeconds,
      [&](int i) {
        const std::string& place = folders[static_cast<size_t>(i)];
        Checker checker{graphs[static_cast<size_t>(i)], place,
                        fs::exists(place + "/ort_done") && !fs::exists(place + "/ort_error.txt")};
        std::string text = checker.run();
        return checker.compared + text;
      },
      [&](int i, const Outcome& outcome) {
        verdicts[static_cast<size_t>(i)] = verdict_of(outcome, folders[static_cast<size_t>(i)]);
      });
  for (size_t i = 0; i < folders.size(); ++i) {
    if (verdicts[i].kind == Kind::kRight) fs::remove_all(folders[i]);
  }
  return verdicts;
}

namespace {

// The graph with another model, whose values have the ranges of those of the same name.
Graph with_model(const Graph& graph, const ModelCase& small) {
  Graph result = graph;
  result.model.ParseFromString(small.model);
  result.inputs.clear();
  result.given.clear();
  for (const vm::ValueInfo& info : inputs_of_onnx(small.model)) {
    result.inputs.push_back(info.name);
    result.given.emplace(info.name, small.inputs.at(info.name).tensor());
  }
  result.outputs = outputs_of_onnx(small.model);
  return result;
}

// The values of the outputs, by the interpreter.
std::map<std::string, vm::Value> record(const Graph& graph, const std::string& folder) {
  std::map<std::string, vm::Value> values;
  try {
    graph.write(folder);
    std::vector<Tensor> results = interpret_module(read_module(folder + "/model.onnx"), graph.make_inputs(0));
    for (size_t i = 0; i < results.size(); ++i) values[graph.outputs.at(i)] = results[i];
  } catch (const std::exception&) {  // it does not run to its end
    values.clear();
  }
  return values;
}

}  // namespace

std::string shrink(const Graph& graph, const Verdict& verdict, const std::string& folder, const std::string& runtime) {
  std::optional<ModelCase> failing;
  const std::string place = fmt::format("{}/{}", folder, graph.seed);
  auto fails = [&](const ModelCase& small) {
    Graph candidate = with_model(graph, small);
    // Results of unknown ranges have no tolerance: those within branches and of nodes that the generator adds.
    if (std::ranges::any_of(candidate.outputs, [&](const std::string& name) { return !graph.values.contains(name); }))
      return false;
    return check_graphs({candidate}, folder, runtime)[0].kind == verdict.kind;
  };
  for (int binding = 0; binding < kBindings && !failing; ++binding) {
    ModelCase whole{graph.model.SerializeAsString(), {}};
    std::vector<Tensor> inputs = graph.make_inputs(binding);
    for (size_t i = 0; i < inputs.size(); ++i) whole.inputs[graph.inputs[i]] = inputs[i];
    for (bool fixed : {false, true}) {
      onnx_import::ReductionModel model(whole);
      if (fixed) model.fix_symbols();
      if (!failing && !inputs.empty() && fails(model.to_case())) failing = model.to_case();
    }
  }
  if (!failing) return graph.print();  // it fails under several bindings only
  ReductionJudge judge;
  judge.fails = fails;
  if (verdict.kind != Kind::kCrashed)  // the import runs in this process
    judge.record = [&](const ModelCase& small) { return record(with_model(graph, small), place); };
  ModelCase small = reduce_onnx(*failing, judge);
  with_model(graph, small).write(place);
  return print_onnx(small);
}

}  // namespace relaxc::test::onnx_graphs
