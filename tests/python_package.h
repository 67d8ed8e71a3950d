// Whether the Python package (api/python) can be tried here.
#pragma once
#include <string>

#include "tests/process.h"

namespace relaxc::test {

inline const char* const kPython = "/usr/bin/python3";

// Returns what is missing for the package, "" if nothing is.
inline std::string why_no_python_package() {
  static const std::string kReason = [] {
    // A python without sanitizers cannot open a library with them.
    if (*RELAXC_CXX_FLAGS) return "the build has sanitizers";
    return run_program({kPython, "-c", "import numpy"}, 60).exit_code == 0 ? "" : "python3 with numpy is not installed";
  }();
  return kReason;
}

}  // namespace relaxc::test
