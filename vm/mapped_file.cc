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

// Every MappedFile is owned with this deleter. Tensors keep their owner as a shared_ptr<const void>; the type of its
// deleter identifies mapped files.
struct Unmap {
  const MappedFile* file;
  void operator()(const MappedFile*) const { delete file; }
};

int64_t modified_ns(const struct stat& status) {
  return status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

bool lies_in_mapped_file(const Tensor& tensor) { return std::get_deleter<Unmap>(tensor.owner()) != nullptr; }

std::shared_ptr<MappedFile> MappedFile::make(const std::string& path) {
  auto* file = new MappedFile();
  file->path_ = path;
  return {file, Unmap{file}};
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  std::shared_ptr<MappedFile> file = make(path);
  // The open is non-blocking, since a named pipe must not hang it.
  file->descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file->descriptor_ < 0) throw_runtime_error("cannot open '{}': {}", path, std::strerror(errno));
  file->map_descriptor(file->descriptor_);
  return file;
}

std::shared_ptr<const MappedFile> MappedFile::map(int descriptor, const std::string& path) {
  std::shared_ptr<MappedFile> file = make(path);
  file->map_descriptor(descriptor);
  return file;
}

void MappedFile::map_descriptor(int descriptor) {
  struct stat status{};
  if (fstat(descriptor, &status) != 0) throw_runtime_error("cannot read '{}': {}", path_, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw_runtime_error("cannot read '{}': not a regular file", path_);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  modified_ns_ = modified_ns(status);
  if (status.st_size == 0) return;
  size_t size = static_cast<size_t>(status.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) throw_runtime_error("cannot map '{}': {}", path_, std::strerror(errno));
  data_ = static_cast<const std::byte*>(data);
  size_ = size;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
  if (descriptor_ >= 0) close(descriptor_);
}

bool MappedFile::is_at(const std::string& path) const {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

void MappedFile::check_unchanged() const {
  struct stat status{};
  int result = descriptor_ >= 0 ? fstat(descriptor_, &status) : stat(path_.c_str(), &status);
  bool same_file = result == 0 && status.st_dev == device_ && status.st_ino == inode_;
  if (!same_file) return;
  const char* how = status.st_size < static_cast<int64_t>(size_)    ? "was cut off"
                    : status.st_size != static_cast<int64_t>(size_) ? "has grown"
                    : modified_ns(status) != modified_ns_           ? "was written to"
                                                                    : nullptr;
  if (how == nullptr) return;
  throw_runtime_error("'{}' {} while it was in use; load it again, and replace such a file by renaming a new one",
                      path_, how);
}

}  // namespace relaxc::vm
