// Builds tensor programs from index expressions, in the manner of Halide and TVM's te: each stage is one block in its
// loop nest. Every operator's lowering uses it.
//
//   ComputeBuilder b;
//   Buffer x = b.input("x", kFloat32, {n, m});
//   Buffer sum = b.reduce("sum", kFloat32, {n}, {m}, zero, add, [&](Axes i, Axes r) { return load(x, {i[0], r[0]}); });
//   Buffer y = b.compute("y", kFloat32, {n, m}, [&](Axes i) { return load(x, {i[0], i[1]}) / load(sum, {i[0]}); });
//   PrimFuncRef f = b.finish({y});
#pragma once
#include <functional>

#include "ir/op.h"

namespace relaxc {

using Axes = const std::vector<Expr>&;

class ComputeBuilder {
 public:
  // A buffer param. Dims are int64 expressions over any variables.
  Buffer input(std::string name, DType dtype, std::vector<Expr> shape);
  // Params for all tensor arguments of a call, in order, tuples flattened; named as the row says.
  std::vector<Buffer> inputs_of(const OpCall& op);
  // A scalar param.
  VarRef scalar(std::string name, DType dtype = kInt64);

  // out[i] = value(i).
  Buffer compute(std::string name, DType dtype, std::vector<Expr> shape, const std::function<Expr(Axes)>& value);
  // out[i] = init, then out[i] = combine(out[i], value(i, r)) for each r; combine(init, value(i)) with nothing to
  // reduce.
  using Combine = std::function<Expr(const Expr& accumulated, const Expr& value)>;
  Buffer reduce(std::string name, DType dtype, std::vector<Expr> shape, std::vector<Expr> reduced, const Expr& init,
                const Combine& combine, const std::function<Expr(Axes, Axes)>& value);
  // Several buffers written by one block. The functions give the statements from the axes; no init when there is
  // nothing to reduce. Buffers come from buffer().
  struct Bodies {
    std::optional<Stmt> init;
    Stmt body;
  };
  void block(std::string name, std::vector<Expr> spatial, std::vector<Expr> reduced,
             const std::function<Bodies(Axes spatial, Axes reduced)>& bodies);
  // A block without axes around statements of any form (scans, sorts, data-dependent loops).
  void extern_block(std::string name, Stmt body);
  // A buffer for block() and extern_block() to write; an output or an intermediate, as finish() says.
  Buffer buffer(std::string name, DType dtype, std::vector<Expr> shape, std::string scope = "global");

  // Params are the inputs in order of creation, then the outputs. Other buffers become allocations of the root block.
  PrimFuncRef finish(const std::vector<Buffer>& outputs, Attrs attrs = {});

 private:
  std::vector<VarRef> params_;
  std::vector<Buffer> buffers_;
  std::vector<Stmt> stages_;
};

// The block without axes at the top of a program; it holds the intermediates.
Stmt root_block(std::vector<Buffer> intermediates, Stmt body);

// Combiners and their neutral elements.
Expr combine_sum(const Expr& a, const Expr& b);
Expr combine_prod(const Expr& a, const Expr& b);
Expr combine_max(const Expr& a, const Expr& b);
Expr combine_min(const Expr& a, const Expr& b);
Expr lowest(DType dtype);   // -inf for floats
Expr highest(DType dtype);  // inf for floats
inline Expr zero(DType dtype) { return scalar_imm(0, dtype); }
inline Expr one(DType dtype) { return scalar_imm(1, dtype); }
// load(buffer, all axes).
Expr at(const Buffer& buffer, Axes axes);

}  // namespace relaxc
