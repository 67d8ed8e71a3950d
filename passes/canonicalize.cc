// Expects: operators on leaves. Guarantees: no rule of the table below applies. Each rule replaces a value by one that
// is never worse and equal bit for bit.
#include <algorithm>

#include "ir/constants.h"
#include "ir/layout.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "passes/graph_rewriter.h"
#include "support/lists.h"
#include "tir/index_map.h"

namespace relaxc {

namespace {

// A rule sees the call, the bindings of its arguments, and a builder for the replacement.
struct Site {
  const Expr& value;
  const Call& call;
  const std::unordered_map<const NodeHeader*, Binding>& bindings;
  Builder& builder;

  // Returns argument i as a call of that operator, else null.
  const Call* arg_call(size_t i, OpName op) const {
    const Binding* binding = find_value(bindings, call.args.at(i).get());
    return binding ? as_call(binding->value, op) : nullptr;
  }
  // Returns whether argument i is a constant of one element, `number`.
  bool is_number(size_t i, double number) const { return constant_element(call.args.at(i)) == number; }
};

struct Rule {
  const char* name;
  OpName op;
  const char* doc;
  std::optional<Expr> (*apply)(const Site& site);
};

template <size_t kPlace>
std::optional<Expr> if_same_type(const Site& site) {
  const Expr& arg = site.call.args[kPlace];
  bool same = known_shape(site.value.type()) && fits(site.value.type(), arg.type()) == Verdict::kProven;
  return same ? std::optional(arg) : std::nullopt;
}
std::optional<Expr> as_reshape(const Site& site) {
  const std::vector<Expr>* shape = known_shape(site.value.type());
  return shape ? std::optional(reshape(site.call.args[0], *shape, site.builder)) : std::nullopt;
}
// Rewrites x op number, or number op x, where that is x.
template <int kNumber, size_t kPlace = 1>
std::optional<Expr> neutral(const Site& site) {
  return site.is_number(kPlace, kNumber) ? if_same_type<1 - kPlace>(site) : std::nullopt;
}
std::optional<Expr> add_zero(const Site& site) {
  std::optional<DType> dtype = tensor_dtype(site.value.type());
  return dtype && dtype->is_integral() ? neutral<0>(site) : std::nullopt;
}
std::optional<Expr> power_two(const Site& site) {
  if (!site.is_number(1, 2) || !if_same_type<0>(site)) return std::nullopt;
  return site.builder.op("multiply", {site.call.args[0], site.call.args[0]});
}
// Rewrites f(f(x)) as f(x).
std::optional<Expr> idempotent(const Site& site) {
  const std::string& op = site.call.callee.as<OpRef>()->name;
  return site.arg_call(0, OpName{op}) ? std::optional(site.call.args[0]) : std::nullopt;
}

std::vector<int64_t> axes_of(const Call& call, size_t rank) {
  return read_attrs<AxesAttrs>(call.attrs).permutation(rank);
}

std::optional<Expr> permute_identity(const Site& site) {
  std::vector<int64_t> axes = axes_of(site.call, static_cast<size_t>(known_rank(site.value.type())));
  return std::is_sorted(axes.begin(), axes.end()) ? std::optional(site.call.args[0]) : std::nullopt;
}
// A permutation that moves only axes of extent 1 moves no element.
std::optional<Expr> permute_as_reshape(const Site& site) {
  const std::vector<Expr>* shape = known_shape(site.call.args[0].type());
  if (!shape) return std::nullopt;
  int64_t last = -1;
  for (int64_t axis : axes_of(site.call, shape->size())) {
    if (is_int((*shape)[static_cast<size_t>(axis)], 1)) continue;
    if (axis < last) return std::nullopt;
    last = axis;
  }
  return as_reshape(site);
}
std::optional<Expr> permute_permute(const Site& site) {
  const Call* inner = site.arg_call(0, ops::kPermuteDims);
  if (!inner) return std::nullopt;
  size_t rank = static_cast<size_t>(known_rank(site.value.type()));
  std::vector<int64_t> axes = axes_of(site.call, rank), inner_axes = axes_of(*inner, rank);
  for (int64_t& axis : axes) axis = inner_axes[static_cast<size_t>(axis)];
  return permute_dims(inner->args[0], axes, site.builder);
}
// Returns the places of a layout's dims, first by axis, then from the outer to the inner part.
std::vector<size_t> dims_by_axis(const Layout& layout) {
  std::vector<size_t> places;
  for (size_t axis = 0; axis < layout.axes().size(); ++axis)
    std::ranges::copy(layout.parts_of(axis), std::back_inserter(places));
  return places;
}
// Returns the tensor in the layout by reshapes and a permutation; nullopt where it is padded.
std::optional<Expr> into_layout(const Expr& x, const Layout& layout, Builder& b) {
  const std::vector<Expr>& dims = *known_shape(x.type());
  if (layout.is_padded(dims)) return std::nullopt;
  const std::vector<Expr> result = layout.from_plain(dims);
  std::vector<int64_t> order(layout.dims().size(), -1);
  std::vector<Expr> split;
  for (size_t place : dims_by_axis(layout)) {
    order[place] = std::ssize(split);
    split.push_back(result[place]);
  }
  std::erase(order, -1);  // dims of one
  return reshape(permute_dims(reshape(x, std::move(split), b), std::move(order), b), result, b);
}
// Returns the tensor in the plain order; nullopt where its dims are not those of the layout.
std::optional<Expr> out_of_layout(const Expr& x, const Layout& layout, Builder& b) {
  const std::vector<Expr>& dims = *known_shape(x.type());
  std::vector<Expr> present;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Layout::Dim& dim = layout.dims()[d];
    if (dim.axis ? dim.block > 0 && !is_int(dims[d], dim.block) : !is_int(dims[d], 1)) return std::nullopt;
    if (dim.axis) present.push_back(dims[d]);
  }
  std::vector<int64_t> order;
  for (size_t place : dims_by_axis(layout)) {
    order.push_back(std::ranges::count_if(std::span(layout.dims()).first(place),
                                          [](const Layout::Dim& dim) { return dim.axis.has_value(); }));
  }
  return reshape(permute_dims(reshape(x, std::move(present), b), std::move(order), b), layout.to_plain(dims), b);
}
std::optional<Expr> reshape_reshape(const Site& site) {
  const Call* inner = site.arg_call(0, ops::kReshape);
  if (!inner) return std::nullopt;
  return site.builder.op("reshape", {inner->args[0], site.call.args[1]});
}
// A transform that splits axes, permutes them and puts ones between them, or the inverse of such a one.
std::optional<Expr> transform_as_permute(const Site& site) {
  const auto attrs = read_attrs<LayoutTransformAttrs>(site.call.attrs);
  const auto map = read_index_map(attrs.index_map, site.value.span());
  const std::vector<Expr>* dims = known_shape(site.call.args[0].type());
  if (!map || !dims || (*map)->params.size() != dims->size()) return std::nullopt;
  if (const auto layout = Layout::of_index_map(**map)) return into_layout(site.call.args[0], *layout, site.builder);
  const auto layout = Layout::of_inverse_map(**map);
  return layout ? out_of_layout(site.call.args[0], *layout, site.builder) : std::nullopt;
}
std::optional<Expr> concat_one(const Site& site) {
  const Tuple* items = site.call.args[0].as<Tuple>();
  return items && items->items.size() == 1 ? std::optional(items->items[0]) : std::nullopt;
}
// The operands of dequantize for some of its rows: these are taken of the numbers and parameters, along one axis,
// instead of the results.
class TakenParameters {
 public:
  TakenParameters(const Site& site, const Call& dequantize)
      : site_(site),
        attrs_(read_attrs<DequantizeAttrs>(dequantize.attrs)),
        take_(read_attrs<TakeAttrs>(site.call.attrs)),
        rank_(known_rank(dequantize.args[0].type())) {
    const Type& index = site.call.args[1].type();
    index_rank_ = index.is<PrimType>() ? 0 : known_rank(index);
    taken_ = take_.axis ? from_begin(*take_.axis) : 0;
    // One parameter for each row is a block as long as the row.
    has_row_parameters_ = attrs_.block_size == 0 && from_begin(attrs_.axis) == taken_;
    const auto dims = constant_shape(dequantize.args[0].type());
    can_take_ = dims && rank_ >= 1 && index_rank_ >= 0 && (take_.axis || rank_ == 1) && take_.mode != "nan" &&
                (has_row_parameters_ ? rank_ == 2 : from_begin(attrs_.axis) != taken_);
    if (can_take_ && has_row_parameters_) row_size_ = dims->at(taken_ == 0 ? 1 : 0);
    can_take_ = can_take_ && row_size_ > 0;
  }
  bool can_take() const { return can_take_; }

  Expr rows_of(const Expr& numbers) const { return site_.builder.op("take", {numbers, site_.call.args[1]}, take_); }
  Expr parameter(const Expr& parameter) const {
    if (is_one_element(parameter.type()) || (!has_row_parameters_ && attrs_.block_size == 0)) return parameter;
    if (!has_row_parameters_) return rows_of(parameter);
    const Expr& count = known_shape(parameter.type())->at(0);
    const std::vector<Expr> column = {count, int_imm(1)}, row = {int_imm(1), count};
    return rows_of(reshape(parameter, taken_ == 0 ? column : row, site_.builder));
  }
  DequantizeAttrs attrs() const {
    DequantizeAttrs result = attrs_;
    const int64_t axis = has_row_parameters_ ? 1 - taken_ : from_begin(attrs_.axis);
    result.axis = axis < taken_ ? axis : axis - 1 + index_rank_;
    if (has_row_parameters_) result.block_size = row_size_;
    return result;
  }

 private:
  int64_t from_begin(int64_t axis) const { return axis < 0 ? axis + rank_ : axis; }

  const Site& site_;
  DequantizeAttrs attrs_;
  TakeAttrs take_;
  int64_t rank_, index_rank_ = 0, taken_ = 0, row_size_ = 1;
  bool has_row_parameters_ = false, can_take_ = false;
};
// The rows of an embedding whose numbers have few bits are taken as such, so that the table stays as it is.
std::optional<Expr> take_dequantized(const Site& site) {
  const Call* dequantize = site.arg_call(0, ops::kDequantize);
  if (!dequantize || !dequantize->args[0].is<Constant>() || !known_shape(site.value.type())) return std::nullopt;
  const TakenParameters taken(site, *dequantize);
  if (!taken.can_take()) return std::nullopt;
  return site.builder.op(
      "dequantize",
      {taken.rows_of(dequantize->args[0]), taken.parameter(dequantize->args[1]), taken.parameter(dequantize->args[2])},
      taken.attrs());
}
constexpr OpName kScatterElements{"relax.scatter_elements"};
// Indices that are the same along all axes but the first are those of slices, which are read and stored as a whole.
std::optional<Expr> scatter_slices(const Site& site) {
  const auto attrs = read_attrs<ScatterElementsAttrs>(site.call.attrs);
  const Call* check = site.arg_call(1, ops::kCheckIndices);
  const Binding* made = find_value(site.bindings, (check ? *check : site.call).args[check ? 0 : 1].get());
  const Call* stretched = made ? as_call(made->value, ops::kBroadcastTo) : nullptr;
  const std::vector<Expr>*data = known_shape(site.value.type()), *updates = known_shape(site.call.args[2].type());
  const std::vector<Expr>* rows = stretched ? known_shape(stretched->args[0].type()) : nullptr;
  if (!rows || !data || !updates || rows->size() != data->size()) return std::nullopt;
  auto same = [](const Expr& a, const Expr& b) { return equal_dims(a, b) == Verdict::kProven; };
  bool are_slices = (attrs.axis == 0 || attrs.axis == -std::ssize(*data)) && same(rows->front(), updates->front());
  for (size_t d = 1; d < data->size(); ++d)
    are_slices = are_slices && is_int((*rows)[d], 1) && same((*data)[d], (*updates)[d]);
  if (!are_slices) return std::nullopt;
  Expr indices = reshape(stretched->args[0], {rows->front(), int_imm(1)}, site.builder);
  if (check) indices = site.builder.op("check_indices", {indices, check->args[1]}, check->attrs, "indices");
  return site.builder.op("scatter_nd", {site.call.args[0], indices, site.call.args[2]},
                         ScatterNdAttrs{attrs.reduction});
}
std::optional<Expr> constant_right(const Site& site) {
  if (!site.call.args[0].is<Constant>() || site.call.args[1].is<Constant>()) return std::nullopt;
  return call(site.call.callee, {site.call.args[1], site.call.args[0]}, site.call.attrs, site.value.type(),
              site.value.span());
}

constexpr Rule kRules[] = {
    {"constant_right", ops::kAdd, "c + x is x + c", constant_right},
    {"constant_right", ops::kMultiply, "c * x is x * c", constant_right},
    {"add_zero", ops::kAdd, "x + 0 is x (integers; -0.0 + 0.0 is not -0.0)", add_zero},
    {"subtract_zero", ops::kSubtract, "x - 0 is x", neutral<0>},
    {"multiply_one", ops::kMultiply, "x * 1 is x", neutral<1>},
    {"one_multiply", ops::kMultiply, "1 * x is x", neutral<1, 0>},
    {"divide_one", ops::kDivide, "x / 1 is x", neutral<1>},
    {"power_one", ops::kPower, "x ** 1 is x", neutral<1>},
    {"power_two", ops::kPower, "x ** 2 is x * x, which is rounded once, too", power_two},
    {"relu_relu", ops::kRelu, "relu(relu(x)) is relu(x)", idempotent},
    {"abs_abs", ops::kAbs, "abs(abs(x)) is abs(x)", idempotent},
    {"floor_floor", ops::kFloor, "floor(floor(x)) is floor(x)", idempotent},
    {"ceil_ceil", ops::kCeil, "ceil(ceil(x)) is ceil(x)", idempotent},
    {"astype_same", ops::kAstype, "a cast to the dtype that x has is x", if_same_type<0>},
    {"broadcast_same", ops::kBroadcastTo, "a broadcast to the shape that x has is x", if_same_type<0>},
    {"reshape_same", ops::kReshape, "a reshape to the shape that x has is x", if_same_type<0>},
    {"reshape_reshape", ops::kReshape, "the inner of two reshapes does nothing", reshape_reshape},
    {"flatten_reshape", ops::kFlatten, "flatten is a reshape", as_reshape},
    {"squeeze_reshape", ops::kSqueeze, "squeeze is a reshape", as_reshape},
    {"expand_dims_reshape", ops::kExpandDims, "expand_dims is a reshape", as_reshape},
    {"transform_permute", ops::kLayoutTransform, "axes that are split, permuted or joined: reshape, permute, reshape",
     transform_as_permute},
    {"permute_identity", ops::kPermuteDims, "axes in order: x", permute_identity},
    {"permute_as_reshape", ops::kPermuteDims, "only axes of extent 1 move: a reshape", permute_as_reshape},
    {"permute_permute", ops::kPermuteDims, "two permutations are one", permute_permute},
    {"take_dequantized", ops::kTake, "rows of a dequantized constant are dequantized rows", take_dequantized},
    {"scatter_slices", kScatterElements, "elements at indices stretched along all but the first axis: slices",
     scatter_slices},
    {"concat_one", ops::kConcat, "a concatenation of one tensor is the tensor", concat_one},
};

class Canonicalizer final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;
  bool changed = false;

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& builder) override {
    bindings_.insert_or_assign(binding.var.get(), binding);
    if (binding.cast && !says_nothing(binding)) return std::nullopt;
    // A leaf bound to a name is the leaf; compound scalars keep their names, which keep the dims made of them short.
    bool compound = binding.value.type().is<PrimType>() && !binding.value.is<Var>() && !binding.value.is<IntImm>();
    if (is_leaf(binding.value) && !compound && !binding.value.is<StringImm>()) return binding.value;
    if (const TupleGetItem* item = binding.value.as<TupleGetItem>()) {
      if (const Tuple* tuple = item->tuple.as<Tuple>()) return tuple->items.at(static_cast<size_t>(item->index));
    }
    const std::string& op = op_name(binding.value);
    if (op.empty()) return std::nullopt;
    Site site{binding.value, *binding.value.as<Call>(), bindings_, builder};
    for (const Rule& rule : kRules) {
      std::optional<Expr> replacement = op == rule.op ? rule.apply(site) : std::nullopt;
      changed = changed || replacement;
      if (replacement) return replacement;
    }
    return std::nullopt;
  }

 private:
  // Returns whether a cast is to the type that its value has by an operator's rule. A type that is stated, as that of a
  // function's result, may be wrong: its cast is a check.
  bool says_nothing(const Binding& binding) const {
    const Binding* made = find_value(bindings_, binding.value.get());
    const Call* call = made && !made->cast ? made->value.as<Call>() : nullptr;
    const bool is_inferred = call && call->callee.is<OpRef>() && call->type_args.empty();
    return is_inferred && structural_equal(*binding.cast, binding.value.type());
  }

  std::unordered_map<const NodeHeader*, Binding> bindings_;
};

}  // namespace

IRModule canonicalize(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](FunctionRef function) {
    // Each rule makes the graph smaller or moves it toward reshapes and constants on the right, so this ends; the bound
    // stops a rule that does not.
    for (int round = 0; round < 20; ++round) {
      Canonicalizer pass(context.ops);
      function = pass.run(function);
      if (!pass.changed) break;
    }
    return function;
  });
}

}  // namespace relaxc
