// Libraries that come with relaxc, and that only some programs need: the decoders of images.
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

// Folders in which libraries lie, absolute or from the folder of the program: that of the program, that of an
// installation beside it, that of the build, that of the default installation. CMake writes them.
extern const char* const kLibraryFolders[4];

}  // namespace relaxc::vm
