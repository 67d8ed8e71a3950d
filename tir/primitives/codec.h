// Each kind of argument as an attribute value, which traces keep, and back. Internal to table.cc.
#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc::scheduling {

inline constexpr std::string_view kStorageScopes[] = {"global",  "shared", "local",   "warp", "wmma",
                                                      "m16n8k8", "metal",  "texture", "amx"};

// The kind of each type that an argument may have.
template <class T>
using Tag = std::type_identity<T>;
constexpr ArgumentKind kind_of(Tag<BlockRV>) {
  return {.name = "a block", .is_input = true, .takes_block_names = true};
}
constexpr ArgumentKind kind_of(Tag<LoopRV>) { return {.name = "a loop", .is_input = true}; }
constexpr ArgumentKind kind_of(Tag<Place>) {
  return {.name = "a block or a loop", .is_input = true, .takes_block_names = true};
}
constexpr ArgumentKind kind_of(Tag<Blocks>) {
  return {.name = "a list of blocks", .is_input = true, .is_list = true, .takes_block_names = true};
}
constexpr ArgumentKind kind_of(Tag<Variadic>) {
  return {.name = "loops", .is_input = true, .is_list = true, .is_variadic = true};
}
constexpr ArgumentKind kind_of(Tag<Subtree>) {
  return {.name = "a block, a loop or a list of blocks", .is_input = true, .takes_block_names = true};
}
constexpr ArgumentKind kind_of(Tag<Factors>) {
  return {.name = "a list of numbers or None", .is_input = true, .is_list = true};
}
constexpr ArgumentKind kind_of(Tag<int64_t>) { return {.name = "a whole number"}; }
constexpr ArgumentKind kind_of(Tag<double>) { return {.name = "a number"}; }
constexpr ArgumentKind kind_of(Tag<Ints>) { return {.name = "a list of whole numbers"}; }
constexpr ArgumentKind kind_of(Tag<Doubles>) { return {.name = "a list of numbers"}; }
constexpr ArgumentKind kind_of(Tag<bool>) { return {.name = "True or False"}; }
constexpr ArgumentKind kind_of(Tag<std::string>) { return {.name = "a string"}; }
constexpr ArgumentKind kind_of(Tag<std::optional<std::string>>) { return {.name = "a string or None"}; }
constexpr ArgumentKind kind_of(Tag<StorageScope>) {
  return {.name = "storage scope", .words = kStorageScopes, .goes_on_after_dot = true};
}
constexpr ArgumentKind kind_of(Tag<ThreadAxis>) { return {.name = "thread axis", .words = kThreadAxes}; }
constexpr ArgumentKind kind_of(Tag<DType>) { return {.name = "a dtype"}; }
constexpr ArgumentKind kind_of(Tag<BufferArg>) {
  return {.name = "a position, a name, or (\"read\" or \"write\", position)"};
}
constexpr ArgumentKind kind_of(Tag<IndexMap>) { return {.name = "a lambda from old positions to new ones"}; }
constexpr ArgumentKind kind_of(Tag<Note>) { return {.name = "a value", .is_input = true, .is_any_value = true}; }
constexpr ArgumentKind kind_of(Tag<AttrValue>) {
  return {.name = "a number or a lambda from positions to one", .is_any_value = true};
}

// Thrown by decode: the value is not of the kind.
struct WrongKind {
  std::string_view expected;
};

// Types that attributes of operators have, too. Text writes numbers as literals, C++ may write them as expressions.
template <class T>
struct Codec {
  static AttrValue encode(const T& plain) {
    if constexpr (std::is_same_v<T, DType>) return to_string(plain);
    return to_attr(plain);
  }
  static T decode(const AttrValue& value) {
    const Expr* e = value.as<Expr>();
    std::optional<int64_t> literal = e ? as_int(*e) : std::nullopt;
    T result{};
    if (from_attr(literal ? AttrValue(*literal) : value, result)) return result;
    throw WrongKind{kind_of(Tag<T>()).name};
  }
};

template <class T, class... Types>
concept OneOf = (std::is_same_v<T, Types> || ...);

// Returns the value as a variable.
inline VarRef variable_in(const AttrValue& value, std::string_view expected) {
  const Expr* e = value.as<Expr>();
  if (!e || !e->is<Var>()) throw WrongKind{expected};
  return cast<Var>(*e);
}
template <OneOf<BlockRV, LoopRV> RV>
struct Codec<RV> {
  static AttrValue encode(const RV& rv) { return Expr(rv.var); }
  static RV decode(const AttrValue& value) { return {variable_in(value, kind_of(Tag<RV>()).name)}; }
};
template <class T, class List = std::vector<T>>
struct ListCodec {
  static AttrValue encode(const std::vector<T>& items) { return map_each(items, Codec<T>::encode); }
  static List decode(const AttrValue& value) {
    std::vector<T> result;
    if (value.is_none()) return result;
    const AttrList* list = value.as<AttrList>();
    if (!list) throw WrongKind{"a list"};
    for (const AttrValue& item : *list) result.push_back(Codec<T>::decode(item));
    return result;
  }
};
template <class T>
struct Codec<std::vector<T>> : ListCodec<T> {};
template <>
struct Codec<Variadic> : ListCodec<LoopRV, Variadic> {};
template <OneOf<Place, Subtree> Either>
struct Codec<Either> {
  static AttrValue encode(const Either& either) {
    return std::visit([]<class T>(const T& one) { return Codec<T>::encode(one); }, either);
  }
  // Step::place() and Step::node() look at the node: a block or a loop.
  static Either decode(const AttrValue& value) {
    if constexpr (std::is_same_v<Either, Subtree>) {
      if (value.as<AttrList>()) return Codec<Blocks>::decode(value);
    }
    return BlockRV{variable_in(value, kind_of(Tag<Either>()).name)};
  }
};
template <>
struct Codec<Factor> {
  static AttrValue encode(const Factor& factor) { return factor.value ? AttrValue(*factor.value) : AttrValue(); }
  static Factor decode(const AttrValue& value) {
    if (value.is_none()) return std::nullopt;
    if (const int64_t* number = value.as<int64_t>()) return *number;
    const Expr* e = value.as<Expr>();
    if (!e || !e->type().is<PrimType>()) throw WrongKind{"a number"};
    return *e;
  }
};
template <>
struct Codec<IndexMap> {
  static AttrValue encode(const IndexMap& map) { return Expr(map.map); }
  static IndexMap decode(const AttrValue& value) {
    const Expr* e = value.as<Expr>();
    if (!e || !e->is<Lambda>()) throw WrongKind{kind_of(Tag<IndexMap>()).name};
    return IndexMap(cast<Lambda>(*e));
  }
};
// The step looks at the value (Step::buffer() for one).
template <OneOf<BufferArg, Note, AttrValue> T>
struct Codec<T> {
  static AttrValue encode(const T& any) {
    if constexpr (std::is_same_v<T, AttrValue>)
      return any;
    else
      return any.value;
  }
  static T decode(const AttrValue& value) { return value; }
};

}  // namespace relaxc::scheduling
