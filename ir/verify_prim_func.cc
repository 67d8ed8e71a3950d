#include <algorithm>

#include "ir/regions.h"
#include "ir/verify_internal.h"

namespace relaxc {

namespace {

class ProgramVerifier {
 public:
  ProgramVerifier(DefinedVars& defined, Diagnostics& diagnostics) : defined_(defined), diagnostics_(diagnostics) {}

  void run(const PrimFuncRef& function) {
    place_ = function.span();
    for (const VarRef& param : function->params) {
      if (!param.type().is<BufferType>() && !param.type().is<PrimType>())
        error(param.span(), "param '{}' is neither a buffer nor a scalar [T13]", param->name);
      define(param);
    }
    // Dims that stand bare in a buffer param are bound by its argument.
    for (const VarRef& param : function->params) {
      if (!param.type().is<BufferType>()) continue;
      visit_children(param.type(), [&](const NodeRef& dim, Slot) {
        if (dim.is<Var>() && !scope_.contains(dim.get())) define(cast<Var>(dim));
      });
    }
    for (const VarRef& param : function->params) {
      if (param.type().is<BufferType>()) buffer_dims(param);
    }
    bool has_root = function->body.is<Block>() && function->body.as<Block>()->iter_vars.empty();
    rootless_ = !has_root;
    stmt(function->body);
  }

 private:
  template <class... Args>
  void error(const Span& span, fmt::format_string<Args...> format, Args&&... args) {
    diagnostics_.error(span ? span : place_, "{}", fmt::format(format, std::forward<Args>(args)...));
  }

  void define(const VarRef& var) {
    if (!defined_.insert(var.get()).second) error(var.span(), "'{}' is defined twice [T3]", var->name);
    scope_.insert(var.get());
    order_.push_back(var.get());
  }
  struct Scope {
    explicit Scope(ProgramVerifier& v) : verifier(v), size(v.order_.size()) {}
    ~Scope() {
      for (; verifier.order_.size() > size; verifier.order_.pop_back()) verifier.scope_.erase(verifier.order_.back());
    }
    ProgramVerifier& verifier;
    size_t size;
  };

  void buffer_dims(const Buffer& buffer) {
    const BufferType& type = buffer_type(buffer);
    auto check = [&](const Expr& value) {
      integer(value, "a dim", buffer.span());
      expr(value);
    };
    for (const Expr& dim : type.shape) check(dim);
    for (const Expr& stride : type.strides) check(stride);
    if (type.elem_offset) check(*type.elem_offset);
    if (!type.strides.empty() && type.strides.size() != type.shape.size())
      error(buffer.span(), "buffer '{}' has {} strides for {} dims [T4]", buffer->name, type.strides.size(),
            type.shape.size());
  }

  const PrimType* prim(const Expr& e) const { return e.type().as<PrimType>(); }
  void integer(const Expr& e, std::string_view what, const Span& span) {
    const PrimType* type = prim(e);
    if (!type || !type->dtype.is_integral())
      error(e.span() ? e.span() : span, "{} is {}, expected an integer [T5]", what,
            type ? to_string(type->dtype) : "no scalar");
  }
  void boolean(const Expr& e, std::string_view what, const Span& span) {
    const PrimType* type = prim(e);
    if (!type || !type->dtype.is_bool())
      error(e.span() ? e.span() : span, "{} is {}, expected bool [T7]", what,
            type ? to_string(type->dtype) : "no scalar");
  }

  // ---- Expressions

  void buffer_use(const Buffer& buffer, const Span& span) {
    if (!buffer.type().is<BufferType>()) {
      error(span, "'{}' is not a buffer [T1]", buffer->name);
    } else if (!scope_.contains(buffer.get())) {
      error(span, "buffer '{}' is not defined here [T1]", buffer->name);
    }
  }
  // The lanes of an access; 1 after an error.
  int indices(const Buffer& buffer, const std::vector<Expr>& indices, const std::optional<Expr>& predicate,
              const Span& span) {
    buffer_use(buffer, span);
    int lanes = 1;
    const BufferType* type = buffer.type().as<BufferType>();
    if (type && type->shape.size() != indices.size())
      error(span, "buffer '{}' has {} dims, got {} indices [T4]", buffer->name, type->shape.size(), indices.size());
    for (size_t i = 0; i < indices.size(); ++i) {
      expr(indices[i]);
      integer(indices[i], "an index", span);
      int own = prim(indices[i]) ? prim(indices[i])->dtype.lanes : 1;
      if (own > 1 && i + 1 < indices.size()) error(span, "only the last index may be a vector [T4]");
      lanes = own;
    }
    if (predicate) {
      expr(*predicate);
      boolean(*predicate, "the predicate", span);
      if (prim(*predicate) && prim(*predicate)->dtype.lanes != lanes)
        error(span, "the predicate has {} lanes, the access {} [T12]", prim(*predicate)->dtype.lanes, lanes);
    }
    return lanes;
  }

  void expr(const Expr& e) {
    if (e.is<Var>()) {
      if (e.type().is<BufferType>()) return buffer_use(cast<Var>(e), e.span());
      if (!scope_.contains(e.get())) error(place_, "'{}' is not defined here [T2]", e.as<Var>()->name);
      return;
    }
    if (const BufferLoad* load = e.as<BufferLoad>()) {
      int lanes = indices(load->buffer, load->indices, load->predicate, e.span());
      const BufferType* type = load->buffer.type().as<BufferType>();
      if (type && prim(e) && prim(e)->dtype != type->dtype.with_lanes(type->dtype.lanes * lanes))
        error(e.span(), "the load gives {}, expected {} [T12]", to_string(prim(e)->dtype),
              to_string(type->dtype.with_lanes(type->dtype.lanes * lanes)));
      return;
    }
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
  }

  void lanes(const Expr& e) {
    const PrimType* type = prim(e);
    if (!type) return;
    auto same = [&](const Expr& operand) {
      if (prim(operand) && prim(operand)->dtype.lanes != type->dtype.lanes)
        error(e.span(), "an operand has {} lanes, the result {} [T12]", prim(operand)->dtype.lanes, type->dtype.lanes);
    };
    if (const Binary* node = e.as<Binary>()) {
      same(node->a);
      same(node->b);
    }
    if (const Cast* node = e.as<Cast>()) same(node->value);
    if (const Select* node = e.as<Select>()) {
      boolean(node->condition, "the condition of select", e.span());
      same(node->a);
      same(node->b);
    }
    if (const Ramp* node = e.as<Ramp>(); node && node->lanes != type->dtype.lanes)
      error(e.span(), "a ramp of {} lanes has type {} [T12]", node->lanes, to_string(type->dtype));
    if (const Broadcast* node = e.as<Broadcast>(); node && node->lanes != type->dtype.lanes)
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
        [&](const BufferStore& node) {
          expr(node.value);
          int lanes = indices(node.buffer, node.indices, node.predicate, s.span());
          const BufferType* type = node.buffer.type().as<BufferType>();
          if (!type || !prim(node.value)) return;
          DType wanted = type->dtype.with_lanes(type->dtype.lanes * lanes);
          if (prim(node.value)->dtype != wanted)
            error(s.span(), "{} stored to '{}', expected {} [T6]", to_string(prim(node.value)->dtype),
                  node.buffer->name, to_string(wanted));
        },
        [&](const For& node) {
          expr(node.min);
          expr(node.extent);
          integer(node.min, "the start of a loop", s.span());
          integer(node.extent, "the extent of a loop", s.span());
          if (!node.var.type().is<PrimType>()) {
            error(s.span(), "loop variable '{}' is no scalar [T8]", node.var->name);
          } else if (prim(node.min) && prim(node.extent)) {
            DType dtype = prim(node.var)->dtype;
            if (prim(node.min)->dtype != dtype || prim(node.extent)->dtype != dtype)
              error(s.span(), "loop variable '{}' is {}, its bounds are {} and {} [T8]", node.var->name,
                    to_string(dtype), to_string(prim(node.min)->dtype), to_string(prim(node.extent)->dtype));
          }
          if ((node.kind == ForKind::kThreadBinding) == node.thread.empty())
            error(s.span(), "a thread axis belongs to thread bindings [T8]");
          Scope scope(*this);
          define(node.var);
          stmt(node.body);
        },
        [&](const While& node) {
          expr(node.condition);
          boolean(node.condition, "the condition", s.span());
          scoped(node.body);
        },
        [&](const IfThenElse& node) {
          expr(node.condition);
          boolean(node.condition, "the condition", s.span());
          scoped(node.then_body);
          if (node.else_body) scoped(*node.else_body);
        },
        [&](const Bind& node) {
          expr(node.value);
          define(node.var);
        },
        [&](const AllocBuffer& node) {
          buffer_dims(node.buffer);
          define(node.buffer);
        },
        [&](const Evaluate& node) { expr(node.value); },
        [&](const Assert& node) {
          expr(node.condition);
          boolean(node.condition, "the condition", s.span());
        },
        [&](const AttrStmt& node) {
          expr(node.value);
          scoped(node.body);
        },
        [&](const Block& node) { block(s, node); });
  }

  void region(const BufferRegion& region, const Span& span) {
    buffer_use(region.buffer, span);
    const BufferType* type = region.buffer.type().as<BufferType>();
    if (type && type->shape.size() != region.ranges.size())
      error(span, "buffer '{}' has {} dims, got {} ranges [T4]", region.buffer->name, type->shape.size(),
            region.ranges.size());
    for (const Range& range : region.ranges) {
      for (const Expr& bound : {range.min, range.extent}) {
        expr(bound);
        integer(bound, "a bound of a region", span);
      }
    }
  }

  void block(const Stmt& s, const Block& node) {
    if (std::exchange(rootless_, false)) error(s.span(), "block '{}' stands below no root block [T14]", node.name);
    Scope scope(*this);
    std::unordered_set<const NodeHeader*> reduce_axes;
    for (const IterVar& axis : node.iter_vars) {
      for (const Expr& part : {axis.domain.min, axis.domain.extent, axis.value}) {
        expr(part);
        integer(part, "a bound or value of an axis", s.span());
      }
      bool fits = prim(axis.var) && prim(axis.domain.min) && prim(axis.domain.extent) &&
                  prim(axis.var)->dtype == prim(axis.domain.min)->dtype &&
                  prim(axis.var)->dtype == prim(axis.domain.extent)->dtype;
      if (!fits) error(axis.var.span(), "axis '{}' has another dtype than its domain [T9]", axis.var->name);
      if (axis.kind == IterKind::kReduce) reduce_axes.insert(axis.var.get());
    }
    if (node.predicate) {
      expr(*node.predicate);
      boolean(*node.predicate, "the predicate", s.span());
    }
    for (const IterVar& axis : node.iter_vars) define(axis.var);
    for (const Buffer& buffer : node.alloc_buffers) {
      buffer_dims(buffer);
      define(buffer);
    }
    for (const MatchBuffer& window : node.match_buffers) {
      region(window.source, s.span());
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
    bool is_root = node.iter_vars.empty() && node.name == "root";
    if (!is_root) accesses(s, node);
    scoped(node.body);
  }

  // Buffer by buffer: what the body touches is declared. Windows count as their source, own buffers not at all.
  void accesses(const Stmt& s, const Block& node) {
    Accesses found = find_accesses(node.body, node.init);
    auto covered = [&](const std::vector<BufferRegion>& declared, const Buffer& buffer) {
      auto is = [&](const Buffer& other) { return same_node(other, buffer); };
      for (const BufferRegion& r : declared) {
        if (is(r.buffer)) return true;
      }
      for (const MatchBuffer& window : node.match_buffers) {
        if (is(window.buffer)) return true;
      }
      return std::any_of(node.alloc_buffers.begin(), node.alloc_buffers.end(), is);
    };
    for (const BufferRegion& r : found.reads) {
      if (!covered(node.reads, r.buffer))
        error(s.span(), "block '{}' reads '{}' without saying so [T11]", node.name, r.buffer->name);
    }
    for (const BufferRegion& r : found.writes) {
      if (!covered(node.writes, r.buffer))
        error(s.span(), "block '{}' writes '{}' without saying so [T11]", node.name, r.buffer->name);
    }
  }

  DefinedVars& defined_;
  Diagnostics& diagnostics_;
  Span place_;
  bool rootless_ = false;
  std::unordered_set<const NodeHeader*> scope_;
  std::vector<const NodeHeader*> order_;
};

}  // namespace

void verify_program(const std::string&, const PrimFuncRef& function, DefinedVars& defined, Diagnostics& diagnostics) {
  ProgramVerifier(defined, diagnostics).run(function);
}

}  // namespace relaxc
