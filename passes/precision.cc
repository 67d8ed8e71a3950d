#include "passes/precision.h"

#include <algorithm>
#include <cmath>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/layouts.h"
#include "support/joined.h"
#include "support/lists.h"
#include "tir/intrin/tensor_intrin.h"

namespace relaxc {

namespace {

constexpr PrecisionName kPrecisions[] = {
    {Precision::kFloat32, "fp32", "numbers as the model has them"},
    {Precision::kBFloat16, "bf16", "products and weights in bfloat16, sums in float32"},
    {Precision::kFloat16, "fp16", "weights in float16, products and sums in float32"},
    {Precision::kMixed, "mixed", "bfloat16 or float16 where that is faster on the target, else float32"},
};

// With --precision mixed a product stays in float32 where its arithmetic takes so many times as long as reading its
// weights from memory does: at four times, half of the bytes could save an eighth of the time if nothing overlapped.
constexpr double kMostArithmetic = 4;

bool is_product(const Call& call) {
  constexpr OpName kProducts[] = {ops::kMatmul, ops::kConv1d, ops::kConv2d};
  const OpRef* op = call.callee.as<OpRef>();
  return op && std::ranges::any_of(kProducts, [&](OpName name) { return op->name == name; });
}
bool is_convolution(const Call& call) { return is_product(call) && call.callee.as<OpRef>()->name != ops::kMatmul; }

// Returns the operand that is stored: the weight of a product, the table of a take.
const Expr& stored_operand(const Call& call) { return call.args[is_product(call) ? 1 : 0]; }
const Constant* stored_constant(const PrecisionQuestion& q) { return stored_operand(q.call).as<Constant>(); }

bool is_beyond(const Tensor& tensor, DType narrow) {
  if (tensor.dtype() != kFloat32) return false;
  const double largest = largest_of(narrow);
  const std::span<const float> numbers(tensor.data<float>(), static_cast<size_t>(tensor.size()));
  return std::ranges::any_of(
      numbers, [&](float x) { return std::isfinite(x) && std::abs(x) > largest && std::isinf(rounded_to(x, narrow)); });
}

bool may_be_winograd(const PrecisionQuestion& q) {
  const std::optional<std::vector<int64_t>> weight = constant_shape(stored_operand(q.call).type());
  if (q.has_products() || q.call.callee.as<OpRef>()->name != ops::kConv2d || !weight) return false;
  const auto attrs = read_attrs<ConvAttrs<2>>(q.call.attrs);
  const PerDim ones = {1, 1};
  return weight->at(2) == 3 && weight->at(3) == 3 && attrs.strides == ones && attrs.dilation == ones &&
         attrs.groups == 1;
}

bool is_bound_by_arithmetic(const PrecisionQuestion& q) {
  const Constant* weight = stored_constant(q);
  const std::vector<Expr>* result = known_shape(q.result);
  if (!q.chooses || q.has_products() || !weight || weight->data.size() == 0 || !result) return false;
  const std::vector<int64_t>& dims = weight->data.shape();
  const int64_t columns = is_convolution(q.call) ? dims[0] : dims.back();
  const auto elements = static_cast<double>(weight->data.size());
  const double uses = guessed_elements(*result) / static_cast<double>(columns);
  const double arithmetic = uses * elements / static_cast<double>(q.target.products_per_cycle());
  return arithmetic > kMostArithmetic * elements * kFloat32.bytes() / q.target.memory_bytes_per_cycle;
}

// clang-format off
constexpr KeptInFloat32 kRows[] = {
    {"matmul nn.conv1d nn.conv2d", "neither operand is constant",
     "both would have to be rounded in each run, for as many products",
     [](const PrecisionQuestion& q) { return !stored_constant(q); }},
    {"matmul nn.conv1d nn.conv2d take", "a weight is beyond the numbers of 16 bits (65504 for float16)",
     "it would become infinite",
     [](const PrecisionQuestion& q) { return stored_constant(q) && is_beyond(stored_constant(q)->data, q.narrow); }},
    {"nn.conv1d nn.conv2d", "the convolution is depthwise",
     "each filter sums few products, and its weights are few",
     [](const PrecisionQuestion& q) {
       const std::optional<std::vector<int64_t>> weight = constant_shape(stored_operand(q.call).type());
       return weight && (*weight)[1] == 1;
     }},
    {"matmul nn.conv1d nn.conv2d take", "the weights fit the L1 cache, and the target has no products of 16 bits",
     "reading fewer bytes saves no time there",
     [](const PrecisionQuestion& q) {
       return stored_constant(q) && !(is_product(q.call) && q.has_products()) &&
              stored_constant(q)->data.size() * kFloat32.bytes() <= q.target.l1_of_core();
     }},
    {"matmul", "the columns are gates, as of LSTM and GRU, and the weights fit the L2 cache",
     "a kernel that computes the whole cell reads float32, and saves more",
     [](const PrecisionQuestion& q) {
       return q.is_in_bands && !q.has_products() &&
              stored_constant(q)->data.size() * kFloat32.bytes() <= q.target.l2_of_core();
     }},
    {"nn.conv2d", "a window of 3x3 with stride 1, and the target has no products of 16 bits",
     "Winograd's algorithm saves more, and transforms weights of float32", may_be_winograd},
    {"matmul nn.conv1d nn.conv2d", "`mixed` or a model of 16 bits, the target has no products of 16 bits, and each weight is used "
     "often",
     "the arithmetic takes the time, not the memory", is_bound_by_arithmetic},
    {"nn.softmax nn.log_softmax exp log nn.attention nn.attention_bias", "",
     "an error of the exponent's argument is a relative error of the result: 2 % at 8 bits for a score of 10"},
    {"nn.layer_norm nn.rms_norm nn.group_norm nn.instance_norm nn.batch_norm nn.lrn variance std", "",
     "differences from a mean cancel, and squares leave the range of float16 from 256 on"},
    {"sum mean prod cumsum cumprod nn.avg_pool1d nn.avg_pool2d nn.adaptive_avg_pool2d", "",
     "rounding errors add up over long sums"},
    {"nn.nll_loss nn.cross_entropy_with_logits", "", "logarithms of probabilities near 0 and 1"},
    {"image.resize image.grid_sample image.affine_grid vision.roi_align vision.roi_pool", "",
     "coordinates need more than 8 or 11 bits from 256 or 2,048 pixels on"},
    {"argmax argmin topk argsort sort equal less greater floor ceil round", "",
     "rounding makes equal what differs, or moves it over a step"},
    {"power divide rsqrt tan erf", "", "small differences of operands become large ones of results"},
};
// clang-format on

bool names(const KeptInFloat32& row, std::string_view op) {
  const std::string list = fmt::format(" {} ", row.operators);
  return list.find(fmt::format(" {} ", ops::short_name(op))) != std::string::npos;
}

}  // namespace

std::span<const PrecisionName> precisions() { return kPrecisions; }
std::optional<Precision> find_precision(std::string_view name) {
  const PrecisionName* row = find_item(kPrecisions, name, &PrecisionName::name);
  return row ? std::optional(row->value) : std::nullopt;
}
const PrecisionName& describe(Precision precision) { return *find_item(kPrecisions, precision, &PrecisionName::value); }
std::string precision_list() { return joined(map_each(kPrecisions, &PrecisionName::name)); }

DType narrow_dtype(Precision precision, const Target& target) {
  constexpr DType kBFloat16 = DType::bfloat16(), kFloat16 = DType::float_(16);
  if (precision != Precision::kMixed) return precision == Precision::kFloat16 ? kFloat16 : kBFloat16;
  return has_fast_products(kBFloat16, target) || !target.has_float16_conversion ? kBFloat16 : kFloat16;
}

bool has_fast_products(DType narrow, const Target& target) {
  return find_dot_form(narrow, narrow, kFloat32, target) != nullptr;
}

std::span<const KeptInFloat32> kept_in_float32() { return kRows; }

const KeptInFloat32* find_kept_in_float32(const PrecisionQuestion& question) {
  const OpRef* op = question.call.callee.as<OpRef>();
  if (!op) return nullptr;
  const auto found = std::ranges::find_if(
      kRows, [&](const KeptInFloat32& row) { return names(row, op->name) && (!row.applies || row.applies(question)); });
  return found == std::end(kRows) ? nullptr : &*found;
}

bool always_reads_float32(std::string_view op) {
  return std::ranges::any_of(kRows, [&](const KeptInFloat32& row) { return !row.applies && names(row, op); });
}

}  // namespace relaxc
