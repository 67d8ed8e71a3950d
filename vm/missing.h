// Sentences about kernels and C functions that neither the artifact nor a library has: the loader and the compiler say
// them alike.
#pragma once
#include <string_view>

#include "support/diagnostic.h"
#include "support/printable.h"

namespace relaxc::vm {

inline void report_missing_kernel(Diagnostics& diagnostics, const Span& span, std::string_view symbol) {
  diagnostics.error(span,
                    "kernel '{}' is missing; give the library that has it (--kernels LIBRARY.so), link it in (--link), "
                    "or add it to the registry of a host in C++ (Registry::add_kernel)",
                    printable(symbol));
}

// `caller` is "", or says who calls it: ", which tensor program 'scale' calls".
inline void report_missing_function(Diagnostics& diagnostics, const Span& span, std::string_view symbol,
                                    std::string_view caller = "") {
  diagnostics.error(span,
                    "no library of this process has the external function '{}'{}; link the file that has it in "
                    "(--link), or give its library (--kernels, Tables::add_library)",
                    printable(symbol), caller);
}

}  // namespace relaxc::vm
