// A valid call of any operator, for tests that must cover all of them.
#pragma once
#include <map>
#include <optional>

#include "ir/op.h"

namespace relaxc::test {

struct OpSample {
  Call call;
  std::vector<VarRef> params;             // of a function that holds the call; they bind the dims it uses
  std::map<std::string, Expr> functions;  // of the module, that the call refers to
};

// Seed 0 gives known shapes with symbolic dims and default attributes; others vary dims (numbers, symbolic, unknown
// shape, rank or dtype) and attributes. infer accepts the call. An operator without a line in samples.cc, for which
// float tensors do not do, takes its call from a text. Returns nullopt when there is none, which a test forbids.
std::optional<OpSample> sample_call(const OpTable& ops, const OpRow& row, uint64_t seed);
// Returns the first call of the operator in a text of tests/modules; its operands become params.
std::optional<OpSample> sample_in_texts(const OpTable& ops, const OpRow& row);
// Returns a module whose main makes the call and returns its result.
IRModule sample_module(const OpTable& ops, const OpRow& row, const OpSample& sample);

}  // namespace relaxc::test
