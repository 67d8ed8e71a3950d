// bfloat16 in convolutions and products: numbers in the interpreter, which has LLVM's intrinsics on every processor,
// and the refusal where the target is not faster by it.
#include <cmath>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "support/diagnostic.h"
#include "tests/constants.h"
#include "tests/ops/harness.h"
#include "vm/program.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

constexpr const char* kNetwork = R"(
@R.function
def main(x: R.Tensor((1, 3, 9, 9), "float32"), w: R.Tensor((16, 3, 3, 3), "float32"), v: R.Tensor((32, 16, 1, 1), "float32"), d: R.Tensor((32, 1, 3, 3), "float32"), m: R.Tensor((32, 10), "float32")):
    with R.dataflow():
        a = R.nn.relu(R.nn.conv2d(x, w, padding=[1, 1, 1, 1]))
        b = R.nn.conv2d(a, v)
        c = R.nn.conv2d(b, d, groups=32)
        e = R.matmul(R.mean(c, axis=[2, 3]), m)
        R.output(e)
    return e
)";

std::vector<Tensor> results(Precision precision, const std::string& passes, const Tensor& x,
                            const std::string& target = "cpu=znver5") {
  Diagnostics diagnostics;
  IRModule module = parse_module(kNetwork, "network.py", op_table(), diagnostics);
  REQUIRE(diagnostics.all().empty());
  CompileSettings settings;
  settings.target = target;
  settings.precision = precision;
  settings.passes = passes;
  settings.interpret = InterpretOptions{};
  const std::vector<Tensor> weights = {values({16, 3, 3, 3}), values({32, 16, 1, 1}, kFloat32, 2),
                                       values({32, 1, 3, 3}, kFloat32, 3), values({32, 10}, kFloat32, 4)};
  return Session(compile(with_constants(module, weights), settings).load()).run({x});
}

}  // namespace

TEST_CASE("convolutions and products in bfloat16 are close to those in float32", "[passes]") {
  const Tensor x = values({1, 3, 9, 9}, kFloat32, 5);
  const std::string passes = GENERATE(as<std::string>(), "simplify,legalize", "simplify,kernels");
  const std::string target = GENERATE(as<std::string>(), "cpu=znver5", "cpu=sapphirerapids");
  const Tensor exact = results(Precision::kFloat32, "legalize", x).at(0),
               narrow = results(Precision::kBFloat16, passes, x, target).at(0);
  double error = 0, norm = 0;
  for (int64_t i = 0; i < exact.size(); ++i) {
    error += std::pow(narrow.as_double(i) - exact.as_double(i), 2);
    norm += std::pow(exact.as_double(i), 2);
  }
  CHECK(std::sqrt(error / norm) < 0x1p-7);
  CHECK(error > 0);  // the operands are narrow
}

TEST_CASE("bfloat16 is refused where float32 is faster", "[passes]") {
  CompileSettings settings;
  settings.precision = Precision::kBFloat16;
  Diagnostics diagnostics;
  const IRModule module = parse_module(kNetwork, "network.py", op_table(), diagnostics);
  for (const char* target : {"x86-64-v3", "x86-64-v4"}) {
    settings.target = target;
    CHECK_THROWS_AS(compile(module, settings), CompileError);
  }
}

}  // namespace relaxc::test
