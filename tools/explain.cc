// relaxc explain: says who implements each node of a model, and why others that claim it do not.
#include <algorithm>
#include <map>
#include <memory>

#include "frontend/onnx/import.h"
#include "ir/attr_names.h"
#include "ir/kernel_call.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "passes/compose.h"
#include "passes/runner.h"
#include "passes/tables.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/lower/lower.h"
#include "tools/tool.h"

namespace relaxc::tools {

namespace {

struct ExplainCommand {
  std::string model;
  CompilerOptions compiler;
  bool claims = false;
};

// What is known about one node of the model, or one operator of a text.
struct NodeReport {
  std::string place, op;
  uint32_t line;                       // of a text
  std::vector<std::string> operators;  // of the graph that come from it, after the kernels were applied
  std::vector<Claim> claims;
  std::vector<std::string> alone = {};  // why kernels of it are not fused
  std::string unconverted = {};         // why nothing implements it
  std::string kernel_head = {};         // of a kernel that would
};

class ClaimReport {
 public:
  explicit ClaimReport(const CompileSettings& settings, bool lists_all = false)
      : settings_(settings), tables_(tables_of(settings)), lists_all_(lists_all) {}
  void add(const Claim& claim) {
    NodeReport& node = at(claim.node, claim.what);
    if (!claim.by.empty()) node.claims.push_back(claim);
  }

  // Notes a node that nothing implements. What is wrong elsewhere in the model is printed.
  void add(const UnconvertedNode& failed) {
    for (const Diagnostic& diagnostic : failed.why) {
      if (diagnostic.kind == ErrorKind::kUnsupported || exit_code_ == kRight)
        exit_code_ = diagnostic.kind == ErrorKind::kUnsupported ? kUnsupported : kWrong;
      if (!failed.node) print_error("{}\n", to_string(diagnostic));
    }
    if (!failed.node) return;
    NodeReport& node = at(failed.node, failed.node.origin->op_type);
    if (!node.unconverted.empty()) return;
    node.unconverted = joined(failed.why, &Diagnostic::message, "; ");
    if (failed.why.front().kind == ErrorKind::kUnsupported && node.claims.empty())
      node.kernel_head = failed.kernel_head;
  }
  // Notes who takes the nodes of the user's kernels where there are none: backends, and operators of plug-ins.
  void add_behind_kernels(const ClaimReport& without) {
    for (auto& [place, node] : nodes_) {
      auto first = std::ranges::find(node.claims, "", &Claim::refused);
      auto other = without.nodes_.find(place);
      if (first == node.claims.end() || other == without.nodes_.end()) continue;
      const std::string could = fmt::format("it could, and {} comes first", first->by);
      for (const Claim& claim : other->second.claims) {
        auto is_same = [&](const Claim& known) { return known.by == claim.by; };
        // Of several patterns of a backend one may take the node that others refuse.
        const bool is_refusal = !claim.refused.empty() && is_taker(other->second, claim.by);
        if (is_refusal || std::ranges::any_of(node.claims, is_same)) continue;
        node.claims.push_back({claim.node, claim.what, claim.by, claim.refused.empty() ? could : claim.refused});
      }
      if (!takers(other->second).empty()) continue;
      for (const std::string& op : other->second.operators) {
        const std::string plugin = tables_.origin(Tables::Kind::kOperator, ops::full_name(op));
        if (!plugin.empty()) node.claims.push_back({{}, op, fmt::format("{} of {}", op, plugin), could});
      }
    }
  }
  // Returns the exit code of all of it.
  int exit_code() const { return exit_code_; }

  // Notes the graph's operators, and the kernels that it calls.
  void add(const IRModule& module) {
    for (const auto& [name, function] : module.functions) {
      const Function* graph = function.as<Function>();
      if (!graph || graph->attrs.has(attr_names::kScheduledPart)) continue;  // a pattern has claimed all of these
      const std::string why = why_no_backend(name, *graph, settings_);
      if (!why.empty()) refuse(*graph, why);
      for_each_binding(graph->body, [&](const Binding& binding) { add(binding, module); });
    }
  }

  std::string text() const {
    std::string result;
    std::vector<const NodeReport*> sorted = order_;
    std::ranges::stable_sort(sorted, {}, &NodeReport::line);
    for (const NodeReport* node : sorted) {
      std::vector<std::string> lines = {fmt::format("{} ({}): {}", node->place, node->op, implementer(*node))};
      std::vector<std::string> seen = claims_text(*node);
      if (!node->kernel_head.empty()) seen.push_back("    a kernel for it, in a file of --kernels, begins like this:");
      for (std::string_view line : parts_of(node->kernel_head, '\n')) seen.push_back(fmt::format("        {}", line));
      for (const std::string& line : node->alone) seen.push_back("    " + line);
      result += lines[0] + "\n" + joined(seen, [](const std::string& line) { return line + "\n"; }, "");
    }
    return result;
  }

 private:
  // Returns a line for each claim that says more than that it takes the node. Of several reasons of one claimant the
  // first counts, and the others are counted, unless all are asked for.
  std::vector<std::string> claims_text(const NodeReport& node) const {
    std::vector<std::string> seen;
    std::map<std::string, int> further;  // by claimant
    std::vector<std::string> claimants;
    for (const Claim& claim : node.claims) {
      if (claim.refused.empty() ? claim.note.empty() : is_taker(node, claim.by)) continue;
      std::string line = claim.refused.empty() ? fmt::format("    {}: {}", claim.by, claim.note)
                                               : fmt::format("    {} does not: {}", claim.by, claim.refused);
      const bool is_said = !claim.refused.empty() && node.unconverted.find(claim.refused) != std::string::npos;
      if (is_said || std::ranges::count(seen, line)) continue;
      auto [count, is_first] = further.try_emplace(claim.by, 0);
      if (is_first) claimants.push_back(claim.by);
      if (!is_first && !lists_all_ && !claim.refused.empty()) {
        ++count->second;
        continue;
      }
      seen.push_back(std::move(line));
    }
    for (const std::string& by : claimants) {
      const int count = further.at(by);
      if (count > 0)
        seen.push_back(fmt::format("        {} more pattern{} of {} fit{} less; --claims lists {}", count,
                                   count == 1 ? "" : "s", by, count == 1 ? "s" : "", count == 1 ? "it" : "them"));
    }
    return seen;
  }

  static std::string name_of(const Span& span, const std::string& otherwise) {
    if (!span) return otherwise;
    return span.origin->node.empty() ? fmt::format("line {}", span.line) : span.origin->node;
  }

  NodeReport& at(const Span& span, const std::string& op) {
    std::string place = name_of(span, op);
    auto [entry, is_new] = nodes_.try_emplace(place);
    if (is_new) {
      bool is_node = span && !span.origin->node.empty();
      entry->second = {place, is_node ? span.origin->op_type : op, is_node || !span ? 0 : span.line, {}, {}};
      order_.push_back(&entry->second);
    } else if (entry->second.line > 0 && tables_.ops().find(ops::full_name(op))) {
      // A line of a text may hold several operators.
      std::vector<std::string_view> known = parts_of(entry->second.op, ',');
      auto is_op = [&](std::string_view text) { return text.substr(text.starts_with(' ') ? 1 : 0) == op; };
      if (std::ranges::none_of(known, is_op)) entry->second.op += ", " + op;
    }
    return entry->second;
  }

  // Notes that nothing implements the operators of a graph function.
  void refuse(const Function& graph, const std::string& why) {
    exit_code_ = kUnsupported;
    for_each_binding(graph.body, [&](const Binding& binding) {
      if (!binding.cast && binding.value.is<Call>() && binding.var.span())
        at(binding.var.span(), ops::short_name(op_name(binding.value))).unconverted = why;
    });
  }

  void add(const Binding& binding, const IRModule& module) {
    const Call* call = binding.value.as<Call>();
    if (binding.cast || !call) return;
    std::string op = ops::short_name(op_name(binding.value));
    std::optional<KernelCall> kernel = as_kernel_call(binding.value, module);
    if (kernel) op = fmt::format("kernel '{}'", kernel->name());
    if (op.empty()) op = "a call";
    const Span& span = binding.var.span();
    if (!span) return;
    NodeReport& node = at(span, op);
    if (!node.unconverted.empty()) return;
    if (kernel) add_reason(node, *kernel, module);
    // Layouts and shapes that a kernel asks for are its own.
    bool is_part = kernel || call->callee.is<GlobalVar>() || op == "layout_transform" || op == "tensor_to_shape";
    bool is_claimed = is_part && !takers(node).empty();
    if (!is_claimed && !std::ranges::count(node.operators, op)) node.operators.push_back(op);
  }

  static void add_reason(NodeReport& node, const KernelCall& kernel, const IRModule& module) {
    std::optional<PrimFuncRef> program = called_program(kernel.callee, module);
    if (!program) return;
    if ((*program)->attrs.get_bool(attr_names::kIsScheduled, false)) return;  // a backend's
    const PrimFuncRef plain = with_single_stores(promote_indices(*program));
    std::optional<std::string> why = "it has several results";
    if (kernel.outputs.size() == 1) why = why_not_fused(plain);
    if (why) node.alone.push_back(fmt::format("kernel '{}' is not fused with its neighbours: {}", kernel.name(), *why));
    // One block could follow a product in its tile, as could a chain of blocks; others are a kernel of their own.
    if (!why && keeps_blocks_together(plain))
      node.alone.push_back(
          fmt::format("kernel '{}' is not computed in the tile of a convolution or product before it: it has several "
                      "blocks, which read other elements than those at their place, go over other axes than the last, "
                      "or would make a long one; elementwise neighbours are fused with it",
                      kernel.name()));
  }

  static bool is_taker(const NodeReport& node, const std::string& name) {
    return std::ranges::any_of(node.claims,
                               [&](const Claim& claim) { return claim.refused.empty() && claim.by == name; });
  }

  // Returns the kernels and patterns that compute the node, or parts of it.
  static std::vector<std::string> takers(const NodeReport& node) {
    std::vector<std::string> result;
    for (const Claim& claim : node.claims) {
      // A node that became several operators may be part of a match and its end.
      bool is_end = std::ranges::any_of(node.claims, [&](const Claim& other) {
        return other.refused.empty() && other.at.empty() && other.by == claim.by;
      });
      std::string text = is_end ? claim.by : fmt::format("part of {} (at {})", claim.by, claim.at);
      if (claim.refused.empty() && !std::ranges::count(result, text)) result.push_back(text);
    }
    return result;
  }

  std::string implementer(const NodeReport& node) const {
    if (!node.unconverted.empty()) return "nothing: " + node.unconverted;
    const std::string claimed = joined(takers(node));
    if (node.operators.empty() && claimed.empty()) {
      auto is_around = [&](const NodeReport* other) {
        return !other->unconverted.empty() && node.place.starts_with(other->place + "/");
      };
      auto around = std::ranges::find_if(order_, is_around);
      if (around != order_.end())
        return fmt::format("not known, because nothing implements '{}' around it", (*around)->place);
      const std::string inside = node.place + "/";
      auto holds = [&](const NodeReport* other) { return other->place.starts_with(inside); };
      return std::ranges::any_of(order_, holds) ? "the nodes in it"
                                                : "computed while compiling, or part of another node";
    }
    if (node.operators.empty()) return claimed;
    std::string plugin;
    for (const std::string& op : node.operators) {
      if (plugin.empty()) plugin = tables_.origin(Tables::Kind::kOperator, ops::full_name(op));
    }
    return fmt::format("{}{}{}, as {}", claimed, claimed.empty() ? "" : "; ",
                       plugin.empty() ? "built in" : "from " + plugin, joined(node.operators));
  }

  const CompileSettings& settings_;
  const Tables& tables_;
  bool lists_all_;
  std::map<std::string, NodeReport> nodes_;
  std::vector<const NodeReport*> order_;
  int exit_code_ = kRight;
};

// Returns the last pass of the pipeline "simplify" that may claim nodes: the user's kernels, and passes of plug-ins.
std::string last_claiming_pass(const Tables& tables) {
  if (!tables.external_compilers().empty()) return "claim_" + tables.external_compilers().back().name;
  std::string last = "apply_kernels";
  bool is_behind = false;
  for (const std::string& name : tables.find_pipeline("simplify")->passes) {
    is_behind = is_behind || name == "apply_kernels";
    if (is_behind && !tables.origin(Tables::Kind::kPass, name).empty()) last = name;
  }
  return last;
}

bool has_default_passes(const CompileSettings& settings) { return settings.passes == CompileSettings().passes; }

// Runs the passes that choose layouts and algorithms, and those that schedule a model of which all is known. They say
// where a kernel or rule of the user's is left out. Returns false where a schedule is wrong, which it prints.
bool choose_for_rules(IRModule module, CompileSettings settings, bool is_known) {
  const bool may_say = settings.kernels || !settings.schedules.empty();
  std::vector<std::string> passes;
  const bool schedules = is_known && !settings.schedules.empty();
  bool is_behind = false;
  for (const std::string& name : tables_of(settings).find_pipeline("simplify")->passes) {
    if (is_behind) passes.push_back(name);
    is_behind = is_behind || name == settings.runner.stop_after;
    if (name == "pack_weights" && !schedules) break;
  }
  if (schedules) passes.emplace_back("kernels");
  if (!may_say || passes.empty()) return true;
  settings.passes = joined(passes, ",");
  settings.runner.stop_after = schedules ? "schedule" : "";
  try {
    run_pipeline(std::move(module), settings);
  } catch (const CompileError& error) {
    for (const Diagnostic& diagnostic : error.diagnostics()) print_error("{}", to_string(diagnostic));
    return false;
  }
  return true;
}

// Takes the names of the user's rules out of a list of passes.
std::string without_rules(const std::string& passes, const std::vector<KernelRule>& rules) {
  std::vector<std::string> kept;
  for (std::string_view name : parts_of(passes, ',')) {
    if (std::ranges::count(rules, name, &KernelRule::name) == 0) kept.emplace_back(name);
  }
  return joined(kept, ",");
}

// Reads the model again without the user's kernels, since those take nodes before backends see them.
void add_behind_kernels(const std::string& model, CompileSettings settings, ClaimReport& report) {
  const Tables& tables = tables_of(settings);
  const bool has_others = !tables.flags().empty() || !tables.external_compilers().empty();
  if (!settings.kernels || settings.kernels->empty() || !has_others) return;
  settings.passes = without_rules(settings.passes, *settings.kernels);
  settings.kernels = nullptr, settings.schedules.clear();  // these may name the kernels
  settings.report = nullptr, settings.warn = nullptr;
  ClaimReport without(settings);
  settings.claimed = [&](const Claim& claim) { without.add(claim); };
  settings.unconverted = [](const UnconvertedNode&) {};
  IRModule module = read_scheduled_module(model, settings);
  without.add(settings.passes.empty() ? module : run_pipeline(std::move(module), settings));
  report.add_behind_kernels(without);
}

int run(const ExplainCommand& command) {
  CompileSettings settings = command.compiler.get(command.model);
  ClaimReport report(settings, command.claims);
  settings.claimed = [&](const Claim& claim) { report.add(claim); };
  settings.unconverted = [&](const UnconvertedNode& node) { report.add(node); };
  // Without a list of passes from the user these are all that may claim nodes.
  const bool is_whole = settings.runner.stop_after.empty() && has_default_passes(settings);
  if (is_whole) settings.runner.stop_after = last_claiming_pass(tables_of(settings));
  IRModule module = run_pipeline(read_scheduled_module(command.model, settings), settings);
  report.add(module);
  const bool is_right = !is_whole || choose_for_rules(std::move(module), settings, report.exit_code() == kRight);
  add_behind_kernels(command.model, settings, report);
  print_message("{}", report.text());
  return is_right ? report.exit_code() : kWrong;
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExplainCommand>();
  CLI::App* command = app.add_subcommand("explain", "say who implements each node of a model, and why others do not");
  command->add_option("model", options->model, "the file (.onnx or .py)")->required();
  command->add_flag("--claims", options->claims,
                    "all reasons of --kernels and --backend against each node; otherwise the nearest of each");
  options->compiler.add_dims(*command);
  options->compiler.add_to(*command);
  command->footer("Example: relaxc explain model.onnx --claims --kernels softmax.py");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace relaxc::tools
