// <relaxc/schedule.h>: transforms tensor programs step by step. Each step is a struct of tir/primitives/; it checks its
// conditions and either does its work or leaves everything as it was and says why it does not fit.
//
//   Schedule sch(module);
//   BlockRV block = sch.apply(GetBlock{"C"});
//   Loops loops = sch.apply(GetLoops{block});
//   Loops i = sch.apply(Split{loops[0], {std::nullopt, 14}});
//   if (auto outcome = sch.try_apply(Vectorize{i[1]}); !outcome) report(outcome.refusal().message());
//   IRModule scheduled = sch.module();
//
// Steps are recorded in a trace, which prints as the text that users write and can be replayed (trace.h).
#pragma once
#include "tir/intrin/tensor_intrin.h"
#include "tir/primitives/primitive.h"
#include "tir/schedule/trace.h"

namespace relaxc {

struct ScheduleOptions {
  uint64_t seed = 0;                       // of the sampling primitives
  bool show_program = true;                // errors print the program, which takes time
  const TensorIntrins* intrins = nullptr;  // those that tensorize finds; null: the built-in ones
};

class Schedule {
 public:
  explicit Schedule(IRModule module, ScheduleOptions options = {});
  // Schedules one function, under the name main.
  explicit Schedule(const PrimFuncRef& function, ScheduleOptions options = {});

  // Records the step and runs it. Where it does not fit, `apply` throws a CompileError of the kind kDoesNotFit, which
  // shows the program with the place marked; `try_apply` returns the reason, whose text is made only when it is read.
  // Both throw a CompileError for an error in the step itself, such as a variable of another schedule.
  template <class P>
  scheduling::ResultOf<P> apply(const P& step) {
    return results_as<scheduling::ResultOf<P>>(checked(run(scheduling::primitive<P>(), &step, {})));
  }
  template <class P>
  [[nodiscard]] scheduling::Outcome<scheduling::ResultOf<P>> try_apply(const P& step) {
    auto outcome = run(scheduling::primitive<P>(), &step, {});
    if (!outcome) return outcome.refusal();
    if constexpr (std::is_void_v<scheduling::ResultOf<P>>) {
      return std::monostate();
    } else {
      return results_as<scheduling::ResultOf<P>>(*outcome);
    }
  }
  // Applies a primitive to arguments as text would write them, one for each param. Returns the results as random
  // variables. Replay and the text form use this. `decision`: the choice of a sampling step.
  std::vector<VarRef> apply(const scheduling::Primitive& primitive, const AttrList& arguments,
                            const AttrValue& decision);
  // Returns how many positions a map among the arguments, given without params, takes. Names of blocks become blocks.
  size_t map_rank(const scheduling::Primitive& primitive, AttrList& arguments);
  // Runs steps until one does not fit; returns why (kBrief: without the program), or nullopt. Throws other errors.
  enum class Reason : uint8_t { kBrief, kWithProgram };
  [[nodiscard]] std::optional<Diagnostic> try_steps(const std::function<void()>& steps, Reason reason = Reason::kBrief);

  // Sets the function that names refer to from now on.
  void work_on(const std::string& function) { workspace_.work_on(function); }
  // Return the module, or its function, as it is now.
  IRModule module() const { return workspace_.module(); }
  PrimFuncRef function(const std::string& name = "") const;
  const Trace& trace() const { return trace_; }
  // Returns the intrinsics that tensorize finds, and adds some.
  const TensorIntrins& intrins() const { return workspace_.intrins ? *workspace_.intrins : builtin_tensor_intrins(); }
  void add_intrins(const TensorIntrins& more);
  // These return the loop, block or number of a random variable. They throw when the program no longer holds it.
  Stmt get(const BlockRV& block) const { return get_node(block.var); }
  Stmt get(const LoopRV& loop) const { return get_node(loop.var); }
  int64_t get(const Expr& number) const;

  // Returns the editable form of a function (empty: the one worked on).
  scheduling::Tree& tree(const std::string& function) const { return workspace_.tree(function); }
  // Sets the names of the next step's results, as far as given.
  void name_results(std::vector<std::string> names) { workspace_.name_results(std::move(names)); }

 private:
  using Variables = std::vector<VarRef>;
  scheduling::Outcome<Variables> run(const scheduling::Primitive& primitive, const void* step,
                                     const AttrValue& decision);
  // Returns the results; throws a refusal.
  Variables checked(scheduling::Outcome<Variables> outcome) const;
  template <class R>
  static R results_as(const Variables& variables);
  Stmt get_node(const VarRef& var) const;
  // Replace names by the blocks that get_block finds: in an argument, and in all that may have them.
  AttrValue with_blocks_found(const AttrValue& argument);
  AttrList with_blocks_found(const scheduling::Primitive& primitive, AttrList arguments);

  bool show_program_;
  std::shared_ptr<const TensorIntrins> added_intrins_;  // null: those of the options
  scheduling::Workspace workspace_;
  Trace trace_;
};

template <class R>
R Schedule::results_as(const Variables& variables) {
  if constexpr (std::is_same_v<R, BlockRV> || std::is_same_v<R, LoopRV>) {
    return {variables[0]};
  } else if constexpr (std::is_same_v<R, Expr>) {
    return variables[0];
  } else if constexpr (!std::is_void_v<R>) {
    R result;
    for (const VarRef& var : variables) result.push_back(typename R::value_type{var});
    return result;
  }
}

}  // namespace relaxc
