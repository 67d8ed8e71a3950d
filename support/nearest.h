// Finds the known name that a misspelt one was probably meant to be, for messages.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace relaxc {

// Returns the nearest of the names, or "" when none is near enough to be what the user meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace relaxc
