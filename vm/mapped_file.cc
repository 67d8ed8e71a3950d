#include "vm/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "vm/error.h"

namespace relaxc::vm {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  std::shared_ptr<MappedFile> file(new MappedFile());
  // Non-blocking: a named pipe must not hang the open.
  file->descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file->descriptor_ < 0) throw_runtime_error("cannot open '{}': {}", path, std::strerror(errno));
  struct stat status{};
  if (fstat(file->descriptor_, &status) != 0) throw_runtime_error("cannot read '{}': {}", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw_runtime_error("cannot read '{}': not a regular file", path);
  if (status.st_size == 0) return file;
  size_t size = static_cast<size_t>(status.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, file->descriptor_, 0);
  if (data == MAP_FAILED) throw_runtime_error("cannot map '{}': {}", path, std::strerror(errno));
  file->data_ = static_cast<const std::byte*>(data);
  file->size_ = size;
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace relaxc::vm
