// One run of a tensor program in the interpreter.
#pragma once
#include <cstring>

#include "ir/arith.h"
#include "tir/interpret/interpreter.h"
#include "tir/scalable_vectors.h"

namespace relaxc {

inline void interpret(const PrimFuncRef& function, std::span<const Tensor> buffers,
                      std::span<const int64_t> scalars = {}, const InterpretOptions& options = {}) {
  Interpreter(function, options).run(buffers, scalars);
}

// Returns the trailing buffer params, which are allocated by the dims that inputs and scalars bind.
inline std::vector<Tensor> interpret_on(const PrimFuncRef& function, std::span<const Tensor> inputs,
                                        std::span<const int64_t> scalars = {}, const InterpretOptions& options = {}) {
  const std::vector<Buffer> params = buffer_params(with_vscale(function, options.vscale));
  VarMap dims;
  size_t next = 0;
  for (const VarRef& param : function->params) {
    if (!param.type().is<PrimType>() || next == scalars.size()) continue;
    if (dtype_of(param).is_integral()) dims.emplace(param.get(), int_imm(scalars[next], dtype_of(param)));
    ++next;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<Expr>& shape = buffer_type(params.at(i)).shape;
    for (size_t d = 0; d < shape.size() && d < inputs[i].shape().size(); ++d) {
      if (shape[d].is<Var>()) dims.emplace(shape[d].get(), int_imm(inputs[i].shape()[d], dtype_of(shape[d])));
    }
  }
  std::vector<Tensor> buffers(inputs.begin(), inputs.end());
  std::vector<WrittenBytes> flags(params.size());
  std::vector<WrittenBytes*> written(params.size(), nullptr);
  for (size_t i = inputs.size(); i < params.size(); ++i) {
    std::vector<int64_t> shape;
    for (const Expr& dim : buffer_type(params[i]).shape)
      shape.push_back(as_int(simplify(substitute(dim, dims))).value());
    Tensor output = Tensor::empty(shape, buffer_type(params[i]).dtype);
    if (output.bytes() > 0) std::memset(output.raw(), 0xff, static_cast<size_t>(output.bytes()));
    flags[i].assign(static_cast<size_t>(output.bytes()), 0);
    written[i] = &flags[i];
    buffers.push_back(std::move(output));
  }
  Interpreter(function, options).run(buffers, scalars, written);
  return {buffers.begin() + static_cast<std::ptrdiff_t>(inputs.size()), buffers.end()};
}

}  // namespace relaxc
