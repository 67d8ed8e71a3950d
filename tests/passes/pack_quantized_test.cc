// Products with constant matrices of few bits: what they compute, for sizes that fill panels and tiles and others, and
// how many bytes of them are stored.
#include <cmath>

#include "codegen/compile.h"
#include "codegen/target.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "support/checked_math.h"
#include "tests/constants.h"
#include "tests/ops/harness.h"
#include "vm/program.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

struct QuantizedProduct {
  const char* dtype;
  int64_t depth, width, block;
  bool is_transposed;
  const char* scale_dtype = "float32";
  bool shares_columns = false;  // blocks are columns of a row
  const char* zero_dtype = nullptr;

  const char* dtype_of_zeros() const { return zero_dtype ? zero_dtype : dtype; }
  Shape matrix(int64_t rows) const { return is_transposed ? Shape{width, rows} : Shape{rows, width}; }
  // Returns the place in the matrix or its parameters of row k and column n.
  Shape place(int64_t k, int64_t n) const { return is_transposed ? Shape{n, k} : Shape{k, n}; }
  Shape block_of(int64_t k, int64_t n) const { return shares_columns ? place(k, n / block) : place(k / block, n); }
  Shape parameters() const {
    return shares_columns ? place(depth, ceil_div(width, block)) : matrix(ceil_div(depth, block));
  }
  DType narrow() const { return *parse_dtype(dtype); }
  std::vector<Tensor> operands() const {
    Tensor numbers = Tensor::empty(matrix(depth), narrow()),
           zeros = Tensor::empty(parameters(), *parse_dtype(dtype_of_zeros()));
    std::fill_n(static_cast<uint8_t*>(numbers.raw()), numbers.bytes(), uint8_t{0});
    std::fill_n(static_cast<uint8_t*>(zeros.raw()), zeros.bytes(), uint8_t{0});
    for (int64_t i = 0; i < numbers.size(); ++i) {
      const int64_t number = i * 7 + i / 5;
      narrow().is_float() ? numbers.set_double(i, static_cast<double>(number % 13 - 6) / 2)
                          : numbers.set_int(i, number);
    }
    for (int64_t i = 0; i < zeros.size() && !narrow().is_float(); ++i)
      zeros.dtype().is_float() ? zeros.set_double(i, static_cast<double>(i % 11) + 0.5) : zeros.set_int(i, i * 3 + 1);
    Tensor scales = Tensor::empty(parameters(), *parse_dtype(scale_dtype));
    const Tensor wide = values(parameters());
    for (int64_t i = 0; i < scales.size(); ++i)
      scales.set_double(i, scales.dtype() == kFloat32 ? wide.as_double(i) : std::ldexp(1, static_cast<int>(i % 5) - 2));
    return {numbers, scales, zeros};
  }
  // Returns the module of x[rows, depth] times the matrix, and of an epilogue.
  IRModule module(const std::string& rows, const char* x_dtype = "float32", const std::string& real = "x") const {
    auto type = [](const Shape& shape, const char* of) {
      return fmt::format("R.Tensor(({}, {}), \"{}\")", shape[0], shape[1], of);
    };
    const std::string text = fmt::format(
        R"(
@R.function
def main(x: R.Tensor(({}, {}), "{}"), q: {}, s: {}, z: {}):
    with R.dataflow():
        w = R.dequantize(q, s, z, axis={}, block_size={}, out_dtype="float32")
        y = R.nn.relu(R.matmul({}, {}))
        R.output(y)
    return y
)",
        rows, depth, x_dtype, type(matrix(depth), dtype), type(parameters(), scale_dtype),
        type(parameters(), dtype_of_zeros()), is_transposed != shares_columns ? 1 : 0, block, real,
        is_transposed ? "R.permute_dims(w)" : "w");
    Diagnostics diagnostics;
    IRModule module = parse_module(text, "product.py", op_table(), diagnostics);
    INFO(text);
    REQUIRE(diagnostics.all().empty());
    return with_constants(std::move(module), operands());
  }
  // Counts the elements of a result that are not the sum. All numbers are multiples of 1/64, so that sums are exact.
  int wrong(const Tensor& x, const Tensor& y) const {
    const std::vector<Tensor> given = operands();
    int count = 0;
    for_each_index(y.shape(), [&](const Shape& at) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const Shape shared = block_of(k, at[1]);
        const double number = element(given[0], place(k, at[1])) - element(given[2], shared);
        sum += element(x, {at[0], k}) * number * element(given[1], shared);
      }
      count += element(y, at) != std::max(sum, 0.0);
    });
    return count;
  }
  // Returns the largest error relative to the largest sum.
  double worst_error(const Tensor& x, const Tensor& y) const {
    const std::vector<Tensor> given = operands();
    double worst = 0, largest = 0;
    for_each_index(y.shape(), [&](const Shape& at) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const Shape shared = block_of(k, at[1]);
        const double number = element(given[0], place(k, at[1])) - element(given[2], shared);
        sum += element(x, {at[0], k}) * number * element(given[1], shared);
      }
      worst = std::max(worst, std::abs(element(y, at) - std::max(sum, 0.0)));
      largest = std::max(largest, std::abs(sum));
    });
    return worst / largest;
  }
};

}  // namespace

TEST_CASE("products with matrices of few bits are the sums that the graph says", "[passes]") {
  const auto product =
      GENERATE(QuantizedProduct{"uint4", 64, 128, 32, false}, QuantizedProduct{"int4", 96, 65, 32, true},
               QuantizedProduct{"uint4", 37, 3, 16, true}, QuantizedProduct{"int8", 64, 64, 64, false},
               QuantizedProduct{"uint8", 50, 31, 32, true}, QuantizedProduct{"uint2", 48, 200, 16, true},
               QuantizedProduct{"int2", 33, 17, 8, false}, QuantizedProduct{"float8_e4m3fn", 64, 33, 64, false},
               QuantizedProduct{"float8_e5m2", 37, 40, 16, true},
               QuantizedProduct{"float4_e2m1fn", 64, 70, 32, true, "float8_e8m0fnu"},
               QuantizedProduct{"float4_e2m1fn", 48, 128, 16, false, "float8_e4m3fn"},
               QuantizedProduct{"float4_e2m1fn", 70, 31, 70, true},
               QuantizedProduct{"uint4", 64, 40, 32, true, "float32", false, "float32"},
               QuantizedProduct{"int8", 50, 31, 50, false, "float32", false, "float16"},
               QuantizedProduct{"int4", 40, 96, 32, false, "float32", true},
               QuantizedProduct{"uint8", 33, 50, 16, true, "float32", true});
  CAPTURE(product.dtype, product.depth, product.width);
  // In the interpreter targets have the instructions that this machine may lack.
  for (auto [target, passes] : {std::pair("host", "default"),
                                {"x86-64-v2", "default"},
                                {"x86-64-v3", "simplify,kernels"},
                                {"x86-64-v4", "simplify,kernels"},
                                {"cpu=icelake-server", "simplify,kernels"},
                                {"cpu=alderlake", "simplify,kernels"}}) {
    CAPTURE(target);
    CompileSettings settings;
    settings.target = target;
    settings.passes = passes;
    if (settings.passes != "default") settings.interpret = InterpretOptions();
    const Program any = compile(product.module("\"m\""), settings).load();
    for (int64_t rows :
         settings.interpret ? std::vector<int64_t>{1, 5, 11} : std::vector<int64_t>{1, 2, 3, 4, 5, 11, 40}) {
      const std::vector<Tensor> inputs = {values({rows, product.depth})};
      CHECK(product.wrong(inputs[0], Session(any).run(inputs).at(0)) == 0);
      const Program fixed = compile(product.module(std::to_string(rows)), settings).load();
      CHECK(product.wrong(inputs[0], Session(fixed).run(inputs).at(0)) == 0);
    }
  }
}

// Each column of the matrix has one code, among zeros, and a scale of its own. All targets and numbers of rows give the
// number of the code times the scale, or its NaN or infinity.
TEST_CASE("floats of few bits are what their codes say", "[passes]") {
  const auto dtype = GENERATE("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn");
  const auto [scale_dtype, is_transposed] =
      GENERATE(std::pair("float32", false), std::pair("float16", true), std::pair("float8_e8m0fnu", true));
  CAPTURE(dtype, scale_dtype, is_transposed);
  constexpr int64_t kDepth = 64, kBlock = 32, kRow = 37, kMostPanelColumns = 128;
  const DType narrow = *parse_dtype(dtype), wide = *parse_dtype(scale_dtype);
  const int64_t count = int64_t{1} << narrow.bits, blocks = kDepth / kBlock;
  auto matrix = [&](int64_t rows, DType of) {
    return Tensor::empty(is_transposed ? Shape{count, rows} : Shape{rows, count}, of);
  };
  auto place = [&](int64_t row, int64_t column, int64_t rows) {
    return is_transposed ? column * rows + row : row * count + column;
  };
  const Tensor codes = matrix(kDepth, narrow), scales = matrix(blocks, wide), zero = Tensor::empty({}, narrow);
  std::fill_n(static_cast<uint8_t*>(codes.raw()), codes.bytes(), uint8_t{0});
  static_cast<uint8_t*>(zero.raw())[0] = 0;
  for (int64_t n = 0; n < count; ++n) {
    const int64_t at = place(kRow, n, kDepth);
    if (narrow.bits == 8) static_cast<uint8_t*>(codes.raw())[at] = static_cast<uint8_t>(n);
    if (narrow.bits == 4) codes.set_double(at, float_from_bits(static_cast<uint16_t>(n), narrow));
    for (int64_t b = 0; b < blocks; ++b)
      scales.set_double(place(b, n, blocks), std::ldexp(1, static_cast<int>((n + b) % 5) - 3));
  }
  const std::string text =
      fmt::format(R"(
@R.function
def main(x: R.Tensor(("m", {0}), "float32"), q: R.Tensor(({1}), "{2}"), s: R.Tensor(({3}), "{4}"), z: R.Tensor((), "{2}")):
    with R.dataflow():
        w = R.dequantize(q, s, z, axis={5}, block_size={6}, out_dtype="float32")
        y = R.matmul(x, {7})
        R.output(y)
    return y
)",
                  kDepth, fmt::join(codes.shape(), ", "), dtype, fmt::join(scales.shape(), ", "), scale_dtype,
                  is_transposed ? 1 : 0, kBlock, is_transposed ? "R.permute_dims(w)" : "w");
  const bool is_avx512 = codegen::parse_target("host").vector_bits == 512;
  for (const char* target : {"host", "x86-64", "x86-64-v3", is_avx512 ? "x86-64-v4" : "host"}) {
    CAPTURE(target);
    CompileSettings settings;
    settings.target = target;
    Diagnostics diagnostics;
    const CompiledModule compiled = compile(
        with_constants(parse_module(text, "codes.py", op_table(), diagnostics), {codes, scales, zero}), settings);
    int64_t stored = 0;
    for (const Tensor& constant : compiled.executable().constants) stored += constant.bytes();
    CHECK(stored < std::max(count, kMostPanelColumns) * (kDepth * narrow.bits / 8 + blocks * 4) + 1024);
    const Program program = compiled.load();
    for (const int64_t rows : {1, 3, 40}) {
      const Tensor x = Tensor::empty({rows, kDepth}, kFloat32);
      for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, i / kDepth % 2 == 0 ? 1 : -1);
      const Tensor y = Session(program).run(std::vector<Tensor>{x}).at(0);
      int wrong = 0;
      for (int64_t i = 0; i < y.size(); ++i) {
        const int64_t n = i % count;
        const double number = float_from_bits(static_cast<uint16_t>(n), narrow),
                     expected =
                         x.as_double(i / count * kDepth) * number * scales.as_double(place(kRow / kBlock, n, blocks));
        wrong += std::isnan(expected) ? !std::isnan(y.as_double(i)) : y.as_double(i) != expected;
      }
      CAPTURE(rows);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("scales that are not finite give what the graph says", "[passes]") {
  for (const char* dtype : {"float4_e2m1fn", "float8_e4m3fn", "uint4"}) {
    const DType narrow = *parse_dtype(dtype);
    const Tensor codes = Tensor::empty({64, 4}, narrow), scales = Tensor::empty({2, 4}, kFloat32),
                 zero = Tensor::empty({}, narrow);
    for (int64_t i = 0; i < codes.size(); ++i) codes.set_double(i, i % 4 == 3 && i > 240 ? 0 : 2);
    static_cast<uint8_t*>(zero.raw())[0] = 0;
    for (int64_t i = 0; i < scales.size(); ++i) scales.set_double(i, 0.5);
    scales.set_double(1, std::nan(""));
    scales.set_double(6, HUGE_VAL);
    scales.set_double(7, HUGE_VAL);
    const std::string text = fmt::format(R"(
@R.function
def main(x: R.Tensor((1, 64), "float32"), q: R.Tensor((64, 4), "{0}"), s: R.Tensor((2, 4), "float32"), z: R.Tensor((), "{0}")):
    with R.dataflow():
        y = R.matmul(x, R.dequantize(q, s, z, axis=0, block_size=32, out_dtype="float32"))
        R.output(y)
    return y
)",
                                         dtype);
    CAPTURE(dtype);
    Diagnostics diagnostics;
    const Program program =
        compile(with_constants(parse_module(text, "scales.py", op_table(), diagnostics), {codes, scales, zero})).load();
    const Tensor x = Tensor::empty({1, 64}, kFloat32);
    for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, 1);
    const Tensor y = Session(program).run(std::vector<Tensor>{x}).at(0);
    CHECK(y.as_double(0) == 64);
    CHECK(std::isnan(y.as_double(1)));
    CHECK(y.as_double(2) == HUGE_VAL);
    CHECK(std::isnan(y.as_double(3)));  // 0 times infinity
  }
}

TEST_CASE("a row of any size keeps its precision, and one that is not finite has no finite result", "[passes]") {
  const QuantizedProduct product{"uint4", 128, 64, 32, true};
  const Program any = compile(product.module("\"m\"")).load();
  for (const float scale : {1e-20f, 1e-3f, 1.0f, 1e20f}) {
    const Tensor x = values({3, product.depth});
    for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, x.as_double(i) * scale / 3);
    const Tensor y = Session(any).run(std::vector<Tensor>{x}).at(0);
    CHECK(product.worst_error(x, y) < 2e-6);
  }
  for (const double odd : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    const Tensor x = values({2, product.depth});
    x.set_double(product.depth + 5, odd);
    const Tensor y = Session(any).run(std::vector<Tensor>{x}).at(0);
    int finite = 0;
    for (int64_t i = 0; i < product.width; ++i)
      finite += std::isfinite(y.as_double(product.width + i)) && y.as_double(product.width + i) != 0;
    CHECK(finite == 0);
    for (int64_t i = 0; i < product.width; ++i) CHECK(std::isfinite(y.as_double(i)));
  }
}

TEST_CASE("without VNNI few rows are products by digits, others by floats", "[passes]") {
  const QuantizedProduct product{"uint4", 128, 64, 32, true};
  CompileSettings settings;
  settings.target = "x86-64-v3";
  settings.passes = "simplify,kernels";
  auto rules_of = [&](const std::string& rows) { return print_module(run_pipeline(product.module(rows), settings)); };
  auto has_digits = [&](const std::string& rows) { return rules_of(rows).find("digit_sums") != std::string::npos; };
  CHECK(has_digits("1"));
  CHECK(has_digits("4"));
  CHECK(!has_digits("5"));
  // Bytes need sums of 32 bits.
  const QuantizedProduct bytes{"uint8", 128, 64, 32, true};
  CHECK(print_module(run_pipeline(bytes.module("1"), settings)).find("digit_sums") == std::string::npos);
}

TEST_CASE("activations are rounded to 8 bits where a schedule says so", "[passes]") {
  const QuantizedProduct product{"uint4", 128, 64, 32, true};
  const char* target = GENERATE("cpu=icelake-server", "x86-64-v3");
  for (int64_t rows : {1, 3, 40}) {
    CAPTURE(target, rows);
    CompileSettings settings;
    settings.target = target;
    settings.interpret = InterpretOptions();
    settings.passes = "simplify,kernels";
    settings.schedules.push_back({.name = "int8", .uses = "packed_product", .given = {{"activations", "int8"}}});
    const Tensor x = values({rows, product.depth});
    for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, x.as_double(i) / 3);
    for (const std::string& of : {std::to_string(rows), std::string("\"m\"")}) {
      const Program program = compile(product.module(of), settings).load();
      const double error = product.worst_error(x, Session(program).run(std::vector<Tensor>{x}).at(0));
      CHECK(error < 0.02);
      CHECK(error > 1e-5);
    }
  }
}

TEST_CASE("matrices of few bits are stored in as few bits", "[passes]") {
  const auto product =
      GENERATE(QuantizedProduct{"uint4", 256, 256, 32, true}, QuantizedProduct{"int8", 256, 256, 256, false},
               QuantizedProduct{"uint2", 256, 256, 64, false}, QuantizedProduct{"float8_e4m3fn", 256, 256, 256, true},
               QuantizedProduct{"float4_e2m1fn", 256, 256, 32, false, "float8_e8m0fnu"},
               QuantizedProduct{"uint4", 256, 256, 32, true, "float32", false, "float32"},
               QuantizedProduct{"int4", 256, 256, 16, false, "float16", true, "float16"});
  int64_t given = 0, stored = 0;
  for (const Tensor& tensor : product.operands()) given += tensor.bytes();
  const CompiledModule compiled = compile(product.module("\"m\""));
  for (const Tensor& constant : compiled.executable().constants) stored += constant.bytes();
  CHECK(stored <= given);  // scales that are float16 numbers may be stored as such
}

TEST_CASE("a filter of few bits becomes floats while compiling, not in each run", "[passes]") {
  const char* text = R"(
@R.function
def main(x: R.Tensor((1, 64, 8, 8), "float32"), q: R.Tensor((64, 64, 3, 3), "int4"), s: R.Tensor((64,), "float32"), z: R.Tensor((), "int4")):
    with R.dataflow():
        y = R.nn.conv2d(x, R.dequantize(q, s, z, axis=0), padding=[1, 1, 1, 1])
        R.output(y)
    return y
)";
  const QuantizedProduct numbers{"int4", 64, 64 * 9, 64, false};
  const Tensor q = numbers.operands()[0].reshaped(std::vector<int64_t>{64, 64, 3, 3}),
               zero = Tensor::empty({}, q.dtype());
  static_cast<uint8_t*>(zero.raw())[0] = 0;
  Diagnostics diagnostics;
  const CompiledModule compiled =
      compile(with_constants(parse_module(text, "filter.py", op_table(), diagnostics), {q, values({64}), zero}));
  for (const Tensor& constant : compiled.executable().constants) CHECK(!constant.dtype().is_packed());
}

TEST_CASE("bytes times numbers of few bits are sums of integers", "[passes]") {
  const auto product =
      GENERATE(QuantizedProduct{"uint4", 64, 40, 32, true}, QuantizedProduct{"int8", 70, 33, 16, false},
               QuantizedProduct{"int4", 64, 31, 32, true, "float32", false, "float32"});
  for (const char* bytes : {"uint8", "int8"}) {
    for (int64_t rows : {1, 20}) {
      CAPTURE(product.dtype, bytes, rows);
      const double zero = *bytes == 'u' ? 130 : -3;
      const std::string real =
          fmt::format("R.dequantize(x, R.const(0.5, \"float32\"), R.const({}, \"{}\"))", zero, bytes);
      CompileSettings settings;
      settings.target = "cpu=icelake-server";
      settings.interpret = InterpretOptions();
      settings.passes = "simplify,kernels";
      const IRModule module = product.module("\"m\"", bytes, real);
      CHECK(print_module(run_pipeline(module, settings)).find("digit_sums") != std::string::npos);
      Tensor x = Tensor::empty({rows, product.depth}, *parse_dtype(bytes)),
             expected = Tensor::empty(x.shape(), kFloat32);
      for (int64_t i = 0; i < x.size(); ++i) {
        x.set_int(i, i * 37 % 256);
        expected.set_double(i, (static_cast<double>(x.as_int(i)) - zero) / 2);
      }
      CHECK(product.worst_error(expected, Session(compile(module, settings).load()).run(std::vector<Tensor>{x}).at(0)) <
            1e-6);
    }
  }
}

}  // namespace relaxc::test
