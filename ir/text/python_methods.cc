// The methods of Python's texts, lists and dictionaries that appear around modules.
#include <algorithm>
#include <ranges>

#include "ir/text/python_value.h"

namespace relaxc::text {

namespace {

using Kind = PythonValue::Kind;
using Args = std::vector<PythonValue>;

constexpr std::string_view kBlanks = " \t\n\r\f\v";

PythonValue list_of_texts(const std::vector<std::string>& parts, PythonHeap& heap) {
  Args values;
  for (const std::string& part : parts) values.push_back(heap.string(part));
  return heap.list(Kind::kList, std::move(values));
}

// Splits at blanks, or at each `mark`.
std::vector<std::string> split(std::string_view text, std::optional<std::string_view> mark) {
  std::vector<std::string> parts;
  while (true) {
    if (!mark) text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    if (!mark && text.empty()) return parts;
    size_t end = mark ? text.find(*mark) : text.find_first_of(kBlanks);
    parts.emplace_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + (mark ? mark->size() : 1));
  }
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (size_t at = text.find(from); at != text.npos; at = text.find(from)) {
    result.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return result.append(text);
}

std::string_view stripped(std::string_view text, std::string_view chars, bool left, bool right) {
  if (left) text.remove_prefix(std::min(text.find_first_not_of(chars), text.size()));
  if (right) text = text.substr(0, text.find_last_not_of(chars) + 1);
  return text;
}

// Computes "{}x{}".format(4, 8) and "{0}_{0}".format(n), without widths.
PythonResult formatted(std::string_view text, const Args& args, PythonHeap& heap) {
  std::string result;
  for (size_t i = 0, next = 0; i < text.size();) {
    bool is_double = i + 1 < text.size() && text[i] == text[i + 1];
    if (text[i] != '{' && text[i] != '}') {
      result += text[i++];
    } else if (is_double) {
      result += text[i];
      i += 2;
    } else {
      size_t end = text.find('}', i);
      if (text[i] != '{' || end == text.npos) return std::nullopt;
      std::string_view field = text.substr(i + 1, end - i - 1);
      std::optional<int64_t> number = field.empty() ? std::optional(static_cast<int64_t>(next++)) : whole_number(field);
      if (!number || *number >= std::ssize(args)) return std::nullopt;
      std::optional<std::string> value = text_of(args[static_cast<size_t>(*number)]);
      if (!value) return std::nullopt;
      result += *value;
      i = end + 1;
    }
  }
  return heap.string(result);
}

PythonResult joined_texts(std::string_view mark, const PythonValue& list, PythonHeap& heap) {
  auto values = iterate(list, heap);
  if (!values) return std::nullopt;
  std::string result;
  for (size_t i = 0; i < values->size(); ++i) {
    if (!(*values)[i].is(Kind::kString)) return std::nullopt;
    if (i > 0) result += mark;
    result += (*values)[i].text;
  }
  return heap.string(result);
}

PythonResult changed_text(std::string_view object, std::string_view name, PythonHeap& heap) {
  std::string text(object);
  auto each = [&](auto change, size_t from = 0) {
    for (size_t i = from; i < text.size(); ++i)
      text[i] = static_cast<char>(change(static_cast<unsigned char>(text[i])));
  };
  auto lower = [](int c) { return std::tolower(c); };
  auto upper = [](int c) { return std::toupper(c); };
  if (name == "upper") return each(upper), heap.string(text);
  if (name != "lower" && name != "capitalize") return std::nullopt;
  each(lower);
  if (name == "capitalize" && !text.empty()) text[0] = static_cast<char>(upper(static_cast<unsigned char>(text[0])));
  return heap.string(text);
}

PythonResult text_method(std::string_view text, std::string_view name, const Args& args, PythonHeap& heap) {
  bool is_strip = is_one_of(name, {"strip", "lstrip", "rstrip"});
  bool all_texts = std::ranges::all_of(args, [](const PythonValue& each) { return each.is(Kind::kString); });
  if (name == "format") return formatted(text, args, heap);
  if (name == "join" && args.size() == 1) return joined_texts(text, args[0], heap);
  if (!all_texts) return std::nullopt;
  if (is_strip && args.size() <= 1)
    return heap.string(stripped(text, args.empty() ? kBlanks : args[0].text, name != "rstrip", name != "lstrip"));
  if (name == "split" && args.empty()) return list_of_texts(split(text, std::nullopt), heap);
  if (args.empty() && name == "isdigit")
    return python_bool(!text.empty() && text.find_first_not_of("0123456789") == text.npos);
  if (args.empty()) return changed_text(text, name, heap);
  std::string_view first = args[0].text;
  if (name == "replace" && args.size() == 2 && !first.empty()) return heap.string(replaced(text, first, args[1].text));
  if (args.size() != 1) return std::nullopt;
  if (name == "startswith") return python_bool(text.starts_with(first));
  if (name == "endswith") return python_bool(text.ends_with(first));
  if (first.empty()) return std::nullopt;
  if (name == "split") return list_of_texts(split(text, first), heap);
  if (name == "find") {
    size_t at = text.find(first);
    return python_int(at == text.npos ? -1 : static_cast<int64_t>(at));
  }
  return std::nullopt;
}

// Returns the position of the value in a list, or the list's size; nullopt where that is not known.
std::optional<size_t> position_in(const Args& values, const PythonValue& wanted, PythonHeap& heap) {
  for (size_t i = 0; i < values.size(); ++i) {
    std::optional<bool> same = equal_values(values[i], wanted, heap);
    if (!same) return std::nullopt;
    if (*same) return i;
  }
  return values.size();
}

PythonResult list_method(Args& values, std::string_view name, const Args& args, PythonHeap& heap) {
  if (name == "append" && args.size() == 1) return values.push_back(args[0]), PythonValue();
  auto more = name == "extend" && args.size() == 1 ? iterate(args[0], heap) : std::nullopt;
  if (more) return values.insert(values.end(), more->begin(), more->end()), PythonValue();
  if (args.empty() && name == "copy") return heap.list(Kind::kList, values);
  if (args.empty() && name == "clear") return values.clear(), PythonValue();
  if (args.empty() && name == "reverse") return std::ranges::reverse(values), PythonValue();
  bool takes_index = args.empty() || (args.size() == 1 && args[0].is(Kind::kInt));
  if (name == "pop" && takes_index) {
    int64_t at = args.empty() ? -1 : args[0].whole;
    if (at < 0) at += std::ssize(values);
    if (at < 0 || at >= std::ssize(values)) throw PythonRaised{"IndexError"};
    PythonValue item = values[static_cast<size_t>(at)];
    values.erase(values.begin() + at);
    return item;
  }
  if (name == "insert" && args.size() == 2 && args[0].is(Kind::kInt)) {
    int64_t size = std::ssize(values), at = args[0].whole;
    at = std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
    return values.insert(values.begin() + at, args[1]), PythonValue();
  }
  if (args.size() != 1 || !is_one_of(name, {"index", "remove"})) return std::nullopt;
  std::optional<size_t> at = position_in(values, args[0], heap);
  if (!at) return std::nullopt;
  if (*at == values.size()) throw PythonRaised{"ValueError"};
  if (name == "index") return python_int(static_cast<int64_t>(*at));
  values.erase(values.begin() + static_cast<int64_t>(*at));
  return PythonValue();
}

PythonResult dict_method(const PythonValue& object, std::string_view name, const Args& args, PythonHeap& heap) {
  std::vector<PythonValue>& values = object.items->values;
  bool has_key = args.size() == 1 || args.size() == 2;
  if (has_key && is_one_of(name, {"get", "pop", "setdefault"})) {
    std::optional<bool> has = compare("in", args[0], object, heap);
    if (!has) return std::nullopt;
    PythonValue otherwise = args.size() == 2 ? args[1] : PythonValue();
    if (!*has && name == "pop" && args.size() == 1) throw PythonRaised{"KeyError"};
    if (!*has && name == "setdefault" && !set_item(object, args[0], otherwise, heap)) return std::nullopt;
    PythonResult item = *has ? item_of(object, args[0]) : otherwise;
    for (size_t i = 0; *has && name == "pop" && i + 1 < values.size(); i += 2) {
      if (equal_values(values[i], args[0], heap) != true) continue;
      values.erase(values.begin() + static_cast<int64_t>(i), values.begin() + static_cast<int64_t>(i) + 2);
      break;
    }
    return item;
  }
  if (name == "update" && args.size() == 1 && args[0].is(Kind::kDict) && args[0].items->computed == 0) {
    const Args other = args[0].items->values;
    for (size_t i = 0; i + 1 < other.size(); i += 2) {
      if (!set_item(object, other[i], other[i + 1], heap)) return std::nullopt;
    }
    return PythonValue();
  }
  if (!args.empty()) return std::nullopt;
  if (name == "copy") return heap.list(Kind::kDict, values);
  if (!is_one_of(name, {"keys", "values", "items"})) return std::nullopt;
  Args result;
  for (size_t i = 0; i + 1 < values.size(); i += 2) {
    bool both = name == "items";
    result.push_back(both ? heap.list(Kind::kTuple, {values[i], values[i + 1]}) : values[i + (name == "values")]);
  }
  return heap.list(Kind::kList, std::move(result));
}

}  // namespace

PythonResult percent_text(std::string_view text, const PythonValue& values, PythonHeap& heap) {
  Args parts = values.is(Kind::kTuple) && values.items->computed == 0 ? values.items->values : Args{values};
  std::string result;
  size_t next = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    char form = ++i < text.size() ? text[i] : ' ';
    if (form == '%') {
      result += '%';
      continue;
    }
    std::optional<std::string> value = next < parts.size() ? text_of(parts[next++]) : std::nullopt;
    if (!value || (form != 's' && form != 'd')) return std::nullopt;
    result += *value;
  }
  return next == parts.size() ? PythonResult(heap.string(result)) : std::nullopt;
}

// Where the result is not known, the object may be changed in part: its caller forgets it.
PythonResult call_method(const PythonValue& object, std::string_view name, const Args& args, PythonHeap& heap) {
  if (object.is(Kind::kString)) return text_method(object.text, name, args, heap);
  if (!object.items || object.items->computed != 0) return std::nullopt;
  heap.spend(1);
  if (object.is(Kind::kList)) return list_method(object.items->values, name, args, heap);
  return object.is(Kind::kDict) ? dict_method(object, name, args, heap) : std::nullopt;
}

}  // namespace relaxc::text
