#include "ir/attrs.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/visit.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/printable.h"

namespace relaxc {

Attrs::Attrs() = default;
Attrs::Attrs(const Attrs& other) = default;
Attrs::Attrs(Attrs&& other) noexcept = default;
Attrs& Attrs::operator=(const Attrs& other) = default;
Attrs& Attrs::operator=(Attrs&& other) noexcept = default;
Attrs::~Attrs() = default;

AttrValue::AttrValue() = default;
AttrValue::AttrValue(const AttrValue& other) = default;
AttrValue::AttrValue(AttrValue&& other) noexcept = default;
AttrValue& AttrValue::operator=(const AttrValue& other) = default;
AttrValue& AttrValue::operator=(AttrValue&& other) noexcept = default;
AttrValue::~AttrValue() = default;
AttrValue::AttrValue(bool value) : value_(value) {}
AttrValue::AttrValue(int64_t value) : value_(value) {}
AttrValue::AttrValue(double value) : value_(value) {}
AttrValue::AttrValue(const char* value) : value_(std::string(value)) {}
AttrValue::AttrValue(std::string value) : value_(std::move(value)) {}
AttrValue::AttrValue(DType value) : value_(value) {}
AttrValue::AttrValue(AttrList value) : value_(std::move(value)) {}
AttrValue::AttrValue(Attrs value) : value_(std::move(value)) {}
AttrValue::AttrValue(Expr value) : value_(std::move(value)) {}
AttrValue::AttrValue(const std::vector<int64_t>& values) : value_(AttrList(values.begin(), values.end())) {}

Attrs::Attrs(std::initializer_list<std::pair<const std::string, AttrValue>> entries) {
  for (const auto& [key, value] : entries) set(key, value);
}

const AttrValue* Attrs::find(std::string_view key) const { return find_value(entries_, key); }

void Attrs::set(std::string key, AttrValue value) { entries_.insert_or_assign(std::move(key), std::move(value)); }

Attrs Attrs::with(std::string key, AttrValue value) const {
  Attrs copy = *this;
  copy.set(std::move(key), std::move(value));
  return copy;
}

Attrs Attrs::without(std::string_view key) const {
  Attrs copy = *this;
  if (auto it = copy.entries_.find(key); it != copy.entries_.end()) copy.entries_.erase(it);
  return copy;
}

std::vector<std::string_view> Attrs::ordered_keys() const {
  std::vector<std::string_view> keys;
  for (const char* key : order_) {
    if (has(key)) keys.emplace_back(key);
  }
  for (const auto& [key, value] : entries_) {
    if (std::find(order_.begin(), order_.end(), key) == order_.end()) keys.emplace_back(key);
  }
  return keys;
}

int64_t Attrs::get_int(std::string_view key, int64_t otherwise) const {
  const AttrValue* value = find(key);
  int64_t number = 0;
  return value && !value->as<bool>() && from_attr(*value, number) ? number : otherwise;
}
std::string Attrs::get_string(std::string_view key, std::string otherwise) const {
  const AttrValue* value = find(key);
  return value && value->as<std::string>() ? *value->as<std::string>() : otherwise;
}
bool Attrs::get_bool(std::string_view key, bool otherwise) const {
  const AttrValue* value = find(key);
  if (value && value->as<bool>()) return *value->as<bool>();
  return value && value->as<int64_t>() ? *value->as<int64_t>() != 0 : otherwise;
}

bool operator==(const Attrs& a, const Attrs& b) { return a.entries_ == b.entries_; }

bool operator==(const AttrValue& a, const AttrValue& b) {
  if (a.value_.index() != b.value_.index()) return false;
  return std::visit(
      [&](const auto& value) {
        using T = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Expr>) {
          return structural_equal(value, *b.as<Expr>());
        } else if constexpr (std::is_same_v<T, double>) {
          return std::bit_cast<uint64_t>(value) == std::bit_cast<uint64_t>(*b.as<double>());
        } else {
          return value == *b.as<T>();
        }
      },
      a.value_);
}

void AttrValue::visit_exprs(const std::function<void(const Expr&)>& fn) const {
  if (const Expr* expr = as<Expr>()) fn(*expr);
  if (const AttrList* list = as<AttrList>()) {
    for (const AttrValue& item : *list) item.visit_exprs(fn);
  }
  if (const Attrs* attrs = as<Attrs>()) {
    for (const auto& [key, item] : *attrs) item.visit_exprs(fn);
  }
}

bool AttrValue::map_exprs(const std::function<Expr(const Expr&)>& fn) {
  bool changed = false;
  if (Expr* expr = std::get_if<Expr>(&value_)) {
    Expr mapped = fn(*expr);
    changed = !same_node(mapped, *expr);
    *expr = std::move(mapped);
  }
  if (AttrList* list = std::get_if<AttrList>(&value_)) {
    for (AttrValue& item : *list) changed |= item.map_exprs(fn);
  }
  if (Attrs* attrs = std::get_if<Attrs>(&value_)) {
    for (auto& [key, item] : attrs->entries_) changed |= item.map_exprs(fn);
  }
  return changed;
}

static std::string float_text(double value) {
  if (std::isnan(value)) return "float(\"nan\")";
  if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  std::string text = fmt::format("{}", value);  // the shortest text that reads back the same
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string to_string(const AttrValue& value) {
  return to_string(value, [](const Expr& expr) { return debug_print(expr); });
}

std::string to_string(const AttrValue& value, const std::function<std::string(const Expr&)>& print) {
  struct Print {
    const std::function<std::string(const Expr&)>& print;
    std::string operator()(const Expr& v) const { return print(v); }
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool v) const { return v ? "True" : "False"; }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return float_text(v); }
    std::string operator()(const std::string& v) const { return python_string(v); }
    std::string operator()(DType v) const { return fmt::format("R.dtype(\"{}\")", to_string(v)); }
    std::string operator()(const AttrList& list) const {
      return "[" + joined(list, [&](const AttrValue& item) { return to_string(item, print); }) + "]";
    }
    std::string operator()(const Attrs& attrs) const {
      // A target is a dictionary, an index map the text of a lambda (a list: and of its inverse).
      if (const AttrValue* target = attrs.size() == 1 ? attrs.find("T.target") : nullptr)
        return fmt::format("T.target({})", to_string(*target, print));
      std::vector<std::string> lambdas;
      const AttrValue* map = attrs.size() == 1 ? attrs.find("T.index_map") : nullptr;
      bool has_lambdas = map && from_attr(*map, lambdas);
      if (has_lambdas && map->as<std::string>()) return fmt::format("T.index_map({})", lambdas[0]);
      if (has_lambdas && lambdas.size() == 2)
        return fmt::format("T.index_map({}, inverse_index_map={})", lambdas[0], lambdas[1]);
      auto text_of = [&](const auto& entry) {
        return python_string(entry.first) + ": " + to_string(entry.second, print);
      };
      return "{" + joined(attrs, text_of) + "}";
    }
  };
  return std::visit(Print{print}, value.variant());
}

// Sets `out` to the value under the pointer; returns false for null.
template <class T, class From>
static bool take(const From* value, T& out) {
  if (value) out = static_cast<T>(*value);
  return value != nullptr;
}
// Does so for the constant that the attribute holds as an expression.
template <class Imm, class T>
static bool take_constant(const AttrValue& value, T& out) {
  const Imm* number = value.as<Expr>() ? value.as<Expr>()->as<Imm>() : nullptr;
  return number && take(&number->value, out);
}

bool from_attr(const AttrValue& value, bool& out) {
  int64_t number = 0;
  if (take(value.as<int64_t>(), number)) out = number != 0;
  return value.as<int64_t>() ? number == 0 || number == 1 : take(value.as<bool>(), out);
}
bool from_attr(const AttrValue& value, int64_t& out) {
  return take(value.as<int64_t>(), out) || take(value.as<bool>(), out) || take_constant<IntImm>(value, out);
}
bool from_attr(const AttrValue& value, double& out) {
  return take(value.as<double>(), out) || take(value.as<int64_t>(), out) || take_constant<FloatImm>(value, out);
}
bool from_attr(const AttrValue& value, std::string& out) { return take(value.as<std::string>(), out); }
bool from_attr(const AttrValue& value, DType& out) {
  const std::string* text = value.as<std::string>();
  if (!text) return take(value.as<DType>(), out);
  std::optional<DType> parsed = parse_dtype(*text);
  return take(parsed ? &*parsed : nullptr, out) && !parsed->is_void();
}

bool from_attr(const AttrValue& value, std::optional<DType>& out) {
  const std::string* text = value.as<std::string>();
  out.reset();
  return value.is_none() || (text && (text->empty() || *text == "void")) || from_attr(value, out.emplace());
}

void throw_bad_attr(const Span& span, const char* name, AttrKind kind, const AttrValue& value) {
  constexpr std::string_view kKinds[] = {
      "a value of another kind", "a bool",         "an int",          "a float", "a string",
      "a tensor's dtype",        "a list of ints", "a list of floats"};
  const std::string* text = value.as<std::string>();
  if (value.is_none() || (text && *text == "void")) fail(span, "argument '{}' is missing", name);
  fail(span, "argument '{}': expected {}, got {}", name, kKinds[static_cast<size_t>(kind)], to_string(value));
}

}  // namespace relaxc
