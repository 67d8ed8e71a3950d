// The argument and result types of schedule steps: random variables (TVM's name for the handles that a trace can be
// replayed with), numbers that may be sampled, buffers, and index maps.
#pragma once
#include <functional>
#include <variant>

#include "ir/attrs.h"
#include "ir/expr.h"

namespace relaxc {

// Returns the variable of a BlockRV or LoopRV that was not set.
const VarRef& no_variable();

// Random variables that stand for a block and for a loop.
struct BlockRV {
  VarRef var = no_variable();
};
struct LoopRV {
  VarRef var = no_variable();
};
using Place = std::variant<BlockRV, LoopRV>;
using Loops = std::vector<LoopRV>;
using Blocks = std::vector<BlockRV>;
using Exprs = std::vector<Expr>;
using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;
// A loop, a block, or blocks side by side.
using Subtree = std::variant<BlockRV, LoopRV, Blocks>;
// Loops that text passes one by one: sch.reorder(i, j).
struct Variadic : Loops {
  using Loops::Loops;
  Variadic(Loops loops) : Loops(std::move(loops)) {}  // NOLINT: any list of loops will do
};
// A factor of split: a number, a sampled one, or nullopt for the iterations that the other factors leave.
struct Factor {
  Factor(std::nullopt_t) {}                           // NOLINT
  Factor(int64_t number) : value(int_imm(number)) {}  // NOLINT
  Factor(int number) : value(int_imm(number)) {}      // NOLINT
  Factor(Expr number) : value(std::move(number)) {}   // NOLINT
  std::optional<Expr> value;
};
using Factors = std::vector<Factor>;
// A buffer that a block accesses: its position among the reads or writes (as the step says), ("read", 1), or a name.
struct BufferArg {
  BufferArg() = default;
  BufferArg(int position) : value(position) {}         // NOLINT
  BufferArg(AttrValue any) : value(std::move(any)) {}  // NOLINT
  BufferArg(const char* name) : value(name) {}         // NOLINT
  BufferArg(const char* kind, int64_t position) : value(AttrList{kind, position}) {}
  AttrValue value;
};
// A string of which only some spellings are known.
template <class Kind>
struct KnownWord : std::string {
  using std::string::string;
  KnownWord(std::string name) : std::string(std::move(name)) {}  // NOLINT
};
using StorageScope = KnownWord<struct StorageScopeKind>;  // "global", "shared.dyn"
using ThreadAxis = KnownWord<struct ThreadAxisKind>;      // "threadIdx.x"
// The value of an annotation; it may hold sampled numbers.
struct Note {
  Note() = default;
  template <class T>
    requires std::constructible_from<AttrValue, T>
  Note(T&& any) : value(std::forward<T>(any)) {}  // NOLINT: any value will do
  AttrValue value;
};
// Old positions to new ones: lambda i, j: (i // 4, j, i % 4).
struct IndexMap {
  IndexMap();
  explicit IndexMap(Ref<Lambda> lambda) : map(std::move(lambda)) {}
  IndexMap(size_t rank, const std::function<Exprs(const Exprs&)>& fn);
  Exprs operator()(const Exprs& indices) const;
  size_t rank() const { return map->params.size(); }
  Ref<Lambda> map;
};

}  // namespace relaxc
