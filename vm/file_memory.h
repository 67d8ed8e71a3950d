// Memory that files back: files mapped read-only, whose pages all processes share, and tensors in temporary files. And
// files that memory backs.
#pragma once
#include "vm/tensor.h"

namespace relaxc::vm {

// A process that reads a page beyond the end of a truncated file is killed (SIGBUS), and bytes that change while a
// program runs make its results worthless. So files in use are replaced by rename, as OutputFile does.
// check_unchanged() finds most violations before they do harm (runs call it once in a tick of the clock), but not a
// change while the pages are being read.
class MappedFile {
 public:
  // Throws RuntimeError "cannot open 'x': no such file or directory". Only regular files can be opened.
  static std::shared_ptr<const MappedFile> open(const std::string& path) { return open(path, path); }
  // The same, with a name for its messages.
  static std::shared_ptr<const MappedFile> open(const std::string& path, const std::string& name);
  // Maps the file of a descriptor that the caller keeps; `path` is where it was found.
  static std::shared_ptr<const MappedFile> map(int descriptor, const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // The bytes begin at a page boundary.
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // The descriptor is open as long as the mapping lives; it is -1 after map().
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  // Returns whether the path currently names this file.
  bool is_at(const std::string& path) const;
  // Throws RuntimeError when the file has another size or time of modification than when it was mapped. A file that
  // was replaced or deleted is unchanged: the mapping still has the old content. One system call.
  void check_unchanged() const;

 private:
  MappedFile() = default;
  static std::shared_ptr<MappedFile> make(const std::string& path);
  void map_descriptor(int descriptor);
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int descriptor_ = -1;
  uint64_t device_ = 0, inode_ = 0;
  int64_t modified_ns_ = 0;
};

// A file in memory with these bytes, for functions that read files.
class MemoryFile {
 public:
  // Copies the bytes. Throws RuntimeError when memory is short.
  explicit MemoryFile(std::span<const std::byte> bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  // The process can open this path as long as the object lives.
  std::string path() const;

 private:
  int descriptor_;
};

using MappedFiles = std::vector<std::shared_ptr<const MappedFile>>;
inline void check_unchanged(const MappedFiles& files) {
  for (const auto& file : files) file->check_unchanged();
}

// Returns an uninitialised tensor in an unnamed temporary file (in TMPDIR, else /var/tmp), so that release_pages() can
// take it out of memory. The tensor is in plain memory when it is small or such a file cannot be created.
Tensor tensor_in_file(std::vector<int64_t> shape, DType dtype);
// Returns a tensor with the same contents in such a file.
Tensor moved_to_file(const Tensor& tensor);
// Takes the elements out of this process's memory if they are in a mapped file; they are read again when needed.
void release_pages(const Tensor& tensor);

// Returns a hash of dtype, shape and bytes. It reads only some bytes of a large tensor, which then stays out of memory.
uint64_t sampled_hash(const Tensor& tensor);

}  // namespace relaxc::vm
