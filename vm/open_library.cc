#include "vm/open_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "vm/error.h"

namespace relaxc::vm {

namespace {

// Returns how many bytes the file has to have for what its ELF headers say of it; 0 where it is not such a file.
uint64_t bytes_by_headers(std::span<const std::byte> file) {
  Elf64_Ehdr header;
  if (file.size() < sizeof header) return 0;
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return 0;
  uint64_t needed = header.e_phoff + uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (needed > file.size()) return needed;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, file.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD) needed = std::max(needed, segment.p_offset + segment.p_filesz);
  }
  return needed;
}

void check_whole(const MappedFile& file) {
  const uint64_t needed = bytes_by_headers(file.bytes()), size = file.bytes().size();
  if (needed > size)
    throw_runtime_error(
        "'{}' was cut off: it has {} bytes, and its headers state at least {}; copy it again, or build it again",
        file.path(), size, needed);
}

constexpr uint64_t kMarkBits = 0xff;
constexpr std::string_view kMark = "/./././././././.";  // the path of these bits

// Returns what tells this state of the file from every other file and state: a path without effect, of "/." or "//" for
// each bit of a hash.
std::string mark_of(const MappedFile& file, uint64_t content) {
  struct stat status{};
  fstat(file.descriptor(), &status);
  uint64_t hash = content;
  for (const uint64_t part :
       {uint64_t{status.st_dev}, uint64_t{status.st_ino},
        static_cast<uint64_t>(status.st_ctim.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(status.st_ctim.tv_nsec)})
    hash = (hash ^ part) * 0x9E3779B97F4A7C15;  // of the golden ratio, as Knuth does
  std::string mark(size_t{2} * 64 + 1, '/');
  for (size_t bit = 0; bit < 64; ++bit) {
    if (((hash | kMarkBits) >> bit & 1) != 0) mark[2 * bit + 1] = '.';
  }
  return mark;
}

void* open_named(const std::string& name, int flags, std::string& reason) {
  void* handle = dlopen(name.c_str(), flags);
  if (handle == nullptr) reason = dlerror();
  return handle;
}

// Returns the name under which the linker knows the library; "" where it does not say.
std::string name_of(void* handle) {
  const link_map* opened = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, &opened) == 0 ? opened->l_name : "";
}

// Opens the library that is open under a name with the mark; returns null where there is none.
void* open_marked(std::string mark) {
  auto take_name = [](dl_phdr_info* info, size_t, void* data) -> int {
    auto& wanted = *static_cast<std::string*>(data);
    const bool is_found = std::string_view(info->dlpi_name).find(wanted) != std::string_view::npos;
    if (is_found) wanted = info->dlpi_name;
    return is_found ? 1 : 0;
  };
  return dl_iterate_phdr(take_name, &mark) != 0 ? dlopen(mark.c_str(), RTLD_NOW | RTLD_NOLOAD) : nullptr;
}

// Returns whether the linker calls the library when it is closed, and when the process ends.
bool has_last_calls(void* handle) {
  const link_map* library = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &library) != 0) return false;
  const ElfW(Dyn)* entry = library->l_ld;
  while (entry->d_tag != DT_NULL && entry->d_tag != DT_FINI && entry->d_tag != DT_FINI_ARRAY) ++entry;
  return entry->d_tag != DT_NULL;
}

// Replaces the pages of its file in an open library by copies. A file that is written over changes such pages, and one
// that is cut off has none any more.
void copy_pages(void* handle) {
  const link_map* library = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &library) != 0) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  uintptr_t begin = 0, end = 0;
  uint64_t inode = 0;
  char access[5];
  Dl_info place;
  while (maps && std::fscanf(maps, "%lx-%lx %4s %*s %*s %lu%*[^\n]", &begin, &end, access, &inode) == 4) {
    auto* pages = reinterpret_cast<void*>(begin);
    if (inode == 0 || access[0] != 'r' || dladdr(pages, &place) == 0 || place.dli_fname != library->l_name) continue;
    const size_t size = end - begin;
    void* copy = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) continue;
    std::memcpy(copy, pages, size);
    const int allowed = PROT_READ | (access[1] == 'w' ? PROT_WRITE : 0) | (access[2] == 'x' ? PROT_EXEC : 0);
    const bool is_moved = mprotect(copy, size, allowed) == 0 &&
                          mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, pages) != MAP_FAILED;
    if (!is_moved) munmap(copy, size);
  }
  if (maps) std::fclose(maps);
}

}  // namespace

void* open_library(const std::string& path, int flags, std::string& reason, std::shared_ptr<const MappedFile>* file) {
  try {
    const bool is_searched = path.find('/') == std::string::npos;
    void* found = is_searched ? open_named(path, flags, reason) : nullptr;
    if (is_searched && (found == nullptr || file == nullptr)) return found;
    if (is_searched) {
      void* handle = open_library(name_of(found), flags, reason, file);
      dlclose(found);
      return handle;
    }
    std::shared_ptr<const MappedFile> mapped = MappedFile::open(path);
    check_whole(*mapped);
    if (file == nullptr) return open_named(path, flags, reason);
    *file = mapped;
    return open_state(*mapped, path, mapped->bytes(), 0, reason);
  } catch (const RuntimeError& error) {
    reason = error.what();
    return nullptr;
  }
}

void* open_state(const MappedFile& file, const std::string& path, std::span<const std::byte> elf, uint64_t content,
                 std::string& reason) {
  const std::string mark = mark_of(file, content);
  auto open = [&](const std::string& of) {
    const std::string name = (of[0] == '/' ? "" : ".") + mark + of;
    void* handle = open_named(name, RTLD_NOW | RTLD_LOCAL, reason);
    if (reason.starts_with(name)) reason.erase(0, std::min(name.size() + 2, reason.size()));  // "name: "
    return handle;
  };
  void* handle = open(path);
  if (handle == nullptr) return nullptr;
  const std::string name = name_of(handle);
  const bool is_of_host = content == 0 && name.find(kMark) == name.npos;
  const bool is_this_state = name.find(mark) != name.npos;
  if (is_this_state && (content == 0 || has_last_calls(handle))) copy_pages(handle);
  if (is_of_host || is_this_state) return handle;
  dlclose(handle);
  if (void* copied = open_marked(mark)) return copied;
  const MemoryFile copy(elf);
  return open(copy.path());  // not in /proc/PID, since the library that was closed has such a name by now
}

}  // namespace relaxc::vm
