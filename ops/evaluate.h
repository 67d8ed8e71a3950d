// Evaluates calls of operators on small tensors whose elements are known as scalars while compiling: numbers, and
// expressions over dims. Shape arithmetic of a model (Shape, Gather, Concat, Reshape) becomes symbolic dims that way.
// The operator's own tensor program runs on scalar expressions, an instance of partial evaluation (Jones, Gomard and
// Sestoft, 1993), so that no operator is described a second time.
#pragma once
#include "ir/arith.h"
#include "ir/op.h"

namespace relaxc {

// At most kMostElements elements in row-major order: int64 scalars for int64 and int32, bool scalars, and for float32
// and float64 constants or Cast(int64 scalar).
struct KnownTensor {
  static constexpr int64_t kMostElements = 64;
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<Expr> elements;

  Type type() const;
  // The constant integer of one element; how many elements there are is the model's word.
  std::optional<int64_t> only_int() const { return elements.size() == 1 ? as_int(elements[0]) : std::nullopt; }
  // The tensor, when all elements are numbers.
  std::optional<Tensor> as_tensor() const;
};
// nullopt for a large tensor, and for another dtype.
std::optional<KnownTensor> known_tensor(const Tensor& tensor);

// The result of a call whose tensor arguments, tuples flattened, have these elements. nullopt where it has several
// results or a large one, where nothing lowers the operator to a tensor program, and where an element is not such a
// scalar. Sums of floats are left to the run, whose rounding is its own. Throws what the operator's infer throws.
std::optional<KnownTensor> evaluate(const OpRow& row, const Call& call, const std::vector<KnownTensor>& tensors,
                                    const Analyzer& facts, const Span& span);

}  // namespace relaxc
