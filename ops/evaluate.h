// Evaluates calls of operators on small tensors whose elements are known as scalars while compiling: numbers, and
// expressions over dims. This turns a model's shape arithmetic (Shape, Gather, Concat, Reshape) into symbolic dims. It
// runs the tensor program of the operator on scalar expressions, an instance of partial evaluation (Jones, Gomard and
// Sestoft, 1993), so that no operator is described a second time.
#pragma once
#include <unordered_map>

#include "ir/arith.h"
#include "ir/op.h"

namespace relaxc {

// A tensor of at most kMostElements elements in row-major order. They are int64 scalars for int64 and int32, bool
// scalars for bool, and constants or Cast(int64 scalar) for float32 and float64.
struct KnownTensor {
  static constexpr int64_t kMostElements = 64;
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<Expr> elements;

  Type type() const;
  // Returns the constant integer of the only element. The model decides how many elements there are.
  std::optional<int64_t> only_int() const { return elements.size() == 1 ? as_int(elements[0]) : std::nullopt; }
  // Returns the tensor when all elements are numbers.
  std::optional<Tensor> as_tensor() const;
};
// Returns the int64 scalar that an element equals, or nullopt when it may have a fraction.
std::optional<Expr> integer_of(const Expr& element);
// Returns whether the type is that of a small tensor of these dtypes.
bool may_be_known(const Type& type);
// Returns nullopt for a large tensor, and for another dtype.
std::optional<KnownTensor> known_tensor(const Tensor& tensor);

// The programs of operators that were evaluated last, since shape arithmetic repeats a few calls many times.
struct EvaluatedPrograms {
  struct Entry {
    Attrs attrs;
    std::vector<KnownTensor> operands;  // without elements
    KnownTensor result;                 // without elements
    OpPattern pattern;
    PrimFuncRef program;
  };
  std::unordered_map<const OpRow*, Entry> last = {};
};

// Returns the result of a normal call of the operator whose tensor arguments, tuples flattened, have these elements.
// may_be_known() holds for its type. Returns nullopt where an element is not such a scalar. Sums of floats that round
// are computed when the model runs, because their rounding depends on the order that the compiled code sums in.
std::optional<KnownTensor> evaluate(const OpRow& row, const Expr& value, std::vector<KnownTensor> tensors,
                                    EvaluatedPrograms& programs, const Analyzer& facts);

}  // namespace relaxc
