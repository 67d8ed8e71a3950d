// A file mapped read-only; its pages are shared by all processes that map it.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace relaxc::vm {

class MappedFile {
 public:
  // Throws RuntimeError "cannot open 'x': no such file or directory". Only regular files.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Page aligned. Shrinking the file while it is mapped kills the process, as with every mapping: replace files by
  // rename, as write_artifact does.
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Open as long as the mapping lives.
  int descriptor() const { return descriptor_; }

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int descriptor_ = -1;
};

}  // namespace relaxc::vm
