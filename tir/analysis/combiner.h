// Finds how a reduction combines its values, and whether its iterations may be regrouped.
#pragma once
#include "ir/node.h"
#include "ir/stmt.h"

namespace relaxc {

// Returns whether the expression loads the element that the store overwrites.
bool is_element(const Expr& e, const BufferStore& store);

// Each iteration brings a value for every buffer that the block writes, which becomes
//   op(what is there, value), one op for each buffer: a sum, product, max or min; or
//   a choice: by comparisons of what is there with the values, as when the largest element and its position are sought.
// Floats count as real numbers: rounding of sums and the missing order of NaN are not taken into account.
struct Combiner {
  struct Part {
    Ref<BufferStore> store;
    Expr value;                  // the value of the iteration; it reads nothing that the block writes
    std::optional<BinaryOp> op;  // absent: all parts are one choice
    Expr init;
  };
  std::vector<Part> parts;         // one for each buffer, in order
  std::optional<Expr> condition;   // the iterations that take part
  std::vector<Stmt> choice_steps;  // the body, if it is a choice

  bool is_choice() const { return !parts.front().op; }
  // Returns the value that changes nothing, for a part that has an op.
  Expr identity(size_t part) const;
  // Returns the body (without the condition) with other elements in place of the block's and other values.
  Stmt body(const std::vector<Ref<BufferLoad>>& elements, const std::vector<Expr>& values) const;

  // The values may come in any order.
  bool commutes = true;
  // Neighbouring values may be combined first (associativity), beginning with the init as the whole does.
  bool regroups = true;
};

// Finds the combiner of a block that has an init and such a form.
std::optional<Combiner> find_combiner(const Block& block);

}  // namespace relaxc
