// What `relaxc inspect` says about an artifact. It needs the runtime only.
#pragma once
#include <string>

#include "tools/report.h"

namespace relaxc::tools {

// Describes how it was made; the sections of the file; the inputs and outputs of public functions; kernels, by where
// they come from; constants; and what the compiler noted. The weights are compared with their hash.
Report report_of_artifact(const std::string& path);

}  // namespace relaxc::tools
