// Files write the 256 bytes as characters that can be seen: those of Latin-1 that can, as themselves, and the others,
// in order, as U+0100, U+0101 and so on, so that Ġ is a space. A text is first cut into words by the expression of
// GPT-2, which cut_words() spells out since our regular expressions look nowhere ahead:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// In each word the two neighbours that come first in the list of merges become one, until none are in the list.
#include "tools/byte_level.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <memory>

#include "builtins/unicode.h"
#include "codegen/compile.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"
#include "tir/schedule/trace.h"
#include "vm/text.h"

namespace relaxc::tools {

namespace {

// The character of each byte.
std::array<uint32_t, 256> characters_of_bytes() {
  std::array<uint32_t, 256> result{};
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool is_seen = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    result[byte] = is_seen ? byte : next++;
  }
  return result;
}

std::string as_characters(std::string_view bytes) {
  static const std::array<uint32_t, 256> kCharacters = characters_of_bytes();
  std::string result;
  for (const char byte : bytes) vm::append_character(result, kCharacters[static_cast<unsigned char>(byte)]);
  return result;
}
// Returns the bytes that the characters stand for. Others, in the tokens with special meanings, are themselves.
std::string as_bytes(std::string_view characters) {
  static const std::array<uint32_t, 256> kCharacters = characters_of_bytes();
  std::string result;
  while (!characters.empty()) {
    const uint32_t character = vm::take_character(characters);
    const auto found = std::ranges::find(kCharacters, character);
    if (found == kCharacters.end()) {
      vm::append_character(result, character);
    } else {
      result += static_cast<char>(found - kCharacters.begin());
    }
  }
  return result;
}

enum class Kind { kSpace, kLetter, kNumber, kOther };
Kind kind_of(uint32_t character) {
  static const vm::CharacterSet kLetters = *vm::characters_named("L"), kNumbers = *vm::characters_named("N"),
                                kSeparators = *vm::characters_named("Z");
  if ((character >= 9 && character <= 13) || character == 0x85 || vm::contains(kSeparators, character))
    return Kind::kSpace;
  if (vm::contains(kLetters, character)) return Kind::kLetter;
  return vm::contains(kNumbers, character) ? Kind::kNumber : Kind::kOther;
}

// Returns the bytes of the first word.
size_t first_word(std::string_view text) {
  for (const std::string_view end : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(end)) return end.size();
  }
  // Returns the end of the characters of this kind from a place on, and the begin of the last one.
  auto run_of = [&](size_t begin, Kind kind) {
    size_t end = begin, last = begin;
    for (std::string_view rest = text.substr(begin); !rest.empty();) {
      const size_t at = text.size() - rest.size();
      if (kind_of(vm::take_character(rest)) != kind) break;
      last = at, end = text.size() - rest.size();
    }
    return std::pair(end, last);
  };
  const size_t begin = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  std::string_view rest = text.substr(begin);
  const Kind kind = kind_of(vm::take_character(rest));
  if (kind != Kind::kSpace) return run_of(begin, kind).first;
  const auto [end, last] = run_of(0, Kind::kSpace);
  return end == text.size() || last == 0 ? end : last;  // the last space belongs to the next word
}

struct Encoder {
  std::map<std::string, int64_t, std::less<>> tokens;                 // by their characters
  std::map<std::pair<std::string, std::string>, int64_t> ranks = {};  // of merges

  void add_merge(const std::string& line, const Span& span) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) fail(span, "'{}': expected two tokens that merge", printable(line));
    ranks.emplace(std::pair(line.substr(0, space), line.substr(space + 1)), std::ssize(ranks));
  }

  void encode_word(std::string_view word, std::vector<int64_t>& result) const {
    std::vector<std::string> parts;
    for (const char& byte : word) parts.push_back(as_characters(std::string_view(&byte, 1)));
    while (parts.size() > 1) {
      int64_t best = std::numeric_limits<int64_t>::max();
      size_t place = 0;
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const int64_t* rank = find_value(ranks, std::pair(parts[i], parts[i + 1]));
        if (rank && *rank < best) best = *rank, place = i;
      }
      if (best == std::numeric_limits<int64_t>::max()) break;
      parts[place] += parts[place + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
    for (const std::string& part : parts) {
      const int64_t* token = find_value(tokens, part);
      if (!token) fail({}, "the vocabulary has no token '{}' for a part of '{}'", printable(part), printable(word));
      result.push_back(*token);
    }
  }
  std::vector<int64_t> operator()(std::string_view text) const {
    std::vector<int64_t> result;
    while (!text.empty()) {
      const size_t size = first_word(text);
      encode_word(text.substr(0, size), result);
      text.remove_prefix(size);
    }
    return result;
  }
};

const Attrs* dictionary(const AttrValue* value) { return value ? value->as<Attrs>() : nullptr; }

// Returns whether a part of a tokenizer, or one of those that it consists of, is of this type.
bool is_of_type(const AttrValue* value, std::string_view type) {  // NOLINT: as deep as the file
  const Attrs* part = dictionary(value);
  if (!part) return false;
  if (part->get_string("type", "") == type) return true;
  for (const char* list : {"pretokenizers", "decoders"}) {
    const AttrValue* parts = part->find(list);
    const AttrList* all = parts ? parts->as<AttrList>() : nullptr;
    if (all && std::ranges::any_of(*all, [&](const AttrValue& one) { return is_of_type(&one, type); })) return true;
  }
  return false;
}

// Reads the dictionary of tokens, and the tokens with special meanings.
void add_tokens(const Attrs& vocabulary, Encoder& encoder, const Span& span) {
  for (const auto& [text, value] : vocabulary) {
    const int64_t* token = value.as<int64_t>();
    if (!token || *token < 0) fail(span, "token '{}': expected a number from 0", printable(text));
    encoder.tokens.insert_or_assign(text, *token);
  }
}

void read_tokenizer(const Attrs& file, Encoder& encoder, const Span& span) {
  const Attrs& model = *dictionary(file.find("model"));
  const Attrs* vocabulary = dictionary(model.find("vocab"));
  const std::string type = model.get_string("type", "BPE");
  if (type != "BPE" || !vocabulary || !is_of_type(file.find("decoder"), "ByteLevel"))
    fail(
        span,
        "expected a tokenizer of byte pairs (\"model\" of type BPE, \"decoder\" ByteLevel), found type {}; give tokens "
        "as numbers (--tokens), or a vocabulary with a token in each line",
        printable(type));
  add_tokens(*vocabulary, encoder, span);
  const AttrValue *merges = model.find("merges"), *added = file.find("added_tokens");
  for (const AttrValue& merge : merges && merges->as<AttrList>() ? *merges->as<AttrList>() : AttrList()) {
    const auto* pair = merge.as<AttrList>();
    const bool is_pair = pair && pair->size() == 2 && (*pair)[0].as<std::string>() && (*pair)[1].as<std::string>();
    const std::string* text = merge.as<std::string>();
    if (!text && !is_pair) fail(span, "a merge is {}, expected two tokens", printable(to_string(merge)));
    encoder.add_merge(text ? *text : *(*pair)[0].as<std::string>() + " " + *(*pair)[1].as<std::string>(), span);
  }
  for (const AttrValue& one : added && added->as<AttrList>() ? *added->as<AttrList>() : AttrList()) {
    if (const Attrs* token = one.as<Attrs>())
      encoder.tokens.insert_or_assign(token->get_string("content", ""), token->get_int("id", 0));
  }
}

void read_merges(const std::string& path, Encoder& encoder) {
  const std::string text = read_text(path);
  for (std::string_view line : parts_of(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("#version")) encoder.add_merge(std::string(line), span_of_file(path));
  }
}

}  // namespace

Vocabulary read_byte_level(const std::string& path) {
  const Span span = span_of_file(path);
  const AttrValue json = with_compile_errors(span, [&] { return read_json(read_text(path)); });
  const Attrs* file = json.as<Attrs>();
  if (!file) fail(span, "expected a dictionary of tokens and their numbers, or tokenizer.json");
  auto encoder = std::make_shared<Encoder>();
  const std::string merges = (std::filesystem::path(path).parent_path() / "merges.txt").string();
  if (dictionary(file->find("model"))) {
    read_tokenizer(*file, *encoder, span);
  } else {
    add_tokens(*file, *encoder, span);
    if (std::filesystem::exists(merges)) read_merges(merges, *encoder);
  }
  constexpr int64_t kMostTokens = 10'000'000;
  std::vector<std::string> texts;
  for (const auto& [characters, token] : encoder->tokens) {
    if (token >= kMostTokens) fail(span, "token '{}' is {}, expected a smaller number", printable(characters), token);
    texts.resize(std::max<size_t>(texts.size(), static_cast<size_t>(token) + 1));
    texts[static_cast<size_t>(token)] = as_bytes(characters);
  }
  if (encoder->ranks.empty()) return Vocabulary(std::move(texts));
  return Vocabulary(std::move(texts), [encoder](std::string_view text) { return (*encoder)(text); });
}

}  // namespace relaxc::tools
