// The file format of a compiled model: one shared object that also carries the bytecode and the weights.
//
//   [ELF shared object with the kernels; may be absent]
//   [padding] [program: bytecode and tables] [padding] [weights] [padding to 8 bytes]
//   [footer: magic, format version, sizes of these and of the file, XXH3-64 of the weights and of all else before it]
//
// Program and weights begin at multiples of kAlignment (vm/memory.h). The dynamic linker reads the front of the file
// and ignores the rest.
#pragma once
#include <cstddef>
#include <mutex>

#include "support/file_kind.h"
#include "vm/executable.h"
#include "vm/file_memory.h"
#include "vm/kernel_abi.h"

namespace relaxc::vm {

// The remedy for an artifact that is damaged, or of another version of relaxc.
inline constexpr const char* kRecompile = "compile the model again with 'relaxc compile'";

// Says what a file of another kind is, for the error of load_artifact. name_kinds_of_files() sets it, and so brings the
// table of kinds (support/file_kind.h) into a program.
using NameContent = std::optional<FileContent> (*)(std::string_view bytes);
inline NameContent name_content = nullptr;

// Writes the file as OutputFile does: processes that have an old file mapped keep it. `elf` may be empty when no kernel
// is KernelSource::kArtifact. Throws RuntimeError when the file cannot be written, and when one of `sources`, the files
// that hold the constants, has changed.
void write_artifact(const std::string& path, std::span<const std::byte> elf, const Executable& executable,
                    const MappedFiles& sources = {});

// The opened shared object with the kernels.
class KernelLibrary {
 public:
  virtual ~KernelLibrary() = default;
  virtual relaxc_kernel find(const std::string& symbol) const = 0;  // nullptr when there is none
  // Returns where the machine code has the address of a C function that it calls; nullptr when it calls none of the
  // name.
  virtual void** find_slot(const std::string&) const { return nullptr; }
};
// Machine code calls C functions (T.call_extern) through variables, which are set when it is loaded (user_library.h).
inline std::string slot_symbol(const std::string& function) { return "relaxc_f_" + function; }

// The comparison of mapped weights with their hash, which reads them all: the first call does it, for all threads.
class WeightsCheck {
 public:
  WeightsCheck(std::string name, std::span<const std::byte> bytes, uint64_t expected)
      : name_(std::move(name)), bytes_(bytes), expected_(expected) {}
  // Throws a RuntimeError that names the file and the remedy, each time, where the weights have changed.
  void run() const;

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
  uint64_t expected_;
  mutable std::once_flag once_;
  mutable std::string problem_;
};

struct Artifact {
  Executable executable;                         // verified; constants point into the mapped file
  std::shared_ptr<const KernelLibrary> library;  // null without machine code, or when it is not loaded
  std::shared_ptr<const MappedFile> file;
  std::shared_ptr<const WeightsCheck> weights;  // null with verify_hash false
};

// Throws a CompileError of one line that names the file and the remedy when the file is missing, cut off, changed, of
// another version, unsound, or for another CPU. Nothing in it is executed before size, hash, tables, bytecode and the
// CPU's features have been checked. The time does not depend on the weights: their check is left to the first
// run. With verify_hash false nothing is compared with its hash.
struct ArtifactOptions {
  bool verify_hash = true;
  std::string name = {};   // of the artifact in messages; empty: the path
  bool loads_code = true;  // false: the artifact is only looked at, also one for another CPU
};
Artifact load_artifact(const std::string& path, ArtifactOptions options = {});

}  // namespace relaxc::vm
