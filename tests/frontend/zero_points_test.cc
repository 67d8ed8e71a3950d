// Zero points of integer products: MatMulInteger has one per row of A and one per column of B.
#include "tests/frontend/onnx_model.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

const DType kByte = DType::uint(8);
Tensor byte_tensor(std::vector<int64_t> shape, const std::vector<uint8_t>& values) {
  return Tensor::of<uint8_t>(std::move(shape), kByte, values);
}

}  // namespace

TEST_CASE("a vector of zero points of MatMulInteger belongs to rows of A and columns of B", "[frontend]") {
  struct Case {
    Tensor a_zero, b_zero;
    std::vector<int32_t> expected;
  };
  const Case cases[] = {
      {byte_tensor({2}, {1, 2}), byte_tensor({}, {0}), {19, 28, 23, 34}},
      {byte_tensor({2, 1}, {1, 2}), byte_tensor({}, {0}), {19, 28, 23, 34}},
      {byte_tensor({2}, {1, 2}), byte_tensor({2}, {1, 0}), {10, 28, 12, 34}},
      {byte_tensor({1}, {1}), byte_tensor({1, 2}, {1, 0}), {10, 28, 14, 40}},
  };
  Tensor a = byte_tensor({2, 2}, {5, 6, 7, 8}), b = byte_tensor({2, 2}, {1, 2, 3, 4});
  for (const Case& c : cases) {
    OnnxModel model;
    model.input("a", kByte, "m,k").input("b", kByte, "k,n");
    model.constant("a_zero", c.a_zero).constant("b_zero", c.b_zero);
    model.node("MatMulInteger", "a b a_zero b_zero", "y");
    model.output("y", kInt32);
    Session session = model.compile();
    CHECK(same_tensor(session.run({a, b})[0], Tensor::of<int32_t>({2, 2}, kInt32, c.expected)));
  }
}

}  // namespace relaxc::test
