// Expects: operators on leaves, integers in quantized parts (integer_regions). Guarantees: where the target has no
// instruction for a product or convolution of bytes, its left operand is int16. The kernel that makes the numbers
// stores them so, and what makes them real again reads these. An instruction that clamps sums of two products to 16
// bits is taken for all of them where sums may be clamped (--fast-int8), and else for constant weights that rarely make
// larger sums; exact_sums splits such weights. Convolutions by Winograd's algorithm widen bytes themselves.
#include <algorithm>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "passes/byte_pairs.h"
#include "passes/compose.h"
#include "passes/winograd.h"
#include "tir/dot_forms.h"

namespace relaxc {

namespace {

constexpr DType kByte = DType::int_(8), kWide = DType::int_(16);
constexpr OpName kProductsOfBytes[] = {ops::kMatmul, ops::kConv1d, ops::kConv2d};

// Where large pairs are in fewer than one of so many steps, all are in different ones, and the second sum takes less
// time than what it saves: a step of it takes as long as up to three others, and lists are as long as the longest.
constexpr int64_t kStepsOfRest = 10;

bool is_product(const Call& call) {
  const OpRef* op = call.callee.as<OpRef>();
  return op && find_item(kProductsOfBytes, op->name, &OpName::text) &&
         tensor_dtype(call.args[0].type()).value_or(kWide).bits == 8 && tensor_dtype(call.args[1].type()) == kByte;
}

// Returns whether few steps of the sum have pairs of products that may need more than 16 bits: the steps of as many
// filters as the instruction has lanes. A step of windows of one filter for each channel is a row, of which all count.
bool has_few_large_pairs(const Call& product, const DotForm& form) {
  const Constant* weight = product.args[1].as<Constant>();
  if (!weight) return false;
  const std::vector<int64_t>& shape = weight->data.shape();
  const bool is_convolution = product.callee.as<OpRef>()->name != ops::kMatmul.text;
  const bool has_channels = is_convolution && shape[1] > 1;
  const size_t of_matrix = std::max<size_t>(shape.size(), 2) - 2;  // a vector has no columns
  const size_t axis = !is_convolution ? of_matrix : has_channels ? 1 : shape.size() - 1;
  const int64_t large = count_large_pairs(weight->data, axis);
  const int64_t pairs_of_step = form.lanes * form.group / 2;
  return large == 0 ||
         ((!is_convolution || has_channels) && large * kStepsOfRest * pairs_of_step <= weight->data.size() / 2);
}

class ByteWidener final : public GraphRewriter {
 public:
  explicit ByteWidener(const PassContext& context) : GraphRewriter(context.ops), context_(context) {}

  FunctionRef form(const FunctionRef& function) {
    walk(function->body, [&](const Ref<Call>& call) {
      if (is_widened(*call, call.type())) wanted_.insert(call->args[0].get());
    });
    return wanted_.empty() ? function : run(function);
  }

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    const Call* call = binding.cast ? nullptr : binding.value.as<Call>();
    if (!call || call->args.empty()) return std::nullopt;
    if (wanted_.contains(binding.var.get())) {
      const VarRef bytes = b.emit(binding.value, binding.var->name);
      wide_.insert_or_assign(bytes.get(), widened(bytes, b));
      return bytes;
    }
    const bool widens = is_widened(*call, binding.value.type());
    const bool reads_numbers = as_call(binding.value, ops::kDequantize) || as_call(binding.value, ops::kAstype);
    const Expr* wide = reads_numbers || widens ? find_value(wide_, call->args[0].get()) : nullptr;
    if (!wide && !widens) return std::nullopt;
    std::vector<Expr> args = call->args;
    args[0] = wide ? *wide : widened(args[0], b);
    return b.op(op_name(binding.value), std::move(args), call->attrs, binding.var->name);
  }

 private:
  bool is_widened(const Call& call, const Type& result) const {
    if (!is_product(call)) return false;
    const bool is_convolution = call.callee.as<OpRef>()->name == ops::kConv2d.text;
    if (is_convolution && gains_by_integers(call, result, context_.winograd_error, context_.target)) return false;
    const DotForm* form = find_dot_form(*tensor_dtype(call.args[0].type()), kByte, kInt32, context_.target);
    return !form || (form->clamps() && !context_.fast_int8 && !has_few_large_pairs(call, *form));
  }
  static Expr widened(const Expr& bytes, Builder& b) { return b.op("astype", {bytes}, DTypeAttrs{kWide}); }

  const PassContext& context_;
  std::unordered_set<const NodeHeader*> wanted_;      // bytes that products read
  std::unordered_map<const NodeHeader*, Expr> wide_;  // by bytes
};

}  // namespace

IRModule widen_bytes(IRModule module, PassContext& context) {
  if (!find_dot_form(kWide, kByte, kInt32, context.target)) return module;
  return map_functions(std::move(module), [&](const FunctionRef& function) {
    return is_primitive(*function) ? function : ByteWidener(context).form(function);
  });
}

}  // namespace relaxc
