#include "tir/analysis/moves.h"

#include <algorithm>

#include "ir/op_names.h"
#include "support/lists.h"
#include "tir/analysis/nests.h"
#include "tir/program.h"

namespace relaxc {

namespace {

Expr row_major(const std::vector<Expr>& indices, const std::vector<Expr>& dims) {
  Expr position = int_imm(0);
  for (size_t d = 0; d < dims.size(); ++d) position = position * cast_to(dims[d], kInt64) + cast_to(indices[d], kInt64);
  return position;
}
Expr count_of(const std::vector<Expr>& dims) {
  Expr count = int_imm(1);
  for (const Expr& dim : dims) count = count * cast_to(dim, kInt64);
  return count;
}
bool is_dense(const BufferType& type) {
  return type.strides.empty() && (!type.elem_offset || is_int(*type.elem_offset, 0));
}

// An element of the result, for axes of these domains.
struct ChosenElement {
  Expr value;
  std::vector<Range> domains;
};

// Appends the element for each part of the domains. Returns false where a condition is not `axis < bound`, or by two
// axes.
bool add_elements(const ChosenElement& all, const std::vector<IterVar>& axes, std::optional<size_t>& chosen_by,
                  std::vector<ChosenElement>& result) {
  const Call* choice = as_call(all.value, ops::kIfThenElse);
  if (!choice) {
    result.push_back(all);
    return true;
  }
  const Binary* condition = choice->args[0].as<Binary>();
  if (!condition || condition->op != BinaryOp::kLT) return false;
  const size_t axis = position_of_axis(axes, condition->a);
  if (axis == axes.size() || chosen_by.value_or(axis) != axis) return false;
  chosen_by = axis;
  const Range& domain = all.domains[axis];
  const Expr& bound = condition->b;
  ChosenElement before{choice->args[1], all.domains}, after{choice->args[2], all.domains};
  before.domains[axis] = {domain.min, bound - domain.min};
  after.domains[axis] = {bound, domain.min + domain.extent - bound};
  return add_elements(before, axes, chosen_by, result) && add_elements(after, axes, chosen_by, result);
}

class RunReader {
 public:
  explicit RunReader(const PrimFuncRef& program) : facts_(facts_of_params(program)), params_(buffer_params(program)) {}

  std::optional<std::vector<MovedRun>> read(const PrimFuncRef& program) {
    const auto blocks = find_nests(program);
    if (!blocks || blocks->empty() || params_.size() < 2 || params_.size() != program->params.size())
      return std::nullopt;
    const bool is_known = std::ranges::all_of(*blocks, [&](const Ref<Block>& block) { return add_block(*block); });
    const Expr size = count_of(buffer_type(params_.back()).shape);
    return is_known && facts_.can_prove_equal(end_, size) ? std::optional(std::move(runs_)) : std::nullopt;
  }

 private:
  bool add_block(const Block& block) {
    const BufferStore* store = single_store(block);
    const std::vector<IterVar> axes = axes_of(block, IterKind::kSpatial);
    if (!store || !same_node(store->buffer, params_.back()) || axes.size() != block.iter_vars.size()) return false;
    std::optional<size_t> chosen_by;
    std::vector<ChosenElement> choices;
    const ChosenElement all{store->value, map_each(axes, [](const IterVar& axis) { return axis.domain; })};
    return add_elements(all, axes, chosen_by, choices) &&
           std::ranges::all_of(choices, [&](const ChosenElement& choice) { return add_run(*store, choice, axes); });
  }

  bool is_operand(const Buffer& buffer) const {
    return std::any_of(params_.begin(), params_.end() - 1,
                       [&](const Buffer& param) { return same_node(param, buffer); });
  }
  // The run begins where the one before ends.
  bool add_run(const BufferStore& store, const ChosenElement& choice, const std::vector<IterVar>& axes) {
    const BufferLoad* load = choice.value.as<BufferLoad>();
    if (!load || !is_element(load->indices) || !is_operand(load->buffer)) return false;
    const BufferType &from = buffer_type(load->buffer), &to = buffer_type(store.buffer);
    if (!is_dense(from) || !is_dense(to) || from.dtype != to.dtype || from.dtype.is_packed()) return false;
    Analyzer facts = facts_;
    VarMap values;  // of the axes: those of the steps in the choice's domains
    std::vector<Expr> steps, extents;
    for (size_t d = 0; d < axes.size(); ++d) {
      const Expr extent = extents.emplace_back(facts_.simplify(cast_to(choice.domains[d].extent, kInt64)));
      VarRef step = make_var(axes[d].var->name, prim_type(kInt64));
      facts.bind(step, int_imm(0), extent);
      steps.push_back(is_int(extent, 1) ? int_imm(0) : Expr(step));
      values.emplace(axes[d].var.get(), cast_to(choice.domains[d].min + steps.back(), dtype_of(axes[d].var)));
    }
    const Expr here = row_major(steps, extents);
    auto start = [&](const std::vector<Expr>& indices, const BufferType& type) {
      std::vector<Expr> at = map_each(indices, [&](const Expr& index) { return substitute(index, values); });
      return facts.simplify(row_major(at, type.shape) - here);
    };
    const Expr first = start(load->indices, from), place = start(store.indices, to);
    const bool depends = std::ranges::any_of(steps, [&](const Expr& step) {
      return step.is<Var>() && (uses_var(first, cast<Var>(step)) || uses_var(place, cast<Var>(step)));
    });
    if (depends || !facts_.can_prove_equal(place, end_)) return false;
    const Expr count = facts_.simplify(count_of(extents));
    runs_.push_back({load->buffer, first, count});
    end_ = facts_.simplify(end_ + count);
    return true;
  }

  const Analyzer facts_;
  const std::vector<Buffer> params_;
  std::vector<MovedRun> runs_;
  Expr end_ = int_imm(0);  // of what the runs before fill
};

}  // namespace

std::optional<std::vector<MovedRun>> moved_runs(const PrimFuncRef& program) { return RunReader(program).read(program); }

}  // namespace relaxc
