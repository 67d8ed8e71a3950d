// <relaxc/builder.h>: builds a graph function binding by binding and infers types; arguments become leaves first (ANF).
#pragma once
#include "ir/op.h"
#include "ir/visit.h"

namespace relaxc {

class Builder {
 public:
  explicit Builder(const OpTable& ops) : ops_(ops) {}

  // Sets the span of the expressions that are built next.
  void set_span(Span span) { span_ = std::move(span); }
  const Span& span() const { return span_; }

  // Binds a call of an operator to a new variable and infers its type. "relax." may be left out of the name.
  Expr op(std::string name, std::vector<Expr> args, Attrs attrs = {}, std::string hint = {});
  template <HasFields T>
  Expr op(std::string name, std::vector<Expr> args, const T& attrs, std::string hint = {}) {
    return op(std::move(name), std::move(args), write_attrs(attrs), std::move(hint));
  }
  // Binds the value (which has its type already) to a new variable. Leaves are returned unchanged.
  VarRef emit(Expr value, std::string hint = {});
  VarRef match_cast(Expr value, Type type, std::string hint = {});
  // Appends the binding unchanged.
  void keep(Binding binding);
  // Returns the value as a leaf: a variable, constant, scalar, shape or tuple of leaves. Other values are emitted.
  Expr leaf(const Expr& value);

  void begin_dataflow();
  void end_dataflow(std::vector<VarRef> outputs);
  // Returns the bindings so far as a SeqExpr around `body`, and empties the builder. The outputs of a dataflow block
  // are its variables that are used after it.
  Expr finish(const Expr& body);
  const OpTable& ops() const { return ops_; }
  size_t size() const { return size_; }  // bindings made so far
  const Binding& last() const { return blocks_.back().bindings.back(); }
  // Returns the bindings from that one on, counted as size() does.
  std::vector<Binding> since(size_t first) const;

 private:
  const OpTable& ops_;
  Span span_;
  std::vector<BindingBlock> blocks_;
  size_t size_ = 0;
  bool in_dataflow_ = false;
};

bool is_leaf(const Expr& expr);
// Marks as outputs of each dataflow block the variables that are used after it.
Expr with_dataflow_outputs(const Expr& seq);

}  // namespace relaxc
