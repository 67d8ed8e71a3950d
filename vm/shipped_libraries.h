// Libraries that come with relaxc, and that only some programs need: the decoders of images, and builtins/.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "vm/user_library.h"

namespace relaxc::vm {

struct ShippedLibrary {
  const char *file, *what, *packages;  // what it does, and the packages with which it is built
};
inline constexpr ShippedLibrary kImages = {"librelaxc_images.so", "decoding images",
                                           "libjpeg-dev libpng-dev libtiff-dev libwebp-dev libopenjp2-7-dev"};

// Opens the library where it lies. Throws a CompileError that says what to do where it is not there.
std::shared_ptr<const UserLibrary> open_shipped_library(const ShippedLibrary& library);

// Why a builtin of its library failed.
struct BuiltinFailure {
  enum class Kind : uint8_t { kNone, kForm, kOutOfMemory, kOther };  // FormError, OutOfMemory, any other exception
  Kind kind = Kind::kNone;
  std::string message = {};
};

// Takes the result of a builtin, or the reason why it failed, into memory of the caller. The arguments stay the
// library's.
struct BuiltinTaker {
  void* to;
  void (*result)(void* to, const Value& result) noexcept;
  void (*failure)(void* to, BuiltinFailure::Kind kind, std::string_view message) noexcept;
};

// What librelaxc_builtins.so tells of itself. C++ values pass between it and the runtime, so both are of one build. But
// their C++ libraries may differ, since a host may link its own in statically, and with it an allocator of its own: no
// exception leaves the library, and neither side frees what the other one has allocated.
struct BuiltinLibrary {
  const char *version, *commit;  // these two stay first
  std::span<const Builtin> rows;
  void (*call)(const Builtin& row, BuiltinContext& context, std::span<const Value> arguments,
               const BuiltinTaker& taker) noexcept;
};
inline constexpr const char* kBuiltinsFile = "librelaxc_builtins.so";

// Returns the builtin of that library, empty where it has none of that name. Throws a CompileError at the span that
// names the places and the remedy where the library is not there, or is of another build.
BuiltinFunction open_builtin(const std::string& name, const Span& span);

// Returns the places of a file in the order in which they are tried; the name alone is the dynamic linker's search.
std::vector<std::string> places_of(const char* file);

// Returns whether the program has everything linked in, the C library too. Then a library that it opens brings a second
// C library along, and neither of the two can free memory of the other.
bool is_static_program();

// Folders in which libraries lie, absolute or from the folder of the program or of librelaxc.so: that folder, that of
// an installation beside it, that of the default installation. CMake writes them.
extern const char* const kLibraryFolders[3];

}  // namespace relaxc::vm
