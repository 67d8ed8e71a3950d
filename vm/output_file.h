// All output of relaxc goes through here: files, and text on a stream. A write that fails is a RuntimeError
// "cannot write 'x': no space left on device"; nothing is lost in silence.
#pragma once
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace relaxc::vm {

enum class FileKind { kData, kExecutable };  // permissions of a new file, which the user's mask narrows

// A regular file (through symbolic links: the one that they name) is replaced by rename in commit(), so that
// whoever reads or maps the old one keeps it, and a failure leaves it as it was. A pipe, a device and the standard
// output of this process are written to directly.
class OutputFile {
 public:
  explicit OutputFile(std::string path, FileKind kind = FileKind::kData);
  ~OutputFile();  // without commit() a regular file stays as it was
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  void choose(FileKind kind);  // between the two ways, and opens
  void open_direct(int descriptor);
  void open_temporary(FileKind kind);
  [[noreturn]] void fail_write() const;  // with errno

  std::string path_;
  std::string target_;     // what the temporary file replaces
  std::string temporary_;  // empty: written to directly
  int descriptor_ = -1;
};

void write_file(const std::string& path, std::string_view text);
// The folder and those above it, unless they exist.
void make_folder(const std::string& path);

// Text on a stream such as stdout; what stays in its buffer is reported by flush().
void print_to(std::FILE* stream, std::string_view text);
void flush(std::FILE* stream);

// Whether the path names the file, pipe or device that is this process's standard output.
bool is_standard_output(const std::string& path);

}  // namespace relaxc::vm
