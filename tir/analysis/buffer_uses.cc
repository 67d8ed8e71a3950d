#include "tir/analysis/buffer_uses.h"

#include <algorithm>

#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "support/temporarily.h"
#include "tir/analysis/conditions.h"

namespace relaxc {

namespace {

struct SweptVar {
  VarRef var;
  Expr extent;
};
// The positions of a dim that stores reach: one index for each value of the swept variables, which run from 0.
struct WrittenDim {
  Expr index;
  std::vector<SweptVar> swept = {};
  bool is_full = false;
};
// Elements that are certainly written; the indices are over the variables of the loops that are open.
struct Written {
  const NodeHeader* buffer;
  std::vector<WrittenDim> dims;
  std::vector<VarRef> reduced = {};  // loops of a reduction, whose init runs even where they run zero times
};

// Returns how many neighbouring values the index takes, each once, while the swept variables run: it is its first
// value, that of `first`, plus a mixed-radix number of which they are the digits, as after loops have been split or
// fused.
struct Neighbours {
  Expr first, count;
};
std::optional<Neighbours> neighbours(const Expr& index, const std::vector<SweptVar>& swept) {
  const Analyzer facts;
  std::vector<std::pair<int64_t, Expr>> digits;
  VarMap zero;
  for (const auto& [var, extent] : swept) {
    std::optional<int64_t> scale = same_node(index, var) ? 1 : coefficient(index, var, facts);
    if (!scale || *scale < 1) return std::nullopt;
    digits.emplace_back(*scale, cast_to(extent, kInt64));
    zero.emplace(var.get(), int_imm(0, dtype_of(var)));
  }
  std::ranges::sort(digits, {}, &std::pair<int64_t, Expr>::first);
  Expr size = int_imm(1);
  for (const auto& [scale, extent] : digits) {
    if (!facts.can_prove_equal(size, int_imm(scale))) return std::nullopt;
    size = size * extent;
  }
  return Neighbours{simplify(substitute(index, zero)), size};
}
// Returns whether these are [0, dim).
bool enumerates(const Expr& index, const std::vector<SweptVar>& swept, const Expr& dim) {
  std::optional<Neighbours> all = neighbours(index, swept);
  return all && is_int(all->first, 0) && Analyzer().can_prove_equal(all->count, cast_to(dim, kInt64));
}

class UseFinder {
 public:
  explicit UseFinder(const PrimFuncRef& program) {
    for (const Buffer& buffer : buffer_params(program)) {
      positions_.emplace(buffer.get(), uses_.size());
      uses_.push_back({buffer});
    }
    // A program that may leave a loop early need not reach its stores.
    leaves_early_ = any_node(program->body, [](const NodeRef& node) {
      if (!node.is<Call>()) return false;
      Expr call = cast_handle<Expr>(node);
      return as_call(call, ops::kBreakLoop) || as_call(call, ops::kContinueLoop) || as_call(call, ops::kRet);
    });
    visit(program->body);
    for (const Written& written : written_) {
      BufferUse* use = find(written.buffer);
      if (use && std::ranges::all_of(written.dims, &WrittenDim::is_full)) use->is_filled = true;
    }
  }
  std::vector<BufferUse> take() { return std::move(uses_); }

 private:
  BufferUse* find(const NodeHeader* buffer) {
    auto found = positions_.find(buffer);
    return found == positions_.end() ? nullptr : &uses_[found->second];
  }
  // Returns the param of which the buffer is a window or view; null for memory of the program.
  BufferUse* find(const Buffer& buffer) {
    if (BufferUse* use = find(buffer.get())) return use;
    if (const Buffer* source = find_value(sources_, buffer.get())) return find(*source);
    const std::optional<Expr>& data = buffer_type(buffer).data;
    std::optional<Buffer> viewed = data ? pointee(*data) : std::nullopt;
    return viewed ? find(*viewed) : nullptr;
  }
  // Returns the buffer to which A.data, T.address_of(A[0]) or a variable with such a value points.
  std::optional<Buffer> pointee(const Expr& pointer) const {
    if (const Buffer* known = find_value(pointees_, pointer.get())) return *known;
    const Call* address = as_call(pointer, ops::kAddressOf);
    const BufferLoad* element = address ? address->args.at(0).as<BufferLoad>() : nullptr;
    if (element) return element->buffer;
    const Call* data = as_call(pointer, ops::kBufferData);
    auto whole = data ? try_cast<Var>(data->args.at(0)) : std::nullopt;
    return whole && whole->type().is<BufferType>() ? whole : std::nullopt;
  }

  // ---- Expressions

  void read(const BufferLoad& load) {
    BufferUse* use = find(load.buffer);
    if (!use) return;
    std::vector<Expr> indices = in_loops(load.indices);
    auto covers = [&](const Written& written) {
      if (written.buffer != load.buffer.get() || written.dims.size() != indices.size()) return false;
      for (size_t d = 0; d < indices.size(); ++d) {
        if (!covers_index(written.dims[d], indices[d])) return false;
      }
      return true;
    };
    use->is_read = use->is_read || std::ranges::none_of(written_, covers);
  }
  // Returns whether the index is one of those that are written: the same, or one of a tile's.
  bool covers_index(const WrittenDim& dim, const Expr& index) const {
    if (dim.is_full) return true;
    if (dim.swept.empty()) return structural_equal(dim.index, index);
    std::optional<Neighbours> tile = neighbours(dim.index, dim.swept);
    if (!tile || dtype_of(tile->first) != dtype_of(index)) return false;
    const Expr at = facts_.simplify(index - tile->first), count = cast_to(tile->count, dtype_of(index));
    return facts_.can_prove(at >= int_imm(0, dtype_of(at))) && facts_.can_prove(at < count);
  }
  // Somebody else gets the buffer's pointer.
  void escape(const Buffer& buffer) {
    BufferUse* use = find(buffer);
    if (!use) return;
    auto declares = [&](const std::vector<BufferRegion>& regions) {
      return std::ranges::any_of(regions, [&](const BufferRegion& region) { return find(region.buffer) == use; });
    };
    bool is_declared = block_ && (declares(block_->reads) || declares(block_->writes));
    use->is_read = use->is_read || !is_declared || declares(block_->reads);
    use->is_written = use->is_written || !is_declared || declares(block_->writes);
  }
  void visit_expr(const Expr& expr) {
    walk_nodes(expr, [&](const NodeRef& node) {
      if (const BufferLoad* load = node.as<BufferLoad>()) read(*load);
      if (const Buffer* given = find_value(pointees_, node.get())) escape(*given);
      if (!node.is<Call>()) return true;
      Expr call = cast_handle<Expr>(node);
      if (as_call(call, ops::kPrefetch)) return false;
      bool takes_address = as_call(call, ops::kAddressOf);
      for (const Expr& arg : call.as<Call>()->args) {
        auto var = try_cast<Var>(arg);
        if (var && var->type().is<BufferType>()) escape(*var);
        if (const BufferLoad* load = arg.as<BufferLoad>(); load && takes_address) escape(load->buffer);
      }
      return !takes_address;
    });
  }
  // Reads the indices of T.address_of only: a named pointer, or a view, counts as a use where it is used itself.
  void visit_pointer(const Expr& pointer) {
    if (!pointee(pointer)) return visit_expr(pointer);
    const Call* address = as_call(pointer, ops::kAddressOf);
    if (!address) return;
    for (const Expr& index : address->args.at(0).as<BufferLoad>()->indices) visit_expr(index);
  }
  // Returns the indices in terms of the loops instead of axes and bound variables.
  std::vector<Expr> in_loops(const std::vector<Expr>& indices) const {
    return map_each(indices, [&](const Expr& index) { return simplify(substitute(index, values_)); });
  }

  // ---- Statements

  void visit(const Stmt& stmt) {
    if (const Seq* seq = stmt.as<Seq>()) {
      for (const Stmt& child : seq->stmts) visit(child);
    } else if (const BufferStore* store = stmt.as<BufferStore>()) {
      visit_store(*store);
    } else if (const For* loop = stmt.as<For>()) {
      visit_loop(*loop);
    } else if (const Block* block = stmt.as<Block>()) {
      visit_block(*block);
    } else if (const AllocBuffer* alloc = stmt.as<AllocBuffer>()) {
      const std::optional<Expr>& data = buffer_type(alloc->buffer).data;
      if (data) visit_pointer(*data);
    } else if (const Bind* bind = stmt.as<Bind>()) {
      std::optional<Buffer> named = pointee(bind->value);
      if (named) pointees_.emplace(bind->var.get(), *named);
      named ? visit_pointer(bind->value) : visit_expr(bind->value);
      if (!holds<BufferLoad>(bind->value)) values_.emplace(bind->var.get(), substitute(bind->value, values_));
    } else {
      // Bodies of branches and while loops may not run.
      visit_children(stmt, [&](const NodeRef& child, relaxc::Slot) {
        size_t before = written_.size();
        if (is_stmt_kind(child.kind())) visit(cast_handle<Stmt>(child));
        if (is_expr_kind(child.kind()) && !child.is<Var>()) visit_expr(cast_handle<Expr>(child));
        if (!stmt.is<AttrStmt>()) written_.resize(before, Written{nullptr, {}, {}});
      });
    }
  }

  void visit_store(const BufferStore& store) {
    visit_expr(store.value);
    for (const Expr& index : store.indices) visit_expr(index);
    if (store.predicate) visit_expr(*store.predicate);
    BufferUse* use = find(store.buffer);
    if (!use) return;
    use->is_written = true;
    if (store.predicate || leaves_early_ || !find(store.buffer.get())) return;
    Written written{store.buffer.get(), {}, {}};
    const std::vector<Expr>& shape = buffer_type(store.buffer).shape;
    std::vector<Expr> indices = in_loops(store.indices);
    for (size_t d = 0; d < indices.size() && d < shape.size(); ++d) {
      WrittenDim dim{indices[d]};
      if (const Ramp* lanes = indices[d].as<Ramp>(); lanes && lanes->lanes > 0) {
        VarRef lane = make_var("lane", prim_type(dtype_of(lanes->base)));
        dim = {lanes->base + lane * lanes->stride, {{lane, int_imm(lanes->lanes, dtype_of(lanes->base))}}};
      } else if (dtype_of(indices[d]).lanes != 1) {
        return;
      }
      dim.is_full = enumerates(dim.index, dim.swept, shape[d]);
      written.dims.push_back(std::move(dim));
    }
    written_.push_back(std::move(written));
  }

  void visit_loop(const For& loop) {
    visit_expr(loop.min);
    visit_expr(loop.extent);
    size_t before = written_.size();
    if (!loop.step) facts_.bind(loop.var, loop.min, loop.extent);
    visit(loop.body);
    auto count = as_int(loop.extent);
    std::vector<Written> after;
    for (size_t i = before; i < written_.size(); ++i) {
      Written& written = written_[i];
      auto mentions = [&](const WrittenDim& dim) { return !dim.is_full && uses_var(dim.index, loop.var); };
      auto times = std::ranges::count_if(written.dims, mentions);
      auto is_this = [&](const VarRef& var) { return same_node(var, loop.var); };
      bool runs = (count && *count > 0) || std::ranges::any_of(written.reduced, is_this);
      if (times == 0 && runs) after.push_back(written);
      if (times != 1 || !is_int(loop.min, 0) || loop.step) continue;
      WrittenDim& dim = *std::ranges::find_if(written.dims, mentions);
      dim.swept.push_back({loop.var, loop.extent});
      size_t d = static_cast<size_t>(&dim - written.dims.data());
      dim.is_full = enumerates(dim.index, dim.swept, shapes_of(written.buffer)[d]);
      after.push_back(written);
    }
    written_.resize(before, Written{nullptr, {}, {}});
    std::ranges::move(after, std::back_inserter(written_));
  }
  const std::vector<Expr>& shapes_of(const NodeHeader* buffer) { return buffer_type(find(buffer)->buffer).shape; }

  void visit_block(const Block& block) {
    for (const IterVar& axis : block.iter_vars) {
      visit_expr(axis.value);
      values_.insert_or_assign(axis.var.get(), substitute(axis.value, values_));
    }
    for (const MatchBuffer& window : block.match_buffers)
      sources_.insert_or_assign(window.buffer.get(), window.source.buffer);
    Temporarily around(block_, is_root(block) ? block_ : &block);
    size_t before = written_.size();
    if (block.init) {
      visit(*block.init);
      for (const IterVar& axis : block.iter_vars) {
        if (axis.kind != IterKind::kReduce) continue;
        for (const VarRef& var : free_vars(substitute(axis.value, values_)))
          for (size_t i = before; i < written_.size(); ++i) written_[i].reduced.push_back(var);
      }
    }
    visit(block.body);
    if (!block.predicate) return;
    visit_expr(*block.predicate);
    written_.resize(before, Written{nullptr, {}, {}});
  }

  std::vector<BufferUse> uses_;
  std::unordered_map<const NodeHeader*, size_t> positions_;
  std::unordered_map<const NodeHeader*, Buffer> sources_;   // of windows
  std::unordered_map<const NodeHeader*, Buffer> pointees_;  // of pointers that have names
  std::vector<Written> written_;
  VarMap values_;   // of axes and bound variables, in terms of loops
  Analyzer facts_;  // the ranges of loops
  const Block* block_ = nullptr;
  bool leaves_early_ = false;
};

}  // namespace

std::vector<BufferUse> buffer_uses(const PrimFuncRef& program) {
  std::vector<BufferUse> result = UseFinder(program).take();
  const AttrValue* names = program->attrs.find(attr_names::kOutputBuffers);
  const AttrList* outputs = names ? names->as<AttrList>() : nullptr;
  for (BufferUse& use : result) {
    if (outputs && use.is_written && std::ranges::count(*outputs, AttrValue(use.buffer->name))) use.is_read = false;
  }
  return result;
}

}  // namespace relaxc
