// Converts an executable to bytes. Everything but the constants' elements goes to the `program` bytes; the elements go
// to a separate section at the offsets of layout_weights, for a mapped file to serve in place. Hosts are little-endian.
#pragma once
#include <cstddef>

#include "vm/executable.h"

namespace relaxc::vm {

struct WeightsLayout {
  std::vector<int64_t> offsets;  // per constant, multiples of 64
  int64_t bytes = 0;
};
WeightsLayout layout_weights(const Executable& executable);
std::vector<std::byte> serialize_program(const Executable& executable);

// Reads an executable from bytes. Both byte ranges may be hostile: every size, offset and index is checked, and errors
// are CompileErrors. `weights` must be 64-byte aligned; the constants refer to it in place and keep `owner` alive. The
// result still has to pass verify().
Executable deserialize(std::span<const std::byte> program, std::span<const std::byte> weights,
                       std::shared_ptr<const void> owner);

}  // namespace relaxc::vm
