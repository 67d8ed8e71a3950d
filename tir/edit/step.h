// What a primitive's body works with: it resolves random variables, refuses with the place marked, and hands out
// results. Internal to tir/schedule/.
//
//   LoopRV Schedule::fuse(Variadic loops, bool preserve_unit_iters) {
//     Step step(*this, PrimitiveId::kFuse, loops, preserve_unit_iters);
//     std::vector<TreeNode*> nest = step.loops(loops);
//     if (...) step.refuse(nest, "...");
//     ...
//     return step.loop_result(fused);
//   }
#pragma once
#include "tir/edit/blocks.h"
#include "tir/schedule/schedule.h"

namespace relaxc::scheduling {

enum class PrimitiveId : uint8_t {
#define RELAXC_PRIMITIVE(name, result, params, doc) k_##name,
  RELAXC_SCHEDULE_PRIMITIVES(RELAXC_PRIMITIVE)
#undef RELAXC_PRIMITIVE
};

// ---- Arguments as attribute values
inline AttrValue encode(const BlockRV& block) { return Expr(block.var); }
inline AttrValue encode(const LoopRV& loop) { return Expr(loop.var); }
inline AttrValue encode(const Expr& number) { return number; }
inline AttrValue encode(const Factor& factor) { return factor.value ? AttrValue(*factor.value) : AttrValue(); }
inline AttrValue encode(const BufferArg& buffer) { return buffer.value; }
inline AttrValue encode(const IndexMap& map) { return Expr(map.map); }
inline AttrValue encode(const AttrValue& value) { return value; }
inline AttrValue encode(const std::string& text) { return text; }
inline AttrValue encode(bool flag) { return flag; }
inline AttrValue encode(int64_t number) { return number; }
inline AttrValue encode(double number) { return number; }
inline AttrValue encode(DType dtype) { return dtype; }
template <class... Ts>
AttrValue encode(const std::variant<Ts...>& any);
template <class T>
AttrValue encode(const std::optional<T>& value) {
  return value ? encode(*value) : AttrValue();
}
template <class T>
AttrValue encode(const std::vector<T>& items) {
  AttrList list;
  for (const T& item : items) list.push_back(encode(item));
  return list;
}
inline AttrValue encode(const Variadic& loops) { return encode(static_cast<const Loops&>(loops)); }
template <class... Ts>
AttrValue encode(const std::variant<Ts...>& any) {
  return std::visit([](const auto& value) { return encode(value); }, any);
}

// Factors, paddings and the like are no larger, nor are products of factors.
constexpr int64_t kLargestNumber = (int64_t{1} << 31) - 1;

class Step {
 public:
  template <class... Args>
  Step(Schedule& schedule, PrimitiveId id, const Args&... args)
      : Step(schedule, primitives()[static_cast<size_t>(id)]) {
    if (outer_) return;
    arguments_ = {encode(args)...};
    check();
  }
  ~Step() { schedule_.step_ = outer_; }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // What the variables stand for; refuses what is gone or of another kind.
  TreeNode* node(const VarRef& var);
  TreeNode* block(const BlockRV& block);
  TreeNode* loop(const LoopRV& loop);
  TreeNode* place(const Place& place);
  std::vector<TreeNode*> loops(const Loops& loops);
  std::vector<TreeNode*> blocks(const Blocks& blocks);
  // An expression over sampled numbers.
  Expr number(const Expr& e) const;
  int64_t constant(const Expr& e);
  // The buffer meant among the block's accesses; `otherwise` says what a bare position counts.
  Buffer buffer(TreeNode* block, const BufferArg& which, AccessKind otherwise);
  Tree& tree_of_function(const std::string& name) { return schedule_.tree(name); }
  const TensorIntrins& intrins() const { return schedule_.intrins(); }
  std::mt19937_64& random() { return schedule_.random_; }
  // Of a sampling step: what was decided, or none.
  const AttrValue& decision() const { return schedule_.decision_; }

  // Throws: "split: <condition>", and the program with the places marked.
  [[noreturn]] void refuse(const std::vector<TreeNode*>& at, const std::string& condition);
  void require(const Refusal& refusal, TreeNode* at) { require(refusal, std::vector{at}); }
  void require(const Refusal& refusal, const std::vector<TreeNode*>& at) {
    if (refusal) refuse(at, *refusal);
  }

  // Each ends the step: results get variables and the step is recorded.
  void done() { record({}); }
  BlockRV block_result(TreeNode* block) { return {results({block})[0]}; }
  LoopRV loop_result(TreeNode* loop) { return {results({loop})[0]}; }
  Loops loop_results(const std::vector<TreeNode*>& loops);
  Blocks block_results(const std::vector<TreeNode*>& blocks);
  // A sampled decision and the numbers it gives.
  Exprs number_results(const std::vector<int64_t>& numbers, AttrValue decision);
  LoopRV sampled_loop(TreeNode* loop, AttrValue decision);

 private:
  Step(Schedule& schedule, const Primitive& primitive);
  void check();
  // Refuses numbers with which extents would overflow, and maps that divide by what is not positive.
  void check_arguments(const AttrList& arguments);
  std::vector<VarRef> results(const std::vector<TreeNode*>& nodes);
  VarRef new_result(const char* letter, const Type& type);
  void record(std::vector<VarRef> results);

  Schedule& schedule_;
  const Primitive& primitive_;
  Step* outer_;           // the step that this one is a part of: parts are not recorded
  Tree* tree_ = nullptr;  // that the step is about, once a node is known
  AttrList arguments_;
  AttrValue decision_;
};

}  // namespace relaxc::scheduling
