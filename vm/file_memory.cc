#include "vm/file_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace relaxc::vm {

namespace {

constexpr int64_t kLeastBytes = int64_t{1} << 20;  // smaller tensors stay in memory

// The owner of a tensor's elements is a shared_ptr<const void>. The type of its deleter identifies temporary files.
struct UnmapTemporary {
  size_t size;
  void operator()(const void* memory) const { munmap(const_cast<void*>(memory), size); }
};

bool lies_in_file(const Tensor& tensor) {
  return std::get_deleter<UnmapTemporary>(tensor.owner()) || lies_in_mapped_file(tensor);
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
