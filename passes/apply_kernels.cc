// Expects: operators. Guarantees: what the user's kernels implement (--kernels, CompileSettings::kernels) calls them.
// The rules are tried in order, each from the last binding of a block to the first, and a value belongs to one match.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "passes/compose.h"
#include "passes/graph_rewriter.h"
#include "passes/kernel_rules.h"
#include "passes/program_warnings.h"
#include "passes/replacement.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/nearest.h"
#include "tir/compute.h"

namespace relaxc {

namespace {

const char* kind_of(const KernelRule& rule) {
  return rule.kernel ? "kernel" : rule.replacement ? "rewriter" : "pattern";
}

class KernelApplier {
 public:
  // `only`: the name of the rules that are applied; empty: all are. `uses`: one of each rule.
  KernelApplier(IRModule& module, PassContext& context, std::vector<RuleUse>& uses, std::string_view only = {})
      : module_(module), context_(context), uses_(uses), only_(only) {}

  Expr sequence(const Expr& seq) {
    return rewrite_blocks(seq, [&](const BindingBlock& block, const VarSet& used_after) {
      std::vector<Binding> bindings = block.bindings;
      for (Binding& binding : bindings)
        binding.value = map_sequences(binding.value, [&](const Expr& inner) { return sequence(inner); });
      return apply(bindings, used_after);
    });
  }

 private:
  // The rules' way through one block.
  struct BlockState {
    const std::vector<Binding>& bindings;
    PatternScope scope;
    const PatternScope before = scope;
    std::vector<std::vector<Binding>> replaced{bindings.size()};
    std::vector<const KernelRule*> takers{bindings.size()};
  };

  // Puts what a rule implements in the place of its matches.
  class Taker final : public PatternUser {
   public:
    Taker(KernelApplier& applier, const KernelRule& rule, RuleUse& use, BlockState& block)
        : applier_(applier), rule_(rule), use_(use), block_(block) {}

    bool wants(size_t i) const override {
      return block_.takers[i] != &rule_ && (rule_.node.empty() || is_node(block_.bindings[i], rule_.node));
    }
    void is_taken(size_t i) override {
      if (!applier_.context_.claimed && (use_.is_used || !use_.refused.empty())) return;
      use_.refuse(place_of(block_.bindings[i]), applier_.why_late(rule_, block_, i));
    }
    std::optional<std::string> take(const PatternMatch& match) override {
      std::string refused;
      std::optional<std::vector<Binding>> made = applier_.replace(rule_, match, refused);
      if (!made) return refused;
      if (!use_.is_used) applier_.report_unread(rule_, match);
      use_.is_used = true;
      const Binding& last = block_.bindings[match.at];
      for (const Binding& inside : match.inside) {
        applier_.report(rule_, inside, "", inside.var.get() == last.var.get() ? "" : place_of(last));
        auto at = std::ranges::find(block_.bindings, inside.var.get(), var_of) - block_.bindings.begin();
        block_.takers[static_cast<size_t>(at)] = &rule_;
      }
      block_.replaced[match.at] = std::move(*made);
      return std::nullopt;
    }
    void is_refused(size_t i, const PatternRefusal& refused) override {
      applier_.report(rule_, block_.bindings[i], refused.why);
      use_.refuse(place_of(block_.bindings[i]), refused.why, refused.depth);
    }

   private:
    KernelApplier& applier_;
    const KernelRule& rule_;
    RuleUse& use_;
    BlockState& block_;
  };

  std::vector<Binding> apply(const std::vector<Binding>& bindings, const VarSet& used_after) {
    BlockState block{bindings, PatternScope(bindings, used_after, context_.ops)};
    for (size_t number = 0; number < context_.kernels->size(); ++number) {
      const KernelRule& rule = (*context_.kernels)[number];
      if (!rule.pattern || (!only_.empty() && rule.name != only_)) continue;
      Taker taker(*this, rule, uses_[number], block);
      block.scope.find_all(*rule.pattern, rule.name, taker);
    }
    std::vector<Binding> result;
    for (size_t i : block.scope.order()) {
      if (!block.scope.is_replaced(i)) result.push_back(bindings[i]);
      std::ranges::move(block.replaced[i], std::back_inserter(result));
    }
    return result;
  }

  static bool is_node(const Binding& binding, const std::string& node) {
    const Span& span = binding.var.span();
    const bool is_its = span && (span.origin->node == node || std::ranges::count(span.origin->others, node) > 0);
    return binding.var->name == node || is_its;
  }

  static std::string place_of(const Binding& binding) {
    const Span& span = binding.var.span();
    return span && !span.origin->node.empty() ? span.origin->node : binding.var->name;
  }
  // Returns the place of what stands for the match: that of its last result, with the nodes of all of it.
  static Span place_of(const PatternMatch& match) {
    return span_of_nodes(match.results.back().span(),
                         map_each(match.inside, [](const Binding& binding) { return binding.var.span(); }));
  }
  static const NodeHeader* var_of(const Binding& binding) { return binding.var.get(); }

  // An empty reason: the rule takes the binding; `at` is where its result is computed, if that is another.
  void report(const KernelRule& rule, const Binding& binding, const std::string& refused,
              const std::string& at = {}) const {
    if (!context_.claimed) return;
    context_.claimed({binding.var.span(), ops::short_name(op_name(binding.value)),
                      fmt::format("{} '{}'", kind_of(rule), rule.name), refused, "", at});
  }

  // Notes the attributes of a node that a kernel or rewriter for it knows nothing of.
  void report_unread(const KernelRule& rule, const PatternMatch& match) const {
    if (rule.node.empty() || !(rule.kernel || rule.replacement) || !context_.report) return;
    std::string names;
    for (const OpenAttr& attr : match.open) {
      if (std::ranges::count(rule.where.reads, attr.name) > 0 ||
          (rule.kernel && reads_attribute(*rule.kernel, attr.name)))
        continue;
      names += fmt::format("{}{}={}", names.empty() ? "" : ", ", attr.name, to_string(attr.value));
      if (!attr.op.empty()) names += " of " + attr.op;
    }
    if (names.empty()) return;
    context_.report(note_at(rule.span, fmt::format("{} '{}' takes node '{}', although it neither reads nor names: {}",
                                                   kind_of(rule), rule.name, rule.node, names)));
  }

  // Reports and returns why the rule does not have a binding that an earlier one has: it could, or it does not fit.
  std::string why_late(const KernelRule& rule, const BlockState& block, size_t at) const {
    const Binding& binding = block.bindings[at];
    PatternRefusal refused;
    IRModule scratch = module_;
    std::optional<PatternMatch> match = block.before.match(*rule.pattern, at, refused);
    if (!match || !KernelApplier(scratch, context_, uses_).replace(rule, *match, refused.why)) {
      report(rule, binding, refused.why);
      return refused.why;
    }
    const KernelRule* taker = block.takers[at];
    const std::string first = fmt::format("'{}' comes first", taker ? taker->name : "another one");
    report(rule, binding, "it could, and " + first);
    return first;
  }

  // Returns the bindings that stand for the match, or sets the reason why the rule cannot take it.
  std::optional<std::vector<Binding>> replace(const KernelRule& rule, const PatternMatch& match, std::string& refused) {
    if (std::optional<std::string> why = unmet_condition(rule, match)) {
      refused = *why;
      return std::nullopt;
    }
    Builder builder(context_.ops);
    builder.set_span(place_of(match));
    std::vector<OpenAttr> open = match.open;
    // Whoever names one node knows its attributes.
    std::erase_if(open, [&](const OpenAttr& attr) {
      return !rule.node.empty() || std::ranges::count(rule.where.reads, attr.name) > 0;
    });
    if (rule.replacement && !open.empty()) {
      refused = fmt::format(
          "attribute {} of {} is {}, which the pattern does not name; write {}={} there if the replacement "
          "is right for it",
          open[0].name, open[0].op, to_string(open[0].value), open[0].name, to_string(open[0].value));
      return std::nullopt;
    }
    std::variant<Expr, std::string> made = std::string();
    if (rule.kernel) {
      std::vector<Type> outputs = types_of(match.results);
      if (match.results.size() == 1 && outputs[0].is<TupleType>()) outputs = outputs[0].as<TupleType>()->items;
      made = call_user_kernel(*rule.kernel, {match.operands, match.attrs, outputs.size(), outputs, std::move(open)},
                              module_, builder);
    } else {
      made = rule.replacement ? replacement_of(rule, match, module_, builder) : composed(rule, match);
    }
    if (const std::string* why = std::get_if<std::string>(&made)) {
      refused = *why;
      return std::nullopt;
    }
    return bind(std::get<Expr>(made), match, builder);
  }

  static std::vector<Type> types_of(const std::vector<VarRef>& vars) {
    return map_each(vars, [](const VarRef& var) { return var.type(); });
  }

  // Returns the builder's bindings, and then those of the results to the value.
  static std::vector<Binding> bind(const Expr& value, const PatternMatch& match, Builder& builder) {
    std::vector<Binding> last;
    if (match.results.size() == 1) {
      last.push_back({value, std::nullopt, match.results[0]});
    } else {
      Expr all = is_leaf(value) ? value : Expr(builder.emit(value));
      for (size_t i = 0; i < match.results.size(); ++i) {
        const Tuple* written = all.as<Tuple>();
        last.push_back(
            {written ? written->items[i] : tuple_get(all, static_cast<int64_t>(i)), std::nullopt, match.results[i]});
      }
    }
    std::vector<Binding> result = bindings_of(builder.finish(tuple({})));
    std::ranges::move(last, std::back_inserter(result));
    return result;
  }

  // Returns a call of a private function of the match's operators, of which fusion makes one tensor program.
  std::variant<Expr, std::string> composed(const KernelRule& rule, const PatternMatch& match) {
    std::vector<Expr> operands;
    VarMap params;
    Function function{.params = {},
                      .body = match.results[0],
                      .result = match.results[0].type(),
                      .pure = true,
                      .attrs = Attrs{{attr_names::kPrimitive, int64_t{1}}, {attr_names::kScheduledPart, rule.name}}};
    VarSet made;
    for (const Binding& binding : match.inside) made.insert(binding.var.get());
    for (const Binding& binding : match.inside) {
      for (const VarRef& var : free_vars(binding.value)) {
        if (made.contains(var.get()) || params.contains(var.get())) continue;
        // A function has dims of its own.
        for (const VarRef& dim : free_vars(var.type())) params.try_emplace(dim.get(), make_dim(dim->name));
        if (!var.type().is<TensorType>()) continue;
        function.params.push_back(make_var(var->name, substitute(var.type(), params), var.span()));
        params.emplace(var.get(), function.params.back());
        operands.push_back(var);
      }
    }
    Substitution replaced(params);
    Builder builder(context_.ops);
    builder.begin_dataflow();
    for (const Binding& binding : match.inside) {
      builder.set_span(binding.var.span());
      replaced.add(binding.var, builder.emit(replaced(binding.value), binding.var->name));
    }
    std::vector<Expr> results = map_each(match.results, [&](const VarRef& var) { return replaced(Expr(var)); });
    function.body = builder.finish(results.size() == 1 ? results[0] : tuple(results));
    function.result = function.body.type();
    FunctionRef made_function = make_function(std::move(function), rule.span);
    std::vector<VarRef> open = free_vars(made_function);
    if (!open.empty()) return fmt::format("it uses '{}', which no operand has as a dim", open[0]->name);
    std::string name = module_.fresh_name(rule.name);
    module_.functions.emplace(name, made_function);
    std::vector<Type> types = types_of(match.results);
    return call(global_var(name, made_function.type()), operands, {}, types.size() == 1 ? types[0] : tuple_type(types),
                place_of(match));
  }

  IRModule& module_;
  PassContext& context_;
  std::vector<RuleUse>& uses_;
  std::string_view only_;
};

}  // namespace

std::optional<std::string> unmet_condition(const KernelRule& rule, const PatternMatch& match) {
  if (!rule.where) return std::nullopt;
  DimValues values;
  for (const auto& [name, value] : match.attrs) values.insert_or_assign(name, value);
  for (const VarRef& dim : rule.pattern->dims) {
    Expr value = simplify(copy_value(match.dims, dim.get()).value_or(dim));
    values.insert_or_assign(dim->name, as_int(value) ? AttrValue(*as_int(value)) : AttrValue(value));
  }
  return rule.where(values);
}

namespace {

// Returns the names of the nodes and values that a rule may name by node=.
std::vector<std::string> names_of_nodes(const IRModule& module) {
  std::vector<std::string> result;
  for (const auto& [_, function] : module.functions) {
    const Function* graph = function.as<Function>();
    if (!graph) continue;
    for_each_binding(graph->body, [&](const Binding& binding) {
      const Span& span = binding.var.span();
      if (!span || span.origin->node.empty()) return;
      result.push_back(span.origin->node);
      std::ranges::copy(span.origin->others, std::back_inserter(result));
    });
  }
  return result;
}

// Returns why the rule was used nowhere, where no place refused it.
std::string why_nothing_fits(const KernelRule& rule, const IRModule& module) {
  const std::string ops = joined(
      result_operators(*rule.pattern), [](const std::string& op) { return std::string(ops::short_name(op)); }, " or ");
  std::string what = ops.empty() ? "nothing that it matches" : "no " + ops;
  if (rule.node.empty()) return "the model has " + what;
  std::string near = nearest(rule.node, names_of_nodes(module));
  return fmt::format("the model has {} at '{}'{}", what, rule.node,
                     near.empty() || near == rule.node ? "" : fmt::format("; did you mean '{}'?", near));
}

void report_unused(const std::vector<RuleUse>& uses, const IRModule& module, std::string_view only,
                   const PassContext& context) {
  for (size_t i = 0; i < uses.size() && context.report; ++i) {
    const KernelRule& rule = (*context.kernels)[i];
    if (!rule.pattern || uses[i].is_used || (!only.empty() && rule.name != only)) continue;
    const std::string why = uses[i].refused.empty() ? why_nothing_fits(rule, module) : uses[i].refused;
    context.report(note_at(rule.span, fmt::format("{} '{}' is used nowhere: {}", kind_of(rule), rule.name, why)));
  }
}

// Says what the dims of the calls prove about the user's programs.
void report_warnings(const IRModule& module, const PassContext& context) {
  if (!context.report) return;
  std::set<std::string> programs;
  for (const auto& [name, _] : programs_of(module)) {
    if (kernel_of(name, context)) programs.insert(name);
  }
  if (programs.empty()) return;
  for (const Diagnostic& warning : warnings_of_calls(module, programs)) {
    std::string text = to_string(warning);
    text.pop_back();  // the end of its last line, which whoever reports adds
    context.report(text);
  }
}

IRModule applied(IRModule module, PassContext& context, std::string_view only) {
  if (!context.kernels || context.kernels->empty()) return module;
  const IRModule before = module;
  std::vector<RuleUse> uses(context.kernels->size());
  module = map_functions(std::move(module), [&](const FunctionRef& function, IRModule& result) {
    return cast<Function>(map_sequences(
        function, [&](const Expr& body) { return KernelApplier(result, context, uses, only).sequence(body); }));
  });
  report_unused(uses, before, only, context);
  report_warnings(module, context);
  return module;
}

}  // namespace

IRModule apply_kernels(IRModule module, PassContext& context) { return applied(std::move(module), context, ""); }

Pass pass_of_rules(const std::string& name) {
  auto apply = [name](IRModule module, PassContext& context) { return applied(std::move(module), context, name); };
  return {.name = name, .doc = "apply the rules of this name of --kernels", .on_module = apply};
}

}  // namespace relaxc
