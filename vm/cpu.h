// The CPU that machine code was made for, and whether this machine can run it. Code for instructions that a CPU lacks
// ends the process (SIGILL), so the compiler notes what the code may use and the loader compares before it maps the
// code.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vm/executable.h"

namespace relaxc::vm {

// Keys of Executable::metadata: "x86_64" or LLVM's name of another architecture, and names of features as LLVM has
// them, joined by commas.
inline constexpr const char* kArchitectureKey = "architecture";
inline constexpr const char* kCpuFeaturesKey = "cpu_features";

// The features of that architecture which compiled code may use beyond the least CPU of it, and which the loader can
// look for; empty for an architecture on which nothing can be loaded.
std::vector<std::string_view> cpu_features(std::string_view architecture);
std::string_view host_architecture();
bool host_has_feature(std::string_view feature);

// Why this machine cannot run the executable's machine code, as a sentence with the remedy; empty when it can. Without
// the keys (code that a host brings) nothing is known and nothing is refused.
std::string why_not_here(const Executable& executable);

}  // namespace relaxc::vm
