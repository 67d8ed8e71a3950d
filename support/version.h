// The version of relaxc, which stands in one place: the project's in CMakeLists.txt.
#pragma once
#include <string>

namespace relaxc {

extern const char* const kVersion;  // "0.1.0"
extern const char* const kCommit;   // abbreviated; "" for a build from an archive without git
// Returns "0.1.0 (3fdebd59)", or without a commit "0.1.0".
inline std::string version_text() {
  return *kCommit ? std::string(kVersion) + " (" + kCommit + ")" : std::string(kVersion);
}

}  // namespace relaxc
