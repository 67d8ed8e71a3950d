// Constants behind random rows of reshape and permute_dims, against element by element copies.
#include "passes/graph_rewriter.h"

#include <numeric>
#include <random>

#include "codegen/compile.h"
#include "vm/file_memory.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

Tensor counted(std::vector<int64_t> shape, DType dtype) {
  Tensor result = Tensor::empty(std::move(shape), dtype);
  for (int64_t i = 0; i < result.size(); ++i) result.set_int(i, dtype.bytes() == 1 ? i % 100 : i);
  return result;
}

Tensor permuted(const Tensor& from, const std::vector<int64_t>& axes) {
  std::vector<int64_t> shape, strides(axes.size(), 1), steps;
  for (size_t d = axes.size(); d-- > 1;) strides[d - 1] = strides[d] * from.shape()[d];
  for (int64_t axis : axes) {
    shape.push_back(from.shape()[static_cast<size_t>(axis)]);
    steps.push_back(strides[static_cast<size_t>(axis)]);
  }
  Tensor result = Tensor::empty(shape, from.dtype());
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t rest = i, at = 0;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) at += rest % shape[d] * steps[d];
    result.set_int(i, from.as_int(at));
  }
  return result;
}

// A reshape to a random shape of as many elements.
std::vector<int64_t> random_shape(int64_t size, std::mt19937& random) {
  if (size == 0) return {0, 1 + static_cast<int64_t>(random() % 3)};
  std::vector<int64_t> shape;
  for (int64_t left = size; left > 1 || random() % 3 == 0;) {
    int64_t dim = 1 + static_cast<int64_t>(random() % 6);
    if (left % dim != 0) continue;
    shape.push_back(dim);
    left /= dim;
    if (random() % 4 == 0) {
      shape.push_back(left);
      break;
    }
  }
  if (std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()) != size) return {size};
  return shape;
}

// The function of the row of operators that gives every `shown`th value and the last; and the values.
struct Row {
  FunctionRef function;
  std::vector<Tensor> values;
};
Row random_row(std::mt19937& random) {
  constexpr DType kDTypes[] = {kFloat32, kInt64, DType::int_(8), kBool};
  std::vector<int64_t> shape;
  for (size_t d = 0; d < random() % 5; ++d) shape.push_back(static_cast<int64_t>(random() % 20 ? 1 + random() % 6 : 0));
  DType dtype = kDTypes[random() % 4];
  Tensor value = counted(shape, dtype);
  if (dtype.is_bool()) {
    for (int64_t i = 0; i < value.size(); ++i) value.set_int(i, static_cast<int64_t>(random() % 2));
  }
  Builder b(op_table());
  b.begin_dataflow();
  Expr x = constant(value);
  std::vector<Expr> shown;
  std::vector<Tensor> values;
  for (size_t step = 0, steps = 1 + random() % 5; step < steps; ++step) {
    if (random() % 2) {
      std::vector<int64_t> axes(static_cast<size_t>(value.ndim()));
      std::iota(axes.begin(), axes.end(), 0);
      std::shuffle(axes.begin(), axes.end(), random);
      x = b.op("permute_dims", {x}, Attrs{{"axes", AttrValue(axes)}});
      value = permuted(value, axes);
    } else {
      std::vector<int64_t> to = random_shape(value.size(), random);
      if (value.size() == 0) to = {0, 2};
      std::vector<Expr> dims;
      for (int64_t dim : to) dims.push_back(int_imm(dim));
      x = b.op("reshape", {x, shape_expr(dims)});
      value = value.reshaped(to);
    }
    if (step + 1 < steps && random() % 3 != 0) continue;
    shown.push_back(x);
    values.push_back(value);
  }
  Expr body = b.finish(tuple(shown));
  return {make_function({{}, body, body.type(), true, {}}), values};
}

// Returns the results of a function whose operators are all folded.
std::vector<Tensor> constants_of(const FunctionRef& function) {
  const SeqExpr& seq = *function->body.as<SeqExpr>();
  std::unordered_map<const NodeHeader*, Expr> values;
  for (const BindingBlock& block : seq.blocks) {
    for (const Binding& binding : block.bindings) values.emplace(binding.var.get(), binding.value);
  }
  Expr result = values.contains(seq.body.get()) ? values.at(seq.body.get()) : seq.body;
  std::vector<Tensor> tensors;
  for (const Expr& item : cast<Tuple>(result)->items) {
    INFO(debug_print(item));
    REQUIRE(item.is<Constant>());
    tensors.push_back(item.as<Constant>()->data);
  }
  return tensors;
}

}  // namespace

TEST_CASE("rows of reshape and permute_dims of constants are constants", "[passes]") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Row row = random_row(random);
    std::vector<Tensor> found = constants_of(fold_layout(row.function, op_table()));
    REQUIRE(found.size() == row.values.size());
    for (size_t i = 0; i < found.size(); ++i) {
      INFO("round " << round << ", " << describe(found[i]) << ", expected " << describe(row.values[i]));
      REQUIRE(same_contents(found[i], row.values[i]));
    }
  }
}

TEST_CASE("a constant that leaves memory while it is copied keeps its elements", "[passes]") {
  Tensor from = vm::tensor_in_file({3001, 3003}, kFloat32);  // more than a piece, less than two
  for (int64_t i = 0; i < from.size(); ++i) from.data<float>()[i] = static_cast<float>(i);
  Builder b(op_table());
  b.begin_dataflow();
  Expr body = b.finish(tuple({b.op("permute_dims", {constant(from)})}));
  Tensor found = constants_of(fold_layout(make_function({{}, body, body.type(), true, {}}), op_table()))[0];
  int64_t wrong = 0;
  for (int64_t i = 0; i < found.size(); ++i) {
    wrong += found.data<float>()[i] != static_cast<float>(i % 3001 * 3003 + i / 3001);
  }
  CHECK(wrong == 0);
}

}  // namespace relaxc::test
