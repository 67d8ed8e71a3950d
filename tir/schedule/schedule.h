// <relaxc/schedule.h>: transforms tensor programs step by step. Each step is a primitive of primitives.h; it checks
// what it needs and either does its work or leaves everything as it was and throws a CompileError that shows the
// program with the place marked.
//
//   Schedule sch(module);
//   BlockRV block = sch.get_block("C");
//   Loops loops = sch.get_loops(block);
//   Loops i = sch.split(loops[0], {std::nullopt, 14});
//   sch.vectorize(...);
//   IRModule scheduled = sch.module();
//
// Steps are recorded in a trace, which prints as the text that users write and can be replayed (trace.h).
#pragma once
#include <random>

#include "tir/edit/tree.h"
#include "tir/intrin/tensor_intrin.h"
#include "tir/schedule/primitives.h"
#include "tir/schedule/trace.h"

namespace relaxc {

// Random variables: names of blocks, loops and numbers that a trace can be replayed with.
struct BlockRV {
  VarRef var;
};
struct LoopRV {
  VarRef var;
};
using Place = std::variant<BlockRV, LoopRV>;
using Loops = std::vector<LoopRV>;
using Blocks = std::vector<BlockRV>;
using Exprs = std::vector<Expr>;
using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;
// Loops that text passes one by one: sch.reorder(i, j).
struct Variadic : Loops {
  using Loops::Loops;
  Variadic(Loops loops) : Loops(std::move(loops)) {}  // NOLINT: any list of loops will do
};
// A factor of split: a number, a sampled one, or nullopt for what the others leave.
struct Factor {
  Factor(std::nullopt_t) {}                           // NOLINT
  Factor(int64_t number) : value(int_imm(number)) {}  // NOLINT
  Factor(int number) : value(int_imm(number)) {}      // NOLINT
  Factor(Expr number) : value(std::move(number)) {}   // NOLINT
  std::optional<Expr> value;
};
using Factors = std::vector<Factor>;
// A buffer that a block accesses: the position among its reads or writes (which the primitive says), or ("read", 1),
// or the name.
struct BufferArg {
  BufferArg(int position) : value(position) {}         // NOLINT
  BufferArg(AttrValue any) : value(std::move(any)) {}  // NOLINT
  BufferArg(const char* name) : value(name) {}         // NOLINT
  BufferArg(const char* kind, int64_t position) : value(AttrList{kind, position}) {}
  AttrValue value;
};
// Old positions to new ones: lambda i, j: (i // 4, j, i % 4).
struct IndexMap {
  explicit IndexMap(Ref<Lambda> lambda) : map(std::move(lambda)) {}
  IndexMap(size_t rank, const std::function<Exprs(const Exprs&)>& fn);
  Exprs operator()(const Exprs& indices) const;
  size_t rank() const { return map->params.size(); }
  Ref<Lambda> map;
};
// A loop, a block, or blocks side by side.
using Subtree = std::variant<BlockRV, LoopRV, Blocks>;

struct ScheduleOptions {
  uint64_t seed = 0;                       // of the sampling primitives
  bool show_program = true;                // errors print the program; without, they are fast
  const TensorIntrins* intrins = nullptr;  // what tensorize knows; null: the built-in ones
};

class Schedule {
 public:
  explicit Schedule(IRModule module, ScheduleOptions options = {});
  // One function alone, under the name main.
  explicit Schedule(const PrimFuncRef& function, ScheduleOptions options = {});
  Schedule(Schedule&&) noexcept;
  ~Schedule();

#define RELAXC_PRIMITIVE(name, result, params, doc) result name params;
  RELAXC_SCHEDULE_PRIMITIVES(RELAXC_PRIMITIVE)
#undef RELAXC_PRIMITIVE

  // The function that names refer to from now on.
  void work_on(const std::string& function);
  // The module, or its function, as they are now.
  IRModule module() const;
  PrimFuncRef function(const std::string& name = "") const;
  const Trace& trace() const { return trace_; }
  // What tensorize knows, and more of it.
  const TensorIntrins& intrins() const;
  void add_intrins(const TensorIntrins& more);
  // What stands behind a random variable; throws when it is gone.
  Stmt get(const BlockRV& block) const;
  Stmt get(const LoopRV& loop) const;
  int64_t get(const Expr& number) const;

  // A primitive by name; arguments as text would write them, missing ones have their defaults. The results as random
  // variables. Replay and the text form come through here.
  std::vector<VarRef> apply(const scheduling::Primitive& primitive, const AttrList& arguments,
                            const AttrValue& decision);
  // How many positions a map takes among these arguments, of which the first is the block.
  size_t map_rank(const scheduling::Primitive& primitive, AttrList& arguments);
  // The editable form of a function (empty: the one worked on), for primitives.
  scheduling::Tree& tree(const std::string& function) const;
  // The names that results of the next step get, as far as given.
  void name_results(std::vector<std::string> names) { result_names_ = std::move(names); }

 private:
  friend class scheduling::Step;

  // The function meant by a name; empty: the one worked on.
  const std::string& resolve(const std::string& function) const;
  Stmt get_node(const VarRef& var) const;
  // As it was before the schedule; throws when there is none of that name.
  PrimFuncRef program(const std::string& name) const;
  // Where a parameter of that type takes blocks, names become the blocks that get_block finds.
  void find_named_blocks(std::string_view type, AttrValue& argument);

  ScheduleOptions options_;
  std::shared_ptr<const TensorIntrins> own_intrins_;  // null: those of the options
  IRModule module_;
  std::string working_on_;
  mutable std::map<std::string, std::unique_ptr<scheduling::Tree>> trees_;
  std::unordered_map<const NodeHeader*, scheduling::TreeNode*> nodes_;
  std::unordered_map<const NodeHeader*, int64_t> numbers_;
  Trace trace_;
  scheduling::Step* step_ = nullptr;  // the one that runs
  std::vector<std::string> result_names_;
  AttrValue decision_;  // for the sampling step that comes
  int num_results_ = 0;
  std::vector<VarRef> kept_;  // keeps the keys alive
  std::mt19937_64 random_;
};

}  // namespace relaxc
