// Expects: operators on leaves, weights folded to constants. Guarantees, with PassSettings::precision other than
// float32, of products (matmul, convolutions) with a constant weight that precision.h does not keep in float32:
//   the target has products of such pairs   both operands are stored in 16 bits by the kernels that make them, and read
//                                           as such by everything else but what always_reads_float32()
//   otherwise                               the weight has 16 bits, the other operand float32
// Constant tables of `take` have 16 bits. Sums are float32. Values that no product reads stay float32.
//
// Guarantees of models that have numbers of 16 bits themselves, at any precision: their products multiply either pairs
// of 16 bits or float32, add up in float32 and round the sum once. The operands of products of float32 are stored as
// float32, widened once: their digits beyond the 16 bits are zero.
#include <algorithm>
#include <map>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "passes/compose.h"
#include "passes/graph_rewriter.h"
#include "passes/precision.h"
#include "passes/product_bands.h"
#include "support/lists.h"

namespace relaxc {

namespace {

bool is_narrow_float(std::optional<DType> dtype) { return dtype == DType::float_(16) || dtype == DType::bfloat16(); }

// Returns whether a product reads each element of its right operand so rarely, as in a step of one token with the keys
// of all others, that it takes no longer to widen each of them than to read it.
bool has_few_rows(const Expr& x) {
  constexpr int64_t kFewRows = 8;
  const std::vector<Expr>* dims = known_shape(x.type());
  const std::optional<int64_t> rows = dims && dims->size() >= 2 ? as_int((*dims)[dims->size() - 2]) : std::nullopt;
  return rows && *rows < kFewRows;
}

Tensor converted(const Tensor& from, DType dtype) {
  Tensor result = Tensor::empty(from.shape(), dtype);
  if (from.dtype() == kFloat32 && is_narrow_float(dtype)) {  // the usual case, of hundreds of millions of numbers
    const auto* begin = from.data<float>();
    auto* to = static_cast<uint16_t*>(result.raw());
    std::transform(begin, begin + from.size(), to, dtype == DType::bfloat16() ? float_to_bfloat16 : float_to_half);
    return result;
  }
  for (int64_t i = 0; i < from.size(); ++i) result.set_double(i, from.as_double(i));
  return result;
}

class PrecisionLowerer final : public GraphRewriter {
 public:
  PrecisionLowerer(const PassContext& context, const FunctionRef& function)
      : GraphRewriter(context.ops),
        context_(context),
        narrow_(narrow_dtype(context.precision, context.target)),
        bands_(find_product_bands(function, context.ops)) {}

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    const Call* call = binding.cast ? nullptr : binding.value.as<Call>();
    if (!call || !call->callee.is<OpRef>()) return std::nullopt;
    constexpr OpName kProducts[] = {ops::kMatmul, ops::kConv1d, ops::kConv2d};
    const bool is_product = find_item(kProducts, op_name(binding.value), &OpName::text);
    if (is_product && is_narrow_float(tensor_dtype(call->args[0].type()))) return of_narrow_model(*call, binding, b);
    if (context_.precision == Precision::kFloat32) return std::nullopt;
    if (is_product) return narrowed_product(*call, binding, b);
    if (as_call(binding.value, ops::kTake)) return narrowed_table(*call, binding, b);
    return reading_float32(*call, binding, b);
  }
  void enter_scope() override { ++scopes_; }
  void leave_scope() override { --scopes_; }

 private:
  // ---- A model of float32

  bool is_kept(const Call& call, const Binding& binding) const {
    return is_kept(call, binding, narrow_, context_.precision == Precision::kMixed);
  }

  std::optional<Expr> narrowed_product(const Call& call, const Binding& binding, Builder& b) {
    const bool are_float32 = tensor_dtype(call.args[0].type()) == kFloat32 &&
                             tensor_dtype(call.args[1].type()) == kFloat32 &&
                             tensor_dtype(binding.value.type()) == kFloat32;
    if (!are_float32 || is_kept(call, binding)) return std::nullopt;
    const Expr x = has_fast_products(narrow_, context_.target) ? stored_as(call.args[0], narrow_, b) : call.args[0];
    return product(call, x, rounded(call.args[1], narrow_), binding, b);
  }

  std::optional<Expr> narrowed_table(const Call& call, const Binding& binding, Builder& b) {
    const Constant* table = call.args[0].as<Constant>();
    if (!table || table->data.dtype() != kFloat32 || is_kept(call, binding)) return std::nullopt;
    const Expr rows = b.op("take", {rounded(call.args[0], narrow_), call.args[1]}, call.attrs, binding.var->name);
    return b.op("astype", {rows}, DTypeAttrs{kFloat32});
  }

  // Gives the operator its operands as they were before they were rounded for products.
  std::optional<Expr> reading_float32(const Call& call, const Binding& binding, Builder& b) {
    if (!always_reads_float32(op_name(binding.value))) return std::nullopt;
    std::vector<Expr> args = call.args;
    bool is_changed = false;
    for (Expr& arg : args) {
      if (const Expr* exact = find_value(exact_, arg.get())) arg = *exact, is_changed = true;
    }
    return is_changed ? std::optional(b.op(op_name(binding.value), std::move(args), call.attrs, binding.var->name))
                      : std::nullopt;
  }

  // ---- A model of 16 bits

  std::optional<Expr> of_narrow_model(const Call& call, const Binding& binding, Builder& b) {
    const DType narrow = *tensor_dtype(call.args[0].type());
    const std::optional<DType> result = tensor_dtype(binding.value.type());
    if (tensor_dtype(call.args[1].type()) != narrow || (result != narrow && result != kFloat32)) return std::nullopt;
    const bool is_constant = call.args[1].is<Constant>();
    if (!is_constant && has_few_rows(call.args[0])) return std::nullopt;
    const bool has_pairs = has_fast_products(narrow, context_.target);
    const bool stays_wide = is_kept(call, binding, narrow, true);
    if (has_pairs && is_constant && !stays_wide && result == kFloat32) return std::nullopt;
    Expr x = call.args[0], w = call.args[1];
    if (!has_pairs || !is_constant || stays_wide) {
      x = stored_as(x, kFloat32, b);
      if (!is_constant) w = stored_as(w, kFloat32, b);
      if (is_constant && stays_wide) w = rounded(w, kFloat32);
    }
    const Expr sum = product(call, x, w, binding, b);
    return result == kFloat32 ? sum : b.op("astype", {sum}, DTypeAttrs{narrow});
  }

  // ---- Both

  bool is_kept(const Call& call, const Binding& binding, DType narrow, bool chooses) const {
    const bool is_in_bands = bands_.products.contains(binding.var.get());
    return find_kept_in_float32({call, binding.value.type(), narrow, chooses, is_in_bands, context_.target}) != nullptr;
  }

  Expr product(const Call& call, const Expr& x, const Expr& w, const Binding& binding, Builder& b) const {
    return b.op(op_name(binding.value), {x, w}, call.attrs.with("out_dtype", to_attr(kFloat32)), binding.var->name);
  }

  // Returns the constant in another dtype. Products may share one.
  Expr rounded(const Expr& weight, DType dtype) {
    const Tensor& data = weight.as<Constant>()->data;
    if (const Expr* known = find_value(constants_, std::pair(data.raw(), dtype.code))) return *known;
    const Expr made = constant(converted(data, dtype));
    kept_.push_back(weight);
    constants_.emplace(std::pair(data.raw(), dtype.code), made);
    return made;
  }

  // Returns the value as another dtype. Later users read that, so that nothing else is stored, unless a branch computes
  // it: its values are not defined behind it.
  Expr stored_as(const Expr& x, DType dtype, Builder& b) {
    if (const Expr* known = find_value(stored_, x.get())) return *known;
    const Expr result = b.op("astype", {x}, DTypeAttrs{dtype});
    if (scopes_ > 0) return result;
    if (const Var* var = x.as<Var>(); var && result.is<Var>()) {
      const Expr back = b.op("astype", {result}, DTypeAttrs{*tensor_dtype(x.type())});
      replace(cast<Var>(x), back);
      stored_.emplace(back.get(), result);
      exact_.emplace(back.get(), x);
    }
    stored_.emplace(x.get(), result);
    kept_.push_back(x);
    return result;
  }

  const PassContext& context_;
  DType narrow_;
  ProductBands bands_;
  std::unordered_map<const NodeHeader*, Expr> stored_;  // by the value, and by what stands for it
  std::unordered_map<const NodeHeader*, Expr> exact_;   // values before they were rounded, by what stands for them
  std::map<std::pair<const void*, DTypeCode>, Expr> constants_;  // by their elements
  std::vector<Expr> kept_;                                       // keeps keys alive
  int scopes_ = 0;                                               // branches and local functions around the binding
};

}  // namespace

IRModule lower_precision(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& function) {
    return is_primitive(*function) ? function : PrecisionLowerer(context, function).run(function);
  });
}

}  // namespace relaxc
