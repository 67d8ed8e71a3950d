// Rules for operators, applied to what fusion made of them.
#include <fstream>
#include <iterator>
#include <set>

#include "codegen/compile.h"
#include "codegen/target.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "passes/graph_decisions.h"
#include "passes/runner.h"
#include "support/diagnostic.h"
#include "tests/constants.h"
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
  Tensor x = numbers({2, 3, 9, 17}, 5), w = numbers({32, 3, 3, 3}, 3), b = numbers({1, 32, 1, 1}, 2);
  settings.target = "x86-64-v4";  // 16 channels in a block
  Session session(compile(with_constants(parse(kModule), {w, b}), settings).load());
  return {session.run({x, numbers({2, 32, 9, 17}, 11)})[0], report};
}

// The built-in rule schedules its operator's function in the module; throws why it does not.
void schedule_by_rule(IRModule module, const ScheduleRule& rule, const Target& target,
                      const std::vector<ScheduleRule>& uses = {}) {
  PassContext context(op_table(), target);
  context.winograd = false;
  context.schedules = uses;
  for (const Pass* pass : parse_passes("simplify,legalize,fuse,remove_dead_code,pack_weights"))
    module = run_pass(*pass, std::move(module), context);
  bool found = false;
  for (const auto& [name, function] : module.functions) {
    auto program = try_cast<PrimFunc>(function);
    if (!program) continue;
    std::vector<std::string> ops = operators_of(*program);
    if (std::find(ops.begin(), ops.end(), rule.op) == ops.end()) continue;
    found = true;
    RuleResult result = schedule_by_rule(rule, name, promote_indices(normalize_loops(*program)), target, false);
    if (!result.program) throw std::runtime_error(result.refusal);
  }
  if (!found) throw std::runtime_error("there is no " + rule.op);
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
    return parse(fmt::format(R"(
@R.function
def main(x: R.Tensor(({0}), "float32"), w: R.Tensor(({1}, {2}, {3}, {4}), "float32"), b: R.Tensor((1, {1}, 1, 1), "float32")):
    with R.dataflow():
        c = R.nn.conv2d(x, w, strides={5}, padding={6}, dilation={7}, groups={8})
        d = R.add(c, b)
        y = R.nn.relu(d)
        R.output(y)
    return y
)",
                             dims, filters, channels / groups, window[0], window[1], stride, padding, dilation, groups)
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
    CAPTURE(c.channels, c.height, c.width, c.filters, c.window, c.stride, c.groups, c.symbolic);
    Tensor x = numbers({c.batch, c.channels, c.height, c.width}, 5), b = numbers({1, c.filters, 1, 1}, 2);
    Tensor w = numbers({c.filters, c.channels / c.groups, c.window[0], c.window[1]}, 3);
    // Blocks of 4, of 8, and of 16 where this processor has such vectors.
    for (const char* target : {"x86-64", "x86-64-v3", "host"}) {
      CAPTURE(target);
      Target known = codegen::parse_target(target);
      // A depthwise convolution of a plain image stays plain by itself.
      std::vector<ScheduleRule> uses;
      if (c.groups > 1) uses.push_back({.uses = "image_layout", .given = {{"block", int64_t{known.vector_lanes(32)}}}});
      CHECK_NOTHROW(
          schedule_by_rule(with_constants(c.module(), {w, b}), *find_builtin_rule("convolution"), known, uses));
      CompileSettings settings;
      settings.schedules = uses;
      settings.target = target;
      settings.winograd = false;
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
                                       {9, 64, 128, true},  {130, 64, 160, true}, {67, 4096, 64, true}};
  for (const Product& p : kCases) {
    for (bool bias : {false, true}) {
      CAPTURE(p.rows, p.depth, p.columns, p.symbolic, bias);
      Tensor x = numbers({p.rows, p.depth}, 5), w = numbers({p.depth, p.columns}, 3), b = numbers({p.columns}, 2);
      std::string rows = p.symbolic ? "\"m\"" : std::to_string(p.rows);
      IRModule module = parse(fmt::format(R"(
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

TEST_CASE("products with a computed operand copy it into panels", "[schedule]") {
  for (bool turned : {false, true}) {
    CAPTURE(turned);
    const int64_t rows = 70, depth = 45, columns = 96;
    std::string weight = turned ? "96, 45" : "45, 96", right = turned ? "R.permute_dims(w, axes=[1, 0])" : "w";
    IRModule module = parse(fmt::format(R"(
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
    Tensor x = numbers({rows, depth}, 5), b = numbers({columns}, 2);
    Tensor w = numbers(turned ? std::vector<int64_t>{columns, depth} : std::vector<int64_t>{depth, columns}, 3);
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

namespace {

// The scheduled programs of a product of `rows` x 64 by 64 x 128 with constant columns, as text.
std::string product_with(const std::string& uses, const std::string& rows = "130") {
  IRModule module = parse(fmt::format(R"(
@R.function
def main(x: R.Tensor(({}, 64), "float32"), w: R.Tensor((64, 128), "float32")):
    with R.dataflow():
        y = R.matmul(x, w)
        R.output(y)
    return y
)",
                                      rows)
                              .c_str());
  CompileSettings settings;
  settings.target = "x86-64-v4";
  settings.passes = "simplify,kernels";
  settings.schedules = read_schedule_rules(uses, "uses.py");
  return print_module(run_pipeline(with_constants(module, {numbers({64, 128}, 3)}), settings));
}
std::string error_of(const std::string& uses) {
  try {
    product_with(uses);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a user takes decisions of a built-in rule", "[schedule]") {
  std::string by_formula = product_with("");
  CHECK(has(by_formula, "T.unroll(T.int64(6))"));  // rows
  std::string rows = product_with("S.use(\"contraction\", op=\"matmul\", rows=5, columns=64)");
  CHECK(has(rows, "T.unroll(T.int64(5))"));
  CHECK(!has(rows, "T.unroll(T.int64(6))"));
  CHECK(product_with("S.use(\"contraction\", function=\"matmul\", rows=6)") == by_formula);
  CHECK(product_with("S.use(\"constant_operand\", at=\"y\", panel=16)") != by_formula);
  // Versions of symbolic rows.
  std::string versions = product_with("S.use(\"contraction\", specialize=[3])", "\"m\"");
  CHECK(versions != product_with("", "\"m\""));
  CHECK(versions != product_with("S.use(\"contraction\", specialize=[])", "\"m\""));
  // A value that the formula would choose for the general program leaves versions to their formulas.
  CHECK(product_with("S.use(\"contraction\", columns=64)", "\"m\"") == product_with("", "\"m\""));
  CHECK(product_with("S.use(\"contraction\", columns=32)", "\"m\"") != product_with("", "\"m\""));
}

TEST_CASE("decisions that there are not", "[schedule]") {
  std::string rule = error_of("S.use(\"contractoin\", rows=6)");
  CHECK(has(rule, "uses.py:1:1: error: there is no rule 'contractoin'; there are: contraction, convolution"));
  std::string other = error_of("S.use(\"constant_operand\", at=\"other\", panel=16)");
  CHECK(has(other, "uses.py:1:1: error: no matmul is called 'other'; there are: y"));
  CHECK(has(error_of("S.use(\"image_layout\", at=\"y\", block=16)"), "no nn.conv2d is called 'y'; there are: none"));
  std::string name = error_of("S.use(\"contraction\", row=6)");
  CHECK(has(name, "rule 'contraction' has no decision 'row'; it has: copy_operand, columns, rows"));
  std::string value = error_of("S.use(\"contraction\", rows=100)");
  CHECK(has(value, "'rows' of 'matmul' cannot be 100; candidates: 1, 2, 3"));
  CHECK(has(value, "(the formula chooses 6)"));
  CHECK(has(value, "rule 'contraction': 'rows' of 'matmul' cannot be 100"));
  CHECK(has(error_of("S.use(\"contraction\", rows=\"six\")"), "cannot be \"six\""));
  CHECK(
      has(error_of("S.use(\"default\", decisions={\"y.row\": 6})"), "rule 'default' has no decision 'y.row'; it has"));
  CHECK(has(error_of("S.use(\"constant_operand\", panel=7)"), "'panel' of 'y' cannot be 7; candidates: 0, "));
  CHECK(has(error_of("S.use(\"constant_operand\", function=\"matmul\", panel=32)"), "is chosen with at="));
  CHECK(has(error_of("S.use(\"image_layout\", op=\"nonsense\", block=0)"),
            "rule 'image_layout' is chosen with at=, an operator's name in the graph; op= and function= are for tensor "
            "programs"));
  CHECK(has(error_of("S.us(\"contraction\", rows=6)"),
            "and calls of S.use(\"rule\", ...) and S.intrin(...); did you "
            "mean S.use?"));
  CHECK(!has(error_of("sch.fuse(i, j)"), "did you mean"));
  // Copying is a question about operands that are not in panels yet.
  CHECK(has(error_of("S.use(\"contraction\", copy_operand=True)"), "'matmul' has no decision 'copy_operand'; it has"));
}

TEST_CASE("a rule names the decision about its versions", "[schedule]") {
  VarRef n = make_dim("n");
  ComputeBuilder b;
  Buffer x = b.input("x", kFloat32, {n});
  Buffer y = b.compute("y", kFloat32, {n}, [&](Axes i) { return at(x, i) * at(x, i); });
  PrimFuncRef program = b.finish({y});
  ScheduleRule rule{
      .name = "counts", .apply = [](Schedule&, const Target&, Decisions&) {}, .decisions = {{"few", "", ""}}};
  rule.space = [&](const PrimFuncRef&, const Target&, Decisions& decisions) {
    decisions.list("few", {1, 2, 3}, {3});
    return Versions{n, "few"};
  };
  RuleResult result = schedule_by_rule(rule, "square", program, Target{}, false);
  REQUIRE(result.program);
  CHECK(has(print_function("square", *result.program), "if n == T.int64(3):"));
  rule.given = {{"few", AttrList{}}};
  CHECK(!has(print_function("square", *schedule_by_rule(rule, "square", program, Target{}, false).program), "if n =="));
}

TEST_CASE("a rule refuses values with which it does not fit", "[schedule]") {
  IRModule module = parse(R"(
@R.function
def main(x: R.Tensor((130, 64), "float32"), z: R.Tensor((64, 128), "float32")):
    with R.dataflow():
        y = R.matmul(x, z)
        R.output(y)
    return y
)");
  Target target = codegen::parse_target("x86-64-v4");
  ScheduleRule rule = *find_builtin_rule("contraction");
  CHECK_NOTHROW(schedule_by_rule(module, rule, target));
  rule.given = {{"copy_operand", false}};
  CHECK_THROWS_WITH(schedule_by_rule(module, rule, target), Catch::Contains("not worth copying into panels"));
  IRModule narrow = parse(R"(
@R.function
def main(x: R.Tensor((130, 64), "float32"), z: R.Tensor((64, 50), "float32")):
    with R.dataflow():
        y = R.matmul(x, z)
        R.output(y)
    return y
)");
  rule.given = {{"copy_operand", true}};
  CHECK_THROWS_WITH(schedule_by_rule(narrow, rule, target), Catch::Contains("its 50 columns are not a multiple of 32"));
}

TEST_CASE("a user decides whether the default rule inlines a block", "[schedule]") {
  ComputeBuilder b;
  Buffer x = b.input("x", kFloat32, {int_imm(1024)});
  auto exp_of = [&](Axes i) { return intrinsic("tir.exp", {at(x, i)}, kFloat32); };
  Buffer y = b.compute("y", kFloat32, {int_imm(1024)}, exp_of);
  Buffer z = b.compute("z", kFloat32, {int_imm(1024)}, [&](Axes i) { return at(y, i) * at(y, i); });
  PrimFuncRef program = b.finish({z});
  auto blocks_with = [&](Attrs given) {
    Schedule schedule(program);
    ScheduleRule rule = *find_builtin_rule("default");
    Decisions decisions(rule.name, rule.decisions, std::move(given), {}, "program");
    auto refusal = apply_rule(rule, schedule, Target{}, decisions);
    CHECK(!refusal);
    decisions.check_all_asked();
    int blocks = 0;
    walk(schedule.function()->body, [&](const Block& block) { blocks += block.name != "root"; });
    return blocks;
  };
  CHECK(blocks_with({}) == 2);  // the formula does not compute exp twice
  CHECK(blocks_with({{"y.inline", true}}) == 1);
  CHECK_THROWS_WITH(blocks_with({{"z.inline", true}}), Catch::Contains("has no decision 'z.inline'"));
}

TEST_CASE("a user decides how far ahead a panel that is read once is fetched", "[schedule]") {
  auto ahead = [](const std::string& rows) { return "S.use(\"contraction\", rows_ahead=" + rows + ")"; };
  CHECK(product_with(ahead("16"), "1") == product_with("", "1"));
  CHECK(product_with(ahead("32"), "1") != product_with("", "1"));
  CHECK_THROWS_WITH(product_with(ahead("17"), "1"),
                    Catch::Contains("cannot be 17; candidates: 4, 8, 16, 32, 64, 128, 256 (the formula chooses 16)"));
  CHECK(has(error_of(ahead("16")), "'matmul' has no decision 'rows_ahead'; it has"));  // 130 rows take several tiles
}

TEST_CASE("a user decides the vectors of blocks", "[schedule]") {
  ComputeBuilder b;
  Buffer x = b.input("x", kFloat32, {int_imm(24), int_imm(48)}), w = b.input("w", kFloat32, {int_imm(48), int_imm(64)});
  Buffer y = b.reduce("y", kFloat32, {int_imm(24), int_imm(64)}, {int_imm(48)}, zero(kFloat32), combine_sum,
                      [&](Axes i, Axes r) { return load(x, {i[0], r[0]}) * load(w, {r[0], i[1]}); });
  Buffer z = b.compute("z", kFloat32, {int_imm(64), int_imm(24)},
                       [&](Axes i) { return intrinsic("tir.exp", {load(y, {i[1], i[0]})}, kFloat32); });
  Buffer t = b.compute("t", kFloat32, {int_imm(24), int_imm(48)},
                       [&](Axes i) { return intrinsic("tir.exp", {at(x, i)}, kFloat32); });
  PrimFuncRef program = b.finish({z, t});
  // The extents of the loops of that kind.
  auto loops_with = [&](Attrs given, ForKind kind) {
    Schedule schedule(program);
    ScheduleRule rule = *find_builtin_rule("default");
    Decisions decisions(rule.name, rule.decisions, std::move(given), {}, "program");
    auto refusal = apply_rule(rule, schedule, Target{}, decisions);
    CHECK(!refusal);
    decisions.check_all_asked();
    std::set<int64_t> extents;
    walk(schedule.function()->body, [&](const For& loop) {
      if (loop.kind == kind) extents.insert(as_int(loop.extent).value_or(0));
    });
    return extents;
  };
  using Extents = std::set<int64_t>;
  CHECK(loops_with({}, ForKind::kVectorized) == Extents{4});
  CHECK(loops_with({{"t.lanes", 2}}, ForKind::kVectorized) == Extents{2, 4});
  CHECK(!loops_with({}, ForKind::kUnrolled).contains(3));
  CHECK(loops_with({{"y.vectors", 3}}, ForKind::kUnrolled).contains(3));
  CHECK_THROWS_WITH(loops_with({{"t.lanes", 3}}, ForKind::kVectorized),
                    Catch::Contains("'t.lanes' of 'program' cannot be 3; candidates: 1, 2, 4 (the formula chooses 4)"));
  CHECK_THROWS_WITH(loops_with({{"y.vectors", 5}}, ForKind::kVectorized),
                    Catch::Contains("cannot be 5; candidates: 1, 2, 3, 4 (the formula chooses 2)"));
}

TEST_CASE("a row of Winograd's patches has equal parts", "[schedule]") {
  Convolution c{1, 32, 56, 56, 32, {3, 3}, 1, 1};  // 14 patches in a row
  CompileSettings settings;
  settings.target = "x86-64-v4";
  settings.passes = "simplify,kernels";
  auto program_with = [&](const std::string& parts) {
    settings.schedules = read_schedule_rules("S.use(\"winograd\", row_parts=" + parts + ")", "uses.py");
    IRModule module = with_constants(c.module(), {numbers({32, 32, 3, 3}, 3), numbers({1, 32, 1, 1}, 2)});
    return print_module(run_pipeline(module, settings));
  };
  CHECK(program_with("1") != program_with("2"));
  CHECK_THROWS_WITH(program_with("3"), Catch::Contains("cannot be 3; candidates: 1, 2, 7, 14 (the formula chooses 1)"));
}

TEST_CASE("built-in rules say why they do not fit", "[schedule]") {
  IRModule module = parse(R"(
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
  Tensor w = numbers({4096, 96}, 3), k = numbers({32, 32, 3, 3}, 3);
  IRModule product = with_constants(parse(R"(
@R.function
def main(x: R.Tensor((67, 4096), "float32"), w: R.Tensor((4096, 96), "float32")):
    with R.dataflow():
        y = R.nn.softmax(R.matmul(x, w))
        R.output(y)
    return y
)"),
                                    {w});
  IRModule image = with_constants(parse(R"(
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
          context.winograd = winograd;
          CHECK_NOTHROW(run_passes(module, parse_passes("simplify,kernels", context), context, {}));
        }
      }
    }
  }
}

}  // namespace relaxc::test
