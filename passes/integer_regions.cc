// Expects: weights that stay in 8 bits (fold_parameters), the user's kernels in their places. Guarantees: the parts of
// a graph that compute with quantized values compute with their integers.
//   dequantize moves behind what only moves numbers, or takes the largest (kMovesOfNumbers): fewer bytes are moved;
//   quantize of dequantize by the same parameters is the integers, and parts of a concatenation are quantized each;
//   convolutions and products of dequantized values, and those of int32 that importers write for QLinearConv and
//   MatMulInteger, are sums of products of 8 bits with a constant weight, exact in int32 (quantized_values.h), and so
//   are those with a weight that only the run knows, of matrices where there are enough rows, of any size;
//   means are quotients of sums of integers (quantized_means.h);
//   quantize behind such a sum multiplies once by scale_x * scale_w / scale_y and rounds, as ONNX defines QLinearConv.
//   A bias in int32 of the scale scale_x * scale_w is added to the sum.
// Results are those of the reference arithmetic, bit for bit, but for sums of dequantized values: float32 rounds them
// in some order, and here they are exact before the one rounding. So a quantized result differs by one step where these
// roundings decide between two. Jacob et al., "Quantization and Training of Neural Networks for Efficient
// Integer-Arithmetic-Only Inference" (2018), describes the arithmetic.
#include <algorithm>
#include <set>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/window.h"
#include "passes/compose.h"
#include "passes/quantized_means.h"
#include "passes/quantized_values.h"
#include "support/lists.h"
#include "tir/dot_forms.h"

namespace relaxc {

namespace {

constexpr DType kInt8 = DType::int_(8), kUInt8 = DType::uint(8);
constexpr int64_t kFewestRowsToPack = 16;
constexpr double kSameScale = 1e-6;  // relative difference of scales that are meant to be equal

// Operators that move the numbers of argument 0 (concat: of all), or take the largest of some, without arithmetic.
constexpr OpName kMovesOfNumbers[] = {ops::kReshape,     ops::kFlatten,   ops::kSqueeze,      ops::kExpandDims,
                                      ops::kPermuteDims, ops::kConcat,    ops::kStridedSlice, ops::kTake,
                                      ops::kBroadcastTo, ops::kMaxPool2d, ops::kPad,          ops::kResize};

// Returns whether a scale is a positive constant by which no number of 8 bits overflows, nor a sum when it is divided.
bool is_plain_scale(const Expr& scale) {
  const std::optional<double> known = constant_element(scale);
  return known && *known > 1e-30 && *known < 1e30;
}
// Returns whether a bias is constant int32s that leave room for sums.
bool is_small_bias(const Expr& bias) {
  const Constant* constant = bias.as<Constant>();
  if (!constant || constant->data.dtype() != kInt32) return false;
  for (int64_t i = 0; i < constant->data.size(); ++i) {
    if (std::abs(constant->data.as_int(i)) > INT32_MAX / 4) return false;
  }
  return true;
}
bool is_number(const Expr& arg) { return arg.is<FloatImm>(); }
bool is_byte(DType dtype) { return dtype == kInt8 || dtype == kUInt8; }
bool is_of_bytes(const Type& type) { return tensor_dtype(type) && is_byte(*tensor_dtype(type)); }

// A float32 value that is known to be act(sums * scale + bias).
struct ScaledSums {
  Expr sums;   // int32
  Expr scale;  // broadcasts to the sums
  std::optional<Expr> bias = {};
  std::vector<Call> activations = {};  // relu and clip, in order
};

class IntegerRegions final : public GraphRewriter {
 public:
  IntegerRegions(const PassContext& context, const FunctionRef& function)
      : GraphRewriter(context.ops),
        target_(context.target),
        activations_(activations_for_dots(context.target)),
        is_body_(!function->attrs.has(attr_names::kGlobalSymbol)) {
    count_uses(function->body);
    for (const VarRef& param : function->params) add_free_vars(param.type(), given_dims_);
  }

  FunctionRef form(const FunctionRef& function) {
    const FunctionRef result = run(function);
    return with_dims_of_sums(result, limited_dims_);
  }

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    values_.insert_or_assign(binding.var.get(), binding.value);
    const size_t before = b.size();
    std::optional<Expr> result = rewritten(binding, b);
    for (const Binding& made : b.since(before)) values_.insert_or_assign(made.var.get(), made.value);
    return result;
  }
  // Values that a branch computes are not defined behind it.
  void enter_scope() override { outside_.push_back(other_sign_); }
  void leave_scope() override {
    other_sign_ = std::move(outside_.back());
    outside_.pop_back();
  }

 private:
  std::optional<Expr> rewritten(const Binding& binding, Builder& b) {
    const Call* call = binding.cast ? nullptr : binding.value.as<Call>();
    if (!call || !call->callee.is<OpRef>() || !known_shape(binding.value.type())) return std::nullopt;
    const std::string& op = call->callee.as<OpRef>()->name;
    if (op == ops::kQuantize) return quantized(*call, binding, b);
    if (op == ops::kDequantize) return dequantized(*call, binding, b);
    if (op == ops::kAdd || op == ops::kMultiply) {
      note_scaled(*call, binding, b);
      return of_rounded_sums(*call, b);
    }
    if (find_item(kMovesOfNumbers, op, &OpName::text)) return moved(*call, b);
    if (auto mean = averaged(*call, b)) return mean;
    if (op == ops::kMatmul) return product(*call, binding, b);
    if (op == ops::kConv1d) return convolution<1>(*call, binding, b);
    if (op == ops::kConv2d) return convolution<2>(*call, binding, b);
    if (op == ops::kConv3d) return convolution<3>(*call, binding, b);
    note_scaled(*call, binding, b);
    return std::nullopt;
  }

  void count_uses(const Expr& body) {
    const SeqExpr* seq = body.as<SeqExpr>();
    if (!seq) return;
    for (const BindingBlock& block : seq->blocks) {
      for (const Binding& binding : block.bindings) {
        walk(binding.value, [&](const Ref<Var>& var) { ++uses_[var.get()]; });
      }
    }
    walk(seq->body, [&](const Ref<Var>& var) { ++uses_[var.get()]; });
  }
  bool is_used_once(const VarRef& var) const { return copy_value(uses_, var.get()).value_or(0) == 1; }

  const Call* call_of(const Expr& value, OpName name) const {
    const Expr* known = find_value(values_, value.get());
    return known ? as_call(*known, name) : nullptr;
  }

  // ---- Quantized values

  // Returns the numbers of a dequantized value.
  std::optional<QuantizedValue> real_value(const Expr& value) const {
    const Call* call = call_of(value, ops::kDequantize);
    if (!call || tensor_dtype(value.type()) != kFloat32 || !known_shape(call->args[0].type())) return std::nullopt;
    const auto attrs = read_attrs<DequantizeAttrs>(call->attrs);
    const std::optional<DType> numbers = tensor_dtype(call->args[0].type());
    // A product unpacks blocks and floats of few bits (pack_quantized).
    const bool are_integers =
        numbers && numbers->is_integral() && tensor_dtype(call->args[2].type()).value_or(*numbers).is_integral();
    if (attrs.block_size > 0 || !are_integers) return std::nullopt;
    const int64_t rank = known_rank(call->args[0].type()), axis = attrs.axis < 0 ? attrs.axis + rank : attrs.axis;
    return QuantizedValue{call->args[0], call->args[1], call->args[2], axis};
  }
  // Returns the numbers of an int32 value that is a difference of bytes, or bytes.
  std::optional<QuantizedValue> whole_value(const Expr& value) const {
    auto bytes_of = [&](const Expr& x) -> std::optional<Expr> {
      const Call* cast = call_of(x, ops::kAstype);
      const bool is_widened = cast && tensor_dtype(x.type()) == kInt32 && is_of_bytes(cast->args[0].type());
      return is_widened ? std::optional(cast->args[0]) : std::nullopt;
    };
    if (auto bytes = bytes_of(value)) return QuantizedValue{.numbers = *bytes};
    const Call* difference = call_of(value, ops::kSubtract);
    auto bytes = difference ? bytes_of(difference->args[0]) : std::nullopt;
    if (!bytes) return std::nullopt;
    QuantizedValue result{*bytes, std::nullopt, difference->args[1]};
    if (auto zero = bytes_of(difference->args[1])) result.zero = *zero;
    const std::vector<Expr>*dims = known_shape(bytes->type()), *zeros = known_shape(result.zero->type());
    for (size_t d = 0; zeros && dims && d < zeros->size(); ++d) {
      if (!is_int((*zeros)[d], 1)) result.axis = static_cast<int64_t>(dims->size() - zeros->size() + d);
    }
    return zeros && dims && zeros->size() <= dims->size() ? std::optional(result) : std::nullopt;
  }
  static bool has_one_parameter(const QuantizedValue& value) {
    return (!value.scale || is_one_element(value.scale->type())) && (!value.zero || is_one_element(value.zero->type()));
  }
  // Returns whether there is one scale and zero point for all, or for each of known places on the axis.
  static bool has_parameters_along(const QuantizedValue& value, int64_t axis) {
    return has_one_parameter(value) ||
           (value.axis == axis && (!value.zero || constant_shape(value.zero->type()).has_value()));
  }

  std::optional<Expr> dequantized(const Call& call, const Binding& binding, Builder& b) {
    const Expr* other = find_value(other_sign_, call.args[0].get());
    std::optional<Expr> result;
    if (other && constant_element(call.args[2])) {
      const Expr zero = zero_of_other_sign({.numbers = call.args[0], .zero = call.args[2]}, b);
      result = b.op("dequantize", {*other, call.args[1], zero}, call.attrs);
    }
    if (is_used_once(binding.var)) private_.insert(result ? result->get() : binding.var.get());
    return result;
  }
  // Where nothing else uses an operand's numbers, and they are sums, these stay floats that are rounded and limited:
  // the same values. It is done for one operand only: of two convolutions, the earlier one stores its numbers for the
  // later.
  std::optional<Expr> of_rounded_sums(const Call& call, Builder& b) {
    std::optional<size_t> latest, order;
    for (size_t i : {0, 1}) {
      const Call* real = private_.contains(call.args[i].get()) ? call_of(call.args[i], ops::kDequantize) : nullptr;
      const auto made = real ? copy_value(rounded_, real->args[0].get()) : std::nullopt;
      if (made && (!order || *made > *order)) order = made, latest = i;
    }
    auto value = latest ? rounded_sums(*call_of(call.args[*latest], ops::kDequantize), b) : std::nullopt;
    if (!value) return std::nullopt;
    std::vector<Expr> args = call.args;
    args[*latest] = *value;
    return b.op(call.callee.as<OpRef>()->name, std::move(args), call.attrs);
  }
  std::optional<Expr> rounded_sums(const Call& real, Builder& b) const {
    const Call* quantize = call_of(real.args[0], ops::kQuantize);
    const auto zero = constant_element(real.args[2]);
    if (!quantize || !zero || constant_element(quantize->args[2]) != zero || !constant_element(real.args[1]) ||
        !is_of_bytes(real.args[0].type()))
      return std::nullopt;
    const double least = (tensor_dtype(real.args[0].type()) == kInt8 ? -128 : 0) - *zero;
    const Expr limited = b.op("clip", {b.op("round", {quantize->args[0]}), float_imm(least), float_imm(least + 255)});
    return b.op("multiply", {limited, reshape(real.args[1], {}, b)});
  }

  // ---- Moves

  std::optional<Expr> moved(const Call& call, Builder& b) {
    std::vector<Expr> args = call.args;
    const Tuple* parts = args[0].as<Tuple>();
    const std::optional<QuantizedValue> first = real_value(parts ? parts->items[0] : args[0]);
    const bool takes_largest = call.callee.as<OpRef>()->name == ops::kMaxPool2d;
    if (!first || (takes_largest && !is_plain_scale(*first->scale))) return std::nullopt;
    // Recurrent weights, parts of which a loop reads, become floats: its kernels are joined around such a matrix.
    const bool is_weight = first->numbers.is<Constant>();
    if (is_weight && is_body_ && call.callee.as<OpRef>()->name == ops::kStridedSlice) return std::nullopt;
    if (call.callee.as<OpRef>()->name == ops::kPermuteDims) {
      if (is_weight && first->dtype().is_packed()) return std::nullopt;  // products read it transposed
      return permuted_numbers(call, *first, b);
    }
    const bool is_resize = call.callee.as<OpRef>()->name == ops::kResize;
    if (!has_one_parameter(*first) || (is_resize && !takes_nearest(call.attrs))) return std::nullopt;
    if (parts) {
      std::vector<Expr> numbers;
      for (const Expr& part : parts->items) {
        const std::optional<QuantizedValue> value = real_value(part);
        if (!value || !are_same(value->scale, first->scale) || !are_same(value->zero, first->zero) ||
            value->dtype() != first->dtype())
          return std::nullopt;
        numbers.push_back(value->numbers);
      }
      args[0] = tuple(std::move(numbers));
    } else {
      args[0] = first->numbers;
    }
    Attrs attrs = call.attrs;
    if (call.callee.as<OpRef>()->name == ops::kPad) {
      auto pad = read_attrs<PadAttrs>(attrs);
      const std::optional<double> zero = constant_element(*first->zero);
      if (!zero || (pad.pad_mode == "constant" && pad.pad_value != 0)) return std::nullopt;
      pad.pad_value = *zero;
      attrs = write_attrs(pad);
    }
    const Expr numbers = b.op(call.callee.as<OpRef>()->name, std::move(args), attrs);
    return b.op("dequantize", {numbers, *first->scale, *first->zero}, DequantizeAttrs{-1, kFloat32});
  }
  static bool takes_nearest(const Attrs& attrs) {
    const auto resize = read_attrs<ResizeAttrs>(attrs);
    return resize.method == "nearest" && !resize.antialias &&
           resize.coordinate_transformation_mode != "tf_crop_and_resize";
  }
  std::optional<Expr> averaged(const Call& call, Builder& b) const {
    const std::optional<QuantizedValue> x = call.args.empty() ? std::nullopt : real_value(call.args[0]);
    const bool has_bytes = x && has_one_parameter(*x) && is_of_bytes(x->numbers.type());
    return has_bytes ? mean_of_integers(call, *x, b) : std::nullopt;
  }
  // In a transposed tensor the parameters are along another axis. Weights are constants again.
  static Expr permuted_numbers(const Call& call, const QuantizedValue& value, Builder& b) {
    const size_t rank = static_cast<size_t>(known_rank(value.numbers.type()));
    const std::vector<int64_t> axes = read_attrs<AxesAttrs>(call.attrs).permutation(rank);
    const int64_t axis = std::ranges::find(axes, value.axis) - axes.begin();
    const Constant* weight = is_of_bytes(value.numbers.type()) ? value.numbers.as<Constant>() : nullptr;
    const Expr numbers = weight ? constant(permuted(weight->data, axes)) : permute_dims(value.numbers, axes, b);
    return b.op("dequantize", {numbers, *value.scale, *value.zero}, DequantizeAttrs{axis, kFloat32});
  }

  // ---- Sums of products

  std::optional<Expr> product(const Call& call, const Binding& binding, Builder& b) {
    const int64_t rank = known_rank(call.args[1].type());
    const int64_t rows_rank = known_rank(call.args[0].type());
    if (rank < 2 || rows_rank < 1 || (rows_rank == 1 && rank > 2)) return std::nullopt;
    auto emit = [&](const Expr& x, const Expr& weight) { return b.op("matmul", {x, weight}, MatmulAttrs{kInt32}); };
    auto run_time_sums = [&](const QuantizedValue& x, const QuantizedValue& w) -> std::optional<Expr> {
      if (!gains_by_packing(x, w)) return std::nullopt;
      return sums_of_matrices(left_of_dots(x, b), in_dtype(w, kInt8, b), emit, b);
    };
    return sums(call, binding, {rank - 1, true, 0}, emit, run_time_sums, b);
  }

  template <int N>
  std::optional<Expr> convolution(const Call& call, const Binding& binding, Builder& b) {
    auto attrs = read_attrs<ConvAttrs<N>>(call.attrs);
    if (attrs.data_layout != data_layout_of(N) || attrs.kernel_layout != kernel_layout_of(N) ||
        attrs.out_layout.value_or(attrs.data_layout) != attrs.data_layout)
      return std::nullopt;
    attrs.out_dtype = kInt32;
    const Padding padding = read_padding(OpCall{call, binding.var.span()}, attrs.padding, N);
    auto emit = [&](const Expr& x, const Expr& weight) { return b.op(op_name(binding.value), {x, weight}, attrs); };
    auto padded = [&](const QuantizedValue& x) {
      if (!padding.any() || !x.zero || constant_element(*x.zero) == 0.0) return x;
      const std::optional<double> zero = constant_element(*x.zero);
      PadAttrs pad{.pad_width = {0, 0, 0, 0}, .pad_value = zero.value_or(0)};
      for (size_t d = 0; d < N; ++d) pad.pad_width.insert(pad.pad_width.end(), {padding.before[d], padding.after[d]});
      attrs.padding = PerDim(2 * N, 0);
      QuantizedValue result = x;
      if (zero) {
        result.numbers = b.op("nn.pad", {x.numbers}, pad);
      } else {
        const Expr number = reshape(b.op("astype", {*x.zero}, DTypeAttrs{x.dtype()}), {}, b);
        result.numbers = b.op("dyn.pad", {x.numbers, shape_expr(int_imms(pad.pad_width)), number}, PadAttrs{});
      }
      return result;
    };
    auto run_time_sums = [&](const QuantizedValue& x, const QuantizedValue& w) -> std::optional<Expr> {
      const std::optional<std::vector<int64_t>> shape = constant_shape(w.numbers.type());
      if (!activations_ || !shape || !can_sum(*element_count(std::span(*shape).subspan(1)))) return std::nullopt;
      return sums_of_filters(padded(left_of_dots(x, b)), in_dtype(w, kInt8, b), N, attrs.groups > 1, emit, b);
    };
    return sums(call, binding, {0, false, N}, emit, run_time_sums, b, padded);
  }

  using PadNumbers = std::function<QuantizedValue(const QuantizedValue& x)>;
  // Emits the sums with a right operand that only the run knows; nullopt where floats are as fast.
  using RunTimeSums = std::function<std::optional<Expr>(const QuantizedValue& x, const QuantizedValue& w)>;
  struct RightOperand {
    int64_t output_axis;
    bool is_matrix;
    int64_t axes_behind;  // of the result, behind that of the outputs
  };
  // Returns the sums of products of the call's operands as integers, made real where the operands are.
  std::optional<Expr> sums(const Call& call, const Binding& binding, const RightOperand& right, const EmitProduct& emit,
                           const RunTimeSums& run_time_sums, Builder& b, const PadNumbers& padded = nullptr) {
    std::optional<QuantizedValue> x = real_value(call.args[0]), w = real_value(call.args[1]);
    const bool is_real = x && w && tensor_dtype(binding.value.type()) == kFloat32;
    if (!is_real) {
      x = whole_value(call.args[0]), w = whole_value(call.args[1]);
      if (!x || !w || tensor_dtype(binding.value.type()) != kInt32) return std::nullopt;
    }
    if (gains_by_bytes(right, binding.value.type())) w = in_bytes(*w);
    if (!is_of_bytes(x->numbers.type()) || !is_of_bytes(w->numbers.type()) || !has_one_parameter(*x) ||
        !has_parameters_along(*w, right.output_axis))
      return std::nullopt;
    std::optional<Expr> made;
    if (const std::optional<SignedWeight> weight = signed_weight(*w, right.is_matrix)) {
      const QuantizedValue left = left_of_dots(*x, b);
      made = integer_sums(padded ? padded(left) : left, *weight, right.axes_behind, emit, b);
    } else {
      made = run_time_sums(*x, *w);
    }
    if (!made || !is_real) return made;
    const Expr& sum = *made;
    Expr scale = b.op("multiply", {reshape(*x->scale, {}, b), *w->scale});
    std::vector<Expr> dims;
    if (!is_one_element(scale.type())) {
      dims = *known_shape(scale.type());
      dims.insert(dims.end(), static_cast<size_t>(right.axes_behind), int_imm(1));
    }
    scale = reshape(scale, dims, b);
    const Expr real = b.op("multiply", {b.op("astype", {sum}, DTypeAttrs{kFloat32}), scale});
    if (is_used_once(binding.var)) scaled_.insert_or_assign(real.get(), ScaledSums{sum, scale});
    return real;
  }
  // Returns whether a constant weight of 2 or 4 bits is worth a byte for each number: that of a convolution, and a
  // matrix that many rows read. For fewer, reading it takes the time, and pack_quantized leaves it as it is.
  static bool gains_by_bytes(const RightOperand& right, const Type& result) {
    const std::vector<Expr>& dims = *known_shape(result);
    Expr rows = int_imm(1);
    for (const Expr& dim : std::span(dims).first(dims.empty() ? 0 : dims.size() - 1)) rows = rows * dim;
    const std::optional<int64_t> known = as_int(simplify(rows));
    return !right.is_matrix || (known && *known >= kFewestRowsToPack);
  }
  // Returns whether the product with a matrix that only the run knows is faster as integers: the matrix is packed for
  // the target's instructions first, which takes several rows.
  bool gains_by_packing(const QuantizedValue& x, const QuantizedValue& matrix) {
    const std::vector<Expr>&left = *known_shape(x.numbers.type()), &right = *known_shape(matrix.numbers.type());
    if (!activations_ || !has_one_parameter(matrix) || left.size() < 2) return false;
    if (right.size() > 2 && !has_same_batch(left, right)) return false;
    Expr rows = left.end()[-2];
    for (size_t d = 0; right.size() == 2 && d + 2 < left.size(); ++d) rows = rows * left[d];
    const bool has_few_rows = as_int(simplify(rows)).value_or(kFewestRowsToPack) < kFewestRowsToPack;
    return !has_few_rows && can_sum_rows(right.end()[-2], x.scale.has_value());
  }
  // Returns whether sums of so many products are in int32. Of real numbers a run with a larger dim is refused, where
  // its inputs give the dim; ONNX lets sums of integers overflow in int32.
  bool can_sum_rows(const Expr& depth, bool are_real) {
    if (const auto known = as_int(depth)) return can_sum(*known);
    if (!are_real) return true;
    const std::optional<VarRef> dim = try_cast<Var>(depth);
    if (!dim || !given_dims_.contains(dim->get())) return false;
    limited_dims_.insert((*dim)->name);
    return true;
  }
  // Returns whether the instructions take bytes on the left, but not these.
  bool take_other_sign(DType dtype) const {
    return activations_ && is_byte(*activations_) && is_byte(dtype) && dtype != *activations_;
  }
  QuantizedValue left_of_dots(const QuantizedValue& x, Builder& b) {
    return take_other_sign(x.dtype()) ? in_dtype(x, *activations_, b) : x;
  }
  // Returns the value with numbers of that dtype of 8 bits.
  QuantizedValue in_dtype(const QuantizedValue& value, DType dtype, Builder& b) {
    if (value.dtype() == dtype) return value;
    const auto [numbers, is_new] = other_sign_.try_emplace(value.numbers.get(), value.numbers);
    if (is_new) {
      numbers->second = with_other_sign(value.numbers, b);
      kept_.push_back(value.numbers);
    }
    QuantizedValue result = value;
    result.zero = zero_of_other_sign(value, b);
    result.numbers = numbers->second;
    return result;
  }

  // ---- Quantize behind sums

  // Notes what follows sums and commutes with a scale.
  void note_scaled(const Call& call, const Binding& binding, Builder& b) {
    if (!is_used_once(binding.var)) return;
    const std::string& name = call.callee.as<OpRef>()->name;
    auto scaled_arg = [&](size_t i) {
      return i < call.args.size() ? find_value(scaled_, call.args[i].get()) : nullptr;
    };
    if (name == ops::kMultiply) {
      const Call* cast = call_of(call.args[0], ops::kAstype);
      const bool is_sum = cast && tensor_dtype(cast->args[0].type()) == kInt32 && call.args[1].is<Constant>() &&
                          tensor_dtype(binding.value.type()) == kFloat32;
      if (is_sum) scaled_.emplace(binding.var.get(), ScaledSums{cast->args[0], call.args[1]});
    } else if (name == ops::kAdd) {
      for (size_t i : {0, 1}) {
        const ScaledSums* known = scaled_arg(i);
        if (!known || known->bias || !known->activations.empty()) continue;
        if (auto sum = with_bias(*known, call.args[1 - i], b)) scaled_.emplace(binding.var.get(), *sum);
        return;
      }
    } else if (name == ops::kRelu || name == ops::kClip) {
      const ScaledSums* known = scaled_arg(0);
      if (!known || !std::ranges::all_of(call.args.begin() + 1, call.args.end(), is_number)) return;
      ScaledSums result = *known;
      result.activations.push_back(call);
      scaled_.emplace(binding.var.get(), std::move(result));
    }
  }
  // Adds a bias to the sums where it is an integer of their scale, else behind them.
  std::optional<ScaledSums> with_bias(const ScaledSums& known, const Expr& bias, Builder& b) {
    ScaledSums result = known;
    const Call* real = call_of(bias, ops::kDequantize);
    const Call* reshaped = real ? nullptr : call_of(bias, ops::kReshape);
    if (reshaped) real = call_of(reshaped->args[0], ops::kDequantize);
    if (real && is_small_bias(real->args[0]) && constant_element(real->args[2]) == 0.0 &&
        is_scale_of(real->args[1], known.scale)) {
      Expr numbers = real->args[0];
      if (reshaped) numbers = reshape(numbers, *known_shape(bias.type()), b);
      result.sums = b.op("add", {known.sums, numbers});
      return result;
    }
    if (!follows_from_constants(bias)) return std::nullopt;
    result.bias = bias;
    return result;
  }
  bool follows_from_constants(const Expr& value) const {
    if (value.is<Constant>()) return true;
    const Expr* known = find_value(values_, value.get());
    const Call* call = known ? known->as<Call>() : nullptr;
    return call && std::ranges::all_of(
                       call->args, [&](const Expr& arg) { return arg.is<ShapeExpr>() || follows_from_constants(arg); });
  }
  // Returns the elements of a product of constant scales, which is not folded yet.
  std::optional<std::vector<double>> scales_of(const Expr& value) const {
    if (const Constant* constant = value.as<Constant>()) {
      std::vector<double> all;
      for (int64_t i = 0; i < constant->data.size(); ++i) all.push_back(constant->data.as_double(i));
      return all;
    }
    if (const Call* reshaped = call_of(value, ops::kReshape)) return scales_of(reshaped->args[0]);
    const Call* call = call_of(value, ops::kMultiply);
    auto a = call ? scales_of(call->args[0]) : std::nullopt, c = call ? scales_of(call->args[1]) : std::nullopt;
    if (!a || !c) return std::nullopt;
    if (a->size() < c->size()) std::swap(a, c);
    if (c->size() != 1 && c->size() != a->size()) return std::nullopt;
    for (size_t i = 0; i < a->size(); ++i) (*a)[i] *= (*c)[c->size() == 1 ? 0 : i];
    return a;
  }
  bool is_scale_of(const Expr& scale, const Expr& sums_scale) const {
    const auto a = scales_of(scale), c = scales_of(sums_scale);
    if (!a || !c || a->empty() || c->empty() || (a->size() != c->size() && a->size() != 1 && c->size() != 1))
      return false;
    for (size_t i = 0; i < std::max(a->size(), c->size()); ++i) {
      const double x = (*a)[a->size() == 1 ? 0 : i], y = (*c)[c->size() == 1 ? 0 : i];
      if (!(std::abs(x - y) <= kSameScale * std::abs(y))) return false;
    }
    return true;
  }

  std::optional<Expr> quantized(const Call& call, const Binding& binding, Builder& b) {
    const auto attrs = read_attrs<QuantizeAttrs>(call.attrs);
    if (auto same = numbers_again(call.args, attrs.out_dtype, b)) return same;
    std::vector<Expr> args = call.args;
    const ScaledSums* known = find_value(scaled_, call.args[0].get());
    const std::optional<double> by = constant_element(args[1]);
    if (known && by && is_plain_scale(args[1])) {
      args[0] = rescaled(*known, scalar_constant(*by, kFloat32), *by, b);
      args[1] = scalar_constant(1, kFloat32);
    }
    const bool is_rounded = !same_node(args[0], call.args[0]);
    const std::optional<double> zero = constant_element(args[2]);
    const bool turns = zero && take_other_sign(attrs.out_dtype);
    const DType dtype = turns ? *activations_ : attrs.out_dtype;
    if (turns) args[2] = scalar_constant(*zero + (attrs.out_dtype == kInt8 ? 128 : -128), dtype);
    std::optional<Expr> made = quantized_parts(args, dtype, b);
    if (!made && !turns && !is_rounded) return std::nullopt;
    if (!made) made = b.op("quantize", args, QuantizeAttrs{attrs.axis, dtype});
    // The same numbers, of the sign that the instructions take. Who needs the others computes them from these.
    const Expr numbers = turns ? with_other_sign(*made, b) : *made;
    if (turns) other_sign_.emplace(numbers.get(), *made);
    if (is_rounded && is_used_once(binding.var)) rounded_.emplace(made->get(), rounded_.size());
    kept_.push_back(numbers);
    return numbers;
  }
  // Quantizes the parts of a concatenation of dequantized values, each by itself: bytes are moved instead of floats.
  std::optional<Expr> quantized_parts(const std::vector<Expr>& args, DType dtype, Builder& b) {
    const Call* concat = call_of(args[0], ops::kConcat);
    const Tuple* parts = concat ? concat->args[0].as<Tuple>() : nullptr;
    const bool is_private = args[0].is<Var>() && is_used_once(cast<Var>(args[0]));
    auto is_narrow = [&](const Expr& part) {
      const std::optional<QuantizedValue> known = real_value(part);
      return known && has_one_parameter(*known) && is_of_bytes(known->numbers.type());
    };
    if (!parts || !is_private || !is_byte(dtype) || !is_plain_scale(args[1]) || !constant_element(args[2]) ||
        !std::ranges::all_of(parts->items, is_narrow))
      return std::nullopt;
    const std::vector<Expr> numbers = map_each(parts->items, [&](const Expr& part) {
      const std::vector<Expr> one = {part, args[1], args[2]};
      const std::optional<Expr> same = numbers_again(one, dtype, b);
      return same ? *same : b.op("quantize", one, QuantizeAttrs{-1, dtype});
    });
    return b.op("concat", {tuple(numbers)}, concat->attrs);
  }
  // Returns the numbers of a dequantized value that is quantized by its own parameters (value, scale, zero point).
  std::optional<Expr> numbers_again(const std::vector<Expr>& args, DType dtype, Builder& b) {
    const std::optional<QuantizedValue> known = real_value(args[0]);
    if (!known || !has_one_parameter(*known) || !are_same(known->scale, args[1]) || !is_plain_scale(args[1]) ||
        !is_of_bytes(known->numbers.type()))
      return std::nullopt;
    const std::optional<double> zero = constant_element(*known->zero), wanted = constant_element(args[2]);
    if (!zero || !wanted) return std::nullopt;
    if (known->dtype() == dtype && *zero == *wanted) return known->numbers;
    const double shift = known->dtype() == kInt8 ? 128 : -128;
    if (known->dtype() == dtype || !is_byte(dtype) || *zero + shift != *wanted) return std::nullopt;
    const Expr numbers = with_other_sign(known->numbers, b);
    other_sign_.emplace(numbers.get(), known->numbers);
    kept_.push_back(numbers);
    return numbers;
  }
  // Returns act(sums * (scale / by) + bias / by).
  static Expr rescaled(const ScaledSums& known, const Expr& by, double number, Builder& b) {
    const Expr scale = b.op("divide", {known.scale, by});
    Expr value = b.op("multiply", {b.op("astype", {known.sums}, DTypeAttrs{kFloat32}), scale});
    if (known.bias) value = b.op("add", {value, b.op("divide", {*known.bias, by})});
    for (const Call& activation : known.activations) {
      std::vector<Expr> args = activation.args;
      args[0] = value;
      for (size_t i = 1; i < args.size(); ++i) {
        args[i] = float_imm(static_cast<float>(args[i].as<FloatImm>()->value / number), kFloat32);
      }
      value = b.op(activation.callee.as<OpRef>()->name, std::move(args), activation.attrs);
    }
    return value;
  }

  const Target& target_;
  const std::optional<DType> activations_;              // the dtype of left operands for the target's instructions
  const bool is_body_;                                  // of a loop: only functions of the module call it
  std::unordered_map<const NodeHeader*, Expr> values_;  // by variable
  std::unordered_map<const NodeHeader*, ScaledSums> scaled_;
  std::unordered_map<const NodeHeader*, Expr> other_sign_;            // the same numbers, 128 larger or smaller
  std::vector<std::unordered_map<const NodeHeader*, Expr>> outside_;  // other_sign_ around each open scope
  std::unordered_set<const NodeHeader*> private_;                     // dequantized values that are used once
  std::unordered_map<const NodeHeader*, size_t> rounded_;             // numbers of sums that are used once, in order
  std::unordered_map<const NodeHeader*, int> uses_;
  VarSet given_dims_;                   // by the function's params
  std::set<std::string> limited_dims_;  // those that are the length of sums of real numbers
  std::vector<Expr> kept_;              // keeps keys alive
};

}  // namespace

IRModule integer_regions(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& function) {
    return is_primitive(*function) ? function : IntegerRegions(context, function).form(function);
  });
}

}  // namespace relaxc
