// Opens shared objects that users name.
#pragma once
#include <span>
#include <string>

#include "vm/file_memory.h"

namespace relaxc::vm {

// Returns the handle of dlopen. Where the file cannot be opened, it returns null and sets the reason. A file that was
// cut off is refused by its sizes: the dynamic linker would map parts that do not exist, and reading these kills the
// process (SIGBUS). A path without '/' is a name that the dynamic linker looks for, whose
// file is not tested.
//
// With `file`, the library is a user's: its state of now is opened, and `file` is set to what has it.
void* open_library(const std::string& path, int flags, std::string& reason,
                   std::shared_ptr<const MappedFile>* file = nullptr);

// Opens the state of a file that is mapped, by a path of it with a '/'. `elf` is the part of the file that the dynamic
// linker reads.
//
// The dynamic linker takes a library that anybody in the process has open, also another copy of the runtime, for one
// of the same name or of the same file. So names have marks, which tell states of files apart. And a file that was
// written to while it was open has lost what the linker changed in memory, or holds other code there: it is copied.
// A library that the linker calls at the end of the process has to be there until then. It gets memory of its own in
// place of the file's pages, and so does every library of a user's.
// A library without a mark was opened by the host; it is taken where `content`, which is a hash of the file, is 0.
void* open_state(const MappedFile& file, const std::string& path, std::span<const std::byte> elf, uint64_t content,
                 std::string& reason);

}  // namespace relaxc::vm
