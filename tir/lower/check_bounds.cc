// Indices and axes are tested where they are used, not where they are computed. The asserts of all accesses of a
// statement stand before it, in the order of evaluation, so that the index of an index is tested first. An access on
// one side of tir.if_then_else is tested only if that side is evaluated. Both sides of a select are tested, since both
// are evaluated. This step runs on blocks, so that messages name the buffers, dims and axes of the program as it was
// written. Once the axes are known to be in their domains, most accesses inside of the block are proven.
#include <fmt/format.h>

#include <algorithm>

#include "ir/op_names.h"
#include "ir/regions.h"
#include "ir/text/printer.h"
#include "support/diagnostic.h"
#include "support/temporarily.h"
#include "tir/analysis/windows.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/program.h"
#include "tir/scalable_vectors.h"

namespace relaxc {

namespace {

Expr as_int64(const Expr& e) { return cast_to(e, kInt64.with_lanes(dtype_of(e).lanes)); }

// Returns one lane of a vector that is a condition or an index.
Expr checked_lane(const Expr& whole, int lane, const Span& place) {
  auto other = [&](const Expr& e) -> Expr {
    if (const Call* node = as_call(e, ops::kGetActiveLaneMask))
      return as_int64(node->args[0]) + lane < as_int64(node->args[1]);
    const BufferLoad* node = e.as<BufferLoad>();
    if (!node || buffer_type(node->buffer).dtype.lanes > 1 || dtype_of(e).is_scalable())
      fail_unsupported(e.span() ? e.span() : place,
                       "bounds cannot be checked where they depend on one lane of {}; write it as a loop",
                       print_expr(e));
    std::vector<Expr> indices = node->indices;
    if (!indices.empty()) indices.back() = checked_lane(indices.back(), lane, place);
    Expr element = load(node->buffer, indices, e.span());
    if (!node->predicate) return element;
    return if_then_else(checked_lane(*node->predicate, lane, place), element, int_imm(0, dtype_of(e).element()));
  };
  return lane_of(whole, int_imm(lane), other);
}

// A condition that must hold where an expression is evaluated, and the message for when it does not.
struct Check {
  Expr condition;
  std::string message;  // with a `{}` for each value
  std::vector<Expr> values;
  Span span;
};

class BoundsChecker {
 public:
  BoundsChecker(Analyzer facts, Span place) : facts_(std::move(facts)), place_(std::move(place)) {}

  Stmt stmt(const Stmt& s) {
    if (s.span()) place_ = s.span();
    if (s.is<Seq>()) return map_stmts(s, [&](const Stmt& inner) { return stmt(inner); });
    if (const Block* node = s.as<Block>()) return block(s, *node);
    if (const While* node = s.as<While>()) return while_loop(s, *node);
    visit_children(s, [&](const NodeRef& child, Slot slot) {
      if (slot.role == Role::kField && is_expr_kind(child.kind())) check_expr(cast_handle<Expr>(child), {});
    });
    if (const BufferStore* node = s.as<BufferStore>())
      check_access(node->buffer, node->indices, node->predicate, {}, s.span());
    std::vector<Stmt> checks = take_checks();
    return followed_by(std::move(checks), with_checked_parts(s), s.span());
  }

 private:
  // Returns the statement with checks inside of its bodies.
  Stmt with_checked_parts(const Stmt& s) {
    const Bind* node = s.as<Bind>();
    const PrimType* type = node ? node->value.type().as<PrimType>() : nullptr;
    bool is_index = type && type->dtype.lanes == 1 && type->dtype.is_integral() && !holds<BufferLoad>(node->value);
    if (is_index) facts_.bind(node->var, node->value);
    const For* loop = s.as<For>();
    const IfThenElse* branch = s.as<IfThenElse>();
    bool is_else = false;
    return map_stmts(s, [&](const Stmt& body) {
      BoundsChecker inner(facts_, place_);
      if (loop) inner.facts_.bind(loop->var, loop->min, loop->extent);
      if (branch) inner.assume(std::exchange(is_else, true) ? !branch->condition : branch->condition);
      return inner.stmt(body);
    });
  }

  void assume(const Expr& condition) {
    if (dtype_of(condition).lanes == 1 && !holds<BufferLoad>(condition)) facts_.assume(facts_.simplify(condition));
  }

  Stmt block(const Stmt& s, const Block& node) {
    std::vector<Expr> guards;
    if (node.predicate) {
      check_expr(*node.predicate, {});
      guards.push_back(*node.predicate);
    }
    for (const IterVar& axis : node.iter_vars) check_expr(axis.value, guards);
    std::vector<Stmt> before = take_checks();
    BoundsChecker inner(facts_, place_);
    if (node.predicate) inner.assume(*node.predicate);
    for (const IterVar& axis : node.iter_vars) {
      const Range& domain = axis.domain;
      inner.check_range(
          as_int64(axis.value), as_int64(domain.min), as_int64(domain.min + domain.extent), {},
          fmt::format("block '{}': axis '{}' is {{}}, outside of its domain [{{}}, {{}})", node.name, axis.var->name));
    }
    for (const IterVar& axis : node.iter_vars) inner.facts_.bind(axis.var, axis.domain.min, axis.domain.extent);
    for (const MatchBuffer& window : node.match_buffers) inner.window(window);
    auto checked = [&, entry = inner.take_checks()](const Stmt& part) {
      return followed_by(entry, BoundsChecker(inner.facts_, inner.place_).stmt(part), part.span());
    };
    Block copy = node;
    copy.body = checked(node.body);
    if (node.init) copy.init = checked(*node.init);
    return followed_by(std::move(before), make(std::move(copy), s.span()), s.span());
  }

  // Checks that the window lies in its source.
  void window(const MatchBuffer& window) {
    const BufferType& source = buffer_type(window.source.buffer);
    VarMap numbers = window_numbers({window});
    for (const VarRef& var : window.defines) {
      if (auto number = numbers.find(var.get()); number != numbers.end()) facts_.bind(var, number->second);
    }
    for (size_t d = 0; d < window.source.ranges.size(); ++d) {
      const Range& range = window.source.ranges[d];
      check_range(as_int64(range.min), int_imm(0), as_int64(source.shape[d]) - as_int64(range.extent) + 1, {},
                  fmt::format("window '{}' of buffer '{}': the start {{}} in dim {} is outside of [{{}}, {{}})",
                              window.buffer->name, window.source.buffer->name, d));
    }
  }

  // Ends the loop if its condition cannot be evaluated within bounds. The asserts after the loop then report it.
  Stmt while_loop(const Stmt& s, const While& node) {
    check_expr(node.condition, {});
    While copy = node;
    for (const Check& check : checks_) copy.condition = if_then_else(check.condition, copy.condition, bool_imm(false));
    copy.body = BoundsChecker(facts_, place_).stmt(node.body);
    return seq({make(std::move(copy), s.span()), seq(take_checks())}, s.span());
  }

  // ---- Expressions

  // Checks the accesses in an expression that is evaluated where the guards hold.
  void check_expr(const Expr& e, std::vector<Expr> guards) {
    if (const Let* node = e.as<Let>()) {
      check_expr(node->value, guards);
      return check_expr(substitute(node->body, {{node->var.get(), node->value}}), guards);
    }
    if (const Call* node = as_call(e, ops::kIfThenElse)) {
      check_expr(node->args[0], guards);
      guards.push_back(node->args[0]);
      check_expr(node->args[1], guards);
      guards.back() = not_(node->args[0]);
      return check_expr(node->args[2], guards);
    }
    bool only_address = as_call(e, ops::kAddressOf) || as_call(e, ops::kPrefetch);
    visit_children(e, [&](const NodeRef& child, Slot slot) {
      if (slot.role != Role::kField || !is_expr_kind(child.kind())) return;
      const BufferLoad* place = only_address ? child.as<BufferLoad>() : nullptr;
      if (!place) return check_expr(cast_handle<Expr>(child), guards);
      for (const Expr& index : place->indices) check_expr(index, guards);
    });
    if (const BufferLoad* node = e.as<BufferLoad>())
      check_access(node->buffer, node->indices, node->predicate, guards, e.span() ? e.span() : place_);
  }

  void check_access(const Buffer& buffer, const std::vector<Expr>& indices, const std::optional<Expr>& predicate,
                    std::vector<Expr> guards, const Span& span) {
    if (predicate) guards.push_back(*predicate);
    Temporarily place(place_, span ? span : place_);
    int lanes = indices.empty() ? 1 : dtype_of(indices.back()).lanes;
    const Ramp* ramp = lanes == 1 ? nullptr : indices.back().as<Ramp>();
    bool guarded_by_lane = std::ranges::any_of(guards, [](const Expr& guard) { return dtype_of(guard).lanes != 1; });
    if (lanes == 1 && !guarded_by_lane) {
      check_element(buffer, indices, guards);
    } else if (covers_rows(indices, buffer_type(buffer).shape, facts_)) {
      check_rows(buffer, indices, lanes, guards);
    } else if (ramp && !guarded_by_lane) {  // tests the first and the last lane
      DType dtype = dtype_of(ramp->base);
      Expr last = int_imm(std::abs(ramp->lanes), dtype);
      if (ramp->lanes < 0) last = last * vscale(dtype);
      for (const Expr& lane : {int_imm(0, dtype), last - 1}) {
        std::vector<Expr> at = indices;
        at.back() = ramp->base + ramp->stride * lane;
        check_element(buffer, at, guards);
      }
    } else {
      for (const Expr& guard : guards) lanes = std::max(lanes, static_cast<int>(dtype_of(guard).lanes));
      if (lanes < 1 || lanes > kMostLanes)
        fail_unsupported(place_, "the bounds of a masked vector of scalable length in '{}' cannot be checked",
                         buffer->name);
      for (int lane = 0; lane < lanes; ++lane) {
        std::vector<Expr> at = indices, conditions = guards;
        if (!at.empty()) at.back() = checked_lane(at.back(), lane, place_);
        for (Expr& condition : conditions) condition = checked_lane(condition, lane, place_);
        check_element(buffer, at, conditions);
      }
    }
  }

  void check_element(const Buffer& buffer, const std::vector<Expr>& indices, const std::vector<Expr>& guards) {
    const std::vector<Expr>& shape = buffer_type(buffer).shape;
    for (size_t d = 0; d < indices.size() && d < shape.size(); ++d) {
      check_range(as_int64(indices[d]), int_imm(0), as_int64(shape[d]), guards,
                  fmt::format("buffer '{}': index {{}} of dim {} is out of range [{{}}, {{}})", buffer->name, d));
    }
  }
  // Checks a vector access for which covers_rows() holds: the first lane is in range, and all lanes are in the buffer.
  void check_rows(const Buffer& buffer, std::vector<Expr> indices, int lanes, const std::vector<Expr>& guards) {
    const std::vector<Expr>& shape = buffer_type(buffer).shape;
    indices.back() = int_imm(0);
    check_element(buffer, indices, guards);
    Expr last = int_imm(lanes - 1), size = int_imm(1);
    for (size_t d = shape.size(); d-- > 0;) {
      last = last + as_int64(indices[d]) * size;
      size = size * as_int64(shape[d]);
    }
    check_range(last, int_imm(0), size, guards,
                fmt::format("buffer '{}': the last lane, element {{}} of the buffer, is out of range [{{}}, {{}})",
                            buffer->name));
  }

  // Adds a check that begin <= value < end where the guards hold, unless that is proven.
  void check_range(const Expr& value, const Expr& begin, const Expr& end, const std::vector<Expr>& guards,
                   const std::string& message) {
    std::optional<BoundsChecker> guarded;
    if (!guards.empty()) guarded.emplace(facts_, place_);
    for (const Expr& guard : guards) guarded->assume(guard);
    const Analyzer& facts = guarded ? guarded->facts_ : facts_;
    Expr at = facts.simplify(value);
    bool low = facts.can_prove(begin <= at), high = facts.can_prove(at < end);
    if (low && high) return;
    Expr condition = low ? value < end : high ? begin <= value : begin <= value && value < end;
    Check check{condition, message, {value, begin, end}, place_};
    for (size_t g = guards.size(); g-- > 0;) {
      check.condition = if_then_else(guards[g], check.condition, bool_imm(true));
      for (Expr& number : check.values) number = if_then_else(guards[g], number, int_imm(0));
    }
    bool is_known = std::ranges::any_of(checks_, [&](const Check& other) {
      return other.message == check.message && structural_equal(other.condition, check.condition);
    });
    if (!is_known) checks_.push_back(std::move(check));
  }

  // Returns the checks so far as asserts. Later checks take the conditions of these asserts as facts.
  std::vector<Stmt> take_checks() {
    std::vector<Stmt> result;
    for (const Check& check : std::exchange(checks_, {})) {
      std::string where = check.span ? fmt::format(" ({})", to_string(check.span)) : "";
      result.push_back(make(Assert{check.condition, {check.message + where}, {}, check.values}, check.span));
      assume(check.condition);
    }
    return result;
  }

  Analyzer facts_;
  Span place_;
  std::vector<Check> checks_;  // of the current statement, not yet emitted
};

}  // namespace

PrimFuncRef check_bounds(const PrimFuncRef& function) {
  Stmt body = BoundsChecker(facts_of_params(function), function.span()).stmt(function->body);
  return with_distinct_lets(with_body(function, body));  // an assert repeats the expressions that it tests
}

}  // namespace relaxc
