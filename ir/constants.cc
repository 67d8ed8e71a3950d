#include "ir/constants.h"

#include <algorithm>

#include "ir/type.h"

namespace relaxc {

bool is_one_element(const Type& tensor) {
  const std::vector<Expr>* dims = known_shape(tensor);
  return dims && std::ranges::all_of(*dims, [](const Expr& dim) { return is_int(dim, 1); });
}
std::optional<double> constant_element(const Expr& tensor) {
  const Constant* constant = tensor.as<Constant>();
  const bool is_real = constant && constant->data.size() == 1 && !constant->data.dtype().is_complex();
  return is_real ? std::optional(constant->data.as_double(0)) : std::nullopt;
}
bool are_same(const std::optional<Expr>& a, const std::optional<Expr>& b) {
  if (!a || !b) return !a && !b;
  const Constant *x = a->as<Constant>(), *y = b->as<Constant>();
  if (!x || !y) return same_node(*a, *b);
  return x->data.size() == y->data.size() && x->data.dtype() == y->data.dtype() &&
         same_contents(x->data.reshaped({x->data.size()}), y->data.reshaped({y->data.size()}));
}
Expr scalar_constant(double value, DType dtype, const Span& span) {
  Tensor tensor = Tensor::empty({}, dtype);
  const Tensor parts = parts_of(tensor);
  parts.set_double(0, value);
  if (dtype.is_complex()) parts.set_double(1, 0);
  return constant(std::move(tensor), span);
}

}  // namespace relaxc
