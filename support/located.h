// Gives errors a place when they come from helpers that do not know one.
#pragma once
#include "support/diagnostic.h"

namespace relaxc {

// Returns the same diagnostics; those without a place get this one.
std::vector<Diagnostic> with_place(std::vector<Diagnostic> diagnostics, const Span& span);

}  // namespace relaxc
