#include "frontend/onnx/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "frontend/onnx/reduction_model.h"
#include "support/diagnostic.h"

namespace relaxc {

namespace onnx_import {

namespace {

class ModelReducer {
 public:
  ModelReducer(ReductionModel original, const ReductionJudge& judge) : best_(std::move(original)), judge_(judge) {}

  ModelCase run() {
    attempt("documentation and declared types", [](ReductionModel& model) { model.strip(); });
    // Each step makes room for others.
    for (int round = 0; round < kRounds; ++round) {
      size_t before = best_.bytes();
      cut_outputs();
      if (!judge_.keeps_outputs) cut_tail();
      cut_outputs();
      cut_head();
      cut_nodes();
      cut_inner_nodes();
      fix_symbols();
      if (!judge_.keeps_outputs) change_results();
      if (best_.bytes() >= before) break;
    }
    best_.declare_outputs(recorded_outputs());
    return best_.to_case();
  }

 private:
  static constexpr int kRounds = 4;

  // Applies the edit to a copy, which becomes the best if it still fails.
  bool attempt(const std::string& what, const std::function<void(ReductionModel&)>& edit) {
    ReductionModel candidate = best_;
    try {
      edit(candidate);
      candidate.prune();
    } catch (const CompileError&) {
      return false;  // not possible here
    }
    if (candidate.same_as(best_) || !judge_.fails(candidate.to_case())) return false;
    best_ = std::move(candidate);
    judge_.report(fmt::format("{}: {} nodes, {} bytes are left", what, best_.num_nodes(), best_.bytes()));
    return true;
  }

  // Applies an edit that makes inputs: with dims that are numbers, and where that hides the failure, with open ones.
  bool attempt_inputs(const std::string& what, const std::function<void(ReductionModel&, NewDims)>& edit) {
    if (attempt(what, [&](ReductionModel& model) { edit(model, NewDims::kNumbers); })) return true;
    return best_.has_symbols() && attempt(what, [&](ReductionModel& model) { edit(model, NewDims::kSymbols); });
  }

  // Steps after which other results are right.
  void change_results() {
    cut_bypasses();
    cut_attributes();
    shrink_dims();
    simplify_numbers();
  }

  void cut_outputs() {
    std::vector<std::string> names = best_.outputs();
    if (names.size() < 2) return;
    for (const std::string& name : names) {
      if (attempt("one output", [&](ReductionModel& model) { model.set_outputs({name}); })) return;
    }
    for (const std::string& name : names) {
      std::vector<std::string> rest = best_.outputs();
      std::erase(rest, name);
      if (!rest.empty()) attempt("fewer outputs", [&](ReductionModel& model) { model.set_outputs(rest); });
    }
  }

  // Outputs in place of the last nodes: the shortest list of first nodes that fails, by bisection.
  void cut_tail() {
    size_t most = best_.num_nodes(), least = 0;
    while (least + 1 < most) {
      size_t middle = (least + most) / 2;
      size_t before = best_.num_nodes();
      bool fails = attempt("without the last nodes", [&](ReductionModel& model) { model.keep_first(middle); });
      if (!fails) {
        least = middle;
        continue;
      }
      // Nodes whose results nothing reads went away, too.
      most = std::min(middle, best_.num_nodes());
      if (best_.num_nodes() < std::min(before, middle)) least = 0;
    }
  }

  // Inputs in place of the first nodes.
  void cut_head() {
    size_t count = best_.num_nodes();
    if (count < 2) return;
    record();
    size_t least = 0, most = count - 1;  // nodes that go
    while (least < most) {
      size_t middle = (least + most + 1) / 2;
      size_t before = best_.num_nodes();
      if (!attempt_inputs("inputs for the first nodes",
                          [&](ReductionModel& model, NewDims dims) { model.drop_nodes(0, middle, recorded_, dims); })) {
        most = middle - 1;
        continue;
      }
      least = 0;
      most = best_.num_nodes() - 1;
      if (best_.num_nodes() == before) return;
    }
  }

  // Inputs in place of single nodes, in groups of a size that halves.
  void cut_nodes() {
    record();
    for (size_t size = std::max<size_t>(best_.num_nodes() / 2, 1);; size /= 2) {
      for (size_t end = best_.num_nodes(); end > 0;) {
        size_t begin = end > size ? end - size : 0;
        attempt_inputs("inputs for nodes",
                       [&](ReductionModel& model, NewDims dims) { model.drop_nodes(begin, end, recorded_, dims); });
        end = std::min(begin, best_.num_nodes());
      }
      if (size <= 1) return;
    }
  }

  // Inputs in place of the nodes of branches and bodies, which values of their first run stand for.
  void cut_inner_nodes() {
    if (best_.num_graphs() < 2) return;
    record();
    record_bodies();
    for (size_t graph = 1; graph < best_.num_graphs(); ++graph) {
      for (size_t size = std::max<size_t>(best_.num_nodes(graph) / 2, 1);; size /= 2) {
        for (size_t end = best_.num_nodes(graph); end > 0;) {
          size_t begin = end > size ? end - size : 0;
          attempt_inputs("inputs for nodes of a body", [&](ReductionModel& model, NewDims dims) {
            model.drop_inner_nodes(graph, begin, end, recorded_, dims);
          });
          end = std::min(begin, best_.num_nodes(graph));
        }
        if (size <= 1) break;
      }
    }
  }

  // An operand of a node in place of its result.
  void cut_bypasses() {
    for (size_t graph = 0; graph < best_.num_graphs(); ++graph) {
      for (size_t node = best_.num_nodes(graph); node-- > 0;) {
        for (size_t operand = 0; node < best_.num_nodes(graph) && operand < best_.num_operands(graph, node);
             ++operand) {
          if (attempt("an operand for a node", [&](ReductionModel& model) { model.bypass(graph, node, operand); }))
            break;
        }
      }
    }
  }

  void cut_attributes() {
    for (size_t graph = 0; graph < best_.num_graphs(); ++graph) {
      for (size_t node = 0; node < best_.num_nodes(graph); ++node) {
        for (const std::string& name : best_.attributes(graph, node))
          attempt("a default for attribute " + name,
                  [&](ReductionModel& model) { model.drop_attribute(graph, node, name); });
      }
    }
  }

  void fix_symbols() {
    if (attempt("numbers for symbolic dims", [](ReductionModel& model) { model.fix_symbols(); })) return;
    for (const std::string& symbol : best_.symbols())
      attempt("a number for dim " + symbol, [&](ReductionModel& model) { model.fix_symbol(symbol); });
  }

  void shrink_dims() {
    std::set<int64_t> sizes = best_.sizes();
    for (auto it = sizes.rbegin(); it != sizes.rend(); ++it) {
      int64_t size = *it;
      for (int64_t smaller : {int64_t{1}, int64_t{2}, size / 2, size - 1}) {
        if (smaller < 1 || smaller >= size) continue;
        if (attempt(fmt::format("dim {} instead of {}", smaller, size),
                    [&](ReductionModel& model) { model.shrink_dim(size, smaller); }))
          break;
      }
    }
  }

  void simplify_numbers() {
    for (const std::string& name : best_.tensors()) {
      for (double number : {0.0, 1.0}) {
        if (attempt("plain numbers for " + name, [&](ReductionModel& model) { model.fill(name, number); })) break;
      }
    }
  }

  // Runs the model with all results of its nodes as outputs. If it does not run to its end, the longest part that does.
  void record() {
    recorded_.clear();
    if (!judge_.record) return;
    size_t least = 0, most = best_.num_nodes();
    for (size_t count = most; count > 0; count = (least + most + 1) / 2) {
      ReductionModel model = best_;
      model.show_results(count);
      auto values = judge_.record(model.to_case());
      if (values.empty()) {
        most = count - 1;
      } else {
        least = count;
        recorded_ = std::move(values);
      }
      if (least >= most) return;
    }
  }

  // Adds the values in branches that are taken, and of the first iteration of loops, to those of the main graph.
  void record_bodies() {
    constexpr int kDeepest = 4;  // bodies within bodies
    ReductionModel model = best_;
    for (int depth = 0; judge_.record && depth < kDeepest; ++depth) {
      try {
        model.run_bodies_once(recorded_);
      } catch (const CompileError&) {
        return;
      }
      ReductionModel shown = model;
      shown.show_results(shown.num_nodes());
      for (auto& [name, value] : judge_.record(shown.to_case())) recorded_.try_emplace(name, std::move(value));
    }
  }

  std::map<std::string, vm::Value> recorded_outputs() {
    return judge_.record ? judge_.record(best_.to_case()) : std::map<std::string, vm::Value>();
  }

  ReductionModel best_;
  const ReductionJudge& judge_;
  std::map<std::string, vm::Value> recorded_;
};

}  // namespace

}  // namespace onnx_import

ModelCase read_model_case(const std::string& path) { return onnx_import::ReductionModel::read(path).to_case(); }

std::vector<vm::ValueInfo> inputs_of_onnx(const std::string& model) {
  return onnx_import::ReductionModel(ModelCase{model, {}}).input_infos();
}

std::vector<std::string> outputs_of_onnx(const std::string& model) {
  return onnx_import::ReductionModel(ModelCase{model, {}}).outputs();
}

std::string print_onnx(const ModelCase& model) { return onnx_import::ReductionModel(model).print(); }

ModelCase reduce_onnx(ModelCase original, const ReductionJudge& judge) {
  return onnx_import::ModelReducer(onnx_import::ReductionModel(std::move(original)), judge).run();
}

}  // namespace relaxc
