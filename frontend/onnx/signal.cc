// Signals: Fourier transforms, windows, and the weights of mel filters.
#include <cmath>
#include <numbers>

#include "frontend/onnx/run_time_axes.h"

namespace relaxc::onnx_import {

namespace {

constexpr double kPi = std::numbers::pi;
Expr positions_below(Node& n, const Expr& count, DType dtype) {
  return n.cast(n.op("arange", {int_imm(0), count, int_imm(1)}, DTypeAttrs{kInt64}), dtype);
}
Expr scalar_tensor(Node& n, const Expr& value, DType dtype) {
  return n.cast(n.op("scalar_to_tensor", {n.simplify(value)}), dtype);
}

// ---- Windows

// Returns a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N), where N is size, or size - 1 for a symmetric window.
Expr cosine_window(Node& n, double a0, double a1, double a2 = 0) {
  DType dtype = n.attr_dtype("output_datatype", kFloat32), wide = dtype == kFloat64 ? kFloat64 : kFloat32;
  bool periodic = n.attr_int("periodic", 1) != 0;
  Expr size = n.scalar_int(0), i = positions_below(n, size, wide);
  Expr length = scalar_tensor(n, periodic ? size : max(size - 1, int_imm(1)), wide);
  Expr angle = n.div(n.scaled(i, 2 * kPi), length);
  Expr result = n.sub(n.scalar(a0, wide), n.scaled(n.op("cos", {angle}), a1));
  if (a2 != 0) result = n.add(result, n.scaled(n.op("cos", {n.scaled(angle, 2)}), a2));
  return n.cast(result, dtype);
}
Expr hann_window(Node& n) { return cosine_window(n, 0.5, 0.5); }
Expr hamming_window(Node& n) { return cosine_window(n, 25.0 / 46, 1 - 25.0 / 46); }
Expr blackman_window(Node& n) { return cosine_window(n, 0.42, 0.5, 0.08); }

// ---- Transforms

// The transform of `used` numbers is a product with a matrix while that is small: it maps `parts` numbers (real and
// imaginary part) of each element of the signal to as many of each element of the result.
constexpr int64_t kLargestMatrix = int64_t{1} << 21;
struct Transform {
  int64_t length, used, parts, results, result_parts;
  bool inverse, to_real;
  std::optional<Tensor> matrix(DType dtype) const {
    int64_t rows = used * parts, columns = results * result_parts;
    if (rows > kLargestMatrix || columns > kLargestMatrix || rows * columns > kLargestMatrix) return std::nullopt;
    Tensor matrix = Tensor::empty({rows, columns}, dtype);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column)
        matrix.set_double(row * columns + column,
                          weight(row / parts, row % parts, column / result_parts, column % result_parts));
    }
    return matrix;
  }
  // The factor of part p of element j in part q of element k.
  double weight(int64_t j, int64_t p, int64_t k, int64_t q) const {
    double angle = 2 * kPi * static_cast<double>(j * k % length) / static_cast<double>(length);
    if (!inverse) angle = -angle;
    double factor = p == q ? std::cos(angle) : p == 0 ? std::sin(angle) : -std::sin(angle);
    if (to_real && j > 0 && 2 * j != length) factor *= 2;  // the other half of the spectrum
    return inverse ? factor / static_cast<double>(length) : factor;
  }
};
// Returns the largest divisor up to the square root.
int64_t middle_divisor(int64_t length) {
  auto divisor = static_cast<int64_t>(std::sqrt(static_cast<double>(length)));
  while (length % divisor != 0) --divisor;
  return divisor;
}
// Multiplies x [batch, rows, columns, 2] by the length-th roots of one to the power of row * column.
Expr twisted(Node& n, const Expr& x, int64_t length, bool inverse) {
  const std::vector<Expr> shape = n.shape_of(x);
  int64_t rows = *as_int(shape[1]), columns = *as_int(shape[2]);
  Tensor cosines = Tensor::empty({rows, columns, 1}, n.dtype_of_tensor(x)),
         sines = Tensor::empty({rows, columns, 1}, cosines.dtype());
  for (int64_t i = 0; i < rows * columns; ++i) {
    double angle = 2 * kPi * static_cast<double>(i / columns * (i % columns)) / static_cast<double>(length);
    cosines.set_double(i, std::cos(angle));
    sines.set_double(i, inverse ? std::sin(angle) : -std::sin(angle));
  }
  Expr re = n.slice(x, 3, int_imm(0), int_imm(1)), im = n.slice(x, 3, int_imm(1), int_imm(2));
  Expr cosine = constant(cosines), sine = constant(sines);
  return join(n, {n.sub(n.mul(re, cosine), n.mul(im, sine)), n.add(n.mul(re, sine), n.mul(im, cosine))}, 3);
}
Expr transformed(Node& n, const Expr& x, const Expr& length, const DftAttrs& attrs);
// Transforms a signal of length a * b as a matrix, along one axis and then along the other (Bailey, "FFTs in external
// or hierarchical memory", 1990).
Expr transformed_in_steps(Node& n, const Expr& x, int64_t a, int64_t b, const DftAttrs& attrs) {
  const std::vector<Expr> shape = n.shape_of(x);
  const Expr& batch = shape[0];
  const DftAttrs whole{attrs.inverse, false};
  int64_t length = a * b;
  Expr rest = int_imm(length) - shape[1];
  Expr fitted =
      n.provably_equal(shape[1], int_imm(length))
          ? x
          : n.op("dyn.pad",
                 {x, shape_expr({int_imm(0), int_imm(0), int_imm(0), n.simplify(rest), int_imm(0), int_imm(0)})},
                 PadAttrs());
  // The matrix has a rows; its columns are transformed first.
  Expr columns = n.transpose(n.reshape(fitted, {batch, int_imm(a), int_imm(b), shape[2]}), {0, 2, 1, 3});
  Expr inner = transformed(n, n.reshape(columns, {n.simplify(batch * b), int_imm(a), shape[2]}), int_imm(a), whole);
  Expr turned = twisted(n, n.reshape(inner, {batch, int_imm(b), int_imm(a), int_imm(2)}), length, attrs.inverse);
  Expr rows = n.reshape(n.transpose(turned, {0, 2, 1, 3}), {n.simplify(batch * a), int_imm(b), int_imm(2)});
  Expr outer = n.reshape(transformed(n, rows, int_imm(b), whole), {batch, int_imm(a), int_imm(b), int_imm(2)});
  Expr result = n.reshape(n.transpose(outer, {0, 2, 1, 3}), {batch, int_imm(length), int_imm(2)});
  return attrs.onesided ? n.slice(result, 1, int_imm(0), int_imm(length / 2 + 1)) : result;
}
// Returns a signal whose last dim, 1 for real numbers and 2 for complex ones, is a constant. If the run decides, it is
// 2, and the imaginary parts are 0 where there are none.
Expr with_known_parts(Node& n, const Expr& x, bool is_real) {
  std::vector<Expr> dims = n.shape_of(x);
  const Expr parts = dims.back();
  if (as_int(parts)) return x;
  const int64_t last = std::ssize(dims) - 1;
  if (is_real) {
    n.require_equal(parts, int_imm(1), "the last dim of a signal of real numbers");
    return n.match_cast(x, tensor_type(with_item(dims, last, int_imm(1)), n.dtype_of_tensor(x)));
  }
  n.require_at_most(int_imm(1), parts, "the last dim, which is 1 or 2");
  n.require_at_most(parts, int_imm(2), "the last dim, which is 1 or 2");
  std::vector<Expr> width(2 * dims.size(), int_imm(0));
  width.back() = int_imm(1);
  return n.slice(n.op("dyn.pad", {x, shape_expr(width), n.scalar_like(0, x)}), last, int_imm(0), int_imm(2));
}
// Transforms x [batch, n, parts] along axis 1.
Expr transformed(Node& n, const Expr& signal, const Expr& length, const DftAttrs& attrs) {
  const Expr x = with_known_parts(n, signal, attrs.onesided && !attrs.inverse);
  const std::vector<Expr> shape = n.shape_of(x);
  auto known = as_int(length), size = as_int(shape[1]), parts = as_int(shape[2]);
  DType dtype = n.dtype_of_tensor(x);
  auto direct = [&] { return n.op("signal.dft", {x, length}, attrs); };
  bool is_plain = known && *known >= 1 && *known < (int64_t{1} << 31) && parts && *parts >= 1 && *parts <= 2;
  if (!is_plain || dtype.bits < 32 || (attrs.onesided && (*parts == 2) != attrs.inverse)) return direct();
  int64_t half = *known / 2 + 1, used = size.value_or(*known);
  bool to_real = attrs.inverse && attrs.onesided;
  Transform transform{.length = *known,
                      .used = std::min(used, to_real ? half : *known),
                      .parts = *parts,
                      .results = attrs.onesided && !to_real ? half : *known,
                      .result_parts = to_real ? 1 : 2,
                      .inverse = attrs.inverse,
                      .to_real = to_real};
  auto matrix = size ? transform.matrix(dtype) : std::nullopt;
  if (!matrix) {
    int64_t divisor = middle_divisor(*known);
    constexpr int64_t kShort = 512, kLong = int64_t{1} << 24;  // where steps do not pay, and where tables are too large
    bool has_steps = divisor > 1 && *known > kShort && *known <= kLong && !to_real;
    return has_steps ? transformed_in_steps(n, x, divisor, *known / divisor, attrs) : direct();
  }
  Expr kept = transform.used == *size ? x : n.slice(x, 1, int_imm(0), int_imm(transform.used));
  Expr rows = n.reshape(kept, {shape[0], int_imm(transform.used * transform.parts)});
  return n.reshape(n.op("matmul", {rows, constant(*matrix)}),
                   {shape[0], int_imm(transform.results), int_imm(transform.result_parts)});
}
void expect_real(Node& n) {
  if (n.dtype(0).is_complex())
    n.fail("the signal is {}, expected floats: the real and the imaginary parts in a last dim of 2",
           to_string(n.dtype(0)));
}
// Returns the axis of a DFT, which an operand may give, as a constant or when the model runs.
Expr dft_axis(Node& n) {
  int64_t rank = n.rank(0);
  auto constant = [&](int64_t axis) { return int_imm(n.axis(axis, rank)); };
  if (n.opset() < 20) return constant(n.attr_int("axis", 1));
  if (!n.has(2)) return constant(-2);
  auto known = n.constant_ints(2);
  std::vector<Expr> axes = known ? map_each(*known, constant) : read_axes(n, 2, rank);
  if (axes.size() != 1) n.fail("{} axes, expected 1", axes.size());
  return axes[0];
}
Expr dft(Node& n) {
  expect_real(n);
  Expr axis = dft_axis(n);
  DftAttrs attrs{n.attr_int("inverse", 0) != 0, n.attr_int("onesided", 0) != 0};
  std::vector<Expr> shape = n.shape(0), dims(shape.begin(), shape.end() - (shape.empty() ? 0 : 1));
  n.require_at_most(axis, int_imm(std::ssize(dims) - 1), "the axis is the last one, of real and imaginary parts");
  // The axes before it count as one, and so do those behind it.
  Expr before = int_imm(1), size = int_imm(1), after = int_imm(1);
  for (size_t d = 0; d < dims.size(); ++d) {
    Expr at = int_imm(static_cast<int64_t>(d));
    before = before * select(at < axis, dims[d], int_imm(1));
    size = size * select(equal(at, axis), dims[d], int_imm(1));
    after = after * select(axis < at, dims[d], int_imm(1));
  }
  for (Expr* extent : {&before, &size, &after})
    *extent = as_int(axis) ? n.simplify(*extent) : bounded(n, *extent, "extent", {0});
  Expr natural = attrs.inverse && attrs.onesided ? n.simplify((size - 1) * 2) : size;
  Expr length = n.has(1) ? n.scalar_int(1) : natural, rows = n.simplify(before * after);
  bool is_last = is_int(after, 1);
  Expr x = n.tensor(0);
  if (!is_last) x = n.transpose(n.reshape(x, {before, size, after, shape.back()}), {0, 2, 1, 3});
  Expr result = transformed(n, n.reshape(x, {rows, size, shape.back()}), length, attrs);
  const std::vector<Expr> found = n.shape_of(result);
  if (!is_last) result = n.transpose(n.reshape(result, {before, after, found[1], found[2]}), {0, 2, 1, 3});
  for (size_t d = 0; d < dims.size(); ++d) {
    Expr dim = n.simplify(select(equal(axis, int_imm(static_cast<int64_t>(d))), found[1], dims[d]));
    dims[d] = as_int(axis) ? dim : bounded(n, dim, "dim", {0});
  }
  dims.push_back(found[2]);
  return n.reshape(result, dims);
}
// The signal is [batch, length], or has a last axis with the real and the imaginary parts.
Expr stft(Node& n) {
  expect_real(n);
  Expr x = n.rank(0) == 2 ? n.with_new_axis(n.tensor(0), 2) : n.tensor(0);
  const std::vector<Expr> shape = n.shape_of(x);
  if (shape.size() != 3) n.fail("the signal has rank {}, expected 2 or 3", shape.size());
  Expr step = n.scalar_int(1);
  Expr length = n.has(3) ? n.scalar_int(3) : n.has(2) ? n.dim(2, 0) : shape[1];
  n.require_at_most(int_imm(1), step, "the frame_step");
  n.require_at_most(int_imm(1), length, "the frame_length");
  n.require_at_most(length, shape[1], "the frame_length exceeds the signal");
  if (n.has(2)) n.require_equal(n.dim(2, 0), length, "lengths of the window and of a frame");
  // Memory is counted before that is tested, so that a signal of any length must have a number of frames.
  Expr frames = n.simplify(floor_div(max(shape[1] - length, int_imm(0)), step) + 1);
  Expr begin = n.reshape(n.op("arange", {int_imm(0), n.simplify(frames * step), step}, DTypeAttrs{kInt64}),
                         {frames, int_imm(1)});
  Expr places = n.add(begin, n.reshape(positions_below(n, length, kInt64), {int_imm(1), length}));
  Expr cut = n.op("take", {x, places}, TakeAttrs{.axis = 1, .mode = "clip"});
  if (n.has(2)) cut = n.mul(cut, n.reshape(n.cast(n.tensor(2), n.dtype(0)), {length, int_imm(1)}));
  // Its default is 1, which only the transform of real numbers can be.
  bool onesided = n.attr_int("onesided", 1) != 0;
  Expr rows = n.reshape(cut, {n.simplify(shape[0] * frames), length, shape[2]});
  Expr result = transformed(n, rows, length, DftAttrs{false, onesided});
  const std::vector<Expr> dims = n.shape_of(result);
  return n.reshape(result, {shape[0], frames, dims[1], dims[2]});
}

// ---- Mel filters: triangles over the bins of a spectrum, whose corners are evenly spaced on the mel scale.
Expr mel_weights(Node& n) {
  DType dtype = n.attr_dtype("output_datatype", kFloat32);
  Expr bins = n.scalar_int(0), length = n.scalar_int(1), zero = n.scalar(0, kFloat64), one = n.scalar(1, kFloat64);
  auto real = [&](size_t i) { return n.reshape(n.cast(n.tensor(i), kFloat64), {}); };
  auto mel = [&](const Expr& hertz) {
    return n.scaled(n.op("log", {n.add(n.scaled(hertz, 1.0 / 700), one)}), 2595 / std::numbers::ln10);
  };
  Expr low = mel(real(3)), step = n.div(n.sub(mel(real(4)), low), scalar_tensor(n, bins + 2, kFloat64));
  Expr corner = n.add(n.mul(positions_below(n, n.simplify(bins + 2), kFloat64), step), low);
  Expr hertz = n.scaled(n.sub(n.op("exp", {n.scaled(corner, std::numbers::ln10 / 2595)}), one), 700);
  Expr scaled = n.mul(hertz, scalar_tensor(n, length + 1, kFloat64));
  Expr places = n.op("floor", {n.div(scaled, real(2))});
  auto corners = [&](int64_t k) { return n.slice(places, 0, int_imm(k), n.simplify(bins + k)); };
  Expr lower = corners(0), center = corners(1), upper = corners(2);
  Expr rows = n.simplify(floor_div(length, 2) + 1);
  Expr place = n.reshape(positions_below(n, rows, kFloat64), {rows, int_imm(1)});
  // Rises from lower to center, and falls from there to upper. A side may have no width.
  auto side = [&](const Expr& from, const Expr& distance) {
    return n.div(n.op("maximum", {distance, zero}), n.op("maximum", {from, one}));
  };
  Expr rising = side(n.sub(center, lower), n.sub(place, lower));
  Expr falling = side(n.sub(upper, center), n.sub(upper, place));
  Expr result = n.op("where", {n.op("less", {place, center}), rising, falling});
  result = n.op("where", {n.op("equal", {place, center}), one, result});
  return n.cast(result, dtype);
}

}  // namespace

std::vector<ConverterRow> signal_converters() {
  return {
      {"HannWindow", 17, 1, 1, hann_window, "output_datatype periodic"},
      {"HammingWindow", 17, 1, 1, hamming_window, "output_datatype periodic"},
      {"BlackmanWindow", 17, 1, 1, blackman_window, "output_datatype periodic"},
      {"DFT", 17, 1, 2, dft, "axis inverse onesided"},
      {"DFT", 20, 1, 3, dft, "inverse onesided"},
      {"STFT", 17, 2, 4, stft, "onesided"},
      {"MelWeightMatrix", 17, 5, 5, mel_weights, "output_datatype"},
  };
}

}  // namespace relaxc::onnx_import
