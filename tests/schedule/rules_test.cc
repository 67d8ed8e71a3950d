// Rules for operators, applied to what fusion made of them.
#include <fstream>
#include <iterator>

#include "codegen/compile.h"
#include "codegen/target.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "passes/graph_decisions.h"
#include "passes/runner.h"
#include "support/diagnostic.h"
#include "tests/constants.h"
#include "tests/schedule/graphs.h"
#include "tir/compute.h"
#include "tir/lower/lower.h"
#include "tir/primitives/compute_inline.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/get_producers.h"
#include "tir/primitives/merge_epilogue.h"
#include "tir/primitives/parallel.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/choose.h"
#include "tir/schedule/script.h"

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

struct Compiled {
  Tensor result;
  std::string report;
};

Compiled run_with(const std::vector<ScheduleRule>& rules) {
  std::string report;
  CompileSettings settings;
  settings.schedules = rules;
  settings.report = [&](const std::string& line) { report += line + "\n"; };
  Tensor x = small_numbers({2, 3, 9, 17}, 5), w = small_numbers({32, 3, 3, 3}, 3), b = small_numbers({1, 32, 1, 1}, 2);
  // 16 channels in a block where this processor has such vectors.
  settings.target = codegen::host_target().vector_bits >= 512 ? "x86-64-v4" : "host";
  Session session(compile(with_constants(parse_graph(kModule), {w, b}), settings).load());
  return {session.run({x, small_numbers({2, 32, 9, 17}, 11)})[0], report};
}

// A convolution with bias and activation, NCHW.
struct Convolution {
  int64_t batch, channels, height, width, filters;
  std::vector<int64_t> window;
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool symbolic = false;

  int64_t out(int64_t extent, int64_t kernel) const {
    return (extent + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  }
  IRModule module() const {
    std::string dims = symbolic ? fmt::format("\"n\", {}, \"h\", \"w\"", channels)
                                : fmt::format("{}, {}, {}, {}", batch, channels, height, width);
    return parse_graph(fmt::format(R"(
@R.function
def main(x: R.Tensor(({0}), "float32"), w: R.Tensor(({1}, {2}, {3}, {4}), "float32"), b: R.Tensor((1, {1}, 1, 1), "float32")):
    with R.dataflow():
        c = R.nn.conv2d(x, w, strides={5}, padding={6}, dilation={7}, groups={8})
        d = R.add(c, b)
        y = R.nn.relu(d)
        R.output(y)
    return y
)",
                                   dims, filters, channels / groups, window[0], window[1], stride, padding, dilation,
                                   groups)
                           .c_str());
  }
  // By plain loops.
  double at(const Tensor& x, const Tensor& w, const Tensor& b, int64_t n, int64_t f, int64_t y, int64_t column) const {
    int64_t depth = channels / groups, first = f / (filters / groups) * depth;
    double sum = b.as_double(f);
    for (int64_t c = 0; c < depth; ++c) {
      for (int64_t dy = 0; dy < window[0]; ++dy) {
        for (int64_t dx = 0; dx < window[1]; ++dx) {
          int64_t row = y * stride + dy * dilation - padding, at = column * stride + dx * dilation - padding;
          if (row < 0 || row >= height || at < 0 || at >= width) continue;
          sum += x.as_double(((n * channels + first + c) * height + row) * width + at) *
                 w.as_double(((f * depth + c) * window[0] + dy) * window[1] + dx);
        }
      }
    }
    return std::max(sum, 0.0);
  }
};

// Compiles it in channel blocks for the target, with these decisions, and compares its results.
void check_in_blocks(const Convolution& c, const char* target, const Attrs& decisions = {}) {
  CAPTURE(c.channels, c.height, c.width, c.filters, c.window, c.stride, c.groups, c.symbolic, target, decisions);
  Tensor x = small_numbers({c.batch, c.channels, c.height, c.width}, 5), b = small_numbers({1, c.filters, 1, 1}, 2);
  Tensor w = small_numbers({c.filters, c.channels / c.groups, c.window[0], c.window[1]}, 3);
  const Target known = codegen::parse_target(target);
  // Small ones stay plain by themselves.
  const std::vector<ScheduleRule> uses = {
      {.uses = "image_layout", .given = {{"block", int64_t{known.vector_lanes(32)}}}},
      {.uses = "convolution", .given = decisions}};
  CHECK_NOTHROW(schedule_by_rule(with_constants(c.module(), {w, b}), *find_builtin_rule("convolution"), known, uses));
  CompileSettings settings;
  settings.schedules = uses;
  settings.target = target;
  settings.winograd_error = 0;
  Tensor result = Session(compile(with_constants(c.module(), {w, b}), settings).load()).run({x})[0];
  int64_t height = c.out(c.height, c.window[0]), width = c.out(c.width, c.window[1]);
  REQUIRE(result.shape() == std::vector<int64_t>{c.batch, c.filters, height, width});
  int64_t wrong = 0;
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t pixel = i % (height * width), plane = i / (height * width);
    double wanted = c.at(x, w, b, plane / c.filters, plane % c.filters, pixel / width, pixel % width);
    wrong += result.as_double(i) != wanted;  // sums of small integers
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("a rule for conv2d takes bias, residual and activation into its tile", "[schedule]") {
  std::ifstream file(RELAXC_SOURCE_DIR "/examples/schedules/conv2d.py");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(!text.empty());
  Compiled expected = run_with({}), got = run_with(read_schedule_rules(text, "conv2d.py"));
  CHECK(expected.report.empty());
  CHECK(got.report.find("rule 'tile_conv2d' is applied to 'fused_conv2d_add") != std::string::npos);
  CHECK(same_contents(expected.result, got.result));
}

TEST_CASE("convolutions over channel blocks", "[schedule]") {
  const std::vector<Convolution> kCases = {{2, 32, 9, 17, 32, {3, 3}, 1, 1},
                                           {1, 32, 7, 7, 64, {3, 3}, 1, 1},           // the last line of tiles is cut
                                           {1, 48, 8, 30, 48, {3, 3}, 2, 1},          // three vectors, stride
                                           {1, 24, 10, 11, 40, {1, 1}},               // padded blocks on both sides
                                           {1, 32, 9, 9, 32, {1, 1}, 2},              // pixels copied together
                                           {1, 3, 20, 19, 32, {7, 7}, 2, 3},          // a picture
                                           {2, 24, 9, 12, 24, {3, 3}, 1, 1, 1, 24},   // depthwise, padded
                                           {1, 64, 15, 15, 64, {3, 3}, 2, 1, 1, 64},  // depthwise, stride
                                           {1, 16, 12, 33, 16, {3, 5}, 1, 2, 2},      // dilation; one vector
                                           {1, 32, 2, 2, 512, {3, 3}, 1, 1},          // hardly an image
                                           {1, 128, 5, 5, 256, {3, 3}, 1, 1},  // weights that the cache does not hold
                                           {2, 32, 9, 17, 32, {3, 3}, 1, 1, 1, 1, true},
                                           {1, 32, 9, 17, 32, {1, 1}, 2, 0, 1, 1, true},
                                           {1, 3, 9, 31, 16, {3, 3}, 2, 1, 1, 1, true},
                                           {1, 32, 9, 30, 32, {3, 3}, 1, 1, 1, 32, true},
                                           {3, 32, 1, 1, 32, {3, 3}, 1, 1, 1, 1, true},
                                           {2, 128, 5, 6, 256, {3, 3}, 1, 1, 1, 1, true}};
  for (const Convolution& c : kCases) {
    // Blocks of 4, of 8, and of 16 where this processor has such vectors.
    for (const char* target : {"x86-64", "x86-64-v3", "host"}) check_in_blocks(c, target);
  }
}

TEST_CASE("lines of pixels and parts of channels in any order", "[schedule]") {
  const Convolution kDense{2, 64, 6, 10, 40, {1, 1}}, kStrided{1, 64, 11, 20, 64, {1, 1}, 2},
      kWide{1, 64, 7, 9, 32, {3, 3}, 1, 1};
  for (const char* shared : {"both", "filters", "rows"}) {
    for (int64_t parts : {1, 2, 4}) {
      for (int64_t line : {1, 4, 6, 15, 60})
        check_in_blocks(kDense, "x86-64-v3", {{"line", line}, {"shared", shared}, {"reduction_parts", parts}});
      check_in_blocks(kStrided, "x86-64-v3", {{"line", int64_t{12}}, {"shared", shared}, {"reduction_parts", parts}});
      check_in_blocks(kWide, "x86-64-v3", {{"shared", shared}, {"reduction_parts", parts}});
    }
  }
}

TEST_CASE("products with constant columns", "[schedule]") {
  struct Product {
    int64_t rows, depth, columns;
    bool symbolic = false;
  };
  const std::vector<Product> kCases = {{1, 96, 128},         // several panels side by side
                                       {7, 64, 96},          // one tile
                                       {65, 64, 32},         // tiles cut
                                       {400, 64, 64},        // row blocks
                                       {67, 4096, 96},       // the reduction in parts
                                       {400, 4096, 64},      // in row blocks, too
                                       {1, 4096, 64, true},  // few rows apart
                                       {9, 64, 128, true},  {130, 64, 160, true}, {67, 4096, 64, true},
                                       {1, 96, 250},  // the last panel is padded
                                       {7, 64, 250},        {40, 2048, 251},      {33, 64, 1001, true}};
  for (const Product& p : kCases) {
    for (bool bias : {false, true}) {
      CAPTURE(p.rows, p.depth, p.columns, p.symbolic, bias);
      Tensor x = small_numbers({p.rows, p.depth}, 5), w = small_numbers({p.depth, p.columns}, 3),
             b = small_numbers({p.columns}, 2);
      std::string rows = p.symbolic ? "\"m\"" : std::to_string(p.rows);
      IRModule module = parse_graph(fmt::format(R"(
@R.function
def main(x: R.Tensor(({0}, {1}), "float32"), w: R.Tensor(({1}, {2}), "float32"), b: R.Tensor(({2},), "float32")):
    with R.dataflow():
        y = R.matmul(x, w)
        z = {3}
        R.output(z)
    return z
)",
                                                rows, p.depth, p.columns, bias ? "R.nn.relu(R.add(y, b))" : "y")
                                        .c_str());
      for (const char* name : {"x86-64", "x86-64-v3", "host"}) {
        CAPTURE(name);
        Target target = codegen::parse_target(name);
        CHECK_NOTHROW(schedule_by_rule(with_constants(module, {w, b}), *find_builtin_rule("contraction"), target));
        CompileSettings settings;
        settings.target = name;
        Tensor result = Session(compile(with_constants(module, {w, b}), settings).load()).run({x})[0];
        REQUIRE(result.shape() == std::vector<int64_t>{p.rows, p.columns});
        int64_t wrong = 0;
        for (int64_t i = 0; i < result.size(); ++i) {
          double sum = bias ? b.as_double(i % p.columns) : 0;
          for (int64_t k = 0; k < p.depth; ++k)
            sum += x.data<float>()[i / p.columns * p.depth + k] * w.data<float>()[k * p.columns + i % p.columns];
          wrong += result.as_double(i) != (bias ? std::max(sum, 0.0) : sum);  // sums of small integers
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("rows of a product are the long dims before its columns", "[schedule]") {
  for (const char* dims : {"37, 1", "1, 37", "37, 3", "3, 37", "\"m\", 1"}) {
    CAPTURE(dims);
    IRModule module = parse_graph(fmt::format(R"(
@R.function
def main(x: R.Tensor(({0}, 64), "float32"), w: R.Tensor((64, 96), "float32"), b: R.Tensor((96,), "float32")):
    with R.dataflow():
        z = R.nn.relu(R.add(R.matmul(x, w), b))
        R.output(z)
    return z
)",
                                              dims)
                                      .c_str());
    const std::string given = dims;
    const int64_t rows = given.ends_with("3") || given.starts_with("3,") ? 3 * 37 : 37;
    std::vector<int64_t> shape = {37, rows / 37, 64};
    if (given.ends_with("37")) std::swap(shape[0], shape[1]);
    Tensor x = small_numbers(shape, 5), w = small_numbers({64, 96}, 3), b = small_numbers({96}, 2);
    Tensor result = Session(compile(with_constants(module, {w, b}), {}).load()).run({x})[0];
    int64_t wrong = 0;
    for (int64_t i = 0; i < result.size(); ++i) {
      double sum = b.as_double(i % 96);
      for (int64_t k = 0; k < 64; ++k) sum += x.as_double(i / 96 * 64 + k) * w.as_double(k * 96 + i % 96);
      wrong += result.as_double(i) != std::max(sum, 0.0);  // sums of small integers
    }
    CHECK(wrong == 0);
    CHECK(result.size() == rows * 96);
  }
}

TEST_CASE("products with a computed operand copy it into panels", "[schedule]") {
  for (bool turned : {false, true}) {
    CAPTURE(turned);
    const int64_t rows = 70, depth = 45, columns = 96;
    std::string weight = turned ? "96, 45" : "45, 96", right = turned ? "R.permute_dims(w, axes=[1, 0])" : "w";
    IRModule module = parse_graph(fmt::format(R"(
@R.function
def main(x: R.Tensor((70, 45), "float32"), w: R.Tensor(({}), "float32"), b: R.Tensor((96,), "float32")):
    with R.dataflow():
        y = R.matmul(x, {})
        z = R.nn.relu(R.add(y, b))
        R.output(z)
    return z
)",
                                              weight, right)
                                      .c_str());
    Tensor x = small_numbers({rows, depth}, 5), b = small_numbers({columns}, 2);
    Tensor w = small_numbers(turned ? std::vector<int64_t>{columns, depth} : std::vector<int64_t>{depth, columns}, 3);
    for (const char* name : {"x86-64", "x86-64-v3", "host"}) {
      CAPTURE(name);
      Target target = codegen::parse_target(name);
      if (!turned) CHECK_NOTHROW(schedule_by_rule(module, *find_builtin_rule("contraction"), target));
      CompileSettings settings;
      settings.target = name;
      Tensor result = Session(compile(module, settings).load()).run({x, w, b})[0];
      int64_t wrong = 0;
      for (int64_t i = 0; i < result.size(); ++i) {
        double sum = b.as_double(i % columns);
        for (int64_t k = 0; k < depth; ++k)
          sum += x.as_double(i / columns * depth + k) *
                 w.as_double(turned ? i % columns * depth + k : k * columns + i % columns);
        wrong += result.as_double(i) != std::max(sum, 0.0);  // sums of small integers
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a rule in C++, and one that does not fit", "[schedule]") {
  ScheduleRule parallel{"parallel", "", "nn.conv2d", {}, [](Schedule& sch, const Target&, Decisions&) {
                          BlockRV conv = sch.apply(GetBlock{"nn.conv2d"});
                          sch.apply(MergeEpilogue{conv});
                          sch.apply(Parallel{sch.apply(GetLoops{conv})[1]});
                        }};
  ScheduleRule wrong{
      "wrong", "", "nn.conv2d", {}, [](Schedule& sch, const Target&, Decisions&) {
        sch.apply(Parallel{sch.apply(GetLoops{sch.apply(GetBlock{"nn.conv2d"})})[5]});  // the input channels
      }};
  Compiled expected = run_with({}), got = run_with({wrong, parallel});
  CHECK(got.report.find("rule 'wrong' does not fit") != std::string::npos);
  CHECK(got.report.find("which is not spatial") != std::string::npos);
  CHECK(got.report.find("rule 'parallel' is applied") != std::string::npos);
  CHECK(same_contents(expected.result, got.result));
}

TEST_CASE("an intrinsic that nothing declares is an error in a rule", "[schedule]") {
  std::string text = "@S.rule(\"nn.conv2d\")\ndef tile(sch):\n    sch.tensorize(\"nn.conv2d\", \"fma_8_f32_avx\")\n";
  CHECK_THROWS_WITH(run_with(read_schedule_rules(text, "rules.py")),
                    Catch::Contains("rules.py:3:5: error: tensorize: there is no intrinsic 'fma_8_f32_avx'; "
                                    "did you mean 'fma_8_f32_avx2'?"));
}

TEST_CASE("a wrong value of an annotation is an error in a rule", "[schedule]") {
  auto rule = [](const std::string& step) {
    return read_schedule_rules("@S.rule(\"nn.conv2d\")\ndef tile(sch):\n    " + step + "\n", "tile.py");
  };
  CHECK_THROWS_WITH(run_with(rule("sch.annotate(sch.get_block(\"nn.conv2d\"), \"op\", 3)")),
                    Catch::Contains("tile.py:3:5: error: annotate: op takes a string, got 3"));
  CHECK_THROWS_WITH(run_with(rule("sch.annotate(sch.get_loops(\"nn.conv2d\")[0], \"keep_whole\", 3)")),
                    Catch::Contains("annotate: keep_whole takes True or False, got 3"));
}

TEST_CASE("a rule may not change what callers hand over", "[schedule]") {
  ScheduleRule rule{"turned", "", "nn.conv2d", {}, [](Schedule& sch, const Target&, Decisions&) {
                      BlockRV conv = sch.apply(GetBlock{"nn.conv2d"});
                      for (const BlockRV& padding : sch.apply(GetProducers{conv})) sch.apply(ComputeInline{padding});
                      run_schedule_text(sch, R"(b = sch.get_block("nn.conv2d")
sch.transform_layout(b, ("read", 0), lambda n, c, y, x: (c, n, y, x)))",
                                        "turned.py");
                    }};
  Compiled expected = run_with({}), got = run_with({rule});
  INFO(got.report);
  CHECK(got.report.find("changes the shape or layout of") != std::string::npos);
  CHECK(same_contents(expected.result, got.result));
}

TEST_CASE("a schedule for a function that is not there", "[schedule]") {
  ScheduleRule rule{"mine", "no_such", "", {}, [](Schedule&, const Target&, Decisions&) {}};
  CHECK_THROWS_AS(run_with({rule}), CompileError);
}

TEST_CASE("built-in rules say why they do not fit", "[schedule]") {
  IRModule module = parse_graph(R"(
@R.function
def main(x: R.Tensor((4, 5), "float32")):
    with R.dataflow():
        y = R.exp(x)
        R.output(y)
    return y
)");
  PassContext context(op_table(), {});
  module = run_pass(*find_pass("legalize"), std::move(module), context);
  for (const auto& [name, function] : module.functions) {
    auto program = try_cast<PrimFunc>(function);
    if (!program) continue;
    for (const ScheduleRule& rule : builtin_schedule_rules()) {
      CAPTURE(rule.name);
      Decisions none(rule.name, rule.decisions);
      REQUIRE(rule.fits);
      CHECK(rule.fits(*program, context.target, none).has_value() == (rule.name != "default"));
    }
  }
}

TEST_CASE("no figure of a target stops the rules", "[schedule]") {
  Tensor w = small_numbers({4096, 96}, 3), k = small_numbers({32, 32, 3, 3}, 3);
  IRModule product = with_constants(parse_graph(R"(
@R.function
def main(x: R.Tensor((67, 4096), "float32"), w: R.Tensor((4096, 96), "float32")):
    with R.dataflow():
        y = R.nn.softmax(R.matmul(x, w))
        R.output(y)
    return y
)"),
                                    {w});
  IRModule image = with_constants(parse_graph(R"(
@R.function
def main(x: R.Tensor((1, 32, "h", 20), "float32"), k: R.Tensor((32, 32, 3, 3), "float32")):
    with R.dataflow():
        y = R.nn.conv2d(x, k, padding=(1, 1))
        R.output(y)
    return y
)"),
                                  {k});
  for (const FigureRow& row : target_figures()) {
    for (double value : {1.0, 1e15}) {
      CAPTURE(row.name, value);
      PassContext context(op_table(), codegen::parse_target("x86-64-v3"));
      context.reuse = false;
      if (!row.is_capability) set_figure(row, context.target, value, "test");
      for (const IRModule& module : {product, image}) {
        for (bool winograd : {false, true}) {
          context.winograd_error = winograd ? kWinogradError : 0;
          CHECK_NOTHROW(run_passes(module, parse_passes("simplify,kernels", context), context, {}));
        }
      }
    }
  }
}

}  // namespace relaxc::test
