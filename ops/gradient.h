// Reverse-mode differentiation of graphs: differentiate() goes from a result back to the values it was computed from,
// and asks the rule of each operator (GradientRule in ir/op.h) what gradient its arguments get.
//
// The rules are tables, a file for each group and a row for each operator. **To add a gradient**: a row in the table of
// its group, with a function for each argument that returns the vector-Jacobian product, written with other operators:
//
//   unary("tanh", [](T, T y) { return 1 - y * y; }),                      the slope: what dy is multiplied by
//   {"nn.softmax", {softmax}},                                            what the only argument gets
//   {"nn.layer_norm", written(layer_norm)},                               the operator in terms of others
//
// and a case in tests/modules/gradient_*.test, whose numbers finite differences or another program give. A row that
// only uses operators with a gradient can be differentiated again.
#pragma once
#include <fmt/format.h>

#include "ir/builder.h"

namespace relaxc::gradients {

// A tensor in a formula. The functions emit operators; a number is a constant of the other operand's dtype.
struct Term {
  Expr expr;
  Builder* builder;

  // Returns the result of an operator on this tensor, and that of an operator on it and another one.
  Term op(const char* name) const;
  Term op(const char* name, const Term& other) const;
  Term op(const char* name, const Expr& other) const;  // a scalar or a constant
  template <HasFields A>
  Term op(const char* name, const A& attrs) const {
    return {builder->op(name, {expr}, attrs), builder};
  }
  Term reshaped(std::vector<Expr> dims) const;
  Term permuted(std::vector<int64_t> axes) const;
  Term broadcast_to(std::vector<Expr> dims) const;
  Term as(DType dtype) const;
  // Returns the sum or the like over axes, which stay with size 1.
  Term over(const char* reduction, const std::vector<int64_t>& axes) const;
  Term number(double value) const;  // a scalar of this dtype
  Term zeros() const;               // of this shape
  // Returns this where the condition holds, else the other; the shapes broadcast.
  Term where(const Term& condition, const Term& otherwise) const;

  const std::vector<Expr>& shape() const;
  const Expr& dim(int64_t d) const { return shape().at(static_cast<size_t>(d)); }
  int64_t rank() const { return std::ssize(shape()); }
  DType dtype() const;
};
#define RELAXC_TERM_OPERATORS(X) X(+, "add") X(-, "subtract") X(*, "multiply") X(/, "divide")
#define RELAXC_TERM_OPERATOR(symbol, name)                                                 \
  inline Term operator symbol(const Term& a, const Term& b) { return a.op(name, b); }      \
  inline Term operator symbol(const Term& a, double b) { return a.op(name, a.number(b)); } \
  inline Term operator symbol(double a, const Term& b) { return b.number(a).op(name, b); }
RELAXC_TERM_OPERATORS(RELAXC_TERM_OPERATOR)
#undef RELAXC_TERM_OPERATOR
#undef RELAXC_TERM_OPERATORS
inline Term operator-(const Term& a) { return a.op("negative"); }

// The view of a call that a rule gets.
class GradientCall {
 public:
  const OpCall& op;
  Builder& builder;
  Expr result;                                 // of the call
  std::vector<std::optional<Expr>> gradients;  // those of the results that have one; one item unless it is a tuple

  Term term(Expr expr) const { return {std::move(expr), &builder}; }
  Term x(size_t i = 0) const { return term(op.arg(i)); }
  Term y() const { return term(result); }
  Term y(size_t i) const;  // a result of several
  // Return the gradient of the result, or of one of several, which is zeros where nothing depends on it.
  Term dy() const { return dy(0); }
  Term dy(size_t i) const;
  template <HasFields A>
  A attrs() const {
    return op.attrs<A>();
  }
  // Throws an error about a call whose operator has a gradient, but not in this form.
  template <class... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    relaxc::fail_unsupported(op.span, "the gradient of {} {}; {}", op.name(),
                             fmt::format(format, std::forward<Args>(args)...), kRemedy);
  }
  // The advice for a call that cannot be differentiated.
  static constexpr const char* kRemedy =
      "write it with other operators, or take its result as a constant: mark it with R.grad.no_grad, or name it in zs "
      "of the ONNX node Gradient";
};

// Returns zeros of these dims with slices of dy added at the positions along an axis. The axes of the positions, a
// tensor of integers, stand in dy in the place of that axis.
Term scattered(const Term& dy, const std::vector<Expr>& dims, int64_t axis, const Term& positions);
// Returns begin <= position < end of an axis, for bounds that lie in it.
Term sliced(const Term& x, int64_t axis, const Expr& begin, const Expr& end);
Term zeros(const std::vector<Expr>& dims, DType dtype, Builder& builder);

struct GradientRow {
  std::string op;  // without "relax."
  GradientRule rule;
};
// Returns dy itself, for an argument whose changes the result takes over.
inline Expr pass(const GradientCall& g) { return g.dy().expr; }
// Makes the rule of an operator that is differentiated as others.
inline GradientRule written(Expr (*as)(const OpCall&, Builder&)) { return {.written = as}; }

// The tables: `elementwise` is ops/gradient_elementwise.cc, whose elementwise_gradients() returns the rows.
#define RELAXC_GRADIENT_GROUPS(X) X(elementwise) X(reduction) X(normalization) X(layout) X(index) X(product) X(window)
#define RELAXC_ROW(group) std::vector<GradientRow> group##_gradients();
RELAXC_GRADIENT_GROUPS(RELAXC_ROW)
#undef RELAXC_ROW
// Returns all rows.
std::vector<GradientRow> all_gradients();

}  // namespace relaxc::gradients

namespace relaxc {

// Emits the gradients of the sum of y's elements with respect to each of the xs, and returns them. The bindings, in
// their order, lead from the xs to y; what else they use is constant. An x on which y does not depend gets zeros. A
// value that several use gets the sum of what they give. Errors name the call that cannot be differentiated.
std::vector<Expr> differentiate(const std::vector<Binding>& bindings, const Expr& y, const std::vector<VarRef>& xs,
                                Builder& builder);

}  // namespace relaxc
