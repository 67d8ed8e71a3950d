// Damages text as people and machines do: tokens and lines taken out, doubled, exchanged or put in from elsewhere, and
// lists of items and arguments that have another length.
#pragma once
#include <random>
#include <string>
#include <vector>

namespace relaxc::test {

// Words, numbers, single characters; blanks stay together.
std::vector<std::string> pieces(const std::string& text);
// `others`: pieces to put in.
std::string mutated(const std::string& text, const std::vector<std::string>& others, std::mt19937_64& random);

}  // namespace relaxc::test
