#include "codegen/bytecode_scalars.h"

#include <algorithm>

#include "ir/text/printer.h"
#include "support/diagnostic.h"

namespace relaxc::codegen {

namespace {

using vm::MatchDim;
using vm::Opcode;
using vm::Reg;
using vm::Scalar;
using vm::Slot;
using vm::SlotOp;

constexpr size_t kLongestName = 40;  // of an expression in an error

// These are the operators that dims use. Slots do not have bitwise operations.
constexpr std::pair<BinaryOp, SlotOp> kSlotOps[] = {
    {BinaryOp::kAdd, SlotOp::kAdd},
    {BinaryOp::kSub, SlotOp::kSub},
    {BinaryOp::kMul, SlotOp::kMul},
    {BinaryOp::kDiv, SlotOp::kTruncDiv},
    {BinaryOp::kTruncMod, SlotOp::kTruncMod},
    {BinaryOp::kFloorDiv, SlotOp::kFloorDiv},
    {BinaryOp::kFloorMod, SlotOp::kFloorMod},
    {BinaryOp::kMin, SlotOp::kMin},
    {BinaryOp::kMax, SlotOp::kMax},
    {BinaryOp::kEQ, SlotOp::kEq},
    {BinaryOp::kNE, SlotOp::kNe},
    {BinaryOp::kLT, SlotOp::kLt},
    {BinaryOp::kLE, SlotOp::kLe},
    {BinaryOp::kGT, SlotOp::kGt},
    {BinaryOp::kGE, SlotOp::kGe},
    {BinaryOp::kAnd, SlotOp::kAnd},
    {BinaryOp::kOr, SlotOp::kOr},
};

}  // namespace

void ScalarLowering::take_apart(const Typed& whole, std::vector<Typed>& out) {
  const TupleType* items = whole.type.as<TupleType>();
  if (!items) return out.push_back(whole);
  for (size_t i = 0; i < items->items.size(); ++i) {
    Reg item = code_.new_register();
    code_.emit(Opcode::kTupleGet, {item, whole.value, static_cast<int64_t>(i)});
    take_apart({item, items->items[i], fmt::format("item {} of {}", i, whole.context)}, out);
  }
}

void ScalarLowering::match(const std::vector<Typed>& values) {
  std::vector<Typed> parts;
  for (const Typed& value : values) take_apart(value, parts);
  std::vector<const Typed*> compound;
  for (const Typed& part : parts) {
    if (match_value(part)) compound.push_back(&part);
  }
  for (const Typed* part : compound) check_compound(*part);
}

// Checks dtype, rank, and every dim that is a number or a variable; first occurrences bind. Returns whether compound
// dims are left.
bool ScalarLowering::match_value(const Typed& part) {
  const auto& [value, type, context] = part;
  if (type.is<TensorType>()) {
    int64_t rank = known_rank(type);
    code_.emit(Opcode::kCheckTensor, {value, tensor_dtype(type), rank, executable_.string(context)});
  }
  const std::vector<Expr>* shape = known_shape(type);
  if (!shape) return false;
  bool compound = false, anything = type.is<ShapeType>();
  std::vector<MatchDim> pattern;
  for (const Expr& dim : *shape) {
    if (auto known = as_int(dim)) {
      pattern.push_back(MatchDim::check(*known));
      anything = true;
    } else if (dim.is<Var>()) {
      anything = true;
      auto it = slots_.find(dim.get());
      if (it != slots_.end()) {
        pattern.push_back(MatchDim::check(it->second));
      } else {
        Slot slot = code_.new_slot(dim.as<Var>()->name);
        slots_.emplace(dim.get(), slot);
        pattern.push_back(MatchDim::bind(slot));
      }
    } else {
      pattern.push_back(MatchDim::skip());
      compound = true;
    }
  }
  if (anything) code_.emit(Opcode::kMatchShape, {value, pattern, executable_.string(context)});
  return compound;
}

void ScalarLowering::check_compound(const Typed& part) {
  std::vector<MatchDim> pattern;
  for (const Expr& dim : *known_shape(part.type)) {
    if (as_int(dim) || dim.is<Var>()) {
      pattern.push_back(MatchDim::skip());
      continue;
    }
    Slot slot = code_.new_slot(print_expr(dim));
    code_.emit(Opcode::kSlotSet, {slot, scalar(dim)});
    pattern.push_back(MatchDim::check(slot));
  }
  code_.emit(Opcode::kMatchShape, {part.value, pattern, executable_.string(part.context)});
}

Scalar ScalarLowering::scalar(const Expr& expr) {
  if (const IntImm* imm = expr.as<IntImm>()) return imm->value;
  if (expr.is<Var>()) {
    auto it = slots_.find(expr.get());
    if (it == slots_.end()) fail(expr.span(), "dim '{}' is used before anything binds it", expr.as<Var>()->name);
    return it->second;
  }
  uint64_t hash = value_hash(expr);
  for (size_t i : computed_by_hash_[hash]) {
    if (i < computed_.size() && structural_equal(computed_[i].first, expr)) return computed_[i].second;
  }
  Slot slot = compute(expr);
  computed_by_hash_[hash].push_back(computed_.size());
  computed_.emplace_back(expr, slot);
  return slot;
}

Slot ScalarLowering::compute(const Expr& expr) {
  if (const Binary* node = expr.as<Binary>()) {
    auto row =
        std::find_if(std::begin(kSlotOps), std::end(kSlotOps), [&](const auto& row) { return row.first == node->op; });
    if (row == std::end(kSlotOps)) fail_unsupported(expr.span(), "{} in a shape is not supported", info(node->op).name);
    Scalar a = scalar(node->a), b = scalar(node->b);
    std::string text = print_expr(expr);
    Slot slot = code_.new_slot(text.size() > kLongestName ? "" : text);
    code_.emit(Opcode::kSlotOp, {slot, row->second, a, b});
    return slot;
  }
  if (const Not* node = expr.as<Not>()) {
    Scalar value = scalar(node->value);
    Slot slot = code_.new_slot();
    code_.emit(Opcode::kSlotOp, {slot, SlotOp::kEq, value, Scalar(0)});
    return slot;
  }
  if (const Select* node = expr.as<Select>()) {
    Scalar condition = scalar(node->condition), a = scalar(node->a), b = scalar(node->b);
    Slot slot = code_.new_slot();
    code_.emit(Opcode::kSlotSelect, {slot, condition, a, b});
    return slot;
  }
  if (const Call* node = as_call(expr, "tir.if_then_else")) return choose(node->args[0], node->args[1], node->args[2]);
  if (const Cast* node = expr.as<Cast>()) {
    Slot slot = code_.new_slot();
    code_.emit(Opcode::kSlotSet, {slot, scalar(node->value)});
    return slot;
  }
  fail_unsupported(expr.span(), "this expression cannot be computed in a shape: {}", print_expr(expr));
}

// Computes one side only, because the other may divide by zero.
Slot ScalarLowering::choose(const Expr& condition, const Expr& a, const Expr& b) {
  Scalar decision = scalar(condition);
  vm::Label then_label = code_.new_label(), end_label = code_.new_label();
  Slot slot = code_.new_slot();
  auto side = [&](const Expr& value) {
    size_t known = computed_.size();
    code_.emit(Opcode::kSlotSet, {slot, scalar(value)});
    computed_.erase(computed_.begin() + static_cast<int64_t>(known), computed_.end());
  };
  code_.emit(Opcode::kBranchIf, {decision, then_label});
  side(b);
  code_.emit(Opcode::kJump, {end_label});
  code_.bind(then_label);
  side(a);
  code_.bind(end_label);
  return slot;
}

std::vector<Scalar> ScalarLowering::scalars(const std::vector<Expr>& exprs) {
  std::vector<Scalar> result;
  for (const Expr& expr : exprs) result.push_back(scalar(expr));
  return result;
}

}  // namespace relaxc::codegen
