// The one symbol of librelaxc_builtins.so, where vm/shipped_libraries.cc looks for the table.
#include "vm/builtins.h"

extern "C" [[gnu::visibility("default")]] const relaxc::vm::BuiltinLibrary* relaxc_builtins_library() {
  return &relaxc::vm::relaxc_builtins;
}
