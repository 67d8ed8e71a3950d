#include <llvm/IR/Intrinsics.h>

#include "codegen/function_emitter.h"
#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/visit.h"
#include "support/diagnostic.h"
#include "support/lists.h"
#include "support/temporarily.h"

namespace relaxc::codegen {

Value FunctionEmitter::expr(const Expr& node) {
  if (node.is<Var>() || node.is<IntImm>() || node.is<FloatImm>()) return emit_expr(node);
  for (size_t layer = emitted_.size(); layer-- > 0;) {
    if (const auto* known = find_value(emitted_[layer], node.get())) return known->second;
  }
  Value value = emit_expr(node);
  emitted_.back().try_emplace(node.get(), node, value);
  return value;
}

Value FunctionEmitter::variable(const VarRef& var) {
  const Value* value = find_value(variables_, var.get());
  RELAXC_CHECK(value, "{}: variable '{}' is used but not defined", kernel_.symbol, var->name);
  return *value;
}

void FunctionEmitter::define(const VarRef& var, const Expr& value) {
  if (is_index(value)) {
    index_vars_.insert(var.get());
    if (is_non_negative(value)) kernel_.non_negative_vars.insert(var.get());
  }
  if (in_unrolled_) varying_.insert(var.get());
  variables_[var.get()] = expr(value);
}

Value FunctionEmitter::emit_expr(const Expr& node) {
  return match(
      node, [&](const IntImm& imm) { return ops_.int_constant(imm.value, dtype_of(node)); },
      [&](const FloatImm& imm) { return ops_.float_constant(imm.value, dtype_of(node)); },
      [&](const Var&) { return variable(cast<Var>(node)); },
      [&](const Binary& op) {
        ValueEmitter::IndexFacts facts{.no_overflow = is_index(op.a) && is_index(op.b)};
        facts.non_negative = is_division(op.op) && facts.no_overflow && is_non_negative(op.a) && is_non_negative(op.b);
        Value a = expr(op.a);
        return ops_.binary(op.op, dtype_of(op.a), a, expr(op.b), facts);
      },
      [&](const Not& op) { return b_.CreateNot(expr(op.value)); },
      [&](const Cast& op) {
        const bool rounds = op_name(op.value) == kRoundWithin && dtype_of(op.value).element() == kFloat32;
        if (rounds && dtype_of(node).element() == kInt32)
          return ops_.round_within_to_int32(
              map_each(op.value.as<Call>()->args, [&](const Expr& arg) { return expr(arg); }), dtype_of(op.value));
        return ops_.cast(expr(op.value), dtype_of(op.value), dtype_of(node));
      },
      [&](const Select& op) {
        Value condition = expr(op.condition);
        Value a = expr(op.a);
        return b_.CreateSelect(condition, a, expr(op.b));
      },
      [&](const Ramp& op) {
        int lanes = dtype_of(node).lanes;
        Value base = ops_.splat(expr(op.base), lanes);
        Value stride = ops_.splat(expr(op.stride), lanes);
        return b_.CreateAdd(base, b_.CreateMul(b_.CreateStepVector(ops_.type(dtype_of(node))), stride));
      },
      [&](const Broadcast& op) { return ops_.splat(expr(op.value), dtype_of(node).lanes); },
      [&](const Let& op) {
        define(op.var, op.value);
        return expr(op.body);
      },
      [&](const BufferLoad& op) { return load(op, dtype_of(node)); },
      [&](const Call& op) { return call(op, node); },  //
      [&](const auto&) -> Value {
        RELAXC_CHECK(false, "{}: {} in a lowered tensor program: {}", kernel_.symbol, kind_name(node.kind()),
                     debug_print(node));
      });
}

Value FunctionEmitter::call(const Call& op, const Expr& node) {
  const std::string& name = op_name(node);
  if (name == ops::kIfThenElse) {
    RELAXC_CHECK(op.args.size() == 3, "tir.if_then_else takes 3 arguments, got {}", op.args.size());
    return if_then_else(op.args[0], op.args[1], op.args[2]);
  }
  if (name.empty()) fail_unsupported(node.span(), "a call of {} in a tensor program", debug_print(op.callee));
  if (find_builtin(name)) return builtin(op, node);
  const Intrinsic* row = find_intrinsic(name);
  if (!row) fail_unsupported(node.span(), "unknown intrinsic '{}' in a tensor program", name);
  std::vector<Value> args = map_each(op.args, [&](const Expr& arg) { return expr(arg); });
  return ops_.intrinsic(name, args, dtype_of(op.args.at(0)), node.span());
}

Value FunctionEmitter::if_then_else(const Expr& condition, const Expr& a, const Expr& b) {
  Value decision = expr(condition);
  if (decision->getType()->isVectorTy()) return masked_if_then_else(decision, a, b);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(decision)) return expr(known->isZero() ? b : a);
  llvm::BasicBlock* blocks[] = {new_block("if_true"), new_block("if_false")};
  llvm::BasicBlock* after = new_block("if_after");
  b_.CreateCondBr(decision, blocks[0], blocks[1]);
  Value values[2];
  for (int side = 0; side < 2; ++side) {
    b_.SetInsertPoint(blocks[side]);
    emitted_.emplace_back();
    shared_offsets_.emplace_back();
    values[side] = expr(side == 0 ? a : b);
    shared_offsets_.pop_back();
    emitted_.pop_back();
    blocks[side] = b_.GetInsertBlock();
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
  llvm::PHINode* phi = b_.CreatePHI(values[0]->getType(), 2);
  for (int side = 0; side < 2; ++side) phi->addIncoming(values[side], blocks[side]);
  return phi;
}

// Computes both sides for all lanes, but loads read only the lanes that select their side (active_lanes()).
Value FunctionEmitter::masked_if_then_else(Value condition, const Expr& a, const Expr& b) {
  Value values[2];
  for (int side = 0; side < 2; ++side) {
    Value wanted = side == 0 ? condition : b_.CreateNot(condition);
    Temporarily mask(mask_, mask_ ? b_.CreateAnd(mask_, wanted) : wanted);
    emitted_.emplace_back();
    values[side] = expr(side == 0 ? a : b);
    emitted_.pop_back();
  }
  return b_.CreateSelect(condition, values[0], values[1]);
}

bool FunctionEmitter::is_index(const Expr& node) {
  if (!node.type().is<PrimType>() || !dtype_of(node).is_integral()) return false;
  if (node.is<IntImm>()) return true;
  if (node.is<Var>()) return index_vars_.contains(node.get());
  if (const auto* known = find_value(is_index_, node.get())) return known->second;
  bool result = false;
  if (const Binary* op = node.as<Binary>()) result = is_index(op->a) && is_index(op->b);
  if (const Cast* op = node.as<Cast>()) result = is_index(op->value);
  if (const Ramp* op = node.as<Ramp>()) result = is_index(op->base) && is_index(op->stride);
  if (const Broadcast* op = node.as<Broadcast>()) result = is_index(op->value);
  is_index_.try_emplace(node.get(), node, result);
  return result;
}

// This is used only for the operands of divisions in index expressions, which do not overflow.
bool FunctionEmitter::is_non_negative(const Expr& node) {
  if (auto value = as_int(node)) return *value >= 0;
  if (dtype_of(node).is_uint()) return true;
  if (node.is<Var>()) return kernel_.non_negative_vars.contains(node.get());
  if (const Cast* op = node.as<Cast>()) {
    DType from = dtype_of(op->value);
    return from.is_int() && from.bits <= dtype_of(node).bits && is_non_negative(op->value);
  }
  if (const Broadcast* op = node.as<Broadcast>()) return is_non_negative(op->value);
  if (const Ramp* op = node.as<Ramp>()) return is_non_negative(op->base) && is_non_negative(op->stride);
  const Binary* op = node.as<Binary>();
  if (!op) return false;
  switch (op->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMin:
    case BinaryOp::kBitOr:
      return is_non_negative(op->a) && is_non_negative(op->b);
    case BinaryOp::kTruncMod:
    case BinaryOp::kShiftRight:
      return is_non_negative(op->a);
    case BinaryOp::kFloorMod:
      return as_int(op->b).value_or(0) > 0 || (is_non_negative(op->a) && is_non_negative(op->b));
    case BinaryOp::kMax:
    case BinaryOp::kBitAnd:
      return is_non_negative(op->a) || is_non_negative(op->b);
    default:  // differences, comparisons and the like: not known
      return false;
  }
}

Value FunctionEmitter::int64(const Expr& node) {
  return ops_.cast(expr(node), dtype_of(node), kInt64.with_lanes(dtype_of(node).lanes));
}

FunctionEmitter::OffsetParts FunctionEmitter::split_offset(const Expr& index) const {
  OffsetParts parts;
  bool saves = false;
  auto add = [&](const Expr& term, BinaryOp op) {
    bool varies = uses_var(term, varying_);
    std::optional<Expr>& sum = varies ? parts.varying : parts.shared;
    saves = saves || (!varies && !term.is<IntImm>());
    sum = !sum && op == BinaryOp::kAdd ? term : binary(op, sum.value_or(int_imm(0)), term);
  };
  std::function<void(const Expr&, BinaryOp)> terms = [&](const Expr& e, BinaryOp op) {
    const Binary* node = e.as<Binary>();
    if (!node || (node->op != BinaryOp::kAdd && node->op != BinaryOp::kSub)) return add(e, op);
    terms(node->a, op);
    terms(node->b, node->op == op ? BinaryOp::kAdd : BinaryOp::kSub);
  };
  terms(index, BinaryOp::kAdd);
  return saves ? parts : OffsetParts{std::nullopt, index};
}

Value FunctionEmitter::offset(const Expr& index) {
  if (!in_unrolled_ || !index.is<Binary>() || dtype_of(index) != kInt64 || !is_index(index)) return int64(index);
  const SharedOffset* known = nullptr;
  for (size_t layer = shared_offsets_.size(); layer-- > 0 && !known;)
    known = find_value(shared_offsets_[layer], index.get());
  if (!known) {
    SharedOffset entry{index, split_offset(index), nullptr};
    if (entry.parts.shared) entry.shared = expr(*entry.parts.shared);
    known = &shared_offsets_.back().emplace(index.get(), std::move(entry)).first->second;
  }
  if (!known->shared) return expr(index);
  return known->parts.varying ? b_.CreateNSWAdd(known->shared, expr(*known->parts.varying)) : known->shared;
}

}  // namespace relaxc::codegen
