#include "vm/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <span>
#include <string_view>

#include "support/formatted.h"
#include "vm/content_hash.h"

namespace relaxc::vm {

namespace {

struct Search {
  uintptr_t address;  // of a function of the file that is looked for
  std::string path = {}, id = {};
};

// Returns the bytes of the note with the build identifier in this part of a loaded file; empty where there is none.
std::string_view build_note(const char* at, size_t size) {
  auto padded = [](size_t bytes) { return (bytes + 3) / 4 * 4; };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const size_t begin = sizeof note + padded(note.n_namesz), end = begin + padded(note.n_descsz);
    if (end > size) break;
    if (note.n_type == NT_GNU_BUILD_ID) return {at + begin, note.n_descsz};
    at += end, size -= end;
  }
  return {};
}

int visit(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool is_here = false;
  std::string_view id;
  for (const ElfW(Phdr) & part : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
    const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    is_here = is_here || (part.p_type == PT_LOAD && search.address - begin < part.p_memsz);
    if (part.p_type == PT_NOTE && id.empty()) id = build_note(reinterpret_cast<const char*>(begin), part.p_memsz);
  }
  if (!is_here) return 0;
  search.path = info->dlpi_name;
  for (char byte : id) search.id += formatted("{:02x}", static_cast<unsigned char>(byte));
  return 1;
}

}  // namespace

std::string build_of(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address)};
  dl_iterate_phdr(visit, &search);
  if (!search.id.empty()) return search.id;
  return hash_of_file(search.path.empty() ? "/proc/self/exe" : search.path);
}

}  // namespace relaxc::vm
