#include "passes/quantized_products.h"

#include <algorithm>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "support/lists.h"

namespace relaxc {

namespace {

bool is_number_of_few_bits(DType dtype) {
  constexpr DTypeCode kFloats[] = {DTypeCode::kFloat4E2M1FN, DTypeCode::kFloat8E4M3FN, DTypeCode::kFloat8E5M2};
  return std::ranges::count(kFloats, dtype.code) > 0 ||
         (dtype.is_integral() && (dtype.bits == 2 || dtype.bits == 4 || dtype.bits == 8));
}

constexpr int64_t kColumnsOfPanels = 16;  // divides the columns of all panels in which such a matrix is stored

// Returns whether each column, or each block of it or of columns, has a parameter, or all columns have the same one.
bool is_parameter_of_columns(const Type& parameter, const DequantizeAttrs& attrs, int64_t depth_axis) {
  std::optional<std::vector<int64_t>> shape = constant_shape(parameter);
  if (!shape) return false;
  if (std::ranges::all_of(*shape, [](int64_t dim) { return dim == 1; })) return true;
  const int64_t axis = attrs.axis < 0 ? attrs.axis + 2 : attrs.axis;
  return attrs.block_size > 0 ? axis == depth_axis || attrs.block_size % kColumnsOfPanels == 0 : axis != depth_axis;
}

// Returns the matrix of the call; nullopt where products do not read it as it is.
std::optional<QuantizedOperand> operand_of(const Call& dequantize, const Type& type, bool is_transposed) {
  const auto attrs = read_attrs<DequantizeAttrs>(dequantize.attrs);
  const Expr &numbers = dequantize.args[0], &scale = dequantize.args[1], &zero_point = dequantize.args[2];
  std::optional<std::vector<int64_t>> shape = constant_shape(type);
  std::optional<DType> narrow = tensor_dtype(numbers.type()), wide = tensor_dtype(scale.type()),
                       zero = tensor_dtype(zero_point.type());
  const int64_t depth_axis = is_transposed ? 1 : 0;
  if (!shape || shape->size() != 2 || std::ranges::count(*shape, 0) > 0 || !narrow || !wide || !zero)
    return std::nullopt;
  const bool has_float_zero = narrow->is_integral() && zero->is_float() && zero->bits >= 16 && zero->bits <= 32;
  if (zero != narrow && !has_float_zero) return std::nullopt;
  const bool are_floats =
      wide->is_float() && wide->bits <= 32 && attrs.out_dtype.bits >= 16 && attrs.out_dtype.bits <= 32;
  if (!is_number_of_few_bits(*narrow) || !are_floats || !is_parameter_of_columns(scale.type(), attrs, depth_axis) ||
      !is_parameter_of_columns(zero_point.type(), attrs, depth_axis))
    return std::nullopt;
  const int64_t depth = (*shape)[static_cast<size_t>(depth_axis)], width = (*shape)[is_transposed ? 0 : 1];
  const bool shares_columns = attrs.block_size > 0 && (attrs.axis < 0 ? attrs.axis + 2 : attrs.axis) != depth_axis;
  const int64_t size = shares_columns ? 1 : attrs.block_size, columns = shares_columns ? attrs.block_size : 1;
  const int64_t block = size > 0 ? std::min(size, depth) : depth;
  return QuantizedOperand{numbers, scale, zero_point, is_transposed, depth, width, block, columns, attrs.out_dtype};
}

// The bindings of a function, and by whom they are used.
class QuantizedUses {
 public:
  explicit QuantizedUses(const FunctionRef& function)
      : used_otherwise_(used_outside(function, [](const Binding&) { return true; })) {
    for_each_binding(function->body, [&](const Binding& binding) {
      bindings_.emplace(binding.var.get(), binding);
      order_.push_back(binding.var);
      for (const VarRef& var : free_vars(binding.value)) users_[var.get()].push_back(binding.var.get());
      if (binding.cast) used_otherwise_.insert(binding.var.get());
    });
  }

  VarSet operands() const {
    VarSet result;
    for (const VarRef& var : order_) {
      if (as_call(bindings_.at(var.get()).value, ops::kDequantize) && is_only_multiplied(var.get(), result))
        result.insert(var.get());
    }
    return result;
  }

 private:
  // Returns whether all users are products that read the matrix as it is, and adds the transposes among them.
  bool is_only_multiplied(const NodeHeader* var, VarSet& transposes) const {
    const std::vector<const NodeHeader*>* users = find_value(users_, var);
    if (!users || used_otherwise_.contains(var)) return false;
    for (const NodeHeader* user : *users) {
      const Binding& binding = bindings_.at(user);
      if (as_call(binding.value, ops::kPermuteDims)) {
        if (!is_only_multiplied(user, transposes)) return false;
        transposes.insert(user);
      } else if (!multiplies(binding, var)) {
        return false;
      }
    }
    return true;
  }
  bool multiplies(const Binding& binding, const NodeHeader* matrix) const {
    const Call* matmul = as_call(binding.value, ops::kMatmul);
    if (!matmul || matmul->args[0].get() == matrix) return false;
    return find_quantized_operand(*matmul, binding.value.type(),
                                  [&](const Expr& var) {
                                    const Binding* known = find_value(bindings_, var.get());
                                    return known ? &known->value : nullptr;
                                  })
        .has_value();
  }

  VarSet used_otherwise_;
  std::unordered_map<const NodeHeader*, Binding> bindings_;  // by variable
  std::vector<VarRef> order_;
  std::unordered_map<const NodeHeader*, std::vector<const NodeHeader*>> users_;
};

}  // namespace

bool QuantizedOperand::has_float_zero_point() const {
  return tensor_dtype(numbers.type())->is_integral() && tensor_dtype(zero_point.type())->is_float();
}

std::optional<QuantizedOperand> find_quantized_operand(const Call& matmul, const Type& result,
                                                       const ValueOf& value_of) {
  const std::vector<Expr>* x = known_shape(matmul.args[0].type());
  std::optional<DType> left = tensor_dtype(matmul.args[0].type()), right = tensor_dtype(matmul.args[1].type()),
                       sum = tensor_dtype(result);
  const bool are_floats = right && right->is_float() && left == right && (sum == right || sum == kFloat32);
  const Expr* value = value_of(matmul.args[1]);
  if (!x || x->size() < 2 || !are_floats || !value) return std::nullopt;
  const Call* transpose = as_call(*value, ops::kPermuteDims);
  if (transpose) {
    if (read_attrs<AxesAttrs>(transpose->attrs).permutation(2)[0] != 1) return std::nullopt;
    value = value_of(transpose->args[0]);
  }
  const Call* dequantize = value ? as_call(*value, ops::kDequantize) : nullptr;
  return dequantize ? operand_of(*dequantize, dequantize->args[0].type(), transpose != nullptr) : std::nullopt;
}

VarSet operands_of_quantized_products(const FunctionRef& function) { return QuantizedUses(function).operands(); }

}  // namespace relaxc
