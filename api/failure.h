// Errors as the C interface tells them: the one table of exceptions and their statuses, for both of its libraries.
#pragma once
#include <string>
#include <vector>

#include "api/relaxc.h"
#include "support/diagnostic.h"

namespace relaxc::api {

// An error with its status. One that the compiler's library has told is thrown as it is.
struct Failure {
  relaxc_status status = RELAXC_OK;
  std::string message = {};
  std::vector<Diagnostic> diagnostics = {};  // of a CompileError
};

// Returns the exception that is being handled; to be called in a `catch (...)`. A RuntimeError of no kind of its own
// has the status `otherwise`: a run failed, or a file of a compilation is wrong.
Failure caught_failure(relaxc_status otherwise) noexcept;

}  // namespace relaxc::api
