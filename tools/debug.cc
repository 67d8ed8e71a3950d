// relaxc debug: the microscope for numbers that are wrong. It compares level with level, from the model's operators to
// machine code, and names the first node of the model whose values part, then the pass and the kernel.
#include <set>

#include "codegen/bisect.h"
#include "frontend/onnx/model_parts.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tools/given_shapes.h"
#include "tools/observed.h"
#include "tools/progress_line.h"
#include "tools/reference_values.h"
#include "tools/reproducer.h"

namespace relaxc::tools {

namespace {

struct DebugOptions {
  std::string model, output = "debug", against = "interpreter";
  std::vector<std::string> reference;
  CompilerOptions compiler;
  InputOptions inputs;
  Closeness closeness;
  bool nan = false;
};

// The model without any optimization, each operator by itself in the interpreter.
struct Graph {
  ObservedRun run;
  std::vector<NamedValue> values;  // its results; of a model of ONNX those of all nodes
  const vm::Value* find(const std::string& name) const {
    const NamedValue* found = find_item(values, name, &NamedValue::name);
    return found ? &found->value : nullptr;
  }
};

class Microscope {
 public:
  Microscope(const DebugOptions& options, const CompileSettings& settings, const ReferenceValues& reference)
      : options_(options), settings_(settings), reference_(reference), out_(options.output) {
    if (!is_text_path(split_text_path(options.model).file)) read_nodes();
  }

  int run() {
    run_machine_code();
    const std::string difference = compare_results();
    const bool is_made = find_not_finite();
    if (difference.empty() && !is_made) {
      print_message("machine code agrees with {0} in {1} of {1} results (rtol {2}, atol {3})\n", reference_name(), results_.size(),
                    options_.closeness.rtol, options_.closeness.atol);
      return kRight;
    }
    if (difference.empty()) return finish();
    out_.say("machine code differs from {}: {}", reference_name(), difference);
    if (!is_wrong_from_the_start()) find_pass();
    return finish();
  }

 private:
  std::string reference_name() const {
    return reference_.empty() ? "the operators in the interpreter" : "the reference";
  }
  int finish() {
    out_.write();
    return kWrong;
  }

  // ---- Runs

  void read_nodes() {
    try {
      case_ = read_model_case(options_.model);
      nodes_ = nodes_of_onnx(case_->model);
    } catch (const CompileError& error) {
      print_note("note: nodes cannot be run one by one: {}\n", error.what());
      case_.reset();
    }
  }

  void run_machine_code() {
    module_ = read_scheduled_module(options_.model, settings_);
    const CompiledModule compiled = compile(*module_, settings_);
    const Program program = compiled.load();
    const vm::Function& function = program.function(settings_.function);
    function_ = function.name;
    infos_ = function.inputs;
    inputs_ = reference_.inputs(infos_, options_.inputs);
    machine_ = observe(program, compiled.lowered(), inputs_, function_);
    results_ = flat_results(machine_.result, function.outputs);
    progress_line().end();
  }

  // Runs it once, when the first question about it is asked.
  const Graph& graph() {
    if (graph_) return *graph_;
    CompileSettings plain = settings_;
    plain.runner = settings_.runner.verification_only();
    plain.passes = "legalize";
    plain.interpret.emplace();
    plain.report = nullptr;  // of rules for passes that do not run
    auto interpreted = [&](const CompileSettings& settings) {
      const CompiledModule compiled = compile(read_scheduled_module(options_.model, settings), settings);
      const Program program = compiled.load();
      Graph graph{observe(program, compiled.lowered(), inputs_, function_), {}};
      graph.values = flat_results(graph.run.result, program.function(function_).outputs);
      return graph;
    };
    print_note("the operators run in the interpreter, which takes about 1000 times as long as machine code\n");
    if (case_) {
      const std::string model = with_all_results(case_->model);
      CompileSettings shown = plain;
      shown.contents = std::as_bytes(std::span(model));
      try {
        graph_ = interpreted(shown);
      } catch (const CompileError& error) {  // a value that no result can be, say
        print_detail("not all values can be results: {}\n", error.what());
      }
    }
    // Results need not be those of nodes.
    auto has_all = [&] {
      return graph_ && std::ranges::all_of(results_, [&](const NamedValue& r) { return graph_->find(r.name); });
    };
    if (!has_all()) graph_ = interpreted(plain);
    return *graph_;
  }

  // ---- Questions

  // Fills in what is expected, and returns how the results of machine code differ from it.
  std::string compare_results() {
    std::vector<std::optional<vm::Value>> stated = reference_.outputs(results_);
    const bool is_stated = std::ranges::all_of(stated, [](const auto& value) { return value.has_value(); });
    for (size_t i = 0; i < results_.size(); ++i) {
      expected_.push_back(stated[i] ? *stated[i] : value_in_graph(i));
    }
    is_stated_ = is_stated;
    return difference_from_expected(results_);
  }
  vm::Value value_in_graph(size_t result) {
    const vm::Value* found = graph().find(results_[result].name);
    NamedValue value =
        found ? NamedValue{results_[result].name, *found, results_[result].dtype} : graph().values.at(result);
    std::optional<Tensor> tensor = as_tensor(value);
    return tensor ? vm::Value(*tensor) : value.value;
  }
  std::string difference_from_expected(const std::vector<NamedValue>& results) const {
    if (results.size() != expected_.size())
      return fmt::format("{} results, expected {}", results.size(), expected_.size());
    for (size_t i = 0; i < results.size(); ++i) {
      std::optional<Tensor> tensor = as_tensor(results[i]);
      std::string difference = compare_closely(results[i].name, tensor ? vm::Value(*tensor) : results[i].value,
                                               expected_[i], options_.closeness);
      if (!difference.empty()) return difference;
    }
    return {};
  }

  // Names the operator that makes the first NaN, where one reaches a result or --nan asks for it.
  bool find_not_finite() {
    auto has_nan = [](const NamedValue& result) {
      const Tensor* tensor = result.value.get_if<Tensor>();
      return tensor && not_finite(*tensor).starts_with("a NaN");
    };
    if (!options_.nan && (is_stated_ || std::ranges::none_of(results_, has_nan))) return false;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor* tensor = inputs_[i].get_if<Tensor>();
      const std::string found = tensor ? not_finite(*tensor) : "";
      if (!found.empty()) print_message("input '{}' has {}\n", printable(infos_[i].name), found);
    }
    const ObservedCall* infinity = nullptr;
    for (const ObservedCall& call : graph().run.calls) {
      if (call.not_finite.empty()) continue;
      if (!call.has_nan) {
        infinity = infinity ? infinity : &call;
        continue;
      }
      out_.say("{} makes {}, and its inputs have none", place_of(call.nodes, call.kernel), call.not_finite);
      if (const OnnxGraphNode* node = find_item(nodes_, call.nodes, &OnnxGraphNode::name))
        write_node(static_cast<size_t>(node - nodes_.data()), "--nan ");
      return true;
    }
    if (infinity && options_.nan)
      print_message("{} makes {}; no NaN comes of it\n", place_of(infinity->nodes, infinity->kernel),
                    infinity->not_finite);
    return false;
  }

  // Where the operators themselves differ from the reference, names the first node, or says that it is not known.
  bool is_wrong_from_the_start() {
    if (reference_.empty()) return false;
    if (!reference_.named.empty() && case_ && find_node()) return true;
    const std::string difference = difference_of_graph();
    if (difference.empty()) return false;
    out_.say("level: the operators in the interpreter differ as well, so no pass is to blame: {}", difference);
    out_.say("note: the node is found where --reference has the values of nodes (docs/debug.md says how to get them)");
    return true;
  }

  // Compares the values of the nodes, in order, with those of the reference.
  bool find_node() {
    const OnnxGraphNode* first = nullptr;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const std::string difference = difference_of_node(nodes_[i]);
      if (difference.empty()) continue;
      first = first ? first : &nodes_[i];
      const std::vector<const OnnxGraphNode*> suspects = suspects_of(nodes_[i]);
      if (suspects.size() == 1 && is_right_alone(i)) continue;
      out_.say("first node whose values part: {}",
               joined(suspects, [&](const OnnxGraphNode* node) { return place_of(node->name, ""); }, " or "));
      out_.say("level: the operator, before any pass");
      out_.say("difference: {}", difference);
      if (suspects.size() > 1) out_.say("note: --reference has no values of the nodes before the last of these");
      if (suspects.size() == 1) write_node(i, "");
      return true;
    }
    if (first && !difference_of_graph().empty()) {
      out_.say("the values part first at {}, but each node by itself agrees with the reference: small errors add up",
               place_of(first->name, ""));
      return true;
    }
    return false;
  }
  // Returns the node and those before it whose values the reference does not have, as far as it depends on them.
  std::vector<const OnnxGraphNode*> suspects_of(const OnnxGraphNode& last) const {
    std::set<std::string> open = {last.outputs.begin(), last.outputs.end()};
    std::vector<const OnnxGraphNode*> suspects;
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      if (std::ranges::none_of(node->outputs, [&](const std::string& name) { return open.contains(name); })) continue;
      suspects.insert(suspects.begin(), &*node);
      for (const std::string& name : node->inputs) {
        if (!reference_.named.contains(name)) open.insert(name);
      }
    }
    return suspects;
  }
  // Returns whether the node gives the values of the reference from the values of the reference.
  bool is_right_alone(size_t node) {
    const std::map<std::string, vm::Value> values = values_of_model();
    try {
      ModelCase model = *case_;
      model.inputs = named_inputs();
      const auto results = results_of_operators(single_node(model, node, values), settings_);
      return !results.empty() && std::ranges::all_of(results, [&](const auto& result) {
        const Tensor* expected = find_value(reference_.named, result.first);
        return !expected || compare_closely(result.first, result.second, *expected, options_.closeness).empty();
      });
    } catch (const CompileError&) {
      return false;
    }
  }
  std::string difference_of_graph() {
    for (size_t i = 0; i < results_.size(); ++i) {
      std::string difference = compare_closely(results_[i].name, value_in_graph(i), expected_[i], options_.closeness);
      if (!difference.empty()) return difference;
    }
    return {};
  }
  std::string difference_of_node(const OnnxGraphNode& node) {
    for (const std::string& name : node.outputs) {
      const Tensor* expected = find_value(reference_.named, name);
      const vm::Value* actual = graph().find(name);
      if (!expected || !actual) continue;
      std::string difference = compare_closely(name, *actual, *expected, options_.closeness);
      if (!difference.empty()) return difference;
    }
    return {};
  }

  // ---- Passes and kernels

  void find_pass() {
    if (auto parting = first_parting(graph().run, machine_, options_.closeness)) {
      out_.say("first node whose values part: {}", node_of(*parting));
      out_.say("kernel: {}: {}", parting->kernel, parting->difference);
    }
    auto check = [&](const Program& program) {
      const vm::Function& function = program.function(function_);
      const vm::Value result = Session(program, {.threads = 1}).run_values(inputs_, function.name);
      return difference_from_expected(flat_results(result, function.outputs));
    };
    const PassContext context = pass_context(settings_);
    const std::vector<const Pass*> passes = passes_of(settings_, context.target);
    CompileSettings with_folder = settings_;
    with_folder.runner.dump_dir = options_.output;
    std::optional<Culprit> culprit =
        find_culprit(*module_, passes, with_folder, check, [](const std::string& line) { print_note("{}\n", line); });
    if (!culprit) {
      out_.say("no pass changes the results when it is run again, nor does code generation");
      return;
    }
    out_.say("pass: {}", culprit->pass);
    if (culprit->program.empty()) return report_module_pass(*culprit);
    report_kernel(*culprit);
  }

  // Of several nodes in one kernel, names the first that goes wrong by itself too, if there is one.
  std::string node_of(const Parting& parting) {
    for (std::string_view name : nodes_in(parting.nodes)) {
      const OnnxGraphNode* node = find_item(nodes_, name, &OnnxGraphNode::name);
      if (!node || node->name == parting.nodes) break;
      try {
        ModelCase model = *case_;
        model.inputs = named_inputs();
        model = single_node(model, static_cast<size_t>(node - nodes_.data()), values_of_model());
        if (!differs_from_operators(model, settings_, options_.closeness)) continue;
        return fmt::format("{}, of the nodes '{}' in one kernel", place_of(node->name, ""), parting.nodes);
      } catch (const CompileError&) {  // it does not run by itself
      }
    }
    return place_of(parting.nodes, parting.kernel);
  }

  void report_module_pass(const Culprit& culprit) {
    if (culprit.right && culprit.wrong) {
      const ObservedRun right = observe_ran(*culprit.right), wrong = observe_ran(*culprit.wrong);
      if (auto parting = first_parting(right, wrong, options_.closeness))
        out_.say("node that the pass changes: {}", place_of(parting->nodes, parting->kernel));
    }
    out_.say("difference: {}", culprit.difference);
    if (case_) out_.write_reduced(*case_, named_inputs(), settings_, options_.closeness, flags());
    out_.say("the pass by itself: {}",
             reproducing_command(culprit.reproducer, culprit.pass, settings_, settings_.runner));
  }

  void report_kernel(const Culprit& culprit) {
    out_.say("tensor program: {}", culprit.program);
    const KernelDifference found = kernel_difference(culprit);
    if (!found.nodes.empty()) out_.say("nodes: {}", found.nodes);
    out_.say("difference: {}", found.text.empty() ? culprit.difference : found.text);
    if (culprit.unscheduled && !found.tensors.empty())
      out_.write_kernel(culprit.program, *culprit.unscheduled, found.tensors, flags());
    if (!culprit.reproducer.empty())
      out_.say("the pass by itself: {}",
               reproducing_command(culprit.reproducer, culprit.pass, settings_, settings_.runner));
  }

  struct KernelDifference {
    std::string nodes, text;
    std::vector<Tensor> tensors;  // that the kernel got and, of the run with right results, wrote
  };
  // Looks at the calls of the kernel in the last right run and in the first wrong one, up to the first that differs.
  KernelDifference kernel_difference(const Culprit& culprit) const {
    if (!culprit.right || !culprit.wrong) return {};
    const ObservedRun right = observe_ran(*culprit.right, culprit.program),
                      wrong = observe_ran(*culprit.wrong, culprit.program);
    for (size_t i = 0; i < std::min(right.calls.size(), wrong.calls.size()); ++i) {
      const std::vector<Tensor>&expected = right.calls[i].tensors, &actual = wrong.calls[i].tensors;
      for (size_t k = 0; k < std::min(expected.size(), actual.size()); ++k) {
        const std::string name = fmt::format("{} of '{}', call {}", name_of_tensor(culprit, k), culprit.program, i + 1);
        std::string text = compare(name, actual[k], expected[k], 0, options_.closeness.allowed(expected[k]));
        if (!text.empty()) return {wrong.calls[i].nodes, text, expected};
      }
    }
    return {};
  }
  static std::string name_of_tensor(const Culprit& culprit, size_t tensor) {
    const std::vector<Buffer> buffers =
        culprit.unscheduled ? buffer_params(*culprit.unscheduled) : std::vector<Buffer>();
    return tensor < buffers.size() ? buffers[tensor]->name : fmt::format("tensor {}", tensor);
  }
  ObservedRun observe_ran(const RanModule& ran, const std::string& kernel = "") const {
    return observe(ran.program, ran.module, inputs_, function_, kernel);
  }

  // ---- Words and files

  std::string flags() const { return tables_of(settings_).flags() + settings_.runner.flags; }
  std::map<std::string, vm::Value> named_inputs() const {
    std::map<std::string, vm::Value> result;
    for (size_t i = 0; i < infos_.size(); ++i) result.emplace(infos_[i].name, inputs_[i]);
    return result;
  }

  // Returns the node with its operator, all nodes of a kernel, or of a text the kernel and the line that calls it.
  std::string place_of(const std::string& nodes, const std::string& kernel) const {
    const OnnxGraphNode* node = find_item(nodes_, nodes, &OnnxGraphNode::name);
    if (node) return fmt::format("'{}' ({})", node->name, node->op_type);
    if (!nodes.empty()) return fmt::format("'{}'", nodes);
    return fmt::format("kernel '{}'", kernel);
  }

  // Returns the values of the operators by name, those of the reference first.
  std::map<std::string, vm::Value> values_of_model() {
    std::map<std::string, vm::Value> values = named_inputs();
    for (const auto& [name, tensor] : reference_.named) values.insert_or_assign(name, tensor);
    for (const NamedValue& value : graph().values) values.try_emplace(value.name, value.value);
    return values;
  }
  // Writes the node by itself, and says with which command its fault shows.
  void write_node(size_t node, const char* flag) {
    if (out_.write_node(*case_, node, values_of_model()))
      out_.say("reproducer: relaxc debug {0}/model.onnx {1}--reference {0}/test_data_set_0{2}", out_.folder(), flag,
               flags());
  }

  const DebugOptions& options_;
  CompileSettings settings_;
  const ReferenceValues& reference_;
  Reproducer out_;
  std::optional<ModelCase> case_;  // of a model of ONNX whose nodes can be run one by one
  std::vector<OnnxGraphNode> nodes_;
  std::optional<IRModule> module_;
  std::string function_;
  std::vector<vm::ValueInfo> infos_;
  std::vector<vm::Value> inputs_, expected_;
  ObservedRun machine_;
  std::vector<NamedValue> results_;
  bool is_stated_ = false;  // all that is expected comes from the reference
  std::optional<Graph> graph_;
};

int debug(const DebugOptions& options) {
  if (options.model.ends_with(".so"))
    throw CLI::ValidationError("debug takes a model or a text; '" + options.model + "' is machine code");
  std::vector<std::string> paths = options.reference;
  if (options.against != "interpreter") paths.push_back(options.against);
  const ReferenceValues reference = read_reference_values(paths);
  const CompileSettings settings = options.compiler.get(options.model);
  InputOptions inputs = with_buffer_names(options.inputs, options.model);
  DebugOptions with_names = options;
  with_names.inputs = inputs;
  auto work = [&](const CompileSettings& of_run) { return Microscope(with_names, of_run, reference).run(); };
  return for_given_shapes(options.model, settings, inputs, reference.has_inputs ? reference.folder : "", work);
}

}  // namespace

void add_debug(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DebugOptions>();
  CLI::App* command = app.add_subcommand("debug", "find the node, the pass and the kernel that make numbers wrong");
  command->add_option("model", options->model, "the file (.onnx or .py)")->required();
  add_inputs(*command, options->inputs);
  command
      ->add_option("--reference", options->reference,
                   "right values: a folder of output_N.pb, or NAME.npy of values of the model, or an archive of them "
                   "(.npz); repeatable (docs/debug.md)")
      ->allow_extra_args(false)
      ->check(CLI::ExistingPath);
  command
      ->add_option("--against", options->against,
                   "what is right without --reference: interpreter, or such an archive or folder")
      ->capture_default_str();
  command->add_flag("--nan", options->nan, "name the operator that makes the first NaN, also one within the model");
  add_tolerances(*command, options->closeness.rtol, options->closeness.atol);
  command->add_option("-o,--output", options->output, "the folder for the reproducer")->capture_default_str();
  options->compiler.add_to(*command);
  command->footer("Example: relaxc debug model.onnx --input x=x.npy --reference values.npz");
  command->callback([options, &exit_code] { exit_code = debug(*options); });
}

}  // namespace relaxc::tools
