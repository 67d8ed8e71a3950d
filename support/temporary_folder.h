// Folders for temporary files.
#pragma once
#include <string>

namespace relaxc {

// Makes a folder "PREFIX-..." below the folder of temporary files (TMPDIR, else /tmp) that only this user may enter,
// and whose name nobody knows before: at a known one, other users could lay a link for what is written there. Returns
// its path, or "" where that fails, with the reason in errno.
std::string make_temporary_folder(const std::string& prefix);

}  // namespace relaxc
