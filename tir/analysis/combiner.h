// How a reduction takes up its values: what its iterations may be regrouped by.
#pragma once
#include "ir/node.h"
#include "ir/stmt.h"

namespace relaxc {

// Whether this is what the store overwrites.
bool is_element(const Expr& e, const BufferStore& store);

// Each iteration brings a value for every buffer that the block writes, which becomes
//   op(what is there, value), one op for each buffer: a sum, product, max or min; or
//   a choice: by comparisons of what is there with the values, as when the largest element and its position are sought.
// Floats count as numbers: that sums round and that NaN is unordered is left aside.
struct Combiner {
  struct Part {
    Ref<BufferStore> store;
    Expr value;                  // of the iteration; reads nothing that the block writes
    std::optional<BinaryOp> op;  // absent: all parts are one choice
    Expr init;
  };
  std::vector<Part> parts;         // one for each buffer, in order
  std::optional<Expr> condition;   // which iterations take part
  std::vector<Stmt> choice_steps;  // of a choice: the body

  bool is_choice() const { return !parts.front().op; }
  // The value that changes nothing; of a part with an op.
  Expr identity(size_t part) const;
  // The body (without the condition) with other elements in place of its own and other values.
  Stmt body(const std::vector<Ref<BufferLoad>>& elements, const std::vector<Expr>& values) const;

  // Values may come in any order.
  bool commutes = true;
  // Neighbouring values may be combined first, beginning with the init as the whole does.
  bool regroups = true;
};

// Of a block with init that has such a form.
std::optional<Combiner> find_combiner(const Block& block);

}  // namespace relaxc
