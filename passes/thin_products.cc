// Expects: operators on leaves, the user's kernels in their places, since they may be for products. Guarantees: a
// matrix is not transposed for a product with a few rows, which takes less time than the transpose. A row times a
// transposed matrix is the matrix times a column; a few rows, and a few constant columns, are summed along the rows of
// the matrix as it lies.
#include <algorithm>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "passes/compose.h"
#include "support/lists.h"

namespace relaxc {

namespace {

constexpr int64_t kFewRows = 8;
constexpr int64_t kFewColumns = 4;  // fewer than a vector has lanes
constexpr int64_t kFewestSummed = 16, kFewestRows = 64;

class ThinProducts final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    values_.insert_or_assign(binding.var.get(), binding.value);
    const Call* product = as_call(binding.value, ops::kMatmul);
    if (!product || binding.cast) return std::nullopt;
    std::optional<Expr> result = few_rows(*product, binding.value.type(), b);
    if (!result) result = few_columns(*product, binding.value.type(), b);
    return result ? result : row_times_transposed(*product, binding.value.type(), b);
  }

 private:
  const Call* transpose_of(const Expr& value) const {
    const Expr* known = find_value(values_, value.get());
    return known ? as_call(*known, ops::kPermuteDims) : nullptr;
  }
  static std::vector<int64_t> axes_of(const Call& permuted, size_t rank) {
    return read_attrs<AxesAttrs>(permuted.attrs).permutation(rank);
  }
  // Returns whether the value is constant, or will be when it is folded: weights of recurrent layers are parts of one.
  bool follows_from_constants(const Expr& value) const {
    if (value.is<Constant>() || value.is<ShapeExpr>() || value.is<IntImm>()) return true;
    auto is_constant = [&](const Expr& part) { return follows_from_constants(part); };
    if (const Tuple* all = value.as<Tuple>()) return std::ranges::all_of(all->items, is_constant);
    const Expr* known = find_value(values_, value.get());
    if (!known || known->is<Var>()) return false;
    const Call* call = known->as<Call>();
    return call ? std::ranges::all_of(call->args, is_constant) : follows_from_constants(*known);
  }

  // Returns whether it is a product of float32s, and the right operand is a single matrix.
  static bool has_one_matrix(const Call& product, const Type& result) {
    const std::vector<Expr>*x = known_shape(product.args[0].type()), *y = known_shape(product.args[1].type());
    auto is_float = [](const Type& type) { return tensor_dtype(type) == kFloat32; };
    return x && y && x->size() >= 2 && y->size() == 2 && is_float(product.args[0].type()) &&
           is_float(product.args[1].type()) && is_float(result);
  }
  // Sums the products of rows of both operands: x[..., m, k] * y[n, k].
  static Expr product_of_rows(const Expr& x, const Expr& y, Builder& b) {
    return b.op("einsum", {tuple({x, y})}, EinsumAttrs{.subscripts = "...mk,nk->...mn"});
  }

  std::optional<Expr> few_rows(const Call& product, const Type& result, Builder& b) const {
    const Call* transposed = transpose_of(product.args[1]);
    if (!transposed || !has_one_matrix(product, result) || follows_from_constants(transposed->args[0]))
      return std::nullopt;
    const std::vector<Expr>& x = *known_shape(product.args[0].type());
    auto rows = as_int(x[x.size() - 2]);
    if (x.size() > 2 || !rows || *rows >= kFewRows || axes_of(*transposed, 2)[0] != 1) return std::nullopt;
    return product_of_rows(product.args[0], transposed->args[0], b);
  }

  // The constant is transposed while compiling.
  static std::optional<Expr> few_columns(const Call& product, const Type& result, Builder& b) {
    if (!has_one_matrix(product, result) || !product.args[1].is<Constant>()) return std::nullopt;
    const std::vector<int64_t> y = *constant_shape(product.args[1].type());
    const std::vector<Expr>& x = *known_shape(product.args[0].type());
    const bool has_rows = as_int(x[x.size() - 2]).value_or(kFewestRows) >= kFewestRows;
    if (y[1] < 2 || y[1] >= kFewColumns || y[0] < kFewestSummed || !has_rows) return std::nullopt;
    return product_of_rows(product.args[0], permute_dims(product.args[1], {1, 0}, b), b);
  }

  // As a query times all keys. Transposing a row moves no element. A constant matrix is transposed, and stored for its
  // products, when the program is compiled.
  std::optional<Expr> row_times_transposed(const Call& product, const Type& result, Builder& b) const {
    const Call* permuted = transpose_of(product.args[1]);
    const std::vector<Expr>*row = known_shape(product.args[0].type()), *shape = known_shape(result);
    const std::vector<Expr>* matrix = permuted ? known_shape(permuted->args[0].type()) : nullptr;
    const size_t rank = row ? row->size() : 0;
    if (!matrix || !shape || rank < 2 || matrix->size() != rank || permuted->args[0].is<Constant>())
      return std::nullopt;
    std::vector<int64_t> axes = axes_of(*permuted, rank);
    if (!is_int((*row)[rank - 2], 1) || is_int((*matrix)[rank - 2], 1)) return std::nullopt;
    std::swap(axes[rank - 2], axes[rank - 1]);
    if (!std::is_sorted(axes.begin(), axes.end())) return std::nullopt;
    // A matrix that several rows share is read once where it is transposed.
    for (size_t d = 0; d + 2 < rank; ++d) {
      if (equal_dims((*row)[d], (*matrix)[d]) != Verdict::kProven) return std::nullopt;
    }
    std::vector<Expr> column = *row;
    std::swap(column[rank - 2], column[rank - 1]);
    Expr turned = b.op("matmul", {permuted->args[0], reshape(product.args[0], column, b)},
                       read_attrs<MatmulAttrs>(product.attrs));
    return reshape(turned, *shape, b);
  }

  std::unordered_map<const NodeHeader*, Expr> values_;  // by variable
};

}  // namespace

IRModule thin_products(IRModule module, PassContext& context) {
  return rewrite_by<ThinProducts>(std::move(module), context);
}

}  // namespace relaxc
