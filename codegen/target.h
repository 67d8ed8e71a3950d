// Turns the text of `--target=...` into a Target.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tir/target.h"

namespace relaxc::codegen {

// "host", "x86-64", "x86-64-v2" (-v3, -v4), "cpu=NAME" with LLVM's names, "@FILE" (docs/targets.md), or a list
// "triple=T,cpu=NAME,+feature,-feature,file=FILE". Each figure is from the file, else the running machine ("host"
// only), else a table of processors, else LLVM, else a default; the same text gives the same Target on every machine
// unless it is "host". Throws a CompileError that lists what is accepted; kUnsupported for architectures of LLVM alone.
Target parse_target(std::string_view text);
// Returns what parse_target accepts, as a list for a person.
std::string target_forms();
// Return LLVM's version, and the names of the architectures that relaxc makes code for, as far as this LLVM has them.
std::string llvm_version();
std::vector<std::string> architectures();
// Returns the machine this runs on, with the features it reports. Code for it may fault on another machine.
Target host_target();

// These return LLVM's name of the target's architecture, and the features of it that code for the target may use. The
// loader compares them with a CPU (vm/cpu.h).
std::string architecture(const Target& target);
std::vector<std::string> loadable_features(const Target& target);

// Returns whether the target has the features that an intrinsic of LLVM needs (features_of_intrinsic).
bool has_intrinsic(const Target& target, std::string_view name);

}  // namespace relaxc::codegen
