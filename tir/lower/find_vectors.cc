// Vectors for serial loops of schedules from outside, whose authors leave them to a compiler's vectorizer. Other than
// LLVM's, which runs on innermost loops only, this one takes a loop over results around the loops of a reduction, so
// that each lane sums in the order of the program.
#include <algorithm>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "support/temporarily.h"
#include "tir/analysis/combiner.h"
#include "tir/analysis/conditions.h"
#include "tir/lower/loop_accesses.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/target.h"

namespace relaxc {

namespace {

// Loads of lanes that are further apart are as many loads as there are lanes.
constexpr int64_t kFarthestLanes = 4;
// The vectors of partial results of a reduction: as many as combine in the latency of one.
constexpr int64_t kPartialVectors = 4;

// A loop that combines values into one element by an operator that gives the same bits in any order: floats' max and
// min (of zeros of both signs either is right), and integers' sum, max and min.
struct Reduction {
  Ref<BufferStore> store;
  BinaryOp op;
  Expr value;
};

std::optional<Reduction> reduction_of(const For& loop) {
  std::optional<Ref<BufferStore>> store = try_cast<BufferStore>(loop.body);
  if (!store || (*store)->predicate || (*store)->indices.size() != 1) return std::nullopt;
  const Binary* node = (*store)->value.as<Binary>();
  if (!node) return std::nullopt;
  DType dtype = dtype_of((*store)->value);
  bool is_sum = node->op == BinaryOp::kAdd && dtype.is_integral();
  bool is_free = is_sum || node->op == BinaryOp::kMax || node->op == BinaryOp::kMin;
  bool is_first = is_element(node->a, **store);
  if (!is_free || (!is_first && !is_element(node->b, **store))) return std::nullopt;
  Reduction result{*store, node->op, is_first ? node->b : node->a};
  const Expr& index = (*store)->indices[0];
  bool is_apart = !uses_var(result.value, (*store)->buffer) && !uses_var(index, loop.var) && !holds<BufferLoad>(index);
  return is_apart ? std::optional(result) : std::nullopt;
}

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
    if (auto reduction = reduction_of(loop)) return in_partial_results(rewritten, *reduction);
    int64_t lanes = lanes_of(loop);
    return lanes == 0 ? in_blocks(rewritten) : in_vectors(rewritten, lanes, ForKind::kSerial, facts_);
  }

 private:
  // Returns a loop over i that has the digits i // n and i % n as one over blocks of n iterations, if these are
  // vectors then: a copy to another layout stores neighbouring elements only within a block.
  Stmt in_blocks(const Stmt& s) {
    const For& loop = *s.as<For>();
    std::optional<int64_t> extent = as_int(loop.extent), block;
    walk(loop.body, [&](const Ref<Binary>& node) {
      bool is_digit = node->op == BinaryOp::kFloorDiv || node->op == BinaryOp::kFloorMod;
      if (is_digit && same_node(node->a, loop.var))
        block = std::min(block.value_or(INT64_MAX), as_int(node->b).value_or(1));
    });
    if (!extent || !is_int(loop.min, 0) || block.value_or(1) < 2 || *extent <= *block || *extent % *block != 0)
      return s;
    DType counts = dtype_of(loop.var);
    VarRef outer = make_var(loop.var->name + "_block", loop.var.type(), loop.var.span());
    VarRef inner = make_var(loop.var->name, loop.var.type(), loop.var.span());
    Expr zero = int_imm(0, counts), size = int_imm(*block, counts), blocks = int_imm(*extent / *block, counts);
    facts_.bind(outer, zero, blocks);
    facts_.bind(inner, zero, size);
    Stmt body = simplify(substitute(loop.body, {{loop.var.get(), outer * size + inner}}), facts_);
    Stmt each = make(For{inner, zero, size, ForKind::kSerial, "", {}, body}, s.span());
    int64_t lanes = lanes_of(*each.as<For>());
    if (lanes == 0) return s;
    Stmt vectors = in_vectors(each, lanes, ForKind::kSerial, facts_);
    return make(For{outer, zero, blocks, ForKind::kSerial, "", loop.annotations, vectors}, s.span());
  }

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

  // Combines the values in vectors of partial results first, and then those.
  Stmt in_partial_results(const Stmt& s, const Reduction& reduction) const {
    const For& loop = *s.as<For>();
    LoopAccesses all = accesses_of(loop);
    int bits = widest_bits(loop.body);
    int64_t one = target_.vector_lanes(bits), lanes = one * kPartialVectors;
    bool fits = all.is_plain && one > 1 && has_vector_form(loop, bits) && !has_vectors(loop.body) &&
                as_int(loop.extent).value_or(2 * lanes) >= 2 * lanes;
    bool moves = false;
    for (const BufferAccesses& buffer : all.buffers) {
      bool is_result = same_node(buffer.buffer, reduction.store->buffer);
      fits = fits && buffer_type(buffer.buffer).dtype.lanes == 1 && (is_result || are_near(buffer, loop.var));
      moves = moves || std::ranges::any_of(buffer.each, [&](const Access& at) { return uses_var(at.index, loop.var); });
    }
    if (!fits || !moves) return s;
    const BufferStore& store = *reduction.store;
    DType dtype = dtype_of(store.value), counts = dtype_of(loop.var);
    Expr result = load(store.buffer, store.indices);
    Buffer parts = make_buffer(store.buffer->name + "_lanes", buffer_type(store.buffer).dtype, {int_imm(lanes, counts)},
                               "local", s.span());
    auto each_lane = [&](int64_t count, const std::function<Stmt(const Expr&)>& body) {
      VarRef lane = make_var("lane", prim_type(counts));
      For lanewise{lane, int_imm(0, counts), int_imm(count, counts), ForKind::kVectorized, "", {}, body(lane)};
      return simplify(make(std::move(lanewise), s.span()));
    };
    auto combine = [&](const Buffer& into, const Expr& at, const Expr& value) {
      return relaxc::store(into, binary(reduction.op, load(into, {at}), value), {at});
    };
    Expr step = int_imm(lanes, counts), count = iterations_of(loop, facts_),
         whole = facts_.simplify(floor_div(count, step));
    auto value_at = [&](const Expr& at) {
      return substitute(reduction.value, {{loop.var.get(), facts_.simplify(at)}});
    };
    // Combining max and min with the earlier result more than once does not change them.
    Expr start = reduction.op == BinaryOp::kAdd ? scalar_imm(0, dtype) : result;
    VarRef outer = make_var(loop.var->name + "_vector", loop.var.type(), loop.var.span());
    Stmt vectors = each_lane(
        lanes, [&](const Expr& lane) { return combine(parts, lane, value_at(loop.min + outer * step + lane)); });
    VarRef last = make_var(loop.var->name, loop.var.type(), loop.var.span());
    For rest{last,
             int_imm(0, counts),
             facts_.simplify(floor_mod(count, step)),
             ForKind::kSerial,
             "",
             {},
             combine(store.buffer, store.indices[0], value_at(loop.min + whole * step + last))};
    auto set_start = [&](const Expr& lane) { return relaxc::store(parts, start, {lane}); };
    std::vector<Stmt> stmts{
        make(AllocBuffer{parts, {}}), each_lane(lanes, set_start),
        make(For{outer, int_imm(0, counts), whole, ForKind::kSerial, "", loop.annotations, vectors}, s.span()),
        simplify(make(std::move(rest), s.span()), facts_)};
    for (int64_t half = lanes / 2; half > 0; half /= 2)
      stmts.push_back(
          each_lane(half, [&](const Expr& lane) { return combine(parts, lane, load(parts, {lane + half})); }));
    stmts.push_back(combine(store.buffer, store.indices[0], load(parts, {int_imm(0, counts)})));
    return seq(std::move(stmts), s.span());
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
  if (may_alias(function)) return function;
  return with_body(function, VectorFinder(facts_of_params(function), target).stmt(function->body));
}

}  // namespace relaxc
