// A primitive of TensorIR schedules is a struct: its members are the arguments (with their defaults), fields() names
// and documents them, apply() does the work. Names and arguments are TVM's. Everything else derives from that: the text
// form with keyword arguments, JSON, replay, the record that a schedule keeps, `relaxc opt --list-primitives`.
//
//   // Changes the places of loops.
//   struct Reorder {
//     Variadic loops;
//     static constexpr PrimitiveInfo kInfo{"reorder", "puts loops of one chain into this order"};
//     static constexpr auto fields() { return list(required<&Reorder::loops>("...")); }
//     void apply(scheduling::Step& step) const;
//   };
//
// A primitive may also have `Self recorded(const Workspace&) const`, which fills in for the trace what the surroundings
// say, and `size_t map_rank(Step&) const`, the number of positions that its index map takes.
#pragma once
#include <memory>
#include <span>
#include "tir/edit/step.h"

namespace relaxc {

// The name of a primitive, as text and JSON have it, and a line on what it does.
struct PrimitiveInfo {
  std::string_view name, doc;
};
// An entry of fields(). The argument's kind follows from the member's type (codec.h), a default from its initializer.
template <class C, class M>
struct Argument {
  using Class = C;
  using Member = M;
  std::string_view name;
  M C::* member;
  const char* doc;
  bool is_required;
};
template <auto kMember>
constexpr auto required(const char* doc) {
  return Argument{member_name<kMember>(), kMember, doc, true};
}
template <auto kMember>
constexpr auto defaulted(const char* doc) {
  return Argument{member_name<kMember>(), kMember, doc, false};
}

}  // namespace relaxc

namespace relaxc::scheduling {

// How text and JSON treat arguments of a kind.
struct ArgumentKind {
  std::string_view name;                         // "a loop"
  bool is_input = false;                         // JSON lists it among the inputs: it may hold random variables
  bool is_list = false;                          // whose items JSON spreads among the inputs
  bool is_variadic = false;                      // text passes the items one by one
  bool takes_block_names = false;                // text may name blocks instead of variables
  bool is_any_value = false;                     // any number will do
  std::span<const std::string_view> words = {};  // if not empty: the strings that it may be,
  bool goes_on_after_dot = false;                // of each also "word.anything"
};
struct Param {
  std::string_view name, doc;
  ArgumentKind kind;
  std::optional<AttrValue> otherwise;  // the default
};

enum class ResultKind : uint8_t { kNone, kBlock, kLoop, kNumber, kBlocks, kLoops, kNumbers };
std::string_view to_string(ResultKind kind);

// A row of the table, derived from the struct.
struct Primitive : PrimitiveInfo {
  ResultKind result;
  std::vector<Param> params;
  // The struct from one value for each param; throws a CompileError that names the argument of the wrong kind.
  std::shared_ptr<const void> (*decode)(const AttrList& values);
  AttrList (*encode)(const void* step, const Workspace& workspace);
  std::vector<VarRef> (*apply)(const void* step, Step& context);
  size_t (*map_rank)(const void* step, Step& context);  // null: it takes no map

  bool gives_list() const { return result >= ResultKind::kBlocks; }
  bool gives_numbers() const { return result == ResultKind::kNumber || result == ResultKind::kNumbers; }
  // Chooses by chance, or by the decision that a trace holds.
  bool samples() const { return name.starts_with("sample_"); }
  bool changes_nothing() const { return samples() || name.starts_with("get_"); }
};

std::span<const Primitive> primitives();
// Returns the row of that name (also in a later or earlier spelling of TVM: get_sblock, get_axes), or null.
const Primitive* find_primitive(std::string_view name);
// Returns the message for a name that no primitive has.
std::string unknown_primitive(std::string_view name);
// The row of a struct.
template <class P>
const Primitive& primitive() {
  static const Primitive* const kRow = find_primitive(P::kInfo.name);
  RELAXC_CHECK(kRow, "expected a row for '{}' in tir/primitives/table.h", P::kInfo.name);
  return *kRow;
}
// Throws for a word that its kind does not know, refuses numbers with which extents would overflow, and maps that
// divide by a number that is not positive.
void check_arguments(const Primitive& primitive, const AttrList& arguments, Step& step);
// Returns all primitives with arguments, results and docs, as --list-primitives shows them.
std::string describe_primitives();

}  // namespace relaxc::scheduling
