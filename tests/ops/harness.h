// Runs one operator: infer, legalize, interpret. Tests compare with plain loops.
#pragma once
#include <cctype>
#include <cmath>
#include <functional>

#include "ops/ops.h"
#include "tests/catch.h"
#include "tests/interpret.h"
#include "tests/patterns.h"

namespace relaxc::test {

using Shape = std::vector<int64_t>;
using Symbolic = std::vector<std::vector<Expr>>;

// Calls fn with every index of the shape, row-major.
inline void for_each_index(const Shape& shape, const std::function<void(const Shape&)>& fn) {
  for (int64_t dim : shape) {
    if (dim == 0) return;
  }
  Shape index(shape.size(), 0);
  while (true) {
    fn(index);
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}
inline int64_t flat(const Shape& index, const Shape& shape) {
  int64_t result = 0;
  for (size_t d = 0; d < shape.size(); ++d) result = result * shape[d] + index[d];
  return result;
}
inline double element(const Tensor& tensor, const Shape& index) {
  return tensor.as_double(flat(index, tensor.shape()));
}

// Reproducible values: integers in [-9, 9] (unsigned: [0, 18]), or multiples of 1/8 in (-4, 4) for floats.
inline Tensor values(Shape shape, DType dtype = kFloat32, uint32_t seed = 1) {
  Tensor tensor = Tensor::empty(std::move(shape), dtype);
  uint32_t state = seed * 2654435761u + 12345;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    int64_t small = static_cast<int64_t>((state >> 16) % 19) - 9;
    if (dtype.is_float()) {
      tensor.set_double(i, static_cast<double>(static_cast<int64_t>((state >> 12) % 63) - 31) / 8);
    } else {
      tensor.set_int(i, dtype.is_bool() ? small > 0 : dtype.is_uint() ? small + 9 : small);
    }
  }
  return tensor;
}

// The tensor with its axes, which stand in the order `plain`, laid out as "NHWC" or, in blocks, "NCHW4c" say.
inline Tensor in_layout(const Tensor& x, std::string_view plain, std::string_view layout) {
  struct Axis {
    size_t plain;
    int64_t extent, block;  // of the layout's dim, and how many positions one step is
  };
  std::vector<Axis> axes;
  Shape shape, blocks(plain.size(), 1);
  int64_t number = 0;
  for (char c : layout) {
    if (c >= '0' && c <= '9') {
      number = number * 10 + (c - '0');
      continue;
    }
    size_t d = plain.find(static_cast<char>(std::toupper(c)));
    if (number > 0) blocks[d] = number;
    axes.push_back({d, number, 1});
    number = 0;
  }
  for (Axis& axis : axes) {
    if (axis.extent == 0) {
      axis.block = blocks[axis.plain];
      axis.extent = x.shape()[axis.plain] / axis.block;
    }
    shape.push_back(axis.extent);
  }
  Tensor result = Tensor::empty(shape, x.dtype());
  for_each_index(shape, [&](const Shape& index) {
    Shape from(plain.size(), 0);
    for (size_t d = 0; d < axes.size(); ++d) from[axes[d].plain] += index[d] * axes[d].block;
    result.set_double(flat(index, shape), element(x, from));
  });
  return result;
}

// Arguments of the tensors' types, dims replaced by symbolic ones where given.
inline std::vector<Expr> arguments(const std::vector<Tensor>& inputs, const Symbolic& symbolic = {}) {
  std::vector<Expr> args;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<Expr> dims;
    for (int64_t dim : inputs[i].shape()) dims.push_back(int_imm(dim));
    if (i < symbolic.size() && !symbolic[i].empty()) dims = symbolic[i];
    args.push_back(make_var("x" + std::to_string(i), tensor_type(dims, inputs[i].dtype())));
  }
  return args;
}

// The operator's results. The inferred type must have their dtypes, and their dims where those are constant.
inline std::vector<Tensor> run_call(const OpTable& table, const std::string& name, const std::vector<Expr>& args,
                                    const Attrs& attrs, const std::vector<Tensor>& inputs) {
  Expr untyped = call(op_ref("relax." + name), args, attrs, object_type());
  Type type = infer_call_type(*untyped.as<Call>(), untyped.span(), table);
  const OpRow* row = table.find("relax." + name);
  REQUIRE(row);
  PrimFuncRef program = row->legalize(OpCall{*untyped.as<Call>(), untyped.span()});
  std::vector<Tensor> results = interpret_on(program, inputs, {}, {.check_regions = true});
  std::vector<Type> types = {type};
  if (const TupleType* tuple = type.as<TupleType>()) types = tuple->items;
  REQUIRE(types.size() == results.size());
  for (size_t i = 0; i < types.size(); ++i) {
    REQUIRE(tensor_dtype(types[i]) == results[i].dtype());
    const std::vector<Expr>* dims = known_shape(types[i]);
    REQUIRE((dims && dims->size() == results[i].shape().size()));
    for (size_t d = 0; d < dims->size(); ++d) {
      if (auto known = as_int((*dims)[d])) REQUIRE(*known == results[i].shape()[d]);
    }
  }
  return results;
}
inline std::vector<Tensor> run_op(const OpTable& table, const std::string& name, const std::vector<Tensor>& inputs,
                                  const Attrs& attrs = {}, const Symbolic& symbolic = {}) {
  return run_call(table, name, arguments(inputs, symbolic), attrs, inputs);
}

inline std::string error_of(const OpTable& table, const std::string& name, const std::vector<Tensor>& inputs,
                            const Attrs& attrs = {}) {
  try {
    run_op(table, name, inputs, attrs);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

// Every element within tolerance * (1 + |expected|) of the reference; NaN equals NaN.
inline void check_tensor(const Tensor& tensor, const Shape& shape, const std::function<double(const Shape&)>& expected,
                         double tolerance = 1e-5) {
  REQUIRE(tensor.shape() == shape);
  int64_t wrong = 0;
  for_each_index(shape, [&](const Shape& index) {
    double got = element(tensor, index), want = expected(index);
    bool same = got == want || (std::isnan(got) && std::isnan(want)) ||
                std::fabs(got - want) <= tolerance * (1 + std::fabs(want));
    if (same) return;
    if (wrong++ == 0) {
      UNSCOPED_INFO("element " << flat(index, shape) << " is " << got << ", expected " << want);
    }
  });
  CHECK(wrong == 0);
}

}  // namespace relaxc::test
