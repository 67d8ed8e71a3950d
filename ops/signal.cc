// The discrete Fourier transform.
#include <numbers>

#include "ir/op_names.h"
#include "ops/attributes.h"
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
// Sums the products with cosines and sines, which a table holds for the `length` different angles.
PrimFuncRef lower_dft(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  const Buffer data = x[0];
  DftAttrs attrs = op.attrs<DftAttrs>();
  bool to_real = attrs.inverse && attrs.onesided, has_imaginary = is_int(op.shape(0)[2], 2);
  DType dtype = accumulation_dtype(op.dtype(0));
  Expr length = op.arg(1), used = to_real ? floor_div(length, 2) + 1 : length;
  auto table = [&, &builder = b](const char* name, const char* function) {
    return builder.compute(name, dtype, {length}, [&](Axes i) {
      Expr angle = cast_to(i[0], kFloat64) * float_imm(2 * std::numbers::pi, kFloat64);
      angle = binary(BinaryOp::kDiv, angle, cast_to(length, kFloat64));
      return cast_to(intrinsic(function, {angle}, kFloat64), dtype);
    });
  };
  Buffer cosines = table("T_cosines", "tir.cos"), sines = table("T_sines", "tir.sin");
  const std::vector<Expr> shape = *known_shape(infer_dft(op));
  auto term = [&](Axes i, Axes r) {
    auto part = [&](int64_t k) { return cast_to(load(data, {i[0], r[0], int_imm(k)}), dtype); };
    Expr angle = floor_mod(i[1] * r[0], length), re = part(0), im = has_imaginary ? part(1) : zero(dtype);
    Expr cosine = load(cosines, {angle}), sine = load(sines, {angle});
    if (!attrs.inverse) sine = zero(dtype) - sine;
    Expr real_part = re * cosine - im * sine, imaginary_part = re * sine + im * cosine;
    if (!to_real) return select(equal(i[2], int_imm(0)), real_part, imaginary_part);
    // The other half of the spectrum is the same but for the sign of the imaginary parts.
    Expr is_single = equal(r[0], int_imm(0)) || equal(r[0] * 2, length);
    return select(is_single, real_part, real_part + real_part);
  };
  Buffer sum =
      b.reduce("T_dft_sum", dtype, shape, {simplify(min(op.shape(0)[1], used))}, zero(dtype), combine_sum, term);
  return b.finish({b.compute("T_dft", op.dtype(0), shape, [&](Axes i) {
    Expr value = at(sum, i);
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
