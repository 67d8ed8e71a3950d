#include "passes/replacement.h"

#include <algorithm>

#include "ir/sequence.h"
#include "ir/text/printer.h"
#include "ir/type_relation.h"
#include "support/diagnostic.h"
#include "support/lists.h"

namespace relaxc {

namespace {

class Replacement {
 public:
  Replacement(const KernelRule& rule, const PatternMatch& match, Builder& builder)
      : function_(**rule.replacement), rule_(rule), match_(match), builder_(builder) {}

  std::variant<Expr, std::string> run(IRModule& module) {
    choose_names(module);
    std::optional<Expr> result;
    try {
      if (bind_params() && bind_all()) result = checked(typed(replaced_(function_.body.as<SeqExpr>()->body)));
    } catch (const CompileError& error) {  // an operator cannot take these operands
      refuse("the replacement cannot be used: " + error.diagnostics().front().message);
    }
    if (!result) return reason_;
    for (const auto& [name, function] : functions_) module.functions.emplace(name, function);
    return *result;
  }

 private:
  bool refuse(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  // The module may have other functions of these names, and then they get numbers; or it has them already.
  void choose_names(const IRModule& module) {
    auto is_free = [&](const auto& entry) {
      const Expr* known = module.find(entry.first);
      return !known || structural_equal(*known, entry.second);
    };
    for (number_ = 0;; ++number_) {
      functions_.clear();
      for (const auto& [name, function] : rule_.functions.functions)
        functions_.emplace(name_in_module(name), with_callees(function));
      if (std::ranges::all_of(functions_, is_free)) return;
    }
  }
  std::string name_in_module(const std::string& name) const {
    return number_ == 0 ? name : fmt::format("{}_{}", name, number_);
  }
  Expr with_callees(const Expr& value) const {
    if (number_ == 0) return value;
    return rewrite(value, [&](const Ref<GlobalVar>& callee) -> std::optional<Expr> {
      if (!rule_.functions.find(callee->name)) return std::nullopt;
      return global_var(name_in_module(callee->name), callee.type());
    });
  }

  bool bind_params() {
    for (size_t i = 0; i < function_.params.size(); ++i)
      bind_dims(function_.params[i].type(), match_.operands[i].type(), dims_);
    replaced_ = Substitution(dims_);
    for (size_t i = 0; i < function_.params.size(); ++i) {
      const VarRef& param = function_.params[i];
      const Expr& operand = match_.operands[i];
      const Type declared = substitute(param.type(), dims_);
      if (fits(declared, operand.type()) != Verdict::kProven)
        return refuse(fmt::format("param '{}' of the replacement is {}, and the operand {}", param->name,
                                  print_type(declared), print_type(operand.type())));
      replaced_.add(param, operand);
    }
    return true;
  }

  bool bind_all() {
    for (const Binding& binding : bindings_of(function_.body)) {
      const Expr value = typed(replaced_(with_callees(binding.value)));
      const Type declared = substitute(binding.var.type(), dims_);
      if (!binding.cast && fits(declared, value.type()) == Verdict::kContradicted)
        return refuse(fmt::format("'{}' of the replacement is {}, and its value {}", binding.var->name,
                                  print_type(declared), print_type(value.type())));
      replaced_.add(binding.var, binding.cast
                                     ? Expr(builder_.match_cast(value, replaced_(*binding.cast), binding.var->name))
                                 : is_leaf(value) ? value
                                                  : Expr(builder_.emit(value, binding.var->name)));
    }
    return true;
  }

  // Returns the value with the type that it has for these operands, at the place of the match.
  Expr typed(const Expr& value) const {
    const Span& span = builder_.span();
    if (value.type().is<PrimType>()) return value;
    auto all_typed = [&](const std::vector<Expr>& items) {
      return map_each(items, [&](const Expr& item) { return typed(item); });
    };
    if (const TupleGetItem* item = value.as<TupleGetItem>()) return tuple_get(typed(item->tuple), item->index, span);
    if (const Tuple* items = value.as<Tuple>()) return tuple(all_typed(items->items), span);
    const Call* node = value.as<Call>();
    if (!node) return value;
    Call call = *node;
    call.args = all_typed(call.args);
    const Type known = infer_call_type(call, span, builder_.ops());
    const bool says_less = fits(known, value.type()) == Verdict::kProven;
    return make(std::move(call), says_less ? value.type() : known, span);
  }

  // Returns the value if it has the types of the pattern's results.
  std::optional<Expr> checked(const Expr& value) {
    const size_t count = match_.results.size();
    const TupleType* items = count == 1 ? nullptr : value.type().as<TupleType>();
    if (items && items->items.size() != count) {
      refuse(fmt::format("the replacement gives {} results, and the pattern {}", items->items.size(), count));
      return std::nullopt;
    }
    std::vector<Expr> results;
    const Expr whole = count == 1 || value.is<Tuple>() ? value : builder_.leaf(value);
    for (size_t i = 0; i < count; ++i) {
      const Type& wanted = match_.results[i].type();
      Expr result = count == 1 ? whole : items_of(whole, i);
      const Verdict verdict = fits(wanted, result.type());
      const bool is_open = !known_shape(result.type()) || !tensor_dtype(result.type());
      if (verdict == Verdict::kContradicted || (verdict == Verdict::kPossible && !is_open)) {
        refuse(fmt::format("the replacement gives {}, and the pattern {}{}", print_type(result.type()),
                           print_type(wanted),
                           verdict == Verdict::kPossible ? ", which are not known to be the same" : ""));
        return std::nullopt;
      }
      if (verdict == Verdict::kPossible) result = builder_.match_cast(result, wanted);
      results.push_back(std::move(result));
    }
    return count == 1 ? results[0] : tuple(std::move(results));
  }
  static Expr items_of(const Expr& whole, size_t i) {
    const Tuple* written = whole.as<Tuple>();
    return written ? written->items[i] : tuple_get(whole, static_cast<int64_t>(i));
  }

  const Function& function_;
  const KernelRule& rule_;
  const PatternMatch& match_;
  Builder& builder_;
  int64_t number_ = 0;                     // behind the names of the functions; 0: none
  std::map<std::string, Expr> functions_;  // that the replacement calls, by their names in the module
  VarMap dims_ = {};
  Substitution replaced_ = Substitution();
  std::string reason_ = {};
};

}  // namespace

std::variant<Expr, std::string> replacement_of(const KernelRule& rule, const PatternMatch& match, IRModule& module,
                                               Builder& builder) {
  return Replacement(rule, match, builder).run(module);
}

}  // namespace relaxc
