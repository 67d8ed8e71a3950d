// A buffer moves into the innermost loop to whose iterations it is private, and shrinks to the region that one
// iteration touches (TVM's CompactBufferAllocation). It is private if every element that an iteration reads was written
// earlier in the same iteration:
//   A write whose indices cover a box densely, with one loop per mixed-radix digit, has written the elements of the box
//   that satisfy its conditions. Conditions are expressed over the element: i * 13 + ii < m becomes x < m.
//   A write under `k == first` (the init of a reduction) has happened before all later iterations of k.
//   A write under `t == first or row >= end` (a ring, as rolling_buffer and Halide's storage folding make) skips the
//   rows that the previous iteration of t wrote. Rows are numbered without wrapping: row % size counts as the row.
#include <algorithm>

#include "ir/op_names.h"
#include "tir/analysis/bounds.h"
#include "tir/analysis/conditions.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"

namespace relaxc {

namespace {

struct Loop {
  VarRef var;
  Expr min, extent;
  ForKind kind;
};
// One level of the path around an access: a loop, a condition that holds, or a `while` (neither is set).
struct Frame {
  int id = 0;
  std::optional<Loop> loop = {};
  std::optional<Expr> condition = {};
};
using Path = std::vector<Frame>;

size_t common_prefix(const Path& a, const Path& b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b, {}, &Frame::id, &Frame::id).in1 - a.begin());
}
// Returns the loops among path[begin, end), outermost first.
std::vector<Loop> loops_in(const Path& path, size_t begin, size_t end) {
  std::vector<Loop> result;
  for (size_t i = begin; i < end; ++i) {
    if (path[i].loop) result.push_back(*path[i].loop);
  }
  return result;
}

RunningVars running(const std::vector<Loop>& loops) {
  RunningVars result;
  for (const Loop& loop : loops) result.emplace(loop.var.get(), Range{loop.min, loop.extent});
  return result;
}

struct RegionAccess {
  bool writes;
  std::vector<Expr> indices;
  Path path;
};
struct Memory {
  Ref<AllocBuffer> alloc;
  size_t depth;                             // length of the path at the allocation
  std::vector<RegionAccess> accesses = {};  // in program order
  bool opaque = false;                      // whether it is used other than by elements, too

  const BufferType& type() const { return buffer_type(alloc->buffer); }
  // Returns the length of the path that all accesses share.
  size_t shared_depth() const {
    size_t depth = accesses.empty() ? 0 : accesses[0].path.size();
    for (const RegionAccess& access : accesses) depth = std::min(depth, common_prefix(accesses[0].path, access.path));
    return depth;
  }
};

// Finds the memory that a program allocates and the accesses to it.
class Collector {
 public:
  explicit Collector(const PrimFuncRef& function) : facts(facts_of_params(function)) { visit(function->body); }

  Analyzer facts;  // with the ranges of all loops
  std::vector<Memory> memories;
  bool leaves_loops = false;

 private:
  void visit(const Stmt& s) {
    const For* loop = s.as<For>();
    const IfThenElse* branch = s.as<IfThenElse>();
    if (loop) facts.bind(loop->var, loop->min, loop->extent);
    if (const AllocBuffer* node = s.as<AllocBuffer>()) {
      const BufferType& type = buffer_type(node->buffer);
      index_.emplace(node->buffer.get(), memories.size());
      bool is_plain = !type.elem_offset && !type.data && !node->contents;
      memories.push_back({.alloc = cast<AllocBuffer>(s), .depth = path_.size(), .opaque = !is_plain});
      if (type.data) read(*type.data);
    }
    if (const Evaluate* node = s.as<Evaluate>()) {
      const std::string& name = op_name(node->value);
      leaves_loops = leaves_loops || name == ops::kBreakLoop || name == ops::kContinueLoop || name == ops::kRet;
    }
    if (const BufferStore* node = s.as<BufferStore>()) {
      read(node->value);
      access(*node, true);
      if (node->predicate) read(*node->predicate);
      return;
    }
    auto visit_parts = [&] {
      bool is_else = false;
      visit_children(s, [&](const NodeRef& child, Slot slot) {
        if (is_expr_kind(child.kind()) && !slot.exact) read(cast_handle<Expr>(child));
        if (!is_stmt_kind(child.kind())) return;
        auto visit_body = [&] { visit(cast_handle<Stmt>(child)); };
        if (loop) {
          within({.loop = Loop{loop->var, loop->min, loop->extent, loop->kind}}, visit_body);
        } else if (branch) {
          within({.condition = is_else ? !branch->condition : branch->condition}, visit_body);
          is_else = true;
        } else {
          visit_body();
        }
      });
    };
    if (s.is<While>()) return within({}, visit_parts);
    visit_parts();
  }
  template <class F>
  void within(Frame frame, F visit_parts) {
    frame.id = ++ids_;
    path_.push_back(std::move(frame));
    visit_parts();
    path_.pop_back();
  }
  void read(const Expr& e) {
    if (const BufferLoad* load = e.as<BufferLoad>()) {
      if (load->predicate) read(*load->predicate);
      return access(*load, false);
    }
    if (const Call* call = as_call(e, ops::kIfThenElse)) {
      read(call->args[0]);
      within({.condition = call->args[0]}, [&] { read(call->args[1]); });
      return within({.condition = !call->args[0]}, [&] { read(call->args[2]); });
    }
    // Address arithmetic and calls may use any part of the buffer.
    if (const Call* call = as_call(e, ops::kAddressOf)) mark_opaque(call->args[0]);
    if (e.is<Var>()) return mark_opaque(e);
    visit_children(e, [&](const NodeRef& child, Slot) {
      if (is_expr_kind(child.kind())) read(cast_handle<Expr>(child));
    });
  }
  void mark_opaque(const Expr& e) {
    walk(e, [&](const Ref<Var>& var) {
      if (auto it = index_.find(var.get()); it != index_.end()) memories[it->second].opaque = true;
    });
  }
  template <class Node>  // BufferLoad or BufferStore
  void access(const Node& node, bool writes) {
    for (const Expr& index : node.indices) read(index);
    auto it = index_.find(node.buffer.get());
    if (it == index_.end()) return;
    Memory& memory = memories[it->second];
    memory.opaque = memory.opaque || node.predicate;
    RegionAccess access{writes, node.indices, path_};
    for (Expr& index : access.indices) {
      if (dtype_of(index).lanes == 1) continue;
      const Ramp* lanes = index.as<Ramp>();
      memory.opaque = memory.opaque || !lanes || lanes->lanes < 1;
      if (memory.opaque) return;
      // The lanes of a vector count as iterations of an additional loop.
      VarRef lane = make_var("lane", lanes->base.type());
      Expr zero = int_imm(0, dtype_of(lane)), count = int_imm(lanes->lanes, dtype_of(lane));
      facts.bind(lane, zero, count);
      access.path.push_back({.id = ++ids_, .loop = Loop{lane, zero, count, ForKind::kVectorized}});
      index = lanes->base + lane * lanes->stride;
    }
    for (Expr& index : access.indices) index = cast_to(index, kInt64);
    memory.accesses.push_back(std::move(access));
  }

  int ids_ = 0;
  Path path_;
  std::unordered_map<const NodeHeader*, size_t> index_;
};

// Decides whether the write stored the element that is read, in this or an earlier iteration of loops from `outer` on.
class Coverage {
 public:
  Coverage(const RegionAccess& write, const RegionAccess& read, size_t outer, const std::vector<Expr>& shape,
           const Analyzer& facts)
      : write_(write),
        shared_(common_prefix(write.path, read.path)),
        outer_(outer),
        around_(loops_in(write.path, outer, shared_)),
        facts_(facts),
        indices_(write.indices),
        wanted_(read.indices) {
    for (const Frame& frame : read.path) {
      if (frame.condition) facts_.assume(*frame.condition);
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      const Binary *written = indices_[d].as<Binary>(), *wanted = wanted_[d].as<Binary>();
      bool is_ring = written && wanted && written->op == BinaryOp::kFloorMod && wanted->op == BinaryOp::kFloorMod &&
                     facts_.can_prove_equal(written->b, wanted->b);
      if (is_ring) {
        Expr row = written->a, wanted_row = wanted->a;
        indices_[d] = row;
        wanted_[d] = wanted_row;
        continue;
      }
      facts_.assume(wanted_[d] < cast_to(shape[d], dtype_of(wanted_[d])));
      facts_.assume(wanted_[d] >= int_imm(0, dtype_of(wanted_[d])));
    }
  }

  bool holds() {
    for (size_t i = shared_; i < write_.path.size(); ++i) {
      const Frame& frame = write_.path[i];
      if (!frame.loop && !frame.condition) return false;
      for (Expr& c : conjuncts(frame.condition)) conditions_.push_back(std::move(c));
    }
    std::vector<Expr> open = conditions_;  // each is judged together with all of the others
    std::erase_if(open, [&](const Expr& condition) { return written_before(condition); });
    conditions_ = std::move(open);
    if (!at_first_iteration()) return false;
    for (Loop& digit : digits_) {
      digit.min = substitute(digit.min, first_);
      digit.extent = substitute(digit.extent, first_);
    }
    split_digits();
    return box_holds_read() && conditions_hold();
  }

 private:
  // Handles `t == first or row >= end`, where t is a loop around both accesses. Rows below `end` are in the window of
  // the previous iteration of t, which has written them. The first iteration writes all rows of its window.
  bool written_before(const Expr& condition) const {
    const Binary* either = condition.as<Binary>();
    if (!either || either->op != BinaryOp::kOr) return false;
    for (size_t i = 0; i < around_.size(); ++i) {
      const Loop& t = around_[i];
      bool is_first = uses_var(either->a, t.var) && facts_.can_prove(substitute(either->a, {{t.var.get(), t.min}}));
      if (is_first) return slides(i, either->b);
    }
    return false;
  }
  bool slides(size_t at, const Expr& is_new) const {
    const VarRef& t = around_[at].var;
    auto moves = [&](const Loop& loop) { return uses_var(loop.min, t) || uses_var(loop.extent, t); };
    VarSet between;
    for (size_t i = at + 1; i < around_.size(); ++i) between.insert(around_[i].var.get());
    const RunningVars inside = running(digits_);
    if (std::any_of(around_.begin() + static_cast<long>(at) + 1, around_.end(), moves)) return false;
    if (std::any_of(digits_.begin(), digits_.end(), moves)) return false;
    std::optional<Expr> row;
    for (const Expr& index : indices_) {
      if (!uses_var(index, t)) continue;
      if (row) return false;
      row = index;
    }
    auto window = row ? bounds_over(*row, inside, facts_) : std::nullopt;
    auto reach = slack(is_new);  // >= 0 for new rows
    if (!window || !reach || uses_var(window->min, between)) return false;
    auto step = coefficient(window->min, t, facts_);
    Expr end = facts_.simplify(*row - *reach);  // of the rows that are not new
    if (!step || *step < 1 || uses_var(end, inside)) return false;
    Expr end_before = substitute(window->max, {{t.get(), t - 1}}) + 1;
    if (!facts_.can_prove(end <= end_before)) return false;
    // The other conditions must have the same value for a row in each iteration.
    return std::all_of(conditions_.begin(), conditions_.end(), [&](const Expr& other) {
      const Binary* node = other.as<Binary>();
      if (!uses_var(other, t) || (node && node->op == BinaryOp::kOr)) return true;
      auto value = slack(other);
      auto factor = value ? coefficient(*value, t, facts_) : std::nullopt;
      return factor && *factor % *step == 0 && !uses_var(facts_.simplify(*value - *row * (*factor / *step)), t);
    });
  }

  // Drops the write's conditions that hold in the first iteration of the loops around both accesses. The write then
  // counts as one of that iteration. Returns false if it may not happen there.
  bool at_first_iteration() {
    std::erase_if(conditions_, [&](const Expr& condition) {
      const Binary* node = condition.as<Binary>();
      if (!node || node->op != BinaryOp::kEQ) return false;
      VarMap first;
      for (const Loop& loop : around_) {
        if (uses_var(condition, loop.var)) first.emplace(loop.var.get(), loop.min);
      }
      if (first.empty() || !facts_.can_prove(substitute(condition, first))) return false;
      first_.insert(first.begin(), first.end());
      return true;
    });
    if (first_.empty()) return true;
    auto depends = [&](const Expr& e) { return !same_node(substitute(e, first_), e); };
    for (size_t i = outer_; i < shared_; ++i) {
      const auto& [id, loop, condition] = write_.path[i];
      if (condition && !facts_.can_prove(substitute(*condition, first_))) return false;
      if (loop && (depends(loop->min) || depends(loop->extent))) return false;
    }
    for_each_expr([&](Expr& e) { e = substitute(e, first_); });
    return true;
  }

  // Calls fn with each index and each condition of the write.
  template <class F>
  void for_each_expr(F fn) {
    for (auto* list : {&indices_, &conditions_}) std::ranges::for_each(*list, fn);
  }

  // Splits a fused loop variable that occurs as v // c and v % c into two.
  void split_digits() {
    for (size_t i = 0; i < digits_.size(); ++i) {
      Loop digit = digits_[i];
      std::optional<int64_t> radix;
      for_each_expr([&](const Expr& e) {
        walk(e, [&](const Binary& node) {
          if (node.op != BinaryOp::kFloorDiv && node.op != BinaryOp::kFloorMod) return;
          auto by = as_int(node.b);
          if (same_node(node.a, digit.var) && by && *by > 1 && (!radix || *by < *radix)) radix = by;
        });
      });
      if (!radix || !is_int(digit.min, 0) || facts_.known_divisor(digit.extent) % *radix != 0) continue;
      Loop high = digit, low = digit;
      high.var = make_var("high", digit.var.type());
      high.extent = facts_.simplify(floor_div(digit.extent, *radix));
      low.var = make_var("low", digit.var.type());
      low.extent = int_imm(*radix, dtype_of(digit.var));
      for (const Loop& part : {high, low}) facts_.bind(part.var, part.min, part.extent);
      VarMap map{{digit.var.get(), high.var * *radix + low.var}};
      for_each_expr([&](Expr& e) { e = facts_.simplify(substitute(e, map)); });
      digits_[i--] = high;
      digits_.push_back(low);
    }
  }

  bool box_holds_read() {
    for (size_t d = 0; d < indices_.size(); ++d) {
      std::vector<std::pair<int64_t, const Loop*>> parts;  // scale and digit
      Expr base = indices_[d];
      for (const Loop& digit : digits_) {
        auto scale = coefficient(indices_[d], digit.var, facts_);
        if (!scale || *scale < 0) return false;
        if (*scale == 0) continue;
        if (!used_.insert(digit.var.get()).second) return false;  // another dim uses it
        parts.emplace_back(*scale, &digit);
        base = substitute(base, {{digit.var.get(), digit.min}});
      }
      // Small scales come first: the next scale may be at most the size of the range that they cover.
      std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
        bool known_a = as_int(a.second->extent).has_value(), known_b = as_int(b.second->extent).has_value();
        return known_a != known_b ? known_a : a.first < b.first;
      });
      Expr reach = int_imm(1, dtype_of(base));
      for (const auto& [scale, digit] : parts) {
        auto covered = as_int(reach);
        if (!covered || scale > *covered) return false;
        if (parts.size() > 1 && !is_positive(digit->extent, facts_)) return false;
        reach = reach + (cast_to(digit->extent, dtype_of(reach)) - 1) * scale;
      }
      Expr offset = facts_.simplify(wanted_[d] - base);
      if (!is_non_negative(offset, facts_) || !facts_.can_prove(offset < reach)) return false;
    }
    // Any iteration of the other loops will do, if there is one.
    for (const Loop& digit : digits_) {
      if (used_.contains(digit.var.get())) continue;
      if (!is_positive(digit.extent, facts_)) return false;
      for (Expr& condition : conditions_) condition = substitute(condition, {{digit.var.get(), digit.min}});
    }
    return true;
  }

  bool conditions_hold() {
    return std::all_of(conditions_.begin(), conditions_.end(), [&](const Expr& condition) {
      if (!uses_var(condition, used_)) return facts_.can_prove(condition);
      std::optional<Expr> value = slack(condition);
      if (!value) return false;
      for (size_t d = 0; d < indices_.size(); ++d) {
        const Loop* digit = nullptr;
        for (const Loop& any : digits_) {
          if (uses_var(indices_[d], any.var)) digit = &any;
        }
        if (!digit) continue;
        auto of_index = coefficient(indices_[d], digit->var, facts_), scale = coefficient(*value, digit->var, facts_);
        if (!of_index || !scale || *of_index == 0 || *scale % *of_index != 0) continue;
        int64_t factor = *scale / *of_index;
        Expr rest = facts_.simplify(*value - indices_[d] * factor);
        if (uses_var(rest, used_)) continue;
        if (is_non_negative(facts_.simplify(wanted_[d] * factor + rest), facts_)) return true;
      }
      return false;
    });
  }

  const RegionAccess& write_;
  size_t shared_, outer_;
  std::vector<Loop> around_;  // the loops around both accesses, inside of path[0, outer)
  Analyzer facts_;
  std::vector<Expr> indices_, wanted_, conditions_;
  VarMap first_;
  std::vector<Loop> digits_ = loops_in(write_.path, shared_, write_.path.size());  // the loops around the write only
  VarSet used_;                                                                    // digits that the indices use
};

// The largest constant that replaces a size known only at run time. With T.vscale() it may be 16 times too large.
constexpr int64_t kLargestBound = 4096;

class Compactor final : public Rewriter {
 public:
  explicit Compactor(const PrimFuncRef& function) : function_(function), program_(function), facts_(program_.facts) {
    for (const VarRef& param : function->params) params_.insert(param.get());
    for (const VarRef& dim : symbolic_dims(function)) params_.insert(dim.get());
  }

  PrimFuncRef run() {
    if (program_.leaves_loops) return function_;
    for (const Memory& memory : program_.memories) {
      bool moves = !memory.opaque && !memory.accesses.empty() && move(memory);
      if (!moves) serialize_sharing_loops(memory, memory.shared_depth());
    }
    if (moves_.empty() && serial_.empty()) return function_;
    auto from_start = [&](const Expr& e, const Expr& start) {
      return facts_.simplify(e - cast_to(start, dtype_of(e)));
    };
    Stmt body = map_elements(stmt(function_->body), [&](const Buffer& buffer, const std::vector<Expr>& indices) {
      auto move = moves_.find(buffer.get());
      if (move == moves_.end()) return std::optional<Element>();
      Element result = move->second;
      for (size_t d = 0; d < indices.size(); ++d) {
        Expr& start = result.indices[d];
        const Ramp* lanes = indices[d].as<Ramp>();
        start =
            lanes ? ramp(from_start(lanes->base, start), lanes->stride, lanes->lanes) : from_start(indices[d], start);
      }
      return std::optional(result);
    });
    return with_body(function_, body);
  }

 private:
  Stmt stmt(const Stmt& s) override {
    const AllocBuffer* alloc = s.as<AllocBuffer>();
    if (alloc && moves_.contains(alloc->buffer.get())) return no_op();
    Stmt result = Rewriter::stmt(s);
    const For* loop = s.as<For>();
    const std::vector<Stmt>* allocs = loop ? find_value(allocs_, loop->var.get()) : nullptr;
    bool is_serial = loop && serial_.contains(loop->var.get());
    if (!allocs && !is_serial) return result;
    return edited<For>(result, [&](For& copy) {
      if (is_serial) copy.kind = ForKind::kSerial;
      if (allocs) copy.body = followed_by(*allocs, copy.body, s.span());
    });
  }

  // Moves the memory into the innermost loop to whose iterations it is private. Returns whether there is one.
  bool move(const Memory& memory) {
    const Path& path = memory.accesses[0].path;
    const Buffer& buffer = memory.alloc->buffer;
    size_t depth = memory.shared_depth();
    for (size_t i = memory.depth; i < depth; ++i) {
      if (path[i].loop && path[i].loop->kind == ForKind::kVectorized) depth = i;
    }
    for (size_t i = depth; i-- > memory.depth;) {
      if (!path[i].loop || !is_private(memory, i + 1)) continue;
      BufferType shrunk = memory.type();
      Element start{buffer, {}};  // where the region begins
      for (size_t d = 0; d < shrunk.shape.size(); ++d) {
        Range region = region_in(memory, i + 1, d);
        shrunk.shape[d] = region.extent;
        start.indices.push_back(region.min);
      }
      start.buffer = make_var(buffer->name, make(std::move(shrunk)), buffer.span());
      Stmt alloc = make(AllocBuffer{start.buffer, memory.alloc->annotations}, memory.alloc.span());
      allocs_[path[i].loop->var.get()].push_back(alloc);
      moves_.emplace(buffer.get(), std::move(start));
      // Iterations of a parallel loop between the allocation and the accesses must not share elements.
      serialize_sharing_loops(memory, depth, i + 1);
      return true;
    }
    return false;
  }

  // Returns whether each iteration of the innermost loop of path[0, outer) writes every element that it reads.
  bool is_private(const Memory& memory, size_t outer) const {
    const auto begin = memory.accesses.begin();
    auto is_covered = [&](std::vector<RegionAccess>::const_iterator at, const RegionAccess& read) {
      return std::any_of(begin, at, [&](const RegionAccess& write) {
        return write.writes && Coverage(write, read, outer, memory.type().shape, facts_).holds();
      });
    };
    // The alternatives of a choice, such as those of a transform, read the same elements: what is written whatever the
    // choice is proven once.
    std::vector<RegionAccess> known;
    for (auto at = begin; at != memory.accesses.end(); ++at) {
      if (at->writes) continue;
      const RegionAccess anyway = without_choices(*at);
      const bool has_choice = anyway.path.size() < at->path.size();
      auto is_same = [&](const RegionAccess& other) {
        return other.path.size() == anyway.path.size() &&
               common_prefix(other.path, anyway.path) == anyway.path.size() &&
               std::ranges::equal(other.indices, anyway.indices,
                                  [](const Expr& a, const Expr& b) { return structural_equal(a, b); });
      };
      if (has_choice && std::ranges::any_of(known, is_same)) continue;
      if (has_choice && is_covered(at, anyway)) {
        known.push_back(anyway);
      } else if (!is_covered(at, *at)) {
        return false;
      }
    }
    return true;
  }
  // Returns the read without the conditions inside of its innermost loop.
  static RegionAccess without_choices(RegionAccess read) {
    while (!read.path.empty() && read.path.back().condition) read.path.pop_back();
    return read;
  }

  // Returns the range of these indices of dim d, one per access, over the iterations inside of path[0, outer).
  std::optional<Range> range_of(const Memory& memory, size_t outer, size_t d, const std::vector<Expr>& indices) const {
    const Expr& dim = memory.type().shape[d];
    std::optional<Range> result;
    for (size_t i = 0; i < indices.size(); ++i) {
      const Path& path = memory.accesses[i].path;
      RunningVars inside = running(loops_in(path, outer, path.size()));
      Range range = range_over({indices[i], int_imm(1, dtype_of(dim))}, dim, inside, facts_);
      result = result ? hull(*result, range, dim, facts_) : range;
    }
    return result;
  }

  // Returns the part of dim d that one iteration touches. Its size is known on entry, else scratch would accumulate.
  Range region_in(const Memory& memory, size_t outer, size_t d) const {
    const Expr& dim = memory.type().shape[d];
    DType dtype = dtype_of(dim);
    Range all{int_imm(0, dtype), dim};
    if (!memory.type().strides.empty()) return all;  // strides are those of the whole buffer
    auto index = [&](const RegionAccess& access) { return cast_to(access.indices[d], dtype); };
    Range region = *range_of(memory, outer, d, map_each(memory.accesses, index));
    Expr extent = facts_.simplify(region.extent);
    if (!as_int(extent)) {
      // A small constant bound makes better memory than a size that is computed at run time.
      int64_t most = constant_above(extent, facts_);
      if (most <= kLargestBound) extent = int_imm(most, dtype);
      // The ends of a loop that never runs may cross.
      if (!is_non_negative(extent, facts_)) extent = facts_.simplify(max(extent, int_imm(0, dtype)));
    }
    VarSet outside = params_;
    for (const Loop& loop : loops_in(memory.accesses[0].path, 0, outer)) outside.insert(loop.var.get());
    auto size = as_int(extent), most = as_int(dim);
    bool is_known = only(region.min, outside) && only(extent, params_) && (size || facts_.can_prove(extent <= dim));
    bool shrinks = !most || (size && *size < *most);
    return is_known && shrinks ? Range{facts_.simplify(region.min), extent} : all;
  }
  static bool only(const Expr& e, const VarSet& vars) {
    return !any_node(e, [&](const NodeRef& node) {
      return node.is<BufferLoad>() || (node.is<Var>() && !vars.contains(node.get()));
    });
  }

  // Makes a parallel loop serial if it contains all accesses to memory allocated outside of it, unless its iterations
  // use disjoint elements. The schedule relied on the memory moving into the loop.
  void serialize_sharing_loops(const Memory& memory, size_t depth, size_t from = 0) {
    if (memory.opaque) return;  // not made by a schedule
    for (size_t i = std::max(from, memory.depth); i < depth; ++i) {
      const auto& loop = memory.accesses[0].path[i].loop;
      if (loop && loop->kind == ForKind::kParallel && !is_disjoint(memory, i)) serial_.insert(loop->var.get());
    }
  }
  bool is_disjoint(const Memory& memory, size_t at) const {
    const VarRef& var = memory.accesses[0].path[at].loop->var;
    for (size_t d = 0; d < memory.type().shape.size(); ++d) {
      DType dtype = dtype_of(memory.type().shape[d]);
      std::optional<int64_t> step;
      std::vector<Expr> offsets;
      for (const RegionAccess& access : memory.accesses) {
        Expr index = cast_to(access.indices[d], dtype);
        auto scale = coefficient(index, var, facts_);
        if (!scale || *scale <= 0 || (step && *step != *scale)) break;
        step = scale;
        offsets.push_back(facts_.simplify(index - cast_to(var, dtype) * *scale));
      }
      if (offsets.size() < memory.accesses.size()) continue;
      Range rest = *range_of(memory, at + 1, d, offsets);
      if (facts_.can_prove(rest.extent <= int_imm(*step, dtype_of(rest.extent)))) return true;
    }
    return false;
  }

  const PrimFuncRef& function_;
  Collector program_;
  const Analyzer& facts_;
  VarSet params_;
  std::unordered_map<const NodeHeader*, Element> moves_;             // keyed by the original buffer
  std::unordered_map<const NodeHeader*, std::vector<Stmt>> allocs_;  // keyed by the loop's variable
  VarSet serial_;                                                    // loop variables
};

}  // namespace

// Moves allocated buffers into the innermost loop to whose iterations they are private, and shrinks them to the region
// that one iteration touches. A buffer with strides moves without shrinking. A parallel loop around all accesses
// becomes serial if its iterations would share elements.
PrimFuncRef compact_buffers(const PrimFuncRef& function) { return Compactor(function).run(); }

}  // namespace relaxc
