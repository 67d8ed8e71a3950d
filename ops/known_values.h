// What is known of small tensors while compiling: an analysis over the bindings of graph functions, in their order. The
// importer asks it for the shapes, axes and counts that ONNX passes as tensors, and passes/fold_known_values.cc for
// those of any module.
#pragma once
#include "ir/builder.h"
#include "ops/evaluate.h"

namespace relaxc {

class KnownValues {
 public:
  // Returns the contents of a tensor, a leaf, or null.
  const KnownTensor* find(const Expr& tensor);
  // Learns the contents of a variable from its value, and returns them, or null.
  const KnownTensor* learn(const VarRef& var, const Expr& value, const OpTable& ops, const Analyzer& facts);
  void set(const Expr& tensor, KnownTensor contents);

 private:
  friend class KnownInside;
  struct Entry {
    Expr tensor;  // keeps the key alive
    KnownTensor contents;
  };
  std::optional<std::vector<KnownTensor>> operands(const Call& call);
  std::unordered_map<const NodeHeader*, Entry> entries_;
  std::vector<const NodeHeader*> order_;  // the keys, in which they came
  EvaluatedPrograms programs_;
};

// Forgets at its end what was learned since: a branch or loop reads elements of values from outside into variables that
// are not defined behind it.
class KnownInside {
 public:
  explicit KnownInside(KnownValues& values) : values_(values), size_(values.order_.size()) {}
  KnownInside(const KnownInside&) = delete;
  KnownInside& operator=(const KnownInside&) = delete;
  ~KnownInside();

 private:
  KnownValues& values_;
  size_t size_;
};

// Returns a tensor of these contents: a constant, or one that the builder makes of scalars.
Expr tensor_of(const KnownTensor& contents, Builder& builder);

}  // namespace relaxc
