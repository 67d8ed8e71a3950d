// Sentences about kernels that neither the artifact nor a library has: the loader and the compiler say them alike.
#pragma once
#include <string_view>

#include "support/diagnostic.h"
#include "support/printable.h"

namespace relaxc::vm {

inline void report_missing_kernel(Diagnostics& diagnostics, const Span& span, std::string_view symbol) {
  diagnostics.error(span,
                    "kernel '{}' is missing; give the library that has it (--kernels LIBRARY.so), link it in (--link), "
                    "or add it to the registry with Registry::add_kernel",
                    printable(symbol));
}

}  // namespace relaxc::vm
