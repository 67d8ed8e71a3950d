// Two products with a softmax between them, as fuse_attention finds them among the bindings of a block.
#pragma once
#include "passes/compose.h"

namespace relaxc {

// An element of a tensor of the graph. Its indices are in terms of axes, and of the graph's dims.
struct TensorElement {
  Expr tensor;
  std::vector<Expr> at;
};
// Returns the one dim that the axis itself indexes; nullopt if there is none, or other dims depend on it.
std::optional<size_t> dim_of(const TensorElement& element, const IterVar& axis);

// out[spatial...] = the sum over the depth of left * right. The column is the last spatial axis, the row one that only
// `left` has, and the batch are the others.
struct ProductForm {
  std::vector<IterVar> spatial, batch;
  IterVar row, column, depth;
  TensorElement left, right;
};

// The bindings of the values, and the forms of the products. Everything is float32.
struct Attention {
  size_t scores, softmax, output;
  std::vector<size_t> before, behind;  // the softmax: from the scores to it, and from it to the second product
  std::optional<size_t> transposed;    // the output, if only that uses it; the last axis is the same
  ProductForm first, second;           // second.batch has the order of the softmax's dims
  TensorElement query, key, value;     // the operands, behind what moves elements; the last dims are depth and column
  std::vector<size_t> members() const;
};

class AttentionFinder {
 public:
  // `used_outside`: the variables that are used after the block.
  AttentionFinder(const std::vector<Binding>& bindings, const IRModule& module, const VarSet& used_outside);
  // Returns what is around a softmax; nullopt for other bindings, and where others use what is between the products.
  std::optional<Attention> find(size_t binding) const;
  // Returns the bindings of the query, the key and the value, as far as they are bindings of the block.
  std::vector<size_t> sources_of(const Attention& found) const;
  const KernelNode* node(size_t binding) const { return nodes_[binding] ? &*nodes_[binding] : nullptr; }
  const Call* reshape_of(size_t binding) const;
  // Returns the element that this one is a copy of: of a transpose, slice, repetition or reshape.
  std::optional<TensorElement> source_of(const TensorElement& element) const;

 private:
  const VarRef& var(size_t i) const { return bindings_[i].var; }
  std::optional<size_t> place_of(const Expr& tensor) const;
  std::optional<size_t> user_of(size_t i) const;
  std::optional<ProductForm> product_of(size_t i) const;
  TensorElement resolved(TensorElement element, const Analyzer& facts,
                         const std::function<bool(const TensorElement&)>& fits) const;
  bool is_elementwise_on(size_t i, const Expr& tensor) const;
  bool reshapes_batch(size_t i) const;
  bool path_from_product(const Expr& tensor, std::vector<size_t>& path) const;
  bool is_softmax_over_last(size_t i) const;
  std::optional<size_t> product_behind(size_t softmax, std::vector<size_t>& behind) const;
  std::optional<size_t> transpose_behind(size_t output) const;
  bool resolve_operands(Attention& found) const;

  const std::vector<Binding>& bindings_;
  const VarSet& used_outside_;
  std::vector<std::optional<KernelNode>> nodes_;                      // by binding
  std::unordered_map<const NodeHeader*, size_t> places_;              // of bindings, by variable
  std::unordered_map<const NodeHeader*, std::vector<size_t>> users_;  // bindings, by variable
};

// Returns the indices of the same element in the tensor that was reshaped. Equal dims at the end stay, and equal ones
// at the front; of those between, the extents must be known. nullopt where they are not.
std::optional<std::vector<Expr>> index_before_reshape(const std::vector<Expr>& at, const std::vector<Expr>& shape,
                                                      const std::vector<Expr>& before);

}  // namespace relaxc
