// Which operators read or write at positions that a tensor holds, and what is known of such tensors before the run.
#pragma once
#include "ir/arith.h"
#include "passes/pass.h"

namespace relaxc {

// The operand whose values the call demands to be in [-dim, dim), unless gathers clamp them.
std::optional<IndexOperand> find_index_operand(const Expr& value, const OpTable& ops, OutOfRange gather);

// Collects the facts that the bindings so far give about their variables.
class IndexFacts {
 public:
  void note(const Binding& binding) { values_.emplace(binding.var.get(), binding.value); }
  // Whether all elements are known to be in range. Fails at the span when a constant is known not to be.
  bool prove(const Expr& indices, const std::vector<Expr>& dims, const Analyzer& facts, const Span& span) const;

 private:
  struct Range {
    Expr least, most;
  };
  std::optional<Range> range_of(const Expr& tensor, int depth = 0) const;
  std::optional<Range> range_of_call(const Expr& value, int depth) const;
  template <class Attrs>
  std::optional<Range> range_of_position(const Call& node) const;
  const Expr* value_of(const Expr& leaf) const;
  std::unordered_map<const NodeHeader*, Expr> values_;
};

}  // namespace relaxc
