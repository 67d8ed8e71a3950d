#include "tir/edit/workspace.h"

#include <algorithm>

#include "support/diagnostic.h"
#include "tir/edit/facts.h"

namespace relaxc::scheduling {

Workspace::Workspace(IRModule module, uint64_t seed) : module_(std::move(module)), random_(seed) {
  std::vector<std::string> programs;
  for (const auto& [name, function] : module_.functions) {
    if (function.is<PrimFunc>()) programs.push_back(name);
  }
  if (programs.size() == 1) working_on_ = programs[0];
  if (programs.size() > 1 && std::ranges::count(programs, "main")) working_on_ = "main";
}

const std::string& Workspace::resolve(const std::string& function) const {
  // TVM calls the only function main.
  bool is_only = function == "main" && module_.functions.size() == 1;
  return function.empty() || is_only ? working_on_ : function;
}

PrimFuncRef Workspace::program(const std::string& name) const {
  if (module_.functions.size() == 1 && !module_.find(name))
    fail({},
         "this schedule sees tensor program '{}' alone; if the module has '{}', that is scheduled by a definition of "
         "its own: @S.schedule(\"{}\")",
         working_on_, name, name);
  return module_.prim_func(name);
}

Tree& Workspace::tree(const std::string& function) const {
  const std::string& name = resolve(function);
  auto it = trees_.find(name);
  if (it == trees_.end()) {
    bool has_programs =
        std::ranges::any_of(module_.functions, [](const auto& entry) { return entry.second.template is<PrimFunc>(); });
    if (name.empty() && !has_programs) fail({}, "the module has no tensor program to schedule");
    if (name.empty()) fail({}, "the module has several tensor programs; say which one with work_on or func_name");
    auto made = std::make_unique<Tree>(program(name));
    find_facts(*made);
    it = trees_.emplace(name, std::move(made)).first;
  }
  return *it->second;
}

void Workspace::work_on(const std::string& function) {
  const std::string& name = resolve(function);
  program(name);
  working_on_ = name;
}

std::string Workspace::chosen_function() const { return module_.functions.size() > 1 ? working_on_ : ""; }

IRModule Workspace::module() const {
  IRModule result = module_;
  for (const auto& [name, tree] : trees_) result.functions.insert_or_assign(name, tree->function());
  return result;
}

VarRef Workspace::add(const char* letter, const Type& type, bool is_result) {
  bool is_named = is_result && !result_names_.empty();
  VarRef var = make_var(is_named ? result_names_.front() : message("{}{}", letter, num_results_++), type);
  if (is_named) result_names_.erase(result_names_.begin());
  meanings_.emplace(var.get(), Meaning{var});
  return var;
}

VarRef Workspace::name_node(TreeNode* node, bool is_result) {
  VarRef var = add(node->is_loop() ? "l" : "b", object_type(), is_result);
  meanings_.at(var.get()).node = node;
  return var;
}

VarRef Workspace::name_number(int64_t number, bool is_result) {
  VarRef var = add("v", prim_type(kInt64), is_result);
  meanings_.at(var.get()).number = number;
  return var;
}

TreeNode* Workspace::node(const VarRef& var) const {
  auto it = meanings_.find(var.get());
  return it == meanings_.end() ? nullptr : it->second.node;
}

std::optional<int64_t> Workspace::number(const VarRef& var) const {
  auto it = meanings_.find(var.get());
  return it == meanings_.end() ? std::nullopt : it->second.number;
}

}  // namespace relaxc::scheduling
