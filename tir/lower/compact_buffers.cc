// A buffer moves to the loop whose iterations each use it for themselves, and shrinks to the region that one iteration
// touches (storage folding in Halide, CompactBufferAllocation in TVM). A loop qualifies when every element that an
// iteration reads was written earlier in the same iteration:
//   a write whose indices run over a box, densely and with one loop per digit, has written the elements of the box
//   that its conditions let through; conditions are rephrased over the element (i * 13 + ii < m becomes x < m);
//   a write under `k == first` (the init of a reduction) happened before all later iterations of k;
//   a write under `t == first or row >= end` (a ring, rolling_buffer) leaves out the rows that the previous iteration
//   of t has made. The rows of a ring are numbered without wrapping: the element at row % size is taken for the row.
#include <algorithm>
#include <ranges>

#include "ir/intrinsics.h"
#include "tir/analysis/bounds.h"
#include "tir/analysis/linear.h"
#include "tir/lower/lower.h"
#include "tir/lower/replace.h"

namespace relaxc {

namespace {

// A frame of the path around an access: a loop, a condition that holds, or (neither) a `while`.
struct Frame {
  int id = 0;
  const For* loop = nullptr;
  std::optional<Expr> condition = {};
};
using Path = std::vector<Frame>;

struct Access {
  bool writes;
  std::vector<Expr> indices;
  Path path;
};
struct Memory {
  Ref<AllocBuffer> alloc;
  size_t depth;                       // length of the path at the allocation
  std::vector<Access> accesses = {};  // in program order
  bool opaque = false;                // whether it is used as a whole, too

  const std::vector<Expr>& shape() const { return buffer_type(alloc->buffer).shape; }
};

class Collector {
 public:
  explicit Collector(const PrimFuncRef& function) : facts(facts_of_params(function)) {
    walk(function->body, [&](const Ref<Call>& call) {
      const std::string& name = op_name(call);
      leaves_loops = leaves_loops || name == "tir.break_loop" || name == "tir.continue_loop" || name == "tir.ret";
    });
    visit(function->body);
  }

  Analyzer facts;  // with the ranges of all loops
  std::vector<Memory> memories;
  bool leaves_loops = false;

 private:
  void visit(const Stmt& s) {
    if (const For* node = s.as<For>()) {
      read(node->min);
      read(node->extent);
      facts.bind(node->var, node->min, node->extent);
      inside({.loop = node}, [&] { visit(node->body); });
    } else if (const IfThenElse* node = s.as<IfThenElse>()) {
      read(node->condition);
      inside({.condition = node->condition}, [&] { visit(node->then_body); });
      if (node->else_body) inside({.condition = !node->condition}, [&] { visit(*node->else_body); });
    } else if (const While* node = s.as<While>()) {
      inside({}, [&] {
        read(node->condition);
        visit(node->body);
      });
    } else if (const AllocBuffer* node = s.as<AllocBuffer>()) {
      const BufferType& type = buffer_type(node->buffer);
      bool plain = !type.elem_offset && !type.data && !node->contents;
      index_.emplace(node->buffer.get(), memories.size());
      memories.push_back({.alloc = cast<AllocBuffer>(s), .depth = path_.size(), .opaque = !plain});
    } else if (const BufferStore* node = s.as<BufferStore>()) {
      read(node->value);
      for (const Expr& index : node->indices) read(index);
      access(node->buffer, node->indices, true, node->predicate.has_value());
      if (node->predicate) read(*node->predicate);
    } else if (const AttrStmt* node = s.as<AttrStmt>()) {
      read(node->value);
      visit(node->body);
    } else {
      visit_children(s, [&](const NodeRef& child, Slot) {
        is_stmt_kind(child.kind()) ? visit(cast_handle<Stmt>(child)) : read(cast_handle<Expr>(child));
      });
    }
  }
  template <class Visit>
  void inside(Frame frame, Visit visit_body) {
    frame.id = ++ids_;
    path_.push_back(std::move(frame));
    visit_body();
    path_.pop_back();
  }
  // Address arithmetic and calls see a buffer as a whole.
  void read(const Expr& e) {
    if (const BufferLoad* load = e.as<BufferLoad>()) {
      for (const Expr& index : load->indices) read(index);
      if (load->predicate) read(*load->predicate);
      return access(load->buffer, load->indices, false, load->predicate.has_value());
    }
    if (const Call* call = as_call(e, "tir.if_then_else")) {
      read(call->args[0]);
      inside({.condition = call->args[0]}, [&] { read(call->args[1]); });
      return inside({.condition = !call->args[0]}, [&] { read(call->args[2]); });
    }
    if (const Call* call = as_call(e, "tir.address_of")) mark_opaque(call->args[0]);
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
  void access(const Buffer& buffer, const std::vector<Expr>& indices, bool writes, bool masked) {
    auto it = index_.find(buffer.get());
    if (it == index_.end()) return;
    Memory& memory = memories[it->second];
    memory.opaque = memory.opaque || masked;
    // The lanes of a vector count as iterations of an additional loop.
    Access access{writes, indices, path_};
    for (Expr& index : access.indices) {
      if (dtype_of(index).lanes == 1) continue;
      const Ramp* lanes = index.as<Ramp>();
      memory.opaque = memory.opaque || !lanes || lanes->lanes < 1;
      if (memory.opaque) return;
      VarRef lane = make_var("lane", lanes->base.type());
      lane_loops_.push_back(loop(lane, int_imm(lanes->lanes, dtype_of(lane)), no_op()));
      const For* each = lane_loops_.back().as<For>();
      facts.bind(lane, each->min, each->extent);
      access.path.push_back({.id = ++ids_, .loop = each});
      index = lanes->base + lane * lanes->stride;
    }
    for (Expr& index : access.indices) index = cast_to(index, kInt64);
    memory.accesses.push_back(std::move(access));
  }

  int ids_ = 0;
  Path path_;
  std::vector<Stmt> lane_loops_;  // of which paths hold the payloads
  std::unordered_map<const NodeHeader*, size_t> index_;
};

size_t common_prefix(const Path& a, const Path& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n].id == b[n].id) ++n;
  return n;
}

// Decides whether the write, in this or an earlier iteration of the loops inside path[0, outer), has written the
// elements that are read.
class Coverage {
 public:
  Coverage(const Access& write, const Access& read, size_t outer, const std::vector<Expr>& shape, const Analyzer& facts)
      : write_(write), read_(read), outer_(outer), facts_(facts), indices_(write.indices), wanted_(read.indices) {
    for (const Frame& frame : read.path) {
      if (frame.condition) facts_.assume(*frame.condition);
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      const Binary *made = indices_[d].as<Binary>(), *wanted = wanted_[d].as<Binary>();
      bool is_ring = made && wanted && made->op == BinaryOp::kFloorMod && wanted->op == BinaryOp::kFloorMod &&
                     facts_.can_prove_equal(made->b, wanted->b);
      if (is_ring) {
        indices_[d] = Expr(made->a);
        wanted_[d] = Expr(wanted->a);
      } else {
        facts_.assume(wanted_[d] < cast_to(shape[d], kInt64));
        facts_.assume(wanted_[d] >= int_imm(0));
      }
    }
  }

  bool holds() {
    size_t shared = common_prefix(write_.path, read_.path);
    for (size_t i = shared; i < write_.path.size(); ++i) {
      const Frame& frame = write_.path[i];
      if (!frame.loop && !frame.condition) return false;
      if (frame.condition) {
        for (Expr& c : conjuncts(*frame.condition)) conditions_.push_back(std::move(c));
      }
    }
    std::vector<Expr> open;  // each is judged together with all of the others
    for (const Expr& condition : conditions_) {
      if (!made_before(condition, shared)) open.push_back(condition);
    }
    conditions_ = std::move(open);
    if (!at_first_iteration(shared)) return false;
    for (size_t i = shared; i < write_.path.size(); ++i) {
      if (const For* loop = write_.path[i].loop)
        digits_.push_back({loop->var, substitute(loop->min, first_), substitute(loop->extent, first_)});
    }
    split_digits();
    return box_holds_read() && conditions_let_through();
  }

 private:
  struct Digit {
    VarRef var;
    Expr min, extent;
  };

  // Handles `t == first or row >= end`, where t is a loop around both accesses. Rows below the end belong to the window
  // of the previous iteration of t, which has written them by the same argument, and the first iteration makes all of
  // its window.
  bool made_before(const Expr& condition, size_t shared) {
    const Binary* either = condition.as<Binary>();
    if (!either || either->op != BinaryOp::kOr) return false;
    for (size_t i = outer_; i < shared; ++i) {
      const For* loop = write_.path[i].loop;
      if (!loop || !mentions(either->a, loop->var)) continue;
      if (facts_.can_prove(substitute(either->a, {{loop->var.get(), loop->min}}))) return slides(i, either->b);
    }
    return false;
  }
  bool slides(size_t at, const Expr& is_new) const {
    const VarRef& t = write_.path[at].loop->var;
    NodeSet moving{t.get()}, inside, running_keys;
    RunningVars running;
    size_t shared = common_prefix(write_.path, read_.path);
    for (size_t i = at + 1; i < write_.path.size(); ++i) {
      const For* loop = write_.path[i].loop;
      if (!loop) continue;
      if (mentions(loop->min, moving) || mentions(loop->extent, moving)) return false;
      (i < shared ? inside : running_keys).insert(loop->var.get());
      if (i >= shared) running.emplace(loop->var.get(), Range{loop->min, loop->extent});
    }
    std::optional<Expr> row;
    for (const Expr& index : indices_) {
      if (!mentions(index, moving)) continue;
      if (row) return false;
      row = index;
    }
    auto window = row ? bounds_over(*row, running, facts_) : std::nullopt;
    auto reach = slack(is_new);  // >= 0 for new rows
    if (!window || !reach || mentions(window->min, inside)) return false;
    auto step = coefficient(window->min, t, facts_);
    Expr end = facts_.simplify(*row - *reach);  // of the rows that are not new
    auto before = [&](const Expr& e) { return substitute(e, {{t.get(), t - int_imm(1, dtype_of(t))}}); };
    if (!step || *step < 1 || mentions(end, running_keys)) return false;
    if (!facts_.can_prove(end <= before(window->max) + int_imm(1, dtype_of(end)))) return false;
    // The other conditions must say the same about a row in each iteration.
    return std::ranges::all_of(conditions_, [&](const Expr& other) {
      const Binary* node = other.as<Binary>();
      if (!mentions(other, moving) || (node && node->op == BinaryOp::kOr)) return true;
      auto value = slack(other);
      auto factor = value ? coefficient(*value, t, facts_) : std::nullopt;
      return factor && *factor % *step == 0 && !mentions(facts_.simplify(*value - *row * (*factor / *step)), moving);
    });
  }

  // Finds the conditions of the write that hold in the first iteration of the loops around both accesses. The write is
  // taken to happen in that iteration.
  bool at_first_iteration(size_t shared) {
    std::erase_if(conditions_, [&](const Expr& condition) {
      const Binary* node = condition.as<Binary>();
      if (!node || node->op != BinaryOp::kEQ) return false;
      VarMap first;
      for (size_t i = outer_; i < shared; ++i) {
        const For* loop = write_.path[i].loop;
        if (loop && mentions(condition, loop->var)) first.emplace(loop->var.get(), loop->min);
      }
      if (first.empty() || !facts_.can_prove(substitute(condition, first))) return false;
      first_.insert(first.begin(), first.end());
      return true;
    });
    if (first_.empty()) return true;
    for (size_t i = outer_; i < shared; ++i) {
      const Frame& frame = write_.path[i];
      if (frame.condition && !facts_.can_prove(substitute(*frame.condition, first_))) return false;
      if (!frame.loop) continue;
      for (const Expr& end : {frame.loop->min, frame.loop->extent}) {
        if (!same_node(substitute(end, first_), end)) return false;
      }
    }
    rewrite_all([&](const Expr& e) { return substitute(e, first_); });
    return true;
  }

  // Splits a fused loop that occurs as v // c and v % c into two.
  void split_digits() {
    for (size_t i = 0; i < digits_.size(); ++i) {
      Digit digit = digits_[i];
      std::optional<int64_t> radix;
      rewrite_all([&](const Expr& e) {
        walk(e, [&](const Binary& node) {
          if (node.op != BinaryOp::kFloorDiv && node.op != BinaryOp::kFloorMod) return;
          auto by = as_int(node.b);
          if (same_node(node.a, digit.var) && by && *by > 1 && (!radix || *by < *radix)) radix = by;
        });
        return e;
      });
      if (!radix || !is_int(digit.min, 0) || facts_.known_divisor(digit.extent) % *radix != 0) continue;
      DType dtype = dtype_of(digit.var);
      Digit high{make_var("high", digit.var.type()), digit.min, facts_.simplify(floor_div(digit.extent, *radix))};
      Digit low{make_var("low", digit.var.type()), digit.min, int_imm(*radix, dtype)};
      for (const Digit& part : {high, low}) facts_.bind(part.var, part.min, part.extent);
      VarMap map{{digit.var.get(), high.var * *radix + low.var}};
      rewrite_all([&](const Expr& e) { return facts_.simplify(substitute(e, map)); });
      digits_[i--] = high;
      digits_.push_back(low);
    }
  }
  template <class Change>
  void rewrite_all(Change change) {
    for (auto* list : {&indices_, &conditions_}) {
      for (Expr& e : *list) e = change(e);
    }
  }

  bool box_holds_read() {
    std::vector<int> dims(digits_.size(), -1);
    for (size_t d = 0; d < indices_.size(); ++d) {
      struct Part {
        int64_t scale;
        const Digit* digit;
      };
      std::vector<Part> parts;
      Expr base = indices_[d];
      for (size_t i = 0; i < digits_.size(); ++i) {
        auto scale = coefficient(indices_[d], digits_[i].var, facts_);
        if (!scale || *scale < 0) return false;
        if (*scale == 0) continue;
        if (dims[i] >= 0) return false;
        dims[i] = static_cast<int>(d);
        parts.push_back({*scale, &digits_[i]});
        base = substitute(base, {{digits_[i].var.get(), digits_[i].min}});
      }
      // Small steps come first: the next may be as long as the range that they cover.
      std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
        bool known_a = as_int(a.digit->extent).has_value(), known_b = as_int(b.digit->extent).has_value();
        return known_a != known_b ? known_a : a.scale < b.scale;
      });
      Expr reach = int_imm(1, dtype_of(base));
      for (const Part& part : parts) {
        auto covered = as_int(reach);
        if (!covered || part.scale > *covered) return false;
        if (parts.size() > 1 && !is_positive(part.digit->extent, facts_)) return false;
        reach = reach + (cast_to(part.digit->extent, dtype_of(reach)) - 1) * part.scale;
      }
      Expr offset = facts_.simplify(wanted_[d] - base);
      if (!is_non_negative(offset, facts_) || !facts_.can_prove(offset < reach)) return false;
    }
    // Any iteration of the other loops will do, if there is one.
    for (size_t i = 0; i < digits_.size(); ++i) {
      if (dims[i] >= 0) {
        used_.insert(digits_[i].var.get());
        continue;
      }
      if (!is_positive(digits_[i].extent, facts_)) return false;
      for (Expr& condition : conditions_) condition = substitute(condition, {{digits_[i].var.get(), digits_[i].min}});
    }
    return true;
  }

  bool conditions_let_through() {
    return std::ranges::all_of(conditions_, [&](const Expr& condition) {
      if (!mentions(condition, used_)) return facts_.can_prove(condition);
      std::optional<Expr> value = slack(condition);
      if (!value) return false;
      for (size_t d = 0; d < indices_.size(); ++d) {
        auto last_first = std::views::reverse(digits_);
        auto digit = std::ranges::find_if(last_first, [&](const Digit& any) { return mentions(indices_[d], any.var); });
        if (digit == last_first.end()) continue;
        auto of_index = coefficient(indices_[d], digit->var, facts_), scale = coefficient(*value, digit->var, facts_);
        if (!of_index || !scale || *of_index == 0 || *scale % *of_index != 0) continue;
        int64_t factor = *scale / *of_index;
        Expr rest = facts_.simplify(*value - indices_[d] * factor);
        if (mentions(rest, used_)) continue;
        if (is_non_negative(facts_.simplify(wanted_[d] * factor + rest), facts_)) return true;
      }
      return false;
    });
  }

  const Access &write_, &read_;
  size_t outer_;
  Analyzer facts_;
  std::vector<Expr> indices_, wanted_, conditions_;
  VarMap first_;
  std::vector<Digit> digits_;
  NodeSet used_;  // digits that indices mention
};

// Bounds a dim whose size is not known before the program runs (tiles of T.vscale() rows may be 16 times too large).
constexpr int64_t kLargestGuess = 4096;

struct Move {
  Buffer buffer;
  std::vector<Expr> start;  // where the region begins
};

class Compactor {
 public:
  explicit Compactor(const PrimFuncRef& function) : function_(function), program_(function) {
    for (const VarRef& param : function->params) params_.insert(param.get());
    for (const VarRef& dim : symbolic_dims(function)) params_.insert(dim.get());
  }

  PrimFuncRef run() {
    if (program_.leaves_loops) return function_;
    for (const Memory& memory : program_.memories) {
      if (memory.opaque || memory.accesses.empty()) continue;
      move(memory);
    }
    for (const Memory& memory : program_.memories) {
      if (!moves_.contains(memory.alloc->buffer.get())) serialize_sharing_loops(memory, shared_depth(memory));
    }
    if (moves_.empty() && serial_.empty()) return function_;
    return with_body(function_, with_moves(function_->body));
  }

 private:
  static size_t shared_depth(const Memory& memory) {
    if (memory.accesses.empty()) return 0;
    const Path& first = memory.accesses[0].path;
    size_t depth = first.size();
    for (const Access& access : memory.accesses) depth = std::min(depth, common_prefix(first, access.path));
    return depth;
  }

  void move(const Memory& memory) {
    const Path& path = memory.accesses[0].path;
    size_t depth = shared_depth(memory);
    for (size_t i = memory.depth; i < depth; ++i) {
      if (path[i].loop && path[i].loop->kind == ForKind::kVectorized) depth = i;
    }
    for (size_t i = depth; i-- > memory.depth;) {
      if (!path[i].loop || !is_private(memory, i + 1)) continue;
      BufferType shrunk = buffer_type(memory.alloc->buffer);
      Move move{memory.alloc->buffer, {}};
      for (const Range& range : region_in(memory, i + 1)) {
        shrunk.shape[move.start.size()] = range.extent;
        move.start.push_back(range.min);
      }
      move.buffer = make_var(memory.alloc->buffer->name, make(std::move(shrunk)), memory.alloc->buffer.span());
      AllocBuffer alloc = *memory.alloc;
      alloc.buffer = move.buffer;
      allocs_[path[i].loop->var.get()].push_back(make(std::move(alloc), memory.alloc.span()));
      moves_.emplace(memory.alloc->buffer.get(), std::move(move));
      // An iteration of a parallel loop in between must not touch the elements of another one.
      serialize_sharing_loops(memory, depth, i + 1);
      return;
    }
  }

  // Returns whether every element that an iteration of the innermost loop of path[0, outer) reads is written in that
  // iteration.
  bool is_private(const Memory& memory, size_t outer) const {
    auto is_covered = [&](const Access& read) {
      return std::any_of(memory.accesses.data(), &read, [&](const Access& write) {
        return write.writes && Coverage(write, read, outer, memory.shape(), program_.facts).holds();
      });
    };
    return std::ranges::all_of(memory.accesses, [&](const Access& each) { return each.writes || is_covered(each); });
  }

  // Returns the region that one iteration touches. Sizes are constants or known on entry, since memory of other sizes
  // would pile up.
  std::vector<Range> region_in(const Memory& memory, size_t outer) const {
    const std::vector<Expr>& shape = memory.shape();
    const Analyzer& facts = program_.facts;
    bool has_strides = !buffer_type(memory.alloc->buffer).strides.empty();  // strides are made for the whole buffer
    NodeSet outside = params_;
    for (size_t i = 0; i < outer; ++i) {
      if (const For* loop = memory.accesses[0].path[i].loop) outside.insert(loop->var.get());
    }
    std::vector<Range> result;
    for (size_t d = 0; d < shape.size(); ++d) {
      std::optional<Range> region;
      for (const Access& access : memory.accesses)
        region = with_range(region, cast_to(access.indices[d], dtype_of(shape[d])), shape[d], access, outer);
      Expr zero = int_imm(0, dtype_of(shape[d])), extent = facts.simplify(region->extent);
      if (!as_int(extent)) {
        // A small constant bound makes better memory than a size that is computed at run time.
        int64_t most = constant_above(extent, facts);
        if (most <= kLargestGuess) extent = int_imm(most, dtype_of(extent));
        // The ends of a loop that never runs may cross.
        if (!is_non_negative(extent, facts)) extent = facts.simplify(max(extent, zero));
      }
      bool whole = has_strides || !only(region->min, outside) || !only(extent, params_) ||
                   (!as_int(extent) && !facts.can_prove(extent <= shape[d]));
      auto size = as_int(extent), dim = as_int(shape[d]);
      whole = whole || (dim && (!size || *size >= *dim));
      result.push_back(whole ? Range{zero, shape[d]} : Range{facts.simplify(region->min), extent});
    }
    return result;
  }
  static bool only(const Expr& e, const NodeSet& vars) {
    bool result = !holds<BufferLoad>(e);
    walk(e, [&](const Ref<Var>& var) { result = result && vars.contains(var.get()); });
    return result;
  }
  // Returns the region extended by the index of an access, over the loops inside path[0, outer).
  Range with_range(const std::optional<Range>& region, const Expr& index, const Expr& dim, const Access& access,
                   size_t outer) const {
    RunningVars running;
    for (size_t i = outer; i < access.path.size(); ++i) {
      if (const For* loop = access.path[i].loop) running.emplace(loop->var.get(), Range{loop->min, loop->extent});
    }
    Range range = range_over({index, int_imm(1, dtype_of(index))}, dim, running, program_.facts);
    return region ? hull(*region, range, dim, program_.facts) : range;
  }

  // Makes parallel loops serial that contain all accesses of memory outside of them, unless each iteration has elements
  // that no other one uses. The schedule relied on the memory moving into the loop.
  void serialize_sharing_loops(const Memory& memory, size_t depth, size_t from = 0) {
    for (size_t i = std::max(from, memory.depth); i < depth; ++i) {
      const For* loop = memory.accesses[0].path[i].loop;
      if (loop && loop->kind == ForKind::kParallel && !separates_iterations(memory, i)) serial_.insert(loop->var.get());
    }
  }
  // Returns whether the iterations of that loop use different elements.
  bool separates_iterations(const Memory& memory, size_t at) const {
    if (memory.opaque) return true;  // a schedule did not make it
    const VarRef& var = memory.accesses[0].path[at].loop->var;
    return std::ranges::any_of(std::views::iota(size_t{0}, memory.shape().size()), [&](size_t d) {
      const Expr& dim = memory.shape()[d];
      std::optional<int64_t> step;
      std::optional<Range> rest;
      for (const Access& access : memory.accesses) {
        Expr index = cast_to(access.indices[d], dtype_of(dim));
        auto factor = coefficient(index, var, program_.facts);
        if (!factor || *factor <= 0 || (step && *step != *factor)) return false;
        step = factor;
        Expr offset = program_.facts.simplify(index - cast_to(var, dtype_of(dim)) * *factor);
        rest = with_range(rest, offset, dim, access, at + 1);
      }
      return program_.facts.can_prove(rest->extent <= int_imm(*step, dtype_of(rest->extent)));
    });
  }

  Expr shifted(const Expr& index, const Expr& start) const {
    auto from_start = [&](const Expr& e) { return program_.facts.simplify(e - cast_to(start, dtype_of(e))); };
    const Ramp* lanes = index.as<Ramp>();
    return lanes ? ramp(from_start(lanes->base), lanes->stride, lanes->lanes) : from_start(index);
  }
  Stmt with_moves(const Stmt& body) const {
    Stmt redirected = redirect(body, [&](const Buffer& buffer, std::vector<Expr>& indices) -> std::optional<Buffer> {
      auto move = moves_.find(buffer.get());
      if (move == moves_.end()) return std::nullopt;
      for (size_t d = 0; d < indices.size(); ++d) indices[d] = shifted(indices[d], move->second.start[d]);
      return move->second.buffer;
    });
    NodeSet visited;  // loops, which a rewrite may meet a second time as the only statement of a list
    return rewrite(
        redirected,
        [&](const Ref<AllocBuffer>& alloc) -> std::optional<Stmt> {
          return moves_.contains(alloc->buffer.get()) ? std::optional(no_op()) : std::nullopt;
        },
        [&](const Ref<For>& loop) -> std::optional<Stmt> {
          auto allocs = allocs_.find(loop->var.get());
          bool is_serial = serial_.contains(loop->var.get());
          if ((allocs == allocs_.end() && !is_serial) || !visited.insert(loop->var.get()).second) return std::nullopt;
          For copy = *loop;
          if (is_serial) copy.kind = ForKind::kSerial;
          if (allocs != allocs_.end()) {
            std::vector<Stmt> stmts = allocs->second;
            stmts.push_back(copy.body);
            copy.body = seq(std::move(stmts), loop.span());
          }
          return make(std::move(copy), loop.span());
        });
  }

  const PrimFuncRef& function_;
  Collector program_;
  NodeSet params_;
  std::unordered_map<const NodeHeader*, Move> moves_;                // keyed by the original buffer
  std::unordered_map<const NodeHeader*, std::vector<Stmt>> allocs_;  // keyed by the loop's variable
  NodeSet serial_;                                                   // loop variables
};

}  // namespace

PrimFuncRef compact_buffers(const PrimFuncRef& function) { return Compactor(function).run(); }

}  // namespace relaxc
