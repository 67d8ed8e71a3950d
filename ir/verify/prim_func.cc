#include <algorithm>

#include "ir/arith.h"
#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/regions.h"
#include "ir/verify/internal.h"

namespace relaxc {

namespace {

class ProgramVerifier : ScopedVerifier {
 public:
  ProgramVerifier(DefinedVars& defined, Diagnostics& diagnostics) : ScopedVerifier("T3", defined, diagnostics) {}

  void run(const PrimFuncRef& function) {
    place_ = function.span();
    for (const VarRef& param : function->params) {
      if (!param.type().is<BufferType>() && !param.type().is<PrimType>())
        error(param.span(), "param '{}' is neither a buffer nor a scalar [T13]", param->name);
      define(param);
    }
    // Dims that stand bare in a buffer param are bound by its argument.
    for (const VarRef& dim : scalar_arguments(function)) {
      if (!scope_.contains(dim.get())) define(dim);
    }
    for (const Buffer& buffer : buffer_params(function)) buffer_dims(buffer);
    const Block* root = function->body.as<Block>();
    rootless_ = !root || !root->iter_vars.empty();
    stmt(function->body);
  }

 private:
  void buffer_dims(const Buffer& buffer) {
    const BufferType& type = buffer_type(buffer);
    for (const Expr& dim : type.shape) integer(dim, "a dim", buffer.span());
    for (const Expr& stride : type.strides) integer(stride, "a stride", buffer.span());
    if (type.elem_offset) integer(*type.elem_offset, "a dim", buffer.span());
    if (type.data) {
      expr(*type.data);
      if (!prim(*type.data) || !prim(*type.data)->dtype.is_handle())
        error(buffer.span(), "buffer '{}' has data that are not a pointer [T16]", buffer->name);
    }
    if (!type.strides.empty() && type.strides.size() != type.shape.size())
      error(buffer.span(), "buffer '{}' has {} strides for {} dims [T4]", buffer->name, type.strides.size(),
            type.shape.size());
  }

  const PrimType* prim(const Expr& e) const { return e.type().as<PrimType>(); }
  // Visits the operand and checks its dtype.
  void integer(const Expr& e, std::string_view role, const Span& span) {
    expr(e);
    has_dtype(e, role, span, &DType::is_integral, "an integer [T5]");
  }
  void boolean(const Expr& e, std::string_view role, const Span& span) {
    expr(e);
    has_dtype(e, role, span, &DType::is_bool, "bool [T7]");
  }
  void has_dtype(const Expr& e, std::string_view role, const Span& span, bool (DType::*is)() const,
                 const char* wanted) {
    const PrimType* type = prim(e);
    if (!type || !(type->dtype.*is)())
      error(e.span() ? e.span() : span, "{} is {}, expected {}", role, type ? to_string(type->dtype) : "not a scalar",
            wanted);
  }

  // ---- Expressions

  void buffer_use(const Buffer& buffer, const Span& span) {
    if (!buffer.type().is<BufferType>()) {
      error(span, "'{}' is not a buffer [T1]", buffer->name);
    } else if (!scope_.contains(buffer.get())) {
      error(place_of(buffer->name, span ? span : place_), "buffer '{}' is not defined here [T1]", buffer->name);
    }
  }
  // Returns the dtype of the accessed elements, or nullopt when the access names no buffer.
  std::optional<DType> access(const Buffer& buffer, const std::vector<Expr>& indices,
                              const std::optional<Expr>& predicate, const Span& span) {
    buffer_use(buffer, span);
    int lanes = 1;
    const BufferType* type = buffer.type().as<BufferType>();
    if (type && type->shape.size() != indices.size())
      error(span, "buffer '{}' has {} dims, got {} indices [T4]", buffer->name, type->shape.size(), indices.size());
    for (size_t i = 0; i < indices.size(); ++i) {
      integer(indices[i], "an index", span);
      lanes = prim(indices[i]) ? prim(indices[i])->dtype.lanes : 1;
      if (lanes > 1 && i + 1 < indices.size()) error(span, "only the last index may be a vector [T4]");
    }
    if (predicate) {
      boolean(*predicate, "the predicate", span);
      if (prim(*predicate) && prim(*predicate)->dtype.lanes != lanes)
        error(span, "the predicate has {} lanes, the access {} [T12]", prim(*predicate)->dtype.lanes, lanes);
    }
    return type ? std::optional(type->dtype.with_lanes(type->dtype.lanes * lanes)) : std::nullopt;
  }

  void expr(const Expr& e) {
    if (e.is<Var>()) {
      if (e.type().is<BufferType>()) return buffer_use(cast<Var>(e), e.span());
      if (!scope_.contains(e.get()))
        error(place_of(e.as<Var>()->name, place_), "'{}' is not defined here [T2]", e.as<Var>()->name);
      return;
    }
    if (const BufferLoad* load = e.as<BufferLoad>()) {
      auto wanted = access(load->buffer, load->indices, load->predicate, e.span());
      if (wanted && prim(e) && prim(e)->dtype != *wanted)
        error(e.span(), "the load gives {}, expected {} [T12]", to_string(prim(e)->dtype), to_string(*wanted));
      return;
    }
    if (const Lambda* lambda = e.as<Lambda>()) {
      Scope scope(*this);
      for (const VarRef& param : lambda->params) define(param);
      for (const Expr& result : lambda->results) expr(result);
      return;
    }
    if (const Call* call = e.as<Call>()) arity(e, *call);
    if (const Let* let = e.as<Let>()) {
      expr(let->value);
      Scope scope(*this);
      define(let->var);
      return expr(let->body);
    }
    visit_children(e, [&](const NodeRef& child, Slot) {
      if (is_expr_kind(child.kind()) && !child.is<OpRef>()) expr(cast_handle<Expr>(child));
    });
    lanes(e);
    no_complex(e);
  }

  // Complex numbers have no operations; calls of programs and functions pass real ones.
  void no_complex(const Expr& e) {
    constexpr OpName kMoves[] = {ops::kIfThenElse, ops::kReinterpret, ops::kShuffle,
                                 ops::kAddressOf,  ops::kLikely,      ops::kStackMakeArray};
    const bool moves = std::ranges::any_of(kMoves, [&](OpName op) { return op_name(e) == op; });
    if (moves || !(e.is<Binary>() || e.is<Cast>() || e.is<Ramp>() || e.is<Call>())) return;
    auto check = [&](const Expr& value) {
      if (prim(value) && prim(value)->dtype.is_complex())
        error(e.span() ? e.span() : place_, "{} of {}: complex numbers are only moved [T23]",
              e.is<Call>() ? op_name(e) : kind_name(e.kind()), to_string(prim(value)->dtype));
      return prim(value) && prim(value)->dtype.is_complex();
    };
    if (check(e)) return;
    visit_children(e, [&](const NodeRef& child, Slot) {
      if (is_expr_kind(child.kind()) && !child.is<OpRef>()) check(cast_handle<Expr>(child));
    });
  }

  void arity(const Expr& e, const Call& call) {
    const Builtin* builtin = find_builtin(op_name(e));
    const Intrinsic* row = find_intrinsic(op_name(e));
    int count = static_cast<int>(call.args.size());
    int least = builtin ? builtin->least : row ? row->arity : 0, most = builtin ? builtin->most : row ? row->arity : -1;
    if (count < least || (most >= 0 && count > most))
      error(e.span(), "{} got {} arguments, expected {} [T17]", op_name(e), count,
            most < 0 ? fmt::format("at least {}", least) : fmt::format("{}", least));
    bool breaks = op_name(e) == ops::kBreakLoop, continues = op_name(e) == ops::kContinueLoop;
    if ((breaks || continues) && !in_loop_)
      error(e.span(), "{} does not stand in a serial loop [T18]", breaks ? "break" : "continue");
  }

  void lanes(const Expr& e) {
    const PrimType* type = prim(e);
    if (!type) return;
    auto same = [&](const Expr& operand) {
      if (prim(operand) && prim(operand)->dtype.lanes != type->dtype.lanes)
        error(e.span(), "an operand has {} lanes, the result {} [T12]", prim(operand)->dtype.lanes, type->dtype.lanes);
    };
    if (e.is<Binary>() || e.is<Cast>())
      visit_children(e, [&](const NodeRef& operand, Slot) { same(cast_handle<Expr>(operand)); });
    if (const Select* node = e.as<Select>()) {
      has_dtype(node->condition, "the condition of select", e.span(), &DType::is_bool, "bool [T7]");
      same(node->a);
      same(node->b);
    }
    auto differs = [&](int64_t lanes) { return type->dtype != type->dtype.with_lanes(static_cast<int>(lanes)); };
    if (const Ramp* node = e.as<Ramp>(); node && differs(node->lanes))
      error(e.span(), "a ramp of {} lanes has type {} [T12]", node->lanes, to_string(type->dtype));
    if (const Broadcast* node = e.as<Broadcast>(); node && differs(node->lanes))
      error(e.span(), "a broadcast to {} lanes has type {} [T12]", node->lanes, to_string(type->dtype));
  }

  // ---- Statements

  void scoped(const Stmt& s) {
    Scope scope(*this);
    stmt(s);
  }

  void stmt(const Stmt& s) {
    if (s.span()) place_ = s.span();
    match(
        s,
        [&](const Seq& node) {
          if (node.stmts.size() == 1) error(s.span(), "a sequence of one statement [T15]");
          for (const Stmt& inner : node.stmts) {
            if (inner.is<Seq>()) error(inner.span(), "a sequence inside of a sequence [T15]");
            stmt(inner);
          }
        },
        [&](const BufferStore& node) { buffer_store(s, node); }, [&](const For& node) { for_loop(s, node); },
        [&](const While& node) {
          boolean(node.condition, "the condition", s.span());
          Temporarily in_loop(in_loop_, true);
          scoped(node.body);
        },
        [&](const IfThenElse& node) {
          boolean(node.condition, "the condition", s.span());
          scoped(node.then_body);
          if (node.else_body) scoped(*node.else_body);
        },
        [&](const Bind& node) {
          expr(node.value);
          define(node.var);
        },
        [&](const AllocBuffer& node) { allocation(s, node); }, [&](const Evaluate& node) { expr(node.value); },
        [&](const Assert& node) {
          boolean(node.condition, "the condition", s.span());
          for (const Expr& value : node.values) integer(value, "a value of a message", s.span());
        },
        [&](const AttrStmt& node) {
          expr(node.node);
          expr(node.value);
          scoped(node.body);
        },
        [&](const Block& node) { block(s, node); });
  }

  void buffer_store(const Stmt& s, const BufferStore& node) {
    expr(node.value);
    auto wanted = access(node.buffer, node.indices, node.predicate, s.span());
    if (wanted && prim(node.value) && prim(node.value)->dtype != *wanted)
      error(s.span(), "{} stored to '{}', expected {} [T6]", to_string(prim(node.value)->dtype), node.buffer->name,
            to_string(*wanted));
  }

  void for_loop(const Stmt& s, const For& node) {
    integer(node.min, "the start of a loop", s.span());
    integer(node.extent, "the extent of a loop", s.span());
    if (node.step) expr(*node.step);
    if (node.var.type().is<PrimType>()) {
      loop_dtypes(s, node);
    } else {
      error(s.span(), "loop variable '{}' is not a scalar [T8]", node.var->name);
    }
    if (binds_thread(node.kind) == node.thread.empty())
      error(s.span(), "a thread axis belongs to thread bindings [T8]");
    Scope scope(*this);
    Temporarily in_loop(in_loop_, node.kind == ForKind::kSerial);
    define(node.var);
    stmt(node.body);
  }

  void loop_dtypes(const Stmt& s, const For& node) {
    DType dtype = prim(node.var)->dtype;
    const PrimType *min = prim(node.min), *extent = prim(node.extent);
    if (min && extent && (min->dtype != dtype || extent->dtype != dtype))
      error(s.span(), "loop variable '{}' is {}, its bounds are {} and {} [T8]", node.var->name, to_string(dtype),
            to_string(min->dtype), to_string(extent->dtype));
    if (!node.step) return;
    const PrimType* step = prim(*node.step);
    bool is_positive = as_int(*node.step).value_or(1) >= 1;
    if (!step || step->dtype != dtype || !is_positive)
      error(s.span(), "the step of loop '{}' is not a positive {} [T8]", node.var->name, to_string(dtype));
  }

  void allocation(const Stmt& s, const AllocBuffer& node) {
    buffer_dims(node.buffer);
    define(node.buffer);
    const BufferType* type = node.buffer.type().as<BufferType>();
    if (!node.contents || !type) return;
    const Constant* contents = node.contents->as<Constant>();
    bool fits = contents && contents->data.dtype() == type->dtype &&
                std::ranges::equal(type->shape, contents->data.shape(), is_int);
    if (!fits)
      error(s.span(), "the contents of '{}' are not a constant of its dtype and shape [T16]", node.buffer->name);
  }

  void region(const BufferRegion& region, const Span& span) {
    buffer_use(region.buffer, span);
    const BufferType* type = region.buffer.type().as<BufferType>();
    if (type && type->shape.size() != region.ranges.size())
      error(span, "buffer '{}' has {} dims, got {} ranges [T4]", region.buffer->name, type->shape.size(),
            region.ranges.size());
    for (const Range& range : region.ranges) {
      for (const Expr& bound : {range.min, range.extent}) integer(bound, "a bound of a region", span);
    }
  }

  void block(const Stmt& s, const Block& node) {
    if (std::exchange(rootless_, false))
      error(s.span(), "block '{}' does not stand below a root block [T14]", node.name);
    Scope scope(*this);
    VarSet reduce_axes;
    for (const IterVar& axis : node.iter_vars) {
      for (const Expr& part : {axis.domain.min, axis.domain.extent, axis.value})
        integer(part, "a bound or value of an axis", s.span());
      const PrimType *type = prim(axis.var), *min = prim(axis.domain.min), *extent = prim(axis.domain.extent);
      bool same = type && min && extent && type->dtype == min->dtype && type->dtype == extent->dtype;
      if (!same) error(axis.var.span(), "axis '{}' has another dtype than its domain [T9]", axis.var->name);
      if (axis.kind == IterKind::kReduce) reduce_axes.insert(axis.var.get());
    }
    if (node.predicate) boolean(*node.predicate, "the predicate", s.span());
    for (const IterVar& axis : node.iter_vars) define(axis.var);
    for (const Buffer& buffer : node.alloc_buffers) {
      buffer_dims(buffer);
      define(buffer);
    }
    for (const MatchBuffer& window : node.match_buffers) {
      region(window.source, s.span());
      for (const VarRef& number : window.defines) define(number);
      buffer_dims(window.buffer);
      define(window.buffer);
    }
    for (const BufferRegion& r : node.reads) region(r, s.span());
    for (const BufferRegion& r : node.writes) region(r, s.span());
    if (node.init) {
      walk(*node.init, [&](const Ref<Var>& var) {
        if (reduce_axes.contains(var.get()))
          error(s.span(), "the init of block '{}' mentions the reduce axis '{}' [T10]", node.name, var->name);
      });
      scoped(*node.init);
    }
    if (!is_root(node)) {
      undeclared_buffers(s, node);
      undeclared_elements(s, node);
    }
    scoped(node.body);
  }

  // Checks that the block declares each buffer that its body accesses, except for windows and its allocations.
  void undeclared_buffers(const Stmt& s, const Block& node) {
    Accesses found = find_accesses(node.body, node.init);
    auto covered = [&](const std::vector<BufferRegion>& declared, const Buffer& buffer) {
      auto is = [&](const Buffer& other) { return same_node(other, buffer); };
      return std::ranges::any_of(declared, is, &BufferRegion::buffer) ||
             std::ranges::any_of(node.match_buffers, is, &MatchBuffer::buffer) ||
             std::ranges::any_of(node.alloc_buffers, is);
    };
    auto check = [&](const auto& accessed, const auto& declared, auto place_of_access, std::string_view does) {
      for (const BufferRegion& r : accessed) {
        if (covered(declared, r.buffer)) continue;
        warning(place_of_access(s, node, r.buffer), "block '{}' {} '{}' without saying so [T11]", node.name, does,
                r.buffer->name);
      }
    };
    check(found.reads, node.reads, place_of_access<BufferLoad>, "reads");
    check(found.writes, node.writes, place_of_access<BufferStore>, "writes");
  }

  // Returns the place of the access, or of the block where a call accesses the buffer.
  template <class Access>
  static Span place_of_access(const Stmt& s, const Block& node, const Buffer& buffer) {
    Span result;
    auto take = [&](const Ref<Access>& access) {
      if (!result && same_node(access->buffer, buffer)) result = access.span();
    };
    walk(node.body, take);
    if (node.init) walk(*node.init, take);
    return result ? result : s.span();
  }

  // Checks element by element, where an index is a constant distance away from a declared region.
  void undeclared_elements(const Stmt& s, const Block& node) {
    auto check = [&](const std::vector<BufferRegion>& declared, const Buffer& buffer, const std::vector<Expr>& at,
                     const Span& span, std::string_view does) {
      bool found_one = false;
      for (const BufferRegion& region : declared) {
        if (!same_node(region.buffer, buffer)) continue;
        if (!is_outside(region, at)) return;
        found_one = true;
      }
      if (found_one)
        warning(span ? span : s.span(), "block '{}' {} '{}' outside of the region that it declares [T11]", node.name,
                does, buffer->name);
    };
    std::vector<BufferRegion> reads = node.reads;
    if (node.init) reads.insert(reads.end(), node.writes.begin(), node.writes.end());
    walk(
        node.body,
        [&](const Ref<BufferLoad>& load) { check(reads, load->buffer, load->indices, load.span(), "reads"); },
        [&](const Ref<BufferStore>& store) {
          check(node.writes, store->buffer, store->indices, store.span(), "writes");
        });
  }

  static bool is_outside(const BufferRegion& region, const std::vector<Expr>& at) {
    for (size_t d = 0; d < at.size() && d < region.ranges.size(); ++d) {
      const Range& range = region.ranges[d];
      if (dtype_of(at[d]) != dtype_of(range.min) || !dtype_of(at[d]).is_integral()) continue;
      auto distance = as_int(simplify(at[d] - range.min)), extent = as_int(range.extent);
      if (distance && (*distance < 0 || (extent && *distance >= *extent))) return true;
    }
    return false;
  }

  bool rootless_ = false, in_loop_ = false;
};

}  // namespace

void verify_program(const PrimFuncRef& function, DefinedVars& defined, Diagnostics& diagnostics) {
  ProgramVerifier(defined, diagnostics).run(function);
}

}  // namespace relaxc
