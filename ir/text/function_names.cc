// The names of functions outside of a class: those that Python around them or their global_symbol gives them.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/text/parsing.h"

namespace relaxc::text {

// Returns whether the statement only says what functions are called: tvm.IRModule({"f": add}), f = add.with_attr(...).
bool Parser::names_functions(const Line& line) {
  std::vector<NamedFunction> found = named_functions(line);
  for (NamedFunction& each : found) {
    if (auto known = function_aliases_.find(each.function); known != function_aliases_.end())
      each.function = known->second;
  }
  std::erase_if(found, [&](const NamedFunction& each) { return !declared_.contains(each.function); });
  for (const NamedFunction& each : found) {
    std::string_view function = python_tree_->text(each.function);
    if (!each.alias.empty()) function_aliases_.insert_or_assign(python_tree_->text(each.alias), function);
    std::erase_if(renamed_, [&](const NamedFunction& earlier) { return earlier.name == each.name; });
    if (!each.name.empty()) renamed_.push_back({function, each.name});
  }
  return !found.empty();
}

static Expr with_symbol(const Expr& function, const std::string& symbol) {
  auto named = [&](auto node) {
    if (node.attrs.has(attr_names::kGlobalSymbol)) node.attrs.set(attr_names::kGlobalSymbol, symbol);
    return node;
  };
  if (const PrimFunc* program = function.as<PrimFunc>()) return make_prim_func(named(*program), function.span());
  if (const Function* graph = function.as<Function>()) return make_function(named(*graph), function.span());
  return function;
}

// Renames functions outside of a class as Python around them or their global_symbol says, which is the name that TVM
// gives them. A function to which Python gives two names is two.
void Parser::name_lone_functions() {
  std::map<std::string, std::vector<std::string>> names;
  for (const NamedFunction& each : renamed_) {
    if (module_.functions.contains(std::string(each.function))) names[std::string(each.function)].push_back(each.name);
  }
  for (const auto& [name, function] : module_.functions) {
    const PrimFunc* program = function.as<PrimFunc>();
    const Function* graph = function.as<Function>();
    const Attrs* attrs = program ? &program->attrs : graph ? &graph->attrs : nullptr;
    std::string symbol = attrs ? attrs->get_string(attr_names::kGlobalSymbol, name) : name;
    if (symbol != name && !names.contains(name)) names[name].push_back(symbol);
  }
  std::map<std::string, int> wanted;
  for (const auto& [name, own] : names)
    for (const std::string& symbol : own) ++wanted[symbol];
  std::erase_if(names, [&](const auto& each) {  // a name that another function has, or gets, stays with that
    return std::ranges::any_of(each.second, [&](const std::string& symbol) {
      bool is_taken = module_.functions.contains(symbol) && symbol != each.first && !names.contains(symbol);
      return is_taken || wanted[symbol] > 1;
    });
  });
  std::map<std::string, Expr> renamed = module_.functions;
  for (const auto& [name, own] : names) renamed.erase(name);
  for (const auto& [name, own] : names) {
    Expr function = module_.functions.at(name);
    for (const std::string& symbol : own) {
      if (renamed.contains(own[0]) && function.is<PrimFunc>())
        function = with_fresh_variables(cast<PrimFunc>(function));
      if (symbol == own[0] || function.is<PrimFunc>()) renamed.emplace(symbol, with_symbol(function, symbol));
    }
  }
  module_.functions = std::move(renamed);
  for (auto& [other, function] : module_.functions)
    function = rewrite(function, [&](const Ref<GlobalVar>& callee) -> std::optional<Expr> {
      auto own = names.find(callee->name);
      return own == names.end() ? std::nullopt : std::optional(global_var(own->second[0], callee.type()));
    });
}

}  // namespace relaxc::text
