// Vectors for serial loops of schedules from outside, whose authors leave them to a compiler's vectorizer. Other than
// LLVM's, which runs on innermost loops only, this one takes a loop over results around the loops of a reduction, so
// that each lane sums in the order of the program.
#include <algorithm>

#include "ir/attr_names.h"
#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "support/temporarily.h"
#include "tir/analysis/conditions.h"
#include "tir/lower/loop_accesses.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/target.h"

namespace relaxc {

namespace {

// Loads of lanes that are further apart are as many loads as there are lanes.
constexpr int64_t kFarthestLanes = 4;
class VectorFinder final : public Rewriter {
 public:
  VectorFinder(Analyzer facts, const Target& target) : facts_(std::move(facts)), target_(target) {}

  Stmt stmt(const Stmt& s) override {
    const For* outer = s.as<For>();
    if (!outer) return Rewriter::stmt(s);
    Temporarily facts(facts_, facts_);
    facts_.bind(outer->var, outer->min, outer->extent);
    Stmt rewritten = Rewriter::stmt(s);
    const For& loop = *rewritten.as<For>();
    if (loop.kind != ForKind::kSerial) return rewritten;
    int64_t lanes = lanes_of(loop);
    return lanes == 0 ? rewritten : in_vectors(rewritten, lanes, ForKind::kSerial, facts_);
  }

 private:
  // Returns the lanes of a vector of the loop's iterations, or 0 if they depend on each other, or their data are apart.
  int64_t lanes_of(const For& loop) const {
    std::optional<int64_t> extent = as_int(loop.extent);
    if (has_vectors(loop.body) || extent.value_or(2) < 2) return 0;
    LoopAccesses all = accesses_of(loop);
    if (!all.is_plain) return 0;
    bool stores = false;
    for (const BufferAccesses& one : all.buffers) {
      if (buffer_type(one.buffer).dtype.lanes != 1) return 0;
      bool is_stored = std::ranges::any_of(one.each, &Access::is_stored);
      stores = stores || is_stored;
      if (is_stored ? !are_independent(one, loop, all) : !are_near(one, loop.var)) return 0;
    }
    int bits = widest_bits(loop.body), lanes = target_.vector_lanes(bits);
    return stores && lanes > 1 && has_vector_form(loop, bits) && extent.value_or(lanes) * kLeastShareOfVector >= lanes
               ? lanes
               : 0;
  }

  // Returns whether no iteration uses an element that another one stores, and neighbours have neighbouring elements.
  bool are_independent(const BufferAccesses& stored, const For& loop, const LoopAccesses& all) const {
    bool is_one = stored.each.size() == 1 && !stored.is_masked && !all.defined.contains(stored.buffer.get());
    const Access& access = stored.each[0];
    if (!is_one || holds<BufferLoad>(access.index)) return false;
    NodeSet others = all.defined;
    std::vector<Ref<For>> loops = access.loops;
    std::erase_if(loops, [&](const Ref<For>& inner) { return !uses_var(access.index, inner->var); });
    for (const Ref<For>& inner : loops) {
      if (!as_int(inner->min)) return false;
      others.erase(inner->var.get());
    }
    others.erase(loop.var.get());
    auto digits = digits_of(access.index, loops, facts_);
    auto stride = coefficient(access.index, loop.var, facts_);
    if (!digits || stride.value_or(0) != 1 || uses_var(access.index, others)) return false;
    if (loops.empty()) return true;
    std::optional<int64_t> extent = as_int(loop.extent);
    if (!extent) return false;
    digits->push_back({*stride, *extent});
    return are_distinct(*digits);
  }

  bool are_near(const BufferAccesses& loaded, const VarRef& var) const {
    return std::ranges::all_of(loaded.each, [&](const Access& access) {
      auto stride = coefficient(access.index, var, facts_);
      return stride && std::abs(*stride) <= kFarthestLanes && !holds<BufferLoad>(access.index);
    });
  }

  // Returns whether the body has no instruction on vectors, and no branch on the lane where there are no masked loads.
  bool has_vector_form(const For& loop, int bits) const {
    constexpr int kMasksOfAllTypes = 512, kMasksOfWords = 256;
    bool has_masks = target_.vector_bits >= (bits < 32 ? kMasksOfAllTypes : kMasksOfWords);
    return !any_node(loop.body, [&](const NodeRef& node) {
      if (!is_expr_kind(node.kind()) && !node.is<IfThenElse>()) return false;
      if (node.is<Call>() && find_builtin(op_name(cast_handle<Expr>(node)))) return true;
      const IfThenElse* branch = node.as<IfThenElse>();
      const Call* call = node.as<Call>();
      bool is_call = call && op_name(cast_handle<Expr>(node)) == ops::kIfThenElse;
      return !has_masks &&
             ((branch && uses_var(branch->condition, loop.var)) || (is_call && uses_var(call->args[0], loop.var)));
    });
  }

  Analyzer facts_;
  const Target& target_;
};

}  // namespace

// Vectorizes the innermost serial loops whose iterations are independent and store neighbouring elements.
PrimFuncRef find_vectors(const PrimFuncRef& function, const Target& target) {
  if (!function->attrs.get_bool(attr_names::kNoAlias, true)) return function;
  return with_body(function, VectorFinder(facts_of_params(function), target).stmt(function->body));
}

}  // namespace relaxc
