// <relaxc/pattern_pass.h>: a pass that replaces what patterns match by other operators, such as those of an
// accelerator.
#pragma once
#include <variant>

#include "passes/pass.h"
#include "passes/pattern.h"

namespace relaxc {

struct PatternRewrite {
  // An operator, "matmul", or definitions under @S.pattern as in files of --kernels (docs/own-kernels.md). An operand
  // of an alternative that does not match (R.subtract(x, zero) | x) is left out of the match, and cheap values inside
  // may be used elsewhere, too.
  std::string text;
  // Returns the value of the pattern's result, for which it emits operators, or why the match stays as it is.
  std::function<std::variant<Expr, std::string>(const PatternMatch& match, Builder& builder)> replace;
};

// Returns the pass that tries the patterns in order; a value belongs to the first that takes it. `relaxc explain` names
// it for the nodes that it takes, and the reason for those that it leaves. Patterns that do not parse are a
// CompileError.
Pass pattern_pass(const std::string& name, const std::string& doc, const std::vector<PatternRewrite>& rewrites,
                  const OpTable& ops);

struct KernelRule;
// Returns the patterns of a text as above. `place` is where errors say that it stands.
std::vector<KernelRule> read_loose_patterns(const std::string& text, const std::string& place, const OpTable& ops);

}  // namespace relaxc
