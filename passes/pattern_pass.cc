#include "passes/pattern_pass.h"

#include "ir/op_names.h"
#include "passes/compose.h"
#include "passes/graph_rewriter.h"
#include "passes/kernel_rules.h"
#include "passes/read_pattern.h"
#include "support/diagnostic.h"
#include "support/lists.h"

namespace relaxc {

std::vector<KernelRule> read_loose_patterns(const std::string& text, const std::string& place, const OpTable& ops) {
  std::vector<KernelRule> rules;
  if (text.find('@') != std::string::npos) {
    rules = read_kernel_rules(text, place, ops);
  } else if (ops.find(ops::full_name(text))) {
    rules.push_back({.name = text, .span = {}, .pattern = pattern_of_operator(text, {}, ops, {})});
  } else {
    fail({}, "{}: '{}' is neither an operator nor a text with @S.pattern", place, text);
  }
  for (KernelRule& rule : rules) {
    if (!rule.pattern || rule.kernel || rule.replacement)
      fail(rule.span, "'{}' is not a pattern alone; kernels stand in files of --kernels", rule.name);
    rule.pattern->is_loose = true;
  }
  return rules;
}

namespace {

struct RewriteRule {
  KernelRule rule;  // a pattern alone
  decltype(PatternRewrite::replace) replace;
};

// Puts what a rule makes of its matches into their place.
class Replacer final : public PatternUser {
 public:
  Replacer(const std::string& pass, const RewriteRule& rule, const std::vector<Binding>& bindings,
           std::vector<std::vector<Binding>>& replaced, const PassContext& context)
      : pass_(pass), rule_(rule), bindings_(bindings), replaced_(replaced), context_(context) {}

  std::optional<std::string> take(const PatternMatch& match) override {
    if (match.results.size() != 1) return "it has several results";
    if (auto why = unmet_condition(rule_.rule, match)) return why;
    Builder builder(context_.ops);
    builder.set_span(span_of_nodes(match.results[0].span(),
                                   map_each(match.inside, [](const Binding& inside) { return inside.var.span(); })));
    auto made = rule_.replace(match, builder);
    if (const std::string* why = std::get_if<std::string>(&made)) return *why;
    for (const Binding& inside : match.inside) report(inside, "");
    std::vector<Binding>& result = replaced_[match.at];
    result = bindings_of(builder.finish(tuple({})));
    result.push_back({std::get<Expr>(made), std::nullopt, match.results[0]});
    return std::nullopt;
  }
  void is_refused(size_t i, const PatternRefusal& refused) override { report(bindings_[i], refused.why); }

 private:
  void report(const Binding& binding, const std::string& refused) const {
    if (context_.claimed)
      context_.claimed({binding.var.span(), ops::short_name(op_name(binding.value)),
                        fmt::format("pattern '{}' of {}", rule_.rule.name, pass_), refused});
  }
  const std::string& pass_;
  const RewriteRule& rule_;
  const std::vector<Binding>& bindings_;
  std::vector<std::vector<Binding>>& replaced_;
  const PassContext& context_;
};

Expr rewritten(const Expr& sequence, const std::string& pass, const std::vector<RewriteRule>& rules,
               const PassContext& context) {
  return rewrite_blocks(sequence, [&](const BindingBlock& block, const VarSet& used_after) {
    std::vector<Binding> bindings = block.bindings, result;
    for (Binding& binding : bindings)
      binding.value =
          map_sequences(binding.value, [&](const Expr& inner) { return rewritten(inner, pass, rules, context); });
    PatternScope scope(bindings, used_after, context.ops);
    std::vector<std::vector<Binding>> replaced(bindings.size());
    for (const RewriteRule& rule : rules) {
      Replacer replacer(pass, rule, bindings, replaced, context);
      scope.find_all(*rule.rule.pattern, rule.rule.name, replacer);
    }
    for (size_t i : scope.order()) {
      if (!scope.is_replaced(i)) result.push_back(bindings[i]);
      std::ranges::move(replaced[i], std::back_inserter(result));
    }
    return result;
  });
}

}  // namespace

Pass pattern_pass(const std::string& name, const std::string& doc, const std::vector<PatternRewrite>& rewrites,
                  const OpTable& ops) {
  std::vector<RewriteRule> rules;
  for (const PatternRewrite& rewrite : rewrites) {
    for (KernelRule& rule : read_loose_patterns(rewrite.text, "the patterns of pass '" + name + "'", ops))
      rules.push_back({std::move(rule), rewrite.replace});
  }
  auto run = [name, rules](IRModule module, PassContext& context) {
    return map_uncomposed(std::move(module), context, [&](const FunctionRef& function, IRModule&) {
      return cast<Function>(
          map_sequences(function, [&](const Expr& body) { return rewritten(body, name, rules, context); }));
    });
  };
  return {.name = name, .doc = doc, .on_module = run};
}

}  // namespace relaxc
