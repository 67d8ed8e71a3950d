// Makes text of foreign origin (names in a model, an artifact or a file) safe for a terminal and for messages.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace relaxc {

inline constexpr size_t kLongestPrintedName = 200;  // bytes
// Returns the name on one line: control characters (C0, DEL, C1), characters that change the direction of the text, and
// bytes that are not UTF-8 are written as "\n" or "\x1b", byte by byte. A name above `limit` is cut and ends in "...".
std::string printable(std::string_view name, size_t limit = kLongestPrintedName);

// Does the same for text of several lines that may quote such names: '\n' and '\t' stay, and the text is not cut.
std::string printable_lines(std::string_view text);

// Returns the text on one line as a Python string in double quotes; it is not cut.
std::string python_string(std::string_view text);

// Returns the text as a string of JSON, in double quotes, that is safe for a terminal: what printable() escapes is
// written as "\u202e", and bytes that are not UTF-8 as "\ufffd".
std::string json_string(std::string_view text);

}  // namespace relaxc
