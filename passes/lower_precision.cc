// Expects: operators on leaves, weights folded to constants. Guarantees: with PassSettings::precision bfloat16,
// convolutions and products with a constant weight multiply numbers of bfloat16 and add them up in float32
// (kKeptInFloat32 lists what does not). Values that they read are stored in bfloat16 by the kernels that make them, and
// read as such by everything else; what is not read by a product stays float32.
#include <algorithm>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "passes/compose.h"
#include "passes/graph_rewriter.h"
#include "support/lists.h"
#include "tir/intrin/tensor_intrin.h"

namespace relaxc {

namespace {

constexpr DType kBFloat16 = DType::bfloat16();

// Why a convolution or product keeps its operands in float32.
struct KeptInFloat32 {
  const char* reason;
  bool (*applies)(const Call& call);
};
constexpr KeptInFloat32 kKeptInFloat32[] = {
    {"the operands are not float32",
     [](const Call& call) {
       return tensor_dtype(call.args[0].type()) != kFloat32 || tensor_dtype(call.args[1].type()) != kFloat32;
     }},
    {"the right operand is not constant: it would have to be stored in pairs in each run",
     [](const Call& call) { return !call.args[1].is<Constant>(); }},
    {"each filter of a depthwise convolution sums few products, which memory bounds",
     [](const Call& call) {
       const auto weight = constant_shape(call.args[1].type());
       return call.callee.as<OpRef>()->name != ops::kMatmul && weight && (*weight)[1] == 1;
     }},
};

Tensor narrowed(const Tensor& weight) {
  Tensor result = Tensor::empty(weight.shape(), kBFloat16);
  for (int64_t i = 0; i < weight.size(); ++i) result.set_double(i, weight.as_double(i));
  return result;
}

class PrecisionLowerer final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    const Call* call = binding.cast ? nullptr : binding.value.as<Call>();
    constexpr OpName kProducts[] = {ops::kMatmul, ops::kConv1d, ops::kConv2d};
    if (!call || !find_item(kProducts, op_name(binding.value), &OpName::text) ||
        tensor_dtype(binding.value.type()) != kFloat32 ||
        std::ranges::any_of(kKeptInFloat32, [&](const KeptInFloat32& row) { return row.applies(*call); }))
      return std::nullopt;
    std::vector<Expr> args = {narrow(call->args[0], b), constant(narrowed(call->args[1].as<Constant>()->data))};
    return b.op(op_name(binding.value), std::move(args), call->attrs.with("out_dtype", to_attr(kFloat32)),
                binding.var->name);
  }
  void enter_scope() override { ++scopes_; }
  void leave_scope() override { --scopes_; }

 private:
  // Returns the value as bfloat16. Later users read that, so that nothing else is stored, unless a branch computes it:
  // its values are not defined behind it.
  Expr narrow(const Expr& x, Builder& b) {
    if (const Expr* known = find_value(narrow_, x.get())) return *known;
    const Expr result = b.op("astype", {x}, DTypeAttrs{kBFloat16});
    if (scopes_ > 0) return result;
    if (const Var* var = x.as<Var>(); var && result.is<Var>()) {
      const Expr wide = b.op("astype", {result}, DTypeAttrs{kFloat32});
      replace(cast<Var>(x), wide);
      narrow_.emplace(wide.get(), result);
    }
    narrow_.emplace(x.get(), result);
    kept_.push_back(x);
    return result;
  }

  std::unordered_map<const NodeHeader*, Expr> narrow_;  // by the value, and by what stands for it
  std::vector<Expr> kept_;                              // keeps keys alive
  int scopes_ = 0;                                      // branches and local functions around the binding
};

}  // namespace

IRModule lower_precision(IRModule module, PassContext& context) {
  if (context.precision == Precision::kFloat32) return module;
  if (!find_dot_form(kBFloat16, kBFloat16, kFloat32, context.target))
    fail_unsupported({},
                     "precision bf16: on the target '{}' sums of products of bfloat16 are absent, or slower than those "
                     "of float32 (has_bfloat16_dot, relaxc --print-target); leave --precision out",
                     context.target.cpu);
  return map_functions(std::move(module), [&](const FunctionRef& function) {
    return is_primitive(*function) ? function : PrecisionLowerer(context.ops).run(function);
  });
}

}  // namespace relaxc
