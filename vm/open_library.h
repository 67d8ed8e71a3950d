// Opens shared objects that users name.
#pragma once
#include <string>

namespace relaxc::vm {

// Returns the handle of dlopen. Where the file cannot be opened, it returns null and sets the reason. A file that was
// cut off is refused by its sizes: the dynamic linker would map parts that do not exist, and reading these kills the
// process (SIGBUS). A path without '/' is a name that the dynamic linker looks for, whose
// file is not tested.
void* open_library(const std::string& path, int flags, std::string& reason);

}  // namespace relaxc::vm
