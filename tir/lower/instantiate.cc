#include "tir/lower/instantiate.h"

namespace relaxc {

namespace {

class Instantiator final : public Rewriter {
 public:
  Instantiator(const Stmt& root, const VarMap& axes) : axes_(axes) {
    walk_nodes(root, [&](const NodeRef& node) {
      visit_children(node, [&](const NodeRef& child, Slot slot) {
        if (slot.role != Role::kField && child.is<Var>()) bound_.insert(child.get());
      });
      return true;
    });
  }
  Expr expr(const Expr& node) override {
    if (auto it = axes_.find(node.get()); it != axes_.end()) return it->second;
    return Rewriter::expr(node);
  }
  VarRef var(const VarRef& node) override {
    auto it = renamed_.find(node.get());
    if (it != renamed_.end()) return it->second;
    if (!bound_.contains(node.get())) return Rewriter::var(node);
    VarRef fresh = make_var(node->name, type(node.type()), node.span());
    renamed_.emplace(node.get(), fresh);
    return fresh;
  }

 private:
  const VarMap& axes_;
  std::unordered_set<const NodeHeader*> bound_;
};

}  // namespace

Stmt instantiate(const Stmt& stmt, const VarMap& axes) { return Instantiator(stmt, axes).stmt(stmt); }

}  // namespace relaxc
