// Convolutions by Winograd's way: against plain loops in double, as the program that is built, scheduled, lowered and
// compiled; the error that passes/winograd.h states.
#include <cmath>

#include "tests/differential/differential.h"
#include "tests/interpret_module.h"
#include "tir/lower/lower.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_loops.h"
#include "tir/rules/builtin_rules.h"
#include "tir/schedule/schedule.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

struct ImageSizes {
  int64_t images, height, width;
};
struct Problem {
  int64_t channels, filters;
  std::vector<int64_t> padding = {1, 1, 1, 1};
  std::string dims = "n,h,w";  // of the images; names are symbolic
  bool epilogue = true;        // bias, residual, relu
  bool constant_weight = true;
};

Expr build(Graph& g, const Problem& p, const Tensor& weight, const Tensor& bias) {
  auto image = [&](int64_t channels) {
    std::string dims = p.dims;
    return g.input(dims.insert(dims.find(','), "," + std::to_string(channels)));
  };
  Expr x = image(p.channels);
  Expr w = p.constant_weight ? Expr(constant(weight)) : g.input(fmt::format("{},{},3,3", p.filters, p.channels));
  Expr y = g.op("nn.conv2d", {x, w}, {{"padding", AttrValue(p.padding)}});
  if (!p.epilogue) return y;
  Expr b = g.op("reshape", {constant(bias), g.shape("1," + std::to_string(p.filters) + ",1,1")});
  return g.op("nn.relu", {g.op("add", {g.op("add", {y, b}), image(p.filters)})});
}

Tensor random(std::vector<int64_t> shape, uint32_t seed) {
  Tensor result = Tensor::empty(std::move(shape), kFloat32);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  for (int64_t i = 0; i < result.size(); ++i) result.data<float>()[i] = values(generator);
  return result;
}

// In double, then rounded.
Tensor reference(const Problem& p, const std::vector<Tensor>& inputs, const Tensor& weight, const Tensor& bias) {
  const std::vector<int64_t>& in = inputs[0].shape();
  int64_t height = in[2] + p.padding[0] + p.padding[2] - 2, width = in[3] + p.padding[1] + p.padding[3] - 2;
  Tensor result = Tensor::empty({in[0], p.filters, height, width}, kFloat32);
  const float *data = inputs[0].data<float>(), *filter = weight.data<float>();
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t x = i % width, y = i / width % height, f = i / width / height % p.filters,
            n = i / width / height / p.filters;
    double sum = 0;
    for (int64_t k = 0; k < p.channels * 9; ++k) {
      int64_t sy = y + k / 3 % 3 - p.padding[0], sx = x + k % 3 - p.padding[1];
      if (sy < 0 || sy >= in[2] || sx < 0 || sx >= in[3]) continue;
      sum += double{data[((n * in[1] + k / 9) * in[2] + sy) * in[3] + sx]} * filter[f * p.channels * 9 + k];
    }
    if (p.epilogue) sum = std::max(0.0, sum + bias.data<float>()[f] + inputs.back().data<float>()[i]);
    result.data<float>()[i] = static_cast<float>(sum);
  }
  return result;
}

// The largest difference as a part of the largest value.
double error_of(const Tensor& got, const Tensor& want) {
  REQUIRE(got.shape() == want.shape());
  double error = 0, largest = 1e-30;
  for (int64_t i = 0; i < want.size(); ++i) {
    double difference = std::fabs(got.as_double(i) - want.as_double(i));
    error = std::isnan(difference) ? 1e30 : std::max(error, difference);
    largest = std::max(largest, std::fabs(want.as_double(i)));
  }
  return error / largest;
}

std::vector<PrimFuncRef> winograd_programs(const IRModule& module) {
  std::vector<PrimFuncRef> result;
  for (const auto& [name, function] : module.functions) {
    if (name.find("winograd") != std::string::npos) result.push_back(cast<PrimFunc>(function));
  }
  return result;
}

constexpr double kErrorBound = 4e-6;

void check(const Problem& p, const std::vector<ImageSizes>& images, const std::string& target, bool interpret = true) {
  INFO(p.channels << " channels, " << p.filters << " filters, " << p.dims << ", " << target);
  Tensor weight = random({p.filters, p.channels, 3, 3}, 1), bias = random({p.filters}, 2);
  Graph graph({}, 1);
  IRModule module = graph.finish(build(graph, p, weight, bias));
  CompileSettings settings;
  settings.target = target;
  CompiledModule compiled = compile(module, settings);
  Program program = compiled.load();
  Session one(program, {.threads = 1}), two(program, {.threads = 2});
  settings.passes = "simplify,legalize,fuse,remove_dead_code";
  std::vector<PrimFuncRef> programs = winograd_programs(run_pipeline(module, settings));
  REQUIRE(programs.size() == 1);
  Schedule schedule(promote_indices(programs[0]));
  Decisions decisions("winograd", find_builtin_rule("winograd")->decisions);
  CHECK_NOTHROW(find_builtin_rule("winograd")->apply(schedule, compiled.target(), decisions));
  settings.passes = "simplify,kernels";
  IRModule scheduled = run_pipeline(module, settings);
  for (const ImageSizes& image : images) {
    INFO(image.images << " of " << image.height << " x " << image.width);
    // Not as a list: g++ 12 then warns of moves beyond it (array-bounds) where there are none.
    std::vector<Tensor> inputs;
    inputs.push_back(random({image.images, p.channels, image.height, image.width}, 3));
    int64_t height = image.height + p.padding[0] + p.padding[2] - 2;
    int64_t width = image.width + p.padding[1] + p.padding[3] - 2;
    if (!p.constant_weight) inputs.push_back(weight);
    if (p.epilogue) inputs.push_back(random({image.images, p.filters, height, width}, 4));
    Tensor expected = reference(p, inputs, weight, bias);
    Tensor result = one.run(inputs)[0];
    CHECK(error_of(result, expected) < kErrorBound);
    CHECK(same_contents(result, two.run(inputs)[0]));
    if (!interpret || image.images * image.height * image.width > 200) continue;
    InterpretOptions checked{.reverse_parallel_loops = true, .check_regions = true};
    CHECK(error_of(interpret_module(scheduled, inputs, "legalize", checked)[0], expected) < kErrorBound);
    CHECK(error_of(interpret_module(scheduled, inputs, "destination_passing,lower_kernels")[0], expected) <
          kErrorBound);
  }
}

}  // namespace

TEST_CASE("winograd: symbolic images", "[passes]") {
  std::vector<ImageSizes> images = {{1, 7, 7}, {2, 9, 13}, {1, 1, 1}, {1, 3, 61}, {3, 14, 2}, {0, 5, 5}, {1, 30, 58}};
  check({32, 48}, images, "host");
  check({32, 32, {0, 1, 2, 1}}, {{2, 7, 9}, {1, 3, 2}}, "x86-64-v3");
  check({32, 16, {1, 1, 1, 1}, "2,h,22"}, {{2, 37, 22}, {2, 2, 22}}, "host");
  check({32, 32, {1, 1, 1, 1}, "n,18,w", false}, {{2, 18, 5}, {1, 18, 70}}, "x86-64-v2");
}

TEST_CASE("winograd: known images, any batch", "[passes]") {
  check({32, 32, {1, 1, 1, 1}, "n,14,14"}, {{1, 14, 14}, {3, 14, 14}, {0, 14, 14}}, "host");
  check({48, 32, {1, 1, 1, 1}, "n,7,7", false}, {{1, 7, 7}, {4, 7, 7}}, "x86-64-v3");
}

TEST_CASE("winograd: known sizes", "[passes]") {
  check({64, 32, {1, 1, 1, 1}, "1,56,56"}, {{1, 56, 56}}, "host");
  check({32, 64, {1, 1, 1, 1}, "2,28,28"}, {{2, 28, 28}}, "host");
  check({32, 32, {2, 0, 0, 2}, "1,13,11"}, {{1, 13, 11}}, "host");
  check({16, 32, {1, 1, 1, 1}, "1,9,286", false}, {{1, 9, 286}}, "host");  // long rows in parts
  check({32, 16, {1, 1, 1, 1}, "2,531,3", false}, {{2, 531, 3}}, "host");  // many short ones
  check({32, 32, {0, 0, 0, 0}, "2,11,14", false}, {{2, 11, 14}}, "x86-64-v2");
}

TEST_CASE("winograd: weights that only run time knows", "[passes]") {
  check({32, 48, {1, 1, 1, 1}, "n,h,w", true, false}, {{1, 7, 7}, {2, 9, 13}, {0, 5, 5}}, "host");
  check({64, 32, {1, 1, 1, 1}, "1,28,28", false, false}, {{1, 28, 28}}, "x86-64-v3");
}

TEST_CASE("winograd: the error of many channels", "[passes]") {
  for (int64_t channels : {64, 256, 320})
    check({channels, 64, {1, 1, 1, 1}, "1,12,12", false}, {{1, 12, 12}}, "host", false);
}

TEST_CASE("winograd: where it is used", "[passes]") {
  auto is_used = [&](int64_t channels, const std::string& image, int64_t stride, const CompileSettings& settings,
                     bool constant_weight = true) {
    Graph g({}, 1);
    Expr x = g.input(fmt::format("n,{},{}", channels, image));
    std::string dims = fmt::format("{},{},3,3", channels, channels);
    Expr weight = constant_weight ? g.weights(dims) : g.input(dims);
    IRModule module = g.finish(g.op("nn.conv2d", {x, weight}, {{"padding", 1}, {"strides", stride}}));
    CompileSettings passes = settings;
    passes.passes = "choose_layouts,pack_weights";
    return !winograd_programs(run_pipeline(module, passes)).empty();
  };
  CHECK(is_used(32, "h,w", 1, {}));
  CHECK(is_used(32, "7,7", 1, {}));
  CHECK_FALSE(is_used(32, "h,w", 2, {}));
  CHECK_FALSE(is_used(32, "5,5", 1, {}));   // patches that stand half outside
  CHECK_FALSE(is_used(256, "7,7", 1, {}));  // many weights for few patches
  CHECK(is_used(256, "14,14", 1, {}));
  CHECK(is_used(32, "h,w", 1, {}, false));
  CHECK_FALSE(is_used(32, "14,14", 1, {}, false));  // the transform of the weight takes longer than is saved
  CompileSettings direct, ruled;
  direct.winograd = false;
  CHECK_FALSE(is_used(32, "h,w", 1, direct));
  // It stands behind the user's schedules, and is reported as their decisions are.
  std::string decided;
  direct.decided = [&](const std::string& rule, const std::string&, const Decision& decision) {
    if (rule == "convolution_algorithm") decided = to_string(decision.value) + " for " + to_string(decision.formula);
  };
  CHECK_FALSE(is_used(32, "h,w", 1, direct));
  CHECK(decided == "\"direct\" for \"winograd\"");
  direct.schedules = {
      {.name = "convolution_algorithm", .uses = "convolution_algorithm", .given = {{"algorithm", "winograd"}}}};
  CHECK(is_used(32, "h,w", 1, direct));
  // A user's rule for convolutions is to see them.
  ruled.schedules = {{"mine", "", "nn.conv2d", {}, [](Schedule&, const Target&, Decisions&) {}}};
  CHECK_FALSE(is_used(32, "h,w", 1, ruled));
  // One that fits some of them leaves the others to the formula.
  ruled.schedules[0].apply = [](Schedule& sch, const Target&, Decisions&) {
    if (!as_int(cast<For>(sch.get(sch.apply(GetLoops{sch.apply(GetBlock{"nn.conv2d"})})[2]))->extent))
      fail_to_fit({}, "symbolic rows");
  };
  CHECK(is_used(32, "h,w", 1, ruled));
  CHECK_FALSE(is_used(32, "14,14", 1, ruled));
  // A decision of the user's counts more than rules and formulas.
  ruled.schedules.push_back(
      {.name = "convolution_algorithm", .uses = "convolution_algorithm", .given = {{"algorithm", "winograd"}}});
  CHECK(is_used(32, "14,14", 1, ruled));
  CHECK(is_used(256, "7,7", 1, ruled));
}

}  // namespace relaxc::test
