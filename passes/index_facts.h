// Finds operators that read or write at positions that a tensor holds, and proves such positions to be in range.
#pragma once
#include "ir/arith.h"
#include "passes/pass.h"

namespace relaxc {

// Returns the operand whose values must be in [-dim, dim); nullopt where there is none, or gathers clamp it.
std::optional<IndexOperand> find_index_operand(const Expr& value, const OpTable& ops, OutOfRange gather);

// Collects the facts that the bindings so far give about their variables.
class IndexFacts {
 public:
  void note(const Binding& binding) { values_.emplace(binding.var.get(), binding.value); }
  // Returns whether all elements are known to be in range. Fails at the span when a constant has one that is not.
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
