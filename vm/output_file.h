// All output of relaxc goes through this file: files, and text on a stream. A write that fails is a WriteError
// "cannot write 'x': no space left on device"; no failure is silent.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace relaxc::vm {

enum class FileKind { kData, kExecutable };  // permissions of a new file, which the user's mask narrows

// commit() replaces a regular file by rename, so that a process that reads or maps the old one keeps it, and a failure
// leaves it unchanged. Until then the new file has no name where the file system allows that, so that a process which
// is ended leaves nothing behind. A symbolic link is followed to the file that it names. A pipe, a device and the
// standard output of this process are written to directly.
class OutputFile {
 public:
  explicit OutputFile(std::string path, FileKind kind = FileKind::kData);
  ~OutputFile();  // without commit() a regular file is unchanged
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  void choose(FileKind kind);  // selects one of the two ways, and opens the file
  void open_direct(int descriptor);
  void open_temporary(FileKind kind);
  bool open_nameless(mode_t mode);
  bool replace();
  [[noreturn]] void fail_write() const;  // reports errno

  std::string path_;
  std::string target_;     // the file that the temporary one replaces
  std::string temporary_;  // empty when the file is written directly, or has no name yet
  bool nameless_ = false;
  int descriptor_ = -1;
};

void write_file(const std::string& path, std::string_view text);
// Makes the folder and its parents, unless they exist.
void make_folder(const std::string& path);

// Writes text to a stream such as stdout; flush() reports errors of the text that is still in its buffer.
void print_to(std::FILE* stream, std::string_view text);
void flush(std::FILE* stream);

// Returns whether the path names the file, pipe or device that is this process's standard output.
bool is_standard_output(const std::string& path);

}  // namespace relaxc::vm
