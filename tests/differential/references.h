// Plain C++ results of operators on small tensors, for operators that no case of the ONNX backend tests reaches. The
// differential tests compare the interpreter with them; tests/differential/oracles_test.cc says which operators need
// one. They take shapes from the operands and attributes alone, so that a wrong `infer` is found as well.
#pragma once
#include <map>
#include <set>

#include "ir/arith.h"
#include "ir/op.h"
#include "vm/tensor.h"

namespace relaxc::test {

// A call whose dims are numbers.
struct ReferenceCall {
  const Call& call;
  std::vector<Tensor> x;  // its tensor arguments, tuples flattened
  template <HasFields T>
  T attrs() const {
    return read_attrs<T>(call.attrs);
  }
  int64_t number(size_t i) const { return as_int(simplify(call.args.at(i))).value(); }  // a scalar argument
  std::vector<int64_t> dims(size_t i) const;                                            // a shape argument
};
using Reference = std::function<std::vector<Tensor>(const ReferenceCall&)>;

// Returns the references by name: "relax.nn.pad".
const std::map<std::string, Reference>& references();

// Returns the operators that a text of `# test: run` calls: their results stand in the text.
std::set<std::string> ops_of_run_texts();

// Returns the results of the only call of an operator in main, or nullopt when that operator has no reference.
std::optional<std::vector<Tensor>> run_reference(const IRModule& module, const std::vector<Tensor>& inputs);

}  // namespace relaxc::test
