// What a drawing says that a loop allows is what the primitives do.
#include "tir/schedule/freedom.h"
#include "ir/text/printer.h"
#include "tests/schedule/chains.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_child_blocks.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/parallel.h"
#include "tir/primitives/reorder.h"
#include "tir/primitives/vectorize.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

using scheduling::TreeNode;

// A schedule of the program, begun anew after each step that fits.
class Trial {
 public:
  explicit Trial(const PrimFuncRef& program) : program_(program) { begin(); }

  template <class Primitive>
  bool fits(const Primitive& step) {
    bool result = bool(schedule_->try_apply(step));
    if (result) begin();
    return result;
  }
  LoopRV variable_of(const TreeNode* loop) const {
    for (const auto& [var, rv] : loops_) {
      if (same_node(var, loop->var())) return rv;
    }
    FAIL("no block stands in loop " << loop->name());
    return loops_[0].second;
  }

 private:
  void begin() {
    schedule_.emplace(program_, ScheduleOptions{.show_program = false});
    loops_.clear();
    Blocks blocks{schedule_->apply(GetBlock{"root"})};
    for (size_t i = 0; i < blocks.size(); ++i) {
      for (const BlockRV& child : schedule_->apply(GetChildBlocks{blocks[i]})) blocks.push_back(child);
      if (i == 0) continue;
      for (const LoopRV& loop : schedule_->apply(GetLoops{blocks[i]}))
        loops_.emplace_back(schedule_->get(loop).as<For>()->var, loop);
    }
  }

  PrimFuncRef program_;
  std::optional<Schedule> schedule_;
  std::vector<std::pair<VarRef, LoopRV>> loops_;
};

}  // namespace

TEST_CASE("loops allow what primitives do") {
  std::vector<TestProgram> programs = schedule_programs();
  size_t loops = 0, independent = 0, exchanges = 0;
  for (uint32_t seed = 0; seed < 2 * programs.size(); ++seed) {
    const TestProgram& program = programs[seed % programs.size()];
    Schedule schedule(program.function, {.show_program = false});
    apply_random_chain(schedule, seed < programs.size() ? 0 : 4, seed);
    PrimFuncRef scheduled = schedule.function();
    INFO(program.name << " (seed " << seed << ")\n" << print_function("main", scheduled));
    scheduling::Workspace workspace(IRModule{{{"main", scheduled}}, {}, {}});
    Trial trial(scheduled);
    for (const LoopFreedom& freedom : find_freedoms(workspace)) {
      INFO("loop " << freedom.loop->name());
      bool is_independent = !freedom.dependence;
      CHECK(trial.fits(Vectorize{trial.variable_of(freedom.loop)}) == is_independent);
      CHECK(trial.fits(Parallel{trial.variable_of(freedom.loop)}) == is_independent);
      for (TreeNode* outer : loops_above(freedom.loop)) {
        bool is_exchanged = contains(freedom.exchanged, outer);
        Reorder step{Loops{trial.variable_of(freedom.loop), trial.variable_of(outer)}};
        CHECK(trial.fits(step) == is_exchanged);
        exchanges += is_exchanged;
      }
      ++loops;
      independent += is_independent;
    }
  }
  CHECK(loops > 500);
  CHECK(independent > 300);
  CHECK(independent < loops);
  CHECK(exchanges > 200);
}

}  // namespace relaxc::test
