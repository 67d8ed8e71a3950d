// Expects: operators on leaves, constants folded. Guarantees: a product of floats with a constant batch of matrices of
// few bits, such as the weights of a mixture of experts, is a product with each matrix, joined. pack_quantized keeps
// matrices as they are, and reads them so; a batch would become floats.
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "passes/compose.h"

namespace relaxc {

namespace {

// A batch [count, ...] of matrices, which dequantize makes real, perhaps transposed behind it.
struct MatrixBatch {
  Call dequantize;
  DequantizeAttrs attrs;  // its axis counts from the end
  int64_t count;
  bool is_transposed;

  const Tensor& data(size_t i) const { return dequantize.args[i].as<Constant>()->data; }
  bool is_shared(size_t i) const { return data(i).ndim() < 3; }
  // Returns the part of operand i that belongs to matrix `at`, in the memory of the whole.
  Expr part(size_t i, int64_t at) const {
    const Tensor& whole = data(i);
    if (is_shared(i)) return dequantize.args[i];
    const int64_t bytes = whole.bytes() / count;
    std::vector<int64_t> shape(whole.shape().begin() + 1, whole.shape().end());
    return constant(
        Tensor::view(std::move(shape), whole.dtype(), static_cast<uint8_t*>(whole.raw()) + at * bytes, whole.owner()),
        dequantize.args[i].span());
  }
  // Returns whether the parts are whole bytes, and each matrix has its own scales or all share theirs.
  bool has_parts() const {
    for (size_t i : {0, 1, 2}) {
      if (!dequantize.args[i].is<Constant>()) return false;
      const Tensor& whole = data(i);
      const bool has_bytes = whole.size() / count * whole.dtype().bits % 8 == 0;
      if (!is_shared(i) && (whole.shape()[0] != count || !has_bytes)) return false;
    }
    return attrs.axis != -3 || (data(1).size() == 1 && data(2).size() == 1);
  }
};

class BatchSplitter final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    values_.insert_or_assign(binding.var.get(), binding.value);
    const Call* product = as_call(binding.value, ops::kMatmul);
    const std::vector<Expr>* rows = product ? known_shape(product->args[0].type()) : nullptr;
    if (!rows || binding.cast || rows->size() < 2 || rows->size() > 3) return std::nullopt;
    const std::optional<MatrixBatch> batch = batch_of(product->args[1]);
    if (!batch || (rows->size() == 3 && !is_int((*rows)[0], 1) && !is_int((*rows)[0], batch->count)))
      return std::nullopt;
    std::vector<Expr> parts;
    for (int64_t at = 0; at < batch->count; ++at)
      parts.push_back(one_product(*product, *batch, rows_of(product->args[0], *rows, at, b), at, b));
    return b.op("concat", {tuple(std::move(parts))}, ConcatAttrs{0});
  }

 private:
  // Returns the batch that the value is, where products read its matrices as they are.
  std::optional<MatrixBatch> batch_of(const Expr& right) const {
    const Expr* value = find_value(values_, right.get());
    const Call* transpose = value ? as_call(*value, ops::kPermuteDims) : nullptr;
    if (transpose) {
      if (read_attrs<AxesAttrs>(transpose->attrs).permutation(3) != std::vector<int64_t>{0, 2, 1}) return std::nullopt;
      value = find_value(values_, transpose->args[0].get());
    }
    const Call* dequantize = value ? as_call(*value, ops::kDequantize) : nullptr;
    const auto shape = dequantize ? constant_shape(dequantize->args[0].type()) : std::nullopt;
    if (!shape || shape->size() != 3 || (*shape)[0] < 1) return std::nullopt;
    MatrixBatch batch{*dequantize, read_attrs<DequantizeAttrs>(dequantize->attrs), (*shape)[0], transpose != nullptr};
    if (batch.attrs.axis >= 0) batch.attrs.axis -= 3;
    return batch.has_parts() ? std::optional(batch) : std::nullopt;
  }
  // Returns the rows that matrix `at` multiplies, as a matrix.
  Expr rows_of(const Expr& x, const std::vector<Expr>& shape, int64_t at, Builder& b) const {
    if (shape.size() == 2) return x;
    const std::vector<Expr> dims(shape.begin() + 1, shape.end());
    if (is_int(shape[0], 1)) return reshape(x, dims, b);
    const auto list = [](int64_t value) { return shape_expr({int_imm(value)}); };
    const Expr part =
        b.op("strided_slice", {x, list(0), list(at), list(at + 1), list(1)}, SliceAttrs{.assume_inbound = true});
    return reshape(part, dims, b);
  }
  // Returns the product of the rows and matrix `at` as a batch of one.
  static Expr one_product(const Call& product, const MatrixBatch& batch, const Expr& rows, int64_t at, Builder& b) {
    Expr matrix = b.op("dequantize", {batch.part(0, at), batch.part(1, at), batch.part(2, at)}, batch.attrs);
    if (batch.is_transposed) matrix = permute_dims(matrix, {1, 0}, b);
    const Expr one = b.op("matmul", {rows, matrix}, product.attrs);
    std::vector<Expr> dims = *known_shape(one.type());
    dims.insert(dims.begin(), int_imm(1));
    return reshape(one, std::move(dims), b);
  }

  std::unordered_map<const NodeHeader*, Expr> values_;  // by variable
};

}  // namespace

IRModule split_weight_batches(IRModule module, PassContext& context) {
  return rewrite_by<BatchSplitter>(std::move(module), context);
}

}  // namespace relaxc
