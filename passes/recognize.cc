// Expects: any module. Guarantees: calls of unscheduled tensor programs that are convolutions of images [N, C, H, W],
// maxima or means over their windows, or products with a constant matrix are these operators, so that passes choose
// layouts, and pack weights, as for a model from elsewhere. Borders around the data, and elementwise blocks beside
// them, become operators, too. In functions that hold such a program, so do programs of elementwise blocks alone.
//
// A program is recognized by what it computes, never by a name: each block has to have the extents, and accesses equal
// to, those of the operator's own program (its `legalize`), which is made for the comparison. Sums may be taken in
// another order, as in every schedule. A program that a rule of the user's names, or that is a kernel of theirs, stays
// as it is.
#include <algorithm>
#include <cmath>
#include <functional>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "passes/compose.h"
#include "support/lists.h"
#include "tir/analysis/conditions.h"
#include "tir/analysis/nests.h"
#include "tir/compute.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

// The value of a block's buffer in the graph. Of padded data also the data, the fill, and the rows and columns around
// it: before and after each axis.
struct Recognized {
  Expr value;
  struct Border {
    Expr data;
    double fill;
    std::vector<int64_t> before, after;
  };
  std::optional<Border> border = {};
};

// Returns the facts that each axis of the block is in its domain.
Analyzer facts_of(const Block& block) {
  Analyzer facts;
  for (const IterVar& axis : block.iter_vars) {
    if (is_int(axis.domain.extent, 1)) {
      facts.bind(axis.var, axis.domain.min);
    } else {
      facts.bind(axis.var, axis.domain.min, axis.domain.extent);
    }
  }
  return facts;
}

std::optional<double> float_of(const Expr& value) {
  const FloatImm* imm = value.as<FloatImm>();
  return imm ? std::optional(imm->value) : std::nullopt;
}

// Recognizes the blocks of one tensor program and emits operators for them.
class BlockRecognizer {
 public:
  BlockRecognizer(const OpTable& ops, Builder& builder, std::unordered_map<const NodeHeader*, Recognized>& values)
      : ops_(ops), builder_(builder), values_(values) {}

  // Returns whether the block became operators, whose value its buffer then has.
  bool run(const Block& block) {
    const BufferStore* store = single_store(block);
    if (!store || buffer_type(store->buffer).dtype != kFloat32) return false;
    std::vector<IterVar> axes = axes_of(block, IterKind::kSpatial);
    if (!is_at(store->indices, axes) || !has_extents(store->buffer, axes)) return false;
    std::optional<Recognized> result;
    if (block.iter_vars.size() == axes.size()) {
      if (uses_var(store->value, store->buffer)) return false;
      result = border(block, *store);
      if (!result) result = window_mean(block, *store);
      if (!result) result = elementwise(block, *store);
    } else if (auto reduction = match_reduction(block)) {
      result = product(block, *reduction);
      if (!result) result = window_maximum(block, *reduction);
      if (!result && note_window_sum(block, *reduction)) return true;
      has_anchor = has_anchor || result;
    }
    if (!result || equal_shapes(result->value.type(), shape_type(buffer_type(store->buffer).shape)) != Verdict::kProven)
      return false;
    values_.insert_or_assign(store->buffer.get(), *result);
    sums_.erase(store->buffer.get());
    return true;
  }

  bool has_anchor = false;  // whether a convolution, a pool or a product was recognized

 private:
  const Recognized* find(const Buffer& buffer) const { return find_value(values_, buffer.get()); }

  // out[i] = if_then_else(0 <= i - before < extent, data[i - before], fill)
  std::optional<Recognized> border(const Block& block, const BufferStore& store) {
    std::optional<Branches> branches = branches_of(store.value);
    const BufferLoad* load = branches ? branches->a.as<BufferLoad>() : nullptr;
    std::optional<double> fill = branches ? float_of(branches->b) : std::nullopt;
    const Recognized* data = load ? find(load->buffer) : nullptr;
    if (!data || !fill || load->indices.size() != block.iter_vars.size()) return std::nullopt;
    Analyzer facts = facts_of(block);
    std::vector<Expr> conditions = conjuncts(branches->condition);
    Recognized::Border result{data->value, *fill, {}, {}};
    std::vector<int64_t> widths;
    for (size_t d = 0; d < block.iter_vars.size(); ++d) {
      const IterVar& axis = block.iter_vars[d];
      const Expr& dim = buffer_type(load->buffer).shape[d];
      auto before = as_int(facts.simplify(axis.var - load->indices[d]));
      auto after = before ? as_int(facts.simplify(axis.domain.extent - dim - *before)) : std::nullopt;
      if (!before || !after || *before < 0 || *after < 0) return std::nullopt;
      if (!takes_bounds(axis.var, *before, dim, *before > 0, *after > 0, conditions, facts)) return std::nullopt;
      result.before.push_back(*before);
      result.after.push_back(*after);
      widths.insert(widths.end(), {*before, *after});
    }
    if (!conditions.empty()) return std::nullopt;
    Expr padded = builder_.op("nn.pad", {data->value}, PadAttrs{.pad_width = widths, .pad_value = *fill});
    return Recognized{padded, result};
  }

  // Removes the conditions about the axis. Returns whether they are `before <= axis < before + dim`, of which those
  // that always hold may be missing.
  static bool takes_bounds(const VarRef& axis, int64_t before, const Expr& dim, bool needs_low, bool needs_high,
                           std::vector<Expr>& conditions, const Analyzer& facts) {
    bool has_low = false, has_high = false;
    std::vector<Expr> others;
    for (const Expr& condition : conditions) {
      if (!uses_var(condition, axis)) {
        others.push_back(condition);
        continue;
      }
      std::optional<Expr> room = slack(condition);  // >= 0
      if (!room) return false;
      bool is_low = facts.can_prove_equal(*room, axis - before);
      bool is_high = !is_low && facts.can_prove_equal(*room, dim + (before - 1) - axis);
      if (!is_low && !is_high && !facts.can_prove(*room >= int_imm(0))) return false;
      has_low = has_low || is_low;
      has_high = has_high || is_high;
    }
    conditions = std::move(others);
    return (has_low || !needs_low) && (has_high || !needs_high);
  }

  // ---- Elementwise blocks

  std::optional<Recognized> elementwise(const Block& block, const BufferStore& store) {
    size_t emitted = 0;
    std::optional<Expr> value = evaluate(block, store.value, emitted);
    if (!value || !value->type().is<TensorType>() || emitted == 0) return std::nullopt;
    return Recognized{*value};
  }

  std::optional<Expr> evaluate(const Block& block, const Expr& e, size_t& emitted) {
    static constexpr std::pair<BinaryOp, const char*> kBinary[] = {
        {BinaryOp::kAdd, "add"},    {BinaryOp::kSub, "subtract"}, {BinaryOp::kMul, "multiply"},
        {BinaryOp::kDiv, "divide"}, {BinaryOp::kMax, "maximum"},  {BinaryOp::kMin, "minimum"}};
    static constexpr const char* kUnary[] = {"exp", "log", "sqrt", "tanh", "sigmoid", "erf", "rsqrt", "abs"};
    if (dtype_of(e) != kFloat32 || ++size_ > kMostOperators) return std::nullopt;
    if (e.is<FloatImm>()) return e;
    if (const BufferLoad* load = e.as<BufferLoad>()) return operand(block, *load);
    if (const Binary* node = e.as<Binary>()) {
      auto row = std::ranges::find(kBinary, node->op, &std::pair<BinaryOp, const char*>::first);
      std::optional<Expr> a = row == std::end(kBinary) ? std::nullopt : evaluate(block, node->a, emitted);
      std::optional<Expr> b = a ? evaluate(block, node->b, emitted) : std::nullopt;
      if (!b || (!a->type().is<TensorType>() && !b->type().is<TensorType>())) return std::nullopt;
      ++emitted;
      bool is_relu = node->op == BinaryOp::kMax && b->is<FloatImm>() && is_zero(*b) && !std::signbit(*float_of(*b));
      return is_relu ? builder_.op("nn.relu", {*a}) : builder_.op(row->second, {*a, *b});
    }
    const Call* call = e.as<Call>();
    auto row =
        call ? std::ranges::find_if(kUnary, [&](const char* name) { return op_name(e) == fmt::format("tir.{}", name); })
             : std::end(kUnary);
    if (row == std::end(kUnary) || call->args.size() != 1) return std::nullopt;
    std::optional<Expr> x = evaluate(block, call->args[0], emitted);
    if (!x || !x->type().is<TensorType>()) return std::nullopt;
    ++emitted;
    return builder_.op(*row, {*x});
  }

  // Returns a tensor that broadcasts to the block's axes as the load does: each index is another axis, in order, or 0
  // in a dim of 1.
  std::optional<Expr> operand(const Block& block, const BufferLoad& load) {
    const Recognized* data = find(load.buffer);
    if (!data) return std::nullopt;
    const std::vector<Expr>& dims = buffer_type(load.buffer).shape;
    std::vector<Expr> shape;  // of the operand, from the first axis that it has
    size_t next = 0;          // axis
    for (size_t d = 0; d < dims.size(); ++d) {
      if (is_int(load.indices[d], 0) && is_int(dims[d], 1)) continue;
      size_t axis = position_of_axis(block.iter_vars, load.indices[d]);
      if (axis >= block.iter_vars.size() || axis < next || !equal_extents(dims[d], block.iter_vars[axis]))
        return std::nullopt;
      if (!shape.empty() || axis > 0) shape.resize(shape.empty() ? 0 : shape.size() + (axis - next), int_imm(1));
      shape.push_back(dims[d]);
      next = axis + 1;
    }
    shape.resize(shape.size() + (block.iter_vars.size() - next), int_imm(1));
    if (next == 0) shape.clear();
    if (equal_shapes(data->value.type(), shape_type(shape)) == Verdict::kProven) return data->value;
    return reshape(data->value, shape, builder_);
  }

  static bool equal_extents(const Expr& dim, const IterVar& axis) {
    return equal_dims(dim, axis.domain.extent) == Verdict::kProven;
  }

  // ---- Reductions

  // The dims of an image that windows move over.
  struct Windows {
    std::vector<int64_t> strides, dilation;
    std::vector<std::optional<VarRef>> taps;  // the reduce axis of each; none for a window of 1
  };
  // Matches indices y * stride + ky * dilation, where y is the given axis.
  std::optional<Windows> windows(const Block& block, const std::vector<Expr>& indices,
                                 const std::vector<IterVar>& axes) {
    Windows result;
    Analyzer facts = facts_of(block);
    std::vector<IterVar> reduced = axes_of(block, IterKind::kReduce);
    for (size_t d = 0; d < indices.size(); ++d) {
      auto tap = std::ranges::find_if(reduced, [&](const IterVar& axis) { return uses_var(indices[d], axis.var); });
      bool has_tap = tap != reduced.end();
      // The index of a block whose axis has one iteration need not mention it.
      auto stride = is_int(axes[d].domain.extent, 1) && !uses_var(indices[d], axes[d].var)
                        ? std::optional<int64_t>(1)
                        : coefficient(indices[d], axes[d].var, facts);
      auto dilation = has_tap ? coefficient(indices[d], tap->var, facts) : std::optional<int64_t>(1);
      if (!stride || !dilation || *stride < 1 || *dilation < 1) return std::nullopt;
      Expr form = axes[d].var * *stride;
      if (has_tap) form = form + tap->var * *dilation;
      if (!facts.can_prove_equal(indices[d], form)) return std::nullopt;
      result.strides.push_back(*stride);
      result.dilation.push_back(*dilation);
      result.taps.push_back(has_tap ? std::optional(tap->var) : std::nullopt);
    }
    return result;
  }

  // A border of rows and columns alone, as an attribute `padding`: all begins and then all ends.
  struct Source {
    Expr data;
    std::vector<int64_t> padding{0, 0, 0, 0};
  };
  static Source source_of(const Recognized& image, const std::function<bool(double)>& is_fill) {
    const auto& border = image.border;
    bool in_image = border && border->before.size() == 4 && is_fill(border->fill) && border->before[0] == 0 &&
                    border->before[1] == 0 && border->after[0] == 0 && border->after[1] == 0;
    if (!in_image) return {image.value};
    return {border->data, {border->before[2], border->before[3], border->after[2], border->after[3]}};
  }

  // Matches out[n, c, y, x] = fold(out[n, c, y, x], image[n, c, windows]).
  struct Fold {
    Recognized image;
    PoolAttrs<2> attrs;  // without padding
  };
  std::optional<Fold> fold_of_windows(const Block& block, const Reduction& reduction) {
    const BufferLoad* load = reduction.value.as<BufferLoad>();
    const Recognized* image = load ? find(load->buffer) : nullptr;
    std::vector<IterVar> axes = axes_of(block, IterKind::kSpatial), reduced = axes_of(block, IterKind::kReduce);
    bool fits = image && axes.size() == 4 && reduced.size() == 2 && load->indices.size() == 4 &&
                same_node(load->indices[0], axes[0].var) && same_node(load->indices[1], axes[1].var);
    auto moved = fits ? windows(block, {load->indices[2], load->indices[3]}, {axes[2], axes[3]}) : std::nullopt;
    if (!moved || !moved->taps[0] || !moved->taps[1] || same_node(*moved->taps[0], *moved->taps[1]))
      return std::nullopt;
    Fold result{*image, {.strides = moved->strides, .dilation = moved->dilation}};
    for (size_t d = 0; d < 2; ++d) {
      auto axis = std::ranges::find_if(reduced, [&](const IterVar& r) { return same_node(r.var, *moved->taps[d]); });
      auto extent = as_int(axis->domain.extent);
      if (!extent || *extent < 1) return std::nullopt;
      result.attrs.pool_size[d] = *extent;
    }
    return result;
  }

  std::optional<Recognized> window_maximum(const Block& block, const Reduction& reduction) {
    auto lowest_value = float_of(reduction.init);
    auto fold = reduction.op == BinaryOp::kMax && lowest_value ? fold_of_windows(block, reduction) : std::nullopt;
    if (!fold) return std::nullopt;
    // The border may hold what the maximum begins with, or less.
    Source source = source_of(fold->image, [&](double fill) { return fill <= *lowest_value; });
    fold->attrs.padding = source.padding;
    Expr result = builder_.op(ops::short_name(ops::kMaxPool2d), {source.data}, fold->attrs);
    // The operator begins with -inf.
    if (*lowest_value > -std::numeric_limits<double>::infinity())
      result = builder_.op("maximum", {result, reduction.init});
    return Recognized{result};
  }

  // Keeps the sums over windows until they are divided. Nothing else may read them.
  bool note_window_sum(const Block& block, const Reduction& reduction) {
    bool is_sum = reduction.op == BinaryOp::kAdd && is_zero(reduction.init);
    std::optional<Fold> fold = is_sum ? fold_of_windows(block, reduction) : std::nullopt;
    if (!fold) return false;
    sums_.insert_or_assign(reduction.out.get(), *fold);
    values_.erase(reduction.out.get());
    return true;
  }

  // mean[i] = sum[i] / count(i), if the count is that of an average over these windows.
  std::optional<Recognized> window_mean(const Block& block, const BufferStore& store) {
    const Binary* division = store.value.as<Binary>();
    const BufferLoad* sum = division && division->op == BinaryOp::kDiv ? division->a.as<BufferLoad>() : nullptr;
    const Fold* fold = sum ? find_value(sums_, sum->buffer.get()) : nullptr;
    if (!fold || !is_at(sum->indices, block.iter_vars)) return std::nullopt;
    Source source = source_of(fold->image, [](double fill) { return fill == 0; });
    PoolAttrs<2> attrs = fold->attrs;
    attrs.padding = source.padding;
    for (bool includes_border : {false, true}) {
      attrs.count_include_pad = includes_border;
      if (!divides_by(block, division->b, source.data, attrs)) continue;
      has_anchor = true;
      return Recognized{builder_.op(ops::short_name(ops::kAvgPool2d), {source.data}, attrs)};
    }
    return std::nullopt;
  }

  // Returns whether the operator's own program divides by this count, too.
  bool divides_by(const Block& block, const Expr& count, const Expr& data, const PoolAttrs<2>& attrs) {
    Expr x = make_var("x", data.type());
    Expr pool = call(op_ref(ops::kAvgPool2d), {x}, write_attrs(attrs), object_type());
    auto blocks = blocks_of(pool);
    const BufferStore* store = blocks ? single_store(*blocks->back()) : nullptr;
    const Binary* division = store ? store->value.as<Binary>() : nullptr;
    if (!division || division->op != BinaryOp::kDiv || blocks->back()->iter_vars.size() != block.iter_vars.size())
      return false;
    VarMap map;
    for (size_t i = 0; i < block.iter_vars.size(); ++i)
      map.emplace(blocks->back()->iter_vars[i].var.get(), block.iter_vars[i].var);
    std::function<std::optional<Expr>(const Expr&)> as_count = [&](const Expr& e) -> std::optional<Expr> {
      auto constant = float_of(e);
      if (constant)
        return std::floor(*constant) == *constant ? std::optional(int_imm(std::lround(*constant))) : std::nullopt;
      if (const Binary* product = e.as<Binary>(); product && product->op == BinaryOp::kMul) {
        auto a = as_count(product->a), b = as_count(product->b);
        return a && b ? std::optional(*a * *b) : std::nullopt;
      }
      const Cast* cast = e.as<Cast>();
      bool is_whole = cast && dtype_of(cast->value).is_integral();
      return is_whole ? std::optional(cast_to(cast->value, kInt64)) : std::nullopt;
    };
    std::optional<Expr> ours = as_count(count), theirs = as_count(substitute(division->b, map));
    return ours && theirs && are_equal(*ours, *theirs, block);
  }

  // Proves that two numbers are equal for all values of the block's axes, at worst by trying them.
  static bool are_equal(const Expr& a, const Expr& b, const Block& block) {
    if (facts_of(block).can_prove_equal(a, b)) return true;
    std::vector<std::pair<VarRef, int64_t>> axes;
    int64_t points = 1;
    for (const IterVar& axis : block.iter_vars) {
      if (!uses_var(a, axis.var) && !uses_var(b, axis.var)) continue;
      auto extent = as_int(axis.domain.extent);
      if (!extent || *extent < 1 || *extent > kMostPoints / points) return false;
      points *= *extent;
      axes.emplace_back(axis.var, *extent);
    }
    for (int64_t point = 0; point < points; ++point) {
      VarMap at;
      int64_t rest = point;
      for (const auto& [axis, extent] : axes) {
        at.emplace(axis.get(), int_imm(rest % extent, dtype_of(axis)));
        rest /= extent;
      }
      auto left = as_int(simplify(substitute(a, at))), right = as_int(simplify(substitute(b, at)));
      if (!left || left != right) return false;
    }
    return true;
  }

  std::optional<Recognized> product(const Block& block, const Reduction& reduction) {
    const Binary* product = reduction.value.as<Binary>();
    if (!product || reduction.op != BinaryOp::kAdd || !is_zero(reduction.init) || product->op != BinaryOp::kMul)
      return std::nullopt;
    const BufferLoad *a = product->a.as<BufferLoad>(), *b = product->b.as<BufferLoad>();
    if (!a || !b || !find(a->buffer) || !find(b->buffer)) return std::nullopt;
    for (auto [data, weight] : {std::pair{a, b}, std::pair{b, a}}) {
      if (auto found = convolution(block, *data, *weight)) return found;
      if (auto found = matmul(block, *data, *weight)) return found;
    }
    return std::nullopt;
  }

  // out[..., i, j] += data[..., i, k] * weight[k, j], or weight[j, k], with a constant weight.
  std::optional<Recognized> matmul(const Block& block, const BufferLoad& data, const BufferLoad& weight) {
    std::vector<IterVar> axes = axes_of(block, IterKind::kSpatial), reduced = axes_of(block, IterKind::kReduce);
    const Expr& matrix = find(weight.buffer)->value;
    if (axes.empty() || reduced.size() != 1 || weight.indices.size() != 2 || !matrix.is<Constant>())
      return std::nullopt;
    std::vector<IterVar> rows(axes.begin(), axes.end() - 1);
    rows.push_back(reduced[0]);
    const VarRef &column = axes.back().var, &depth = reduced[0].var;
    if (!is_at(data.indices, rows) || !has_extents(data.buffer, rows)) return std::nullopt;
    bool is_plain = same_node(weight.indices[0], depth) && same_node(weight.indices[1], column);
    bool is_transposed = same_node(weight.indices[1], depth) && same_node(weight.indices[0], column);
    std::vector<IterVar> order = is_plain ? std::vector{reduced[0], axes.back()} : std::vector{axes.back(), reduced[0]};
    if ((!is_plain && !is_transposed) || !has_extents(weight.buffer, order)) return std::nullopt;
    Expr right = is_plain ? matrix : permute_dims(matrix, {1, 0}, builder_);
    return Recognized{builder_.op(ops::short_name(ops::kMatmul), {find(data.buffer)->value, right})};
  }

  // Returns whether the axes go through the whole buffer.
  static bool has_extents(const Buffer& buffer, const std::vector<IterVar>& axes) {
    return std::ranges::equal(buffer_type(buffer).shape, axes, equal_extents);
  }

  std::optional<Recognized> convolution(const Block& block, const BufferLoad& data, const BufferLoad& weight) {
    std::vector<IterVar> axes = axes_of(block, IterKind::kSpatial);
    const std::vector<Expr>& dims = buffer_type(weight.buffer).shape;
    if (axes.size() != 4 || data.indices.size() != 4 || dims.size() != 4) return std::nullopt;
    auto moved = windows(block, {data.indices[2], data.indices[3]}, {axes[2], axes[3]});
    if (!moved) return std::nullopt;
    // The weight's dims in the order [filter, channel, row, column]. A dim of 1 whose index is 0 is a row or column of
    // a window of 1, else the channel; so is any other index.
    std::vector<int64_t> order = {-1, -1, -1, -1};
    const std::optional<VarRef> roles[] = {axes[1].var, std::nullopt, moved->taps[0], moved->taps[1]};
    for (size_t d = 0; d < 4; ++d) {
      const Expr& index = weight.indices[d];
      size_t role = 0;
      while (role < 4 && !(roles[role] && same_node(index, *roles[role]))) ++role;
      for (size_t side : {2, 3}) {
        if (role == 4 && is_int(index, 0) && !roles[side] && order[side] < 0) role = side;
      }
      int64_t& place = order[role < 4 ? role : 1];
      if (place >= 0) return std::nullopt;
      place = static_cast<int64_t>(d);
    }
    auto channels = as_int(buffer_type(data.buffer).shape[1]), depth = as_int(dims[static_cast<size_t>(order[1])]);
    if (!channels || !depth || *depth < 1 || *channels % *depth != 0) return std::nullopt;
    Source source = source_of(*find(data.buffer), [](double fill) { return fill == 0; });
    ConvAttrs<2> attrs{.strides = moved->strides, .dilation = moved->dilation, .groups = *channels / *depth};
    if (!is_convolution(block, data, weight, order, attrs)) return std::nullopt;
    attrs.padding = source.padding;
    bool is_plain = std::ranges::is_sorted(order);
    const Expr& filters = find(weight.buffer)->value;
    Expr kernel = is_plain ? filters : permute_dims(filters, order, builder_);
    return Recognized{builder_.op(ops::short_name(ops::kConv2d), {source.data, kernel}, attrs)};
  }

  // Returns whether the operator's own program, of the data as it is and of the weight's dims in this order, has the
  // block's extents and accesses.
  bool is_convolution(const Block& block, const BufferLoad& data, const BufferLoad& weight,
                      const std::vector<int64_t>& order, const ConvAttrs<2>& attrs) {
    auto in_order = [&](const std::vector<Expr>& list) {
      return map_each(order, [&](int64_t d) { return list[static_cast<size_t>(d)]; });
    };
    Expr x = make_var("x", tensor_type(buffer_type(data.buffer).shape, kFloat32));
    Expr w = make_var("w", tensor_type(in_order(buffer_type(weight.buffer).shape), kFloat32));
    Expr conv = call(op_ref(ops::kConv2d), {x, w}, write_attrs(attrs), object_type());
    auto blocks = blocks_of(conv);
    if (!blocks || blocks->size() != 1) return false;
    const Block& expected = *(*blocks)[0];
    const BufferStore* store = single_store(expected);
    auto reduction = match_reduction(expected);
    if (!store || !reduction) return false;
    std::vector<Ref<BufferLoad>> loads = loads_of(reduction->value);
    if (loads.size() != 2) return false;
    // The expected axes, n, filter, y, x and then channel, row, column of the window, in the block's terms.
    std::vector<IterVar> axes = axes_of(block, IterKind::kSpatial), taps = axes_of(block, IterKind::kReduce);
    std::vector<IterVar> wanted = expected.iter_vars;
    VarMap map;
    size_t matched = 0;
    std::vector<Expr> at = in_order(weight.indices);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Expr& ours = i < 4 ? Expr(axes[i].var) : at[i - 3];
      const IterVar* axis = find_item(block.iter_vars, ours.get(), [](const IterVar& each) { return each.var.get(); });
      if (axis ? equal_dims(axis->domain.extent, wanted[i].domain.extent) != Verdict::kProven
               : !is_int(wanted[i].domain.extent, 1) || !is_int(ours, 0))
        return false;
      matched += axis ? 1 : 0;
      map.emplace(wanted[i].var.get(), ours);
    }
    // Each of the block's axes stands for one.
    if (matched != block.iter_vars.size()) return false;
    Analyzer facts = facts_of(block);
    auto equal = [&](const std::vector<Expr>& a, const std::vector<Expr>& b) {
      return std::ranges::equal(a, b, [&](const Expr& ours, const Expr& theirs) {
        return facts.can_prove_equal(ours, substitute(theirs, map));
      });
    };
    return equal(data.indices, loads[0]->indices) && equal(at, loads[1]->indices);
  }

  // Returns the blocks of an operator's own program; nullopt where there is no such operator.
  std::optional<std::vector<Ref<Block>>> blocks_of(const Expr& op) const {
    try {
      return find_nests(ops_.find(op_name(op))->legalize({*op.as<Call>(), builder_.span()}));
    } catch (const CompileError&) {
      return std::nullopt;
    }
  }

  static constexpr int kMostOperators = 64;      // of one block
  static constexpr int64_t kMostPoints = 20000;  // at which counts are compared
  const OpTable& ops_;
  Builder& builder_;
  std::unordered_map<const NodeHeader*, Recognized>& values_;  // by buffer of the program
  std::unordered_map<const NodeHeader*, Fold> sums_;           // over windows, by buffer
  int size_ = 0;
};

class ProgramRecognizer final : public GraphRewriter {
 public:
  // `takes_elementwise`: also programs without a convolution, pool or product.
  ProgramRecognizer(const PassContext& context, const IRModule& module, bool takes_elementwise)
      : GraphRewriter(context.ops), context_(context), module_(module), takes_elementwise_(takes_elementwise) {}

  bool found = false;

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    if (binding.cast || !as_call(binding.value, ops::kCallTir)) return std::nullopt;
    std::optional<KernelCall> call = as_kernel_call(binding.value, module_);
    std::optional<PrimFuncRef> called = call ? called_program(call->callee, module_) : std::nullopt;
    if (!called || call->outputs.size() != 1 || (*called)->attrs.get_bool(attr_names::kIsScheduled, false) ||
        is_named(call->name()))
      return std::nullopt;
    PrimFuncRef program = with_single_stores(promote_indices(normalize_loops(*called)));
    KernelMatch match = match_kernel(*call, program);
    if (match.operands.empty() || !match.contradictions.empty() || !call->in_place.empty() ||
        !unproven_dims(match).empty())
      return std::nullopt;
    return operators_for(*call, program, match, builder);
  }

 private:
  bool is_named(const std::string& program) const {
    return kernel_of(program, context_) || std::ranges::any_of(context_.schedules, [&](const ScheduleRule& rule) {
             return rule.function == program || rule.op == program;
           });
  }

  std::optional<Expr> operators_for(const KernelCall& call, const PrimFuncRef& program, const KernelMatch& match,
                                    Builder& builder) {
    // Operators are emitted to a builder of their own, and to the graph's when all blocks are recognized.
    Builder emitted(ops_);
    emitted.set_span(builder.span());
    std::unordered_map<const NodeHeader*, Recognized> values;
    VarMap map = match.dims;  // to the graph's terms
    std::optional<Buffer> output;
    std::vector<VarRef> params;
    for (const KernelOperand& operand : match.operands) {
      const Type& type = operand.type;
      if (!known_shape(type) || !tensor_dtype(type)) return std::nullopt;
      Buffer buffer = make_buffer(operand.param->name, *tensor_dtype(type), *known_shape(type));
      map.emplace(operand.param.get(), buffer);
      params.push_back(buffer);
      if (operand.is_output) {
        output = buffer;
      } else {
        const Expr& tensor = call.tensors[operand.number];
        const Recognized* known = find_value(known_, tensor.get());
        values.insert_or_assign(buffer.get(), known ? *known : Recognized{tensor});
      }
    }
    if (!output) return std::nullopt;
    auto blocks = find_nests(make_prim_func({params, substitute(program->body, map), {}}, program.span()));
    if (!blocks) return std::nullopt;
    BlockRecognizer recognizer(ops_, emitted, values);
    for (const Ref<Block>& block : *blocks) {
      bool stores_input = std::ranges::any_of(
          params, [&](const VarRef& param) { return !same_node(param, *output) && stores_to(block->body, param); });
      if (stores_input || !recognizer.run(*block)) return std::nullopt;
    }
    const Recognized* result = find_value(values, output->get());
    if (!result || (!recognizer.has_anchor && !takes_elementwise_ && !result->border)) return std::nullopt;
    found = found || recognizer.has_anchor;
    // The operators are pure. They were one kernel and may become one again.
    if (!in_dataflow_) builder.begin_dataflow();
    for (Binding& each : bindings_of(emitted.finish(result->value))) builder.keep(std::move(each));
    if (!in_dataflow_) builder.end_dataflow({});
    known_.insert_or_assign(result->value.get(), *result);
    return result->value;
  }

  const PassContext& context_;
  const IRModule& module_;
  bool takes_elementwise_;
  std::unordered_map<const NodeHeader*, Recognized> known_;  // padded data, by the graph's variable
};

}  // namespace

IRModule recognize(IRModule module, PassContext& context) {
  return map_functions(module, [&](const FunctionRef& function) {
    ProgramRecognizer anchors(context, module, false);
    FunctionRef result = anchors.run(function);
    return anchors.found ? ProgramRecognizer(context, module, true).run(result) : function;
  });
}

}  // namespace relaxc
