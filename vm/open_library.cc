#include "vm/open_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "support/formatted.h"

namespace relaxc::vm {

namespace {

// Returns how many bytes the file has to have for what its ELF headers say of it; 0 where it is not such a file.
uint64_t bytes_by_headers(int descriptor) {
  Elf64_Ehdr header;
  if (pread(descriptor, &header, sizeof header, 0) != sizeof header ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return 0;
  uint64_t needed = header.e_phoff + uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (pread(descriptor, &segment, sizeof segment, static_cast<off_t>(header.e_phoff + i * sizeof segment)) !=
        sizeof segment)
      break;
    if (segment.p_type == PT_LOAD) needed = std::max(needed, segment.p_offset + segment.p_filesz);
  }
  return needed;
}

// Returns why the file is not given to the dynamic linker; "" where nothing is known against it.
std::string why_refused(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return "";  // dlopen says why
  struct stat status{};
  const bool is_known = fstat(descriptor, &status) == 0, is_file = is_known && S_ISREG(status.st_mode);
  const bool would_hang = is_known && !is_file && !S_ISDIR(status.st_mode);  // a pipe, of which nobody writes an end
  const uint64_t needed = is_file ? bytes_by_headers(descriptor) : 0, size = static_cast<uint64_t>(status.st_size);
  close(descriptor);
  if (would_hang) return formatted("'{}' is not a regular file", path);
  if (needed <= size) return "";
  return formatted(
      "'{}' was cut off: it has {} bytes, and its headers state at least {}; copy it again, or build it again", path,
      size, needed);
}

}  // namespace

void* open_library(const std::string& path, int flags, std::string& reason) {
  const bool has_folder = path.find('/') != std::string::npos;  // else the linker looks for it
  if (has_folder) reason = why_refused(path);
  if (!reason.empty()) return nullptr;
  void* handle = dlopen(path.c_str(), flags);
  if (handle != nullptr) return handle;
  const char* problem = dlerror();
  reason = problem ? problem : "unknown error";
  return nullptr;
}

}  // namespace relaxc::vm
