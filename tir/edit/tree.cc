#include "tir/edit/tree.h"

#include <algorithm>

#include "tir/compute.h"

namespace relaxc::scheduling {

size_t TreeNode::position() const {
  auto it = std::ranges::find(parent->children, this);
  return static_cast<size_t>(it - parent->children.begin());
}

// ---- From and to statements

TreeNode* Tree::new_node(TreeKind kind, const Span& span) {
  TreeNode* node = nodes_.emplace_back(std::make_unique<TreeNode>()).get();
  node->tree = this;
  node->kind = kind;
  node->span = span;
  return node;
}

TreeNode* Tree::new_loop(For loop, const Span& span) {
  TreeNode* node = new_node(TreeKind::kLoop, span);
  facts.bind(loop.var, loop.min, loop.extent);
  node->loop = std::move(loop);
  return node;
}

TreeNode* Tree::new_loop(std::string name, const Expr& extent, ForKind kind) {
  VarRef var = make_var(std::move(name), prim_type(dtype_of(extent)));
  return new_loop(
      For{.var = var, .min = int_imm(0, dtype_of(extent)), .extent = extent, .kind = kind, .body = no_op()});
}

TreeNode* Tree::new_block(Block block, const Span& span) {
  TreeNode* node = new_node(TreeKind::kBlock, span);
  for (const IterVar& axis : block.iter_vars) facts.bind(axis.var, axis.domain.min, axis.domain.extent);
  node->block = std::move(block);
  return node;
}

void Tree::import_body(TreeNode* into, const Stmt& body) {
  for (TreeNode* child : import(body)) append(into, child);
}

Nodes Tree::import(const Stmt& stmt) {
  if (const Seq* list = stmt.as<Seq>()) {
    Nodes result;
    for (const Stmt& item : list->stmts) std::ranges::copy(import(item), std::back_inserter(result));
    return result;
  }
  if (const For* loop = stmt.as<For>(); loop && !loop->step && holds<Block>(loop->body)) {
    TreeNode* node = new_loop(*loop, stmt.span());
    node->loop->body = no_op();
    import_body(node, loop->body);
    return {node};
  }
  if (const Block* block = stmt.as<Block>()) {
    TreeNode* node = new_block(*block, stmt.span());
    if (holds<Block>(block->body)) {
      node->block->body = no_op();
      import_body(node, block->body);
    }
    return {node};
  }
  TreeNode* node = new_node(TreeKind::kLeaf, stmt.span());
  node->leaf = stmt;
  return {node};
}

namespace {

// Notes which blocks use variables of loops around them in their bodies; returns whether there are any.
bool find_outer_vars(TreeNode* root) {
  VarSet loop_vars;
  bool found = false;
  for (TreeNode* node : subtree(root)) {
    if (node->is_loop()) loop_vars.insert(node->var().get());
    if (!node->is_block()) continue;
    const Block& block = *node->block;
    node->uses_outer_vars = uses_var(block.body, loop_vars) || (block.init && uses_var(*block.init, loop_vars));
    found = found || node->uses_outer_vars;
  }
  return found;
}

// Lets a block that names a loop variable beside an axis with that value, `W[vl, j]` where vj is j, name the axis:
// primitives change the values of axes only.
void name_axes(TreeNode* root) {
  for (TreeNode* node : subtree(root)) {
    if (!node->is_block()) continue;
    VarMap axes;
    for (const IterVar& axis : node->axes()) {
      for (const TreeNode* loop : loops_above(node)) {
        if (same_node(axis.value, loop->var()) && dtype_of(axis.value) == dtype_of(axis.var))
          axes.emplace(axis.value.get(), axis.var);
      }
    }
    substitute_content(*node->block, axes);
    for (TreeNode* child : node->children) substitute_below(child, axes);
  }
}

}  // namespace

Tree::Tree(const PrimFuncRef& function)
    : attrs(function->attrs), params_(function->params), result_(function->result), span_(function.span()) {
  for (const VarRef& param : params_) facts.assume_dims(param.type());
  const Block* block = function->body.as<Block>();
  bool has_root = block && block->iter_vars.empty() && !block->init && !block->predicate;
  root_ = has_root ? new_block(*block, function->body.span()) : new_block(*root_block({}, no_op()).as<Block>());
  root_->block->body = no_op();
  import_body(root_, has_root ? block->body : function->body);
  if (find_outer_vars(root_)) {
    name_axes(root_);
    find_outer_vars(root_);
  }
}

Stmt Tree::stmt(const Nodes& nodes) const {
  return seq(map_each(nodes, [&](const TreeNode* node) { return stmt(*node); }));
}

Stmt Tree::stmt(const TreeNode& node) const {
  if (node.kind == TreeKind::kLeaf) return *node.leaf;
  if (node.is_loop()) {
    For loop = *node.loop;
    loop.body = stmt(node.children);
    return make(std::move(loop), node.span);
  }
  Block block = *node.block;
  if (!node.children.empty()) block.body = stmt(node.children);
  return make(std::move(block), node.span);
}

PrimFuncRef Tree::function() const {
  return make_prim_func({.params = params_, .body = stmt(*root_), .attrs = attrs, .result = result_}, span_);
}

bool Tree::is_param(const Buffer& buffer) const { return contains(params_, buffer); }

void Tree::replace_param(const Buffer& from, const Buffer& to) {
  std::ranges::replace_if(params_, [&](const VarRef& param) { return same_node(param, from); }, to);
  facts.assume_dims(to.type());
}

DType Tree::index_dtype() const {
  const TreeNode* at = root_;
  while (!at->children.empty() && !at->is_loop()) at = at->children.front();
  return at->is_loop() ? dtype_of(at->var()) : kInt64;
}

// ---- Edits

void Tree::insert(TreeNode* parent, size_t position, TreeNode* child) {
  RELAXC_CHECK(!child->parent, "the node stands elsewhere");
  parent->children.insert(parent->children.begin() + static_cast<long>(position), child);
  child->parent = parent;
}

void Tree::detach(TreeNode* node) {
  if (!node->parent) return;
  Nodes& siblings = node->parent->children;
  siblings.erase(siblings.begin() + static_cast<long>(node->position()));
  node->parent = nullptr;
}

void Tree::remove(TreeNode* node) {
  TreeNode* parent = node->parent;
  detach(node);
  while (parent && parent != root_ && parent->children.empty() && (parent->is_loop() || parent->axes().empty())) {
    TreeNode* empty = parent;
    parent = parent->parent;
    detach(empty);
  }
}

void Tree::replace(TreeNode* node, TreeNode* with) {
  RELAXC_CHECK(!with->parent, "the node stands elsewhere");
  TreeNode* parent = node->parent;
  parent->children[node->position()] = with;
  with->parent = parent;
  node->parent = nullptr;
}

void Tree::remove_with_buffer(TreeNode* block, const Buffer& buffer) {
  TreeNode* scope = scope_of(block);
  remove(block);
  std::erase_if(scope->block->alloc_buffers, [&](const Buffer& allocated) { return same_node(allocated, buffer); });
}

TreeNode* Tree::wrap(TreeNode* body, const Nodes& loops) {
  if (loops.empty()) return body;
  if (body->parent) replace(body, loops.front());
  for (size_t i = 1; i < loops.size(); ++i) append(loops[i - 1], loops[i]);
  append(loops.back(), body);
  return loops.front();
}

// ---- Search

Nodes Tree::blocks() const {
  Nodes result = subtree(root_);
  std::erase_if(result, [&](const TreeNode* node) { return !node->is_block() || node == root_; });
  return result;
}

namespace {

std::unordered_set<std::string_view> names_of_blocks(const Tree& tree) {
  std::unordered_set<std::string_view> names;
  for (const TreeNode* block : tree.blocks()) names.insert(block->name());
  return names;
}

std::string fresh_name(const std::string& wish, const std::unordered_set<std::string_view>& taken) {
  std::string name = wish;
  for (int i = 1; taken.contains(name); ++i) name = fmt::format("{}_{}", wish, i);
  return name;
}

}  // namespace

std::string Tree::fresh_block_name(const std::string& wish) const { return fresh_name(wish, names_of_blocks(*this)); }

TreeNode* scope_of(const TreeNode* node) {
  TreeNode* at = node->parent;
  while (at && !at->is_block()) at = at->parent;
  return at;
}

Nodes loops_above(const TreeNode* node, const TreeNode* outer) {
  Nodes result;
  for (TreeNode* at = node->parent; at && at != outer && at->is_loop(); at = at->parent) result.push_back(at);
  std::ranges::reverse(result);
  return result;
}

Nodes loops_down_to(TreeNode* loop) {
  Nodes result = loops_above(loop);
  result.push_back(loop);
  return result;
}

static void add_blocks(TreeNode* below, Nodes& to) {
  if (below->is_block()) return to.push_back(below);
  for (TreeNode* child : below->children) add_blocks(child, to);
}
Nodes blocks_below(const TreeNode* node) {
  Nodes result;
  add_blocks(const_cast<TreeNode*>(node), result);
  return result;
}
Nodes blocks_inside(const TreeNode* node) {
  Nodes result;
  for (TreeNode* child : node->children) add_blocks(child, result);
  return result;
}

bool is_ancestor(const TreeNode* above, const TreeNode* below) {
  for (; below; below = below->parent) {
    if (below == above) return true;
  }
  return false;
}

TreeNode* common_ancestor(const Nodes& nodes) {
  TreeNode* result = nodes.front();
  for (TreeNode* node : nodes) {
    while (!is_ancestor(result, node)) result = result->parent;
  }
  return result;
}

TreeNode* child_towards(const TreeNode* above, TreeNode* below) {
  while (below->parent != above) below = below->parent;
  return below;
}

bool precedes(const TreeNode* a, const TreeNode* b) {
  TreeNode* shared = common_ancestor({const_cast<TreeNode*>(a), const_cast<TreeNode*>(b)});
  if (shared == a || shared == b) return shared == a && a != b;
  return child_towards(shared, const_cast<TreeNode*>(a))->position() <
         child_towards(shared, const_cast<TreeNode*>(b))->position();
}

bool is_alive(const TreeNode* node) {
  while (node->parent) node = node->parent;
  return node == node->tree->root();
}

Nodes subtree(const TreeNode* node) {
  Nodes result;
  auto visit = [&](auto& self, TreeNode* at) -> void {
    result.push_back(at);
    for (TreeNode* child : at->children) self(self, child);
  };
  visit(visit, const_cast<TreeNode*>(node));
  return result;
}

bool mentions_any(const NodeRef& node, const Nodes& loops) {
  return any_node(node, [&](const NodeRef& at) {
    return std::ranges::any_of(loops, [&](const TreeNode* loop) { return same_node(at, loop->var()); });
  });
}

bool mentions_axes(const NodeRef& node, const TreeNode* block) {
  return std::ranges::any_of(block->axes(), [&](const IterVar& axis) { return uses_var(node, axis.var); });
}

// ---- Variables and predicates

std::vector<Expr> axis_vars(const TreeNode* block) {
  return map_each(block->axes(), [](const IterVar& axis) -> Expr { return axis.var; });
}
std::vector<Expr> axis_values(const TreeNode* block) {
  return map_each(block->axes(), [](const IterVar& axis) { return axis.value; });
}
VarMap values_of_axes(const TreeNode* block) { return axes_as(block->axes(), axis_values(block)); }
VarMap axes_as(const std::vector<IterVar>& axes, const std::vector<Expr>& values) {
  VarMap result;
  for (size_t a = 0; a < axes.size(); ++a) result.emplace(axes[a].var.get(), values[a]);
  return result;
}

Range substitute(const Range& range, const VarMap& map) {
  return {relaxc::substitute(range.min, map), relaxc::substitute(range.extent, map)};
}
std::vector<Expr> substitute(const std::vector<Expr>& list, const VarMap& map) {
  return map_each(list, [&](const Expr& e) { return relaxc::substitute(e, map); });
}

void substitute_content(Block& block, const VarMap& map) {
  Block content = block;
  content.iter_vars.clear();
  content.predicate.reset();
  Stmt done = substitute(Stmt(make(std::move(content))), map);
  content = *done.as<Block>();
  content.iter_vars = std::move(block.iter_vars);
  content.predicate = std::move(block.predicate);
  block = std::move(content);
}

void substitute_below(TreeNode* node, const VarMap& map) {
  if (node->kind == TreeKind::kLeaf) {
    node->leaf = substitute(*node->leaf, map);
    return;
  }
  if (node->is_loop()) {
    Expr min = substitute(node->loop->min, map), extent = substitute(node->loop->extent, map);
    if (!same_node(min, node->loop->min) || !same_node(extent, node->loop->extent)) {
      node->loop->min = min;
      node->loop->extent = extent;
      node->tree->facts.bind(node->var(), min, extent);
    }
  } else {
    Block& block = *node->block;
    node->affine.reset();
    // Without simplification splitting and fusing by turns would double the expressions each time.
    auto replaced = [&](const Expr& e) {
      Expr result = substitute(e, map);
      return same_node(result, e) ? e : node->tree->facts.simplify(result);
    };
    for (IterVar& axis : block.iter_vars) axis.value = replaced(axis.value);
    if (block.predicate) {
      std::vector<Expr> conditions = conjuncts(block.predicate);
      for (Expr& condition : conditions) condition = replaced(condition);
      std::erase_if(conditions, [](const Expr& condition) { return is_int(condition, 1); });
      block.predicate = conjunction(conditions);
    }
    if (!node->uses_outer_vars) return;
    substitute_content(block, map);
  }
  for (TreeNode* child : node->children) substitute_below(child, map);
}

void move_body(TreeNode* from, TreeNode* to, const VarMap& map) {
  Tree& tree = *from->tree;
  for (TreeNode* child : std::vector(from->children)) {
    tree.detach(child);
    substitute_below(child, map);
    tree.append(to, child);
  }
}

void restrict_block(TreeNode* block, const Expr& condition) {
  if (block->tree->facts.can_prove(condition)) return;
  std::vector<Expr> all = conjuncts(block->block->predicate);
  if (std::ranges::any_of(all, [&](const Expr& known) { return structural_equal(known, condition); })) return;
  all.push_back(condition);
  block->block->predicate = conjunction(all);
}

TreeNode* copy_subtree(Tree& tree, const TreeNode* node) {
  // Copying the nodes as a function replaces the variables that are bound inside.
  PrimFuncRef copy = with_fresh_variables(make_prim_func({.params = {}, .body = tree.stmt(*node), .attrs = {}}));
  Nodes nodes = tree.import(copy->body);
  RELAXC_CHECK(nodes.size() == 1, "a copy of one node is one node");
  std::unordered_set<std::string_view> taken = names_of_blocks(tree);
  auto adopt = [&](auto& self, const TreeNode* from, TreeNode* to) -> void {
    static_cast<BlockFacts&>(*to) = *from;
    if (to->is_block()) to->block->name = fresh_name(to->name(), taken);
    if (to->is_block()) taken.insert(to->name());
    for (size_t c = 0; c < to->children.size(); ++c) self(self, from->children[c], to->children[c]);
  };
  adopt(adopt, node, nodes[0]);
  return nodes[0];
}

}  // namespace relaxc::scheduling
