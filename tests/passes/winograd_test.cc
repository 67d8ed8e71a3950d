// Convolutions by Winograd's way, with tiles of each size: against plain loops in double, as the program that is built,
// scheduled, lowered and compiled; the errors that passes/winograd_transforms.h derives; the choice of a tile.
#include <cmath>

#include "codegen/target.h"
#include "ir/text/parser.h"
#include "passes/winograd.h"
#include "passes/winograd_transforms.h"
#include "tests/constants.h"
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
  int64_t tile = 4;
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

// Returns settings by which convolutions have tiles of so many results, or, for nullopt, are direct.
CompileSettings with_tile(std::optional<int64_t> tile, const std::string& target = "host") {
  CompileSettings settings;
  settings.target = target;
  ScheduleRule use{.name = "convolution_algorithm", .uses = "convolution_algorithm"};
  use.given = tile ? Attrs{{"algorithm", "winograd"}, {"tile", *tile}} : Attrs{{"algorithm", "direct"}};
  settings.schedules = {use};
  // Direct sums add one product after the other.
  if (!tile) settings.schedules.push_back({.uses = "convolution", .given = {{"reduction_parts", int64_t{1}}}});
  return settings;
}

// The largest error for up to 320 channels, as a part of the largest result.
double error_bound(int64_t tile) { return tile == 6 ? 3e-5 : tile == 4 ? 4e-6 : 1.5e-6; }

void check(const Problem& p, const std::vector<ImageSizes>& images, const std::string& target, bool interpret = true) {
  INFO(p.channels << " channels, " << p.filters << " filters, " << p.dims << ", " << target << ", tile " << p.tile);
  const double bound = error_bound(p.tile);
  Tensor weight = random({p.filters, p.channels, 3, 3}, 1), bias = random({p.filters}, 2);
  Graph graph({}, 1);
  IRModule module = graph.finish(build(graph, p, weight, bias));
  CompileSettings settings = with_tile(p.tile, target);
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
    CHECK(error_of(result, expected) < bound);
    CHECK(same_contents(result, two.run(inputs)[0]));
    if (!interpret || image.images * image.height * image.width > 200) continue;
    InterpretOptions checked{.reverse_parallel_loops = true, .check_regions = true};
    CHECK(error_of(interpret_module(scheduled, inputs, "legalize", checked)[0], expected) < bound);
    CHECK(error_of(interpret_module(scheduled, inputs, "destination_passing,lower_kernels")[0], expected) < bound);
  }
}

}  // namespace

TEST_CASE("winograd: symbolic images", "[passes]") {
  const std::vector<ImageSizes> images = {{1, 7, 7},  {2, 9, 13}, {1, 1, 1},  {1, 3, 61},
                                          {3, 14, 2}, {0, 5, 5},  {1, 30, 58}};
  check({.channels = 32, .filters = 48}, images, "host");
  check({.channels = 32, .filters = 32, .padding = {0, 1, 2, 1}}, {{2, 7, 9}, {1, 3, 2}}, "x86-64-v3");
  for (int64_t tile : {2, 6}) {
    check({.channels = 32, .filters = 32, .padding = {0, 1, 2, 1}, .tile = tile}, {{2, 7, 9}, {1, 3, 2}}, "x86-64-v3");
    check({.channels = 32, .filters = 48, .tile = tile}, images, "host", false);
  }
  check({.channels = 32, .filters = 16, .dims = "2,h,22"}, {{2, 37, 22}, {2, 2, 22}}, "host");
  check({.channels = 32, .filters = 32, .dims = "n,18,w", .epilogue = false}, {{2, 18, 5}, {1, 18, 70}}, "x86-64-v2");
}

TEST_CASE("winograd: known images, any batch", "[passes]") {
  for (int64_t tile : {2, 4, 6}) {
    check({.channels = 32, .filters = 32, .dims = "n,14,14", .tile = tile}, {{1, 14, 14}, {3, 14, 14}, {0, 14, 14}},
          "host", tile == 4);
    check({.channels = 48, .filters = 32, .dims = "n,7,7", .epilogue = false, .tile = tile}, {{1, 7, 7}, {4, 7, 7}},
          "x86-64-v3");
  }
}

TEST_CASE("winograd: known sizes", "[passes]") {
  for (int64_t tile : {2, 4, 6}) {
    check({.channels = 64, .filters = 32, .dims = "1,56,56", .tile = tile}, {{1, 56, 56}}, "host");
    check({.channels = 32, .filters = 32, .padding = {2, 0, 0, 2}, .dims = "1,13,11", .tile = tile}, {{1, 13, 11}},
          "host");
    check({.channels = 32, .filters = 32, .padding = {0, 0, 0, 0}, .dims = "2,11,14", .epilogue = false, .tile = tile},
          {{2, 11, 14}}, "x86-64-v2");
    check({.channels = 16, .filters = 32, .dims = "1,9,286", .epilogue = false, .tile = tile}, {{1, 9, 286}},
          "host");  // long rows in parts
  }
  check({.channels = 32, .filters = 64, .dims = "2,28,28"}, {{2, 28, 28}}, "host");
  check({.channels = 32, .filters = 16, .dims = "2,531,3", .epilogue = false}, {{2, 531, 3}}, "host");  // short rows
}

TEST_CASE("winograd: weights that only run time knows", "[passes]") {
  for (int64_t tile : {2, 4, 6})
    check({.channels = 32, .filters = 48, .dims = "n,h,w", .constant_weight = false, .tile = tile},
          {{1, 7, 7}, {2, 9, 13}, {0, 5, 5}}, "host", tile == 4);
  check({.channels = 64, .filters = 32, .dims = "1,28,28", .epilogue = false, .constant_weight = false}, {{1, 28, 28}},
        "x86-64-v3");
}

// Bytes as large as they may be: patches and weights, 4 times as large, still are words.
TEST_CASE("winograd: sums of bytes are exact", "[passes]") {
  struct Case {
    const char *data, *dims;
    int64_t channels, filters;
    std::vector<int64_t> image, padding;
  };
  const auto [dtype, dims, channels, filters, image, padding] =
      GENERATE(Case{"uint8", "2, 64, 14, 14", 64, 64, {2, 14, 14}, {1, 1, 1, 1}},
               Case{"int8", "1, 32, 23, 17", 32, 48, {1, 23, 17}, {0, 1, 2, 1}},
               Case{"uint8", R"("n", 32, "h", "w")", 32, 64, {2, 15, 18}, {1, 1, 1, 1}});
  CAPTURE(dtype, dims);
  Diagnostics diagnostics;
  const IRModule parsed = parse_module(fmt::format(R"(
@R.function
def main(x: R.Tensor(({}), "{}"), w: R.Tensor(({}, {}, 3, 3), "int8")):
    with R.dataflow():
        y = R.nn.conv2d(x, w, padding=[{}], out_dtype="int32")
        R.output(y)
    return y
)",
                                                   dims, dtype, filters, channels, fmt::join(padding, ", ")),
                                       "bytes.py", op_table(), diagnostics);
  REQUIRE(diagnostics.all().empty());
  Tensor data = Tensor::empty({image[0], channels, image[1], image[2]}, *parse_dtype(dtype)),
         weight = Tensor::empty({filters, channels, 3, 3}, DType::int_(8));
  const int64_t least = data.dtype().is_uint() ? 0 : -128, most = least + 255;
  // The largest sums, patches of the largest differences, and all bytes.
  const int kind = GENERATE(0, 1, 2);
  for (int64_t i = 0; i < data.size(); ++i)
    data.set_int(i, kind == 0 ? most : kind == 1 ? (i % 3 == 0 ? most : least) : least + i * 37 % 256);
  for (int64_t i = 0; i < weight.size(); ++i)
    weight.set_int(i, i / 9 % filters == 1 ? 127
                      : kind == 0          ? -128
                      : kind == 1          ? (i % 2 == 0 ? -128 : 127)
                                           : i * 91 % 256 - 128);
  const IRModule module = with_constants(parsed, {weight});
  for (const char* target : {"x86-64-v2", "x86-64-v3", "cpu=skylake-avx512"}) {
    CAPTURE(target);
    CompileSettings settings;
    settings.target = target;
    if (std::string_view(target).starts_with("cpu=")) {
      settings.passes = "simplify,kernels";
      settings.interpret = InterpretOptions{};
    }
    const Tensor result = Session(compile(module, settings).load()).run({data}).at(0);
    settings.passes = "simplify,kernels";
    CHECK(winograd_programs(run_pipeline(module, settings)).size() == 1);
    const int64_t height = image[1] + padding[0] + padding[2] - 2, width = image[2] + padding[1] + padding[3] - 2;
    REQUIRE(result.shape() == std::vector<int64_t>{image[0], filters, height, width});
    int64_t wrong = 0;
    for (int64_t i = 0; i < result.size(); ++i) {
      const int64_t x = i % width, y = i / width % height, f = i / width / height % filters,
                    n = i / width / height / filters;
      int64_t sum = 0;
      for (int64_t k = 0; k < channels * 9; ++k) {
        const int64_t sy = y + k / 3 % 3 - padding[0], sx = x + k % 3 - padding[1];
        if (sy < 0 || sy >= image[1] || sx < 0 || sx >= image[2]) continue;
        sum +=
            data.as_int(((n * channels + k / 9) * image[1] + sy) * image[2] + sx) * weight.as_int(f * channels * 9 + k);
      }
      wrong += result.as_int(i) != sum;
    }
    CHECK(wrong == 0);
  }
  // VNNI sums products of bytes exactly.
  CompileSettings vnni;
  vnni.target = "cpu=alderlake";
  vnni.passes = "simplify,kernels";
  CHECK(winograd_programs(run_pipeline(module, vnni)).empty());
}

TEST_CASE("winograd: the error of many channels", "[passes]") {
  for (int64_t tile : {2, 4, 6}) {
    for (int64_t channels : {64, 256, 320})
      check({.channels = channels, .filters = 64, .dims = "1,12,12", .epilogue = false, .tile = tile}, {{1, 12, 12}},
            "host", false);
  }
}

TEST_CASE("winograd: the transforms compute a convolution", "[passes]") {
  const std::vector<double> pixels = {0.25, -3, 2, 7, 1, -5, 4, 0.5}, window = {3, -1, 0.75};
  for (int64_t tile : winograd::MinimalFiltering::tiles()) {
    INFO(tile);
    const winograd::MinimalFiltering filtering(tile);
    std::vector<double> patch = filtering.of_patch(std::vector(pixels.begin(), pixels.begin() + tile + 2));
    REQUIRE(static_cast<int64_t>(patch.size()) == filtering.patch());
    const auto matrix = filtering.of_window();
    for (size_t i = 0; i < patch.size(); ++i)
      patch[i] *= matrix[i][0] * window[0] + matrix[i][1] * window[1] + matrix[i][2] * window[2];
    const std::vector<double> results = filtering.of_products(patch);
    REQUIRE(static_cast<int64_t>(results.size()) == tile);
    for (size_t i = 0; i < results.size(); ++i) {
      const double expected = pixels[i] * window[0] + pixels[i + 1] * window[1] + pixels[i + 2] * window[2];
      CHECK(std::fabs(results[i] - expected) < 1e-12);
    }
  }
}

// Returns the root of the mean squared error of a convolution without an epilogue.
double mean_error(int64_t channels, std::optional<int64_t> tile) {
  const Problem p{.channels = channels, .filters = 32, .dims = "1,24,24", .epilogue = false};
  Tensor weight = random({p.filters, channels, 3, 3}, 1), bias = random({p.filters}, 2);
  Graph graph({}, 1);
  Program program = compile(graph.finish(build(graph, p, weight, bias)), with_tile(tile)).load();
  std::vector<Tensor> inputs;
  inputs.push_back(random({1, channels, 24, 24}, 3));
  const Tensor got = Session(program, {.threads = 1}).run(inputs)[0], want = reference(p, inputs, weight, bias);
  double sum = 0;
  for (int64_t i = 0; i < want.size(); ++i) sum += std::pow(got.as_double(i) - want.as_double(i), 2);
  return std::sqrt(sum / static_cast<double>(want.size()));
}

// What the option --winograd-error bounds.
TEST_CASE("winograd: the error of each tile, as a multiple of that of direct sums", "[passes]") {
  for (int64_t channels : {16, 64, 256}) {
    const double direct = mean_error(channels, std::nullopt);
    for (int64_t tile : winograd::MinimalFiltering::tiles()) {
      const double times = mean_error(channels, tile) / direct,
                   estimate = winograd::MinimalFiltering(tile).error(channels);
      INFO(channels << " channels, tile " << tile << ": " << times << " times, estimate " << estimate);
      CHECK(times < estimate * 1.15);
      CHECK(times > estimate * 0.85);
    }
  }
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
  CHECK_FALSE(is_used(32, "3,3", 1, {}));  // patches that stand half outside
  CHECK(is_used(256, "14,14", 1, {}));
  CHECK(is_used(32, "h,w", 1, {}, false));
  CHECK_FALSE(is_used(32, "5,5", 1, {}, false));  // the transform of the weight takes longer than is saved
  CompileSettings direct, ruled;
  direct.winograd_error = 0;
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

TEST_CASE("winograd: the choice of a tile", "[passes]") {
  Target target = codegen::parse_target("x86-64-v4");
  target.fma_ports = 1;
  auto chosen_for = [&](int64_t channels, const Expr& side, double most_error = kWinogradError, int64_t images = 1) {
    const int64_t lanes = target.vector_lanes(32);
    const std::vector<Expr> out = {int_imm(images), int_imm(channels / lanes), side, side, int_imm(lanes)};
    const WinogradChoice choice = choose_winograd({channels, channels, true, out}, most_error, target);
    return choice.gains ? choice.tile : 0;
  };
  auto chosen = [&](int64_t channels, int64_t side, double most_error = kWinogradError, int64_t images = 1) {
    return chosen_for(channels, int_imm(side), most_error, images);
  };
  CHECK(chosen(64, 56) == 4);
  CHECK(chosen(512, 14) == 4);
  // Reading more weights takes longer than the products that they save.
  CHECK(chosen(512, 7) == 2);
  CHECK(chosen(512, 10) == 2);
  CHECK(chosen(128, 7) == 4);
  CHECK(chosen(128, 3) == 0);
  CHECK(chosen(0, 0) == 0);
  CHECK(chosen(512, 7, kWinogradError, 4) == 4);
  // Symbolic images count as those of a picture of 224 pixels.
  const Expr h = make_dim("h");
  CHECK(chosen_for(64, h) == 4);
  CHECK(chosen_for(512, floor_div(h, int_imm(8))) == 4);
  CHECK(chosen_for(512, floor_div(h, int_imm(32))) == 2);
  // As far as the error allows.
  CHECK(chosen(64, 112, 10) == 6);
  CHECK(chosen(512, 14, 10) == 4);
  CHECK(chosen(64, 112, 1) == 2);
  CHECK(chosen(64, 112, 0.5) == 0);
  CHECK(chosen(64, 112, 0) == 0);
}

}  // namespace relaxc::test
