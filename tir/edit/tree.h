// A tensor program as a tree of loops and blocks that schedule primitives edit in place. Loops and blocks keep their
// identity while they move, so that what is known about them (handles, facts) stays valid without searching.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "ir/arith.h"
#include "ir/module.h"
#include "support/lists.h"
#include "tir/analysis/conditions.h"

namespace relaxc::scheduling {

class Tree;
struct TreeNode;
using Nodes = std::vector<TreeNode*>;

// kLeaf: any other statement; primitives do not look into it.
enum class TreeKind : uint8_t { kLoop, kBlock, kLeaf };

// Facts about a block; code that moves or edits blocks keeps them true.
struct BlockFacts {
  bool uses_outer_vars = false;  // the body mentions variables of loops around the block
  bool carried = false;          // takes what an earlier iteration of a shared loop made: its loops keep their order
  bool meets_itself = false;     // and so do iterations of loops that hold nothing but the block
  bool in_order = false;         // another order of the reduce iterations would give another result
  // Set when the loops are not known to bring the axes through all of their domains (because of a condition in the
  // user's program): the block's loops cannot be made anew from the domains.
  bool partial = false;
};

struct TreeNode : BlockFacts {
  Tree* tree = nullptr;
  TreeKind kind = TreeKind::kLeaf;
  Span span = {};
  TreeNode* parent = nullptr;       // null: the root, or no longer part of the program
  Nodes children = {};              // of loops, and of blocks that hold blocks
  std::optional<For> loop = {};     // the body is `children`
  std::optional<Block> block = {};  // the body is `children`, if there are any
  std::optional<Stmt> leaf = {};
  // Tells whether the axes' values are one to one with the iterations of the loops up to the scope (see iter_map.h);
  // absent when that has not been computed since a loop above changed.
  std::optional<bool> affine = {};

  bool is_loop() const { return kind == TreeKind::kLoop; }
  bool is_block() const { return kind == TreeKind::kBlock; }
  // Returns whether this is a block whose body is a statement.
  bool is_leaf_block() const { return is_block() && children.empty(); }
  size_t position() const;  // among the parent's children

  // Returns the name of the block, or of the loop's variable.
  const std::string& name() const { return is_loop() ? loop->var->name : block->name; }
  const VarRef& var() const { return loop->var; }
  Range range() const { return {loop->min, loop->extent}; }
  std::vector<IterVar>& axes() { return block->iter_vars; }
  const std::vector<IterVar>& axes() const { return block->iter_vars; }
  Attrs& annotations() { return is_loop() ? loop->annotations : block->annotations; }
};

class Tree {
 public:
  explicit Tree(const PrimFuncRef& function);
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  // Returns the program in its present state.
  PrimFuncRef function() const;
  TreeNode* root() const { return root_; }
  const std::vector<VarRef>& params() const { return params_; }
  bool is_param(const Buffer& buffer) const;
  // Returns the dtype of the program's loop variables, which new loops take.
  DType index_dtype() const;
  // Replaces a param, which changes the signature.
  void replace_param(const Buffer& from, const Buffer& to);
  Attrs attrs;
  // The facts that hold for dims and for every loop variable and block axis that was ever made.
  Analyzer facts;

  // New nodes are not part of the program until they are inserted.
  TreeNode* new_loop(std::string name, const Expr& extent, ForKind kind = ForKind::kSerial);
  TreeNode* new_loop(For loop, const Span& span = {});
  TreeNode* new_block(Block block, const Span& span = {});
  // Returns the statement as nodes: its loops and blocks at the top, one node for anything else. Variables stay.
  Nodes import(const Stmt& stmt);
  // Returns the statement that the nodes stand for.
  Stmt stmt(const Nodes& nodes) const;
  Stmt stmt(const TreeNode& node) const;

  void insert(TreeNode* parent, size_t position, TreeNode* child);
  void append(TreeNode* parent, TreeNode* child) { insert(parent, parent->children.size(), child); }
  // Removes the node, and the loops (and blocks without axes, except the root) that are empty then.
  void remove(TreeNode* node);
  // Does the same for a block, and removes the buffer from its scope if nothing else uses it.
  void remove_with_buffer(TreeNode* block, const Buffer& buffer);
  // Removes the node; its parent stays as it is.
  void detach(TreeNode* node);
  // Puts `with` in the place of `node`, which is removed.
  void replace(TreeNode* node, TreeNode* with);
  // Puts a nest of these loops, outermost first, around `body`. Returns the outermost loop; without loops, the body.
  TreeNode* wrap(TreeNode* body, const Nodes& loops);

  // Returns a name that no block has: the given one, or the given one with a number.
  std::string fresh_block_name(const std::string& wish) const;
  // Returns all blocks but the root, in program order.
  Nodes blocks() const;

 private:
  TreeNode* new_node(TreeKind kind, const Span& span);
  void import_body(TreeNode* into, const Stmt& body);

  std::vector<std::unique_ptr<TreeNode>> nodes_;  // all that were ever made: a handle never dangles
  TreeNode* root_ = nullptr;
  std::vector<VarRef> params_;
  std::optional<DType> result_;
  Span span_;
};

// ---- Messages

template <class T>
decltype(auto) in_message(const T& part) {
  if constexpr (std::is_convertible_v<T, const TreeNode*>) {
    return part->name();
  } else if constexpr (std::is_convertible_v<T, VarRef>) {
    return (part->name);
  } else {
    return (part);
  }
}
template <class... Args>
using MessageFormat = std::type_identity_t<fmt::format_string<decltype(in_message(std::declval<const Args&>()))...>>;
// Formats a message in which nodes and variables stand for their names.
template <class... Args>
std::string message(MessageFormat<Args...> text, const Args&... args) {
  return fmt::vformat(text, fmt::make_format_args(in_message(args)...));
}

// ---- Looking around

inline bool contains(const Nodes& nodes, const TreeNode* node) { return std::ranges::find(nodes, node) != nodes.end(); }
using relaxc::contains;

// Returns the block that the node stands in.
TreeNode* scope_of(const TreeNode* node);
// Returns the loops around the node up to its scope, outermost first; if `outer` is one of them, only those inside it.
Nodes loops_above(const TreeNode* node, const TreeNode* outer = nullptr);
// Returns the loop and the loops around it up to its scope, outermost first.
Nodes loops_down_to(TreeNode* loop);
// Returns those of the loops that are `outermost` or inside of it; all of them when it is null.
inline Nodes loops_from(const TreeNode* outermost, const TreeNode* node) {
  return loops_above(node, outermost ? outermost->parent : nullptr);
}
// Returns the blocks in the subtree, including the node itself but not those inside of other blocks, in program order.
Nodes blocks_below(const TreeNode* node);
// Returns those that stand inside of the loop or block.
Nodes blocks_inside(const TreeNode* node);
bool is_ancestor(const TreeNode* above, const TreeNode* below);  // or the same
TreeNode* common_ancestor(const Nodes& nodes);
// Returns the child of `above` that contains `below`.
TreeNode* child_towards(const TreeNode* above, TreeNode* below);
bool precedes(const TreeNode* a, const TreeNode* b);  // in program order
bool is_alive(const TreeNode* node);
// Returns the node and all below it, those inside of blocks, too, in program order, each before what it holds.
Nodes subtree(const TreeNode* node);
// Returns whether the variable of one of the loops occurs.
bool mentions_any(const NodeRef& node, const Nodes& loops);
// Returns whether one of the block's axes occurs.
bool mentions_axes(const NodeRef& node, const TreeNode* block);

std::vector<Expr> axis_vars(const TreeNode* block);
std::vector<Expr> axis_values(const TreeNode* block);
// Returns the block's axes in terms of the loops around it.
VarMap values_of_axes(const TreeNode* block);
// Returns the axes in terms of these values, one for each.
VarMap axes_as(const std::vector<IterVar>& axes, const std::vector<Expr>& values);
inline Expr end_of(const Range& range) { return range.min + range.extent; }
Range substitute(const Range& range, const VarMap& map);
std::vector<Expr> substitute(const std::vector<Expr>& list, const VarMap& map);
// Replaces variables in all of the block but its axes and its condition.
void substitute_content(Block& block, const VarMap& map);
// Replaces variables in loops and blocks of the subtree (in bodies of blocks where they occur there).
void substitute_below(TreeNode* node, const VarMap& map);
// Appends the children of `from` to those of `to`, with variables replaced.
void move_body(TreeNode* from, TreeNode* to, const VarMap& map);
// Makes the block run only where the condition holds, too. Changes nothing when the condition always holds.
void restrict_block(TreeNode* block, const Expr& condition);
// Returns a copy of a leaf block, or of a subtree, with new variables and fresh block names.
TreeNode* copy_subtree(Tree& tree, const TreeNode* node);

}  // namespace relaxc::scheduling
