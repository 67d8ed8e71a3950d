// The pages of `relaxc bench --html` and `relaxc compare --html`.
#pragma once
#include <string>

namespace relaxc::tools {

// Returns the page of one profile: `figures` is the JSON that `relaxc bench --profile --json` writes.
std::string profile_page(const std::string& model, const std::string& figures);
// Returns the page of two of them; `comparison` is the JSON of tools/profile_pair.h.
std::string comparison_page(const std::string& title, const std::string& comparison);

}  // namespace relaxc::tools
