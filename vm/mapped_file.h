// A file mapped read-only; its pages are shared by all processes that map it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace relaxc::vm {

// A process that reads a page which the file no longer has is killed (SIGBUS), and bytes that change under a program
// make its results worthless. So files in use are replaced by rename, as OutputFile does; check_unchanged() finds most
// of what goes against that before it does harm, but not a change while the pages are being read.
class MappedFile {
 public:
  // Throws RuntimeError "cannot open 'x': no such file or directory". Only regular files.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  // The file of a descriptor that stays the caller's; `path` is where it was found.
  static std::shared_ptr<const MappedFile> map(int descriptor, const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Page aligned.
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Open as long as the mapping lives; -1 after map().
  int descriptor() const { return descriptor_; }
  // Whether the path names it now.
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

using MappedFiles = std::vector<std::shared_ptr<const MappedFile>>;
inline void check_unchanged(const MappedFiles& files) {
  for (const auto& file : files) file->check_unchanged();
}

}  // namespace relaxc::vm
