// Notes in an artifact of the model, the version and the settings that made it, which relaxc inspect shows.
#pragma once
#include <map>
#include <string>

#include "codegen/compile.h"

namespace relaxc::codegen {

// Returns entries of vm::Executable::metadata, whose keys begin with vm::kMadeKey: the version and commit of relaxc,
// and those settings that are not the default ones. The same compilation has the same entries anywhere: there is no
// date in them, and no folder.
std::map<std::string, std::string> provenance_of(const CompileSettings& settings);

// Returns those about the model: the name of its file without the folder, and the hash of the file.
std::map<std::string, std::string> provenance_of_model(const std::string& path, const CompileSettings& settings);

}  // namespace relaxc::codegen
