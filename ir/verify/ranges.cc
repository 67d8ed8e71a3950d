// Proves that an index or an axis leaves its range, by a witness: an iteration of the enclosing loops in which all
// conditions hold and the value is outside for every value of the symbolic dims from 1. The absence of a witness proves
// nothing. Values that depend on data (A[B[i]]) or on scalar arguments, or are outside for some dims only (A[i] of 16
// elements in a loop over n), are not decided, and neither is code in `while` or in a loop with break. Few iterations
// are tried: the corners of the box of loops at which the value is extreme, and all of a small box.
#include <algorithm>

#include "ir/arith.h"
#include "ir/fields.h"
#include "ir/op_names.h"
#include "ir/regions.h"
#include "ir/text/printer.h"
#include "ir/verify/internal.h"
#include "support/checked_math.h"
#include "vm/tensor.h"

namespace relaxc {

namespace {

constexpr int64_t kMostIterations = 256;  // up to so many iterations, all are tried

// Returns whether the value loads, calls or lets. It is then not treated as a function of the loops.
bool is_opaque(const Expr& value) { return holds<BufferLoad, Call, Let>(value); }
bool leaves_loop(const NodeRef& node) {
  if (!node.is<Call>()) return false;
  const std::string& name = op_name(cast_handle<Expr>(node));
  return name == ops::kBreakLoop || name == ops::kContinueLoop || name == ops::kRet;
}

class RangeVerifier {
 public:
  RangeVerifier(const PrimFuncRef& function, Ranges wanted, Diagnostics& diagnostics)
      : wanted_(wanted),
        diagnostics_(diagnostics),
        place_(function.span()),
        open_(any_node(function->body, leaves_loop)) {
    for (const VarRef& param : function->params) dims(param);
    stmt(function->body);
  }

 private:
  void dims(const VarRef& buffer) {
    const BufferType* type = buffer.type().as<BufferType>();
    if (!type) return;
    for (const Expr& dim : type->shape) {
      if (!dim.is<Var>()) continue;
      facts_.bind(cast<Var>(dim), Interval{.min = 0});
      positive_.bind(cast<Var>(dim), Interval{.min = 1});
    }
  }

  // ---- The walk: loops, conditions and definitions on the way

  void stmt(const Stmt& s) {
    if (s.span()) place_ = s.span();
    if (const For* node = s.as<For>()) return for_loop(*node);
    if (const Block* node = s.as<Block>()) return block(*node);
    if (const IfThenElse* node = s.as<IfThenElse>()) {
      expr(node->condition);
      under(node->condition, [&] { stmt(node->then_body); });
      if (node->else_body) under(not_(node->condition), [&] { stmt(*node->else_body); });
      return;
    }
    if (const BufferStore* node = s.as<BufferStore>()) {
      expr(node->value);
      for (const Expr& index : node->indices) expr(index);
      return access(node->buffer, node->indices, node->predicate, s.span());
    }
    Temporarily open(open_, open_ || s.is<While>());
    visit_children(s, [&](const NodeRef& child, Slot slot) {
      if (is_stmt_kind(child.kind())) {
        stmt(cast_handle<Stmt>(child));
      } else if (is_expr_kind(child.kind()) && !is_binding(slot.role)) {
        expr(cast_handle<Expr>(child));
      }
    });
    if (const Bind* node = s.as<Bind>()) define(node->var, node->value);
    if (const AllocBuffer* node = s.as<AllocBuffer>(); node && wanted_ != Ranges::kAxes) view(node->buffer, s.span());
    if (const Assert* node = s.as<Assert>()) asserted_.push_back(substitute(node->condition, values_));
  }

  // Compares the sizes of a dense view and of the dense memory that it is over, where both are known.
  void view(const Buffer& buffer, const Span& span) {
    const BufferType& type = buffer_type(buffer);
    const Call* pointer = type.data ? as_call(*type.data, ops::kBufferData) : nullptr;
    auto viewed = pointer ? try_cast<Var>(pointer->args.at(0)) : std::nullopt;
    if (!viewed || !viewed->type().is<BufferType>()) return;
    const BufferType& memory = buffer_type(*viewed);
    bool is_plain = type.strides.empty() && memory.strides.empty() && !memory.data && !memory.elem_offset;
    auto has = bytes_of(memory, int_imm(0)), needs = bytes_of(type, type.elem_offset.value_or(int_imm(0)));
    if (!is_plain || !has || !needs || *needs <= *has) return;
    diagnostics_.warning(span ? span : place_, "buffer '{}' ends at byte {} of the {} bytes of '{}' [T22]",
                         buffer->name, *needs, *has, (*viewed)->name);
  }
  // Returns the bytes of the elements and of those before them.
  static std::optional<int64_t> bytes_of(const BufferType& type, const Expr& offset) {
    auto shape = constant_shape(tensor_type(type.shape, type.dtype));
    auto first = as_int(offset);
    auto before = first ? tensor_bytes(std::vector{*first}, type.dtype) : std::nullopt;
    auto bytes = shape && before ? tensor_bytes(*shape, type.dtype) : std::nullopt;
    return bytes ? checked_add(*bytes, *before) : std::nullopt;
  }

  void for_loop(const For& node) {
    expr(node.min);
    expr(node.extent);
    Temporarily facts(facts_, Analyzer(facts_));
    Temporarily open(open_, open_ || node.step.has_value());
    facts_.bind(node.var, node.min, node.extent);
    loops_.push_back({node.var, substitute(node.min, values_), substitute(node.extent, values_)});
    stmt(node.body);
    loops_.pop_back();
  }

  void block(const Block& node) {
    auto inside = [&] {
      for (const IterVar& axis : node.iter_vars) {
        expr(axis.value);
        if (wanted_ == Ranges::kAxes) check_axis(node, axis);
      }
      Temporarily facts(facts_, Analyzer(facts_));
      for (const IterVar& axis : node.iter_vars) {
        facts_.bind(axis.var, axis.domain.min, axis.domain.extent);
        define(axis.var, axis.value);
      }
      if (node.init) stmt(*node.init);
      stmt(node.body);
    };
    if (!node.predicate) return inside();
    expr(*node.predicate);
    under(*node.predicate, inside);
  }

  template <class Visit>
  void under(const Expr& condition, Visit visit) {
    Temporarily facts(facts_, Analyzer(facts_));
    if (dtype_of(condition).lanes == 1) facts_.assume(condition);
    conditions_.push_back(substitute(condition, values_));
    visit();
    conditions_.pop_back();
  }

  void define(const VarRef& var, const Expr& value) {
    const PrimType* type = value.type().as<PrimType>();
    if (type && type->dtype.is_integral() && !is_opaque(value))
      values_.insert_or_assign(var.get(), substitute(value, values_));
  }

  void expr(const Expr& e) {
    if (wanted_ == Ranges::kAxes) return;
    if (const Call* node = as_call(e, ops::kIfThenElse)) {
      expr(node->args[0]);
      under(node->args[0], [&] { expr(node->args[1]); });
      return under(not_(node->args[0]), [&] { expr(node->args[2]); });
    }
    if (as_call(e, ops::kAddressOf) || as_call(e, ops::kPrefetch)) return;
    if (const Let* node = e.as<Let>()) {
      expr(node->value);
      define(node->var, node->value);
      expr(node->body);
      values_.erase(node->var.get());
      return;
    }
    visit_children(e, [&](const NodeRef& child, Slot slot) {
      if (is_expr_kind(child.kind()) && !is_binding(slot.role)) expr(cast_handle<Expr>(child));
    });
    if (const BufferLoad* node = e.as<BufferLoad>()) access(node->buffer, node->indices, node->predicate, e.span());
  }

  // ---- The checks

  void check_axis(const Block& node, const IterVar& axis) {
    Range domain{substitute(axis.domain.min, values_), substitute(axis.domain.extent, values_)};
    auto witness = find(axis.value, domain);
    if (!witness) return;
    Diagnostic& error = diagnostics_.error(axis.var.span() ? axis.var.span() : place_,
                                           "block '{}': axis '{}' is {}, outside of its domain {} [T20]", node.name,
                                           axis.var->name, *witness, print(axis.domain));
    error.notes.push_back(
        "restrict the block to the values that count with T.where(condition), or widen the axis's domain");
  }

  void access(const Buffer& buffer, const std::vector<Expr>& indices, const std::optional<Expr>& predicate,
              const Span& span) {
    const BufferType* type = buffer.type().as<BufferType>();
    if (wanted_ == Ranges::kAxes || predicate || !type) return;
    bool rows = covers_rows(indices, type->shape, facts_);
    for (size_t d = 0; d < indices.size() && d < type->shape.size(); ++d) {
      std::vector<Expr> lanes{indices[d]};  // the first and the last of a vector
      if (const Ramp* ramp = indices[d].as<Ramp>()) {
        lanes = {ramp->base};
        if (ramp->lanes > 1 && !rows)
          lanes.push_back(ramp->base + ramp->stride * int_imm(ramp->lanes - 1, dtype_of(ramp->stride)));
      }
      for (const Expr& index : lanes) {
        auto witness = find(index, whole_range(type->shape[d]));
        if (!witness) continue;
        std::string value = print(index) == *witness ? "" : fmt::format(" {},", *witness);
        diagnostics_.warning(span ? span : place_, "buffer '{}': index {} of dim {} is{} out of range {} [T21]",
                             buffer->name, print(index), d, value, print({int_imm(0), type->shape[d]}));
        return;
      }
    }
  }

  // ---- The search for a witness

  struct Loop {
    VarRef var;
    Expr min, extent;  // in terms of the loops around
  };
  // An iteration of all enclosing loops: the value of each.
  using Iteration = std::vector<Expr>;

  // Returns "17 where i = 12 of [0, 13)" for a value that is outside the range; nullopt when none was found.
  std::optional<std::string> find(const Expr& value, const Range& range) {
    if (open_ || dtype_of(value).lanes != 1 || !dtype_of(value).is_integral()) return std::nullopt;
    Expr begin = as_int64(range.min), end = begin + as_int64(range.extent), at = as_int64(value);
    if (facts_.can_prove(begin <= at) && facts_.can_prove(at < end)) return std::nullopt;
    at = substitute(at, values_);
    if (is_opaque(at)) return std::nullopt;
    for (const Iteration& iteration : iterations(at)) {
      VarMap point;
      for (size_t l = 0; l < loops_.size(); ++l) point.emplace(loops_[l].var.get(), iteration[l]);
      if (!runs(point)) continue;
      Expr reached = positive_.simplify(substitute(at, point));
      bool outside = positive_.can_prove(reached < substitute(begin, point)) ||
                     positive_.can_prove(reached >= substitute(end, point));
      if (outside) return describe(at, reached, iteration);
    }
    return std::nullopt;
  }

  static Expr as_int64(const Expr& e) { return cast_to(e, kInt64); }

  bool runs(const VarMap& point) const {
    auto runs_once = [&](const Loop& loop) {
      return positive_.can_prove(as_int64(substitute(loop.extent, point)) >= int_imm(1));
    };
    auto holds = [&](const Expr& condition) {
      return dtype_of(condition).lanes == 1 && positive_.can_prove(substitute(condition, point));
    };
    return std::ranges::all_of(loops_, runs_once) && std::ranges::all_of(conditions_, holds) &&
           std::ranges::all_of(asserted_, holds);
  }

  std::vector<Iteration> iterations(const Expr& value) const {
    std::vector<int> signs;  // the sign of the step that the value makes per iteration of a loop; 0: unknown
    std::vector<size_t> relevant;
    int64_t count = 1;
    for (size_t l = 0; l < loops_.size(); ++l) {
      const VarRef& var = loops_[l].var;
      auto step = positive_.bounds(
          positive_.simplify(substitute(value, {{var.get(), static_cast<const Expr&>(var) + 1}}) - value));
      signs.push_back(step.min > 0 ? 1 : step.max < 0 ? -1 : 0);
      if (step.min == 0 && step.max == 0) continue;
      relevant.push_back(l);
      int64_t extent = as_int(loops_[l].extent).value_or(kMostIterations + 1);
      count = count > kMostIterations || extent > kMostIterations ? kMostIterations + 1
                                                                  : count * std::max<int64_t>(extent, 1);
    }
    std::vector<Iteration> result;
    for (int direction : {1, -1})
      result.push_back(corner([&](size_t l) { return signs[l] * direction > 0 || (signs[l] == 0 && direction > 0); }));
    result.push_back(corner([](size_t) { return true; }));
    const Iteration first = corner([](size_t) { return false; });
    result.push_back(first);
    for (int64_t i = 0; count <= kMostIterations && i < count; ++i) {
      Iteration iteration = first;
      int64_t rest = i;
      for (size_t l : relevant) {
        int64_t extent = std::max<int64_t>(*as_int(loops_[l].extent), 1);
        iteration[l] = at_iteration(l, int_imm(rest % extent), iteration);
        rest /= extent;
      }
      result.push_back(std::move(iteration));
    }
    return result;
  }

  template <class IsLast>
  Iteration corner(IsLast is_last) const {
    Iteration result;
    for (size_t l = 0; l < loops_.size(); ++l) {
      Expr steps = is_last(l) ? as_int64(loops_[l].extent) - 1 : int_imm(0);
      result.push_back(at_iteration(l, steps, result));
    }
    return result;
  }
  // Returns the loop's variable after `steps` iterations, in an iteration of the enclosing loops.
  Expr at_iteration(size_t l, const Expr& steps, const Iteration& around) const {
    VarMap point;
    for (size_t outer = 0; outer < std::min(l, around.size()); ++outer)
      point.emplace(loops_[outer].var.get(), around[outer]);
    Expr value = as_int64(substitute(loops_[l].min, point)) + substitute(steps, point);
    return cast_to(positive_.simplify(value), dtype_of(loops_[l].var));
  }

  std::string describe(const Expr& value, const Expr& reached, const Iteration& iteration) const {
    std::string where;
    for (size_t l = 0; l < loops_.size(); ++l) {
      if (!uses_var(value, loops_[l].var)) continue;
      where += fmt::format("{}{} = {} of {}", where.empty() ? " where " : ", ", loops_[l].var->name,
                           print(positive_.simplify(iteration[l])), print({loops_[l].min, loops_[l].extent}));
    }
    return print(reached) + where;
  }
  static std::string print(const Expr& e) { return print_plain(e); }
  static std::string print(const Range& range) {
    return fmt::format("[{}, {})", print(simplify(range.min)), print(simplify(range.min + range.extent)));
  }

  Ranges wanted_;
  Diagnostics& diagnostics_;
  Span place_;
  bool open_;          // it is not known which iterations run
  Analyzer facts_;     // along the way
  Analyzer positive_;  // dims from 1
  std::vector<Loop> loops_;
  std::vector<Expr> conditions_;  // the enclosing branches and predicates
  std::vector<Expr> asserted_;    // asserted earlier: they hold, or the program has failed
  VarMap values_;                 // axes and other definitions in terms of loops
};

}  // namespace

void verify_ranges(const IRModule& module, Ranges wanted, Diagnostics& diagnostics) {
  for (const auto& [name, function] : module.functions) {
    if (auto program = try_cast<PrimFunc>(function)) RangeVerifier(*program, wanted, diagnostics);
  }
}

}  // namespace relaxc
