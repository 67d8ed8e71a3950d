// Finds how a reduction combines its values, and whether its iterations may be regrouped.
#pragma once
#include "ir/node.h"
#include "ir/stmt.h"

namespace relaxc {

// Returns whether the expression loads the element that the store overwrites.
bool is_element(const Expr& e, const BufferStore& store);

// Each iteration has a value for every buffer that the block writes. The buffer's new element is
//   op(old element, value), with one op for each buffer: a sum, product, max or min; or
//   a choice, which comparisons of the old elements with the values decide, as in argmax.
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
  // Returns the identity element of a part that has an op.
  Expr identity(size_t part) const;
  // Returns the body (without the condition) with other elements in place of the block's and other values.
  Stmt body(const std::vector<Ref<BufferLoad>>& elements, const std::vector<Expr>& values) const;

  // The values may come in any order.
  bool commutes = true;
  // Neighbouring values may be combined first (associativity), where each group begins with the init.
  bool regroups = true;
};

// Finds the combiner of a block that has an init and such a form.
std::optional<Combiner> find_combiner(const Block& block);

}  // namespace relaxc
