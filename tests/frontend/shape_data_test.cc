// Shape arithmetic whose result is data: known and unknown dims together, of every dtype, with and without fractions.
#include <cmath>

#include "frontend/onnx/model_file.h"
#include "tests/frontend/onnx_model.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// op(Cast(Shape(x))) for x [n, 2, 3], or of one dim of it.
OnnxModel shape_as_data(DType dtype, const std::string& dim, const std::string& rounding) {
  OnnxModel model;
  model.input("x", kFloat32, "n,2,3").node("Shape", "x", "shape");
  std::string last = "shape";
  if (!dim.empty()) {
    Tensor index = Tensor::empty({}, kInt64);
    index.set_int(0, std::stoll(dim));
    model.constant("index", index).node("Gather", "shape index", "dim");
    last = "dim";
  }
  set_int(model.node("Cast", last, "cast"), "to", onnx_import::element_type_of_dtype(dtype));
  Tensor two = Tensor::empty({}, dtype);
  two.set_double(0, 2);
  model.constant("two", two).node("Div", "cast two", "half");
  if (rounding.empty()) return model.output("half", dtype);
  model.node(rounding, "half", "rounded");
  return model.output("rounded", dtype);
}

}  // namespace

TEST_CASE("dims with fractions are computed as data", "[frontend]") {
  for (DType dtype : {kFloat32, kFloat64, kInt64, kInt32}) {
    for (const char* dim : {"", "0", "1"}) {
      for (const char* rounding : {"", "Floor", "Ceil"}) {
        if (!dtype.is_float() && *rounding) continue;
        INFO(to_string(dtype) << " dim '" << dim << "' " << rounding);
        Session session = shape_as_data(dtype, dim, rounding).compile();
        for (int64_t n : {0, 1, 5, 8}) {
          Tensor result = session.run({numbers({n, 2, 3})}).at(0);
          std::vector<int64_t> dims = {n, 2, 3};
          if (*dim) dims = {dims[static_cast<size_t>(std::stoll(dim))]};
          REQUIRE(result.dtype() == dtype);
          REQUIRE(result.shape() == (*dim ? std::vector<int64_t>{} : std::vector<int64_t>{3}));
          for (size_t i = 0; i < dims.size(); ++i) {
            double half = static_cast<double>(dims[i]) / 2;
            bool down = !dtype.is_float() || *rounding == 'F';
            CHECK(result.as_double(static_cast<int64_t>(i)) == (down        ? std::floor(half)
                                                                : *rounding ? std::ceil(half)
                                                                            : half));
          }
        }
      }
    }
  }
}

}  // namespace relaxc::test
