// Expects: operators on leaves, the user's kernels in their places. Guarantees: where a number scales the right operand
// of a batch of products, both of which only the run knows, it scales the left one instead:
//
//   q . (k^T * s)  ->  (q * s) . k^T
//
// torch scales queries and keys by the root of the usual factor each. Keys that are not scaled are read where they lie,
// in a decoder's cache for instance, and a step scales a single query. The products of elements are rounded in another
// order, as in every schedule of their sums.
#include "ir/constants.h"
#include "ir/op_names.h"
#include "passes/compose.h"

namespace relaxc {

namespace {

// A tensor, and the operator by which a number scales it.
struct Scaled {
  Expr tensor;
  OpName op;
  Expr number;
};

constexpr int64_t kFewestDims = 3;  // of an operand that is a batch of matrices
constexpr OpName kMoves[] = {ops::kPermuteDims, ops::kReshape, ops::kExpandDims, ops::kBroadcastTo};

class ScaleMover final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    if (!binding.cast) values_.insert_or_assign(binding.var.get(), binding.value);
    const Call* product = as_call(binding.value, ops::kMatmul);
    if (!product || binding.cast || !is_batch(*product)) return std::nullopt;
    const std::optional<Scaled> right = unscaled(product->args[1], b);
    if (!right) return std::nullopt;
    const Expr left = b.op(ops::short_name(right->op), {product->args[0], right->number});
    return b.op("matmul", {left, right->tensor}, read_attrs<MatmulAttrs>(product->attrs));
  }

 private:
  // Returns whether the operands are batches of matrices in float32, the left ones not larger as far as is known.
  static bool is_batch(const Call& product) {
    const std::vector<Expr>*x = known_shape(product.args[0].type()), *y = known_shape(product.args[1].type());
    auto is_float = [](const Expr& operand) { return tensor_dtype(operand.type()) == kFloat32; };
    if (!x || !y || std::ssize(*x) < kFewestDims || std::ssize(*y) < kFewestDims || !is_float(product.args[0]) ||
        !is_float(product.args[1]))
      return false;
    const auto rows = as_int((*x)[x->size() - 2]), columns = as_int(y->back());
    return !rows || !columns || *rows <= *columns;
  }
  // Returns the operand before a number scaled it, also behind operators that move elements; these are made anew.
  std::optional<Scaled> unscaled(const Expr& operand, Builder& b) const {
    const Expr* value = find_value(values_, operand.get());
    const Call* call = value ? value->as<Call>() : nullptr;
    if (!call) return std::nullopt;
    for (OpName op : {ops::kMultiply, ops::kDivide}) {
      const bool is_scale = as_call(*value, op) && is_one_element(call->args[1].type()) &&
                            !is_one_element(call->args[0].type()) && !call->args[0].is<Constant>() &&
                            known_rank(call->args[1].type()) <= kFewestDims;
      if (is_scale) return Scaled{call->args[0], op, call->args[1]};
    }
    for (OpName op : kMoves) {
      if (!as_call(*value, op)) continue;
      std::optional<Scaled> inside = unscaled(call->args[0], b);
      if (!inside) return std::nullopt;
      std::vector<Expr> args = call->args;
      args[0] = inside->tensor;
      inside->tensor = b.op(ops::short_name(op), args, call->attrs);
      return inside;
    }
    return std::nullopt;
  }

  std::unordered_map<const NodeHeader*, Expr> values_;  // by variable
};

}  // namespace

IRModule move_scales(IRModule module, PassContext& context) {
  return rewrite_by<ScaleMover>(std::move(module), context);
}

}  // namespace relaxc
