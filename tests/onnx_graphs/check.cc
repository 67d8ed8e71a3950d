#include "tests/onnx_graphs/check.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/compile.h"
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
    for (int binding = 0; binding < kBindings; ++binding) {
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
      std::string wrong = compare_all(graph, results, read_outputs(graph, folder, binding));
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
    if (binding >= kBindings) return {};
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

Graph shrink(const Graph& graph, const Verdict& verdict, const std::string& folder, const std::string& runtime) {
  Graph best = graph;
  auto try_graph = [&](Graph candidate) {
    finish(candidate);
    if (check_graphs({candidate}, folder, runtime)[0].kind != verdict.kind) return false;
    best = std::move(candidate);
    return true;
  };
  // The first value that fails alone.
  std::vector<std::string> results;
  for (const onnx::NodeProto& node : graph.model.graph().node()) {
    for (const std::string& output : node.output()) {
      if (graph.values.contains(output)) results.push_back(output);
    }
  }
  for (const std::string& result : results) {
    Graph candidate = graph;
    candidate.outputs = {result};
    if (try_graph(std::move(candidate))) break;
  }
  // Inputs in place of what computes a value; later values first, since they take most away.
  for (size_t i = results.size(); i-- > 0;) {
    const Value& value = best.values.at(results[i]);
    bool is_read = value.name != best.outputs[0] && value.range.exact();
    if (!is_read) continue;
    Graph candidate = best;
    candidate.inputs.push_back(value.name);
    onnx::GraphProto& proto = *candidate.model.mutable_graph();
    for (onnx::NodeProto& node : *proto.mutable_node()) {
      for (std::string& output : *node.mutable_output()) {
        if (output == value.name) output += "_unused";
      }
    }
    size_t nodes = static_cast<size_t>(best.model.graph().node_size());
    finish(candidate);
    if (static_cast<size_t>(proto.node_size()) < nodes) try_graph(std::move(candidate));
  }
  for (const char* symbol : {"n", "m", "k"}) {
    Graph candidate = best;
    for (auto& [name, value] : candidate.values) {
      for (Dim& dim : value.shape) {
        if (dim.symbol == symbol) dim = dim.sizes[0];
      }
    }
    try_graph(std::move(candidate));
  }
  finish(best);
  best.write(fmt::format("{}/{}", folder, best.seed));
  return best;
}

}  // namespace relaxc::test::onnx_graphs
