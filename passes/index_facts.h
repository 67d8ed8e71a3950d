// Which operators read or write at positions that a tensor holds, and what is known of such tensors before the run.
#pragma once
#include "ir/arith.h"
#include "passes/pass.h"

namespace relaxc {

// An operand that holds indices of axes of these sizes: one size for all of them, or one for each item of the last
// axis.
struct IndexOperand {
  size_t position;
  std::vector<Expr> dims;
};
// The operand whose values the call demands to be in [-dim, dim); nullopt for calls that give every value a meaning,
// and where a shape is not known.
std::optional<IndexOperand> find_index_operand(const Expr& value, OutOfRange gather);

// What the bindings so far tell of their variables.
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
  std::optional<Range> range_of_call(const Call& node, const std::string& op, int depth) const;
  const Expr* value_of(const Expr& leaf) const;
  std::unordered_map<const NodeHeader*, Expr> values_;
};

}  // namespace relaxc
