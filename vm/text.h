// Characters of text in UTF-8, and numbers as text.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vm/dtype.h"

namespace relaxc::vm {

// Removes the first character of a text that is not empty and returns it. A byte that is not UTF-8 is a character.
uint32_t take_character(std::string_view& text);
void append_character(std::string& text, uint32_t character);
// Return the character in the other case, by the simple mappings of Unicode.
uint32_t lower_case(uint32_t character);
uint32_t upper_case(uint32_t character);
// Returns the text with each character mapped.
std::string mapped(std::string_view text, uint32_t (*map)(uint32_t character));

// Returns the shortest text that reads back as the same number of the dtype, as NumPy prints it: "0.1", "1e-05", "inf".
std::string number_text(double value, DType dtype);
// Reads "3.14", "1e-5", "-INF", "nan" (any case); nullopt for another text.
std::optional<double> read_number(std::string_view text);

}  // namespace relaxc::vm
