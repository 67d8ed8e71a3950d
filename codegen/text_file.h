// Tells modules as text from models by what the files hold.
#pragma once
#include <string>

#include "codegen/compile.h"

namespace relaxc {

// Returns whether the file holds a module as text, under any name. One of which the content does not tell is told by
// its name, and so is text without any function.
bool is_text_file(const std::string& path);
// The same for the bytes that the settings have in place of the file, if any.
bool is_text_file(const std::string& path, const CompileSettings& settings);

}  // namespace relaxc
