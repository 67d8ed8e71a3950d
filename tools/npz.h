// NumPy's .npz archives: ZIP files of .npy files, as numpy.savez and numpy.savez_compressed write them.
#pragma once
#include <string>
#include <vector>

namespace relaxc::tools {

struct NpzMember {
  std::string name;     // without ".npy"
  std::string content;  // of the .npy file
};
// Reads all members in the order of the archive's directory. Throws a CompileError that names the file for one that is
// not such an archive or is damaged, and for members that are compressed in another way or encrypted.
std::vector<NpzMember> read_npz(const std::string& path);

}  // namespace relaxc::tools
