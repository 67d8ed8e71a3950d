#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "tir/lower/lower.h"

namespace relaxc {

namespace {

class Flattener final : public Rewriter {
 public:
  VarRef var(const VarRef& node) override {
    const BufferType* type = node.type().as<BufferType>();
    if (!type || is_flat(*type)) return Rewriter::var(node);
    if (auto it = renamed_.find(node.get()); it != renamed_.end()) return it->second;
    // With strides, the extent in memory ends at the position of the last element.
    bool has_strides = !type->strides.empty();
    Expr size = int_imm(1);
    for (size_t d = 0; d < type->shape.size(); ++d) {
      Expr dim = cast_to(type->shape[d], kInt64);
      size = has_strides ? size + (dim - 1) * cast_to(type->strides[d], kInt64) : size * dim;
    }
    if (has_strides) size = max(simplify(size), int_imm(0));  // a dim may be 0
    if (type->elem_offset) size = size + cast_to(*type->elem_offset, kInt64);
    BufferType flat = *type;
    flat.shape = {size};
    flat.strides.clear();
    flat.elem_offset.reset();
    if (flat.data) flat.data = expr(*flat.data);
    VarRef result = make_var(node->name, make(std::move(flat)), node.span());
    renamed_.emplace(node.get(), result);
    return result;
  }
  Expr expr(const Expr& node) override {
    const BufferLoad* load = node.as<BufferLoad>();
    if (const Call* call = as_call(node, ops::kBufferData)) {
      // A pointer keeps its type, whatever dims the buffer has.
      return buffer_data(var(cast<Var>(call->args[0])), node.span());
    }
    if (!load || is_flat(buffer_type(load->buffer))) return Rewriter::expr(node);
    return make(flat(*load), node.type(), node.span());
  }
  Stmt stmt(const Stmt& node) override {
    const BufferStore* store = node.as<BufferStore>();
    if (!store || is_flat(buffer_type(store->buffer))) return Rewriter::stmt(node);
    BufferStore copy = flat(*store);
    copy.value = expr(store->value);
    return make(std::move(copy), node.span());
  }

 private:
  static bool is_flat(const BufferType& type) {
    return type.shape.size() == 1 && type.strides.empty() && !type.elem_offset;
  }

  template <class Access>
  Access flat(const Access& access) {
    Access copy = access;
    copy.buffer = var(access.buffer);
    copy.indices = {position(access.buffer, access.indices)};
    if (access.predicate) copy.predicate = expr(*access.predicate);
    return copy;
  }
  Expr position(const Buffer& buffer, const std::vector<Expr>& indices) {
    const BufferType& type = buffer_type(buffer);
    int lanes = indices.empty() ? 1 : dtype_of(indices.back()).lanes;
    auto wide = [&](const Expr& e) {
      Expr result = cast_to(e, kInt64.with_lanes(dtype_of(e).lanes));
      return dtype_of(e).lanes == lanes ? result : broadcast(result, lanes);
    };
    Expr sum = wide(int_imm(0));
    for (size_t d = 0; d < indices.size(); ++d) {
      Expr index = wide(expr(indices[d]));
      if (!type.strides.empty()) {
        sum = sum + index * wide(type.strides[d]);
      } else {
        sum = d == 0 ? index : sum * wide(type.shape[d]) + index;
      }
    }
    if (type.elem_offset) sum = sum + wide(*type.elem_offset);
    return sum;
  }
};

}  // namespace

// Makes every buffer one-dimensional, dense and with offset 0. Indices become row-major positions.
PrimFuncRef flatten_buffers(const PrimFuncRef& function) {
  return cast<PrimFunc>(Flattener()(static_cast<const Expr&>(function)));
}

}  // namespace relaxc
