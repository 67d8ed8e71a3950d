// Reads patterns. Internal to passes/read_*.cc and passes/pattern.cc.
#pragma once
#include "passes/pattern.h"
#include "tir/schedule/script_body.h"

namespace relaxc {

// Reads a definition whose body is the graph to find: assignments of operators, and a return. Throws CompileErrors.
Pattern read_pattern(const text::Line& definition, const ScriptFile& file, const OpTable& ops);
// Returns the params that its body does not use. A kernel's pattern then matches nothing.
std::vector<std::string> unused_params(const Pattern& pattern);
// Returns the pattern of one operator on any operands.
Pattern pattern_of_operator(const std::string& name, const Attrs& attrs, const OpTable& ops, const Span& span);

}  // namespace relaxc
