// Random numbers, and dropout in training.
#include <bit>

#include "frontend/onnx/graph_importer.h"

namespace relaxc::onnx_import {

namespace {

// Returns the attribute's bits, or a number that is another one in each run and for each node.
Expr seed_of(Node& n) {
  if (n.has_attr("seed") && n.op_type() == "Dropout") return int_imm(n.attr_int("seed", 0));
  if (n.has_attr("seed")) return int_imm(std::bit_cast<int32_t>(static_cast<float>(n.attr_float("seed", 0))));
  int64_t number = (n.graph().context().node_count << 32) + static_cast<int64_t>(n.builder().size());
  return n.builder().op("random.seed", {int_imm(number)}, {}, "seed");
}
Expr uniform(Node& n, const std::vector<Expr>& shape, DType dtype, double low, double high) {
  return n.op("random.uniform", {shape_expr(shape), seed_of(n)}, RandomUniformAttrs{low, high, dtype});
}
// The dims of an attribute, or of the input.
std::vector<Expr> output_dims(Node& n) {
  return n.row().has_attribute("shape") ? int_imms(n.required_ints("shape")) : n.shape(0);
}
DType output_dtype(Node& n) {
  const DType dtype = n.attr_dtype("dtype", n.inputs() == 0 ? kFloat32 : n.dtype(0));
  if (dtype.is_complex())
    n.fail("the result is {}, expected real numbers; state another dtype, the attribute of this name",
           to_string(dtype));
  return dtype;
}
Expr random_uniform(Node& n) {
  return uniform(n, output_dims(n), output_dtype(n), n.attr_float("low", 0), n.attr_float("high", 1));
}
Expr random_normal(Node& n) {
  RandomNormalAttrs attrs{n.attr_float("mean", 0), n.attr_float("scale", 1), output_dtype(n)};
  return n.op("random.normal", {shape_expr(output_dims(n)), seed_of(n)}, attrs);
}
Expr bernoulli(Node& n, const Expr& x) {
  Expr numbers = uniform(n, n.shape(0), n.dtype(0) == kFloat64 ? kFloat64 : kFloat32, 0, 1);
  return n.cast(n.op("less", {numbers, n.cast(x, n.dtype_of_tensor(numbers))}), output_dtype(n));
}
// Rows of logarithms of probabilities, which need not sum to 1.
Expr multinomial(Node& n) {
  if (n.rank(0) != 2) n.fail("input has rank {}, expected 2", n.rank(0));
  DType dtype = n.attr_dtype("dtype", kInt32);
  if (dtype != kInt32 && dtype != kInt64) n.fail("dtype is {}, expected int32 or int64", to_string(dtype));
  Expr samples = int_imm(n.attr_int("sample_size", 1)), rows = n.dim(0, 0), draws = n.simplify(rows * samples);
  DType wide = n.dtype(0) == kFloat64 ? kFloat64 : kFloat32;
  Expr probabilities = n.op("nn.softmax", {n.cast(n.tensor(0), wide)}, LastAxisAttrs{1});
  Expr numbers = uniform(n, {draws, int_imm(1)}, kFloat64, 0, 1);
  Expr row = n.op("arange", {int_imm(0), rows, int_imm(1)}, DTypeAttrs{kInt64});
  row = n.broadcast_to(n.reshape(row, {rows, int_imm(1)}), {rows, samples});
  Expr drawn = n.op("multinomial_from_uniform", {probabilities, numbers, n.reshape(row, {draws, int_imm(1)})},
                    MultinomialAttrs{dtype});
  return n.reshape(drawn, {rows, samples});
}

// The state of a Dropout: a flag of the model's run, or a constant.
struct Training {
  bool never, always;
};
Training read_training(Node& n) {
  if (n.opset() < 7) {
    bool is_test = n.attr_int("is_test", 0) != 0;
    return {is_test, !is_test};
  }
  if (!n.has(2)) return {true, false};
  auto known = n.constant(2), ratio = n.has(1) ? n.constant(1) : std::nullopt;
  bool no_drop = ratio && ratio->size() == 1 && ratio->as_double(0) == 0;
  if (no_drop) return {true, false};
  return known && known->size() == 1 ? Training{known->as_int(0) == 0, known->as_int(0) != 0} : Training{false, false};
}
Outputs dropout(Node& n) {
  Training training = read_training(n);
  Expr x = n.tensor(0);
  DType mask_dtype = n.opset() < 10 ? n.dtype(0) : kBool;
  if (training.never) {
    Outputs outputs = {n.value(0)};
    if (n.has_output(1)) outputs.push_back(n.of(n.op("full", {shape_expr(n.shape_of(x)), n.scalar(1, mask_dtype)})));
    return outputs;
  }
  DType wide = n.dtype(0) == kFloat64 ? kFloat64 : kFloat32;
  Expr ratio = n.opset() >= 12 && n.has(1) ? n.reshape(n.cast(n.tensor(1), wide), {})
                                           : n.scalar(n.opset() < 12 ? n.attr_float("ratio", 0.5) : 0.5, wide);
  Expr stays = n.op("greater_equal", {uniform(n, n.shape(0), wide, 0, 1), ratio});
  Expr factor = n.cast(n.div(n.scalar(1, wide), n.sub(n.scalar(1, wide), ratio)), n.dtype(0));
  Expr result = n.op("where", {stays, n.mul(x, factor), n.scalar_like(0, x)});
  if (!training.always) {
    Expr flag = n.reshape(n.tensor(2), {});
    result = n.op("where", {flag, result, x});
    stays = n.op("logical_or", {stays, n.op("logical_not", {flag})});
  }
  return {n.of(result), n.of(n.cast(stays, mask_dtype))};
}

}  // namespace

std::vector<ConverterRow> random_converters() {
  return {
      {"RandomUniform", 1, 0, 0, random_uniform, "dtype high low seed shape"},
      {"RandomUniformLike", 1, 1, 1, random_uniform, "dtype high low seed"},
      {"RandomNormal", 1, 0, 0, random_normal, "dtype mean scale seed shape"},
      {"RandomNormalLike", 1, 1, 1, random_normal, "dtype mean scale seed"},
      {"Bernoulli", 15, 1, 1, bernoulli, "dtype seed"},
      {"Multinomial", 7, 1, 1, multinomial, "dtype sample_size seed"},
      {"Dropout", 1, 1, 1, dropout, "consumed_inputs is_test ratio seed"},
      {"Dropout", 12, 1, 3, dropout, "seed"},
  };
}

}  // namespace relaxc::onnx_import
