#include "support/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>

namespace relaxc {

std::string make_temporary_folder(const std::string& prefix) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) {
    errno = error.value();
    return "";
  }
  std::string path = (parent / (prefix + "-XXXXXX")).string();
  return mkdtemp(path.data()) ? path : "";
}

}  // namespace relaxc
