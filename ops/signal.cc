// The discrete Fourier transform.
#include <numbers>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/fold.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

// data is [batch, n, c] with the real and the imaginary part along its last axis, or only the former. The signal has
// `length` elements: it is cut, or continued with zeros.
Type infer_dft(const OpCall& op) {
  require_rank(op, 0, 3);
  require_scalar(op, 1);
  if (!op.dtype(0).is_float()) op.fail("expected floats, got {}", to_string(op.dtype(0)));
  DftAttrs attrs = op.attrs<DftAttrs>();
  const std::vector<Expr>& shape = op.shape(0);
  auto parts = as_int(shape[2]);
  bool to_real = attrs.inverse && attrs.onesided;
  if (!parts) op.unsupported("the last dim, 1 for real numbers and 2 for complex ones, is not a constant");
  if (*parts != 1 && *parts != 2) op.fail("the last dim is {}, expected 1 or 2", *parts);
  if (attrs.onesided && (*parts == 2) != to_real)
    op.fail("onesided={} numbers, which are not those of a real signal",
            to_real ? "1 and inverse=1 of real" : "1 of complex");
  Expr length = op.arg(1), half = simplify(floor_div(length, 2) + 1);
  op.require_at_most(int_imm(1), length, "the length is less than 1");
  return tensor_type({shape[0], attrs.onesided && !to_real ? half : length, int_imm(to_real ? 1 : 2)}, op.dtype(0));
}
// Transforms each signal in steps, one for each factor of the length, which the run may give: Stockham's order of a
// transform by mixed radices. With `rest` for length / done, element j * rest + k of `parts` is number j of the
// transform of every rest-th element from k on; a step joins `factor` of these.
class Transformation {
 public:
  Transformation(const OpCall& op, Buffer data, Buffer cosines, Buffer sines, Buffer parts, Buffer next, Expr row)
      : attrs_(op.attrs<DftAttrs>()),
        given_(op.shape(0)[1]),
        length_(op.arg(1)),
        has_imaginary_(is_int(op.shape(0)[2], 2)),
        dtype_(accumulation_dtype(op.dtype(0))),
        data_(std::move(data)),
        cosines_(std::move(cosines)),
        sines_(std::move(sines)),
        parts_(std::move(parts)),
        next_(std::move(next)),
        row_(std::move(row)) {}

  Stmt run() const {
    VarRef k = make_dim("k");
    Stmt steps = make(While{done_.get() < length_, step()});
    return seq({done_.declared(), factor_.declared(), turn_.declared(), loop(k, length_, fill(k)),
                done_.set(int_imm(1)), steps});
  }

 private:
  Stmt set(const Buffer& buffer, const Expr& k, const Expr& real, const Expr& imaginary) const {
    return seq({store(buffer, real, {row_, int_imm(0), k}), store(buffer, imaginary, {row_, int_imm(1), k})});
  }
  // The signal is cut, or continued with zeros. Of half a spectrum the other half has the opposite imaginary parts.
  Stmt fill(const Expr& k) const {
    const bool to_real = attrs_.inverse && attrs_.onesided;
    Expr is_stated = k <= floor_div(length_, 2), source = to_real ? select(is_stated, k, length_ - k) : k;
    auto part = [&](int64_t c) {
      Expr element = load(data_, {row_, max(min(source, given_ - 1), int_imm(0)), int_imm(c)});
      return if_then_else(source < given_, cast_to(element, dtype_), zero(dtype_));
    };
    Expr imaginary = has_imaginary_ ? part(1) : zero(dtype_);
    if (to_real) imaginary = select(is_stated, imaginary, zero(dtype_) - imaginary);
    return set(parts_, k, part(0), imaginary);
  }
  // Sets the factor to 4, or else to the least one.
  Stmt find_factor(const Expr& rest) const {
    Expr factor = factor_.get();
    Stmt advance = factor_.set(select(factor * factor > rest, rest, factor + 1));
    return seq({factor_.set(select(equal(floor_mod(rest, int_imm(4)), int_imm(0)), int_imm(4), int_imm(2))),
                make(While{!equal(floor_mod(rest, factor), int_imm(0)), advance})});
  }
  Stmt step() const {
    VarRef rest = make_dim("rest"), stride = make_dim("stride"), f = make_dim("f"), s = make_dim("s");
    VarRef k = make_dim("k"), clear = make_dim("clear"), copy = make_dim("copy"), from = make_dim("from");
    VarRef cosine = make_var("cosine", prim_type(dtype_)), sine = make_var("sine", prim_type(dtype_));
    auto element = [&](const Buffer& buffer, int64_t c, const Expr& at) {
      return load(buffer, {row_, int_imm(c), at});
    };
    Expr to = f * stride, re = element(parts_, 0, from + k), im = element(parts_, 1, from + k);
    Stmt add = set(next_, to + k, element(next_, 0, to + k) + (re * cosine - im * sine),
                   element(next_, 1, to + k) + (re * sine + im * cosine));
    Expr angle = load(sines_, {turn_.get()}), turned = turn_.get() + f * stride;
    Stmt join = seq({make(Bind{cosine, load(cosines_, {turn_.get()})}),
                     make(Bind{sine, attrs_.inverse ? angle : zero(dtype_) - angle}),
                     make(Bind{from, stride * s + rest * floor_mod(f, done_.get())}), loop(k, stride, add),
                     turn_.set(select(turned >= length_, turned - length_, turned))});
    Stmt frequency = seq({loop(clear, stride, set(next_, to + clear, zero(dtype_), zero(dtype_))),
                          turn_.set(int_imm(0)), loop(s, factor_.get(), join)});
    Stmt copy_back = set(parts_, copy, element(next_, 0, copy), element(next_, 1, copy));
    return seq({make(Bind{rest, floor_div(length_, done_.get())}), find_factor(rest),
                make(Bind{stride, floor_div(rest, factor_.get())}), loop(f, done_.get() * factor_.get(), frequency),
                loop(copy, length_, copy_back), done_.set(done_.get() * factor_.get())});
  }

  DftAttrs attrs_;
  Expr given_, length_;
  bool has_imaginary_;
  DType dtype_;
  Buffer data_, cosines_, sines_, parts_, next_;  // parts and next are [batch, 2, length]
  Expr row_;
  LocalScalar done_{"done", kInt64}, factor_{"factor", kInt64}, turn_{"turn", kInt64};
};
// A table holds the cosines and sines of the `length` different angles.
PrimFuncRef lower_dft(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  DftAttrs attrs = op.attrs<DftAttrs>();
  DType dtype = accumulation_dtype(op.dtype(0));
  Expr length = op.arg(1), batch = op.shape(0)[0];
  auto table = [&, &builder = b](const char* name, const char* function) {
    return builder.compute(name, dtype, {length}, [&](Axes i) {
      Expr angle = cast_to(i[0], kFloat64) * float_imm(2 * std::numbers::pi, kFloat64);
      angle = binary(BinaryOp::kDiv, angle, cast_to(length, kFloat64));
      return cast_to(intrinsic(function, {angle}, kFloat64), dtype);
    });
  };
  Buffer cosines = table("T_cosines", "tir.cos"), sines = table("T_sines", "tir.sin");
  const std::vector<Expr> shape = *known_shape(infer_dft(op));
  Buffer parts = b.buffer("T_parts", dtype, {batch, int_imm(2), length});
  Buffer next = b.buffer("T_next", dtype, {batch, int_imm(2), length});
  b.block("T_transform", {batch}, {}, [&, &inputs = x](Axes i, Axes) {
    return ComputeBuilder::Bodies{std::nullopt, Transformation(op, inputs[0], cosines, sines, parts, next, i[0]).run()};
  });
  return b.finish({b.compute("T_dft", op.dtype(0), shape, [&](Axes i) {
    Expr value = load(parts, {i[0], i[2], i[1]});
    return cast_to(attrs.inverse ? binary(BinaryOp::kDiv, value, cast_to(length, dtype)) : value, op.dtype(0));
  })});
}

}  // namespace

std::vector<OpRow> signal_ops() {
  return {{.name = "relax.signal.dft",
           .doc = "the discrete Fourier transform along axis 1, or its inverse",
           .inputs = {{"data", "[batch, n, 2], or 1 for real numbers"}, {"length", "int64 scalar: of the transform"}},
           .attrs = op_attrs<DftAttrs>(),
           .infer = infer_dft,
           .infer_partial = infer_unknown,
           .legalize = lower_dft}};
}

}  // namespace relaxc
