// Each kind of argument as an attribute value, which traces keep, and back. Internal to table.cc.
#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc::scheduling {

// Thrown by decode: the value is not of the kind.
struct WrongKind {
  std::string_view expected;
};

template <class T>
struct Codec;

// Returns the value as a variable.
inline VarRef variable_in(const AttrValue& value, std::string_view expected) {
  const Expr* e = value.as<Expr>();
  if (!e || !e->is<Var>()) throw WrongKind{expected};
  return cast<Var>(*e);
}
template <class RV>
struct VariableCodec {
  static AttrValue encode(const RV& rv) { return Expr(rv.var); }
  static RV decode(const AttrValue& value) { return {variable_in(value, Codec<RV>::kKind.name)}; }
};
template <>
struct Codec<BlockRV> : VariableCodec<BlockRV> {
  static constexpr ArgumentKind kKind{.name = "a block", .is_input = true, .takes_block_names = true};
};
template <>
struct Codec<LoopRV> : VariableCodec<LoopRV> {
  static constexpr ArgumentKind kKind{.name = "a loop", .is_input = true};
};
template <>
struct Codec<Place> {
  static constexpr ArgumentKind kKind{.name = "a block or a loop", .is_input = true, .takes_block_names = true};
  static AttrValue encode(const Place& place) {
    return std::visit([]<class T>(const T& rv) { return Codec<T>::encode(rv); }, place);
  }
  // Step::place() looks at which of the two it is.
  static Place decode(const AttrValue& value) { return BlockRV{variable_in(value, kKind.name)}; }
};

template <class T, class List = std::vector<T>>
struct ListCodec {
  static AttrValue encode(const std::vector<T>& items) {
    AttrList list;
    for (const T& item : items) list.push_back(Codec<T>::encode(item));
    return list;
  }
  static List decode(const AttrValue& value) {
    std::vector<T> result;
    if (value.is_none()) return result;
    const AttrList* list = value.as<AttrList>();
    if (!list) throw WrongKind{"a list"};
    for (const AttrValue& item : *list) result.push_back(Codec<T>::decode(item));
    return result;
  }
};
template <>
struct Codec<Blocks> : ListCodec<BlockRV> {
  static constexpr ArgumentKind kKind{
      .name = "a list of blocks", .is_input = true, .is_list = true, .takes_block_names = true};
};
template <>
struct Codec<Variadic> : ListCodec<LoopRV, Variadic> {
  static constexpr ArgumentKind kKind{.name = "loops", .is_input = true, .is_list = true, .is_variadic = true};
};
template <>
struct Codec<Subtree> {
  static constexpr ArgumentKind kKind{
      .name = "a block, a loop or a list of blocks", .is_input = true, .takes_block_names = true};
  static AttrValue encode(const Subtree& target) {
    return std::visit([]<class T>(const T& any) { return Codec<T>::encode(any); }, target);
  }
  static Subtree decode(const AttrValue& value) {
    if (value.as<AttrList>()) return Codec<Blocks>::decode(value);
    return Codec<BlockRV>::decode(value);
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
struct Codec<Factors> : ListCodec<Factor> {
  static constexpr ArgumentKind kKind{.name = "a list of numbers or None", .is_input = true, .is_list = true};
};

// Kinds that attributes of operators have, too. Text writes numbers as literals, C++ may write them as expressions.
template <class T>
struct PlainCodec {
  static AttrValue encode(const T& plain) { return to_attr(plain); }
  static T decode(const AttrValue& value) {
    const Expr* e = value.as<Expr>();
    std::optional<int64_t> literal = e ? as_int(*e) : std::nullopt;
    T result{};
    if (from_attr(literal ? AttrValue(*literal) : value, result)) return result;
    throw WrongKind{Codec<T>::kKind.name};
  }
};
template <>
struct Codec<int64_t> : PlainCodec<int64_t> {
  static constexpr ArgumentKind kKind{.name = "a whole number"};
};
template <>
struct Codec<double> : PlainCodec<double> {
  static constexpr ArgumentKind kKind{.name = "a number"};
};
template <>
struct Codec<bool> : PlainCodec<bool> {
  static constexpr ArgumentKind kKind{.name = "True or False"};
};
template <>
struct Codec<std::string> : PlainCodec<std::string> {
  static constexpr ArgumentKind kKind{.name = "a string"};
};
template <>
struct Codec<std::optional<std::string>> : PlainCodec<std::optional<std::string>> {
  static constexpr ArgumentKind kKind{.name = "a string or None"};
};
template <>
struct Codec<DType> : PlainCodec<DType> {
  static constexpr ArgumentKind kKind{.name = "a dtype"};
  static AttrValue encode(DType dtype) { return to_string(dtype); }  // as text writes it
};
template <>
struct Codec<Ints> : ListCodec<int64_t> {
  static constexpr ArgumentKind kKind{.name = "a list of whole numbers"};
};
template <>
struct Codec<Doubles> : ListCodec<double> {
  static constexpr ArgumentKind kKind{.name = "a list of numbers"};
};
// Also "shared.dyn", "wmma.accumulator".
inline constexpr std::string_view kStorageScopes[] = {"global", "shared",  "local", "warp",
                                                      "wmma",   "m16n8k8", "metal", "texture"};
inline constexpr std::string_view kThreadAxes[] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z", "threadIdx.x",
                                                   "threadIdx.y", "threadIdx.z", "vthread",    "vthread.x",
                                                   "vthread.y",   "vthread.z",   "cthread"};
template <>
struct Codec<StorageScope> : Codec<std::string> {
  static constexpr ArgumentKind kKind{.name = "storage scope", .words = kStorageScopes, .goes_on_after_dot = true};
};
template <>
struct Codec<ThreadAxis> : Codec<std::string> {
  static constexpr ArgumentKind kKind{.name = "thread axis", .words = kThreadAxes};
};
template <>
struct Codec<BufferArg> {
  static constexpr ArgumentKind kKind{.name = "a position, a name, or (\"read\" or \"write\", position)"};
  static AttrValue encode(const BufferArg& buffer) { return buffer.value; }
  static BufferArg decode(const AttrValue& value) { return value; }  // Step::buffer() looks at what it is
};
template <>
struct Codec<IndexMap> {
  static constexpr ArgumentKind kKind{.name = "a lambda from old positions to new ones"};
  static AttrValue encode(const IndexMap& map) { return Expr(map.map); }
  static IndexMap decode(const AttrValue& value) {
    const Expr* e = value.as<Expr>();
    if (!e || !e->is<Lambda>()) throw WrongKind{kKind.name};
    return IndexMap(cast<Lambda>(*e));
  }
};
template <>
struct Codec<Note> {
  static constexpr ArgumentKind kKind{.name = "a value", .is_input = true, .is_any_value = true};
  static AttrValue encode(const Note& note) { return note.value; }
  static Note decode(const AttrValue& value) { return value; }
};
template <>
struct Codec<AttrValue> {
  static constexpr ArgumentKind kKind{.name = "a number or a lambda from positions to one", .is_any_value = true};
  static AttrValue encode(const AttrValue& value) { return value; }
  static AttrValue decode(const AttrValue& value) { return value; }
};

}  // namespace relaxc::scheduling
