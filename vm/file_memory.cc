#include "vm/file_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "vm/error.h"

namespace relaxc::vm {

namespace {

// The deleter of every MappedFile. Tensors have a shared_ptr<const void> as owner, whose deleter identifies the files.
struct Unmap {
  const MappedFile* file;
  void operator()(const MappedFile*) const { delete file; }
};

int64_t modified_ns(const struct stat& status) {
  return status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

std::shared_ptr<MappedFile> MappedFile::make(const std::string& path) {
  auto* file = new MappedFile();
  file->path_ = path;
  return {file, Unmap{file}};
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, const std::string& name) {
  std::shared_ptr<MappedFile> file = make(name);
  // The open is non-blocking, since a named pipe must not hang it.
  file->descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file->descriptor_ < 0) throw_runtime_error("cannot open '{}': {}", name, std::strerror(errno));
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

MemoryFile::MemoryFile(std::span<const std::byte> bytes) : descriptor_(memfd_create("relaxc", MFD_CLOEXEC)) {
  size_t done = 0;
  while (descriptor_ >= 0 && done < bytes.size()) {
    const ssize_t written = write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<size_t>(written);
  }
  if (descriptor_ >= 0 && done == bytes.size()) return;
  const int problem = errno;
  if (descriptor_ >= 0) close(descriptor_);
  throw_runtime_error("cannot copy {} bytes to a file in memory: {}", bytes.size(), std::strerror(problem));
}

MemoryFile::~MemoryFile() { close(descriptor_); }

std::string MemoryFile::path() const { return formatted("/proc/self/fd/{}", descriptor_); }

namespace {

constexpr int64_t kLeastBytes = int64_t{1} << 20;  // smaller tensors stay in memory

// The type of this deleter identifies temporary files in the same way.
struct UnmapTemporary {
  size_t size;
  void operator()(const void* memory) const { munmap(const_cast<void*>(memory), size); }
};

bool lies_in_file(const Tensor& tensor) {
  return std::get_deleter<UnmapTemporary>(tensor.owner()) || std::get_deleter<Unmap>(tensor.owner());
}

// Returns a writable mapping of a new file without a name. Its bytes are reserved, so that a full disk is an error here
// and not a signal later. Returns null when no such file can be created.
std::shared_ptr<const void> map_temporary(size_t size) {
  const char* folder = std::getenv("TMPDIR");
  int descriptor = open(folder && *folder ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (posix_fallocate(descriptor, 0, static_cast<off_t>(size)) == 0)
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);  // the mapping keeps the file
  if (memory == MAP_FAILED) return nullptr;
  return {static_cast<const void*>(memory), UnmapTemporary{size}};
}

}  // namespace

Tensor tensor_in_file(std::vector<int64_t> shape, DType dtype) {
  auto bytes = tensor_bytes(shape, dtype);
  if (!bytes || *bytes < kLeastBytes) return Tensor::empty(std::move(shape), dtype);
  std::shared_ptr<const void> memory = map_temporary(static_cast<size_t>(*bytes));
  if (!memory) return Tensor::empty(std::move(shape), dtype);
  void* data = const_cast<void*>(memory.get());
  return Tensor::view(std::move(shape), dtype, data, std::move(memory));
}

Tensor moved_to_file(const Tensor& tensor) {
  if (tensor.bytes() < kLeastBytes || lies_in_file(tensor)) return tensor;
  Tensor result = tensor_in_file(tensor.shape(), tensor.dtype());
  std::memcpy(result.raw(), tensor.raw(), static_cast<size_t>(tensor.bytes()));
  release_pages(result);
  return result;
}

void release_pages(const Tensor& tensor) {
  if (tensor.bytes() < kLeastBytes || !lies_in_file(tensor)) return;
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto begin = reinterpret_cast<uintptr_t>(tensor.raw()), end = begin + static_cast<uintptr_t>(tensor.bytes());
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

uint64_t sampled_hash(const Tensor& tensor) {
  constexpr int64_t kAll = 4096, kSamples = 16, kSample = 64;  // bytes, places, bytes at each
  DType dtype = tensor.dtype();
  uint64_t hash = static_cast<uint64_t>(dtype.code) << 32 | static_cast<uint64_t>(dtype.bits) << 16 | dtype.lanes;
  hash = XXH3_64bits_withSeed(tensor.shape().data(), tensor.shape().size() * sizeof(int64_t), hash);
  const auto* bytes = static_cast<const std::byte*>(tensor.raw());
  if (tensor.bytes() <= kAll) return XXH3_64bits_withSeed(bytes, static_cast<size_t>(tensor.bytes()), hash);
  for (int64_t i = 0; i < kSamples; ++i) {
    int64_t begin = (tensor.bytes() - kSample) / (kSamples - 1) * i;
    hash = XXH3_64bits_withSeed(bytes + begin, kSample, hash);
  }
  return hash;
}

}  // namespace relaxc::vm
