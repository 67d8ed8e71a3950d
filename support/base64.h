// Bytes as base64, in which TVM's files hold tensors and modules.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace relaxc {

std::string to_base64(std::string_view bytes);
// Returns nullopt for a character that is not base64; line ends are skipped.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace relaxc
