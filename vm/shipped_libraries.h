// Libraries that come with relaxc, and that only some programs need: the decoders of images, and builtins/.
#pragma once
#include <memory>

#include "vm/user_library.h"

namespace relaxc::vm {

struct ShippedLibrary {
  const char *file, *what, *packages;  // what it does, and the packages with which it is built
};
inline constexpr ShippedLibrary kImages = {"librelaxc_images.so", "decoding images",
                                           "libjpeg-dev libpng-dev libtiff-dev libwebp-dev libopenjp2-7-dev"};

// Opens the library where it lies. Throws a CompileError that says what to do where it is not there.
std::shared_ptr<const UserLibrary> open_shipped_library(const ShippedLibrary& library);

// Returns the builtin, of the library of those that few programs call, or null where it has none of that name. Throws a
// CompileError at the span that says what to do where the library is not there, or is of another build.
const Builtin* open_builtin(const std::string& name, const Span& span);

// Folders in which libraries lie, absolute or from the folder of the program or of librelaxc.so: that folder, that of
// an installation beside it, that of the build, that of the default installation. CMake writes them.
extern const char* const kLibraryFolders[4];

}  // namespace relaxc::vm
