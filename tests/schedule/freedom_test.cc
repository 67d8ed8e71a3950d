// What a drawing says that a loop allows is what the primitives do.
#include "tir/schedule/freedom.h"

#include <array>
#include <random>

#include "ir/text/parser.h"
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

// A program of one or two blocks in two loops, which read and store elements of one buffer. Its text may go through the
// loops in another order or direction.
struct InPlace {
  std::vector<std::string> statements;

  explicit InPlace(uint32_t seed) {
    std::mt19937 random(seed);
    auto number = [&](int64_t least, int64_t most) {
      return std::uniform_int_distribution<int64_t>(least, most)(random);
    };
    const bool is_separate = number(0, 2) > 0;  // each dim moves with one axis
    auto place = [&] {
      constexpr std::array<int64_t, 5> kSteps = {0, 1, 1, 2, -1};
      auto step = [&] { return kSteps[static_cast<size_t>(number(0, 4))]; };
      const std::string row = is_separate ? fmt::format("vi + {}", number(6, 7))
                                          : fmt::format("vi * {} + vj * {} + {}", step(), step(), number(6, 8));
      return fmt::format("A[{}, vj * {} + {}]", row, is_separate ? 1 : step(), number(6, 7));
    };
    for (int64_t i = number(1, 2); i > 0; --i)
      statements.push_back(fmt::format("{} = {} * 3 + {} * 5 + vi * 7 + vj", place(), place(), place()));
  }

  PrimFuncRef program(const char* loops, const char* i, const char* j) const {
    std::string text =
        fmt::format("@T.prim_func\ndef main(A: T.Buffer((24, 24), \"int32\")):\n    for {} in T.grid(4, 4):\n", loops);
    for (size_t b = 0; b < statements.size(); ++b)
      text += fmt::format(
          "        with T.block(\"b{}\"):\n            vi, vj = T.axis.remap(\"SS\", [{}, {}])\n            {}\n", b,
          "i", "j", statements[b]);
    std::string body = text;
    if (*i != 'i' || *j != 'j') {
      const std::string bindings =
          fmt::format("vi = T.axis.spatial(4, {})\n            vj = T.axis.spatial(4, {})", i, j);
      const std::string plain = "vi, vj = T.axis.remap(\"SS\", [i, j])";
      for (size_t at = body.find(plain); at != std::string::npos; at = body.find(plain))
        body.replace(at, plain.size(), bindings);
    }
    Diagnostics diagnostics;
    IRModule module = parse_module(body, "in_place.py", op_table(), diagnostics);
    diagnostics.throw_if_errors();
    return module.prim_func("main");
  }
};

}  // namespace

TEST_CASE("loops whose iterations are independent, or that change places, give the same results in another order") {
  int independent = 0, dependent = 0, exchanged = 0, not_exchanged = 0;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    const InPlace source(seed);
    const PrimFuncRef program = source.program("i, j", "i", "j");
    INFO(print_function("main", program));
    auto is_same = [&](const PrimFuncRef& other) { return compare_programs(program, other, {{}}, seed, {}).empty(); };
    scheduling::Workspace workspace(IRModule{{{"main", program}}, {}, {}});
    for (const LoopFreedom& freedom : find_freedoms(workspace)) {
      const bool is_outer = freedom.loop->name() == "i";
      INFO("loop " << freedom.loop->name());
      ++(freedom.dependence ? dependent : independent);
      if (!freedom.dependence)
        CHECK(is_same(is_outer ? source.program("i, j", "3 - i", "j") : source.program("i, j", "i", "3 - j")));
      if (is_outer) ++(freedom.exchanged.empty() ? not_exchanged : exchanged);
      if (is_outer && !freedom.exchanged.empty()) CHECK(is_same(source.program("j, i", "i", "j")));
    }
  }
  CHECK(independent > 100);
  CHECK(dependent > 100);
  CHECK(exchanged > 100);
  CHECK(not_exchanged > 100);
}

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
