#include "tir/edit/workspace.h"

#include <algorithm>

#include "ir/attr_names.h"
#include "support/diagnostic.h"
#include "tir/edit/blocks.h"

namespace relaxc::scheduling {

namespace {

// Widens domains that depend on loops (`for j in range(i + 1)`) to all their iterations: loops change, domains stay.
void widen_domains(TreeNode* block) {
  Nodes loops = loops_above(block);
  for (IterVar& axis : block->axes()) {
    Range& domain = axis.domain;
    if (!mentions_any(domain.min, loops) && !mentions_any(domain.extent, loops)) continue;
    const Analyzer& facts = block->tree->facts;
    auto first = bounds_over(domain.min, running(loops), facts);
    auto end = bounds_over(end_of(domain), running(loops), facts);
    if (first && end) domain = {first->min, facts.simplify(end->max - first->min)};
  }
}

bool is_partial(const TreeNode* block) {
  if (block->block->predicate) return true;
  const Analyzer& facts = block->tree->facts;
  Nodes loops = loops_above(block);
  // In a nest that is not a box (a triangle) the axes go through their domains, but not through all of their pairs.
  for (const TreeNode* at : loops) {
    if (mentions_any(at->loop->min, loops) || mentions_any(at->loop->extent, loops)) return true;
  }
  RunningVars vars = running(loops);
  return !std::ranges::all_of(block->axes(), [&](const IterVar& axis) {
    auto bounds = bounds_over(axis.value, vars, facts);
    return bounds && facts.can_prove_equal(bounds->min, axis.domain.min) &&
           facts.can_prove_equal(bounds->max + 1, end_of(axis.domain));
  });
}

// A block that reads what a block behind it in the same loop made carries values over iterations, and so does one that
// reads more than the iteration has made so far.
void find_carried_between_blocks(Tree& tree) {
  for (TreeNode* reader : tree.blocks()) {
    TreeNode* scope = scope_of(reader);
    for (const BufferRegion& read : reader->block->reads) {
      Nodes all = writers(scope, read.buffer);
      for (TreeNode* writer : all) {
        if (writer == reader) continue;
        TreeNode* shared = common_ancestor({writer, reader});
        if (shared->is_block()) continue;
        // The update of a sum reads the values of the init and its own earlier ones; several blocks may write parts.
        Nodes before = all;
        std::erase_if(before, [&](const TreeNode* other) {
          return other == reader || !is_ancestor(shared, other) || !precedes(other, reader);
        });
        std::vector<Range> needed = region_at(reader, read, shared);
        bool covered = precedes(writer, reader) && (writes_all({writer}, read.buffer, shared, needed) ||
                                                    writes_all(before, read.buffer, shared, needed));
        if (!covered) writer->carried = reader->carried = true;
      }
    }
  }
}

// Returns whether iterations of the block's spatial axes may store to the same element, or one reads an element that
// another stores. Reduce axes are a matter of their order (needs_order).
bool shares_elements(const TreeNode* block) {
  Tree& tree = *block->tree;
  Nodes axes;
  VarMap loops_of_axes;
  for (const IterVar& axis : block->axes()) {
    if (axis.kind == IterKind::kReduce || is_int(axis.domain.extent, 1)) continue;
    axes.push_back(tree.new_loop(axis.var->name, axis.domain.extent));
    loops_of_axes.emplace(axis.var.get(), axis.domain.min + axes.back()->var());
  }
  for (const BufferRegion& write : block->block->writes) {
    Nodes loops = axes;
    std::vector<Expr> elements;
    // Dims without axes are the same for all iterations, so the other dims must keep the iterations apart.
    auto has_axes = [&](const Range& range) {
      return mentions_axes(range.min, block) || mentions_axes(range.extent, block);
    };
    for (const Range& range : write.ranges) {
      if (!has_axes(range)) continue;
      elements.push_back(substitute(range.min, loops_of_axes));
      if (is_int(range.extent, 1)) continue;
      loops.push_back(tree.new_loop("element", range.extent));
      elements.back() = elements.back() + cast_to(loops.back()->var(), dtype_of(elements.back()));
    }
    if (!find_injective_map(elements, ranges_of(loops), {}, tree.facts)) return true;
    const BufferRegion* read = read_of(block, write.buffer);
    for (size_t d = 0; read && d < write.ranges.size(); ++d) {
      if (has_axes(write.ranges[d]) && !covers(write.ranges[d], read->ranges[d], tree.facts)) return true;
    }
  }
  return false;
}

// Finds the facts about a program's blocks when a schedule begins; primitives keep them true from there on (tree.h).
void find_facts(Tree& tree) {
  for (TreeNode* block : tree.blocks()) {
    widen_domains(block);
    block->partial = is_partial(block);
    block->in_order = block->is_leaf_block() && needs_order(*block->block);
  }
  find_carried_between_blocks(tree);
  for (TreeNode* block : tree.blocks()) {
    block->meets_itself = block != tree.root() && shares_elements(block);
    block->carried = block->carried || block->meets_itself;
  }
}

}  // namespace

Workspace::Workspace(IRModule module, uint64_t seed) : module_(std::move(module)), random_(seed) {
  std::vector<std::string> programs;
  for (const auto& [name, function] : module_.functions) {
    if (function.is<PrimFunc>()) programs.push_back(name);
  }
  if (programs.size() == 1) working_on_ = programs[0];
  if (programs.size() > 1 && std::ranges::count(programs, "main")) working_on_ = "main";
}

const std::string& Workspace::resolve(const std::string& function) const {
  // TVM calls the only function main, and a schedule may name it as it was called before fusion.
  bool is_only = module_.functions.size() == 1 && !module_.find(function) && !working_on_.empty() &&
                 (function == "main" ||
                  module_.prim_func(working_on_)->attrs.get_string(attr_names::kScheduledPart, "") == function);
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

VarRef Workspace::add(const char* letter, const Type& type, bool is_result, TreeNode* node,
                      std::optional<int64_t> number) {
  bool is_named = is_result && !result_names_.empty();
  VarRef var = make_var(is_named ? result_names_.front() : message("{}{}", letter, num_results_++), type);
  if (is_named) result_names_.erase(result_names_.begin());
  meanings_.emplace(var.get(), Meaning{var, node, number});
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
