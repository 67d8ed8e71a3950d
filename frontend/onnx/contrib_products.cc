// Products of com.microsoft: fused ones, and those whose weights are numbers of few bits.
#include <algorithm>

#include "frontend/onnx/contrib.h"

namespace relaxc::onnx_import {

Expr unpacked(Node& n, const Expr& bytes, int64_t bits) {
  if (bits == 8) return bytes;
  const int64_t per_byte = 8 / bits, last = std::ssize(n.shape_of(bytes));
  auto number = [&](int64_t value) { return n.scalar(static_cast<double>(value), DType::uint(8)); };
  std::vector<Expr> parts;
  for (int64_t i = 0; i < per_byte; ++i) {
    Expr part = i == 0 ? bytes : n.op("right_shift", {bytes, number(i * bits)});
    parts.push_back(n.with_new_axis(n.op("bitwise_and", {part, number((1 << bits) - 1)}), last));
  }
  std::vector<Expr> dims = n.shape_of(bytes);
  dims.back() = n.simplify(dims.back() * per_byte);
  return n.reshape(join(n, parts, last), dims);
}

namespace {

// Transposes the last two axes, and first moves axis 0 behind the other batch axes.
Expr turned(Node& n, const Expr& x, const char* swaps_last, const char* moves_batch) {
  const int64_t rank = std::ssize(n.shape_of(x));
  const bool swaps = n.attr_int(swaps_last, 0) != 0, moves = moves_batch && n.attr_int(moves_batch, 0) != 0;
  if (rank < 2 || (!swaps && !moves)) return x;
  std::vector<int64_t> axes = int_range(0, rank);
  if (moves) std::rotate(axes.begin(), axes.begin() + 1, axes.end() - 1);
  if (swaps) std::swap(axes[rank - 2], axes[rank - 1]);
  return n.transpose(x, axes);
}
Expr fused_matmul(Node& n) {
  const bool has_batch = n.row().has_attribute("transBatchA");
  Expr a = turned(n, n.tensor(0), "transA", has_batch ? "transBatchA" : nullptr);
  Expr b = turned(n, n.tensor(1), "transB", has_batch ? "transBatchB" : nullptr);
  return n.scaled(n.standard("MatMul", {a, b}), n.attr_float("alpha", 1));
}
// The activation's parameters as FusedGemm and FusedMatMulActivation have them.
Expr with_activation(Node& n, const Expr& x) {
  const std::string name = n.attr_string("activation", "");
  if (name == "Softmax") return n.standard("Softmax", {x}, {{"axis", n.attr_int("activation_axis", -1)}});
  std::vector<double> params;
  for (const char* param : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (n.has_attr(param)) params.push_back(n.attr_float(param, 0));
  }
  return activated(n, x, name, params);
}
Expr fused_matmul_activation(Node& n) { return with_activation(n, fused_matmul(n)); }
Expr fused_gemm(Node& n) { return with_activation(n, n.standard("Gemm", optional_tensors(n))); }
Expr gemm_fast_gelu(Node& n) {
  Expr product = n.standard("MatMul", {n.tensor(0), n.tensor(1)});
  return n.op("nn.gelu_tanh", {n.has(2) ? n.add(product, n.tensor(2)) : product});
}

// ---- Weights of few bits

// Returns the columns of a matrix of integers of few bits in that order.
Tensor with_order(const Tensor& numbers, const std::vector<int64_t>& order) {
  const int64_t rows = numbers.shape()[0], given = numbers.shape()[1], count = std::ssize(order);
  Tensor result = Tensor::empty({rows, count}, numbers.dtype());
  std::fill_n(static_cast<uint8_t*>(result.raw()), result.bytes(), uint8_t{0});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < count; ++i)
      result.set_int(row * count + i, numbers.as_int(row * given + order[static_cast<size_t>(i)]));
  }
  return result;
}

// Takes the last axis of the activations in the order of a matrix's rows.
Expr columns_in_order(Node& n, const Expr& x, const std::vector<int64_t>& order) {
  const int64_t count = std::ssize(order), axis = n.rank(0) - 1;
  n.require_equal(n.dim(0, axis), int_imm(count), "the last dim of A, and K");
  return n.op("take", {x, constant(Tensor::of<int64_t>({count}, kInt64, order), n.span())}, TakeAttrs{.axis = axis});
}

// The operands of MatMulNBits: numbers of a few bits in blocks along K.
struct BlocksOfNumbers {
  Node& n;
  int64_t bits, rows, k, block;
  int64_t blocks() const { return (k + block - 1) / block; }

  Expr of_blocks(size_t input, const std::vector<int64_t>& dims, const char* what) const {
    n.require_equal(n.simplify(product(n.shape(input))), n.simplify(product(int_imms(dims))), what);
    return n.reshape(n.tensor(input), int_imms(dims));
  }
  Expr bytes() const {
    return of_blocks(1, {rows, blocks(), block * bits / 8}, "bytes of B, and of N rows of K numbers in blocks");
  }
  Expr scales() const { return of_blocks(2, {rows, blocks()}, "scales, and blocks of N rows of K numbers"); }
  Expr zero_bytes() const {
    return of_blocks(3, {rows, (blocks() * bits + 7) / 8},
                     "bytes of zero points, and of those of all blocks of N rows");
  }
  bool has_zeros() const { return n.has(3); }
  bool has_float_zeros() const { return has_zeros() && n.dtype(3).is_float(); }
  Expr float_zeros() const { return of_blocks(3, {rows, blocks()}, "zero points, and blocks of N rows of K numbers"); }
  int64_t usual_zero() const { return int64_t{1} << (bits - 1); }

  // Returns the integers of so many bits in the bytes of a constant input, those behind `count` of each row included:
  // both have the first number in the low bits.
  Tensor numbers_of(size_t input) const {
    const Tensor bytes = *n.constant(input);
    return Tensor::view({rows, bytes.size() / rows * 8 / bits}, DType::uint(static_cast<int>(bits)), bytes.raw(),
                        bytes.owner());
  }
  // Returns the first `count` of each row.
  Expr first_of(const Tensor& numbers, int64_t count) const {
    const Expr all = constant(numbers, n.span());
    return numbers.shape()[1] == count ? all : n.slice(all, 1, int_imm(0), int_imm(count));
  }
  // Constant weights stay as they are, for products that read them so.
  bool are_constant() const {
    return n.constant(1) && n.constant(2) && (!has_zeros() || n.constant(3)) && block * bits % 8 == 0 &&
           n.dtype(0).bits <= 32;
  }
  // Returns the positions along K in an order in which the groups of g_idx are blocks; nullopt where there is none.
  std::optional<std::vector<int64_t>> order_of_blocks() const {
    std::vector<int64_t> order = int_range(0, k);
    if (!n.has(4)) return order;
    const std::optional<Tensor> group = n.constant(4);
    if (!group || group->size() < k) return std::nullopt;
    std::ranges::stable_sort(order, {}, [&](int64_t position) { return group->as_int(position); });
    for (int64_t i = 0; i < k; ++i) {
      if (group->as_int(order[static_cast<size_t>(i)]) != i / block) return std::nullopt;
    }
    return order;
  }
  // Returns constant weights, whose rows have that order.
  Expr constant_weight(const std::vector<int64_t>& order) const {
    bytes();  // checks their count
    Expr numbers = std::ranges::is_sorted(order) ? first_of(numbers_of(1), k)
                                                 : constant(with_order(numbers_of(1), order), n.span());
    Expr zero = constant(
        Tensor::of<uint8_t>({}, DType::uint(static_cast<int>(bits)), {static_cast<uint8_t>(usual_zero())}), n.span());
    if (has_float_zeros()) {
      zero = float_zeros();
    } else if (has_zeros()) {
      zero_bytes();
      zero = first_of(numbers_of(3), blocks());
    }
    return n.op("dequantize", {numbers, scales(), zero},
                DequantizeAttrs{.axis = 1, .out_dtype = n.dtype(0), .block_size = block});
  }
  Expr weight() const {
    const DType dtype = n.dtype(0);
    Expr numbers = n.reshape(n.cast(unpacked(n, bytes(), bits), dtype), int_imms({rows, blocks() * block}));
    numbers = n.slice(numbers, 1, int_imm(0), int_imm(k));
    Expr scale = scales(), zero = n.scalar(static_cast<double>(usual_zero()), dtype);
    if (has_float_zeros()) {
      zero = n.cast(float_zeros(), dtype);
    } else if (has_zeros()) {
      zero = n.cast(n.slice(unpacked(n, zero_bytes(), bits), 1, int_imm(0), int_imm(blocks())), dtype);
    }
    // The block of each position along K.
    Expr group = n.op("floor_divide", {n.op("arange", {int_imm(0), int_imm(k), int_imm(1)}, DTypeAttrs{kInt64}),
                                       n.scalar(static_cast<double>(block), kInt64)});
    if (n.has(4)) group = n.slice(n.tensor(4), 0, int_imm(0), int_imm(k));
    auto of_groups = [&](const Expr& x) { return n.op("take", {x, group}, TakeAttrs{.axis = 1}); };
    return n.mul(n.sub(numbers, has_zeros() ? of_groups(zero) : zero), of_groups(scale));
  }
};
// Multiplies by weights [N, K].
Expr matmul_nbits(Node& n) {
  const BlocksOfNumbers b{n, n.attr_int("bits", 4), n.required_int("N"), n.required_int("K"),
                          n.required_int("block_size")};
  if (b.bits != 2 && b.bits != 4 && b.bits != 8) n.unsupported("attribute 'bits' is {}, expected 2, 4 or 8", b.bits);
  if (n.attr_int("weight_prepacked", 0) != 0) n.unsupported("attribute 'weight_prepacked'");
  if (b.block < 1 || b.rows < 1 || b.k < 1)
    n.fail("N is {}, K {} and block_size {}, expected at least 1", b.rows, b.k, b.block);
  Expr x = n.tensor(0);
  std::optional<Expr> weight;
  if (const auto order = b.order_of_blocks(); order && b.are_constant()) {
    weight = b.constant_weight(*order);
    if (!std::ranges::is_sorted(*order)) x = columns_in_order(n, x, *order);
  }
  Expr result = n.standard("MatMul", {x, n.transpose(weight ? *weight : b.weight(), {1, 0})});
  return n.has(5) ? n.add(result, n.tensor(5)) : result;
}

// Multiplies by float8 weights [N, K] with a scale for each block of a row. With input 3 the activations are rounded to
// float8 of that scale.
Expr matmul_fp8(Node& n, const Expr& x) {
  const int64_t block = n.attr_int("block_size", 128);
  if (block < 1) n.fail("block_size is {}, expected at least 1", block);
  if (n.rank(1) != 2 || n.rank(2) != 2)
    n.fail("weights of rank {}, scales of rank {}, expected 2", n.rank(1), n.rank(2));
  const Expr k = n.dim(1, 1);
  n.require_equal(n.simplify(ceil_div(k, block)), n.dim(2, 1), "numbers of blocks and of scales");
  Expr group = n.op("floor_divide", {n.op("arange", {int_imm(0), k, int_imm(1)}, DTypeAttrs{kInt64}),
                                     n.scalar(static_cast<double>(block), kInt64)});
  Expr scale = n.op("take", {n.cast(n.tensor(2), kFloat32), group}, TakeAttrs{.axis = 1});
  Expr weight = n.cast(n.mul(n.cast(n.tensor(1), kFloat32), scale), n.dtype(0)), source = x;
  if (n.has(3)) {
    Expr step = n.cast(n.reshape(n.tensor(3), {}), kFloat32),
         zero = n.op("zeros", {shape_expr({})}, FillAttrs{n.dtype(1)});
    const std::vector<OnnxAttribute> whole = {{"block_size", int64_t{0}}};
    Expr rounded = n.standard("QuantizeLinear", {n.cast(x, kFloat32), step, zero}, whole);
    source = n.cast(n.standard("DequantizeLinear", {rounded, step}, whole), n.dtype(0));
  }
  Expr result = n.standard("MatMul", {source, n.transpose(weight, {1, 0})});
  return n.has(4) ? n.add(result, n.tensor(4)) : result;
}

// The operands of GatherBlockQuantized: numbers in blocks along an axis, of which rows along another one are gathered.
struct GatheredBlocks {
  Node& n;
  int64_t bits, block, gathered, blocked;

  bool is_bytes() const { return n.dtype(0) == DType::uint(8); }
  int64_t usual_zero() const { return is_bytes() ? int64_t{1} << (bits - 1) : 0; }
  // Returns the axis of the blocks in what is gathered.
  int64_t axis_of_result() const { return blocked > gathered ? blocked + n.rank(1) - 1 : blocked; }
  // Returns whether relax.dequantize takes the numbers: those in bytes only where they are constant.
  bool are_few_bits() const {
    const DType scale = n.dtype(2);
    const bool are_in_bytes = is_bytes() && bits < 8, are_constant = n.constant(0) && (!n.has(3) || n.constant(3));
    return n.dtype(0).is_integral() && bits <= 8 && scale.is_float() && scale.bits >= 16 && scale.bits <= 32 &&
           (!n.has(3) || n.dtype(3) == n.dtype(0)) && (!are_in_bytes || are_constant);
  }

  // Returns the numbers in input i, of which constant bytes hold several along the last axis.
  Expr numbers(size_t i) const {
    if (n.dtype(i) != DType::uint(8) || bits == 8) return n.tensor(i);
    const Tensor bytes = *n.constant(i);
    std::vector<int64_t> shape = bytes.shape();
    shape.back() *= 8 / bits;
    return constant(Tensor::view(shape, DType::uint(static_cast<int>(bits)), bytes.raw(), bytes.owner()), n.span());
  }
  Expr rows_of(const Expr& x) const { return n.op("take", {x, n.tensor(1)}, TakeAttrs{.axis = gathered}); }

  // Gathers the numbers as they are, so that a constant stays in few bits.
  Expr real_rows() const {
    const Expr all = numbers(0), blocks = n.simplify(ceil_div(n.dim_of(all, blocked), block));
    const DType narrow = n.dtype_of_tensor(all);
    n.require_equal(blocks, n.dim(2, blocked), "blocks of the data along quantize_axis, and scales");
    Expr zero = n.scalar(static_cast<double>(usual_zero()), narrow);
    if (n.has(3)) zero = rows_of(n.slice(numbers(3), blocked, int_imm(0), blocks));
    return n.op("dequantize", {rows_of(all), rows_of(n.tensor(2)), zero},
                DequantizeAttrs{.axis = axis_of_result(), .out_dtype = n.dtype(2), .block_size = block});
  }
  // Does the same with other types, and with bytes that only the run knows.
  Expr computed_rows() const {
    const DType dtype = n.dtype(2);
    const int64_t axis = axis_of_result();
    auto unpacked_rows = [&](size_t i) {
      return n.dtype(i) == DType::uint(8) ? unpacked(n, rows_of(n.tensor(i)), bits) : rows_of(n.tensor(i));
    };
    Expr rows = unpacked_rows(0), scale = rows_of(n.tensor(2));
    Expr zero = n.scalar(static_cast<double>(usual_zero()), dtype);
    const Expr size = n.dim_of(rows, axis), blocks = n.dim_of(scale, axis);
    Expr group = n.op("floor_divide", {n.op("arange", {int_imm(0), size, int_imm(1)}, DTypeAttrs{kInt64}),
                                       n.scalar(static_cast<double>(block), kInt64)});
    auto spread = [&](const Expr& x) { return n.op("take", {x, group}, TakeAttrs{.axis = axis}); };
    if (n.has(3)) zero = spread(n.cast(n.slice(unpacked_rows(3), axis, int_imm(0), blocks), dtype));
    return n.mul(n.sub(n.cast(rows, dtype), zero), spread(scale));
  }
};
Expr gather_block_quantized(Node& n) {
  const int64_t rank = n.rank(0);
  const GatheredBlocks b{n, n.dtype(0) == DType::uint(8) ? n.attr_int("bits", 4) : n.dtype(0).bits,
                         n.attr_int("block_size", 128), n.axis(n.attr_int("gather_axis", 0), rank, "gather_axis"),
                         n.axis(n.attr_int("quantize_axis", 1), rank, "quantize_axis")};
  if (b.block < 1) n.fail("block_size is {}, expected at least 1", b.block);
  if (b.is_bytes() && (b.gathered != 0 || b.blocked != rank - 1 || (b.bits != 2 && b.bits != 4 && b.bits != 8)))
    n.unsupported("bytes with gather_axis {}, quantize_axis {} and bits {}; expected 0, the last one, and 2, 4 or 8",
                  b.gathered, b.blocked, b.bits);
  if (b.gathered == b.blocked) n.unsupported("blocks along gather_axis");
  return b.are_few_bits() ? b.real_rows() : b.computed_rows();
}

// The 16 numbers of bitsandbytes' types FP4 and NF4 (Dettmers et al., "QLoRA", 2023), at most 1.
constexpr double kFp4[] = {0,  0.005208333333,  0.66666667,  1,  0.33333333,  0.5,  0.16666667,  0.25,
                           -0, -0.005208333333, -0.66666667, -1, -0.33333333, -0.5, -0.16666667, -0.25};
constexpr double kNf4[] = {-1.0,
                           -0.6961928009986877,
                           -0.5250730514526367,
                           -0.39491748809814453,
                           -0.28444138169288635,
                           -0.18477343022823334,
                           -0.09105003625154495,
                           0.0,
                           0.07958029955625534,
                           0.16093020141124725,
                           0.24611230194568634,
                           0.33791524171829224,
                           0.44070982933044434,
                           0.5626170039176941,
                           0.7229568362236023,
                           1.0};
// A byte has the first of two numbers in its high bits; blocks go over the rows of [N, K].
Expr matmul_bnb4(Node& n) {
  const int64_t rows = n.required_int("N"), k = n.required_int("K"), block = n.required_int("block_size");
  const int64_t type = n.required_int("quant_type");
  if (type != 0 && type != 1) n.fail("quant_type is {}, expected 0 or 1", type);
  if (block < 1 || rows < 1 || k < 1) n.fail("N is {}, K {} and block_size {}, expected at least 1", rows, k, block);
  const DType dtype = n.dtype(0);
  const auto& values = type == 0 ? kFp4 : kNf4;
  Expr table = n.cast(constant(float_list({std::begin(values), std::end(values)}), n.span()), dtype);
  const int64_t count = rows * k, blocks = (count + block - 1) / block;
  Expr bytes = n.reshape(n.tensor(1), {int_imm((count + 1) / 2)});
  auto number = [&](double value) { return n.scalar(value, DType::uint(8)); };
  Expr high = n.op("right_shift", {bytes, number(4)}), low = n.op("bitwise_and", {bytes, number(15)});
  Expr codes = join(n, {n.with_new_axis(high, 1), n.with_new_axis(low, 1)}, 1);
  codes = n.slice(n.reshape(codes, {int_imm((count + 1) / 2 * 2)}), 0, int_imm(0), int_imm(count));
  Expr numbers = n.op("take", {table, n.cast(codes, kInt64)}, TakeAttrs{.axis = 0});
  Expr group = n.op("floor_divide", {n.op("arange", {int_imm(0), int_imm(count), int_imm(1)}, DTypeAttrs{kInt64}),
                                     n.scalar(static_cast<double>(block), kInt64)});
  Expr scale = n.op("take", {n.reshape(n.tensor(2), {int_imm(blocks)}), group}, TakeAttrs{.axis = 0});
  Expr weight = n.reshape(n.mul(numbers, scale), int_imms({rows, k}));
  if (n.attr_int("transB", 1) != 0) weight = n.transpose(weight, {1, 0});
  return n.standard("MatMul", {n.tensor(0), weight});
}

// ---- Integers

Expr plus_bias(Node& n, const Expr& x, size_t bias) { return n.has(bias) ? n.add(x, n.tensor(bias)) : x; }
// Returns a scale per row of the left operand as a column.
Expr row_scale(Node& n, size_t i) {
  Expr scale = n.tensor(i);
  std::vector<Expr> dims = n.shape(i);
  if (dims.size() != 1 || is_int(dims[0], 1)) return scale;
  dims.push_back(int_imm(1));
  return n.reshape(scale, dims);
}
Expr matmul_integer_to_float(Node& n) {
  Expr sum = n.standard("MatMulInteger", {n.tensor(0), n.tensor(1), n.optional_tensor(4), n.optional_tensor(5)});
  Expr scale = n.mul(row_scale(n, 2), n.tensor(3));
  return plus_bias(n, n.mul(n.cast(sum, n.dtype(2)), scale), 6);
}
Expr dynamic_quantize_matmul(Node& n) {
  Outputs quantized = n.standard_outputs("DynamicQuantizeLinear", {n.tensor(0)});
  Expr sum =
      n.standard("MatMulInteger", {n.tensor(quantized[0]), n.tensor(1), n.tensor(quantized[2]), n.optional_tensor(3)});
  return plus_bias(n, n.mul(n.cast(sum, kFloat32), n.mul(n.tensor(quantized[1]), n.tensor(2))), 4);
}
Expr matmul_integer_16(Node& n) {
  const DType dtype = n.dtype(0).is_uint() && n.dtype(1).is_uint() ? DType::uint(32) : kInt32;
  return n.standard("MatMul", {n.cast(n.tensor(0), dtype), n.cast(n.tensor(1), dtype)});
}
Expr mul_integer(Node& n) {
  auto centered = [&](size_t i) {
    Expr x = n.cast(n.tensor(i), kInt32);
    return n.has(i + 1) ? n.sub(x, n.cast(n.tensor(i + 1), kInt32)) : x;
  };
  return n.mul(centered(0), centered(2));
}
Expr reduce_sum_integer(Node& n, const Expr& x) {
  std::vector<int64_t> axes = n.required_ints("axes");
  for (int64_t& axis : axes) axis = n.axis(axis, n.rank(0), "axes");
  return n.reduce("sum", n.cast(x, n.dtype(0).is_uint() ? DType::uint(32) : kInt32), axes,
                  n.attr_int("keepdims", 1) != 0);
}

}  // namespace

std::vector<ConverterRow> contrib_products_converters() {
  constexpr const char* kBnb4 = "K N block_size quant_type training_mode transB";
  return in_domain(
      "com.microsoft",
      {
          {"FusedMatMul", 1, 2, 2, fused_matmul, "alpha transA transB transBatchA transBatchB"},
          {"TransposeMatMul", 1, 2, 2, fused_matmul, "alpha transA transB"},
          {"FusedMatMulActivation", 1, 2, 2, fused_matmul_activation,
           "activation activation_alpha activation_axis activation_beta activation_gamma alpha transA transB "
           "transBatchA "
           "transBatchB"},
          {"FusedGemm", 1, 2, 3, fused_gemm,
           "activation activation_alpha activation_axis activation_beta activation_gamma alpha beta transA transB"},
          {"GemmFastGelu", 1, 2, 3, gemm_fast_gelu},
          {"MatMulBlockQuantizedFp8Weight", 1, 3, 5, matmul_fp8, "block_size"},
          {"MatMulNBits", 1, 3, 6, matmul_nbits, "K N accuracy_level bits block_size weight_prepacked"},
          {"GatherBlockQuantized", 1, 3, 4, gather_block_quantized, "bits block_size gather_axis quantize_axis"},
          {"MatMulBnb4", 1, 3, 3, matmul_bnb4, kBnb4},
          {"MatMulIntegerToFloat", 1, 4, 7, matmul_integer_to_float},
          {"DynamicQuantizeMatMul", 1, 3, 5, dynamic_quantize_matmul},
          {"MatMulInteger16", 1, 2, 2, matmul_integer_16},
          {"MulInteger", 1, 3, 4, mul_integer, "", "", 0b10},
          {"ReduceSumInteger", 1, 1, 1, reduce_sum_integer, "axes keepdims"},
      });
}

}  // namespace relaxc::onnx_import
