// The operands of a product are read behind transposes, slices, repetitions and reshapes: `source_of` gives the element
// that an element is a copy of, and `resolved` follows these as long as the product finds its axes in the dims.
#include "passes/find_attention.h"

#include <algorithm>
#include <set>

#include "ir/op_names.h"
#include "ops/common.h"
#include "support/lists.h"
#include "tir/analysis/conditions.h"
#include "tir/analysis/nests.h"
#include "tir/rules/lanes.h"

namespace relaxc {

namespace {

constexpr size_t kMostBetween = 32;  // bounds parameters and code size

bool depends_on(const Expr& index, std::initializer_list<const IterVar*> axes) {
  return std::ranges::any_of(axes, [&](const IterVar* axis) { return uses_var(index, axis->var); });
}
// Returns whether the element has these two axes in dims of their own, and does not depend on the third.
bool has_axes(const TensorElement& element, const IterVar& a, const IterVar& b, const IterVar& other) {
  return dim_of(element, a) && dim_of(element, b) &&
         std::ranges::none_of(element.at, [&](const Expr& index) { return depends_on(index, {&other}); });
}
bool is_last(const TensorElement& element, const IterVar& axis) {
  return dim_of(element, axis) == element.at.size() - 1;
}

bool is_float32(const Expr& tensor) { return tensor_dtype(tensor.type()) == kFloat32; }

// Returns the element that the program reads for those values of its axes.
std::optional<TensorElement> read_by(const KernelNode& node, const BufferLoad& load, const VarMap& axes) {
  const KernelMatch match = match_kernel(node.call, node.program);
  VarMap values = match.dims;
  for (const auto& [axis, value] : axes) values.insert_or_assign(axis, value);
  for (const KernelOperand& operand : match.operands) {
    if (operand.is_output || !same_node(operand.param, load.buffer)) continue;
    std::vector<Expr> at = map_each(load.indices, [&](const Expr& index) { return substitute(index, values); });
    return TensorElement{node.call.tensors[operand.number], std::move(at)};
  }
  return std::nullopt;
}

// Returns whether the product reads the rows of the tensor, each at its own batch axes. Brings these into the order of
// the tensor's dims.
bool reads_rows(ProductForm& product, const Expr& tensor) {
  const std::vector<Expr>& at = product.left.at;
  if (!same_node(product.left.tensor, tensor) || same_node(product.right.tensor, tensor) ||
      at.size() != product.spatial.size() || !is_last(product.left, product.depth) ||
      dim_of(product.left, product.row) != at.size() - 2)
    return false;
  std::vector<IterVar> left = std::exchange(product.batch, {});
  for (size_t d = 0; d + 2 < at.size(); ++d) {
    auto axis = std::ranges::find_if(left, [&](const IterVar& axis) {
      return same_node(at[d], axis.var) || (is_int(at[d], 0) && is_int(axis.domain.extent, 1));
    });
    if (axis == left.end()) return false;
    product.batch.push_back(*axis);
    left.erase(axis);
  }
  return true;
}

}  // namespace

// Returns the one dim that the axis itself indexes; nullopt if there is none, or other dims depend on it.
std::optional<size_t> dim_of(const TensorElement& element, const IterVar& axis) {
  std::optional<size_t> found;
  for (size_t d = 0; d < element.at.size(); ++d) {
    if (!depends_on(element.at[d], {&axis})) continue;
    if (found || !same_node(element.at[d], axis.var)) return std::nullopt;
    found = d;
  }
  return found;
}

std::optional<std::vector<Expr>> index_before_reshape(const std::vector<Expr>& at, const std::vector<Expr>& shape,
                                                      const std::vector<Expr>& before) {
  size_t first = 0, behind = 0;
  const size_t least = std::min(shape.size(), before.size());
  auto equal_at = [&](size_t a, size_t b) { return equal_dims(shape[a], before[b]) == Verdict::kProven; };
  while (behind < least && equal_at(shape.size() - 1 - behind, before.size() - 1 - behind)) ++behind;
  while (first + behind < least && equal_at(first, first)) ++first;
  std::vector<Expr> from(before.begin() + static_cast<long>(first), before.end() - static_cast<long>(behind));
  std::vector<Expr> to(shape.begin() + static_cast<long>(first), shape.end() - static_cast<long>(behind));
  std::vector<Expr> inner(at.begin() + static_cast<long>(first), at.end() - static_cast<long>(behind));
  auto is_known = [](const Expr& dim) { return as_int(dim).has_value(); };
  if (!std::all_of(from.begin() + !from.empty(), from.end(), is_known) ||
      !std::all_of(to.begin() + !to.empty(), to.end(), is_known))
    return std::nullopt;
  std::vector<Expr> result(at.begin(), at.begin() + static_cast<long>(first));
  if (!from.empty()) {
    const Expr flat = to.empty() ? int_imm(0) : flatten_index(inner, to);
    std::ranges::copy(unflatten_index(flat, from), std::back_inserter(result));
  }
  result.insert(result.end(), at.end() - static_cast<long>(behind), at.end());
  return result;
}

std::vector<size_t> Attention::members() const {
  std::vector<size_t> result = {scores};
  result.insert(result.end(), before.begin(), before.end());
  result.push_back(softmax);
  result.insert(result.end(), behind.begin(), behind.end());
  result.push_back(output);
  if (transposed) result.push_back(*transposed);
  return result;
}

AttentionFinder::AttentionFinder(const std::vector<Binding>& bindings, const IRModule& module,
                                 const VarSet& used_outside)
    : bindings_(bindings), used_outside_(used_outside) {
  for (size_t i = 0; i < bindings_.size(); ++i) {
    const Binding& binding = bindings_[i];
    places_.emplace(binding.var.get(), i);
    VarSet used;
    add_free_vars(binding.value, used);
    if (binding.cast) add_free_vars(*binding.cast, used);
    for (const NodeHeader* each : used) users_[each].push_back(i);
    nodes_.push_back(kernel_node_of(binding, module));
  }
}

std::optional<size_t> AttentionFinder::place_of(const Expr& tensor) const {
  const size_t* place = find_value(places_, tensor.get());
  return place ? std::optional(*place) : std::nullopt;
}
// Returns the only user of a value.
std::optional<size_t> AttentionFinder::user_of(size_t i) const {
  const auto* users = find_value(users_, var(i).get());
  if (!users || users->size() != 1 || used_outside_.contains(var(i).get())) return std::nullopt;
  return users->front();
}
const Call* AttentionFinder::reshape_of(size_t i) const {
  return bindings_[i].cast ? nullptr : as_call(bindings_[i].value, ops::kReshape);
}

std::optional<TensorElement> AttentionFinder::source_of(const TensorElement& element) const {
  const auto place = place_of(element.tensor);
  if (!place) return std::nullopt;
  if (const Call* reshaped = reshape_of(*place)) {
    const std::vector<Expr>*shape = known_shape(element.tensor.type()), *before = known_shape(reshaped->args[0].type());
    if (!shape || !before) return std::nullopt;
    auto at = index_before_reshape(element.at, *shape, *before);
    return at ? std::optional(TensorElement{reshaped->args[0], *at}) : std::nullopt;
  }
  const auto& node = nodes_[*place];
  if (!node || node->blocks.size() != 1 || node->pattern > OpPattern::kInjective) return std::nullopt;
  const Block& block = *node->blocks[0];
  const BufferStore* store = single_store(block);
  const BufferLoad* load = store ? store->value.as<BufferLoad>() : nullptr;
  if (!load || !is_at(store->indices, block.iter_vars) || holds<BufferLoad>(Expr(tuple(load->indices))))
    return std::nullopt;
  VarMap axes;
  for (size_t d = 0; d < block.iter_vars.size(); ++d) axes.emplace(block.iter_vars[d].var.get(), element.at[d]);
  return read_by(*node, *load, axes);
}
// Follows copies while `fits` holds.
TensorElement AttentionFinder::resolved(TensorElement element, const Analyzer& facts,
                                        const std::function<bool(const TensorElement&)>& fits) const {
  while (auto source = source_of(element)) {
    for (Expr& index : source->at) index = facts.simplify(index);
    if (!known_shape(source->tensor.type()) || !is_float32(source->tensor) || !fits(*source)) break;
    element = *source;
  }
  return element;
}

std::optional<ProductForm> AttentionFinder::product_of(size_t i) const {
  const auto& node = nodes_[i];
  if (!node || node->blocks.size() != 1 || node->pattern != OpPattern::kAnchor || !is_float32(var(i)))
    return std::nullopt;
  const Block& block = *node->blocks[0];
  const std::optional<Reduction> sum = match_reduction(block);
  std::vector<IterVar> spatial = axes_of(block, IterKind::kSpatial), reduced = axes_of(block, IterKind::kReduce);
  const Binary* times = sum ? sum->value.as<Binary>() : nullptr;
  if (!times || times->op != BinaryOp::kMul || sum->op != BinaryOp::kAdd || spatial.size() < 2 || reduced.size() != 1 ||
      !is_zero(sum->init))
    return std::nullopt;
  const VarMap dims = match_kernel(node->call, node->program).dims;
  for (auto* axes : {&spatial, &reduced}) {
    for (IterVar& axis : *axes) axis.domain.extent = substitute(axis.domain.extent, dims);
  }
  const BufferLoad *a = times->a.as<BufferLoad>(), *b = times->b.as<BufferLoad>();
  auto x = a ? read_by(*node, *a, {}) : std::nullopt, y = b ? read_by(*node, *b, {}) : std::nullopt;
  if (!x || !y || !is_float32(x->tensor) || !is_float32(y->tensor)) return std::nullopt;
  const IterVar column = spatial.back();
  if (std::ranges::any_of(x->at, [&](const Expr& index) { return depends_on(index, {&column}); })) std::swap(x, y);
  for (size_t r = spatial.size() - 1; r-- > 0;) {
    const IterVar row = spatial[r];
    if (!has_axes(*x, row, reduced[0], column) || !has_axes(*y, column, reduced[0], row)) continue;
    std::vector<IterVar> batch(spatial.begin(), spatial.end() - 1);
    batch.erase(batch.begin() + static_cast<long>(r));
    return ProductForm{spatial, batch, row, column, reduced[0], *x, *y};
  }
  return std::nullopt;
}

// Returns whether the node computes each element of its result from the one of the tensor at the same place.
bool AttentionFinder::is_elementwise_on(size_t i, const Expr& tensor) const {
  const auto& node = nodes_[i];
  return node && node->pattern <= OpPattern::kBroadcast && !node->blocks.empty() && is_float32(var(i)) &&
         is_float32(tensor) && same_shape(var(i), tensor);
}
// Returns whether the binding reshapes the axes before the last two.
bool AttentionFinder::reshapes_batch(size_t i) const {
  const Call* reshaped = reshape_of(i);
  const std::vector<Expr>* from = reshaped ? known_shape(reshaped->args[0].type()) : nullptr;
  const std::vector<Expr>* to = known_shape(var(i).type());
  if (!from || !to || from->size() < 2 || to->size() < 2) return false;
  for (size_t d : {1, 2}) {
    if (equal_dims((*from)[from->size() - d], (*to)[to->size() - d]) != Verdict::kProven) return false;
  }
  return true;
}
// Appends the bindings from a product to this one, which only the one behind each uses. Returns whether there are.
bool AttentionFinder::path_from_product(const Expr& tensor, std::vector<size_t>& path) const {
  const auto i = place_of(tensor);
  if (!i || !user_of(*i) || path.size() > kMostBetween) return false;
  path.push_back(*i);
  if (auto product = product_of(*i)) return same_node(product->row.var, product->spatial.end()[-2].var);
  if (reshapes_batch(*i) && path_from_product(reshape_of(*i)->args[0], path)) return true;
  if (nodes_[*i]) {
    for (const Expr& operand : nodes_[*i]->call.tensors) {
      if (is_elementwise_on(*i, operand) && path_from_product(operand, path)) return true;
    }
  }
  path.pop_back();
  return false;
}
// Returns whether the softmax is over the last axis.
bool AttentionFinder::is_softmax_over_last(size_t i) const {
  if (!nodes_[i] || operators_of(nodes_[i]->program) != std::vector<std::string>{"nn.softmax"}) return false;
  const KernelNode& softmax = *nodes_[i];
  if (softmax.blocks.size() != 4 || softmax.call.tensors.empty() || !is_float32(var(i)) ||
      !is_float32(softmax.call.tensors[0]))
    return false;
  const std::vector<Ref<BufferLoad>> loads = operands_of(*softmax.blocks[0]);
  const std::vector<IterVar> reduced = axes_of(*softmax.blocks[0], IterKind::kReduce);
  return reduced.size() == 1 && loads.size() == 1 && same_node(loads[0]->indices.back(), reduced[0].var);
}

// Returns the product that reads the softmax, and what is computed from it one element by element before (`behind`), if
// nothing else reads these.
std::optional<size_t> AttentionFinder::product_behind(size_t softmax, std::vector<size_t>& behind) const {
  std::set<size_t> open = {softmax};  // in order, so that all that a binding reads comes before it
  std::optional<size_t> product;
  while (!open.empty()) {
    const size_t i = open.extract(open.begin()).value();
    const bool is_elementwise = nodes_[i] && nodes_[i]->pattern <= OpPattern::kBroadcast &&
                                !nodes_[i]->blocks.empty() && same_shape(var(i), var(softmax));
    if (i != softmax && !is_elementwise) {
      if (product || !product_of(i)) return std::nullopt;
      product = i;
      continue;
    }
    const auto* users = find_value(users_, var(i).get());
    if (!users || used_outside_.contains(var(i).get()) || behind.size() > kMostBetween) return std::nullopt;
    if (i != softmax) behind.push_back(i);
    open.insert(users->begin(), users->end());
  }
  return product;
}

std::optional<Attention> AttentionFinder::find(size_t softmax) const {
  std::vector<size_t> before, behind;
  if (!is_softmax_over_last(softmax) || !path_from_product(nodes_[softmax]->call.tensors[0], before))
    return std::nullopt;
  const size_t scores = before.back();
  before.pop_back();
  std::ranges::reverse(before);
  const std::optional<size_t> next = product_behind(softmax, behind);
  const std::optional<ProductForm> first = product_of(scores);
  std::optional<ProductForm> second = next ? product_of(*next) : std::nullopt;
  if (!second || !reads_rows(*second, var(behind.empty() ? softmax : behind.back()))) return std::nullopt;
  const auto value = place_of(second->right.tensor);
  if (value == softmax || std::ranges::count(behind, value.value_or(softmax)) > 0) return std::nullopt;
  Attention found{scores, softmax, *next,       before,       behind,       transpose_behind(*next),
                  *first, *second, first->left, first->right, second->right};
  if (!resolve_operands(found)) return std::nullopt;
  return found;
}
std::vector<size_t> AttentionFinder::sources_of(const Attention& found) const {
  std::vector<size_t> result;
  for (const TensorElement* operand : {&found.query, &found.key, &found.value}) {
    if (const auto place = place_of(operand->tensor)) result.push_back(*place);
  }
  return result;
}
// Returns the only user of the output, if it permutes its axes and leaves the last one in its place.
std::optional<size_t> AttentionFinder::transpose_behind(size_t output) const {
  const auto user = user_of(output);
  if (!user || !nodes_[*user] || nodes_[*user]->blocks.size() != 1) return std::nullopt;
  const std::vector<IterVar>& axes = nodes_[*user]->blocks[0]->iter_vars;
  const auto source = source_of({var(*user), map_each(axes, [](const IterVar& axis) -> Expr { return axis.var; })});
  if (!source || source->at.size() != axes.size()) return std::nullopt;
  for (const IterVar& axis : axes) {
    if (!dim_of(*source, axis)) return std::nullopt;
  }
  return is_last(*source, axes.back()) ? user : std::nullopt;
}
bool AttentionFinder::resolve_operands(Attention& found) const {
  auto facts_of = [](const ProductForm& product) {
    Analyzer facts;
    for (const IterVar& axis : product.batch) facts.bind(axis.var, axis.domain.min, axis.domain.extent);
    return facts;
  };
  const ProductForm &first = found.first, &second = found.second;
  auto is_query = [&](const TensorElement& x) {
    return has_axes(x, first.row, first.depth, first.column) && is_last(x, first.depth);
  };
  auto is_key = [&](const TensorElement& x) { return has_axes(x, first.column, first.depth, first.row); };
  auto is_value = [&](const TensorElement& x) {
    return has_axes(x, second.column, second.depth, second.row) && is_last(x, second.column);
  };
  found.query = resolved(found.query, facts_of(first), is_query);
  found.key = resolved(found.key, facts_of(first), is_key);
  found.value = resolved(found.value, facts_of(second), is_value);
  return is_query(found.query) && is_value(found.value);
}

}  // namespace relaxc
