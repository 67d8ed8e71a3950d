// Expects: operators on leaves, integers in quantized parts (integer_regions). Guarantees: where the target sums
// products of int16 and int8 but not of bytes, the left operand of such a product or convolution is int16. What makes
// the numbers stores them so, and what makes them real again reads these. Where all weights are so small that no sum of
// two products leaves 16 bits, the target's instructions for bytes that clamp such sums are exact, and are taken.
#include <algorithm>
#include <cstdlib>
#include <span>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "passes/compose.h"
#include "tir/dot_forms.h"

namespace relaxc {

namespace {

constexpr DType kByte = DType::int_(8), kWide = DType::int_(16);
constexpr OpName kProductsOfBytes[] = {ops::kMatmul, ops::kConv1d, ops::kConv2d};

constexpr int kLargestExact = 64;  // 2 * 255 * 64 is an int16

bool is_product(const Call& call) {
  const OpRef* op = call.callee.as<OpRef>();
  return op && find_item(kProductsOfBytes, op->name, &OpName::text) &&
         tensor_dtype(call.args[0].type()).value_or(kWide).bits == 8 && tensor_dtype(call.args[1].type()) == kByte;
}

// Returns whether the sums of two products of uint8 with the weights are int16.
bool has_small_weights(const Call& product) {
  const Constant* weight = product.args[1].as<Constant>();
  if (!weight || tensor_dtype(product.args[0].type()) != DType::uint(8)) return false;
  const std::span numbers(weight->data.data<int8_t>(), static_cast<size_t>(weight->data.size()));
  return std::ranges::all_of(numbers, [](int8_t number) { return std::abs(number) <= kLargestExact; });
}

bool have_small_weights(const IRModule& module) {
  bool has_any = false, are_small = true;
  for (const auto& [name, function] : module.functions) {
    walk(function, [&](const Ref<Call>& call) {
      if (!is_product(*call)) return;
      has_any = true;
      are_small = are_small && has_small_weights(*call);
    });
  }
  return has_any && are_small;
}

class ByteWidener final : public GraphRewriter {
 public:
  explicit ByteWidener(const PassContext& context) : GraphRewriter(context.ops), target_(context.target) {}

  FunctionRef form(const FunctionRef& function) {
    walk(function->body, [&](const Ref<Call>& call) {
      if (is_widened(*call)) wanted_.insert(call->args[0].get());
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
    const bool reads_numbers = as_call(binding.value, ops::kDequantize) || as_call(binding.value, ops::kAstype);
    const Expr* wide = reads_numbers || is_widened(*call) ? find_value(wide_, call->args[0].get()) : nullptr;
    if (!wide && !is_widened(*call)) return std::nullopt;
    std::vector<Expr> args = call->args;
    args[0] = wide ? *wide : widened(args[0], b);
    return b.op(op_name(binding.value), std::move(args), call->attrs, binding.var->name);
  }

 private:
  bool is_widened(const Call& call) const {
    return is_product(call) && !find_dot_form(*tensor_dtype(call.args[0].type()), kByte, kInt32, target_);
  }
  static Expr widened(const Expr& bytes, Builder& b) { return b.op("astype", {bytes}, DTypeAttrs{kWide}); }

  const Target& target_;
  std::unordered_set<const NodeHeader*> wanted_;      // bytes that products read
  std::unordered_map<const NodeHeader*, Expr> wide_;  // by bytes
};

}  // namespace

IRModule widen_bytes(IRModule module, PassContext& context) {
  if (!find_dot_form(kWide, kByte, kInt32, context.target)) return module;
  if (have_small_weights(module)) context.target.clamps_int8_dot = true;
  return map_functions(std::move(module), [&](const FunctionRef& function) {
    return is_primitive(*function) ? function : ByteWidener(context).form(function);
  });
}

}  // namespace relaxc
