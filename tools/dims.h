// The symbolic dims of a function's inputs: which values the inputs that are given leave for the others.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>

#include "vm/executable.h"
#include "vm/value.h"

namespace relaxc::tools {

// Returns the value of an expression over dims as types have them: numbers, names, + - * // %, parentheses, T.min and
// T.max. Names that are not words stand in quotes: 'batch size'. Returns nullopt for other text, a name without a
// value, an overflow and a division by zero.
std::optional<int64_t> evaluate_dim(std::string_view text, const std::map<std::string, int64_t>& dims);
// Returns the names in such an expression.
std::set<std::string> names_in_dim(std::string_view text);

class DimSolver {
 public:
  // These dims have values.
  explicit DimSolver(std::map<std::string, int64_t> known = {}) : known_(std::move(known)) {}
  // The expression is this number in an input that is given.
  void learn(const vm::DimInfo& dim, int64_t value);
  // The expression is a dim of an input that is not given. All of these must be learnt and needed before value().
  void need(const vm::DimInfo& dim) { needed_.push_back(dim); }
  // Chooses values for the names that nothing determines: the same number for all of them, the smallest power of two
  // for which no dim that is needed is 0, or else none is negative; more where a range begins above it.
  void solve();
  // Returns the number. Throws a CompileError that asks for a value when the dim has none that is at least 0.
  int64_t value(const vm::DimInfo& dim) const;
  const std::map<std::string, int64_t>& known() const { return known_; }

 private:
  bool invert(const vm::DimInfo& dim, int64_t value);
  bool all_at_least(int64_t least, const std::map<std::string, int64_t>& dims) const;

  std::map<std::string, int64_t> known_;
  std::vector<std::pair<vm::DimInfo, int64_t>> equations_;
  std::vector<vm::DimInfo> needed_;
};

// Returns the symbolic dims of the inputs with the sizes that these have.
std::map<std::string, int64_t> dims_of_inputs(const std::vector<vm::ValueInfo>& infos,
                                              const std::vector<vm::Value>& inputs);

}  // namespace relaxc::tools
