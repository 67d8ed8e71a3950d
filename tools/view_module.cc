#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "codegen/target.h"
#include "codegen/text_file.h"
#include "ir/attr_names.h"
#include "ir/kernel_call.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "ir/text/printer.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/progress.h"
#include "tir/schedule/draw.h"
#include "tools/view.h"

namespace relaxc::tools {

namespace {

using NodeSet = std::unordered_set<const NodeHeader*>;

// Returns "float32[n, 64]"; other types than tensors as they print.
std::string short_type(const Type& type) {
  const std::vector<Expr>* dims = known_shape(type);
  const std::optional<DType> dtype = tensor_dtype(type);
  if (dims && dtype) return fmt::format("{}[{}]", to_string(*dtype), joined(*dims, print_expr));
  if (const TupleType* tuple = type.as<TupleType>()) return joined(tuple->items, short_type);
  return print_type(type);
}

std::string place_text(const Binding& binding) {
  const Span& span = span_of(binding);
  const std::string nodes = nodes_of(span);
  if (!nodes.empty() || !span || span.line == 0) return nodes;
  return fmt::format("line {}", span.line);
}

std::string attributes_text(const Attrs& attrs) {
  return joined(attrs.ordered_keys(), [&](std::string_view key) {
    const AttrValue& value = *attrs.find(key);
    const auto* text = value.as<std::string>();
    return fmt::format("{}={}", key, text ? *text : to_string(value));
  });
}

std::vector<const NodeHeader*> vars_in(const Expr& value) {
  std::vector<const NodeHeader*> vars;
  walk(value, [&](const Ref<Var>& var) { vars.push_back(var.get()); });
  return vars;
}

// The stages of a compilation that the view shows.
struct Stages {
  IRModule operators;  // with their layouts, and weights packed
  IRModule legalized;  // a kernel for each of them
  IRModule fused;      // kernels before their schedules
  IRModule scheduled;
  codegen::KernelMap lowered;
};

std::vector<Binding> all_bindings(const Expr& function) {
  std::vector<Binding> bindings;
  if (const Function* graph = function.as<Function>())
    for_each_binding(graph->body, [&](const Binding& binding) { bindings.push_back(binding); });
  return bindings;
}

// The operators that each kernel computes, by the variables of the scheduled graph. Most passes keep the variables of
// results; legalize and those behind the schedules may replace them, and keep the order of the bindings.
class OperatorGroups {
 public:
  explicit OperatorGroups(const Stages& stages) : stages_(stages) {
    for (const auto& [name, function] : stages.legalized.functions) add_operators(name, all_bindings(function));
    for (const auto& [name, function] : stages.fused.functions) add_groups(name, all_bindings(function));
  }

  std::vector<ViewOperator> operators_of(const NodeHeader* var) const {
    return copy_value(groups_, var).value_or(std::vector<ViewOperator>());
  }

 private:
  void add_operators(const std::string& name, const std::vector<Binding>& bindings) {
    const Expr* before = stages_.operators.find(name);
    std::vector<Binding> operators = before ? all_bindings(*before) : std::vector<Binding>();
    if (operators.size() != bindings.size()) operators = bindings;
    for (size_t i = 0; i < bindings.size(); ++i) {
      number_.emplace(bindings[i].var.get(), bindings_.size());
      bindings_.push_back(bindings[i]);
      described_.push_back(described(operators[i]));
    }
  }
  ViewOperator described(const Binding& binding) const {
    const Call* call = binding.value.as<Call>();
    const std::optional<KernelCall> kernel = as_kernel_call(binding.value, stages_.operators);
    return {kernel ? kernel->name() : ops::short_name(op_name(binding.value)), short_type(binding.var.type()),
            place_text(binding), call && !kernel ? attributes_text(call->attrs) : ""};
  }

  void add_groups(const std::string& name, const std::vector<Binding>& bindings) {
    const Expr* after = stages_.scheduled.find(name);
    const std::vector<Binding> scheduled = after ? all_bindings(*after) : std::vector<Binding>();
    NodeSet made;
    for (const Binding& binding : bindings) made.insert(binding.var.get());
    for (size_t i = 0; i < bindings.size(); ++i) {
      std::vector<ViewOperator> group = group_of(bindings[i], made);
      if (scheduled.size() == bindings.size()) groups_.emplace(scheduled[i].var.get(), group);
      groups_.emplace(bindings[i].var.get(), std::move(group));
    }
  }
  // Returns the operators from which the binding's value is computed, in order, as far as no other binding makes them.
  std::vector<ViewOperator> group_of(const Binding& binding, const NodeSet& made) const {
    std::vector<size_t> found;
    std::vector<const NodeHeader*> open = {binding.var.get()};
    NodeSet seen(open.begin(), open.end());
    while (!open.empty()) {
      const auto number = number_.find(open.back());
      open.pop_back();
      if (number == number_.end()) continue;
      found.push_back(number->second);
      for (const NodeHeader* var : vars_in(bindings_[number->second].value)) {
        if (!made.contains(var) && seen.insert(var).second) open.push_back(var);
      }
    }
    std::ranges::sort(found);
    std::vector<ViewOperator> operators;
    for (size_t number : found) {
      if (!described_[number].name.empty()) operators.push_back(described_[number]);
    }
    return operators;
  }

  const Stages& stages_;
  std::vector<Binding> bindings_;  // of the legalized graph
  std::vector<ViewOperator> described_;
  std::unordered_map<const NodeHeader*, size_t> number_;  // of a variable's binding
  std::unordered_map<const NodeHeader*, std::vector<ViewOperator>> groups_;
};

// Makes the nodes of one function, whose kernels are scheduled.
class FunctionViewer {
 public:
  FunctionViewer(const IRModule& module, const OperatorGroups& groups) : module_(module), groups_(groups) {}

  ViewFunction run(const std::string& name, const Function& function) {
    result_.name = name;
    const auto inputs = names_in_attr(function, attr_names::kInputNames);
    for (size_t i = 0; i < function.params.size(); ++i) {
      const VarRef& param = function.params[i];
      if (param.type().is<PrimType>()) continue;
      add({ViewNode::Kind::kInput, i < inputs.size() ? inputs[i] : param->name, short_type(param.type()), ""},
          {param.get()});
    }
    for_each_binding(function.body, [&](const Binding& binding) { add_binding(binding); });
    const Expr& body = function.body.as<SeqExpr>()->body;
    const Tuple* tuple = body.as<Tuple>();
    const std::vector<Expr> results = tuple ? tuple->items : std::vector<Expr>{body};
    const auto outputs = names_in_attr(function, attr_names::kOutputNames);
    for (size_t i = 0; i < results.size(); ++i)
      add_result(results[i], outputs.size() == results.size() ? outputs[i] : "");
    return std::move(result_);
  }

 private:
  size_t add(ViewNode node, const std::vector<const NodeHeader*>& vars) {
    result_.nodes.push_back(std::move(node));
    for (const NodeHeader* var : vars) makers_[var] = {result_.nodes.size() - 1};
    return result_.nodes.size() - 1;
  }
  // Returns the names of a model's inputs or outputs; none for a text.
  static std::vector<std::string> names_in_attr(const Function& function, const char* attr) {
    std::vector<std::string> names;
    if (const AttrValue* shown = function.attrs.find(attr)) from_attr(*shown, names);
    return names;
  }
  void add_result(const Expr& value, const std::string& name) {
    const Var* var = value.as<Var>();
    ViewNode node{ViewNode::Kind::kResult,
                  !name.empty() ? name
                  : var         ? var->name
                                : "result",
                  short_type(value.type()), ""};
    node.inputs = makers_of(vars_in(value));
    add(std::move(node), {});
  }

  std::vector<size_t> makers_of(const std::vector<const NodeHeader*>& vars) const {
    std::vector<size_t> nodes;
    for (const NodeHeader* var : vars) {
      auto found = makers_.find(var);
      if (found != makers_.end()) nodes.insert(nodes.end(), found->second.begin(), found->second.end());
    }
    std::ranges::sort(nodes);
    nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
    return nodes;
  }

  void add_binding(const Binding& binding) {
    const std::vector<const NodeHeader*> vars = vars_in(binding.value);
    const std::optional<KernelCall> kernel = as_kernel_call(binding.value, module_);
    const Call* call = binding.value.as<Call>();
    // Tuples and their items, casts and other names of a value are no nodes.
    if (!call && !binding.value.is<If>()) {
      makers_[binding.var.get()] = makers_of(vars);
      return;
    }
    ViewNode node{ViewNode::Kind::kRuntime, call_name(binding, kernel), short_type(binding.var.type()),
                  place_text(binding)};
    if (kernel) node.kind = ViewNode::Kind::kKernel;
    const std::string& op = op_name(binding.value);
    if (op == ops::kReshape || op == ops::kMemoryView) node.kind = ViewNode::Kind::kView;
    node.inputs = makers_of(vars);
    walk(binding.value, [&](const Ref<Constant>& constant) { node.weights.push_back(weight_of(constant)); });
    if (kernel) node.operators = groups_.operators_of(binding.var.get());
    add(std::move(node), {binding.var.get()});
  }

  // Returns the name in "model.onnx: initializer 'w'", the importer's place of a weight; "" for one that a pass has
  // made of others.
  static std::string name_of_weight(const Span& span) {
    constexpr std::string_view kHead = ": initializer '";
    const std::string place = span ? span.origin->file : "";
    const size_t at = place.find(kHead);
    return at == std::string::npos ? "" : place.substr(at + kHead.size(), place.size() - at - kHead.size() - 1);
  }
  static ViewWeight weight_of(const Ref<Constant>& constant) {
    const Tensor& data = constant->data;
    return {fmt::format("{}[{}]", to_string(data.dtype()), joined(data.shape())), name_of_weight(constant.span()),
            data.bytes()};
  }

  static std::string call_name(const Binding& binding, const std::optional<KernelCall>& kernel) {
    if (kernel) return kernel->name();
    if (binding.value.is<If>()) return "if";
    const Call& call = *binding.value.as<Call>();
    if (const GlobalVar* function = call.callee.as<GlobalVar>()) return function->name;
    const bool is_packed = op_name(binding.value) == ops::kCallPurePacked && !call.args.empty();
    const Expr& callee = is_packed ? call.args[0] : call.callee;
    if (const ExternFunc* external = callee.as<ExternFunc>()) return external->symbol;
    const std::string op = ops::short_name(op_name(binding.value));
    return op.empty() ? "call" : op;
  }

  const IRModule& module_;
  const OperatorGroups& groups_;
  ViewFunction result_;
  std::unordered_map<const NodeHeader*, std::vector<size_t>> makers_;  // of a variable's value: nodes
};

Stages stages_of(const std::string& path, CompileSettings settings) {
  const std::vector<std::string>& kernels = tables_of(settings).find_pipeline("kernels")->passes;
  const auto legalize = std::ranges::find(kernels, "legalize"), schedule = std::ranges::find(kernels, "schedule");
  auto run = [&](const IRModule& module, const std::string& passes) {
    settings.passes = passes;
    return run_pipeline(module, settings);
  };
  auto names = [](auto first, auto last) { return joined(std::vector(first, last), ","); };
  Stages stages;
  stages.operators = run(read_scheduled_module(path, settings), "entries,simplify," + names(kernels.begin(), legalize));
  stages.legalized = run(stages.operators, "legalize");
  stages.fused = run(stages.legalized, names(legalize + 1, schedule));
  stages.scheduled = run(stages.fused, names(schedule, kernels.end()));
  stages.lowered = programs_of(run(stages.scheduled, "lower"));
  return stages;
}

// A text that is longer is cut: a browser shows it slowly, and nobody reads it.
constexpr size_t kLongestText = 400'000;
std::string cut(std::string text, const std::string& level) {
  if (text.size() <= kLongestText) return text;
  const size_t end = text.rfind('\n', kLongestText);
  return fmt::format("{}\n... {} more characters: relaxc compile --emit={} prints them all\n", text.substr(0, end),
                     text.size() - end, level);
}

// Prints the program without the imports and the module's head, which are the same for all.
std::string program_text(const std::string& name, const Expr& program) {
  const std::string text = print_function(name, program);
  const size_t begin = text.find("@T.prim_func");
  return cut(begin == std::string::npos ? text : text.substr(begin), "tir");
}

std::vector<ViewText> texts_of_kernel(const std::string& name, const Stages& stages, const Target& target,
                                      const PassSettings& settings) {
  std::vector<ViewText> texts;
  if (const Expr* fused = stages.fused.find(name)) texts.push_back({"TensorIR", program_text(name, *fused)});
  const PrimFuncRef scheduled = stages.scheduled.prim_func(name);
  texts.push_back({"scheduled", program_text(name, scheduled)});
  texts.push_back({"loops", cut(draw_loops(name, scheduled), "loops")});
  const auto program = stages.lowered.find(name);
  if (program == stages.lowered.end()) return texts;
  for (const codegen::Backend::Text& level : codegen::backend_of(target).texts) {
    if (level.level == std::string_view("asm"))
      texts.push_back({"assembly", cut(level.print({*program}, target, settings), "asm")});
  }
  return texts;
}

}  // namespace

View view_of_module(const std::string& path, const CompileSettings& settings) {
  if (settings.passes != CompileSettings().passes)
    fail({}, "relaxc view shows what the default passes make of a model; leave out --passes");
  const Stages stages = stages_of(path, settings);
  const Target target = pass_context(settings).target;
  View view{is_text_file(split_text_path(path).file) ? "text" : "ONNX model", target.cpu, {}, {}, {}};
  const OperatorGroups groups(stages);
  for (const auto& [name, function] : stages.scheduled.functions) {
    const Function* graph = function.as<Function>();
    if (graph) view.functions.push_back(FunctionViewer(stages.scheduled, groups).run(name, *graph));
  }
  auto is_entry = [](const ViewFunction& function) { return function.name == "main"; };
  std::ranges::stable_partition(view.functions, is_entry);
  // Each kernel is compiled by itself, for its assembly; they are the pieces of one stage.
  const codegen::KernelMap kernels = programs_of(stages.scheduled);
  StageProgress progress(settings.progress, CompileStage::kKernels, kernels.size());
  PassSettings of_kernel = settings;
  of_kernel.progress = nullptr;
  for (const auto& [name, _] : kernels) {
    const StageProgress::Piece piece(progress, name);
    view.kernels.emplace(name, texts_of_kernel(name, stages, target, of_kernel));
  }
  return view;
}

}  // namespace relaxc::tools
