// Expects: operators on leaves, integers in quantized parts (integer_regions). Guarantees: bytes that depend on one
// tensor of bytes, element by element, are taken from a table with a result for each of the 256 values where that is
// faster than to compute them. A sigmoid, a GELU or a hard swish between dequantize and quantize becomes relax.lookup,
// and so does a chain of them with quantized values between, of which each byte depends on one.
// The table is the same operators on all bytes, which fold_constants computes: the results are the same bits.
#include <algorithm>
#include <functional>

#include "ir/constants.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/quantize.h"
#include "passes/compose.h"
#include "support/lists.h"
#include "tir/analysis/byte_tables.h"

namespace relaxc {

namespace {

// In instructions for a vector of float32: an operator on them, a conversion from or to bytes, a function such as exp;
// and an element of a table, for which all lanes are taken one by one where the target has no instructions for it.
constexpr int kOperatorCost = 1, kConversionCost = 3, kFunctionCost = 20, kTableCost = 8, kTableByLanesCost = 24;

bool is_byte_tensor(const Type& type) {
  const std::optional<DType> dtype = tensor_dtype(type);
  return dtype && dtype->is_integral() && !dtype->is_bool() && dtype->bits == 8 && known_shape(type);
}
bool is_scalar_constant(const Expr& arg) {
  return arg.is<FloatImm>() || arg.is<IntImm>() || constant_element(arg).has_value();
}

int cost_of(const std::string& op) {
  constexpr OpName kPlain[] = {
      ops::kAdd,  ops::kSubtract, ops::kMultiply, ops::kDivide,          ops::kMaximum,
      ops::kRelu, ops::kMinimum,  ops::kClip,     OpName{"relax.round"}, OpName{"relax.negative"},
      ops::kAbs,  ops::kAstype};
  if (op == ops::kQuantize || op == ops::kDequantize) return kConversionCost;
  return find_item(kPlain, op, &OpName::text) ? kOperatorCost : kFunctionCost;
}

class TableMaker final : public GraphRewriter {
 public:
  explicit TableMaker(const PassContext& context)
      : GraphRewriter(context.ops), table_cost_(has_byte_tables(context.target) ? kTableCost : kTableByLanesCost) {}

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    const Call* call = binding.cast ? nullptr : binding.value.as<Call>();
    std::optional<Expr> root = call ? root_of(*call, binding.value.type()) : std::nullopt;
    if (!root) return std::nullopt;
    int cost = cost_of(call->callee.as<OpRef>()->name);
    for (const Expr& arg : call->args) {
      if (const Derived* known = find_value(derived_, arg.get())) cost += known->cost;
    }
    derived_.insert_or_assign(binding.var.get(), Derived{*root, binding.value, cost});
    kept_.push_back(binding.var);
    if (!is_byte_tensor(binding.value.type()) || cost <= table_cost_) return std::nullopt;
    const Expr result = b.op(std::string(kLookup.text), {*root, on_all_bytes(binding.var, *root, b)});
    // Later operators depend on the same bytes, so that x * sigmoid(x) with integers between is one table, too.
    derived_.insert_or_assign(result.get(), Derived{*root, binding.value, cost});
    kept_.push_back(result);
    return result;
  }

 private:
  // A value whose elements are functions of the elements of a tensor of bytes.
  struct Derived {
    Expr root;
    Expr value;  // a call
    int cost;    // from the root, in instructions
  };

  // Returns the tensor of bytes on whose elements those of the call depend.
  std::optional<Expr> root_of(const Call& call, const Type& type) const {
    const OpRef* op = call.callee.as<OpRef>();
    const OpRow* row = op ? ops_.find(op->name) : nullptr;
    if (!row || !row->pure || !row->legalize || !is_elementwise(*row, call) || !known_shape(type)) return std::nullopt;
    std::optional<Expr> root;
    for (const Expr& arg : call.args) {
      if (is_scalar_constant(arg)) continue;
      const Derived* known = find_value(derived_, arg.get());
      if (!known && !(arg.is<Var>() && is_byte_tensor(arg.type()))) return std::nullopt;
      const Expr& one = known ? known->root : arg;
      if (root && !same_node(*root, one)) return std::nullopt;
      root = one;
    }
    return root && has_shape_of(type, root->type()) ? root : std::nullopt;
  }
  static bool is_elementwise(const OpRow& row, const Call& call) {
    if (row.name == ops::kQuantize) return true;
    if (row.name == ops::kDequantize) return read_attrs<DequantizeAttrs>(call.attrs).block_size == 0;
    return row.pattern == OpPattern::kElementwise || row.pattern == OpPattern::kBroadcast;
  }
  static bool has_shape_of(const Type& a, const Type& b) {
    const std::vector<Expr>&x = *known_shape(a), &y = *known_shape(b);
    return std::ranges::equal(x, y, [](const Expr& i, const Expr& j) { return structural_equal(i, j); });
  }

  // Emits the operators between the root and the value on the 256 bytes in the order of their bits.
  Expr on_all_bytes(const Expr& value, const Expr& root, Builder& b) const {
    std::unordered_map<const NodeHeader*, Expr> made;
    std::function<Expr(const Expr&)> emitted = [&](const Expr& x) -> Expr {
      if (const Constant* number = x.as<Constant>()) return constant(number->data.reshaped(std::vector<int64_t>()));
      if (is_scalar_constant(x)) return x;
      if (same_node(x, root)) return all_bytes(*tensor_dtype(root.type()));
      if (const Expr* known = find_value(made, x.get())) return *known;
      const Call& call = *derived_.at(x.get()).value.as<Call>();
      const Expr result = b.op(call.callee.as<OpRef>()->name,
                               map_each(call.args, [&](const Expr& arg) { return emitted(arg); }), call.attrs);
      made.emplace(x.get(), result);
      return result;
    };
    return emitted(value);
  }
  static Expr all_bytes(DType dtype) {
    Tensor tensor = Tensor::empty({kByteTableSize}, dtype);
    for (int64_t i = 0; i < kByteTableSize; ++i) static_cast<uint8_t*>(tensor.raw())[i] = static_cast<uint8_t>(i);
    return constant(std::move(tensor));
  }

  const int table_cost_;
  std::unordered_map<const NodeHeader*, Derived> derived_;  // by variable
  std::vector<Expr> kept_;                                  // keeps keys alive
};

}  // namespace

IRModule lookup_tables(IRModule module, PassContext& context) {
  return map_functions(std::move(module), [&](const FunctionRef& function) {
    return is_primitive(*function) ? function : TableMaker(context).run(function);
  });
}

}  // namespace relaxc
