// Attributes: an immutable-by-convention dictionary sorted by key, on calls, functions, blocks, loops and modules.
// Operators read theirs through a struct with fields(): `auto attrs = read_attrs<Conv2DAttrs>(call->attrs)`.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <variant>

#include "ir/node.h"
#include "support/lists.h"
#include "vm/dtype.h"

namespace relaxc {

class AttrValue;
using AttrList = std::vector<AttrValue>;

class Attrs {
 public:
  // Not inline, here and in AttrValue: nearly every file includes this one.
  Attrs();
  Attrs(const Attrs& other);
  Attrs(Attrs&& other) noexcept;
  Attrs& operator=(const Attrs& other);
  Attrs& operator=(Attrs&& other) noexcept;
  ~Attrs();
  Attrs(std::initializer_list<std::pair<const std::string, AttrValue>> entries);
  const AttrValue* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  Attrs with(std::string key, AttrValue value) const;
  Attrs without(std::string_view key) const;
  void set(std::string key, AttrValue value);
  // Sets the order in which keys print in a call: these first, whose text outlives the dictionary, then others sorted.
  void order(std::vector<const char*> keys) { order_ = std::move(keys); }
  std::vector<std::string_view> ordered_keys() const;
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  friend bool operator==(const Attrs& a, const Attrs& b);

  // Returns the value under the key, or the default when the key is absent or its value is of another kind.
  int64_t get_int(std::string_view key, int64_t otherwise) const;
  std::string get_string(std::string_view key, std::string otherwise) const;
  bool get_bool(std::string_view key, bool otherwise) const;

 private:
  friend class AttrValue;
  std::map<std::string, AttrValue, std::less<>> entries_;
  std::vector<const char*> order_;  // not compared
};

// An attribute is none, a bool, int, float, string, dtype, list, dictionary or expression. The expressions are those of
// tensor programs for which no other kind stands: numbers with an explicit dtype (T.int64(8)), variables, expressions
// that are computed from them, and buffers.
class AttrValue {
 public:
  using Variant = std::variant<std::monostate, bool, int64_t, double, std::string, DType, AttrList, Attrs, Expr>;
  AttrValue();
  AttrValue(const AttrValue& other);
  AttrValue(AttrValue&& other) noexcept;
  AttrValue& operator=(const AttrValue& other);
  AttrValue& operator=(AttrValue&& other) noexcept;
  ~AttrValue();
  AttrValue(bool value);
  AttrValue(int64_t value);
  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, int64_t>)
  AttrValue(T value) : AttrValue(static_cast<int64_t>(value)) {}
  AttrValue(double value);
  AttrValue(const char* value);
  AttrValue(std::string value);
  AttrValue(DType value);
  AttrValue(AttrList value);
  AttrValue(Attrs value);
  AttrValue(Expr value);
  AttrValue(const std::vector<int64_t>& values);

  const Variant& variant() const { return value_; }
  template <class T>
  const T* as() const {
    return std::get_if<T>(&value_);
  }
  bool is_none() const { return value_.index() == 0; }
  // Visits the expressions in it, in order; map_exprs replaces them and says whether any became another node.
  void visit_exprs(const std::function<void(const Expr&)>& fn) const;
  bool map_exprs(const std::function<Expr(const Expr&)>& fn);
  // Numbers compare bit for bit, so that NaN equals itself; expressions by structure.
  friend bool operator==(const AttrValue& a, const AttrValue& b);

 private:
  Variant value_;
};

// Return "3", "[1, 2]", "\"NCHW\"" or "{...}", in Python's spelling, for the text format and messages.
std::string to_string(const AttrValue& value);
std::string to_string(const AttrValue& value, const std::function<std::string(const Expr&)>& print);

// Conversion between attribute values and members of attribute structs; from_attr returns false for the wrong kind.
bool from_attr(const AttrValue& value, bool& out);
bool from_attr(const AttrValue& value, int64_t& out);
bool from_attr(const AttrValue& value, double& out);
bool from_attr(const AttrValue& value, std::string& out);
bool from_attr(const AttrValue& value, DType& out);
// Reads None, and TVM's spelling "void" (or "") of an absent dtype.
bool from_attr(const AttrValue& value, std::optional<DType>& out);
template <class T>
bool from_attr(const AttrValue& value, std::optional<T>& out) {
  out.reset();
  return value.is_none() || from_attr(value, out.emplace());
}
template <class T>
bool from_attr(const AttrValue& value, std::vector<T>& out) {
  out.clear();
  const AttrList* list = value.as<AttrList>();
  // A scalar stands for a list of one, as in Relax's `axis=1`.
  for (const AttrValue& item : list ? std::span(*list) : std::span(&value, 1)) {
    T element{};
    if (!from_attr(item, element)) return false;
    out.push_back(element);
  }
  return true;
}
template <class T>
AttrValue to_attr(const T& value) {
  return AttrValue(value);
}
template <class T>
AttrValue to_attr(const std::optional<T>& value) {
  return value ? to_attr(*value) : AttrValue();
}
template <class T>
AttrValue to_attr(const std::vector<T>& values) {
  return map_each(values, [](const T& value) { return to_attr(value); });
}

// Returns the dictionary with every member of the struct.
template <HasFields T>
Attrs write_attrs(const T& attrs) {
  Attrs result;
  for_each_field<T>([&](const auto& f) { result.set(f.name, to_attr(attrs.*f.member)); });
  return result;
}

// The kind of values that an attribute takes, derived from the member of the attribute struct.
enum class AttrKind : uint8_t { kAny, kBool, kInt, kFloat, kString, kDType, kInts, kFloats };
template <class T>
constexpr AttrKind attr_kind() {
  if constexpr (std::is_same_v<T, bool>) return AttrKind::kBool;
  if constexpr (std::is_same_v<T, int64_t>) return AttrKind::kInt;
  if constexpr (std::is_same_v<T, double>) return AttrKind::kFloat;
  if constexpr (std::is_same_v<T, std::string>) return AttrKind::kString;
  if constexpr (std::is_same_v<T, DType>) return AttrKind::kDType;
  if constexpr (std::is_same_v<T, std::vector<int64_t>>) return AttrKind::kInts;
  if constexpr (std::is_same_v<T, std::vector<double>>) return AttrKind::kFloats;
  if constexpr (requires { typename T::value_type; } && std::is_constructible_v<T, std::nullopt_t>)
    return attr_kind<typename T::value_type>();
  return AttrKind::kAny;
}

// Throws the error that the attribute of this name is missing, or that its value is not of this kind.
[[noreturn]] void throw_bad_attr(const Span& span, const char* name, AttrKind kind, const AttrValue& value);
// Reads the struct's members from the dictionary; absent keys keep the member's default. A value of the wrong kind
// throws a CompileError that names the attribute.
template <HasFields T>
T read_attrs(const Attrs& attrs, const Span& span = {}) {
  T result{};
  for_each_field<T>([&](const auto& f) {
    const AttrValue* value = attrs.find(f.name);
    if (value && !from_attr(*value, result.*f.member))
      throw_bad_attr(span, f.name, attr_kind<std::remove_cvref_t<decltype(result.*f.member)>>(), *value);
  });
  return result;
}

}  // namespace relaxc
