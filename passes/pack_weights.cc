// Expects: operators on leaves. Guarantees: constant weights lie in the order in which kernels read them (ir/layout.h):
//   nn.conv2d, 3x3 with stride 1, where Winograd's algorithm is faster: a call_tir of its program (winograd.h);
//   nn.conv2d of images in channel blocks (choose_layouts): OIHW16i16o, depthwise and from pictures OIHW16o; where an
//   instruction sums 4 or 2 products in each lane, OIHW4i16o4i and OIHW8i16o2i, depthwise OIHW16o4w;
//   matmul with a constant right operand KN: a call_tir that reads panels of a register tile's columns, NK32n, or,
//   where the target sums 4 or 2 products at once (int8, bfloat16), NK32n4k or NK32n2k; one whose columns are used in
//   bands (product_bands.h) reads NKB16n.
// R.layout_transform stands before them, which fold_constants applies to constants.
#include <algorithm>
#include <map>
#include <numeric>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/fold.h"
#include "ops/layouts.h"
#include "passes/compose.h"
#include "passes/graph_decisions.h"
#include "passes/packed_matmul.h"
#include "passes/product_bands.h"
#include "passes/quantized_values.h"
#include "passes/winograd.h"
#include "passes/winograd_transforms.h"
#include "support/checked_math.h"
#include "support/joined.h"
#include "tir/analysis/annotations.h"
#include "tir/compute.h"
#include "tir/intrin/tensor_intrin.h"
#include "tir/rules/choose.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/lanes.h"

namespace relaxc {

namespace {

class WeightPacker final : public GraphRewriter {
 public:
  WeightPacker(const PassContext& context, IRModule& module)
      : GraphRewriter(context.ops), context_(context), target_(context.target), module_(module) {}

  FunctionRef pack(const FunctionRef& function) {
    bands_ = find_product_bands(function, context_.ops);
    FunctionRef result = run(function);
    report_skipped_rules();
    return result;
  }

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    // The product itself, and what is computed from all of its columns, is no longer used.
    if (bands_.products.contains(binding.var.get())) return pack_bands(*binding.value.as<Call>(), binding, b);
    if (bands_.behind.contains(binding.var.get())) return keep_behind(binding);
    if (const auto* slice = find_value(bands_.slices, binding.var.get()))
      return band_of(slice->of, slice->band, binding.var.type(), b);
    if (const Call* conv = as_call(binding.value, ops::kConv2d)) {
      if (auto tile = winograd_tile(*conv, binding)) return winograd_conv2d(*conv, binding, *tile, module_, target_, b);
      return pack_conv2d(*conv, binding, b);
    }
    if (const Call* matmul = as_call(binding.value, ops::kMatmul)) return pack_matmul(*matmul, binding, b);
    return std::nullopt;
  }

 private:
  // Returns the tile of Winograd's algorithm, or nullopt for a direct convolution.
  std::optional<int64_t> winograd_tile(const Call& conv, const Binding& binding) {
    if (!can_be_winograd(conv, binding, target_)) return std::nullopt;
    const std::vector<int64_t> filters = *constant_shape(conv.args[1].type());
    const WindowSums sums{.channels = filters[1],
                          .filters = filters[0],
                          .has_constant_weight = conv.args[1].is<Constant>(),
                          .out = *known_shape(binding.value.type())};
    const bool is_integer = tensor_dtype(conv.args[1].type()) != kFloat32;
    auto choice = [&](double most_error) {
      return is_integer
                 ? WinogradChoice{gains_by_integers(conv, binding.value.type(), most_error, target_), kTileOfIntegers}
                 : choose_winograd(sums, most_error, target_);
    };
    const WinogradChoice by_formula = choice(kWinogradError), chosen = choice(context_.winograd_error);
    auto name_of = [](bool gains) { return AttrValue(gains ? "winograd" : "direct"); };
    const bool is_direct = !chosen.gains || users_rule_fits(conv, binding);
    const bool is_chosen = decide("convolution_algorithm", "algorithm", binding.var, context_, {"direct", "winograd"},
                                  name_of(by_formula.gains), name_of(!is_direct)) == name_of(true);
    if (!is_chosen) return std::nullopt;
    skip_rules(binding);
    AttrList tiles;
    for (int64_t tile : winograd::MinimalFiltering::tiles()) {
      if (!is_integer || tile == by_formula.tile) tiles.emplace_back(tile);
    }
    return *decide("convolution_algorithm", "tile", binding.var, context_, tiles, by_formula.tile, chosen.tile)
                .as<int64_t>();
  }

  static bool is_for_convolutions(const ScheduleRule& rule) {
    return rule.op == ops::short_name(ops::kConv2d) && rule.function.empty() &&
           (rule.uses.empty() || rule.uses == "convolution");
  }

  // Says which convolutions the rules for them are not tried on.
  void report_skipped_rules() const {
    if (!context_.report || skipped_.empty()) return;
    constexpr size_t kMostNames = 4;
    std::string names = joined(std::span(skipped_).first(std::min(skipped_.size(), kMostNames)));
    if (skipped_.size() > kMostNames) names += fmt::format(" and {} more", skipped_.size() - kMostNames);
    for (const ScheduleRule& rule : context_.schedules) {
      if (!is_for_convolutions(rule) || !rule.apply) continue;
      context_.report(
          fmt::format("schedule rule '{}' is not tried on {}: the graph chose Winograd's algorithm there, which "
                      "S.use(\"convolution_algorithm\", algorithm=\"direct\") or --winograd-error 0 prevents",
                      rule.name, names));
    }
  }

  // Notes that rules for convolutions are not tried on this one.
  void skip_rules(const Binding& binding) {
    if (std::ranges::any_of(context_.schedules, is_for_convolutions)) skipped_.push_back(operator_name(binding.var));
    if (!context_.claimed) return;
    for (const ScheduleRule& rule : context_.schedules) {
      if (!is_for_convolutions(rule)) continue;
      context_.claimed({binding.var.span(), ops::short_name(ops::kConv2d), fmt::format("rule '{}'", rule.name),
                        fmt::format("skipped: the graph chose Winograd's algorithm for this convolution; "
                                    "S.use(\"convolution_algorithm\", at=\"{}\", algorithm=\"direct\") or "
                                    "--winograd-error 0 keeps it",
                                    operator_name(binding.var))});
    }
  }

  // Returns whether a convolution rule of the user's fits the direct form of this one, as it is before fusion.
  bool users_rule_fits(const Call& conv, const Binding& binding) const {
    const OpRow* row = context_.ops.find(ops::kConv2d.text);
    std::optional<PrimFuncRef> program;
    for (const ScheduleRule& rule : context_.schedules) {
      if (!is_for_convolutions(rule)) continue;
      if (!program) {
        Call direct = conv;
        const Layout layout = *packed_layout_of(conv, binding);
        direct.attrs = conv.attrs.with("kernel_layout", layout.text());
        std::vector<Expr> packed = layout.from_plain(*known_shape(conv.args[1].type()));
        direct.args[1] = make_var("weight", tensor_type(std::move(packed), *tensor_dtype(conv.args[1].type())));
        program = with_op_name(row->legalize(OpCall{direct, binding.var.span()}), ops::short_name(ops::kConv2d));
      }
      if (schedule_by_rule(rule, "conv2d", *program, target_, false).program) return true;
    }
    return false;
  }

  // Returns the columns of a tile, or 0 when they do not divide the extent.
  int64_t columns_of(int64_t extent, DType dtype) const {
    int64_t columns = choose_column_tile(extent, target_.vector_lanes(dtype.bits)).columns();
    return extent > 0 && extent % columns == 0 ? columns : 0;
  }
  // Returns the columns of a panel where the last ones may be padding: whole vectors of a tile, unless they are much
  // more than the extent.
  int64_t columns_of_padded(int64_t extent, DType dtype) const {
    const int64_t lanes = target_.vector_lanes(dtype.bits), wide = lanes * cost_model::kSideBySide;
    const int64_t exact = columns_of(extent, dtype);
    for (int64_t columns : {wide, lanes}) {
      if (exact >= columns) return exact;
      if ((round_up(extent, columns) - extent) * cost_model::kLeastPaddedPart <= extent) return columns;
    }
    return exact;
  }
  // Returns the columns of all panels: as many panels as a tile reads side by side where that is little more.
  static int64_t padded_columns(int64_t extent, int64_t columns) {
    if (extent % columns == 0) return extent;
    const int64_t streams = round_up(extent, columns * cost_model::kStreams);
    return (streams - extent) * cost_model::kLeastPaddedPart <= extent ? streams : round_up(extent, columns);
  }
  // Returns the columns of a panel by the decision about that product: 1 to 4 vectors, full or shorter ones.
  int64_t panel_of(int64_t extent, DType dtype, const VarRef& product) const {
    return panel_of(extent, dtype, product, columns_of_padded(extent, dtype));
  }
  int64_t panel_of(int64_t extent, DType dtype, const VarRef& product, int64_t formula) const {
    AttrList candidates = {0};
    int64_t lanes = target_.vector_lanes(dtype.bits);
    for (int64_t width : {lanes / 4, lanes / 2, lanes, 2 * lanes, 3 * lanes, 4 * lanes}) {
      if (width >= cost_model::kFewestLanes && extent % width == 0) candidates.emplace_back(width);
    }
    if (!std::ranges::count(candidates, AttrValue(formula))) candidates.emplace_back(formula);
    return *decide("constant_operand", "panel", product, context_, candidates, formula).as<int64_t>();
  }

  std::optional<Layout> packed_layout_of(const Call& node, const Binding& binding) const {
    const DType result = accumulation_dtype(tensor_dtype(binding.value.type()).value_or(kFloat32));
    const DotForm* form = find_dot_form(tensor_dtype(node.args[0].type()).value_or(kFloat32),
                                        tensor_dtype(node.args[1].type()).value_or(kFloat32), result, target_);
    return weight_layout_of(node, form ? form->group : 1);
  }

  // Images in channel blocks: the pass that laid them out has padded the weights, which may not be folded yet.
  std::optional<Expr> pack_conv2d(const Call& node, const Binding& binding, Builder& b) const {
    const auto layout = packed_layout_of(node, binding);
    if (!layout || node.attrs.get_string("kernel_layout", "") != layout->axes()) return std::nullopt;
    return b.op(ops::short_name(ops::kConv2d), {node.args[0], to_layout(node.args[1], *layout, b)},
                node.attrs.with("kernel_layout", layout->text()), binding.var->name);
  }

  std::optional<Expr> pack_matmul(const Call& node, const Binding& binding, Builder& b) {
    const std::vector<Expr>*shape = known_shape(node.args[0].type()), *dims = known_shape(node.args[1].type());
    if (!dims || dims->size() < 2 || !shape || shape->empty() || binding.cast) return std::nullopt;
    DType left = tensor_dtype(node.args[0].type()).value_or(kInt64),
          right = tensor_dtype(node.args[1].type()).value_or(kInt64);
    DType result = tensor_dtype(binding.value.type()).value_or(kInt64);
    bool floats = right.is_float() && right.bits <= 32 && (left == right || left == kFloat32) &&
                  (result == right || result == kFloat32);
    bool bytes = right == DType::int_(8) && left.is_integral() && left.bits <= 16 && result == kInt32;
    // integer_regions makes products of bytes where it gains to pack the right operand in each run.
    if (!bytes && !(floats && node.args[1].is<Constant>())) return std::nullopt;
    const size_t rank_of_batch = dims->size() - 2;
    constexpr size_t kMostBatch = 8;  // axes have names of a letter
    const bool is_batch = rank_of_batch <= kMostBatch &&
                          (bytes ? has_same_batch(*shape, *dims) : left == right && has_batch_of(*shape, *dims));
    if (rank_of_batch > 0 && !is_batch) return std::nullopt;
    const Expr &depth = (*dims)[rank_of_batch], &width = dims->back();
    if (is_int(width, 0) || is_int(depth, 0)) return std::nullopt;
    // Results are of 32 bits, whatever the operands are.
    const int64_t columns = columns_of_panels(width, accumulation_dtype(result), binding.var);
    if (columns == 0) return std::nullopt;
    const DotForm* form = find_dot_form(left, right, accumulation_dtype(result), target_);
    const auto known_depth = as_int(depth), known_width = as_int(width);
    const bool is_grouped = form && (bytes || *known_depth % form->group == 0);
    if (bytes && !is_grouped) return std::nullopt;
    const std::string batch = std::string("ABCDEFGH").substr(0, rank_of_batch);
    const std::string text =
        fmt::format("{}NK{}n{}", batch, columns, is_grouped ? fmt::format("{}k", form->group) : "");
    const PackedMatmul packed{
        .batch = {dims->begin(), dims->end() - 2},
        .depth = is_grouped ? multiple_of(depth, form->group) : depth,
        .width = width,
        .padded = known_width ? int_imm(padded_columns(*known_width, columns)) : multiple_of(width, columns),
        .layout = *Layout::parse(text, batch + "KN")};
    return emit_packed(packed, node, binding, b);
  }
  // Returns whether the left operand has the dims in front of the right one's matrices, or 1 or nothing in their place.
  static bool has_batch_of(const std::vector<Expr>& left, const std::vector<Expr>& right) {
    for (size_t behind = 3; behind <= right.size(); ++behind) {
      const bool has_dim = left.size() >= behind && !is_int(left[left.size() - behind], 1);
      if (has_dim && equal_dims(left[left.size() - behind], right[right.size() - behind]) != Verdict::kProven)
        return false;
    }
    return left.size() > 1;
  }
  // Returns the extent, or the next multiple of the block.
  static Expr multiple_of(const Expr& extent, int64_t block) {
    if (const auto known = as_int(extent)) return int_imm(round_up(*known, block));
    if (is_int(simplify(floor_mod(extent, block)), 0)) return extent;
    return simplify(floor_div(extent + (block - 1), block) * block);
  }
  int64_t columns_of_panels(const Expr& width, DType dtype, const VarRef& product) const {
    if (const auto known = as_int(width)) return panel_of(*known, dtype, product);
    // A panel has all columns of a tile: of how many panels there are, nothing is known.
    const bool has_many = target_.num_vector_registers >= cost_model::kManyRegisters;
    return target_.vector_lanes(dtype.bits) * cost_model::kSideBySide * (has_many ? cost_model::kSideBySide : 1);
  }
  // Emits the product, and before it what lays out its operands: of sizes that a run tells, both get zeros behind the
  // last elements of the sum.
  Expr emit_packed(const PackedMatmul& packed, const Call& node, const Binding& binding, Builder& b) {
    const DType left = *tensor_dtype(node.args[0].type()), right = *tensor_dtype(node.args[1].type());
    const DType result = *tensor_dtype(binding.value.type());
    std::vector<Expr> shape = *known_shape(node.args[0].type());
    shape.back() = packed.depth;
    const Expr x = padded_to(node.args[0], shape, b);
    const Expr operand = padded_to(node.args[1], followed_by(packed.batch, {packed.depth, packed.padded}), b);
    return make_call_tir(module_, "matmul", packed.program(shape, left, right, result),
                         {x, in_panels(operand, packed, b)}, {binding.value.type()}, binding.var.span());
  }
  Expr padded_to(const Expr& x, const std::vector<Expr>& dims, Builder& b) {
    const std::vector<Expr>& shape = *known_shape(x.type());
    auto is_same = [](const Expr& a, const Expr& b) { return structural_equal(a, b); };
    if (std::ranges::equal(shape, dims, is_same)) return x;
    if (constant_shape(shape_type(shape)) && constant_shape(shape_type(dims))) {
      Expr result = x;
      for (size_t d = 0; d < dims.size(); ++d) result = pad_axis(result, d, *as_int(dims[d]) - *as_int(shape[d]), b);
      return result;
    }
    const DType dtype = *tensor_dtype(x.type());
    return b.emit(
        make_call_tir(module_, "pad", padding_program(shape, dims, dtype), {x}, {tensor_type(dims, dtype)}, x.span()),
        "padded");
  }
  // Returns the operand, which has the dims of the layout's plain order, in panels.
  static Expr in_panels(const Expr& operand, const PackedMatmul& packed, Builder& b) {
    if (constant_shape(operand.type())) return to_layout(operand, packed.layout, b);
    const auto rank = std::ssize(packed.batch);
    const int64_t columns = packed.layout.block_of(packed.batch.size() + 1),
                  group = packed.layout.block_of(packed.batch.size());
    const std::vector<Expr> parts = {simplify(floor_div(packed.depth, group)), int_imm(group),
                                     simplify(floor_div(packed.padded, columns)), int_imm(columns)};
    std::vector<int64_t> axes = int_range(0, rank);
    axes.insert(axes.end(), {rank + 2, rank, rank + 3, rank + 1});
    return permute_dims(reshape(operand, followed_by(packed.batch, parts), b), axes, b);
  }

  // A vector of each band makes the width of a tile, where whole vectors make the columns.
  std::nullopt_t pack_bands(const Call& node, const Binding& binding, Builder& b) {
    const std::vector<Expr>& shape = *known_shape(node.args[0].type());
    const std::vector<int64_t>& dims = node.args[1].as<Constant>()->data.shape();
    const int64_t bands = bands_.products.at(binding.var.get()), columns = dims[1] / bands;
    const int64_t lanes = choose_column_tile(columns, target_.vector_lanes(kFloat32.bits)).lanes;
    const int64_t panel = panel_of(columns, kFloat32, binding.var, columns % lanes == 0 ? lanes : 0);
    const BandedMatmul banded{dims[0], bands, columns, panel};
    Expr call =
        make_call_tir(module_, "matmul", banded.program(shape, kFloat32), {node.args[0], banded.pack(node.args[1], b)},
                      {tensor_type(banded.result(shape), kFloat32)}, binding.var.span());
    banded_.emplace(binding.var.get(), b.emit(call, binding.var->name));
    return std::nullopt;
  }
  std::nullopt_t keep_behind(const Binding& binding) {
    behind_.emplace(binding.var.get(), binding);
    return std::nullopt;
  }
  // Returns a band of a product in bands, or of what is computed from it.
  Expr band_of(const NodeHeader* value, int64_t band, const Type& type, Builder& b) {
    if (const Expr* product = find_value(banded_, value)) {
      PrimFuncRef program = band_program(*known_shape(product->type()), kFloat32, band);
      return b.emit(make_call_tir(module_, "band", program, {*product}, {type}, b.span()), "band");
    }
    const auto [known, is_new] = bands_behind_.try_emplace({value, band});
    if (!is_new) return *known->second;
    const Binding& binding = behind_.at(value);
    Call call = *binding.value.as<Call>();
    const Expr columns = known_shape(type)->back();
    for (Expr& arg : call.args) {
      const std::vector<Expr>* dims = known_shape(arg.type());
      if (bands_.products.contains(arg.get()) || bands_.behind.contains(arg.get())) {
        arg = band_of(arg.get(), band, type, b);
      } else if (arg.type().is<TensorType>() && !dims->empty() && !is_int(dims->back(), 1)) {
        const Expr begin = simplify(columns * band), axis = int_imm(std::ssize(*dims) - 1);
        arg = b.op("strided_slice",
                   {arg, shape_expr({axis}), shape_expr({begin}), shape_expr({simplify(begin + columns)}),
                    shape_expr({int_imm(1)})},
                   SliceAttrs{.assume_inbound = true});
      }
    }
    Expr result = b.op(ops::short_name(op_name(binding.value)), std::move(call.args), call.attrs, binding.var->name);
    bands_behind_.at({value, band}) = result;
    return result;
  }

  const PassContext& context_;
  const Target& target_;
  IRModule& module_;
  ProductBands bands_ = {};
  std::vector<std::string> skipped_;                       // convolutions that the user's rules for them do not get
  std::unordered_map<const NodeHeader*, Expr> banded_;     // by the variable of the product
  std::unordered_map<const NodeHeader*, Binding> behind_;  // by variable
  std::map<std::pair<const NodeHeader*, int64_t>, std::optional<Expr>> bands_behind_;
};

}  // namespace

IRModule pack_weights(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& result) {
    return is_primitive(*function) ? function : WeightPacker(context, result).pack(function);
  });
}

}  // namespace relaxc
