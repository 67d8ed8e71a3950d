// Records the CPU that machine code was made for, and tells whether this machine can run it. An instruction that a CPU
// lacks ends the process (SIGILL), so the compiler records the features used, and the loader compares them beforehand.
#pragma once
#include "vm/executable.h"

namespace relaxc::vm {

// Keys of Executable::metadata. Their values are "x86_64" or LLVM's name of another architecture, and names of features
// as LLVM spells them, joined by commas.
inline constexpr const char* kArchitectureKey = "architecture";
inline constexpr const char* kCpuFeaturesKey = "cpu_features";
inline constexpr const char* kCpuKey = "cpu";  // LLVM's name of the processor that the code was made for

// Returns the features of that architecture which compiled code may use beyond its baseline CPU, and which the loader
// can detect; empty for an architecture on which nothing can be loaded.
std::vector<std::string_view> cpu_features(std::string_view architecture);
std::string_view host_architecture();
bool host_has_feature(std::string_view feature);

// Returns the reason why this machine cannot run the executable's machine code, as a sentence with the remedy; empty
// when it can. Without the keys (code from a host) nothing is known and nothing is rejected.
std::string why_host_cannot_run(const Executable& executable);

}  // namespace relaxc::vm
