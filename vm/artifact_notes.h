// Parts of an artifact that no run needs, and that relaxc inspect shows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace relaxc::vm {

// With this, keys of Executable::metadata begin that say how the artifact was made (codegen/provenance.h).
inline constexpr std::string_view kMadeKey = "made.";

// The sizes of the file's parts, in bytes.
struct ArtifactParts {
  uint64_t machine_code = 0, program = 0, weights = 0;
};
// Returns those of a file that load_artifact() took.
ArtifactParts parts_of_artifact(std::span<const std::byte> file);

}  // namespace relaxc::vm
