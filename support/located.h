// Places for errors that come from helpers without one.
#pragma once
#include "support/diagnostic.h"

namespace relaxc {

// The same diagnostics; those without a place get this one.
std::vector<Diagnostic> with_place(std::vector<Diagnostic> diagnostics, const Span& span);

}  // namespace relaxc
