#include "vm/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "vm/error.h"
#include "vm/file_memory.h"

namespace relaxc::vm {

namespace {

// Every MappedFile is owned with this deleter. Tensors keep their owner as a shared_ptr<const void>; by the deleter's
// type a mapped file is known among them.
struct Unmap {
  const MappedFile* file;
  void operator()(const MappedFile*) const { delete file; }
};

}  // namespace

bool lies_in_mapped_file(const Tensor& tensor) { return std::get_deleter<Unmap>(tensor.owner()) != nullptr; }

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  auto* opened = new MappedFile();
  std::shared_ptr<MappedFile> file(opened, Unmap{opened});
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
