// Expects: calls of tensor programs that are not scheduled, where the target's products of uint8 with int8 clamp sums
// of two products to 16 bits (widen_bytes left those whose constant weights rarely make larger ones). Guarantees: such
// sums are exact. Half of each weight of a pair that may need more than 16 bits is in a second sum, of the few steps
// that have such pairs, which a list gives for each panel of columns, as long as the longest of them:
//
//   matmul[i, j] = sum over k of x[i, k] * weight[j / n, k / 4, j % n, k % 4], without these halves
//   rest_of_sums[i, j] = sum over e, g of x[i, steps[j / n, e] * 4 + g] * halves[j / n, e, j % n, g]
//
// Products have the note `sums_in_int16`, without which rules take no instruction that clamps; where sums may be
// clamped (--fast-int8) all have it. The user's kernels, and programs that a schedule names, stay as they are.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ops/common.h"
#include "passes/byte_pairs.h"
#include "passes/compose.h"
#include "passes/graph_rewriter.h"
#include "support/lists.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/nests.h"
#include "tir/compute.h"
#include "tir/dot_forms.h"
#include "tir/program.h"
#include "tir/rules/lanes.h"

namespace relaxc {

namespace {

// A block that sums products of uint8 with int8.
struct Product {
  Ref<Block> block;
  Buffer out;
  Ref<BufferLoad> left, weight;
};

std::optional<Product> find_product(const PrimFuncRef& program) {
  for (const Ref<Block>& block : plain_nests(program)) {
    const std::optional<Reduction> sum = match_reduction(*block);
    const Binary* product = sum && sum->op == BinaryOp::kAdd ? sum->value.as<Binary>() : nullptr;
    if (!product || product->op != BinaryOp::kMul || dtype_of(sum->value) != kInt32) continue;
    auto operand = [](const Expr& factor, DType dtype) {
      const Cast* widened = factor.as<Cast>();
      return widened && dtype_of(widened->value) == dtype ? try_cast<BufferLoad>(widened->value) : std::nullopt;
    };
    const auto left = operand(product->a, DType::uint(8)), weight = operand(product->b, DType::int_(8));
    if (left && weight && operands_of(*block).size() == 2) return Product{block, sum->out, *left, *weight};
  }
  return std::nullopt;
}

PrimFuncRef with_note(const PrimFuncRef& program, const Ref<Block>& product) {
  return with_body(program, rewrite(program->body, [&](const Ref<Block>& block) -> std::optional<Stmt> {
                     if (!same_node(block, product)) return std::nullopt;
                     return edited<Block>(
                         block, [&](Block& noted) { noted.annotations.set(annotation<"sums_in_int16">(), true); });
                   }));
}

// Gives the program the second sum. The weight is [panels..., steps..., lanes, group].
class RestOfSums {
 public:
  explicit RestOfSums(const Product& product)
      : product_(product), spatial_(axes_of(*product.block, IterKind::kSpatial)), shape_(shape_of(product.weight)) {}

  // Returns nullopt where the weight does not lie in panels whose steps a list can name.
  std::optional<PrimFuncRef> run(const PrimFuncRef& program, size_t num_items) {
    if (!as_int(shape_.back()) || !find_dims()) return std::nullopt;
    ComputeBuilder b;
    const std::vector<Expr> dims = map_each(spatial_, [](const IterVar& axis) { return axis.domain.extent; });
    const Buffer sums = make_buffer("sums", kInt32, buffer_type(product_.out).shape);
    const Buffer halves = make_buffer("halves", DType::int_(8), followed_by(panels(), {length_, lanes(), group()}));
    const Buffer steps = make_buffer("steps", kInt32, followed_by(panels(), {length_, int_imm(std::ssize(listed_))}));
    const Buffer rest =
        b.reduce("rest_of_sums", kInt32, dims, {length_, group()}, zero(kInt32), combine_sum, [&](Axes at, Axes r) {
          VarMap axes = axes_at(at, steps, r);
          std::vector<Expr> half = panels_at(axes);
          half.insert(half.end(), {r[0], substitute(product_.weight->indices[shape_.size() - 2], axes), r[1]});
          return cast_to(substitute(Expr(product_.left), axes), kInt32) * cast_to(load(halves, half), kInt32);
        });
    b.annotate(annotation<"rest_of_sums">(), true);
    const Buffer total =
        b.compute("T_add", kInt32, dims, [&](Axes at) { return relaxc::at(sums, at) + relaxc::at(rest, at); });
    std::vector<Buffer> buffers = {sums};
    const std::vector<Stmt> added = statements_of(take_root(b.finish({total})->body, buffers));
    return spliced(program, num_items, {sums, total, halves, steps}, added, std::move(buffers));
  }
  const std::vector<size_t>& listed() const { return listed_; }
  size_t panel_dims() const { return panel_dims_; }

 private:
  struct Added {
    Buffer sums, total, halves, steps;
  };

  // Finds the dims of panels and of steps, and which axes of the sum give a step.
  bool find_dims() {
    const std::vector<Expr>& at = product_.weight->indices;
    const size_t lane = shape_.size() - 2;
    auto is_reduced = [&](const Expr& index) {
      return std::ranges::any_of(axes_of(*product_.block, IterKind::kReduce),
                                 [&](const IterVar& axis) { return uses_var(index, axis.var); });
    };
    while (panel_dims_ < lane && !is_reduced(at[panel_dims_])) ++panel_dims_;
    for (size_t d = panel_dims_; d < lane; ++d) {
      if (!is_int(shape_[d], 1)) listed_.push_back(d);
    }
    const Binary* in_group = at.back().as<Binary>();
    is_divided_ = in_group && in_group->op == BinaryOp::kFloorMod && in_group->a.is<Var>();
    if (!is_divided_ && !at.back().is<Var>()) return false;
    for (size_t d = panel_dims_; d < lane; ++d) {
      const Binary* step = at[d].as<Binary>();
      const bool is_of_group =
          is_divided_ && step && step->op == BinaryOp::kFloorDiv && same_node(step->a, in_group->a);
      if (!at[d].is<Var>() && !is_of_group) return false;
      axis_of_.push_back(is_of_group ? step->a : at[d]);
    }
    // A group of the left operand lies side by side, as it does not where each lane has a window of its own.
    const Expr& last = is_divided_ ? in_group->a : at.back();
    return !is_reduced(at[lane]) && uses_var(product_.left->indices.back(), cast<Var>(last)) &&
           axis_of_.size() + (is_divided_ ? 0 : 1) == axes_of(*product_.block, IterKind::kReduce).size();
  }

  std::vector<Expr> panels() const { return {shape_.begin(), shape_.begin() + static_cast<long>(panel_dims_)}; }
  const Expr& lanes() const { return shape_[shape_.size() - 2]; }
  Expr group() const { return int_imm(*as_int(shape_.back())); }
  std::vector<Expr> panels_at(const VarMap& axes) const {
    return map_each(std::span(product_.weight->indices).first(panel_dims_),
                    [&](const Expr& index) { return substitute(index, axes); });
  }
  // Returns the axes of the product at an element of the result and of the list.
  VarMap axes_at(Axes at, const Buffer& steps, Axes r) const {
    VarMap axes;
    auto set = [&](const Expr& axis, const Expr& value) { axes.emplace(axis.get(), cast_to(value, dtype_of(axis))); };
    for (size_t i = 0; i < spatial_.size(); ++i) set(spatial_[i].var, at[i]);
    const std::vector<Expr> panel = panels_at(axes);
    for (size_t i = 0; i < axis_of_.size(); ++i) {
      const auto listed = std::ranges::find(listed_, panel_dims_ + i);
      Expr step = int_imm(0);
      if (listed != listed_.end())
        step = cast_to(load(steps, followed_by(panel, {r[0], int_imm(listed - listed_.begin())})), kInt64);
      const bool is_divided = !same_node(axis_of_[i], product_.weight->indices[panel_dims_ + i]);
      set(axis_of_[i], is_divided ? step * group() + r[1] : step);
    }
    if (!is_divided_) set(product_.weight->indices.back(), r[1]);
    return axes;
  }

  PrimFuncRef spliced(const PrimFuncRef& program, size_t num_items, const Added& buffers,
                      const std::vector<Stmt>& added, std::vector<Buffer> intermediates) const {
    std::vector<Stmt> stmts;
    for (const Stmt& nest : statements_of(take_root(program->body, intermediates))) {
      const bool is_product = any_node(nest, [&](const NodeRef& node) { return same_node(node, product_.block); });
      if (!is_product) {
        stmts.push_back(nest);
        continue;
      }
      stmts.push_back(added[0]);
      stmts.push_back(substitute(nest, VarMap{{product_.out.get(), buffers.sums}}));
      stmts.push_back(substitute(added[1], VarMap{{buffers.total.get(), product_.out}}));
    }
    PrimFunc copy = *program;
    copy.body = root_block(std::move(intermediates), seq(std::move(stmts)));
    copy.params.insert(copy.params.begin() + static_cast<long>(num_items), {buffers.halves, buffers.steps});
    return make_prim_func(std::move(copy), program.span());
  }
  static std::vector<Expr> shape_of(const Ref<BufferLoad>& load) { return buffer_type(load->buffer).shape; }

  const Product& product_;
  const std::vector<IterVar> spatial_;
  const std::vector<Expr> shape_;  // of the weight
  const VarRef length_ = make_dim("rest");
  size_t panel_dims_ = 0;
  std::vector<size_t> listed_;  // dims of more than one step
  std::vector<Expr> axis_of_;   // of the sum, for each dim of steps
  bool is_divided_ = false;     // one axis of the sum gives the steps and the elements of a group
};

class SumKeeper final : public GraphRewriter {
 public:
  SumKeeper(const PassContext& context, IRModule& module, int64_t group)
      : GraphRewriter(context.ops), context_(context), module_(module), group_(group) {}

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder&) override {
    const bool is_call_tir = !binding.cast && as_call(binding.value, ops::kCallTir);
    const auto call = is_call_tir ? as_spread_kernel_call(binding.value, module_) : std::nullopt;
    const auto program = call ? called_program(call->callee, module_) : std::nullopt;
    if (!program || (*program)->attrs.get_bool(attr_names::kIsScheduled, false) || kernel_of(call->name(), context_))
      return std::nullopt;
    const std::optional<Product> product = find_product(*program);
    if (!product || product->block->annotations.has(annotation<"program">())) return std::nullopt;
    const Tuple* given = binding.value.as<Call>()->args[1].as<Tuple>();
    if (!given) return std::nullopt;
    std::vector<Expr> items = given->items;
    const auto param = std::ranges::find_if((*program)->params,
                                            [&](const VarRef& var) { return same_node(var, product->weight->buffer); });
    const auto position = static_cast<size_t>(param - (*program)->params.begin());
    const Constant* weight = position < items.size() ? items[position].as<Constant>() : nullptr;
    if (!weight || weight->data.ndim() < 3 || weight->data.shape().back() != group_) return std::nullopt;

    const PrimFuncRef noted = with_note(*program, product->block);
    if (count_large_pairs(weight->data, static_cast<size_t>(weight->data.ndim()) - 1) == 0)
      return call_of(noted, call->name(), binding.value, std::move(items));
    const Product noted_product = *find_product(noted);
    RestOfSums rest(noted_product);
    const std::optional<PrimFuncRef> exact = rest.run(noted, items.size());
    if (!exact) return std::nullopt;
    const SplitBytes split = split_large_pairs(weight->data, rest.panel_dims(), rest.listed());
    items[position] = constant(split.small, items[position].span());
    items.insert(items.end(), {constant(split.halves), constant(split.steps)});
    return call_of(*exact, call->name(), binding.value, std::move(items));
  }

 private:
  Expr call_of(const PrimFuncRef& program, const std::string& name, const Expr& kernel_call, std::vector<Expr> items) {
    Call copy = *kernel_call.as<Call>();
    copy.args[0] = add_program(module_, name, with_fresh_variables(program));
    copy.args[1] = tuple(std::move(items));
    return make(std::move(copy), kernel_call.type(), kernel_call.span());
  }

  const PassContext& context_;
  IRModule& module_;
  const int64_t group_;  // products that the instruction sums in a lane
};

}  // namespace

IRModule exact_sums(IRModule module, PassContext& context) {
  const DotForm* form = find_dot_form(DType::uint(8), DType::int_(8), kInt32, context.target);
  if (!form || !form->clamps()) return module;
  if (!context.fast_int8) {
    return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& functions) {
      return SumKeeper(context, functions, form->group).run(function);
    });
  }
  for (auto& [_, function] : module.functions) {
    const auto program = try_cast<PrimFunc>(function);
    const auto product = program ? find_product(*program) : std::nullopt;
    if (product) function = with_note(*program, product->block);
  }
  return module;
}

}  // namespace relaxc
