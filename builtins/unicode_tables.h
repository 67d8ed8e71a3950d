// The tables that builtins/unicode_tables.py writes.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace relaxc::vm::unicode_tables {

extern const std::string_view kCategoryNames, kScriptNames;  // separated by commas
extern const std::span<const uint8_t> kCategories, kScripts, kFoldings;

}  // namespace relaxc::vm::unicode_tables
