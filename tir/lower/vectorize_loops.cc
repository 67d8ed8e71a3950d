#include <algorithm>

#include "ir/arith.h"
#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/undefined.h"
#include "support/temporarily.h"
#include "tir/analysis/conditions.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/scalable_vectors.h"

namespace relaxc {

namespace {

// Thrown inside this file only: the loop body has no vector form.
struct NoVectorForm {};

// Maps memory that is private to a thread and of constant size to that size. Lanes that are masked out may be read
// there and written back unchanged, which leaves whole vectors that can stay in registers.
using PrivateMemory = std::unordered_map<const NodeHeader*, int64_t>;

// Rewrites the body of one vectorized loop; `var` becomes the vector (min, min + 1, ...).
class LaneRewriter {
 public:
  // `lanes` is encoded as in DType::lanes.
  LaneRewriter(const VarRef& var, const Expr& min, const Expr& extent, int lanes, const Analyzer& facts,
               const PrivateMemory& private_memory)
      : var_(var), min_(min), lanes_(lanes), facts_(facts), private_memory_(private_memory) {
    facts_.bind(var, min, extent - 1);
  }

  Stmt stmt(const Stmt& s) {
    if (s.is<Seq>()) return map_stmts(s, [&](const Stmt& inner) { return stmt(inner); });
    if (const BufferStore* node = s.as<BufferStore>()) return store_lanes(s, *node);
    if (const Bind* node = s.as<Bind>()) {
      Expr value = expr(node->value);
      return make(Bind{widened_var(value, node->var, s.span()), value}, s.span());
    }
    if (const For* node = s.as<For>()) {
      For copy = *node;
      copy.min = expr(node->min);
      copy.extent = expr(node->extent);
      if (dtype_of(copy.min).lanes > 1 || dtype_of(copy.extent).lanes > 1) throw NoVectorForm();
      copy.body = stmt(node->body);
      return make(std::move(copy), s.span());
    }
    if (const IfThenElse* node = s.as<IfThenElse>()) {
      Expr condition = expr(node->condition);
      if (dtype_of(condition).lanes == 1) {
        IfThenElse copy{condition, stmt(node->then_body), std::nullopt};
        if (node->else_body) copy.else_body = stmt(*node->else_body);
        return make(std::move(copy), s.span());
      }
      std::vector<Stmt> stmts;
      if (holds<BufferLoad>(condition)) {  // the loaded value may change before the mask is used
        VarRef mask = make_var("mask", condition.type(), s.span());
        stmts.push_back(make(Bind{mask, condition}, s.span()));
        condition = mask;
      }
      stmts.push_back(masked(condition, [&] { return stmt(node->then_body); }));
      if (node->else_body) stmts.push_back(masked(not_(condition), [&] { return stmt(*node->else_body); }));
      return seq(std::move(stmts), s.span());
    }
    if (const Assert* node = s.as<Assert>()) {
      auto shared = [&](const Expr& e) { return !varies(e) && !holds<BufferLoad>(e); };
      if (!mask_ && shared(node->condition) && std::all_of(node->values.begin(), node->values.end(), shared)) return s;
    }
    throw NoVectorForm();
  }

 private:
  bool varies(const Expr& e) const {
    return any_node(e, [&](const NodeRef& at) { return same_node(at, var_) || wide_.contains(at.get()); });
  }
  Expr widen(const Expr& e) const { return dtype_of(e).lanes == lanes_ ? e : broadcast(e, lanes_); }

  // Returns the variable for the vector that replaces the value of `var`.
  VarRef widened_var(const Expr& value, const VarRef& var, const Span& span) {
    if (dtype_of(value).lanes == 1) return var;
    return wide_.emplace(var.get(), make_var(var->name, value.type(), span)).first->second;
  }

  // Branches on the lane become masks of the stores and loads inside.
  template <class Visit>
  std::invoke_result_t<Visit> masked(const Expr& condition, Visit visit) {
    Temporarily mask(mask_, std::optional(mask_and(condition)));
    return visit();
  }
  Expr mask_and(const Expr& condition) const { return mask_ ? binary(BinaryOp::kAnd, *mask_, condition) : condition; }
  // Returns the lanes of a load or store that run; nullopt for all.
  template <class Node>
  std::optional<Expr> predicate_of(const Node& node) {
    return node.predicate ? mask_and(widen(expr(*node.predicate))) : mask_;
  }

  // Returns base + lane * stride when the index is affine in the lane, else arithmetic lane by lane.
  Expr index(const Expr& e) {
    if (!varies(e) && !(mask_ && holds<BufferLoad>(e))) return e;
    DType dtype = dtype_of(e);
    if ((dtype == kInt64 || dtype == kInt32) && !holds<BufferLoad>(e) && !uses_var(e, wide_)) {
      Expr base = facts_.simplify(substitute(e, {{var_.get(), min_}}));
      Expr stride = facts_.simplify(substitute(e, {{var_.get(), var_ + 1}}) - e);
      if (!varies(stride)) return is_int(stride, 0) ? base : ramp(base, stride, lanes_);
    }
    return widen(expr(e));
  }

  // Returns whether all lanes read one element, which is there although no lane may run: a mask would be a branch
  // around the load.
  bool is_in_range(const Buffer& buffer, const Expr& position) const {
    const std::vector<Expr>& shape = buffer_type(buffer).shape;
    return dtype_of(position).lanes == 1 && shape.size() == 1 && as_int(shape[0]) && !holds<BufferLoad>(position) &&
           !may_be_undefined(position, facts_) && is_non_negative(position, facts_) &&
           facts_.can_prove(position < cast_to(shape[0], dtype_of(position)));
  }

  Stmt store_lanes(const Stmt& s, const BufferStore& node) {
    if (buffer_type(node.buffer).dtype.lanes > 1) throw NoVectorForm();
    Expr position = index(node.indices[0]);
    // Lanes that write the same element would have to be ordered.
    if (dtype_of(position).lanes == 1) throw NoVectorForm();
    Expr value = widen(expr(node.value));
    std::optional<Expr> predicate = predicate_of(node);
    if (predicate && is_private(node.buffer, position)) {
      Expr before = make(BufferLoad{node.buffer, {position}, std::nullopt}, value.type(), s.span());
      value = select(*predicate, value, before);
      predicate.reset();
    }
    return make(BufferStore{node.buffer, value, {position}, predicate}, s.span());
  }
  bool is_private(const Buffer& buffer, const Expr& position) const {
    auto size = private_memory_.find(buffer.get());
    const Ramp* lanes = position.as<Ramp>();
    return size != private_memory_.end() && lanes && is_int(lanes->stride, 1) && lanes_ < DType::kScalable &&
           !may_be_undefined(position, facts_) && is_non_negative(lanes->base, facts_) &&
           facts_.can_prove(lanes->base + lanes_ <= int_imm(size->second, dtype_of(lanes->base)));
  }

  Expr expr(const Expr& e) {
    if (mask_ && e.is<BufferLoad>()) return load_lanes(e, *e.as<BufferLoad>());
    if (!varies(e) && !(mask_ && needs_mask(e))) return e;
    if (same_node(e, var_)) return ramp(min_, int_imm(1, dtype_of(min_)), lanes_);
    if (e.is<Var>()) return wide_.at(e.get());
    if (const Binary* node = e.as<Binary>()) {
      if (auto mask = first_lanes(*node)) return *mask;
      Expr a = expr(node->a), b = expr(node->b);
      if (mask_ && is_doubtful(*node)) b = harmless(*node, b);
      return binary(node->op, match_lanes(a, b), match_lanes(b, a), e.span());
    }
    if (const Not* node = e.as<Not>()) return not_(expr(node->value), e.span());
    if (const Cast* node = e.as<Cast>()) {
      Expr value = expr(node->value);
      return cast_to(value, dtype_of(e).with_lanes(dtype_of(value).lanes), e.span());
    }
    if (const Select* node = e.as<Select>())
      return select(widen(expr(node->condition)), widen(expr(node->a)), widen(expr(node->b)), e.span());
    if (const BufferLoad* node = e.as<BufferLoad>()) return load_lanes(e, *node);
    if (const Let* node = e.as<Let>()) {
      Expr value = expr(node->value);
      VarRef var = widened_var(value, node->var, e.span());
      return let(var, value, expr(node->body), e.span());
    }
    if (const Call* node = e.as<Call>()) {
      if (op_name(e) == ops::kIfThenElse) {
        Expr condition = expr(node->args[0]);
        if (dtype_of(condition).lanes == 1) {
          Expr a = widen(expr(node->args[1])), b = widen(expr(node->args[2]));
          return make(Call{node->callee, {condition, a, b}, node->attrs, {}}, a.type(), e.span());
        }
        Expr a = masked(condition, [&] { return widen(expr(node->args[1])); });
        Expr b = masked(not_(condition), [&] { return widen(expr(node->args[2])); });
        return select(condition, a, b, e.span());
      }
      // Instructions on whole vectors cannot be widened. The bits of an element as another type are no such
      // instruction.
      const DType dtype = dtype_of(e);
      const bool is_same_size = op_name(e) == ops::kReinterpret && !dtype.is_handle() &&
                                dtype_of(node->args[0]).bits == dtype.bits && !dtype_of(node->args[0]).is_handle();
      if (find_builtin(op_name(e)) && !is_same_size) throw NoVectorForm();
      Call copy = *node;
      for (Expr& arg : copy.args) arg = widen(expr(arg));
      return make(std::move(copy), prim_type(dtype.with_lanes(lanes_)), e.span());
    }
    throw NoVectorForm();
  }

  // Returns lane + base < limit as tir.get_active_lane_mask, which masks scalable vectors (SVE's whilelo).
  std::optional<Expr> first_lanes(const Binary& node) {
    bool fits = lanes_ >= DType::kScalable && node.op == BinaryOp::kLT && dtype_of(node.a).is_int() && !varies(node.b);
    if (!fits) return std::nullopt;
    Expr position = index(node.a);
    const Ramp* ramp = position.as<Ramp>();
    // The instruction compares unsigned numbers.
    bool is_supported =
        ramp && is_int(ramp->stride, 1) && is_non_negative(ramp->base, facts_) && is_non_negative(node.b, facts_);
    if (!is_supported) return std::nullopt;
    return intrinsic(ops::kGetActiveLaneMask, {ramp->base, node.b}, DType::bool_().with_lanes(lanes_));
  }
  // Returns a divisor or shift count that is defined in all lanes. Lanes that do not run divide by 1 and shift by no
  // bits. A divisor that all lanes share keeps its value where that is defined, so that an address stays a scalar.
  Expr harmless(const Binary& node, const Expr& b) const {
    if (dtype_of(b).lanes == 1) return defined_operand(node, b, facts_);
    return select(*mask_, widen(b), broadcast(harmless_operand(node, dtype_of(b).element()), lanes_));
  }
  // Facts about the variable do not hold for its last lane, so a value that varies between lanes has no facts.
  bool is_doubtful(const Binary& node) const {
    return doubtful_operand(node, varies(node.b) ? Analyzer() : facts_).has_value();
  }
  bool needs_mask(const Expr& e) const {
    bool found = holds<BufferLoad>(e);
    walk(e, [&](const Binary& node) { found = found || is_doubtful(node); });
    return found;
  }
  Expr match_lanes(const Expr& a, const Expr& b) const {
    return dtype_of(a).lanes < dtype_of(b).lanes ? broadcast(a, lanes_) : a;
  }

  Expr load_lanes(const Expr& e, const BufferLoad& node) {
    if (buffer_type(node.buffer).dtype.lanes > 1 || dtype_of(e).lanes > 1) throw NoVectorForm();
    Expr position = index(node.indices[0]);
    std::optional<Expr> predicate = predicate_of(node);
    if (predicate && (is_private(node.buffer, position) || is_in_range(node.buffer, position))) predicate.reset();
    if (!predicate && dtype_of(position).lanes == 1)
      return make(BufferLoad{node.buffer, {position}, std::nullopt}, e.type(), e.span());
    if (dtype_of(position).lanes == 1) position = broadcast(position, lanes_);
    return make(BufferLoad{node.buffer, {position}, predicate}, prim_type(dtype_of(e).with_lanes(lanes_)), e.span());
  }

  const VarRef& var_;
  const Expr& min_;
  int lanes_;
  Analyzer facts_;  // var ranges over all lanes but the last, so that var + 1 is a lane, too
  const PrivateMemory& private_memory_;
  std::optional<Expr> mask_;  // the lanes that run
  std::unordered_map<const NodeHeader*, VarRef> wide_;
};

// Returns whether the body has vectors, of inner loops or of the program itself. There are no vectors of vectors.
bool holds_vectors(const Stmt& body) {
  return any_node(body, [](const NodeRef& node) {
    const BufferStore* store = node.as<BufferStore>();
    return node.is<Ramp>() || node.is<Broadcast>() || (store && dtype_of(store->value).lanes != 1);
  });
}

// Returns a loop that only copies elements, and does so while a condition holds, as one over the iterations in which it
// holds, if a masked vector would have to gather them: they lie apart by what the run tells, or where a loaded index
// says. A gather takes as long as copying all of its lanes one by one.
std::optional<Stmt> as_serial_tail(const Stmt& s, const Analyzer& facts) {
  const For& loop = *s.as<For>();
  const IfThenElse* branch = loop.body.as<IfThenElse>();
  const BufferStore* store = branch && !branch->else_body ? branch->then_body.as<BufferStore>() : nullptr;
  const BufferLoad* copied = store && !store->predicate ? store->value.as<BufferLoad>() : nullptr;
  if (!copied || copied->predicate || copied->indices.size() != 1) return std::nullopt;
  const Expr& from = copied->indices[0];
  if (!holds<BufferLoad>(from) && coefficient(from, loop.var, facts)) return std::nullopt;
  std::vector<Expr> others;
  Expr end = loop.extent;
  for (const Expr& condition : conjuncts(branch->condition)) {
    if (!uses_var(condition, loop.var)) {
      others.push_back(condition);
      continue;
    }
    auto value = slack(condition);
    if (!value || !is_int(loop.min, 0) || holds<BufferLoad>(condition) || coefficient(*value, loop.var, facts) != -1)
      return std::nullopt;
    Expr count = cast_to(substitute(*value, {{loop.var.get(), loop.min}}) + 1, dtype_of(loop.extent));
    end = min(end, count);
  }
  For copy = loop;
  copy.kind = ForKind::kSerial;
  copy.extent = facts.simplify(max(end, int_imm(0, dtype_of(loop.extent))));
  copy.body = branch->then_body;
  Stmt serial = make(std::move(copy), s.span());
  auto condition = conjunction(others);
  return condition ? make(IfThenElse{*condition, serial, std::nullopt}, s.span()) : serial;
}

class Vectorizer final : public Rewriter {
 public:
  explicit Vectorizer(Analyzer facts) : facts_(std::move(facts)) {}

  Stmt stmt(const Stmt& s) override {
    if (const AllocBuffer* alloc = s.as<AllocBuffer>()) {
      const std::vector<Expr>& shape = buffer_type(alloc->buffer).shape;
      if (shape.size() == 1 && as_int(shape[0])) private_memory_.emplace(alloc->buffer.get(), *as_int(shape[0]));
    }
    if (!s.is<For>()) return Rewriter::stmt(s);
    Stmt rewritten = with_vectors_inside(s);
    const For* node = rewritten.as<For>();
    if (!node || node->kind != ForKind::kVectorized) return rewritten;
    auto lanes = vector_lanes(node->extent);
    if (auto tail = as_serial_tail(rewritten, facts_)) return *tail;
    if (lanes && *lanes != 1 && std::abs(*lanes) <= kMostLanes && !holds_vectors(node->body)) {
      int count = kInt64.with_lanes(static_cast<int>(*lanes)).lanes;
      try {
        return LaneRewriter(node->var, node->min, node->extent, count, facts_, private_memory_).stmt(node->body);
      } catch (const NoVectorForm&) {
      }
    }
    return edited<For>(rewritten, [](For& loop) { loop.kind = ForKind::kSerial; });
  }

 private:
  // Returns the loop with the loops inside of it vectorized.
  Stmt with_vectors_inside(const Stmt& s) {
    const For& loop = *s.as<For>();
    Temporarily facts(facts_, facts_);
    Temporarily memory(private_memory_, private_memory_);
    facts_.bind(loop.var, loop.min, loop.extent);
    if (loop.kind == ForKind::kParallel) private_memory_.clear();  // threads share the memory
    return Rewriter::stmt(s);
  }

  Analyzer facts_;
  PrivateMemory private_memory_;
};

}  // namespace

// Turns vectorized loops of constant extent, or of a constant times T.vscale(), into vector statements with masks for
// branches. A loop without a vector form (inner allocations, `while`, lanes that store to one element) becomes serial,
// and so does the tail of a copy whose lanes lie apart.
PrimFuncRef vectorize_loops(const PrimFuncRef& function) {
  return with_body(function, Vectorizer(facts_of_params(function)).stmt(function->body));
}

}  // namespace relaxc
