#include "support/printable.h"

#include <cstdint>

#include "support/formatted.h"

namespace relaxc {

namespace {

struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
  bool valid = false;  // well-formed UTF-8; else `bytes` is 1
};

// Follows the table of well-formed sequences: The Unicode Standard, section 3.9, table 3-7.
Character decode_first(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  size_t bytes = lead >= 0xc2 && lead <= 0xdf ? 2 : (lead & 0xf0) == 0xe0 ? 3 : lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
  if (bytes == 0 || bytes > text.size()) return {lead, 1, false};
  uint32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {lead, 1, false};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || surrogate || code > 0x10ffff) return {lead, 1, false};
  return {code, bytes, true};
}

// Returns false for control characters, and for the marks of bidirectional text, which make a line display differently
// from its content.
bool is_harmless(const Character& character) {
  uint32_t code = character.code;
  bool control = code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
  bool changes_direction = code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
                           (code >= 0x2066 && code <= 0x2069);
  return character.valid && !control && !changes_direction;
}

// Escapes all characters but the harmless ones and those in `kept`. Cuts the text at about `limit` bytes.
std::string escaped(std::string_view text, std::string_view kept, size_t limit) {
  std::string result;
  while (!text.empty()) {
    if (result.size() >= limit) return result + "...";
    Character character = decode_first(text);
    std::string_view bytes = text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
    if (is_harmless(character) || kept.find(bytes) != std::string_view::npos) {
      result += bytes;
    } else if (bytes == "\n") {
      result += "\\n";
    } else {
      for (char byte : bytes) result += formatted("\\x{:02x}", static_cast<uint8_t>(byte));
    }
  }
  return result;
}

}  // namespace

std::string printable(std::string_view name, size_t limit) { return escaped(name, {}, limit); }
std::string python_string(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\t' ? std::string("\\t") : std::string(1, c);
  }
  return printable(result, std::string::npos) + "\"";
}
std::string json_string(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    Character character = decode_first(text);
    std::string_view bytes = text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
    if (bytes == "\"" || bytes == "\\") result += '\\';
    constexpr uint32_t kReplacement = 0xfffd;
    if (is_harmless(character))
      result += bytes;
    else  // all of them have four digits
      result += formatted("\\u{:04x}", character.valid ? character.code : kReplacement);
  }
  return result + "\"";
}
std::string printable_lines(std::string_view text) { return escaped(text, "\n\t", std::string::npos); }

}  // namespace relaxc
