// <relaxc/compute.h>: builds tensor programs from index expressions, in the manner of Halide and TVM's te: each stage
// is one block in its loop nest. Every operator's lowering uses it.
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

// Returns the tensors among a call's arguments, in order and with tuples flattened.
std::vector<Expr> tensors_of(const Call& call);

class ComputeBuilder {
 public:
  // Adds a buffer param. Dims are int64 expressions over any variables.
  Buffer input(std::string name, DType dtype, std::vector<Expr> shape);
  // Adds params for all tensor arguments of a call (tensors_of), under the names of their variables.
  std::vector<Buffer> inputs_of(const OpCall& op);
  // Adds a scalar param.
  VarRef scalar(std::string name, DType dtype = kInt64);

  // Adds a stage that computes out[i] = value(i).
  Buffer compute(std::string name, DType dtype, std::vector<Expr> shape, const std::function<Expr(Axes)>& value,
                 Attrs annotations = {});
  // Adds a stage that sets out[i] = init and then out[i] = combine(out[i], value(i, r)) for each r. When nothing is
  // reduced, out[i] = combine(init, value(i)).
  using Combine = std::function<Expr(const Expr& accumulated, const Expr& value)>;
  Buffer reduce(std::string name, DType dtype, std::vector<Expr> shape, std::vector<Expr> reduced, const Expr& init,
                const Combine& combine, const std::function<Expr(Axes, Axes)>& value);
  // Gives the block that was added last an annotation.
  void annotate(std::string name, AttrValue value);
  // Adds one block that writes several buffers. The functions make its statements from the axes; there must not be an
  // init when nothing is reduced. buffer() creates the buffers.
  struct Bodies {
    std::optional<Stmt> init;
    Stmt body;
  };
  void block(std::string name, std::vector<Expr> spatial, std::vector<Expr> reduced,
             const std::function<Bodies(Axes spatial, Axes reduced)>& bodies, Attrs annotations = {});
  // Adds a block without axes around statements of any form (scans, sorts, data-dependent loops).
  void extern_block(std::string name, Stmt body);
  // Creates a buffer for block() and extern_block() to write. finish() decides whether it is an output.
  Buffer buffer(std::string name, DType dtype, std::vector<Expr> shape, std::string scope = "global");

  // Returns the program. Its params are the inputs in order of creation, then the outputs. Other buffers become
  // allocations of the root block.
  PrimFuncRef finish(const std::vector<Buffer>& outputs, Attrs attrs = {});

 private:
  std::vector<VarRef> params_;
  std::vector<Buffer> buffers_;
  std::vector<Stmt> stages_;
};

// Returns the block without axes at the top of a program, which holds the intermediates.
Stmt root_block(std::vector<Buffer> intermediates, Stmt body);
// Returns the body of such a block and appends its intermediates to `buffers`; returns any other statement as it is.
Stmt take_root(const Stmt& stmt, std::vector<Buffer>& buffers);

// These are combiners and their neutral elements.
Expr combine_sum(const Expr& a, const Expr& b);
Expr combine_prod(const Expr& a, const Expr& b);
Expr combine_max(const Expr& a, const Expr& b);
Expr combine_min(const Expr& a, const Expr& b);
Expr lowest(DType dtype);   // -inf for floats
Expr highest(DType dtype);  // inf for floats
inline Expr zero(DType dtype) { return scalar_imm(0, dtype); }
inline Expr one(DType dtype) { return scalar_imm(1, dtype); }
// Returns e^x for a softmax, where x is the distance from a row's largest element: 0 for x below `least`. Processors
// take a hundred cycles for a vector with a number too small to be normal, and the row's sum, at least 1, does not see
// it.
Expr power_in_softmax(const Expr& x, double least);
// Returns a limit just above the least x whose e^x is a normal number of the dtype.
double least_normal_power(DType dtype);
// Returns load(buffer, all axes).
Expr at(const Buffer& buffer, Axes axes);

}  // namespace relaxc
