#include "ops/reference.h"

#include "support/lists.h"

namespace relaxc::reference {

double element(const Tensor& x, const Index& index) {
  int64_t position = 0;
  for (size_t d = 0; d < index.size(); ++d) position = position * x.shape()[d] + index[d];
  return x.as_double(position);
}

Index with_position(Index index, int64_t axis, int64_t position) {
  index[axis] = position;
  return index;
}

Index broadcast_index(const Index& index, const Index& shape) {
  Index result(index.end() - std::ssize(shape), index.end());
  for (size_t d = 0; d < shape.size(); ++d) result[d] = shape[d] == 1 ? 0 : result[d];
  return result;
}

Tensor tensor_of(const Index& shape, DType dtype, const std::function<double(Index)>& value) {
  Tensor result = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < result.size(); ++i) {
    double element = value(indices_of(i, shape));
    if (dtype.is_integral()) {
      result.set_int(i, static_cast<int64_t>(element));  // which wraps
    } else {
      result.set_double(i, element);
    }
  }
  return result;
}

Tensor moved(const Tensor& x, const Index& shape, const std::function<Index(Index)>& source) {
  return tensor_of(shape, x.dtype(), [&](Index i) { return element(x, source(std::move(i))); });
}

OpRow with(OpRow row, Reference reference) {
  row.reference = std::move(reference);
  return row;
}
OpRow with_formula(OpRow row, double (*fn)(double)) {
  return with_formula(std::move(row), [fn](Values x) { return fn(x[0]); });
}
OpRow with_formula(OpRow row, const std::function<double(Values)>& fn, std::optional<DType> dtype) {
  return with(std::move(row), [=](const ReferenceCall& c) -> Tensors {
    Index shape;
    for (const Tensor& x : c.x) {
      if (x.shape().size() > shape.size()) shape.insert(shape.begin(), x.shape().size() - shape.size(), 1);
      for (size_t d = 1; d <= x.shape().size(); ++d) {
        int64_t& dim = shape[shape.size() - d];
        if (dim == 1) dim = x.shape()[x.shape().size() - d];
      }
    }
    return {tensor_of(shape, dtype.value_or(c.x[0].dtype()), [&](const Index& i) {
      return fn(map_each(c.x, [&](const Tensor& x) { return element(x, broadcast_index(i, x.shape())); }));
    })};
  });
}

}  // namespace relaxc::reference
