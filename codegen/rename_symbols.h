// Gives the symbols of object code other names.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace relaxc::codegen {

// Returns a copy of an ELF object in which each symbol that begins with `prefix` begins with `replacement` instead.
std::vector<char> rename_symbols(const std::vector<char>& object, std::string_view prefix,
                                 std::string_view replacement);

}  // namespace relaxc::codegen
