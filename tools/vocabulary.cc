#include "tools/vocabulary.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "support/diagnostic.h"
#include "support/file_kind.h"
#include "support/lists.h"
#include "support/printable.h"

namespace relaxc::tools {

namespace {

// Returns the text of a line, in which \n stands for a line break.
std::string without_escapes(std::string_view line, const Span& span) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      text += line[i];
      continue;
    }
    const char next = ++i < line.size() ? line[i] : ' ';
    constexpr std::string_view kWritten = "nrt\\", kMeant = "\n\r\t\\";
    const size_t place = kWritten.find(next);
    if (place == std::string_view::npos)
      fail(span, "'{}': a backslash stands before n, r, t or another one, in no other place", printable(line));
    text += kMeant[place];
  }
  return text;
}

std::string first_bytes(std::ifstream& file) {
  std::string bytes(1000, '\0');
  bytes.resize(static_cast<size_t>(file.read(bytes.data(), std::ssize(bytes)).gcount()));
  file.clear();
  file.seekg(0);
  return bytes;
}

}  // namespace

Vocabulary Vocabulary::read_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail({}, "cannot read the vocabulary '{}'", printable(path));
  expect_text(path, first_bytes(file), "a vocabulary, with a token in each line");
  std::vector<std::string> tokens;
  std::map<std::string, size_t> known;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    const Span span = span_of_file(path);
    tokens.push_back(without_escapes(line, span));
    const auto [at, is_new] = known.emplace(tokens.back(), tokens.size());
    if (!is_new)
      fail(span, "lines {} and {} are the same token, '{}'", at->second, tokens.size(), printable(tokens.back()));
  }
  if (tokens.empty()) fail({}, "the vocabulary '{}' is empty; expected a token in each line", printable(path));
  return Vocabulary(std::move(tokens));
}

Vocabulary::Vocabulary(std::vector<std::string> tokens, Encoder encoder)
    : texts_(std::move(tokens)), encoder_(std::move(encoder)) {
  for (size_t i = 0; i < texts_.size(); ++i) {
    tokens_.emplace(texts_[i], static_cast<int64_t>(i));
    longest_ = std::max(longest_, texts_[i].size());
  }
}

std::vector<int64_t> Vocabulary::encode(std::string_view text) const {
  if (encoder_) return encoder_(text);
  std::vector<int64_t> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t size = std::min(longest_, text.size() - at);
    const int64_t* found = nullptr;
    while (size > 0 && !(found = find(std::string(text.substr(at, size))))) --size;
    if (!found)
      fail({}, "the vocabulary has no token for '{}', at byte {} of the text", printable(text.substr(at, 8)), at);
    tokens.push_back(*found);
    at += size;
  }
  return tokens;
}

std::string_view Vocabulary::text(int64_t token) const {
  const bool is_known = token >= 0 && token < std::ssize(texts_);
  return is_known ? std::string_view(texts_[static_cast<size_t>(token)]) : std::string_view();
}

const int64_t* Vocabulary::find(const std::string& text) const { return find_value(tokens_, text); }

}  // namespace relaxc::tools
