// Lowers symbolic dims and scalars of a graph function to slots of its bytecode. Internal to codegen/bytecode*.cc.
#pragma once
#include "codegen/bind_values.h"
#include "ir/visit.h"
#include "support/temporarily.h"
#include "vm/builder.h"

namespace relaxc::codegen {

// Dims are bound to slots by the first value whose shape gives them, and compared wherever they occur again.
// Expressions over them are computed once, at their first use.
class ScalarLowering {
 public:
  ScalarLowering(vm::ExecutableBuilder& executable, vm::FunctionBuilder& code) : executable_(executable), code_(code) {}

  // Maps the variable to the slot from here on.
  void define(const VarRef& var, vm::Slot slot) { slots_.insert_or_assign(var.get(), slot); }
  bool defines(const Expr& dim) const { return slots_.contains(dim.get()); }

  // Returns the value of a scalar expression, computed into a slot when it is not an immediate.
  vm::Scalar scalar(const Expr& expr);
  std::vector<vm::Scalar> scalars(const std::vector<Expr>& exprs);

  // A value and the type that it is tested against. Errors name the context.
  struct Typed {
    vm::Reg value;
    Type type;
    std::string context;
  };
  // Tests dtypes, ranks and dims, including those of tuple items, and binds the dims that are not bound yet. A compound
  // dim may precede the values that bind its variables.
  void match(const std::vector<Typed>& values);
  // Tests the dims of the params' types that have ranges, which are bound.
  void check_ranges(const std::vector<VarRef>& params, DimRanges ranges);

  // Lowers a branch: slots that are computed in it are not available after it.
  template <class Lower>
  void in_branch(const Lower& lower) {
    Temporarily slots(slots_, slots_);
    Temporarily computed(computed_, computed_);
    lower();
  }

 private:
  void flatten(const Typed& whole, std::vector<Typed>& out);
  void match_shape(const Typed& part, bool compound);
  void check_form(const Typed& part);
  vm::MatchDim match_dim(const Expr& dim);
  // Emits an instruction whose result is a new slot.
  vm::Slot emit_slot(vm::Opcode op, std::vector<vm::Operand> operands, const std::string& name = {});
  vm::Slot compute(const Expr& expr);
  vm::Slot choose(const Expr& condition, const Expr& a, const Expr& b);

  vm::ExecutableBuilder& executable_;
  vm::FunctionBuilder& code_;
  std::unordered_map<const NodeHeader*, vm::Slot> slots_;
  std::vector<std::pair<Expr, vm::Slot>> computed_;                     // those available here, in order
  std::unordered_map<uint64_t, std::vector<size_t>> computed_by_hash_;  // positions; some may be out of date
};

// Returns which dims a check compares, " (n and m)", where that is short and says more than the numbers do. Where
// `m if CONDITION else n` is not m, it is n.
std::string dims_of_check(const Binding& binding);
// Returns what a failed check of a node found and expected, with places for the two numbers. A limit is a check that
// the smaller or larger one of two numbers is a certain one of them: "expected past + seq to be at most capacity = {},
// found
// {}" of T.min(capacity, past + seq) == past + seq.
std::string numbers_of_check(const Binding& binding);

}  // namespace relaxc::codegen
