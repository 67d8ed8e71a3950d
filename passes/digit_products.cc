#include "passes/digit_products.h"

#include <algorithm>

#include "ir/op_names.h"
#include "ops/common.h"
#include "passes/constant_columns.h"
#include "passes/fold_constants.h"
#include "support/checked_math.h"
#include "support/lists.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/byte_tables.h"
#include "tir/compute.h"
#include "tir/intrin/tensor_intrin.h"
#include "tir/schedule/rule.h"

namespace relaxc {

namespace {

constexpr DType kInt8 = DType::int_(8), kUInt8 = DType::uint(8), kInt16 = DType::int_(16), kHalf = DType::float_(16);
constexpr int64_t kMostDigitRows = 8;                  // of a product that is bound by reading the matrix
constexpr int64_t kGroup = 4;                          // bytes that a lane of a dot product sums
constexpr int64_t kMostChunk = 256, kUsualChunk = 64;  // elements; the latter where a column has one scale
constexpr int64_t kFloatDigits = 3, kMostVectors = 4;
constexpr int64_t kFewRows = 4;             // that digits of sums of 16 bits compute faster than floats do
constexpr int64_t kMostVectorsOfPairs = 2;  // whose sums and activations stay in 16 registers

Expr of(BinaryOp op, const Expr& a, const Expr& b) { return binary(op, a, b); }
Expr integer(int64_t value) { return int_imm(value, kInt32); }

int64_t numbers_per_byte(const DigitOperand& matrix) { return 8 / matrix.bits; }
int64_t columns_of_tile(const DigitOperand& matrix) { return matrix.lanes * matrix.vectors; }
int64_t num_tiles(const DigitOperand& matrix) { return ceil_div(matrix.width, columns_of_tile(matrix)); }
int64_t num_chunks(const DigitOperand& matrix) { return ceil_div(matrix.depth, matrix.chunk); }
// Returns the rows of bytes that a chunk has in a tile.
int64_t rows_of_chunk(const DigitOperand& matrix) { return matrix.chunk / (kGroup * numbers_per_byte(matrix)); }

// Returns the column of [tile, vector, lane].
Expr column_of(const DigitOperand& matrix, const Expr& tile, const Expr& vector, const Expr& lane) {
  return simplify(tile * columns_of_tile(matrix) + vector * matrix.lanes + lane);
}

// Returns the program that puts a matrix [depth, width] of narrow numbers into tiles. A byte holds numbers that lie a
// group apart along the depth.
PrimFuncRef words_program(const ConstantColumns& numbers, int64_t offset, const DigitOperand& matrix) {
  ComputeBuilder b;
  const Tensor& data = numbers.tensor.as<Constant>()->data;
  Buffer given = b.input("numbers", data.dtype(), int_imms(data.shape()));
  const int64_t per_byte = numbers_per_byte(matrix), rows = num_chunks(matrix) * rows_of_chunk(matrix);
  const std::vector<Expr> shape = int_imms({num_tiles(matrix), rows, matrix.vectors, matrix.lanes, kGroup});
  Buffer words = b.compute("words", kUInt8, shape, [&](Axes i) {
    const Expr column = column_of(matrix, i[0], i[2], i[3]);
    Expr word = zero(kUInt8);
    for (int64_t j = 0; j < per_byte; ++j) {
      const Expr row = simplify((i[1] * per_byte + j) * kGroup + i[4]);
      Expr number = cast_to(cast_to(numbers.at(given, row, column), kInt32) + integer(offset), kUInt8);
      const Expr is_inside = of(BinaryOp::kAnd, row < int_imm(matrix.depth), column < int_imm(matrix.width));
      number = if_then_else(is_inside, number, zero(kUInt8));
      word = of(BinaryOp::kBitOr, word, of(BinaryOp::kShiftLeft, number, int_imm(j * matrix.bits, kUInt8)));
    }
    return word;
  });
  return b.finish({words});
}

constexpr int64_t kMostFloat4 = 12;  // twice the largest number of float4_e2m1fn

// Returns the bytes kMostFloat4 + twice the number of each code of float4_e2m1fn.
Expr doubled_float4s() {
  constexpr DType kFloat4{DTypeCode::kFloat4E2M1FN, 4};
  Tensor table = Tensor::empty({kNibbleTableSize}, kUInt8);
  for (int64_t code = 0; code < kNibbleTableSize; ++code)
    table.set_int(code, kMostFloat4 + static_cast<int64_t>(2 * float_from_bits(static_cast<uint16_t>(code), kFloat4)));
  return constant(std::move(table));
}

// Returns the program that puts scales or zero points, to which `offset` is added, into tiles.
PrimFuncRef parameters_program(const ConstantColumns& parameters, DType dtype, int64_t offset,
                               const DigitOperand& matrix) {
  ComputeBuilder b;
  const Tensor& data = parameters.tensor.as<Constant>()->data;
  Buffer given = b.input("parameters", data.dtype(), int_imms(data.shape()));
  const std::vector<Expr> shape = int_imms({num_tiles(matrix), parameters.rows(), matrix.vectors, matrix.lanes});
  Buffer tiles = b.compute("tiles", dtype, shape, [&](Axes i) {
    const Expr column = column_of(matrix, i[0], i[2], i[3]);
    Expr value = parameters.at(given, i[1], min(column, int_imm(matrix.width - 1)));  // formats of 8 bits may lack 0
    if (dtype.is_integral()) value = cast_to(value, kInt32) + integer(offset);
    return cast_to(value, dtype);
  });
  return b.finish({tiles});
}

Expr packed(const PrimFuncRef& program, const Expr& constant, const PassContext& context) {
  const BufferType& type = buffer_type(cast<Var>(program->params.back()));
  return computed(program, constant, tensor_type(type.shape, type.dtype), context);
}

// The stages that make digits of activations x[rows, depth].
class Activations {
  Buffer x_;
  const std::vector<Expr>& shape_;
  const DigitOperand& matrix_;
  std::optional<Buffer> step_;  // of bytes

 public:
  Activations(ComputeBuilder& b, const Buffer& x, const std::vector<Expr>& shape, const DigitOperand& matrix,
              std::optional<Buffer> step)
      : x_(x), shape_(shape), matrix_(matrix), step_(std::move(step)) {
    for (const Expr& dim : std::span(shape).first(shape.size() - 1)) rows = simplify(rows * dim);
    step_ ? add_bytes(b) : add_digits(b);
  }

  Expr rows = int_imm(1);
  Buffer digits = x_, totals = x_;

  Expr step(const Expr& row, const Expr& chunk) const {
    if (!step_) return load(steps_, {row, chunk});
    return load(*step_, std::vector<Expr>(buffer_type(*step_).shape.size(), int_imm(0)));
  }

 private:
  Buffer steps_ = x_;

  // Bytes are their only digit.
  void add_bytes(ComputeBuilder& b) {
    const Expr chunks = int_imm(num_chunks(matrix_)), length = int_imm(matrix_.chunk);
    const bool is_signed = buffer_type(x_).dtype.is_int();
    digits = b.compute("digits", kInt8, {rows, chunks, int_imm(1), length}, [&](Axes i) {
      return element(i[0], i[1], i[3], [&](const Expr& byte) {
        return is_signed ? byte : cast_to(cast_to(byte, kInt32) - integer(128), kInt8);
      });
    });
    Buffer sums = b.reduce("sums", kInt32, {rows, chunks}, {length}, zero(kInt32), combine_sum, [&](Axes i, Axes r) {
      return cast_to(load(digits, {i[0], i[1], int_imm(0), r[0]}), kInt32);
    });
    add_totals(b, sums);
  }
  void add_totals(ComputeBuilder& b, const Buffer& sums) {
    totals = b.compute("totals", kFloat32, {rows, int_imm(num_chunks(matrix_))},
                       [&](Axes i) { return cast_to(load(sums, {i[0], i[1]}), kFloat32); });
  }
  void add_digits(ComputeBuilder& b) {
    const Expr chunks = int_imm(num_chunks(matrix_)), length = int_imm(matrix_.chunk);
    Buffer peaks =
        b.reduce("peaks", kFloat32, {rows, chunks}, {length}, zero(kFloat32), combine_max,
                 [&](Axes i, Axes r) { return intrinsic(ops::kScalarAbs, {element(i[0], i[1], r[0])}, kFloat32); });
    // With a peak that is not finite, the step and the results are NaN.
    Buffer powers =
        b.compute("powers", kFloat32, {rows, chunks}, [&](Axes i) { return power(load(peaks, {i[0], i[1]})); });
    steps_ = b.compute("steps", kFloat32, {rows, chunks}, [&](Axes i) {
      const Expr peak = load(peaks, {i[0], i[1]});
      return load(powers, {i[0], i[1]}) * float_imm(1 / steps_of_power(), kFloat32) + (peak - peak);
    });
    Buffer fixed = b.compute("fixed", kInt32, {rows, chunks, length}, [&](Axes i) {
      const Expr scaled = element(i[0], i[1], i[2]) *
                          of(BinaryOp::kDiv, float_imm(steps_of_power(), kFloat32), load(powers, {i[0], i[1]}));
      return cast_to(intrinsic(ops::kNearbyint, {scaled}, kFloat32), kInt32);
    });
    digits = b.compute("digits", kInt8, {rows, chunks, int_imm(matrix_.digits), length},
                       [&](Axes i) { return digit(load(fixed, {i[0], i[1], i[3]}), i[2]); });
    Buffer sums = b.reduce("sums", kInt32, {rows, chunks}, {length}, zero(kInt32), combine_sum,
                           [&](Axes i, Axes r) { return load(fixed, {i[0], i[1], r[0]}); });
    add_totals(b, sums);
  }
  bool are_floats() const { return matrix_.digits == kFloatDigits; }
  // Returns the steps that a power of a chunk has.
  double steps_of_power() const { return are_floats() ? 1 << 22 : 127; }
  // Returns the element of a row, as `made`, 0 behind the depth.
  Expr element(
      const Expr& row, const Expr& chunk, const Expr& k,
      const std::function<Expr(const Expr&)>& made = [](const Expr& x) { return x; }) const {
    std::vector<Expr> at(shape_.size(), row);
    Expr rest = row;
    for (size_t d = shape_.size() - 1; d-- > 0; rest = floor_div(rest, shape_[d]))
      at[d] = same_node(shape_[d], rows) ? row : simplify(floor_mod(rest, shape_[d]));
    at.back() = simplify(chunk * matrix_.chunk + k);
    const Expr value = made(load(x_, at));
    if (matrix_.depth % matrix_.chunk == 0) return value;
    return if_then_else(at.back() < int_imm(matrix_.depth), value, zero(dtype_of(value)));
  }
  // Returns the power of two below a peak, or the peak itself where activations are int8. Three balanced digits end a
  // little before 2^23, so that the power is the next one where the peak is almost there.
  Expr power(const Expr& peak) const {
    constexpr double kLeast = 1e-30, kAlmost = 1 + 1.0 / 128;
    const Expr limited = max(peak, float_imm(kLeast, kFloat32));
    if (!are_floats()) return limited;
    constexpr int64_t kExponent = 0x7f800000;
    const Expr bits = intrinsic(ops::kReinterpret, {limited * float_imm(kAlmost, kFloat32)}, kInt32);
    return intrinsic(ops::kReinterpret, {of(BinaryOp::kBitAnd, bits, integer(kExponent))}, kFloat32);
  }
  // Returns the n-th balanced digit, from the lowest: a byte of the number plus 128 in each byte, minus 128.
  Expr digit(const Expr& fixed, const Expr& n) const {
    if (!are_floats()) return cast_to(fixed, kInt8);
    constexpr int64_t kHalves = 0x808080;
    const Expr bits = of(BinaryOp::kShiftRight, fixed + integer(kHalves), cast_to(n * 8, kInt32));
    return cast_to(of(BinaryOp::kBitAnd, bits, integer(255)) - integer(128), kInt8);
  }
};

// Adds the stage of the numbers in the bytes of a matrix, each in a byte. Those of a format other than integers are
// taken from a table by their codes.
Buffer unpacked_numbers(ComputeBuilder& b, const Buffer& bytes, const std::optional<Buffer>& table,
                        const DigitOperand& matrix) {
  const int64_t per_byte = numbers_per_byte(matrix);
  const std::vector<Expr> shape =
      int_imms({num_tiles(matrix), num_chunks(matrix) * matrix.chunk / kGroup, matrix.vectors, matrix.lanes, kGroup});
  return b.compute("numbers", kUInt8, shape, [&](Axes i) {
    const Expr shift = cast_to(floor_mod(i[1], per_byte) * matrix.bits, kUInt8);
    const Expr byte = load(bytes, {i[0], floor_div(i[1], per_byte), i[2], i[3], i[4]});
    const Expr number =
        of(BinaryOp::kBitAnd, of(BinaryOp::kShiftRight, byte, shift), int_imm((1 << matrix.bits) - 1, kUInt8));
    return table ? load(*table, {cast_to(number, kInt64)}) : number;
  });
}

// Adds the sums of digits times numbers, int32 [row, chunk, digit, tile, vector, lane].
Buffer add_sums(ComputeBuilder& b, const Expr& rows, const Buffer& left, const Buffer& numbers,
                const DigitOperand& matrix) {
  const Expr chunks = int_imm(num_chunks(matrix)), tiles = int_imm(num_tiles(matrix));
  const std::vector<Expr> columns = {
      rows, chunks, int_imm(matrix.digits), tiles, int_imm(matrix.vectors), int_imm(matrix.lanes)};
  Buffer sums = left;
  if (matrix.pair_depth == 0) {
    sums = b.reduce("digit_sums", kInt32, columns, {int_imm(matrix.chunk)}, zero(kInt32), combine_sum,
                    [&](Axes i, Axes r) {
                      const Expr group = simplify(i[1] * (matrix.chunk / kGroup) + floor_div(r[0], kGroup));
                      return cast_to(load(left, {i[0], i[1], i[2], r[0]}), kInt32) *
                             cast_to(load(numbers, {i[3], group, i[4], i[5], floor_mod(r[0], kGroup)}), kInt32);
                    });
  } else {
    const Expr parts = int_imm(matrix.chunk / matrix.pair_depth), pairs = int_imm(2);
    const std::vector<Expr> dims = {columns[0], columns[1], columns[2], columns[3],
                                    columns[4], parts,      columns[5], pairs};
    const int64_t groups = matrix.pair_depth / kGroup;
    const Buffer pair_sums =
        b.reduce("pair_sums", kInt16, dims, {int_imm(groups), pairs}, zero(kInt16), combine_sum, [&](Axes i, Axes r) {
          const Expr group = simplify(i[5] * groups + r[0]), k = simplify(group * kGroup + i[7] * 2 + r[1]);
          const Expr word = load(numbers, {i[3], simplify(i[1] * (matrix.chunk / kGroup) + group), i[4], i[6]});
          const Expr byte = of(BinaryOp::kShiftRight, word, cast_to(i[7] * 16 + r[1] * 8, kInt32));
          return cast_to(load(left, {i[0], i[1], i[2], k}), kInt16) *
                 cast_to(of(BinaryOp::kBitAnd, byte, integer(255)), kInt16);
        });
    sums = b.reduce("digit_sums", kInt32, columns, {parts, pairs}, zero(kInt32), combine_sum, [&](Axes i, Axes r) {
      return cast_to(load(pair_sums, {i[0], i[1], i[2], i[3], i[4], r[0], i[5], r[1]}), kInt32);
    });
  }
  b.annotate(annotation<"digit_sums">(), true);
  return sums;
}

// Adds the stage of the numbers in words, four in the bytes of each.
Buffer unpacked_words(ComputeBuilder& b, const Buffer& words, const DigitOperand& matrix) {
  const int64_t per_byte = numbers_per_byte(matrix), mask = 0x01010101 * ((1 << matrix.bits) - 1);
  const std::vector<Expr> shape =
      int_imms({num_tiles(matrix), num_chunks(matrix) * matrix.chunk / kGroup, matrix.vectors, matrix.lanes});
  return b.compute("numbers", kInt32, shape, [&](Axes i) {
    const Expr shift = cast_to(floor_mod(i[1], per_byte) * matrix.bits, kInt32);
    const Expr word = load(words, {i[0], floor_div(i[1], per_byte), i[2], i[3]});
    return of(BinaryOp::kBitAnd, of(BinaryOp::kShiftRight, word, shift), integer(mask));
  });
}

// Returns the elements of the depth that have one step: a block that has a scale, or part of one.
int64_t chunk_of(const QuantizedOperand& matrix) {
  return matrix.block < matrix.depth && matrix.block <= kMostChunk ? matrix.block : kUsualChunk;
}

// Returns the instruction for the products: with sums of 32 bits, or of 16; null where the target has none.
const DotForm* form_of(const Target& target) {
  const DotForm* form = find_dot_form(kInt8, kUInt8, kInt32, target);
  return form ? form : find_dot_form(kInt8, kUInt8, kInt16, target);
}
bool sums_in_pairs(const DotForm& form) { return form.result == kInt16; }

// Returns the elements of the chunk, which they divide, whose products with digits cannot make sums of two in each lane
// that need more than 16 bits; 0 where there are none, as for bytes.
int64_t pair_depth_of(DType numbers, int64_t chunk) {
  constexpr int64_t kMostDigit = 128, kMostSum = 32767;
  const int64_t most_number = (int64_t{1} << numbers.bits) - 1;
  const int64_t step = kGroup * (8 / numbers.bits), most = std::min(chunk, 2 * (kMostSum / (kMostDigit * most_number)));
  for (int64_t depth = most / step * step; depth > 0; depth -= step) {
    if (chunk % depth == 0) return depth;
  }
  return 0;
}

// Makes the program of a product.
class DigitProgram {
 public:
  DigitProgram(const DigitOperand& matrix, const std::vector<Expr>& x_shape, DType x_dtype)
      : matrix_(matrix), shape_(x_shape), x_(b_.input("x1", x_dtype, x_shape)) {
    if (matrix.zero_points) zeros_ = input("zero_points", *matrix.zero_points);
    if (matrix.numbers_of_codes) table_ = input("numbers_of_codes", *matrix.numbers_of_codes);
    if (x_dtype != kFloat32) step_ = b_.input("step", kFloat32, {});
  }

  PrimFuncRef run() {
    for (const Expr& dim : std::span(shape_).first(shape_.size() - 1)) rows_ = simplify(rows_ * dim);
    const bool is_chosen = matrix_.pair_depth > 0 && matrix_.digits == kFloatDigits && !as_int(rows_);
    const std::optional<Buffer> of_floats = is_chosen ? std::optional(product_of_floats()) : std::nullopt;
    const Buffer of_digits = product_of_digits();
    std::vector<Expr> out(shape_.begin(), shape_.end() - 1);
    out.push_back(int_imm(matrix_.width));
    const Buffer result = b_.compute("matmul_columns", kFloat32, out, [&](Axes i) {
      Expr row = int_imm(0);
      for (size_t d = 0; d + 1 < i.size(); ++d) row = row * shape_[d] + i[d];
      std::vector<Expr> at = place_of(i.back());
      at[0] = simplify(row);
      const Expr few = load(of_digits, at);
      return is_chosen ? if_then_else(rows_ <= int_imm(kFewRows), few, load(*of_floats, {i.begin(), i.end()})) : few;
    });
    if (is_chosen) b_.annotate(annotation<"chosen_by_dims">(), true);
    return with_op_name(b_.finish({result}), ops::short_name(ops::kMatmul));
  }

 private:
  Buffer input(const char* name, const Expr& tensor) {
    const Tensor& data = tensor.as<Constant>()->data;
    return b_.input(name, data.dtype(), int_imms(data.shape()));
  }
  // Returns [., tile, vector, lane] of a column.
  std::vector<Expr> place_of(const Expr& column) const {
    const int64_t lanes = matrix_.lanes;
    return {int_imm(0), floor_div(column, columns_of_tile(matrix_)),
            floor_mod(floor_div(column, lanes), matrix_.vectors), floor_mod(column, lanes)};
  }
  // Returns the element for [., tile, vector, lane] of the numbers for each block, or the one number.
  Expr parameter(const Buffer& buffer, Axes i, const Expr& chunk) const {
    const std::vector<Expr>& dims = buffer_type(buffer).shape;
    if (dims.size() < 4) return cast_to(load(buffer, std::vector<Expr>(dims.size(), int_imm(0))), kFloat32);
    const Expr block = is_int(dims[1], 1) ? int_imm(0) : floor_div(chunk, matrix_.chunks_of_scale);
    return cast_to(load(buffer, {i[1], block, i[2], i[3]}), kFloat32);
  }
  Expr zero_point(Axes i, const Expr& chunk) const {
    const Expr common = float_imm(static_cast<double>(matrix_.zero_point), kFloat32);
    if (!zeros_) return common;
    return matrix_.zero_point == 0 ? parameter(*zeros_, i, chunk) : parameter(*zeros_, i, chunk) + common;
  }
  // Adds the sums over all chunks, [row, tile, vector, lane].
  Buffer product_of_digits() {
    const Activations left(b_, x_, shape_, matrix_, step_);
    const Buffer numbers = matrix_.pair_depth > 0          ? unpacked_words(b_, words_, matrix_)
                           : numbers_per_byte(matrix_) > 1 ? unpacked_numbers(b_, words_, table_, matrix_)
                                                           : words_;
    const Buffer parts = add_sums(b_, left.rows, left.digits, numbers, matrix_);
    return b_.reduce(
        "matmul", kFloat32, {left.rows, int_imm(num_tiles(matrix_)), int_imm(matrix_.vectors), int_imm(matrix_.lanes)},
        {int_imm(num_chunks(matrix_))}, zero(kFloat32), combine_sum, [&](Axes i, Axes r) {
          auto part = [&](int64_t digit) { return load(parts, {i[0], r[0], int_imm(digit), i[1], i[2], i[3]}); };
          const bool is_float = matrix_.digits > 1;
          // The lower two digits of up to 256 elements are exact in int32.
          Expr sum = cast_to(is_float ? part(0) + of(BinaryOp::kShiftLeft, part(1), integer(8)) : part(0), kFloat32);
          if (is_float) sum = cast_to(part(2), kFloat32) * float_imm(65536, kFloat32) + sum;
          if (zeros_ || matrix_.zero_point != 0) sum = sum - zero_point(i, r[0]) * load(left.totals, {i[0], r[0]});
          if (table_) sum = sum * float_imm(0.5, kFloat32);
          return sum * (left.step(i[0], r[0]) * parameter(scales_, i, r[0]));
        });
  }
  // Adds the product with the matrix in floats, [..., row, column], which tir/rules/contraction.cc unpacks.
  Buffer product_of_floats() {
    const int64_t columns = columns_of_tile(matrix_), per_byte = numbers_per_byte(matrix_), bits = matrix_.bits;
    const std::vector<Expr> shape = int_imms({matrix_.depth, num_tiles(matrix_) * columns});
    const Buffer floats = b_.compute("dequantize", kFloat32, shape, [&](Axes i) {
      const Expr &k = i[0], chunk = floor_div(k, matrix_.chunk);
      const std::vector<Expr> at = place_of(i[1]);
      const Expr word = load(words_, {at[1], floor_div(k, kGroup * per_byte), at[2], at[3]});
      const Expr place = floor_mod(k, kGroup) * 8 + floor_mod(floor_div(k, kGroup), per_byte) * bits;
      const Expr number =
          of(BinaryOp::kBitAnd, of(BinaryOp::kShiftRight, word, cast_to(place, kInt32)), integer((1 << bits) - 1));
      return (cast_to(number, kFloat32) - zero_point(at, chunk)) * parameter(scales_, at, chunk);
    });
    b_.annotate(annotation<"unpacked_columns">(), columns);
    b_.annotate(annotation<"unpacked_rows">(), kGroup * per_byte);
    std::vector<Expr> out(shape_.begin(), shape_.end() - 1);
    out.push_back(shape[1]);
    const Buffer product =
        b_.reduce("matmul", kFloat32, out, {int_imm(matrix_.depth)}, zero(kFloat32), combine_sum, [&](Axes i, Axes r) {
          std::vector<Expr> at(i.begin(), i.end());
          at.back() = r[0];
          return load(x_, at) * load(floats, {r[0], i.back()});
        });
    b_.annotate(annotation<"op">(), ops::short_name(ops::kMatmul));
    return product;
  }

  const DigitOperand& matrix_;
  const std::vector<Expr>& shape_;  // of the activations
  ComputeBuilder b_;
  Buffer x_, words_ = input("x2", matrix_.words), scales_ = input("scales", matrix_.scales);
  std::optional<Buffer> zeros_, table_, step_;
  Expr rows_ = int_imm(1);
};

// Returns whether there are so many rows that unpacking the matrix into floats, once for all of them, is faster.
bool has_many_rows(const std::vector<Expr>& x_shape, int64_t few) {
  int64_t rows = 1;
  for (const Expr& dim : std::span(x_shape).first(x_shape.size() - 1)) {
    const auto known = as_int(dim);
    if (!known || *known < 1) return false;
    rows = std::min(rows * std::min(*known, few + 1), few + 1);
  }
  return rows > few;
}

// Returns the dtype for scales: float16 where all of them are numbers of it, as those of GGUF's Q4_0 are.
DType dtype_of_scales(const Tensor& scales, const Target& target) {
  if (scales.dtype() != kFloat32 || !target.has_float16_conversion) return scales.dtype();
  const Tensor halves = Tensor::empty(scales.shape(), kHalf);
  for (int64_t i = 0; i < scales.size(); ++i) {
    halves.set_double(i, scales.as_double(i));
    if (halves.as_double(i) != scales.as_double(i)) return kFloat32;
  }
  return kHalf;
}

}  // namespace

std::vector<Expr> DigitOperand::tensors(const Expr& x) const {
  std::vector<Expr> result = {x, words, scales};
  if (zero_points) result.push_back(*zero_points);
  if (numbers_of_codes) result.push_back(*numbers_of_codes);
  return result;
}

PrimFuncRef DigitOperand::program(const std::vector<Expr>& x_shape, DType x_dtype) const {
  return DigitProgram(*this, x_shape, x_dtype).run();
}

bool fits_digits(const QuantizedOperand& matrix, const std::vector<Expr>& x_shape, DType x_dtype, DType result,
                 ActivationDigits activations, const PassContext& context) {
  const DotForm* form = form_of(context.target);
  const bool are_floats = matrix.dtype == kFloat32 && x_dtype == kFloat32 && result == kFloat32;
  const DType numbers = *tensor_dtype(matrix.numbers.type());
  const bool has_pairs = form && sums_in_pairs(*form);  // for words of integers
  const bool are_bytes = numbers.is_integral() || (numbers.code == DTypeCode::kFloat4E2M1FN && !has_pairs);
  if (!form || form->group != kGroup || !are_bytes || !are_floats || matrix.columns > 1 ||
      chunk_of(matrix) % (kGroup * (8 / numbers.bits)) != 0 ||
      (matrix.block < matrix.depth && matrix.block % chunk_of(matrix) != 0) ||
      (has_pairs && pair_depth_of(numbers, chunk_of(matrix)) == 0))
    return false;
  return activations != ActivationDigits::kFloat || !has_many_rows(x_shape, has_pairs ? kFewRows : kMostDigitRows);
}

Expr column_sums(const QuantizedOperand& matrix) {
  const Tensor &numbers = matrix.numbers.as<Constant>()->data, &scale = matrix.scale.as<Constant>()->data,
               &zero = matrix.zero_point.as<Constant>()->data;
  // Returns the place of a parameter of [depth / block, width], [width] or one element.
  auto place = [&](const Tensor& parameters, int64_t block, int64_t column) {
    if (parameters.size() == 1) return int64_t{0};
    const int64_t blocks = parameters.size() / matrix.width;
    if (blocks == 1) return column;
    return matrix.is_transposed ? column * blocks + block : block * matrix.width + column;
  };
  std::vector<double> sums(static_cast<size_t>(matrix.width));
  for (int64_t i = 0; i < numbers.size(); ++i) {
    const int64_t column = matrix.is_transposed ? i / matrix.depth : i % matrix.width,
                  block = (matrix.is_transposed ? i % matrix.depth : i / matrix.width) / matrix.block;
    const double number = numbers.as_double(i) - zero.as_double(place(zero, block, column));
    sums[static_cast<size_t>(column)] += number * scale.as_double(place(scale, block, column));
  }
  Tensor result = Tensor::empty({matrix.width}, kFloat32);
  for (int64_t i = 0; i < matrix.width; ++i) result.set_double(i, sums[static_cast<size_t>(i)]);
  return constant(std::move(result));
}

// Returns the bytes, of which each row has four, as numbers of 32 bits.
static Expr as_words(const Expr& bytes) {
  const Tensor& data = bytes.as<Constant>()->data;
  std::vector<int64_t> shape = data.shape();
  shape.pop_back();
  auto owner = std::make_shared<Tensor>(data);
  return constant(Tensor::view(std::move(shape), kInt32, owner->raw(), owner), bytes.span());
}

DigitOperand digit_operand(const QuantizedOperand& matrix, ActivationDigits activations, const PassContext& context) {
  const DType narrow = *tensor_dtype(matrix.numbers.type());
  const int64_t offset = narrow.is_int() ? int64_t{1} << (narrow.bits - 1) : 0, chunk = chunk_of(matrix);
  const DotForm& form = *form_of(context.target);
  DigitOperand operand{.depth = matrix.depth,
                       .width = matrix.width,
                       .bits = narrow.bits,
                       .lanes = form.lanes,
                       .vectors = 1,
                       .chunk = chunk,
                       .chunks_of_scale = std::max<int64_t>(1, matrix.block / chunk),
                       .digits = activations == ActivationDigits::kFloat ? kFloatDigits : 1,
                       .pair_depth = sums_in_pairs(form) ? pair_depth_of(narrow, chunk) : 0,
                       .words = matrix.numbers,
                       .scales = matrix.scale,
                       .zero_points = {},
                       .numbers_of_codes = narrow.is_float() ? std::optional(doubled_float4s()) : std::nullopt};
  const int64_t most_vectors = sums_in_pairs(form) ? kMostVectorsOfPairs : kMostVectors;
  while (operand.vectors < most_vectors && ceil_div(matrix.width, operand.lanes) % (2 * operand.vectors) == 0)
    operand.vectors *= 2;
  const ConstantColumns numbers{narrow.is_float() ? codes_of(matrix.numbers) : matrix.numbers, matrix.is_transposed},
      scale{matrix.scale, matrix.is_transposed}, zero{matrix.zero_point, matrix.is_transposed};
  operand.words = packed(words_program(numbers, offset, operand), numbers.tensor, context);
  if (operand.pair_depth > 0) operand.words = as_words(operand.words);
  auto in_tiles = [&](const ConstantColumns& floats) {
    if (floats.size() == 1) return floats.tensor;
    const DType dtype = dtype_of_scales(floats.tensor.as<Constant>()->data, context.target);
    return packed(parameters_program(floats, dtype, 0, operand), floats.tensor, context);
  };
  operand.scales = in_tiles(scale);
  if (narrow.is_float()) {
    operand.zero_point = kMostFloat4;
  } else if (matrix.has_float_zero_point()) {
    operand.zero_points = in_tiles(zero);
    operand.zero_point = offset;
  } else if (std::optional<int64_t> all = zero.only_number()) {
    operand.zero_point = *all + offset;
  } else {
    operand.zero_points = packed(parameters_program(zero, kUInt8, offset, operand), matrix.zero_point, context);
  }
  return operand;
}

}  // namespace relaxc
