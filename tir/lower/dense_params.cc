// Tensors that programs get are dense, row-major and begin at their first element. So a variable that stands for a
// stride or an offset of a param has a known value, and any other stride or offset is a condition on the caller.
#include <fmt/format.h>

#include <algorithm>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "support/lists.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"

namespace relaxc {

namespace {

// Returns the product of the dims after dim `d`, in that dtype.
Expr dense_stride(const BufferType& type, size_t d, DType dtype) {
  Expr result = int_imm(1, dtype);
  for (size_t i = d + 1; i < type.shape.size(); ++i) result = result * cast_to(type.shape[i], dtype);
  return result;
}

class DenseParams {
 public:
  explicit DenseParams(const PrimFuncRef& function) : function_(function) {
    for (const VarRef& param : function->params) {
      known_.insert(param.get());
      const BufferType* type = param.type().as<BufferType>();
      for (const Expr& dim : type ? type->shape : std::vector<Expr>()) known_.insert(dim.get());
    }
  }

  PrimFuncRef run() {
    PrimFunc copy = *function_;
    for (VarRef& param : copy.params) {
      const BufferType* type = param.type().as<BufferType>();
      if (!type || (type->strides.empty() && !type->elem_offset && type->offset_factor == 0)) continue;
      require_dense(param, *type);
      BufferType dense = *type;
      dense.strides.clear();
      dense.elem_offset.reset();
      dense.offset_factor = 0;
      VarRef replacement = make_var(param->name, make(std::move(dense), param.type().span()), param.span());
      params_.add(param, replacement);
      param = replacement;
    }
    if (same_params(copy)) return function_;
    // A stride's variable may occur in the type of another param.
    for (VarRef& param : copy.params) {
      if (param.type().is<BufferType>()) param = values_.var(param);
    }
    Stmt body = params_(function_->body);
    for (Stmt& check : checks_) check = params_(check);
    body = values_(with_checks(body));
    copy.body = rewrite(body, [&](const Ref<Call>& call) -> std::optional<Expr> {
      auto is_param = [&](const VarRef& param) { return same_node(param, call->args[0]); };
      bool asks = op_name(call) == kBufferElemOffset && std::ranges::any_of(copy.params, is_param);
      return asks ? std::optional(int_imm(0, dtype_of(call))) : std::nullopt;
    });
    return make_prim_func(std::move(copy), function_.span());
  }

 private:
  bool same_params(const PrimFunc& copy) const {
    return std::ranges::equal(copy.params, function_->params,
                              [](const VarRef& a, const VarRef& b) { return same_node(a, b); });
  }

  void require_dense(const VarRef& param, const BufferType& type) {
    for (size_t d = 0; d < type.strides.size(); ++d) {
      const Expr& stride = type.strides[d];
      Expr dense = dense_stride(type, d, dtype_of(stride)), dim = cast_to(type.shape[d], kInt64);
      if (define(stride, dense)) continue;
      require(stride, dense, dim <= int_imm(1), fmt::format("param '{}': the stride of dim {}", param->name, d), param);
    }
    if (!type.elem_offset) return;
    Expr zero = int_imm(0, dtype_of(*type.elem_offset));
    if (define(*type.elem_offset, zero)) return;
    require(*type.elem_offset, zero, bool_imm(false), fmt::format("param '{}': the element offset", param->name),
            param);
  }
  // Gives a variable that nothing else binds its value.
  bool define(const Expr& number, const Expr& value) {
    if (!number.is<Var>() || !known_.insert(number.get()).second) return false;
    values_.add(cast<Var>(number), value);
    return true;
  }
  void require(const Expr& stated, const Expr& dense, const Expr& is_exempt, const std::string& what,
               const VarRef& param) {
    Expr holds = simplify(is_exempt || equal(cast_to(stated, kInt64), cast_to(dense, kInt64)));
    if (is_int(holds, 1)) return;
    Assert check{holds, {what + " is {}, expected {}; the tensors that kernels get are dense"}, {}, {dense, stated}};
    checks_.push_back(make(std::move(check), param.span()));
  }
  Stmt with_checks(const Stmt& body) const {
    if (const Block* root = body.as<Block>(); root && is_root(*root))
      return edited<Block>(body, [&](Block& block) { block.body = followed_by(checks_, block.body, body.span()); });
    return followed_by(checks_, body, body.span());
  }

  const PrimFuncRef& function_;
  VarSet known_;  // the variables that arguments bind
  Substitution params_, values_;
  std::vector<Stmt> checks_;
};

// Returns the view through which the program first uses the pointer, if its shape follows from the params.
std::optional<Buffer> first_view(const PrimFuncRef& function, const VarRef& pointer) {
  VarSet known;
  for (const VarRef& var : scalar_arguments(function)) known.insert(var.get());
  std::optional<Buffer> result;
  walk(function->body, [&](const AllocBuffer& alloc) {
    const BufferType& type = buffer_type(alloc.buffer);
    bool is_whole = type.data && same_node(*type.data, pointer) && type.strides.empty() && !type.elem_offset;
    auto is_known = [&](const VarRef& var) { return known.contains(var.get()); };
    if (!result && is_whole && std::ranges::all_of(free_vars(shape_expr(type.shape)), is_known)) result = alloc.buffer;
  });
  return result;
}

PrimFuncRef with_typed_pointers(const PrimFuncRef& function) {
  PrimFunc copy = *function;
  VarMap pointers;
  for (VarRef& param : copy.params) {
    const PrimType* scalar = param.type().as<PrimType>();
    if (!scalar || !scalar->dtype.is_handle()) continue;
    std::optional<Buffer> view = first_view(function, param);
    if (!view) continue;
    BufferType type = buffer_type(*view);
    type.data.reset();
    VarRef buffer = make_var(param->name, make(std::move(type), param.span()), param.span());
    pointers.emplace(param.get(), buffer_data(buffer));
    param = buffer;
  }
  if (pointers.empty()) return function;
  copy.body = substitute(copy.body, pointers);
  return make_prim_func(std::move(copy), function.span());
}

}  // namespace

PrimFuncRef dense_params(const PrimFuncRef& function) {
  PrimFuncRef typed = with_typed_pointers(function);
  return DenseParams(typed).run();
}

}  // namespace relaxc
