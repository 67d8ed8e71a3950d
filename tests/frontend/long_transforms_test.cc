// A Fourier transform of a length that is too long for a matrix, or that the run gives, runs in steps. Frequencies are
// compared with their definition; shorter transforms are compared with NumPy's (tests/onnx/cases/dft_20.test).
#include <cmath>

#include "tests/frontend/onnx_model.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// With `is_open` the run gives the number of elements, and the length is a value that it computes.
Tensor transformed(const Tensor& x, int64_t length, bool inverse, bool onesided, bool is_open) {
  OnnxModel model(20);
  model.input("x", kFloat64, fmt::format("n,{},{}", is_open ? "t" : std::to_string(x.shape()[1]), x.shape()[2]));
  if (is_open) {
    model.constant("axis", Tensor::of<int64_t>({}, kInt64, {1}));
    model.constant("more", Tensor::of<int64_t>({}, kInt64, {length - x.shape()[1]}));
    model.node("Shape", "x", "shape");
    model.node("Gather", "shape axis", "size");
    model.node("Add", "size more", "length");
  } else {
    model.constant("length", Tensor::of<int64_t>({}, kInt64, {length}));
  }
  set_int(set_int(model.node("DFT", "x length", "y"), "inverse", inverse), "onesided", onesided);
  model.output("y", kFloat64);
  return model.compile().run({x})[0];
}
Tensor signal_of(int64_t length, int64_t parts) {
  Tensor x = Tensor::empty({2, length, parts}, kFloat64);
  for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i * i % 1009) / 512 - 1);
  return x;
}

}  // namespace

TEST_CASE("long Fourier transforms run in steps", "[frontend]") {
  struct Case {
    int64_t size, length, parts;
    bool inverse, onesided;
  };
  const Case cases[] = {{2048, 2048, 1, false, true},  {2048, 2048, 2, false, false}, {1500, 1500, 2, true, false},
                        {1000, 1536, 2, false, false}, {3000, 2310, 1, false, true},  {1031, 1031, 2, true, false},
                        {1025, 2048, 2, true, true}};
  for (size_t i = 0; i < 2 * std::size(cases); ++i) {
    const Case& c = cases[i / 2];
    const bool is_open = i % 2 == 1;
    INFO(c.size << " elements, length " << c.length << ", " << c.parts << " parts" << (is_open ? ", open" : ""));
    Tensor x = signal_of(c.size, c.parts);
    Tensor y = transformed(x, c.length, c.inverse, c.onesided, is_open);
    int64_t used = std::min(c.size, c.length), outputs = y.shape()[1], y_parts = y.shape()[2];
    REQUIRE(outputs == (c.onesided && !c.inverse ? c.length / 2 + 1 : c.length));
    for (int64_t k : {0, 1, 17, 700}) {
      double re = 0, im = 0;
      for (int64_t j = 0; j < used; ++j) {
        double angle = 2 * M_PI * static_cast<double>(j * k % c.length) / static_cast<double>(c.length);
        double a = x.as_double(j * c.parts), b = c.parts == 2 ? x.as_double(j * 2 + 1) : 0;
        double cosine = std::cos(angle), sine = c.inverse ? std::sin(angle) : -std::sin(angle);
        double times = c.inverse && c.onesided && j > 0 && 2 * j < c.length ? 2 : 1;  // with the other half
        re += times * (a * cosine - b * sine);
        im += times * (a * sine + b * cosine);
      }
      double scale = c.inverse ? static_cast<double>(c.length) : 1;
      CHECK(std::abs(y.as_double(k * y_parts) - re / scale) < 1e-8);
      if (y_parts == 2) CHECK(std::abs(y.as_double(k * 2 + 1) - im / scale) < 1e-8);
    }
  }
}

}  // namespace relaxc::test
