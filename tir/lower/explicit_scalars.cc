#include "ir/attr_names.h"
#include "support/diagnostic.h"
#include "tir/lower/lower.h"

namespace relaxc {

// Makes every symbolic dim of the buffer params a scalar param after the others, in the order of scalar_arguments().
// The attribute `num_dims` gives their number. Refuses params that are not dense.
PrimFuncRef explicit_scalars(const PrimFuncRef& function) {
  for (const Buffer& buffer : buffer_params(function)) {
    const BufferType& type = buffer_type(buffer);
    if (!type.strides.empty() || (type.elem_offset && !is_int(*type.elem_offset, 0)))
      fail_unsupported(buffer.span(), "param '{}' has strides or an offset; tensors that kernels get are dense",
                       buffer->name);
  }
  std::vector<VarRef> dims = symbolic_dims(function);
  if (dims.empty() || function->attrs.has(attr_names::kNumDims)) return function;
  PrimFunc copy = *function;
  copy.params.insert(copy.params.end(), dims.begin(), dims.end());
  copy.attrs.set(attr_names::kNumDims, static_cast<int64_t>(dims.size()));
  return make_prim_func(std::move(copy), function.span());
}

}  // namespace relaxc
