#include "vm/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "vm/error.h"

namespace relaxc::vm {

namespace {

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// Returns standard output or standard error when the file is already open under that number.
std::optional<int> standard_stream(const struct stat& status) {
  for (int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open{};
    if (fstat(descriptor, &open) == 0 && same_file(open, status)) return descriptor;
  }
  return std::nullopt;
}

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

// Returns the path after following all symbolic links of the last component; the file itself need not exist.
std::string resolve_links(std::string path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  for (int i = 0; i < kMostLinks; ++i) {
    char name[PATH_MAX];
    ssize_t size = readlink(path.c_str(), name, sizeof name);
    if (size <= 0) break;
    std::string next(name, static_cast<size_t>(size));
    path = next.front() == '/' ? next : folder_of(path) + next;
  }
  return path;
}

}  // namespace

OutputFile::OutputFile(std::string path, FileKind kind) : path_(std::move(path)) { choose(kind); }

void OutputFile::choose(FileKind kind) {
  struct stat existing{};
  bool exists = stat(path_.c_str(), &existing) == 0;
  if (!exists && errno != ENOENT) fail_write();
  if (exists) {
    // The path names a stream that the shell redirected: text that was already written to it must stay.
    if (std::optional<int> stream = standard_stream(existing)) return open_direct(dup(*stream));
    if (!S_ISREG(existing.st_mode)) return open_direct(open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  }
  target_ = resolve_links(path_);
  struct stat found{};
  // Some links below /proc name files that have no path.
  if (exists && (stat(target_.c_str(), &found) != 0 || !same_file(found, existing)))
    return open_direct(open(path_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  open_temporary(kind);
  if (!exists) return;
  // The new file gets the owner of the old one, where the process may set it, and its permissions.
  if (fchown(descriptor_, existing.st_uid, existing.st_gid) != 0) errno = 0;
  if (fchmod(descriptor_, existing.st_mode & 0777) != 0) errno = 0;
}

void OutputFile::open_direct(int descriptor) {
  descriptor_ = descriptor;
  if (descriptor_ < 0) fail_write();
}

// Calls `make` with names in the target's folder, so that rename works, until it succeeds or fails for another reason
// than that the name is taken.
template <class Make>
static bool with_temporary_name(const std::string& target, std::string& name, const Make& make) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    name = formatted("{}.relaxc.{}.{}", folder_of(target), getpid(), attempt);
    if (make(name.c_str())) return true;
    if (errno != EEXIST) break;
  }
  name.clear();
  return false;
}

static std::string path_of_descriptor(int descriptor) { return formatted("/proc/self/fd/{}", descriptor); }

bool OutputFile::open_nameless(mode_t mode) {
  const std::string folder = folder_of(target_);
  descriptor_ = open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
  if (descriptor_ < 0) return false;
  nameless_ = access(path_of_descriptor(descriptor_).c_str(), F_OK) == 0;  // without /proc it would never get a name
  if (!nameless_) close(std::exchange(descriptor_, -1));
  return nameless_;
}

void OutputFile::open_temporary(FileKind kind) {
  const mode_t mode = kind == FileKind::kExecutable ? 0777 : 0666;
  if (open_nameless(mode)) return;
  auto make = [&](const char* name) {
    descriptor_ = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    return descriptor_ >= 0;
  };
  if (!with_temporary_name(target_, temporary_, make)) fail_write();
}

// Gives the file its name. The descriptor of one without a name is still open.
bool OutputFile::replace() {
  if (nameless_) {
    const std::string self = path_of_descriptor(descriptor_);
    auto link = [&](const char* name) {
      return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
    };
    if (link(target_.c_str())) return true;
    // Only a file that has a name can replace another one.
    if (errno != EEXIST || !with_temporary_name(target_, temporary_, link)) return false;
  }
  return temporary_.empty() || rename(temporary_.c_str(), target_.c_str()) == 0;
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::write(const void* data, size_t size) {
  for (const char* next = static_cast<const char*>(data); size > 0;) {
    ssize_t written = ::write(descriptor_, next, std::min<size_t>(size, size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_write();
    next += written;
    size -= static_cast<size_t>(written);
  }
}

void OutputFile::commit() {
  // Closing may report an earlier failure to write, and so comes first where the file keeps a name without it.
  bool succeeded = nameless_ ? replace() : true;
  int error = errno;
  if (close(std::exchange(descriptor_, -1)) != 0) succeeded = false, error = errno;
  if (succeeded && !nameless_) succeeded = replace(), error = errno;
  if (succeeded) return;
  if (!temporary_.empty()) unlink(temporary_.c_str());
  errno = error;
  fail_write();
}

void OutputFile::fail_write() const {
  throw WriteError(formatted("cannot write '{}': {}", path_, std::strerror(errno)));
}

void write_file(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw WriteError(formatted("cannot make the folder '{}': {}", path, error.message()));
}

static void check_stream(std::FILE* stream, bool succeeded) {
  if (succeeded) return;
  const char* name = stream == stdout ? "standard output" : stream == stderr ? "standard error" : "a stream";
  throw WriteError(formatted("cannot write {}: {}", name, std::strerror(errno)));
}

void print_to(std::FILE* stream, std::string_view text) {
  check_stream(stream, std::fwrite(text.data(), 1, text.size(), stream) == text.size());
}
void flush(std::FILE* stream) { check_stream(stream, std::fflush(stream) == 0 && !std::ferror(stream)); }

bool is_standard_output(const std::string& path) {
  struct stat named{}, output{};
  return stat(path.c_str(), &named) == 0 && fstat(STDOUT_FILENO, &output) == 0 && same_file(named, output);
}

}  // namespace relaxc::vm
