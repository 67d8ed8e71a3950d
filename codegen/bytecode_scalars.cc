#include "codegen/bytecode_scalars.h"

#include <fmt/format.h>

#include <bit>

#include "ir/op_names.h"
#include "ir/text/printer.h"
#include "support/diagnostic.h"
#include "support/lists.h"

namespace relaxc::codegen {

using vm::MatchDim, vm::Opcode, vm::Reg, vm::Scalar, vm::Slot, vm::SlotOp;

namespace {

constexpr size_t kLongestName = 40;  // of an expression in an error

// Each operator of slots is the one of expressions with the same name. Slots lack the bitwise ones, as dims do not use
// them.
constexpr std::pair<BinaryOp, SlotOp> kSlotOps[] = {
#define RELAXC_ROW(op, ...) {BinaryOp::op, SlotOp::op},
    RELAXC_SLOT_OPS(RELAXC_ROW)
#undef RELAXC_ROW
};

}  // namespace

void ScalarLowering::flatten(const Typed& whole, std::vector<Typed>& out) {
  const TupleType* items = whole.type.as<TupleType>();
  if (!items) return out.push_back(whole);
  for (size_t i = 0; i < items->items.size(); ++i) {
    Reg item = code_.new_register();
    code_.emit(Opcode::kTupleGet, {item, whole.value, static_cast<int64_t>(i)});
    flatten({item, items->items[i], fmt::format("item {} of {}", i, whole.context)}, out);
  }
}

void ScalarLowering::match(const std::vector<Typed>& values) {
  std::vector<Typed> parts;
  for (const Typed& value : values) flatten(value, parts);
  for (const Typed& part : parts) {
    if (part.type.is<TensorType>())
      code_.emit(Opcode::kCheckTensor,
                 {part.value, tensor_dtype(part.type), known_rank(part.type), executable_.string(part.context)});
    match_shape(part, false);
  }
  for (const Typed& part : parts) match_shape(part, true);
  for (const Typed& part : parts) {
    if (is_container(part.type)) check_form(part);
  }
}

void ScalarLowering::check_ranges(const std::vector<VarRef>& params, DimRanges ranges) {
  for (const VarRef& param : params) {
    for (const VarRef& dim : free_vars(param.type())) {
      const auto range = ranges.find(dim->name);
      if (range == ranges.end()) continue;
      code_.emit(Opcode::kCheckRange, {scalar(dim), range->second.least, range->second.most,
                                       executable_.string(fmt::format("dim '{}'", dim->name))});
      ranges.erase(range);
    }
  }
}

// Returns the form that vm.builtin.check_form tests, and the dims of the tensors, if they are known.
static std::string form_of_type(const Type& type, const std::vector<Expr>*& dims) {  // NOLINT: bounded
  auto dtype_text = [](const Type& of) { return tensor_dtype(of) ? to_string(*tensor_dtype(of)) : "any"; };
  if (const SequenceType* sequence = type.as<SequenceType>()) return "S" + form_of_type(sequence->item, dims);
  if (const OptionalType* optional = type.as<OptionalType>()) return "O" + form_of_type(optional->item, dims);
  if (const MapType* map = type.as<MapType>())
    return fmt::format("map {} {} {}", to_string(map->key), dtype_text(map->value), known_rank(map->value));
  if (!type.is<TensorType>()) return "any";
  dims = known_shape(type);
  return fmt::format("tensor {} {}", dtype_text(type), known_rank(type));
}
void ScalarLowering::check_form(const Typed& part) {
  const std::vector<Expr>* dims = nullptr;
  std::string form = form_of_type(part.type, dims);
  std::vector<vm::Argument> arguments{part.value, executable_.string(part.context), executable_.string(form)};
  for (const Expr& dim : dims ? *dims : std::vector<Expr>()) {
    Scalar value = scalar(dim);
    arguments.push_back(value.tag == vm::ScalarTag::kSlot ? vm::Argument(Slot{value.value})
                                                          : vm::Argument(value.value));
  }
  code_.emit(Opcode::kCallBuiltin, {code_.new_register(), executable_.builtin("vm.builtin.check_form"), arguments});
}

// Checks the dims that are numbers or variables, whose first occurrences bind them, or else those that are compound.
void ScalarLowering::match_shape(const Typed& part, bool compound) {  // NOLINT: private
  const std::vector<Expr>* shape = known_shape(part.type);
  int64_t rank = known_rank(part.type);
  if (!shape && part.type.is<ShapeType>() && rank >= 0 && !compound) {
    std::vector<MatchDim> any(static_cast<size_t>(rank), MatchDim::skip());
    code_.emit(Opcode::kMatchShape, {part.value, any, executable_.string(part.context)});
  }
  if (!shape) return;
  bool is_needed = part.type.is<ShapeType>() && !compound;
  std::vector<MatchDim> pattern;
  for (const Expr& dim : *shape) {
    bool is_simple = dim.is<Var>() || as_int(dim);
    is_needed = is_needed || is_simple != compound;
    pattern.push_back(is_simple == compound ? MatchDim::skip() : match_dim(dim));
  }
  if (is_needed) code_.emit(Opcode::kMatchShape, {part.value, pattern, executable_.string(part.context)});
}

MatchDim ScalarLowering::match_dim(const Expr& dim) {
  if (auto known = as_int(dim)) return MatchDim::check(*known);
  if (const Var* var = dim.as<Var>()) {
    if (const Slot* slot = find_value(slots_, dim.get())) return MatchDim::check(*slot);
    return MatchDim::bind(slots_.emplace(dim.get(), code_.new_slot(var->name)).first->second);
  }
  Slot slot = code_.new_slot(print_expr(dim));
  code_.emit(Opcode::kSlotSet, {slot, scalar(dim)});
  return MatchDim::check(slot);
}

Scalar ScalarLowering::scalar(const Expr& expr) {
  if (const IntImm* imm = expr.as<IntImm>()) return imm->value;
  // Kernels take floats as the bits of a double.
  if (const FloatImm* imm = expr.as<FloatImm>()) return std::bit_cast<int64_t>(imm->value);
  if (expr.is<Var>()) {
    if (const Slot* slot = find_value(slots_, expr.get())) return *slot;
    fail(expr.span(), "dim '{}' is used before a value binds it", expr.as<Var>()->name);
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

Slot ScalarLowering::emit_slot(Opcode op, std::vector<vm::Operand> operands, const std::string& name) {
  Slot slot = code_.new_slot(name);
  operands.insert(operands.begin(), slot);
  code_.emit(op, std::move(operands));
  return slot;
}

Slot ScalarLowering::compute(const Expr& expr) {
  auto is_float = [](const NodeRef& node) {
    return is_expr_kind(node.kind()) && cast_handle<Expr>(node).type().is<PrimType>() &&
           dtype_of(cast_handle<Expr>(node)).is_float();
  };
  bool has_floats = is_float(expr);
  visit_children(expr, [&](const NodeRef& child, relaxc::Slot) { has_floats = has_floats || is_float(child); });
  if (has_floats)
    fail_unsupported(expr.span(), "float scalars can be passed on but not computed with: {}; use tensors of rank 0",
                     print_expr(expr));
  if (const Binary* node = expr.as<Binary>()) {
    const auto* row = find_item(kSlotOps, node->op, &std::pair<BinaryOp, SlotOp>::first);
    if (!row) fail_unsupported(expr.span(), "{} in a shape is not supported", info(node->op).name);
    std::string text = print_expr(expr);
    return emit_slot(Opcode::kSlotOp, {row->second, scalar(node->a), scalar(node->b)},
                     text.size() > kLongestName ? "" : text);
  }
  if (const Not* node = expr.as<Not>())
    return emit_slot(Opcode::kSlotOp, {SlotOp::kEQ, scalar(node->value), Scalar(0)});
  if (const Select* node = expr.as<Select>())
    return emit_slot(Opcode::kSlotSelect, {scalar(node->condition), scalar(node->a), scalar(node->b)});
  if (const Call* node = as_call(expr, ops::kIfThenElse)) return choose(node->args[0], node->args[1], node->args[2]);
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
  auto lower_side = [&](const Expr& value) {
    size_t known = computed_.size();
    code_.emit(Opcode::kSlotSet, {slot, scalar(value)});
    computed_.erase(computed_.begin() + static_cast<int64_t>(known), computed_.end());
  };
  code_.emit(Opcode::kBranchIf, {decision, then_label});
  lower_side(b);
  code_.emit(Opcode::kJump, {end_label});
  code_.bind(then_label);
  lower_side(a);
  code_.bind(end_label);
  return slot;
}

std::vector<Scalar> ScalarLowering::scalars(const std::vector<Expr>& exprs) {
  return map_each(exprs, [&](const Expr& expr) { return scalar(expr); });
}

std::string dims_of_check(const Binding& binding) {
  constexpr size_t kLongest = 60;
  const Expr &value = binding.value.as<ShapeExpr>()->values[0], &expected = known_shape(*binding.cast)->front();
  const Select* choice = value.as<Select>();
  const Expr& actual = choice && structural_equal(choice->a, expected) ? choice->b : value;
  std::string dims = fmt::format(" ({} and {})", print_expr(actual), print_expr(expected));
  bool is_plain = dims.size() <= kLongest && dims.find_first_of("{}") == std::string::npos && !holds<Select>(actual) &&
                  !holds<Select>(expected);
  return is_plain ? dims : std::string();
}

// Returns the number's name for a message, "n " or "n = "; nothing for a constant, a long one, or one of a tensor.
static std::string named(const Expr& number, const char* behind) {
  constexpr size_t kLongest = 40;
  constexpr std::string_view kItemName = "item";  // how the importer calls an element of a tensor
  const std::string text = print_expr(number);
  const bool says_more = !as_int(number) && !text.starts_with(kItemName) && text.size() <= kLongest &&
                         text.find_first_of("{}") == std::string::npos && !holds<Select>(number);
  return says_more ? text + behind : "";
}

std::string numbers_of_check(const Binding& binding) {
  const Expr &value = binding.value.as<ShapeExpr>()->values[0], &expected = known_shape(*binding.cast)->front();
  const Select* choice = expected.as<Select>();
  if (choice && structural_equal(choice->b, value))
    return "expected another number, found " + named(value, " = ") + "{}";
  const Binary* limit = value.as<Binary>();
  const bool is_most = limit && limit->op == BinaryOp::kMin, is_least = limit && limit->op == BinaryOp::kMax;
  const bool is_first = limit && structural_equal(limit->a, expected);
  if (!(is_most || is_least) || !(is_first || structural_equal(limit->b, expected)))
    return "{} and {}" + dims_of_check(binding);
  const Expr& bound = is_first ? limit->b : limit->a;
  // The number that is wrong is the one that is not a constant.
  if (as_int(expected))
    return fmt::format("found {}{{}}, expected at {} {{}}", named(bound, " = "), is_most ? "least" : "most");
  const std::string name = named(expected, " ");
  return fmt::format("expected {}{}at {} {}{{}}, found {{}}", name, name.empty() ? "" : "to be ",
                     is_most ? "most" : "least", named(bound, " = "));
}

}  // namespace relaxc::codegen
