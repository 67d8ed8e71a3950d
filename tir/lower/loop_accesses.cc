#include "tir/lower/loop_accesses.h"

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "support/temporarily.h"
#include "tir/analysis/conditions.h"
#include "tir/analysis/pointers.h"

namespace relaxc {

namespace {

class AccessFinder {
 public:
  explicit AccessFinder(LoopAccesses& result) : result_(result) {}

  void look(const NodeRef& node) {
    if (const For* loop = node.as<For>()) return look_in_loop(*loop, *try_cast<For>(node));
    if (const BufferStore* store = node.as<BufferStore>()) {
      Access& found = access(store->buffer, store->indices, store->predicate, store->value.type());
      bool is_first = !found.is_stored && !found.is_loaded;
      if (is_first && !uses_var(store->value, store->buffer)) found.set_if = conditions_;
      found.is_stored = true;
      found.is_certain = found.is_certain || is_certain_;
      look(store->value);
      return look(store->indices[0]);
    }
    if (const BufferLoad* load = node.as<BufferLoad>()) {
      access(load->buffer, load->indices, load->predicate, cast_handle<Expr>(node).type()).is_loaded = true;
      return look(load->indices[0]);
    }
    if (const IfThenElse* branch = node.as<IfThenElse>()) {
      look(branch->condition);
      Temporarily certain(is_certain_, false);
      conditions_.push_back(branch->condition);
      look(branch->then_body);
      conditions_.back() = not_(branch->condition);
      if (branch->else_body) look(*branch->else_body);
      conditions_.pop_back();
      return;
    }
    bool is_prefetch = node.is<Evaluate>() && as_call(node.as<Evaluate>()->value, ops::kPrefetch);
    if (is_prefetch) return;
    if (const Bind* bind = node.as<Bind>()) result_.defined.insert(bind->var.get());
    if (const Let* let = node.as<Let>()) result_.defined.insert(let->var.get());
    if (const AllocBuffer* alloc = node.as<AllocBuffer>()) result_.defined.insert(alloc->buffer.get());
    bool is_effect = node.is<While>() || node.is<Assert>() || node.is<Evaluate>();
    // Calls of other code, and addresses, reach memory in ways that are not seen here.
    const Call* call = node.as<Call>();
    bool is_unknown = call && (!call->callee.is<OpRef>() || as_call(cast_handle<Expr>(node), ops::kAddressOf));
    result_.is_plain = result_.is_plain && !is_effect && !is_unknown;
    visit_children(node, [&](const NodeRef& child, Slot) { look(child); });
  }

 private:
  void look_in_loop(const For& loop, const Ref<For>& node) {
    look(loop.min);
    look(loop.extent);
    result_.is_plain = result_.is_plain && loop.kind != ForKind::kParallel && !loop.step;
    result_.defined.insert(loop.var.get());
    loops_.push_back(node);
    Temporarily certain(is_certain_, is_certain_ && as_int(loop.extent).value_or(0) > 0);
    look(loop.body);
    loops_.pop_back();
  }

  Access& access(const Buffer& buffer, const std::vector<Expr>& indices, const std::optional<Expr>& predicate,
                 const Type& value) {
    std::vector<BufferAccesses>& all = result_.buffers;
    auto known = std::ranges::find_if(all, [&](const BufferAccesses& one) { return same_node(one.buffer, buffer); });
    if (known == all.end()) known = all.insert(known, BufferAccesses{buffer});
    known->is_masked = known->is_masked || predicate || indices.size() != 1;
    auto same = std::ranges::find_if(known->each, [&](const Access& one) {
      return structural_equal(one.index, indices[0]) && structural_equal(one.value, value);
    });
    if (same == known->each.end()) same = known->each.insert(same, Access{indices[0], value, loops_});
    return *same;
  }

  LoopAccesses& result_;
  std::vector<Ref<For>> loops_;
  std::vector<Expr> conditions_;
  bool is_certain_ = true;
};

}  // namespace

LoopAccesses accesses_of(const For& loop) {
  LoopAccesses result;
  result.defined.insert(loop.var.get());
  AccessFinder(result).look(loop.body);
  return result;
}

std::optional<std::vector<Digit>> digits_of(const Expr& index, const std::vector<Ref<For>>& loops,
                                            const Analyzer& facts) {
  std::vector<Digit> digits;
  const Ramp* lanes = index.as<Ramp>();
  if (lanes) digits.push_back({as_int(lanes->stride).value_or(0), lanes->lanes});
  Expr first = lanes ? lanes->base : index;
  if (dtype_of(first).lanes != 1) return std::nullopt;
  for (const Ref<For>& loop : loops) {
    auto extent = as_int(loop->extent), stride = coefficient(first, loop->var, facts);
    if (!extent || !stride) return std::nullopt;
    digits.push_back({*stride, *extent});
  }
  return digits;
}

bool are_distinct(std::vector<Digit> digits) {
  std::ranges::sort(digits, {}, [](const Digit& digit) { return std::abs(digit.stride); });
  int64_t span = 0;  // of the digits before
  for (const Digit& digit : digits) {
    if (digit.count > 1 && std::abs(digit.stride) <= span) return false;
    span += std::abs(digit.stride) * (digit.count - 1);
  }
  return true;
}

bool are_disjoint(const std::vector<Access>& each, const Analyzer& facts) {
  // Neighbouring elements are one run; the digits above it must be the same for all.
  struct Run {
    Expr start;
    int64_t length;
    std::vector<Digit> above;
  };
  std::vector<Run> runs;
  for (const Access& access : each) {
    auto digits = digits_of(access.index, access.loops, facts);
    if (!digits || !are_distinct(*digits)) return false;
    VarMap at_start;
    for (const Ref<For>& loop : access.loops) at_start.emplace(loop->var.get(), loop->min);
    const Ramp* lanes = access.index.as<Ramp>();
    Run run{substitute(lanes ? lanes->base : access.index, at_start), 1, {}};
    std::erase_if(*digits, [](const Digit& digit) { return digit.count == 1; });
    std::ranges::sort(*digits, {}, &Digit::stride);
    for (const Digit& digit : *digits) {
      bool continues = digit.stride == run.length && run.above.empty();
      continues ? void(run.length *= digit.count) : run.above.push_back(digit);
    }
    runs.push_back(std::move(run));
  }
  if (runs.size() < 2) return true;
  std::vector<std::pair<int64_t, int64_t>> ranges;  // begin and end, from the first run's start
  for (const Run& run : runs) {
    auto begin = as_int(facts.simplify(run.start - runs[0].start));
    if (!begin || run.above != runs[0].above) return false;
    ranges.emplace_back(*begin, *begin + run.length);
  }
  std::ranges::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) return false;
  }
  std::vector<Digit> all = runs[0].above;
  all.push_back({1, ranges.back().second - ranges.front().first});
  return are_distinct(all);
}

bool may_alias(const PrimFuncRef& function) {
  return !function->attrs.get_bool(attr_names::kNoAlias, true) || uses_pointers(function);
}

int widest_bits(const Stmt& body) {
  int bits = 8;
  auto look = [&](const Buffer& buffer) { bits = std::max<int>(bits, buffer_type(buffer).dtype.bits); };
  walk(body, [&](const BufferStore& store) { look(store.buffer); }, [&](const BufferLoad& load) { look(load.buffer); });
  return bits;
}

bool has_vectors(const Stmt& body) {
  return any_node(body, [](const NodeRef& node) {
    const For* loop = node.as<For>();
    return node.is<Ramp>() || node.is<Broadcast>() || (loop && loop->kind == ForKind::kVectorized);
  });
}

Expr iterations_of(const For& loop, const Analyzer& facts) {
  return is_non_negative(loop.extent, facts) ? loop.extent : max(loop.extent, int_imm(0, dtype_of(loop.extent)));
}

Stmt in_vectors(const Stmt& s, int64_t lanes, ForKind around, const Analyzer& facts) {
  const For& loop = *s.as<For>();
  DType dtype = dtype_of(loop.var);
  auto part = [&](const Expr& begin, const Expr& count, ForKind kind) {
    VarRef var = make_var(loop.var->name, loop.var.type(), loop.var.span());
    For copy = loop;
    copy.var = var;
    copy.min = int_imm(0, dtype);
    copy.extent = count;
    copy.kind = kind;
    copy.body = instantiate(loop.body, {{loop.var.get(), facts.simplify(begin + var)}});
    return simplify(make(std::move(copy), s.span()), facts);
  };
  std::optional<int64_t> extent = as_int(loop.extent);
  if (extent && *extent <= lanes) return part(loop.min, loop.extent, ForKind::kVectorized);
  Expr step = int_imm(lanes, dtype), count = iterations_of(loop, facts), whole = facts.simplify(floor_div(count, step));
  VarRef outer = make_var(loop.var->name + "_vector", loop.var.type(), loop.var.span());
  Stmt vectors = part(loop.min + outer * step, step, ForKind::kVectorized);
  Stmt main = make(For{outer, int_imm(0, dtype), whole, around, "", loop.annotations, vectors}, s.span());
  std::vector<Stmt> parts{simplify(main, facts)};
  Expr rest = facts.simplify(floor_mod(count, step));
  int64_t rest_lanes = as_int(rest).value_or(0);
  bool is_vector = rest_lanes > 0 && (loop.kind == ForKind::kVectorized || rest_lanes * kLeastShareOfVector >= lanes);
  if (!is_int(rest, 0))
    parts.push_back(part(loop.min + whole * step, rest, is_vector ? ForKind::kVectorized : ForKind::kSerial));
  return seq(std::move(parts), s.span());
}

}  // namespace relaxc
