#include "builtins/strings.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "builtins/regex.h"
#include "support/joined.h"
#include "support/printable.h"
#include "vm/error.h"
#include "vm/text.h"

namespace relaxc::vm::strings {

const Tensor& strings_in(const Value& value) {
  const Tensor& tensor = value.tensor();
  if (!tensor.dtype().is_string()) throw_runtime_error("expected strings, got {}", describe(tensor));
  return tensor;
}
Tensor make_strings(BuiltinContext& context, Shape shape, std::span<const std::string_view> texts) {
  return Tensor::strings(std::move(shape), texts, [&](int64_t bytes) { return context.memory.allocate(bytes); });
}

Tensor make_strings(BuiltinContext& context, Shape shape, const std::vector<std::string>& texts) {
  return make_strings(context, std::move(shape), std::vector<std::string_view>(texts.begin(), texts.end()));
}

namespace {

std::vector<std::string_view> list_of(const Tensor& strings) {
  std::vector<std::string_view> result;
  result.reserve(static_cast<size_t>(strings.size()));
  for (int64_t i = 0; i < strings.size(); ++i) result.push_back(strings.string(i));
  return result;
}
std::string quoted(std::string_view text) { return formatted("'{}'", printable(std::string(text))); }

// White space as Python's str.split has it.
bool is_space(uint32_t c) {
  constexpr std::pair<uint32_t, uint32_t> kSpaces[] = {
      {'\t', '\r'},     {0x1c, ' '},      {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
      {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};
  return std::ranges::any_of(kSpaces, [c](auto range) { return range.first <= c && c <= range.second; });
}
bool begins_with_space(std::string_view text) {
  if (text.empty()) return false;
  std::string_view rest = text;
  const uint32_t c = take_character(rest);
  return is_space(c) && (c < 0x80 || text.size() - rest.size() > 1);  // a byte that is not UTF-8 is none
}
size_t end_of_word(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty() && !begins_with_space(rest)) take_character(rest);
  return text.size() - rest.size();
}
// Splits as Python does: at runs of white space when there is no delimiter, at most `most` times if that is not
// negative.
std::vector<std::string_view> parts_at(std::string_view text, std::string_view delimiter, int64_t most) {
  std::vector<std::string_view> parts;
  auto skip_space = [&] {
    while (delimiter.empty() && begins_with_space(text)) take_character(text);
  };
  skip_space();
  while (!(delimiter.empty() && text.empty())) {
    bool may_split = most < 0 || std::ssize(parts) < most;
    size_t end = !may_split ? std::string_view::npos : delimiter.empty() ? end_of_word(text) : text.find(delimiter);
    if (end >= text.size() && (end == std::string_view::npos || delimiter.empty())) {
      parts.push_back(text);
      break;
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + delimiter.size());
    skip_space();
  }
  return parts;
}

int64_t integer_of(std::string_view text, DType dtype) {
  Tensor number = Tensor::empty({}, dtype);
  std::optional<double> value = read_number(text);
  if (!value || std::trunc(*value) != *value || std::abs(*value) > 0x1p64)
    throw_runtime_error("{} is not a value of {}", quoted(text), to_string(dtype));
  // Large integers are read exactly.
  bool is_large = std::abs(*value) > 0x1p53;
  int64_t integer = !is_large         ? static_cast<int64_t>(*value)
                    : dtype.is_uint() ? static_cast<int64_t>(std::strtoull(std::string(text).c_str(), nullptr, 10))
                                      : std::strtoll(std::string(text).c_str(), nullptr, 10);
  number.set_int(0, integer);
  bool is_negative = *value < 0 && dtype.is_uint();
  if (number.as_int(0) != integer || is_negative)
    throw_runtime_error("{} is not a value of {}", quoted(text), to_string(dtype));
  return integer;
}
bool flag_of(std::string_view text) {
  std::string lower = mapped(text, lower_case);
  if (lower == "true" || lower == "false") return lower == "true";
  std::optional<double> value = read_number(text);
  if (!value) throw_runtime_error("{} is not a value of bool", quoted(text));
  return *value != 0;
}

}  // namespace

// (pool, positions): the strings at the positions, in their shape.
Value take(BuiltinContext& context, Arguments arguments) {
  const Tensor &pool = strings_in(arguments[0]), &positions = arguments[1].tensor();
  std::vector<std::string_view> texts(static_cast<size_t>(positions.size()));
  for (int64_t i = 0; i < positions.size(); ++i) {
    int64_t at = positions.as_int(i);
    if (at < 0 || at >= pool.size()) throw_runtime_error("position {} of {} strings", at, pool.size());
    texts[static_cast<size_t>(i)] = pool.string(at);
  }
  return make_strings(context, positions.shape(), texts);
}

Value join(BuiltinContext& context, Arguments arguments) {
  std::vector<std::string_view> texts;
  for (const Value& argument : arguments) {
    std::vector<std::string_view> more = list_of(strings_in(argument));
    texts.insert(texts.end(), more.begin(), more.end());
  }
  return make_strings(context, {std::ssize(texts)}, texts);
}

// (pool): its different strings in the order of their bytes, and the place of each string among them.
Value sort(BuiltinContext& context, Arguments arguments) {
  const Tensor& pool = strings_in(arguments[0]);
  std::vector<std::string_view> texts = list_of(pool), sorted = texts;
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  Tensor places = context.empty({std::ssize(texts)}, kInt64);
  for (size_t i = 0; i < texts.size(); ++i)
    places.data<int64_t>()[i] = std::ranges::lower_bound(sorted, texts[i]) - sorted.begin();
  return Tuple({make_strings(context, {std::ssize(sorted)}, sorted), places});
}

// (strings, keys): the first place of each string among the keys, or -1.
Value find(BuiltinContext& context, Arguments arguments) {
  const Tensor &strings = strings_in(arguments[0]), &keys = strings_in(arguments[1]);
  std::unordered_map<std::string_view, int64_t> places;
  for (int64_t i = 0; i < keys.size(); ++i) places.emplace(keys.string(i), i);
  Tensor result = context.empty(strings.shape(), kInt64);
  for (int64_t i = 0; i < strings.size(); ++i) {
    auto found = places.find(strings.string(i));
    result.data<int64_t>()[i] = found == places.end() ? -1 : found->second;
  }
  return result;
}

// (a, b): each string of a before the one of b, which has the same shape.
Value concat(BuiltinContext& context, Arguments arguments) {
  const Tensor &a = strings_in(arguments[0]), &b = strings_in(arguments[1]);
  if (a.shape() != b.shape()) throw_runtime_error("{} and {} differ in shape", describe(a), describe(b));
  std::vector<std::string> texts;
  for (int64_t i = 0; i < a.size(); ++i) texts.push_back(std::string(a.string(i)).append(b.string(i)));
  return make_strings(context, a.shape(), texts);
}

// (strings, delimiter, most splits or -1): the parts along a new last axis, with "" behind the last, and their numbers.
Value split(BuiltinContext& context, Arguments arguments) {
  const Tensor& strings = strings_in(arguments[0]);
  std::vector<std::vector<std::string_view>> all;
  Tensor counts = context.empty(strings.shape(), kInt64);
  size_t width = 0;
  for (int64_t i = 0; i < strings.size(); ++i) {
    all.push_back(parts_at(strings.string(i), arguments[1].string(), arguments[2].integer()));
    counts.data<int64_t>()[i] = std::ssize(all.back());
    width = std::max(width, all.back().size());
  }
  Shape shape = strings.shape();
  shape.push_back(static_cast<int64_t>(width));
  checked_tensor_bytes(shape, DType::string());
  std::vector<std::string_view> texts;
  for (std::vector<std::string_view>& parts : all) {
    parts.resize(width);
    texts.insert(texts.end(), parts.begin(), parts.end());
  }
  return Tuple({make_strings(context, std::move(shape), texts), counts});
}

// (strings, pattern): whether each string matches as a whole.
Value full_match(BuiltinContext& context, Arguments arguments) {
  const Tensor& strings = strings_in(arguments[0]);
  Regex pattern(arguments[1].string());
  Tensor result = context.empty(strings.shape(), kBool);
  for (int64_t i = 0; i < strings.size(); ++i) result.set_int(i, pattern.matches(strings.string(i)));
  return result;
}

// MurmurHash3_x86_32 (Appleby): mixes each four bytes, the low one first, then the rest of them and their number.
static uint32_t murmur_hash(std::string_view text, uint32_t seed) {
  uint32_t result = seed;
  auto mixed = [](uint32_t word) { return std::rotl(word * 0xcc9e2d51u, 15) * 0x1b873593u; };
  for (size_t begin = 0; begin < text.size(); begin += 4) {
    const std::string_view part = text.substr(begin, 4);
    uint32_t word = 0;
    for (size_t i = 0; i < part.size(); ++i) word |= uint32_t{static_cast<unsigned char>(part[i])} << (8 * i);
    result ^= mixed(word);
    if (part.size() == 4) result = std::rotl(result, 13) * 5 + 0xe6546b64u;
  }
  result ^= static_cast<uint32_t>(text.size());
  result = (result ^ (result >> 16)) * 0x85ebca6bu;
  result = (result ^ (result >> 13)) * 0xc2b2ae35u;
  return result ^ (result >> 16);
}
// (strings, seed): the hash of each.
Value hash(BuiltinContext& context, Arguments arguments) {
  const Tensor& strings = strings_in(arguments[0]);
  const auto seed = static_cast<uint32_t>(arguments[1].integer());
  Tensor result = context.empty(strings.shape(), DType::uint(32));
  for (int64_t i = 0; i < strings.size(); ++i) result.set_int(i, murmur_hash(strings.string(i), seed));
  return result;
}

// How a locale changes the case of a character.
struct CaseMaps {
  uint32_t (*lower)(uint32_t), (*upper)(uint32_t);
};
// The locales "C" and "POSIX" know ASCII only; Turkish and Azerbaijani ("tr_TR.UTF-8") have an i with a dot and one
// without. All others, also unknown ones, do as Unicode says.
static CaseMaps case_maps(std::string_view locale) {
  const std::string_view language = locale.substr(0, locale.find_first_of("_-.@"));
  if (locale == "C" || locale == "POSIX")
    return {[](uint32_t c) { return c < 0x80 ? lower_case(c) : c; },
            [](uint32_t c) { return c < 0x80 ? upper_case(c) : c; }};
  if (language == "tr" || language == "az")
    return {[](uint32_t c) { return c == 'I'     ? 0x131U
                                    : c == 0x130 ? uint32_t{'i'}
                                                 : lower_case(c); },
            [](uint32_t c) { return c == 'i' ? 0x130U : upper_case(c); }};
  return {lower_case, upper_case};
}

// (strings, "LOWER", "UPPER" or "NONE", 1 if stop words must have the same case, stop words, locale): the other strings
// of a vector, or of the one row of a matrix, in that case; one that is empty where none is left.
Value normalize(BuiltinContext& context, Arguments arguments) {
  const Tensor &strings = strings_in(arguments[0]), &stop_words = strings_in(arguments[3]);
  if (strings.ndim() < 1 || strings.ndim() > 2 || (strings.ndim() == 2 && strings.shape()[0] != 1))
    throw_runtime_error("expected a vector or a matrix of one row, got {}", describe(strings));
  const std::string& action = arguments[1].string();
  const bool same_case = arguments[2].integer() != 0;
  const auto [lower, upper] = case_maps(arguments[4].string());
  auto key = [&, lower = lower](std::string_view text) { return same_case ? std::string(text) : mapped(text, lower); };
  std::unordered_set<std::string> dropped;
  for (std::string_view word : list_of(stop_words)) dropped.insert(key(word));
  std::vector<std::string> texts;
  for (std::string_view text : list_of(strings)) {
    if (dropped.contains(key(text))) continue;
    texts.push_back(action == "LOWER"   ? mapped(text, lower)
                    : action == "UPPER" ? mapped(text, upper)
                                        : std::string(text));
  }
  if (texts.empty()) texts.emplace_back();
  Shape shape = strings.shape();
  shape.back() = std::ssize(texts);
  return make_strings(context, std::move(shape), texts);
}

Value from_numbers(BuiltinContext& context, Arguments arguments) {
  const Tensor& numbers = arguments[0].tensor();
  DType dtype = numbers.dtype();
  if (dtype.is_string()) return numbers;
  std::vector<std::string> texts;
  for (int64_t i = 0; i < numbers.size(); ++i) {
    bool is_large = dtype == DType::uint(64);
    texts.push_back(dtype.is_float()  ? number_text(numbers.as_double(i), dtype)
                    : dtype.is_bool() ? (numbers.as_int(i) ? "True" : "False")
                    : is_large        ? std::to_string(static_cast<uint64_t>(numbers.as_int(i)))
                                      : std::to_string(numbers.as_int(i)));
  }
  return make_strings(context, numbers.shape(), texts);
}

// (strings, dtype)
Value to_numbers(BuiltinContext& context, Arguments arguments) {
  const Tensor& strings = strings_in(arguments[0]);
  std::optional<DType> dtype = parse_dtype(arguments[1].string());
  if (!dtype || dtype->lanes != 1) throw_runtime_error("'{}' is not a dtype", arguments[1].string());
  Tensor result = context.empty(strings.shape(), *dtype);
  for (int64_t i = 0; i < strings.size(); ++i) {
    std::string_view text = strings.string(i);
    if (!dtype->is_float()) {
      result.set_int(i, dtype->is_bool() ? flag_of(text) : integer_of(text, *dtype));
      continue;
    }
    std::optional<double> value = read_number(text);
    if (!value) throw_runtime_error("{} is not a value of {}", quoted(text), to_string(*dtype));
    result.set_double(i, *value);
  }
  return result;
}

}  // namespace relaxc::vm::strings
