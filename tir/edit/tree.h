// A tensor program as a tree of loops and blocks that schedule primitives edit in place. Loops and blocks keep their
// identity while they move, so that what is known about them (handles, facts) stays valid without searching.
#pragma once
#include <memory>

#include "ir/arith.h"
#include "ir/module.h"
#include "tir/analysis/conditions.h"

namespace relaxc::scheduling {

class Tree;

// kLeaf: any other statement; primitives do not look into it.
enum class TreeKind : uint8_t { kLoop, kBlock, kLeaf };

struct TreeNode {
  Tree* tree;
  TreeKind kind;
  Span span = {};
  TreeNode* parent = nullptr;            // null: the root, or no longer part of the program
  std::vector<TreeNode*> children = {};  // of loops, and of blocks that hold blocks
  std::optional<For> loop = {};          // the body is `children`
  std::optional<Block> block = {};       // the body is `children`, if there are any
  std::optional<Stmt> leaf = {};
  // Facts about blocks, kept by who moves or edits them.
  bool uses_outer_vars = false;  // the body mentions variables of loops around the block
  bool carried = false;          // takes what an earlier iteration of a shared loop made: its loops keep their order
  bool meets_itself = false;     // and so do iterations of loops that hold nothing but the block
  bool in_order = false;         // another order of the reduce iterations would give another result
  // The loops are not known to bring the axes through all of their domains (a condition of the user's): the block's
  // loops cannot be made anew from the domains.
  bool partial = false;
  // Whether the axes' values are one to one with the iterations of the loops up to the scope (see iter_map.h); absent:
  // not looked at since a loop above changed.
  std::optional<bool> affine = {};

  bool is_loop() const { return kind == TreeKind::kLoop; }
  bool is_block() const { return kind == TreeKind::kBlock; }
  // A block whose body is a statement.
  bool is_leaf_block() const { return is_block() && children.empty(); }
  size_t position() const;  // among the parent's children
};

class Tree {
 public:
  explicit Tree(const PrimFuncRef& function);
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  // The program as it is now.
  PrimFuncRef function() const;
  TreeNode* root() const { return root_; }
  const std::vector<VarRef>& params() const { return params_; }
  bool is_param(const Buffer& buffer) const;
  // Of the loops there are: what new ones count in.
  DType index_dtype() const;
  // The signature changes.
  void replace_param(const Buffer& from, const Buffer& to);
  Attrs attrs;
  // What holds of dims and of every loop variable and block axis that was ever made.
  Analyzer facts;

  // New nodes are no part of the program until they are inserted.
  TreeNode* new_loop(std::string name, const Expr& extent, ForKind kind = ForKind::kSerial);
  TreeNode* new_loop(For loop, const Span& span = {});
  TreeNode* new_block(Block block, const Span& span = {});
  // The statement as nodes: its loops and blocks at the top, one node for anything else. Binds nothing anew.
  std::vector<TreeNode*> import(const Stmt& stmt);
  // The statement that the nodes stand for.
  Stmt stmt(const std::vector<TreeNode*>& nodes) const;
  Stmt stmt(const TreeNode& node) const;

  void insert(TreeNode* parent, size_t position, TreeNode* child);
  void append(TreeNode* parent, TreeNode* child) { insert(parent, parent->children.size(), child); }
  // Takes the node out, and loops (and blocks without axes that are not the root) that then hold nothing.
  void remove(TreeNode* node);
  // The same for a block, and for the memory of its scope that nothing else uses.
  void remove_with_buffer(TreeNode* block, const Buffer& buffer);
  // Takes the node out; its parent stays as it is.
  void detach(TreeNode* node);
  // `with` stands where `node` stood; node is taken out.
  void replace(TreeNode* node, TreeNode* with);
  // A nest of these loops, outermost first, around `body`, in its place; the outermost, or the body if there are none.
  TreeNode* wrap(TreeNode* body, const std::vector<TreeNode*>& loops);

  // A name that no block has: the wish, or with a number.
  std::string fresh_block_name(const std::string& wish) const;
  // The block of that name; null: none or several.
  TreeNode* find_block(std::string_view name) const;
  // All blocks but the root, in program order.
  std::vector<TreeNode*> blocks() const;

 private:
  TreeNode* new_node(TreeKind kind, const Span& span);
  void import_body(TreeNode* into, const Stmt& body);

  std::vector<std::unique_ptr<TreeNode>> nodes_;  // all that were ever made: a handle never dangles
  TreeNode* root_ = nullptr;
  std::vector<VarRef> params_;
  std::optional<DType> result_;
  Span span_;
};

// ---- Looking around

// The block that the node stands in.
TreeNode* scope_of(const TreeNode* node);
// The loops around the node up to its scope, outermost first; a loop does not count itself.
std::vector<TreeNode*> loops_above(const TreeNode* node);
// The blocks in the subtree, the node itself included, not those inside of other blocks; in program order.
std::vector<TreeNode*> blocks_below(const TreeNode* node);
bool is_ancestor(const TreeNode* above, const TreeNode* below);  // or the same
TreeNode* common_ancestor(const std::vector<TreeNode*>& nodes);
// The child of `above` that `below` stands in.
TreeNode* child_towards(const TreeNode* above, TreeNode* below);
bool precedes(const TreeNode* a, const TreeNode* b);  // in program order
bool is_alive(const TreeNode* node);
// Whether the variable of one of the loops occurs.
bool mentions_any(const NodeRef& node, const std::vector<TreeNode*>& loops);

// Variables replaced in all of the block but its axes and its condition.
void substitute_content(Block& block, const VarMap& map);
// Variables replaced in loops and blocks of the subtree (in bodies of blocks where they occur there).
void substitute_below(TreeNode* node, const VarMap& map);
// All that one loop or block holds goes behind what the other holds, variables replaced.
void move_body(TreeNode* from, TreeNode* to, const VarMap& map);
// The block runs only where the condition holds, too. Nothing when it always does.
void restrict_block(TreeNode* block, const Expr& condition);
// A copy of a leaf block, or of a subtree, with new variables and fresh block names.
TreeNode* copy_subtree(Tree& tree, const TreeNode* node);

}  // namespace relaxc::scheduling
