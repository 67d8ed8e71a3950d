// Rules for operators, applied to what fusion made of them.
#include <fstream>
#include <iterator>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "support/diagnostic.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

constexpr const char* kModule = R"(
@R.function
def main(x: R.Tensor(("n", 3, 9, 17), "float32"), w: R.Tensor((32, 3, 3, 3), "float32"), b: R.Tensor((1, 32, 1, 1), "float32"), skip: R.Tensor(("n", 32, 9, 17), "float32")):
    with R.dataflow():
        c = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])
        d = R.add(c, b)
        e = R.add(d, skip)
        y = R.nn.relu(e)
        R.output(y)
    return y
)";

IRModule parse(const char* text) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "module.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  return module;
}

Tensor numbers(std::vector<int64_t> shape, int64_t step) {
  Tensor tensor = Tensor::empty(std::move(shape), kFloat32);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, static_cast<double>((i * step) % 7 - 3));
  return tensor;
}

struct Compiled {
  Tensor result;
  std::string report;
};

Compiled run_with(const std::vector<ScheduleRule>& rules) {
  std::string report;
  CompileSettings settings;
  settings.schedules = rules;
  settings.report = [&](const std::string& line) { report += line + "\n"; };
  Session session(compile(parse(kModule), settings).load());
  Tensor x = numbers({2, 3, 9, 17}, 5), w = numbers({32, 3, 3, 3}, 3), b = numbers({1, 32, 1, 1}, 2);
  return {session.run({x, w, b, numbers({2, 32, 9, 17}, 11)})[0], report};
}

}  // namespace

TEST_CASE("a rule for conv2d takes bias, residual and activation into its tile", "[schedule]") {
  std::ifstream file(RELAXC_SOURCE_DIR "/examples/schedules/conv2d.py");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(!text.empty());
  Compiled expected = run_with({}), got = run_with(read_schedule_rules(text, "conv2d.py"));
  CHECK(expected.report.empty());
  CHECK(got.report.find("rule 'tile_conv2d' is applied to 'fused_conv2d_add_add_relu'") != std::string::npos);
  CHECK(same_contents(expected.result, got.result));
}

TEST_CASE("a rule in C++, and one that does not fit", "[schedule]") {
  ScheduleRule parallel{"parallel", "", "nn.conv2d", {}, [](Schedule& sch) {
                          BlockRV conv = sch.get_block("nn.conv2d");
                          sch.merge_epilogue(conv);
                          sch.parallel(sch.get_loops(conv)[1]);
                        }};
  ScheduleRule wrong{"wrong", "", "nn.conv2d", {}, [](Schedule& sch) {
                       sch.parallel(sch.get_loops(sch.get_block("nn.conv2d"))[4]);  // the input channels
                     }};
  Compiled expected = run_with({}), got = run_with({wrong, parallel});
  CHECK(got.report.find("rule 'wrong' does not fit") != std::string::npos);
  CHECK(got.report.find("which is not spatial") != std::string::npos);
  CHECK(got.report.find("rule 'parallel' is applied") != std::string::npos);
  CHECK(same_contents(expected.result, got.result));
}

TEST_CASE("a schedule for a function that is not there", "[schedule]") {
  ScheduleRule rule{"mine", "no_such", "", {}, [](Schedule&) {}};
  CHECK_THROWS_AS(run_with({rule}), CompileError);
}

}  // namespace relaxc::test
