// The replacement of a rewriter, in place of what its pattern matched.
#pragma once
#include <variant>

#include "passes/kernel_rules.h"

namespace relaxc {

// Returns the value of the replacement on the match's operands, whose bindings go to the builder, with the functions
// that it calls in the module; or why it does not fit there. Types that the replacement leaves open are inferred from
// the operands. The value has the types of the match's results; what is not known of them is tested at run time.
std::variant<Expr, std::string> replacement_of(const KernelRule& rule, const PatternMatch& match, IRModule& module,
                                               Builder& builder);

}  // namespace relaxc
