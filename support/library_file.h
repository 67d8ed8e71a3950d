// Tells shared objects from other files.
#pragma once
#include <string>

namespace relaxc {

// Returns whether the file is a shared object, such as an artifact or a library of kernels, under any name. A file that
// is neither that nor a model nor text is told by its name.
bool is_library_file(const std::string& path);

}  // namespace relaxc
