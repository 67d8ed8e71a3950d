// Expects: operators on leaves, constants folded. Guarantees: a product with a constant matrix of 2, 4 or 8 bits
// (quantized_products.h) and no infinite scale is a call_tir that reads the numbers as they are in memory, in panels of
// words of 16 bits, and computes (number - zero point) * scale where it needs an element. tir/rules/contraction.cc
// unpacks them in registers, so that a single row takes as long as reading the matrix, or once for all rows.
//
// A word holds the numbers of one row of the matrix that lie a vector apart, so that one shift-free instruction unpacks
// a vector: for vectors of 16 lanes and 4 bits, word [p, k, l] has in bits 4 j the number of row k and column
// 64 p + 16 j + l. Floats of 4 and 8 bits lie there by their codes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "ir/constants.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/fold.h"
#include "ops/quantize.h"
#include "passes/constant_columns.h"
#include "passes/digit_products.h"
#include "passes/fold_constants.h"
#include "passes/graph_decisions.h"
#include "passes/quantized_products.h"
#include "support/checked_math.h"
#include "support/lists.h"
#include "tir/analysis/annotations.h"
#include "tir/compute.h"
#include "tir/schedule/rule.h"

namespace relaxc {

namespace {

constexpr DType kWord = DType::uint(16);

// How numbers of few bits lie in words. Numbers with a sign are stored without it, plus `offset`.
struct WordPanels {
  int64_t bits, lanes, offset;

  int64_t per_word() const { return kWord.bits / bits; }
  int64_t columns() const { return per_word() * lanes; }
  std::vector<Expr> shape(int64_t depth, int64_t width) const {
    return int_imms({ceil_div(width, columns()), depth, lanes});
  }
  // Returns the bits by which the number of the column is shifted.
  Expr position(const Expr& column) const { return simplify(floor_div(floor_mod(column, columns()), lanes) * bits); }
  // Returns the float32 2^(23 - shift) + number. The bits of the number, where they are in the word, are those of the
  // mantissa of a float with this exponent, so that neither a shift nor a conversion is needed; the difference of two
  // is exact.
  Expr biased(const Expr& word, const Expr& column) const {
    constexpr int64_t kMantissaBits = 23, kBias = 127;
    auto of = [](BinaryOp op, const Expr& a, const Expr& b) { return binary(op, a, b); };
    const Expr at = cast_to(position(column), kInt32), mask = int_imm((1 << bits) - 1, kInt32);
    const Expr number = of(BinaryOp::kBitAnd, cast_to(word, kInt32), of(BinaryOp::kShiftLeft, mask, at));
    const Expr exponent = int_imm((kBias + kMantissaBits) << kMantissaBits, kInt32) -
                          of(BinaryOp::kShiftLeft, at, int_imm(kMantissaBits, kInt32));
    return intrinsic(ops::kReinterpret, {of(BinaryOp::kBitOr, number, exponent)}, kFloat32);
  }
  Expr word_at(const Buffer& words, const Expr& row, const Expr& column) const {
    return load(words, {floor_div(column, columns()), row, floor_mod(column, lanes)});
  }
  Expr biased(const Buffer& words, const Expr& row, const Expr& column) const {
    return biased(word_at(words, row, column), column);
  }
  // Returns the word all of whose numbers are this one.
  Expr word_of(int64_t number) const {
    int64_t word = 0;
    for (int64_t j = 0; j < per_word(); ++j) word |= (number + offset) << (j * bits);
    return int_imm(word, kWord);
  }
};

// How codes of floats become numbers: their sign, exponent and mantissa move to where a float16 has them, which
// processors convert. That number is theirs, divided by a power of two because of the other bias, which the scale makes
// good.
struct FloatCodes {
  SmallFloat format;

  static constexpr int kHalfMantissa = 10, kHalfBias = 15;
  static constexpr DType kBits = DType::int_(16);
  double unit() const { return std::ldexp(1, kHalfBias - format.bias); }
  // Returns the number of a float16's bits.
  static Expr number(const Expr& bits) {
    return cast_to(intrinsic(ops::kReinterpret, {bits}, DType::float_(16)), kFloat32);
  }
  // Returns the bits of the float16 that is the number of the word in the column, divided by the unit.
  Expr bits(const Expr& word, const Expr& column, const WordPanels& panels) const {
    const int kept = 15 - (format.bits - 1) - (kHalfMantissa - format.mantissa);  // bits that move to the right
    const int64_t mask = (int64_t{1} << 15) | (int64_t{format.all()} << (kHalfMantissa - format.mantissa));
    auto of = [](BinaryOp op, const Expr& a, const Expr& b) { return binary(op, a, b); };
    const Expr to_top = cast_to(simplify(int_imm(kWord.bits - format.bits) - panels.position(column)), kBits);
    const Expr at_top = of(BinaryOp::kShiftLeft, cast_to(word, kBits), to_top);
    const Expr moved = kept == 0 ? at_top : of(BinaryOp::kShiftRight, at_top, int_imm(kept, kBits));
    return of(BinaryOp::kBitAnd, moved, int_imm(mask - (int64_t{1} << 16), kBits));
  }
};

// Returns whether the finite elements stay finite when they are multiplied by the factor.
bool stay_finite(const Expr& floats, double factor) {
  const Tensor& data = floats.as<Constant>()->data;
  for (int64_t i = 0; i < data.size(); ++i) {
    const double element = data.as_double(i);
    if (std::isfinite(element) && std::abs(element) * factor > largest_of(kFloat32)) return false;
  }
  return true;
}
bool has_infinity(const Expr& floats) {
  const Tensor& data = floats.as<Constant>()->data;
  for (int64_t i = 0; i < data.size(); ++i) {
    if (std::isinf(data.as_double(i))) return true;
  }
  return false;
}

// Returns the matrix with a scale of NaN for each block of a column that has a NaN, which then makes all of the
// column's sums NaN, as that number would: in a float16 the code of float8_e4m3fn's NaN is a number.
QuantizedOperand with_scales_of_nan(QuantizedOperand matrix) {
  const Tensor& numbers = matrix.numbers.as<Constant>()->data;
  const Tensor& given = matrix.scale.as<Constant>()->data;
  const int64_t blocks = ceil_div(matrix.depth, matrix.block);
  const bool by_block = given.shape().size() > 1;
  auto place = [&](int64_t row, int64_t column, int64_t rows) {
    return matrix.is_transposed ? column * rows + row : row * matrix.width + column;
  };
  Tensor scales = Tensor::empty(
      matrix.is_transposed ? std::vector<int64_t>{matrix.width, blocks} : std::vector<int64_t>{blocks, matrix.width},
      given.dtype());
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t n = 0; n < matrix.width; ++n) {
      const int64_t at = given.size() == 1 ? 0 : by_block ? place(b, n, blocks) : n;
      scales.set_double(place(b, n, blocks), given.as_double(at));
    }
  }
  bool has_nan = false;
  for (int64_t k = 0; k < matrix.depth; ++k) {
    for (int64_t n = 0; n < matrix.width; ++n) {
      if (!std::isnan(numbers.as_double(place(k, n, matrix.depth)))) continue;
      scales.set_double(place(k / matrix.block, n, blocks), std::numeric_limits<double>::quiet_NaN());
      has_nan = true;
    }
  }
  if (has_nan) matrix.scale = constant(std::move(scales), matrix.scale.span());
  return matrix;
}

// Returns the program that puts a matrix [depth, width] of narrow numbers into words.
PrimFuncRef words_program(const ConstantColumns& matrix, int64_t width, const WordPanels& panels) {
  ComputeBuilder b;
  const Constant* constant = matrix.tensor.as<Constant>();
  Buffer numbers = b.input("numbers", constant->data.dtype(), int_imms(constant->data.shape()));
  Buffer words = b.compute("words", kWord, panels.shape(matrix.rows(), width), [&](Axes i) {
    Expr word = zero(kWord);
    for (int64_t j = 0; j < panels.per_word(); ++j) {
      const Expr column = simplify(i[0] * panels.columns() + i[2] + j * panels.lanes);
      Expr number = cast_to(matrix.at(numbers, i[1], column), kInt32) + int_imm(panels.offset, kInt32);
      number = if_then_else(column < int_imm(width), cast_to(number, kWord), zero(kWord));
      word = binary(BinaryOp::kBitOr, word, binary(BinaryOp::kShiftLeft, number, int_imm(j * panels.bits, kWord)));
    }
    return word;
  });
  return b.finish({words});
}
// Returns the columns of a panel that share a scale.
int64_t columns_of_scale(const QuantizedOperand& matrix, const WordPanels& panels) {
  return std::gcd(matrix.columns, panels.columns());
}
// Returns the program that puts scales, or zero points as floats, into the same panels.
PrimFuncRef scales_program(const ConstantColumns& scale, const QuantizedOperand& matrix, const WordPanels& panels) {
  ComputeBuilder b;
  const Constant* constant = scale.tensor.as<Constant>();
  const DType dtype = constant->data.dtype(), real = dtype.is_float() ? dtype : kFloat32;
  Buffer scales = b.input("scales", dtype, int_imms(constant->data.shape()));
  const int64_t columns = panels.columns(), shared = columns_of_scale(matrix, panels);
  const std::vector<Expr> shape = int_imms({ceil_div(matrix.width, columns), scale.rows(), columns / shared});
  Buffer packed = b.compute("panels", real, shape, [&](Axes i) {
    const Expr column = simplify(i[0] * columns + i[2] * shared);
    const Expr inside = min(column, int_imm(matrix.width - 1));  // formats of 8 bits may lack 0
    return cast_to(scale.at(scales, i[1], simplify(floor_div(inside, matrix.columns))), real);
  });
  return b.finish({packed});
}

// A matrix as its products read it.
struct PackedOperand {
  QuantizedOperand matrix;
  WordPanels panels;
  Expr words;
  Expr scales;                      // in panels [panel, block, column], or one number
  std::optional<Expr> zero_points;  // words, or none where all are `zero_point`
  int64_t zero_point = 0;
  std::optional<Expr> float_zero_points = {};  // in panels as scales are, or one number; subtracted, too
  std::optional<FloatCodes> codes = {};        // of floats, without zero points

  std::vector<Expr> tensors(const Expr& x) const {
    std::vector<Expr> result = {x, words, scales};
    for (const std::optional<Expr>& zeros : {zero_points, float_zero_points}) {
      if (zeros) result.push_back(*zeros);
    }
    return result;
  }

  // Returns the program of x[..., k] times the matrix.
  PrimFuncRef program(const std::vector<Expr>& x_shape, DType x_dtype, DType result) const {
    ComputeBuilder b;
    Buffer x = b.input("x1", x_dtype, x_shape);
    Buffer weight = dequantized(b);
    std::vector<Expr> out(x_shape.begin(), x_shape.end() - 1);
    out.push_back(buffer_type(weight).shape[1]);
    DType sum = accumulation_dtype(result);
    Buffer product = b.reduce("matmul", sum, out, {int_imm(matrix.depth)}, zero(sum), combine_sum, [&](Axes i, Axes r) {
      std::vector<Expr> left(i.begin(), i.end() - 1);
      left.push_back(r[0]);
      return cast_to(load(x, left), sum) * load(weight, {r[0], i.back()});
    });
    out.back() = int_imm(matrix.width);
    product = b.compute("matmul_columns", sum, out, [&](Axes i) { return load(product, {i.begin(), i.end()}); });
    return with_op_name(b.finish({as_dtype(b, product, result, "matmul_cast")}), ops::short_name(ops::kMatmul));
  }

 private:
  // Adds the stage of the matrix as float32, with all columns of its panels.
  Buffer dequantized(ComputeBuilder& b) const {
    auto input = [&](const char* name, const Expr& tensor) {
      const Tensor& data = tensor.as<Constant>()->data;
      return b.input(name, data.dtype(), int_imms(data.shape()));
    };
    Buffer numbers = input("x2", words), scale = input("scales", scales);
    std::optional<Buffer> zeros, float_zeros;
    if (zero_points) zeros = input("zero_points", *zero_points);
    if (float_zero_points) float_zeros = input("zero_points", *float_zero_points);
    const std::vector<Expr>& dims = buffer_type(numbers).shape;
    std::vector<Expr> shape = int_imms({matrix.depth, *as_int(dims[0]) * panels.columns()});
    auto block_in = [&](const Buffer& parameter, const Expr& row) {
      return is_int(buffer_type(parameter).shape[1], 1) ? int_imm(0) : floor_div(row, matrix.block);
    };
    // Returns the scale or zero point of an element.
    auto parameter = [&](const Buffer& buffer, Axes i) {
      const size_t rank = buffer_type(buffer).shape.size();
      const Expr value =
          rank < 3 ? load(buffer, std::vector<Expr>(rank, int_imm(0)))
                   : load(buffer,
                          {floor_div(i[1], panels.columns()), block_in(buffer, i[0]),
                           simplify(floor_div(floor_mod(i[1], panels.columns()), columns_of_scale(matrix, panels)))});
      return cast_to(value, kFloat32);
    };
    Buffer unscaled = b.compute("unpack", codes ? FloatCodes::kBits : kFloat32, shape, [&](Axes i) {
      if (codes) return codes->bits(panels.word_at(numbers, i[0], i[1]), i[1], panels);
      const Expr zero =
          zeros ? panels.biased(*zeros, block_in(*zeros, i[0]), i[1]) : panels.biased(panels.word_of(zero_point), i[1]);
      const Expr difference = panels.biased(numbers, i[0], i[1]) - zero;
      return float_zeros ? difference - parameter(*float_zeros, i) : difference;
    });
    Buffer result = b.compute("dequantize", kFloat32, shape, [&](Axes i) {
      const Expr element = load(unscaled, {i[0], i[1]}), number = codes ? FloatCodes::number(element) : element;
      Expr factor = parameter(scale, i);
      if (codes && codes->unit() != 1) factor = factor * float_imm(codes->unit(), kFloat32);
      const Expr real = number * factor;
      return cast_to(saturated(real, matrix.dtype), kFloat32);
    });
    b.annotate(annotation<"unpacked_columns">(), panels.columns());
    if (matrix.columns == 1) b.annotate(annotation<"scaled_rows">(), matrix.block);
    b.annotate(annotation<"unpacked_lanes">(), panels.lanes);
    return result;
  }
};

class QuantizedPacker final : public GraphRewriter {
 public:
  QuantizedPacker(const PassContext& context, IRModule& module)
      : GraphRewriter(context.ops), context_(context), module_(module) {}

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    values_.insert_or_assign(binding.var.get(), binding.value);
    const Call* matmul = as_call(binding.value, ops::kMatmul);
    if (!matmul || binding.cast) return std::nullopt;
    std::optional<QuantizedOperand> matrix = find_quantized_operand(
        *matmul, binding.value.type(), [&](const Expr& var) { return find_value(values_, var.get()); });
    if (!matrix) return std::nullopt;
    for (const Expr& part : {matrix->numbers, matrix->scale, matrix->zero_point}) {
      if (!part.is<Constant>()) return std::nullopt;
    }
    // A sum times an infinite scale is not the sum of the numbers times the scale, of which any may be 0.
    if (has_infinity(matrix->scale)) return std::nullopt;
    if (tensor_dtype(matrix->numbers.type())->is_float() && !can_move_codes(*matrix)) return std::nullopt;
    const Expr& x = matmul->args[0];
    const std::vector<Expr>& shape = *known_shape(x.type());
    const DType x_dtype = *tensor_dtype(x.type()), result = *tensor_dtype(binding.value.type());
    auto product = [&](const PrimFuncRef& program, const std::vector<Expr>& tensors) {
      return make_call_tir(module_, "matmul", program, tensors, {binding.value.type()}, binding.var.span());
    };
    if (auto sums = product_of_bytes(*matmul, *matrix, binding, b)) return sums;
    if (const DigitOperand* operand = find_digits(*matmul, *matrix, binding))
      return product(operand->program(shape), operand->tensors(x));
    const NodeHeader* key = matmul->args[1].get();
    if (!packed_.contains(key)) packed_.emplace(key, packed(*matrix));
    return product(packed_.at(key).program(shape, x_dtype, result), packed_.at(key).tensors(x));
  }

 private:
  // Returns the product with activations that are dequantized bytes, as sums of integers:
  //   (number - zero) * step, summed = step * (numbers summed) - step * zero * (column of the matrix summed)
  std::optional<Expr> product_of_bytes(const Call& matmul, const QuantizedOperand& matrix, const Binding& product,
                                       Builder& b) {
    const Expr* value = find_value(values_, matmul.args[0].get());
    const Call* real = value ? as_call(*value, ops::kDequantize) : nullptr;
    const std::optional<DType> bytes = real ? tensor_dtype(real->args[0].type()) : std::nullopt;
    if (!bytes || !bytes->is_integral() || bytes->bits != 8 || tensor_dtype(real->args[2].type()) != bytes ||
        tensor_dtype(real->args[1].type()) != kFloat32 || !is_one_element(real->args[1].type()) ||
        !is_one_element(real->args[2].type()))
      return std::nullopt;
    const std::vector<Expr>& shape = *known_shape(matmul.args[0].type());
    const DType result = *tensor_dtype(product.value.type()), x_dtype = *tensor_dtype(matmul.args[0].type());
    if (!fits_digits(matrix, shape, x_dtype, result, ActivationDigits::kBytes, context_)) return std::nullopt;
    const DigitOperand& operand = digits_of(matmul, matrix, ActivationDigits::kBytes);
    const Expr step = reshape(real->args[1], {}, b);
    std::vector<Expr> tensors = operand.tensors(real->args[0]);
    tensors.push_back(step);
    const Expr sums = b.emit(make_call_tir(module_, "matmul", operand.program(shape, *bytes), tensors,
                                           {product.value.type()}, product.var.span()));
    const double offset = bytes->is_uint() ? 128 : 0;
    if (constant_element(real->args[2]) == offset) return sums;
    Expr zero = b.op("astype", {reshape(real->args[2], {}, b)}, DTypeAttrs{kFloat32});
    if (offset != 0) zero = b.op("subtract", {zero, scalar_constant(offset, kFloat32)});
    return b.op("subtract", {sums, b.op("multiply", {column_sums(matrix), b.op("multiply", {step, zero})})});
  }
  const DigitOperand& digits_of(const Call& matmul, const QuantizedOperand& matrix, ActivationDigits activations) {
    const std::pair key(matmul.args[1].get(), activations);
    if (!digits_.contains(key)) digits_.emplace(key, digit_operand(matrix, activations, context_));
    return digits_.at(key);
  }
  // Returns the matrix for a product by digits of the activations; null where that is not the way.
  const DigitOperand* find_digits(const Call& matmul, const QuantizedOperand& matrix, const Binding& product) {
    const AttrValue chosen = decide("packed_product", "activations", product.var, context_, {"float", "int8"}, "float");
    const auto activations = chosen == AttrValue("int8") ? ActivationDigits::kInt8 : ActivationDigits::kFloat;
    const Expr& x = matmul.args[0];
    const DType x_dtype = *tensor_dtype(x.type()), result = *tensor_dtype(product.value.type());
    if (!fits_digits(matrix, *known_shape(x.type()), x_dtype, result, activations, context_)) return nullptr;
    return &digits_of(matmul, matrix, activations);
  }

  // Returns whether a float16 with the codes of the matrix, times its unit and the scale, is the number.
  static bool can_move_codes(const QuantizedOperand& matrix) {
    const FloatCodes codes{small_float(*tensor_dtype(matrix.numbers.type()))};
    const Tensor& zero_points = matrix.zero_point.as<Constant>()->data;
    for (int64_t i = 0; i < zero_points.size(); ++i) {
      if (zero_points.as_double(i) != 0) return false;
    }
    return stay_finite(matrix.scale, codes.unit());
  }

  // Integers become vectors of float32 at once. The codes of floats become float16 first, as many as a vector of these
  // has, where their sums leave registers.
  int64_t lanes_of_words(DType dtype) const {
    constexpr int64_t kShareOfSums = 4;
    const Target& target = context_.target;
    const int64_t lanes = target.vector_lanes(kFloat32.bits), sums = 2 * kWord.bits / dtype.bits;
    return dtype.is_float() && sums * kShareOfSums <= target.num_vector_registers ? 2 * lanes : lanes;
  }

  PackedOperand packed(QuantizedOperand matrix) const {
    const DType dtype = *tensor_dtype(matrix.numbers.type());
    if (dtype.code == DTypeCode::kFloat8E4M3FN) matrix = with_scales_of_nan(std::move(matrix));
    const WordPanels panels{dtype.bits, lanes_of_words(dtype), dtype.is_int() ? int64_t{1} << (dtype.bits - 1) : 0};
    auto in_words = [&](const Expr& tensor) {
      const ConstantColumns numbers{tensor, matrix.is_transposed};
      Type type = tensor_type(panels.shape(numbers.rows(), matrix.width), kWord);
      return computed(words_program(numbers, matrix.width, panels), tensor, type, context_);
    };
    PackedOperand result{
        matrix, panels, in_words(dtype.is_float() ? codes_of(matrix.numbers) : matrix.numbers), matrix.scale, {}};
    const ConstantColumns scale{matrix.scale, matrix.is_transposed}, zero{matrix.zero_point, matrix.is_transposed};
    auto in_panels = [&](const ConstantColumns& floats) {
      if (floats.size() == 1) return floats.tensor;
      PrimFuncRef program = scales_program(floats, matrix, panels);
      const BufferType& type = buffer_type(program->params.back());
      return computed(program, floats.tensor, tensor_type(type.shape, type.dtype), context_);
    };
    result.scales = in_panels(scale);
    if (dtype.is_float()) {
      result.codes = FloatCodes{small_float(dtype)};
    } else if (std::optional<int64_t> all = zero.only_number(); all && !matrix.has_float_zero_point()) {
      result.zero_point = *all;
    } else if (matrix.has_float_zero_point() || matrix.columns > 1) {
      result.float_zero_points = in_panels(zero);
    } else {
      result.zero_points = in_words(matrix.zero_point);
    }
    return result;
  }

  const PassContext& context_;
  IRModule& module_;
  std::unordered_map<const NodeHeader*, Expr> values_;  // by variable
  // By the variable of the operand:
  std::unordered_map<const NodeHeader*, PackedOperand> packed_;
  std::map<std::pair<const NodeHeader*, ActivationDigits>, DigitOperand> digits_;
};

}  // namespace

IRModule pack_quantized(IRModule module, PassContext& context) {
  if (!context.evaluate) return module;
  check_places(module, context, {"packed_product"});
  return map_functions(std::move(module), [&](const FunctionRef& function, IRModule& result) {
    return is_primitive(*function) ? function : QuantizedPacker(context, result).run(function);
  });
}

}  // namespace relaxc
