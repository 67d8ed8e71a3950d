// Tells builds of a program or library apart.
#pragma once
#include <string>

namespace relaxc::vm {

// Returns the build identifier that the linker put into the loaded file which holds this address, such as that of a
// function; where it has none, a hash of the file.
std::string build_of(const void* address);

}  // namespace relaxc::vm
