// The context in which a step of a schedule runs: it resolves random variables, refuses with the place marked, and
// hands out results. A step is a struct (tir/primitives/):
//
//   LoopRV Fuse::apply(Step& step) const {
//     Nodes nest = step.loops(loops);
//     if (...) step.refuse(nest, "...");
//     ...
//     return step.loop_result(fused);
//   }
#pragma once
#include "support/diagnostic.h"
#include "tir/edit/arguments.h"
#include "tir/edit/blocks.h"
#include "tir/edit/workspace.h"

namespace relaxc::scheduling {

// Factors, paddings and the like are no larger, nor are products of factors.
constexpr int64_t kLargestNumber = (int64_t{1} << 31) - 1;

// The reason why a step does not fit the program, which is left as it was. It is an expected answer and not an error.
struct DoesNotFit {
  std::string step;       // its name
  std::string condition;  // the condition that does not hold
  Nodes at = {};          // the places that it is about, of a workspace that still exists

  // "split: <condition>".
  std::string message() const { return step + ": " + condition; }
  // Returns the refusal as an error. With with_program a note shows the program in its present state with the places
  // marked. Printing costs far more than the check, so it is done only where somebody reads it.
  Diagnostic diagnostic(bool with_program) const;
};

// The result of a step, or the reason why it does not fit (C++23's expected).
template <class R>
class Outcome {
 public:
  using Value = std::conditional_t<std::is_void_v<R>, std::monostate, R>;
  Outcome(Value value) : state_(std::move(value)) {}           // NOLINT
  Outcome(DoesNotFit refusal) : state_(std::move(refusal)) {}  // NOLINT
  explicit operator bool() const { return state_.index() == 0; }
  const Value& operator*() const { return std::get<0>(state_); }
  const Value* operator->() const { return &std::get<0>(state_); }
  const DoesNotFit& refusal() const { return std::get<1>(state_); }

 private:
  std::variant<Value, DoesNotFit> state_;
};

class Step;
// The result type of a step's apply().
template <class P>
using ResultOf = decltype(std::declval<const P&>().apply(std::declval<Step&>()));

class Step {
 public:
  // `is_part`: the step runs inside of another one. `decision`: the choice of a sampling step; without one it draws.
  Step(Workspace& workspace, std::string_view name, bool is_part = false, AttrValue decision = {})
      : workspace_(workspace), name_(name), is_part_(is_part), decision_(std::move(decision)) {}
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Runs the step to its end or to its refusal. This is the only place that catches a refusal.
  template <class Run>
  auto run(const Run& body) -> Outcome<decltype(body(*this))> {
    try {
      if constexpr (std::is_void_v<decltype(body(*this))>) {
        body(*this);
        return std::monostate();
      } else {
        return body(*this);
      }
    } catch (DoesNotFit& refusal) {
      return std::move(refusal);
    }
  }
  // Runs a step inside of this one, which no trace records. If it refuses, this step refuses, and the edits of earlier
  // parts stay: a step checks all that a later part could refuse before its first part.
  template <class P>
  ResultOf<P> apply(const P& part) {
    Step inner(workspace_, P::kInfo.name, true);
    return part.apply(inner);
  }
  template <class P>
  Outcome<ResultOf<P>> try_apply(const P& part) {
    return Step(workspace_, P::kInfo.name, true).run([&](Step& inner) { return part.apply(inner); });
  }

  // Return the nodes that variables stand for; they refuse a node that is gone or of another kind.
  TreeNode* node(const VarRef& var);
  TreeNode* node(const VarRef& var, TreeKind wanted);
  TreeNode* block(const BlockRV& block) { return node(block.var, TreeKind::kBlock); }
  TreeNode* loop(const LoopRV& loop) { return node(loop.var, TreeKind::kLoop); }
  TreeNode* place(const Place& place);
  Nodes loops(const Loops& loops) {
    return map_each(loops, [&](const LoopRV& rv) { return loop(rv); });
  }
  Nodes blocks(const Blocks& blocks) {
    return map_each(blocks, [&](const BlockRV& rv) { return block(rv); });
  }
  // Returns a variable for a node, to hand to a part.
  BlockRV variable_of(TreeNode* block) { return {workspace_.name_node(block, false)}; }
  // Returns an expression over sampled numbers.
  Expr number(const Expr& e) const;
  // Returns the map with the numbers of the schedule's random variables in their place: lambda i: (i // v0, i % v0).
  IndexMap with_numbers(const IndexMap& map) const;
  // Returns the buffer among the block's accesses; `otherwise` says whether a bare position counts reads or writes.
  Buffer buffer(TreeNode* block, const BufferArg& which, AccessKind otherwise);
  // Returns that buffer, which the block must read (or write).
  Buffer accessed(TreeNode* block, const BufferArg& which, AccessKind kind);
  // Returns a buffer that the block writes, and which the program itself allocates; refuses any other.
  Buffer allocated(TreeNode* block, const BufferArg& which);
  // Refuses unless the loop is one of those around the block up to its scope.
  void require_around(TreeNode* loop, TreeNode* block);
  // Returns the block around a block, in which statements can be moved. Refuses the root block.
  TreeNode* scope(TreeNode* block);
  Workspace& workspace() { return workspace_; }
  // Returns the decision that a sampling step has to take, or none.
  const AttrValue& decision() const { return decision_; }
  // Records the decision that the step took.
  void decide(AttrValue decision) { decision_ = std::move(decision); }

  // Ends the step with the message "split: <condition>" (in which nodes and variables stand for their names) and the
  // program with the places marked.
  [[noreturn]] void refuse(const Nodes& at, const std::string& condition);
  template <class... Args>
  [[noreturn]] void refuse(const Nodes& at, MessageFormat<Args...> condition, const Args&... args) {
    refuse(at, message(condition, args...));
  }
  // Refuses a map that does not take as many positions as the block has axes.
  void require_rank(const IndexMap& map, TreeNode* block);
  // Refuses loops whose ranges depend on another of them.
  void require_independent(const Nodes& loops);
  // Refuses when other blocks in the subtree access the buffer.
  void require_alone(TreeNode* below, TreeNode* block, const Buffer& buffer);
  // Gives the loop another kind, and refuses where its iterations cannot run in any order as that kind asks.
  void set_kind(const LoopRV& loop, ForKind kind, std::string thread = {});
  void require(const Refusal& refusal, TreeNode* at) { require(refusal, std::vector{at}); }
  void require(const Refusal& refusal, const Nodes& at) {
    if (refusal) refuse(at, *refusal);
  }
  // Refuses a block for the first of the conditions, such as not_movable, that it fails.
  template <class... Conditions>
  void require_all(TreeNode* block, const Conditions&... conditions) {
    (require(conditions(block), block), ...);
  }

  // Return variables for results.
  BlockRV block_result(TreeNode* block) { return {workspace_.name_node(block, !is_part_)}; }
  LoopRV loop_result(TreeNode* loop) { return {workspace_.name_node(loop, !is_part_)}; }
  Loops loop_results(const Nodes& loops) {
    return map_each(loops, [&](TreeNode* loop) { return loop_result(loop); });
  }
  Blocks block_results(const Nodes& blocks) {
    return map_each(blocks, [&](TreeNode* block) { return block_result(block); });
  }
  Exprs number_results(const Ints& numbers) {
    return map_each(numbers, [&](int64_t number) -> Expr { return workspace_.name_number(number, !is_part_); });
  }

 private:
  Workspace& workspace_;
  std::string_view name_;
  bool is_part_;
  Tree* tree_ = nullptr;  // that the step is about, once a node is known
  AttrValue decision_;
};

}  // namespace relaxc::scheduling
