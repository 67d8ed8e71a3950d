#include "passes/parts.h"

#include <algorithm>

#include "ir/op_names.h"
#include "ops/common.h"
#include "support/lists.h"

namespace relaxc {

Expr byte_count(const Type& tensor) { return simplify(product(*known_shape(tensor)) * tensor_dtype(tensor)->bytes()); }

Expr memory_view(const Expr& memory, const Type& type, const Expr& offset, const Span& span) {
  std::vector<Expr> args = {memory, shape_expr(*known_shape(type)), make(DTypeImm{*tensor_dtype(type)}, object_type()),
                            offset};
  return call(op_ref(ops::kMemoryView), std::move(args), {}, type, span);
}

const MemoryPlace* MemoryPlaces::of(const VarRef& tensor) const { return find_value(places_, tensor.get()); }

MemoryPlaces::Plan MemoryPlaces::plan(const VarRef& join, const std::vector<Expr>& operands,
                                      const std::vector<std::optional<VarRef>>& owners) const {
  std::vector<Expr> offsets = {int_imm(0)};  // from the first operand on
  for (const Expr& operand : operands) offsets.push_back(simplify(offsets.back() + byte_count(operand.type())));
  auto lies_at = [&](size_t k, const MemoryPlace& first) {
    const MemoryPlace* known = owners[k] ? of(*owners[k]) : nullptr;
    return known && same_node(known->memory, first.memory) &&
           structural_equal(known->offset, simplify(first.offset + offsets[k]));
  };
  const MemoryPlace* known = of(join);
  Plan plan{known ? *known : MemoryPlace{join, int_imm(0)}};
  if (const MemoryPlace* first = !known && owners[0] ? of(*owners[0]) : nullptr) {
    size_t k = 0;
    while (k < operands.size() && lies_at(k, *first)) ++k;
    if (k == operands.size()) return {*first};
  }
  for (size_t k = 0; k < operands.size(); ++k) {
    if (lies_at(k, plan.place)) continue;
    const bool is_twice = owners[k] && std::ranges::any_of(plan.parts, [&](const auto& part) {
                            return same_node(part.first, *owners[k]);
                          });
    if (!owners[k] || of(*owners[k]) || is_twice) {
      plan.elsewhere.push_back(k);
    } else {
      plan.parts.push_back({*owners[k], {plan.place.memory, simplify(plan.place.offset + offsets[k])}});
    }
  }
  return plan;
}

void MemoryPlaces::add(const VarRef& join, const Plan& plan) {
  if (!same_node(plan.place.memory, join)) places_.insert_or_assign(join.get(), plan.place);
  for (const auto& [tensor, place] : plan.parts) places_.insert_or_assign(tensor.get(), place);
}

}  // namespace relaxc
