#include "tir/edit/step.h"

#include <algorithm>

#include "ir/text/printer.h"

namespace relaxc::scheduling {

TreeNode* Step::node(const VarRef& var) {
  TreeNode* found = workspace_.node(var);
  if (!found) fail(var.span(), "{}: '{}' is not a block or loop of this schedule", name_, var->name);
  if (!is_alive(found)) {
    fail(var.span(), "{}: {} '{}' is no longer part of the program: an earlier step replaced it", name_,
         found->is_loop() ? "loop" : "block", var->name);
  }
  if (tree_ && tree_ != found->tree)
    fail(var.span(), "{}: '{}' belongs to another tensor program than the arguments before it", name_, var->name);
  tree_ = found->tree;
  return found;
}

TreeNode* Step::node(const VarRef& var, TreeKind wanted) {
  TreeNode* result = node(var);
  auto text = [](TreeKind kind) { return kind == TreeKind::kLoop ? "loop" : "block"; };
  if (result->kind != wanted)
    fail(var.span(), "{}: '{}' is a {}, expected a {}", name_, var->name, text(result->kind), text(wanted));
  return result;
}
TreeNode* Step::place(const Place& place) {
  return std::visit([&](const auto& rv) { return node(rv.var); }, place);
}
Expr Step::number(const Expr& e) const {
  if (!e.type().is<PrimType>()) fail(e.span(), "{}: expected a number, got {}", name_, print_plain(e));
  VarMap known;
  walk(e, [&](const Ref<Var>& var) {
    if (auto number = workspace_.number(var)) {
      known.emplace(var.get(), int_imm(*number, dtype_of(var)));
      return;
    }
    // Dims of the program are numbers as well.
    bool is_dim = !tree_ || std::ranges::any_of(tree_->params(), [&](const VarRef& param) {
      return same_node(param, var) || uses_var(param.type(), var);
    });
    if (!is_dim) fail(e.span(), "{}: '{}' is not a number of this schedule", name_, var->name);
  });
  return known.empty() ? e : simplify(substitute(e, known));
}

IndexMap Step::with_numbers(const IndexMap& map) const {
  VarMap known;
  walk(Expr(map.map), [&](const Ref<Var>& var) {
    if (auto number = workspace_.number(var)) known.emplace(var.get(), int_imm(*number, dtype_of(var)));
  });
  return known.empty() ? map : IndexMap(cast<Lambda>(substitute(Expr(map.map), known)));
}

Buffer Step::buffer(TreeNode* block, const BufferArg& which, AccessKind otherwise) {
  const Block& content = *block->block;
  const AttrValue& value = which.value;
  if (const std::string* name = value.as<std::string>()) {
    for (const auto* regions : {&content.reads, &content.writes}) {
      for (const BufferRegion& region : *regions) {
        if (region.buffer->name == *name) return region.buffer;
      }
    }
    refuse({block}, "block '{}' does not access a buffer '{}'", block, *name);
  }
  const AttrList* list = value.as<AttrList>();
  const std::string* kind = list && list->size() == 2 ? (*list)[0].as<std::string>() : nullptr;
  bool is_read = kind ? *kind == "read" : otherwise == AccessKind::kRead;
  bool is_position = kind ? is_read || *kind == "write" : !list;
  int64_t position = 0;
  if (!is_position || !from_attr(kind ? (*list)[1] : value, position))
    refuse({block}, "{} does not name a buffer; expected a position, a name, or (\"read\" or \"write\", position)",
           to_string(value));
  const std::vector<BufferRegion>& regions = is_read ? content.reads : content.writes;
  if (position < 0 || position >= static_cast<int64_t>(regions.size()))
    refuse({block}, "block '{}' {} {} buffers, so there is none at position {}", block, is_read ? "reads" : "writes",
           regions.size(), position);
  return regions[static_cast<size_t>(position)].buffer;
}

Buffer Step::accessed(TreeNode* block, const BufferArg& which, AccessKind kind) {
  Buffer result = buffer(block, which, kind);
  bool reads = kind == AccessKind::kRead;
  if (!(reads ? read_of(block, result) : write_of(block, result)))
    refuse({block}, "block '{}' does not {} '{}'", block, reads ? "read" : "write", result);
  return result;
}

Buffer Step::allocated(TreeNode* block, const BufferArg& which) {
  Buffer result = accessed(block, which, AccessKind::kWrite);
  if (!allocating_block(*block->tree, result))
    refuse({block}, "'{}' is not allocated in the program, its memory is given", result);
  return result;
}

void Step::require_around(TreeNode* loop, TreeNode* block) {
  if (!contains(loops_above(block), loop)) refuse({block, loop}, "loop '{}' is not around block '{}'", loop, block);
}

TreeNode* Step::scope(TreeNode* block) {
  TreeNode* result = scope_of(block);
  if (!result) refuse({block}, "the root block is in no other block");
  require(has_other_statements(result), result);
  return result;
}

void Step::require_rank(const IndexMap& map, TreeNode* block) {
  if (map.rank() != block->axes().size())
    refuse({block}, "the map takes {} axes, block '{}' has {}", map.rank(), block, block->axes().size());
}

void Step::require_independent(const Nodes& loops) {
  for (TreeNode* loop : loops) {
    if (mentions_any(loop->loop->min, loops) || mentions_any(loop->loop->extent, loops))
      refuse({loop}, "the extent of loop '{}' depends on another loop", loop);
  }
}

void Step::require_alone(TreeNode* below, TreeNode* block, const Buffer& buffer) {
  for (TreeNode* other : blocks_below(below)) {
    if (other != block && accesses(other, buffer))
      refuse({other, block}, "block '{}', in the same loops, uses '{}', too", other, buffer);
  }
}

void Step::set_kind(const LoopRV& loop, ForKind kind, std::string thread) {
  TreeNode* node = this->loop(loop);
  // The threads of a GPU's block may reduce together; a CPU runs them one after another.
  bool may_reduce = kind == ForKind::kThreadBinding && thread.starts_with("threadIdx");
  if (kind != ForKind::kUnrolled) require(not_parallel(node, may_reduce), node);
  node->loop->kind = kind;
  node->loop->thread = std::move(thread);
}

void Step::refuse(const Nodes& at, const std::string& condition) {
  throw DoesNotFit{std::string(name_), condition, at};
}

Diagnostic DoesNotFit::diagnostic(bool with_program) const {
  Diagnostic result;
  result.kind = ErrorKind::kDoesNotFit;
  result.message = message();
  if (!at.empty()) result.span = at[0]->span;
  if (with_program && !at.empty()) {
    // Marks are addresses of nodes, which exist once the program is built.
    const Tree& tree = *at[0]->tree;
    PrimFuncRef function = tree.function();
    PrintOptions options;
    walk_nodes(function, [&](const NodeRef& node) {
      for (const TreeNode* marked : at) {
        const For* loop = node.as<For>();
        const Block* block = node.as<Block>();
        if (loop && marked->is_loop() && same_node(loop->var, marked->var())) options.marked.push_back(loop);
        if (block && marked->is_block() && block->name == marked->name()) options.marked.push_back(block);
      }
      return true;
    });
    result.notes.push_back("the program, the places marked:\n" + print_function("main", function, options));
  }
  return result;
}

}  // namespace relaxc::scheduling
