// relaxc debug: the microscope for numbers that are wrong. It compares level with level, from the model's operators to
// machine code, and names the first node of the model whose values part, then the pass and the kernel.
#include <set>

#include "codegen/bisect.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/library_file.h"
#include "support/lists.h"
#include "tools/given_shapes.h"
#include "tools/plain_model.h"
#include "tools/progress_line.h"
#include "tools/reference_values.h"
#include "tools/reproducer.h"
#include "tools/run_progress.h"

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

// A value of the reference that is none of the run.
struct WrongReference : CompileError {
  using CompileError::CompileError;
};

class Microscope {
 public:
  Microscope(const DebugOptions& options, const CompileSettings& settings, ReferenceValues reference)
      : options_(options),
        settings_(settings),
        reference_(std::move(reference)),
        out_(options.output),
        plain_(options.model, settings) {}

  int run() {
    std::string difference = run_and_compare();
    num_own_ = results_.size();
    if (difference.empty() && is_stated_) difference = compare_within();
    bool is_wrong = find_not_finite();
    // A reference may have values of nodes and not the results.
    if (difference.empty() && !is_stated_) is_wrong = find_node() || is_wrong;
    if (difference.empty() && !is_wrong) {
      print_message("machine code agrees with {0} in {1} of {1} results (rtol {2}, atol {3})\n",
                    is_stated_ ? "the reference" : "the operators in the interpreter", num_own_,
                    options_.closeness.rtol, options_.closeness.atol);
      if (!reference_.empty()) print_message("{}\n", text_of_compared());
      return kRight;
    }
    if (difference.empty()) return finish();
    out_.say("machine code differs from {}: {}", reference_name(), difference);
    out_.folder();  // the search may take long: it is known before where its files go
    if (!is_wrong_from_the_start()) find_pass();
    return finish();
  }

 private:
  std::string reference_name() const {
    return reference_.empty() ? "the operators in the interpreter" : "the reference";
  }
  int finish() {
    if (!reference_.empty()) out_.say("{}", text_of_compared());
    out_.write();
    return kWrong;
  }

  // Says how many values of the reference were looked at.
  std::string text_of_compared() const {
    return fmt::format("compared with the reference: {} of {}, and {} within the model", num_stated_,
                       counted(num_own_, "result"), counted(compared_.size(), "value"));
  }
  // Returns the names by which a reference may have values: those of results and of nodes.
  std::vector<std::string> names_of_values() const {
    std::vector<std::string> names = map_each(results_, [](const NamedValue& result) { return result.name; });
    for (const OnnxGraphNode& node : plain_.nodes()) {
      std::ranges::copy_if(node.outputs, std::back_inserter(names),
                           [&](const std::string& name) { return !find_item(results_, name, &NamedValue::name); });
    }
    return names;
  }

  // ---- Runs

  // Runs machine code, and the operators where the reference lacks results. Returns how the results differ. Where the
  // run of random inputs fails, because they divide by 0 or are indices that are too large, it draws other integers.
  std::string run_and_compare() {
    module_ = read_scheduled_module(options_.model, settings_);
    check_seeds(*module_);
    const CompiledModule compiled = compile(*module_, settings_);
    const Program program = compiled.load();
    const vm::Function& function = program.function(settings_.function);
    function_ = function.name;
    infos_ = function.inputs;
    // Flags and indices; divisors; both; indices of axes with one element.
    constexpr RandomIntegers kDraws[] = {{0, 1}, {1, 2}, {1, 1}, {0, 0}};
    std::exception_ptr failure;
    for (const RandomIntegers& integers : kDraws) {
      try {
        const std::string difference = run_on(integers, program, compiled.lowered());
        if (failure)
          print_note("note: with random integers of 0 and 1 the run fails; these are {} to {}\n", integers.least,
                     integers.most);
        return difference;
      } catch (const RuntimeError&) {
        failure = failure ? failure : std::current_exception();
        if (random_integers().empty()) break;
      }
    }
    say_random_inputs();
    std::rethrow_exception(failure);
  }
  // Two runs of a model do not compare where it draws other numbers in each.
  static void check_seeds(const IRModule& module) {
    for (const auto& [name, function] : module.functions) {
      walk(function, [&](const Ref<Call>& call) {
        if (op_name(call) == "relax.random.seed")
          fail(call.span(),
               "its random numbers differ from run to run, so that no two levels agree; give it a seed (in ONNX the "
               "attribute 'seed') to debug the model");
      });
    }
  }
  std::string run_on(RandomIntegers integers, const Program& program, const IRModule& lowered) {
    InputOptions flags = options_.inputs;
    flags.integers = integers;
    inputs_ = reference_.inputs(infos_, flags);
    for (size_t i = 0; i < infos_.size(); ++i) reference_.fit_floats(infos_[i].name, inputs_[i]);
    plain_.set_inputs(function_, infos_, inputs_);
    machine_ = observe(program, lowered, inputs_, function_);
    results_ = flat_results(machine_.result, program.function(function_).outputs);
    progress_line().end();
    if (!reference_.empty() && model_within_.empty()) reference_.check_names(infos_, names_of_values());
    return compare_results();
  }
  // Returns the inputs of integers that nothing gives, "'x' and 'y'"; "" where there are none.
  std::string random_integers() const {
    std::vector<std::string> names;
    for (const vm::ValueInfo& info : reference_.drawn(infos_, options_.inputs)) {
      const bool has_integers = info.dtype && info.dtype->is_integral() && info.kind == vm::ValueKind::kTensor;
      if (has_integers) names.push_back(fmt::format("'{}'", printable(info.name)));
    }
    return joined(names);
  }
  void say_random_inputs() const {
    const std::string integers = random_integers();
    if (!integers.empty())
      print_note(
          "note: the integers of {0} are random, and the run fails with 0, 1 and 2; give those that the model is made "
          "for, by --input NAME=FILE or --reference\n",
          integers);
    else if (!reference_.drawn(infos_, options_.inputs).empty())
      print_note("note: the inputs are random; --input and --reference give those that the model is made for\n");
  }

  // ---- Questions

  // Fills in what is expected, and returns how the results of machine code differ from it.
  std::string compare_results() {
    for (const NamedValue& result : results_) reference_.fit_floats(result.name, result.value);
    const size_t num_own = model_within_.empty() ? results_.size() : num_own_;
    std::vector<std::optional<vm::Value>> stated = reference_.outputs(results_, num_own);
    auto is_known = [](const auto& value) { return value.has_value(); };
    num_stated_ = std::ranges::count_if(std::span(stated).first(num_own), is_known);
    is_stated_ = std::ranges::all_of(stated, is_known) && !results_.empty();
    const bool are_drawn = !reference_.drawn(infos_, options_.inputs).empty();
    expected_.clear();
    has_unexpected_nan_ = false;
    for (size_t i = 0; i < results_.size(); ++i) {
      if (stated[i]) check_shape(results_[i].name, *stated[i], results_[i].value);
      expected_.push_back(stated[i] ? *stated[i] : plain_.result(results_[i], i));
      if (!has_nan(results_[i].value) || (stated[i] && has_nan(*stated[i]))) continue;
      const bool is_of_chance = are_drawn && has_nan(expected_[i]) && plain_.constants_with_nan(*module_).empty();
      has_unexpected_nan_ |= !is_of_chance;
      if (is_of_chance && !options_.nan)
        print_note(
            "note: result '{}' has a NaN for these random inputs, in the interpreter as well; --nan names the "
            "operator, "
            "and --input gives other inputs\n",
            printable(results_[i].name));
    }
    return difference_from_expected(results_);
  }
  // Refuses a value that cannot be one of this run. A shape that machine code alone has is a fault to be found.
  void check_shape(const std::string& name, const vm::Value& stated, const vm::Value& actual) {
    auto shape_differs = [&](const vm::Value& value) {
      const Tensor *expected = stated.get_if<Tensor>(), *tensor = value.get_if<Tensor>();
      return expected && tensor && expected->shape() != tensor->shape();
    };
    if (!shape_differs(actual)) return;
    const vm::Value* plain = plain_.find(name);
    if (plain && !shape_differs(*plain)) return;
    refuse_shape(name, describe(stated), describe(actual));
  }
  [[noreturn]] static void refuse_shape(const std::string& name, const std::string& stated, const std::string& actual) {
    throw WrongReference({{.message = fmt::format(
                               "--reference: '{}' is {}, and the model computes {}; expected the values of one run on "
                               "these inputs",
                               printable(name), stated, actual)}});
  }
  // Where the results agree, the values of nodes that the reference has become results, too: an ArgMax hides what is
  // wrong before it. Returns how machine code differs from them.
  std::string compare_within() {
    std::vector<std::string> names;
    for (const OnnxGraphNode& node : plain_.nodes()) {
      std::ranges::copy_if(node.outputs, std::back_inserter(names), [&](const std::string& name) {
        return reference_.named.contains(name) && !find_item(results_, name, &NamedValue::name);
      });
    }
    if (names.empty()) return {};
    model_within_ = with_results(plain_.onnx()->model, names);
    settings_.contents = std::as_bytes(std::span(model_within_));
    try {
      std::string difference = run_and_compare();
      compared_.insert(names.begin(), names.end());
      if (!difference.empty()) out_.say("the results agree, and values within the model do not");
      return difference;
    } catch (const WrongReference&) {
      throw;
    } catch (const CompileError& error) {  // such as that of a value that no result can be
      print_note("note: values within the model are not compared: {}\n", error.what());
      settings_.contents.reset();
      model_within_.clear();
      return run_and_compare();
    }
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

  // Names the inputs and constants that hold a NaN, and the operator that makes the first one, where a result has one
  // that the reference does not have, or --nan asks for it.
  bool find_not_finite() {
    if (!options_.nan && !has_unexpected_nan_) return false;
    const bool is_given = say_given();
    return find_maker() || is_given;
  }
  // Lists the inputs that are not finite and the constants with a NaN; returns whether there is a NaN.
  bool say_given() {
    bool found = false;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor* tensor = inputs_[i].get_if<Tensor>();
      const std::string worst = tensor ? not_finite(*tensor) : "";
      if (worst.empty()) continue;
      found |= has_nan(inputs_[i]);
      out_.say("input '{}' has {}", printable(infos_[i].name), worst);
    }
    for (const std::string& line : plain_.constants_with_nan(*module_)) {
      found = true;
      out_.say("{}", line);
    }
    return found;
  }

  bool find_maker() {
    const ObservedCall* infinity = nullptr;
    for (const ObservedCall& call : plain_.run().calls) {
      if (call.not_finite.empty()) continue;
      if (!call.has_nan) {
        infinity = infinity ? infinity : &call;
        continue;
      }
      out_.say("{} makes {}, and its inputs have none", plain_.place_of(call.nodes, call.kernel), call.not_finite);
      if (const auto node = plain_.find_node(call.nodes)) write_node(*node, "--nan ");
      return true;
    }
    if (infinity && options_.nan)
      print_message("{} makes {}; no NaN comes of it\n", plain_.place_of(infinity->nodes, infinity->kernel),
                    infinity->not_finite);
    return false;
  }

  // Where the operators themselves differ from the reference, names the first node, or says that it is not known.
  bool is_wrong_from_the_start() {
    if (reference_.empty()) return false;
    if (!reference_.named.empty() && find_node()) return true;
    const std::string difference = difference_of_graph();
    if (difference.empty()) return false;
    out_.say("level: the operators in the interpreter differ as well, so no pass is to blame: {}", difference);
    out_.say("note: the node is found where --reference has the values of nodes (docs/debug.md says how to get them)");
    return true;
  }

  // Compares the values of the nodes, in order, with those of the reference.
  bool find_node() {
    const OnnxGraphNode* first = nullptr;
    const std::vector<OnnxGraphNode>& nodes = plain_.nodes();
    for (const OnnxGraphNode& node : nodes) {
      for (const std::string& name : node.outputs) {
        if (const vm::Value* actual = plain_.find(name)) reference_.fit_floats(name, *actual);
      }
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::string difference = difference_of_node(nodes[i]);
      if (difference.empty()) continue;
      first = first ? first : &nodes[i];
      const std::vector<const OnnxGraphNode*> suspects = suspects_of(nodes[i]);
      if (suspects.size() == 1 && is_right_alone(i)) continue;
      out_.say("first node whose values part: {}", text_of(suspects));
      out_.say("level: the operator, before any pass");
      out_.say("difference: {}", difference);
      if (suspects.size() > 1)
        out_.say(
            "note: --reference has no values of the nodes before the last of these; docs/debug.md says how to get "
            "the values of all nodes");
      if (suspects.size() == 1) write_node(i, "");
      return true;
    }
    if (first && !difference_of_graph().empty()) {
      out_.say("the values part first at {}, but each node by itself agrees with the reference: small errors add up",
               plain_.place_of(first->name));
      return true;
    }
    return false;
  }
  // Names the first of them, and the last one, whose values are known.
  std::string text_of(const std::vector<const OnnxGraphNode*>& suspects) const {
    constexpr size_t kMostNamed = 8;
    auto place = [&](const OnnxGraphNode* node) { return plain_.place_of(node->name); };
    if (suspects.size() <= kMostNamed + 1) return joined(suspects, place, " or ");
    return fmt::format("{} or one of {} others, to {}", joined(std::span(suspects).first(kMostNamed), place, " or "),
                       suspects.size() - kMostNamed - 1, place(suspects.back()));
  }
  // Returns the node and those before it whose values the reference does not have, as far as it depends on them.
  std::vector<const OnnxGraphNode*> suspects_of(const OnnxGraphNode& last) const {
    std::set<std::string> open = {last.outputs.begin(), last.outputs.end()};
    std::vector<const OnnxGraphNode*> suspects;
    for (auto node = plain_.nodes().rbegin(); node != plain_.nodes().rend(); ++node) {
      if (std::ranges::none_of(node->outputs, [&](const std::string& name) { return open.contains(name); })) continue;
      const bool has_floats = node->op_type != "Constant" && node->op_type != "Shape" && node->op_type != "Size";
      if (has_floats || &*node == &last) suspects.insert(suspects.begin(), &*node);
      if (node->op_type == "Shape" || node->op_type == "Size") continue;  // the values of its input do not matter
      for (const std::string& name : node->inputs) {
        if (!reference_.named.contains(name)) open.insert(name);
      }
    }
    return suspects;
  }
  // Returns whether the node gives the values of the reference from the values of the reference.
  bool is_right_alone(size_t node) {
    const std::optional<ModelCase> alone = plain_.single(node, plain_.values_with(reference_.named));
    if (!alone) return false;
    const std::map<std::string, vm::Value> results = results_of_operators(*alone, settings_);
    return !results.empty() && std::ranges::all_of(results, [&](const auto& result) {
      const Tensor* expected = find_value(reference_.named, result.first);
      return !expected || compare_closely(result.first, result.second, *expected, options_.closeness).empty();
    });
  }
  std::string difference_of_graph() {
    for (size_t i = 0; i < results_.size(); ++i) {
      std::string difference =
          compare_closely(results_[i].name, plain_.result(results_[i], i), expected_[i], options_.closeness);
      if (!difference.empty()) return difference;
    }
    return {};
  }
  std::string difference_of_node(const OnnxGraphNode& node) {
    for (const std::string& name : node.outputs) {
      const Tensor* expected = find_value(reference_.named, name);
      const vm::Value* actual = plain_.find(name);
      if (!expected || !actual) continue;
      check_shape(name, *expected, *actual);
      const auto own = std::span(results_).first(num_own_);
      if (!find_item(own, name, &NamedValue::name)) compared_.insert(name);
      std::string difference = compare_closely(name, *actual, *expected, options_.closeness);
      if (!difference.empty()) return difference;
    }
    return {};
  }

  // ---- Passes and kernels

  void find_pass() {
    if (auto parting = first_parting(plain_.run(), machine_, options_.closeness)) {
      out_.say("first node whose values part: {}", node_of(*parting));
      out_.say("kernel: {}: {}", parting->kernel, parting->difference);
    }
    int num_runs = 0;
    auto check = [&](const Program& program) {
      const vm::Function& function = program.function(function_);
      const vm::Value result = run_in_search(program, inputs_, function, ++num_runs);
      return difference_from_expected(flat_results(result, function.outputs));
    };
    const PassContext context = pass_context(settings_);
    const std::vector<const Pass*> passes = passes_of(settings_, context.target);
    CompileSettings with_folder = settings_;
    with_folder.runner.dump_dir = out_.folder();
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
      const std::optional<size_t> node = plain_.find_node(name);
      if (!node || name == parting.nodes) break;
      const std::optional<ModelCase> alone = plain_.single(*node, plain_.values_with({}));
      if (alone && differs_from_operators(*alone, settings_, options_.closeness))
        return fmt::format("{}, of the nodes '{}' in one kernel", plain_.place_of(std::string(name)), parting.nodes);
    }
    return plain_.place_of(parting.nodes, parting.kernel);
  }

  void report_module_pass(const Culprit& culprit) {
    if (culprit.right && culprit.wrong) {
      const ObservedRun right = observe_ran(*culprit.right), wrong = observe_ran(*culprit.wrong);
      if (auto parting = first_parting(right, wrong, options_.closeness))
        out_.say("with the pass, values part first at: {}", plain_.place_of(parting->nodes, parting->kernel));
    }
    out_.say("difference: {}", culprit.difference);
    if (plain_.onnx()) {
      ModelCase model = *plain_.onnx();
      if (!model_within_.empty()) model.model = model_within_;
      out_.write_reduced(model, settings_, options_.closeness, flags());
    }
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
    return observe(ran.program, ran.module, inputs_, function_, {.kernel = kernel});
  }

  // ---- Words and files

  std::string flags() const { return tables_of(settings_).flags() + settings_.runner.flags; }
  // Writes the node by itself, and says with which command its fault shows.
  void write_node(size_t node, const char* flag) {
    const std::map<std::string, vm::Value> values = plain_.values_with(reference_.named);
    const std::optional<ModelCase> alone = plain_.single(node, values);
    if (!alone) return;
    out_.write_case(*alone, values);
    out_.say("reproducer: relaxc debug {0}/model.onnx {1}--reference {0}/test_data_set_0{2}", out_.folder(), flag,
             flags());
  }

  const DebugOptions& options_;
  CompileSettings settings_;
  ReferenceValues reference_;
  Reproducer out_;
  PlainModel plain_;
  std::optional<IRModule> module_;
  std::string function_;
  std::vector<vm::ValueInfo> infos_;
  std::vector<vm::Value> inputs_, expected_;
  ObservedRun machine_;
  std::vector<NamedValue> results_;
  std::ptrdiff_t num_stated_ = 0;    // results of which the reference has a value
  std::set<std::string> compared_;   // values of nodes, by name
  size_t num_own_ = 0;               // results of the model, which come first
  std::string model_within_;         // with values of the reference as results, too; "": the model as it is
  bool is_stated_ = false;           // all that is expected comes from the reference
  bool has_unexpected_nan_ = false;  // a result of machine code has a NaN, and not the reference
};

int debug(const DebugOptions& options) {
  if (is_library_file(options.model) && names_file("", options.model))
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
