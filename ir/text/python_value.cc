#include "ir/text/python_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ranges>

#include "ir/text/parsing.h"

namespace relaxc::text {

namespace {

using Kind = PythonValue::Kind;
constexpr size_t kLongestText = 65'536;

double real_of(const PythonValue& value) { return value.is_whole() ? static_cast<double>(value.whole) : value.real; }

bool is_known(const PythonValue& value) {
  return !value.is(PythonValue::kSyntax) && !(value.items && value.items->computed != 0) &&
         !(value.object && value.object->computed != 0);
}

std::vector<PythonValue> repeated(const std::vector<PythonValue>& part, int64_t count, PythonHeap& heap) {
  std::vector<PythonValue> result;
  for (int64_t i = 0; i < count && !part.empty(); ++i) {
    heap.spend(part.size());
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

int64_t range_size(const std::vector<PythonValue>& range) {
  int64_t start = range[0].whole, stop = range[1].whole, step = range[2].whole;
  std::optional<int64_t> distance = fold_whole("-", step > 0 ? stop : start, step > 0 ? start : stop);
  if (!distance || step == std::numeric_limits<int64_t>::min()) throw PythonUnknown();
  return *distance <= 0 ? 0 : (*distance - 1) / std::abs(step) + 1;
}

int64_t size_of(const PythonValue& value) {
  if (value.is(Kind::kString)) return std::ssize(value.text);
  if (value.is(Kind::kRange)) return range_size(value.items->values);
  return std::ssize(value.items->values) / (value.is(Kind::kDict) ? 2 : 1);
}
bool has_size(const PythonValue& value) { return value.is(Kind::kString) || value.items; }

// Returns the list that an object such as nn.ModuleList holds; other values themselves.
const PythonValue& listed(const PythonValue& value) {
  const bool holds =
      value.is(Kind::kObject) && (value.object->type->is_a("ModuleList") || value.object->type->is_a("ModuleDict"));
  const PythonValue* held = holds ? value.object->find("modules") : nullptr;
  return held && held->items ? *held : value;
}

// Returns the position that an index means; nullopt where there is none.
std::optional<size_t> position_of(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size ? std::optional(static_cast<size_t>(index)) : std::nullopt;
}

// Returns whether keys of a dictionary are the same; names of what a library made are keys, too: {freq: value}.
std::optional<bool> same_key(const PythonValue& a, const PythonValue& b, PythonHeap& heap) {
  auto is_thing = [](const PythonValue& v) {
    return v.is(Kind::kSyntax) && v.syntax && is_name(*v.syntax) && v.syntax->computed == 0;
  };
  if (is_thing(a) && is_thing(b)) return a.syntax->text == b.syntax->text;
  if (is_thing(a) != is_thing(b) && is_known(is_thing(a) ? b : a)) return false;
  return equal_values(a, b, heap);
}

// Returns the position of the key in a dictionary, or its size; nullopt where that is not known.
std::optional<size_t> find_key(const std::vector<PythonValue>& entries, const PythonValue& key, PythonHeap& heap) {
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    std::optional<bool> same = same_key(entries[i], key, heap);
    if (!same) return std::nullopt;
    if (*same) return i;
  }
  return entries.size();
}

}  // namespace

const PythonValue* PythonClass::find(std::string_view member) const {
  for (const auto& [name, value] : members | std::views::reverse) {
    if (name == member) return &value;
  }
  return base ? base->find(member) : nullptr;
}
PythonValue* PythonObject::find(std::string_view attribute) {
  auto found = std::ranges::find(attributes, attribute, &PythonMembers::value_type::first);
  return found == attributes.end() ? nullptr : &found->second;
}

PythonValue PythonHeap::list(PythonValue::Kind kind, std::vector<PythonValue> values) {
  spend(values.size() + 1);
  items_.push_back({std::move(values)});
  return {.kind = kind, .items = &items_.back()};
}
PythonValue PythonHeap::string(std::string_view text) {
  spend(text.size() / 16 + 1);
  if (text.size() > kLongestText) throw PythonUnknown();
  return {.kind = Kind::kString, .text = tree_.text(text)};
}
Syntax& PythonHeap::node(SyntaxKind kind, const Place& at, std::string_view text) {
  Syntax& result = tree_.node();
  static_cast<Place&>(result) = place(at);
  result.kind = kind;
  result.text = text;
  return result;
}
PythonValue PythonHeap::computed(std::string_view name, const Place& at, uint32_t line) {
  Syntax& result = node(SyntaxKind::kName, at, name);
  result.computed = line;
  return {.kind = Kind::kSyntax, .syntax = &result};
}
void PythonHeap::forget_all(uint32_t line) {
  for (PythonItems& each : items_) each.computed = line;
  for (PythonObject& each : objects_) each.computed = line;
  left_ -= std::min(left_, items_.size() + objects_.size());
}

std::optional<bool> truth_of(const PythonValue& value) {
  if (!is_known(value)) return std::nullopt;
  if (value.is_number()) return real_of(value) != 0;
  if (value.is(Kind::kNone)) return false;
  if (value.is(Kind::kClass)) return true;
  if (value.is(Kind::kObject) && !has_size(listed(value))) return true;
  return value.is(Kind::kFunction) || size_of(listed(value)) > 0;
}

std::optional<bool> equal_values(const PythonValue& a, const PythonValue& b, PythonHeap& heap, int depth) {
  constexpr int kDeepest = 50;
  heap.spend(1);
  if (depth > kDeepest || !is_known(a) || !is_known(b)) return std::nullopt;
  if (a.is_whole() && b.is_whole()) return a.whole == b.whole;
  if (a.is_number() && b.is_number()) {
    auto exact = [](const PythonValue& v) {
      return v.is_whole() ? static_cast<long double>(v.whole) : static_cast<long double>(v.real);
    };
    return exact(a) == exact(b);
  }
  if (a.kind != b.kind) return false;
  if (a.is(Kind::kString)) return a.text == b.text;
  if (a.is(Kind::kFunction)) return a.function == b.function && a.object == b.object;
  if (a.is(Kind::kClass)) return a.type == b.type;
  if (a.is(Kind::kObject)) return a.object == b.object ? std::optional(true) : std::nullopt;
  if (a.is(Kind::kNone)) return true;
  if (!a.is_list()) return std::nullopt;
  const std::vector<PythonValue>&x = a.items->values, &y = b.items->values;
  if (x.size() != y.size()) return false;
  bool known = true;
  for (size_t i = 0; i < x.size(); ++i) {
    std::optional<bool> same = equal_values(x[i], y[i], heap, depth + 1);
    if (same == false) return false;
    known = known && same;
  }
  return known ? std::optional(true) : std::nullopt;
}

PythonResult literal_value(const Syntax& at, PythonHeap& heap) {
  if (at.kind == SyntaxKind::kString) {
    std::string_view prefix = at.text.substr(0, at.text.find_first_of("\"'"));
    std::string error, text = unquote(at.text, error);
    if (!error.empty() || prefix.find_first_of("bB") != prefix.npos) return std::nullopt;
    return heap.string(text);
  }
  if (at.kind == SyntaxKind::kConstant) {
    if (at.text == "...") return std::nullopt;
    return at.text == "None" ? PythonValue() : python_bool(at.text == "True");
  }
  std::string digits(at.text);
  std::erase(digits, '_');
  auto parse = [&](auto value, auto... format) -> std::optional<decltype(value)> {
    const char *from = digits.data(), *to = from + digits.size();
    auto [end, error] = std::from_chars(from, to, value, format...);
    return error == std::errc() && end == to ? std::optional(value) : std::nullopt;
  };
  if (at.kind == SyntaxKind::kFloat) {
    auto value = parse(0.0, std::chars_format::general);
    return value ? PythonResult(python_float(*value)) : std::nullopt;
  }
  constexpr std::pair<char, int> kBases[] = {{'x', 16}, {'X', 16}, {'o', 8}, {'O', 8}, {'b', 2}, {'B', 2}};
  const int* base = digits.size() > 2 && digits[0] == '0' ? row_of(kBases, digits[1]) : nullptr;
  if (base) digits.erase(0, 2);
  auto value = parse(int64_t{0}, base ? *base : 10);
  return value ? PythonResult(python_int(*value)) : std::nullopt;
}

PythonResult unary_value(std::string_view op, const PythonValue& a) {
  if (op == "not") {
    std::optional<bool> value = truth_of(a);
    return value ? PythonResult(python_bool(!*value)) : std::nullopt;
  }
  if (a.is(Kind::kFloat) && op != "~") return python_float(op == "-" ? -a.real : a.real);
  if (!a.is_whole()) return std::nullopt;
  if (op == "~") return python_int(~a.whole);
  std::optional<int64_t> negated = fold_whole("-", 0, a.whole);
  if (op == "+") return python_int(a.whole);
  return negated ? PythonResult(python_int(*negated)) : std::nullopt;
}

PythonResult arithmetic(std::string_view op, const PythonValue& a, const PythonValue& b, PythonHeap& heap) {
  if (!is_known(a) || !is_known(b)) return std::nullopt;
  if (op == "+" && a.is_list() && a.kind == b.kind) {
    std::vector<PythonValue> sum = a.items->values;
    sum.insert(sum.end(), b.items->values.begin(), b.items->values.end());
    return heap.list(a.kind, std::move(sum));
  }
  if (op == "+" && a.is(Kind::kString) && b.is(Kind::kString))
    return heap.string(std::string(a.text) + std::string(b.text));
  if (op == "%" && a.is(Kind::kString)) return percent_text(a.text, b, heap);
  const PythonValue &part = a.is_whole() ? b : a, &count = a.is_whole() ? a : b;
  if (op == "*" && part.is_list() && count.is_whole())
    return heap.list(part.kind, repeated(part.items->values, count.whole, heap));
  if (!a.is_number() || !b.is_number()) return std::nullopt;
  bool divides = op == "/" || op == "//" || op == "%";
  if (divides && real_of(b) == 0) throw PythonRaised{"ZeroDivisionError"};
  if (a.is_whole() && b.is_whole() && op != "/" && (op != "**" || b.whole >= 0)) {
    bool overflows = b.whole == -1 && a.whole == std::numeric_limits<int64_t>::min();
    bool is_shift = op == "<<" || op == ">>";
    if ((is_shift && (b.whole < 0 || b.whole > 62)) || overflows || op == "@") return std::nullopt;
    std::optional<int64_t> result = fold_whole(op, a.whole, b.whole);
    bool stays_bool = a.is(Kind::kBool) && b.is(Kind::kBool) && (op == "&" || op == "|" || op == "^");
    if (!result) return std::nullopt;
    return stays_bool ? python_bool(*result != 0) : python_int(*result);
  }
  std::optional<double> result = fold_real(op, real_of(a), real_of(b));
  return result ? PythonResult(python_float(*result)) : std::nullopt;
}

std::optional<bool> compare(std::string_view op, const PythonValue& a, const PythonValue& b, PythonHeap& heap) {
  auto negated = [](std::optional<bool> value) { return value ? std::optional(!*value) : value; };
  if (op == "!=") return negated(compare("==", a, b, heap));
  if (op == "is not") return negated(compare("is", a, b, heap));
  if (op == "not in") return negated(compare("in", a, b, heap));
  if (op == "==") return equal_values(a, b, heap);
  if (!is_known(a) || !is_known(b)) return std::nullopt;
  if (op == "is") {
    if (a.kind != b.kind) return false;
    if (a.is(Kind::kFunction)) return a.function == b.function && a.object == b.object;
    if (a.object || a.type) return a.object == b.object && a.type == b.type;
    if (a.items) return a.items == b.items;
    constexpr int64_t kShared = 256;  // CPython makes these numbers once
    bool is_shared = a.is(Kind::kNone) || (a.is_whole() && a.whole >= -5 && a.whole <= kShared);
    std::optional<bool> same = equal_values(a, b, heap);
    return is_shared || same == false ? same : std::nullopt;
  }
  if (op == "in") {
    if (b.is(Kind::kString) && a.is(Kind::kString)) return b.text.find(a.text) != b.text.npos;
    auto values = iterate(b, heap);
    bool known = values.has_value();
    for (const PythonValue& value : known ? *values : std::vector<PythonValue>()) {
      std::optional<bool> same = equal_values(value, a, heap);
      if (same == true) return true;
      known = known && same;
    }
    return known ? std::optional(false) : std::nullopt;
  }
  if (a.is(Kind::kString) && b.is(Kind::kString)) {
    int order = a.text.compare(b.text);
    return op == "<" ? order < 0 : op == ">" ? order > 0 : op == "<=" ? order <= 0 : order >= 0;
  }
  if (!a.is_number() || !b.is_number()) return std::nullopt;
  auto decide = [&](auto x, auto y) { return op == "<" ? x < y : op == ">" ? x > y : op == "<=" ? x <= y : x >= y; };
  return a.is_whole() && b.is_whole() ? decide(a.whole, b.whole) : decide(real_of(a), real_of(b));
}

std::optional<std::vector<PythonValue>> iterate(const PythonValue& whole, PythonHeap& heap) {
  const PythonValue& value = listed(whole);
  if (!is_known(value) || !has_size(value)) return std::nullopt;
  std::vector<PythonValue> result;
  auto size = static_cast<size_t>(size_of(value));
  heap.spend(size);
  for (size_t i = 0; i < size; ++i) {
    if (value.is(Kind::kString)) {
      result.push_back(heap.string(value.text.substr(i, 1)));
    } else if (value.is(Kind::kRange)) {
      const std::vector<PythonValue>& range = value.items->values;
      result.push_back(python_int(range[0].whole + static_cast<int64_t>(i) * range[2].whole));
    } else {
      result.push_back(value.items->values[value.is(Kind::kDict) ? i * 2 : i]);
    }
  }
  return result;
}

PythonResult item_of(const PythonValue& whole, const PythonValue& index) {
  const PythonValue& object = listed(whole);
  if (!is_known(object)) return std::nullopt;
  if (object.is(Kind::kDict) && index.is(Kind::kSyntax)) {
    for (size_t i = 0; i + 1 < object.items->values.size(); i += 2) {
      const PythonValue& key = object.items->values[i];
      const bool same = index.syntax && key.is(Kind::kSyntax) && is_name(*key.syntax) && is_name(*index.syntax) &&
                        key.syntax->text == index.syntax->text && index.syntax->computed == 0;
      if (same) return object.items->values[i + 1];
    }
    return std::nullopt;
  }
  if (!is_known(index)) return std::nullopt;
  if (object.is(Kind::kDict)) {
    for (size_t i = 0; i + 1 < object.items->values.size(); i += 2) {
      const PythonValue& key = object.items->values[i];
      if (key.is(Kind::kSyntax)) continue;
      bool is_simple = key.is_number() || key.is(Kind::kString) || key.is(Kind::kNone);
      if (!is_simple) return std::nullopt;
      bool same = key.is(Kind::kString) ? index.is(Kind::kString) && key.text == index.text
                  : key.is(Kind::kNone) ? index.is(Kind::kNone)
                                        : index.is_number() && real_of(key) == real_of(index);
      if (same) return object.items->values[i + 1];
    }
    throw PythonRaised{"KeyError"};
  }
  if (index.is_whole() && object.is(Kind::kString)) {
    auto position = position_of(index.whole, size_of(object));
    if (!position) throw PythonRaised{"IndexError"};
    return PythonValue{.kind = Kind::kString, .text = object.text.substr(*position, 1)};
  }
  if (!index.is_whole() || !object.items) return std::nullopt;
  auto position = position_of(index.whole, size_of(object));
  if (!position) throw PythonRaised{"IndexError"};
  if (!object.is(Kind::kRange)) return object.items->values[*position];
  const std::vector<PythonValue>& range = object.items->values;
  return python_int(range[0].whole + static_cast<int64_t>(*position) * range[2].whole);
}

PythonResult slice_of(const PythonValue& whole, const std::vector<PythonValue>& bounds, PythonHeap& heap) {
  const PythonValue& object = listed(whole);
  bool fits = is_known(object) && (object.is_list() || object.is(Kind::kString)) &&
              std::ranges::all_of(bounds, [](const PythonValue& v) { return v.is(Kind::kNone) || v.is_whole(); });
  if (!fits) return std::nullopt;
  int64_t size = size_of(object), step = bounds[2].is_whole() ? bounds[2].whole : 1;
  if (step == 0 || std::abs(step) > (int64_t{1} << 40)) return std::nullopt;
  auto bound = [&](const PythonValue& given, int64_t otherwise) {
    if (!given.is_whole()) return otherwise;
    int64_t least = step > 0 ? 0 : -1;
    return std::clamp(given.whole < 0 ? given.whole + size : given.whole, least, size + least);
  };
  int64_t start = bound(bounds[0], step > 0 ? 0 : size - 1), stop = bound(bounds[1], step > 0 ? size : -1);
  std::vector<PythonValue> result;
  std::string text;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
    auto at = static_cast<size_t>(i);
    object.is(Kind::kString) ? text.push_back(object.text[at]) : result.push_back(object.items->values[at]);
  }
  return object.is(Kind::kString) ? heap.string(text) : heap.list(object.kind, std::move(result));
}

bool set_item(const PythonValue& object, const PythonValue& index, const PythonValue& value, PythonHeap& heap) {
  if (!object.can_change() || !is_known(object)) return false;
  std::vector<PythonValue>& values = object.items->values;
  heap.spend(1);
  if (object.is(Kind::kList)) {
    if (!index.is_whole()) return false;
    auto position = position_of(index.whole, std::ssize(values));
    if (!position) throw PythonRaised{"IndexError"};
    values[*position] = value;
    return true;
  }
  std::optional<size_t> position = same_key(index, index, heap) == true ? find_key(values, index, heap) : std::nullopt;
  if (!position) return false;
  if (*position == values.size()) values.insert(values.end(), {index, value});
  values[*position + 1] = value;
  return true;
}

std::optional<std::string> text_of(const PythonValue& value) {
  if (value.is(Kind::kString)) return std::string(value.text);
  if (value.is(Kind::kInt)) return fmt::format("{}", value.whole);
  if (value.is(Kind::kBool)) return value.whole != 0 ? "True" : "False";
  return std::nullopt;
}

}  // namespace relaxc::text
