#include "codegen/rounding.h"

#include <algorithm>

#include "ir/intrinsics.h"
#include "ir/visit.h"

namespace relaxc::codegen {

// An index is int64 when it is loaded, a quantized number or a sum of products is not.
static bool is_narrow_integer(DType dtype) { return dtype.is_integral() && !dtype.is_bool() && dtype.bits <= 32; }

bool computes_with_quantized(const PrimFuncRef& program) {
  bool loads_integers = false, makes_floats = false, rounds = false;
  walk_nodes(program->body, [&](const NodeRef& node) {
    if (!is_expr_kind(node.kind())) return true;
    const Expr e = cast_handle<Expr>(node);
    const Cast* cast = e.as<Cast>();
    loads_integers |= e.is<BufferLoad>() && is_narrow_integer(dtype_of(e).element());
    makes_floats |= cast && dtype_of(e).element() == kFloat32 && is_narrow_integer(dtype_of(cast->value).element());
    rounds |= op_name(e) == kRoundWithin.text;
    return true;
  });
  return rounds || (loads_integers && makes_floats);
}

bool accumulates(const BufferStore& store) {
  const Binary* sum = store.value.as<Binary>();
  if (!sum || sum->op != BinaryOp::kAdd) return false;
  auto is_stored = [&](const Expr& x) {
    const BufferLoad* load = x.as<BufferLoad>();
    return load && same_node(load->buffer, store.buffer) &&
           std::ranges::equal(load->indices, store.indices,
                              [](const Expr& a, const Expr& b) { return structural_equal(a, b); });
  };
  return is_stored(sum->a) || is_stored(sum->b);
}

}  // namespace relaxc::codegen
