#include "support/joined.h"

namespace relaxc {

std::string joined(std::span<const int64_t> items, std::string_view separator) {
  return joined(items, [](int64_t item) { return std::to_string(item); }, separator);
}

}  // namespace relaxc
