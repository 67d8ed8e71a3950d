#include "ir/sequence.h"

#include <algorithm>

namespace relaxc {

std::vector<Binding> bindings_of(const Expr& seq) {
  std::vector<Binding> result;
  for (const BindingBlock& block : cast<SeqExpr>(seq)->blocks)
    result.insert(result.end(), block.bindings.begin(), block.bindings.end());
  return result;
}

void for_each_binding(const Expr& seq, const std::function<void(const Binding&)>& fn) {
  for (const BindingBlock& block : cast<SeqExpr>(seq)->blocks) {
    for (const Binding& binding : block.bindings) {
      map_sequences(binding.value, [&](const Expr& inner) {
        for_each_binding(inner, fn);
        return inner;
      });
      fn(binding);
    }
  }
}

Expr map_sequences(const Expr& value, const std::function<Expr(const Expr& seq)>& fn) {
  if (!value.is<If>() && !value.is<Function>()) return value;
  return cast_handle<Expr>(map_children(value, [&](const NodeRef& child, Slot) -> NodeRef {
    return child.is<SeqExpr>() ? fn(cast_handle<Expr>(child)) : child;
  }));
}

namespace {

bool same_binding(const Binding& a, const Binding& b) {
  bool same_cast = a.cast.has_value() == b.cast.has_value() && (!a.cast || same_node(*a.cast, *b.cast));
  return same_cast && same_node(a.var, b.var) && same_node(a.value, b.value);
}
bool same_block(const BindingBlock& a, const BindingBlock& b) {
  return !b.bindings.empty() && std::ranges::equal(a.bindings, b.bindings, same_binding) &&
         std::ranges::equal(a.outputs, b.outputs, same_node);
}

}  // namespace

Expr rewrite_blocks(const Expr& seq, const RewriteBlock& fn) {
  SeqExpr payload = *cast<SeqExpr>(seq);
  bool changed = false;
  VarSet used;
  auto use = [&](const NodeRef& node) {
    for (const VarRef& var : free_vars(node)) used.insert(var.get());
  };
  use(payload.body);
  for (size_t i = payload.blocks.size(); i-- > 0;) {
    BindingBlock& block = payload.blocks[i];
    BindingBlock rewritten{block.dataflow, fn(block, used), {}};
    for (const Binding& binding : rewritten.bindings) {
      if (block.dataflow && used.contains(binding.var.get())) rewritten.outputs.push_back(binding.var);
    }
    for (const Binding& binding : rewritten.bindings) {
      use(binding.value);
      if (binding.cast) use(*binding.cast);
    }
    changed = changed || !same_block(block, rewritten);
    block = std::move(rewritten);
  }
  if (!changed) return seq;
  std::erase_if(payload.blocks, [](const BindingBlock& block) { return block.bindings.empty(); });
  return with_type(seq_expr(std::move(payload.blocks), payload.body, seq.span()), seq.type());
}

}  // namespace relaxc
