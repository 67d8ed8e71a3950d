// Random convolutions and pools as TensorIR text, as TVM's te and people write them, with and without borders, bias and
// activation: what `recognize` makes of them against the interpreter on the text.
#include <random>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "passes/runner.h"
#include "support/diagnostic.h"
#include "tests/constants.h"
#include "tests/interpret_module.h"
#include "tests/ops/harness.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

struct WindowCase {
  bool is_pool, is_depthwise, has_tail, is_constant;
  int64_t batch, channels, height, width, filters, groups, kernel_y, kernel_x, stride, dilation, top, left, bottom,
      right;

  explicit WindowCase(uint32_t seed) {
    std::mt19937 random(seed);
    auto pick = [&](std::vector<int64_t> from) { return from[random() % from.size()]; };
    is_pool = seed % 5 == 4;
    is_depthwise = seed % 5 == 3;
    groups = seed % 5 == 2 ? 2 : 1;
    has_tail = pick({0, 1});
    is_constant = pick({0, 1});
    batch = pick({1, 2});
    channels = groups * pick({1, 3, 8, 16, 24});
    filters = is_depthwise || is_pool ? channels : groups * pick({4, 16, 20, 32});
    if (is_depthwise) groups = channels;
    kernel_y = pick({1, 3, 5}), kernel_x = pick({1, 2, 3});
    stride = pick({1, 2, 3}), dilation = pick({1, 1, 2});
    height = pick({9, 14, 17}), width = pick({8, 15, 23});
    top = pick({0, 0, 1, 2}), left = pick({0, 1}), bottom = pick({0, 1, 3}), right = pick({0, 1});
  }
  int64_t out(int64_t extent, int64_t kernel) const { return (extent - dilation * (kernel - 1) - 1) / stride + 1; }

  std::string text() const {
    int64_t rows = height + top + bottom, columns = width + left + right;
    int64_t out_y = out(rows, kernel_y), out_x = out(columns, kernel_x);
    const char* lowest = "T.float32(-3.4028234663852886e+38)";
    std::string result = fmt::format("({}, {}, {}, {})", batch, filters, out_y, out_x);
    std::string out_buffer = has_tail ? "conv" : "Y";
    std::string text = fmt::format(
        "@I.ir_module\nclass Module:\n    @T.prim_func(private=True)\n"
        "    def kernel(X: T.Buffer(({}, {}, {}, {}), \"float32\"), W: T.Buffer(({}, {}, {}, {}), \"float32\"), Y: "
        "T.Buffer({}, \"float32\")):\n        pad = T.alloc_buffer(({}, {}, {}, {}))\n",
        batch, channels, height, width, filters, channels / groups, kernel_y, kernel_x, result, batch, channels, rows,
        columns);
    if (has_tail) text += fmt::format("        conv = T.alloc_buffer({})\n", result);
    text += fmt::format(
        "        for i0, i1, i2, i3 in T.grid({}, {}, {}, {}):\n            with T.block(\"pad\"):\n"
        "                v0, v1, v2, v3 = T.axis.remap(\"SSSS\", [i0, i1, i2, i3])\n"
        "                pad[v0, v1, v2, v3] = T.if_then_else({} <= v2 and v2 < {} and {} <= v3 and v3 < {}, "
        "X[v0, v1, v2 - {}, v3 - {}], {})\n",
        batch, channels, rows, columns, top, top + height, left, left + width, top, left,
        is_pool ? lowest : "T.float32(0)");
    text += loops(result, out_buffer, lowest);
    if (has_tail)
      text += fmt::format(
          "        for i0, i1, i2, i3 in T.grid({}, {}, {}, {}):\n            with T.block(\"tail\"):\n"
          "                v0, v1, v2, v3 = T.axis.remap(\"SSSS\", [i0, i1, i2, i3])\n"
          "                Y[v0, v1, v2, v3] = T.max(conv[v0, v1, v2, v3] * T.float32(0.5) - T.float32(0.25), "
          "T.float32(0))\n",
          batch, filters, out_y, out_x);
    return text + fmt::format(
                      "    @R.function\n    def main(x: R.Tensor(({}, {}, {}, {}), \"float32\"), w: R.Tensor(({}, {}, "
                      "{}, {}), "
                      "\"float32\")):\n        with R.dataflow():\n            y = R.call_tir(Module.kernel, (x, w), "
                      "out_sinfo=R.Tensor({}, \"float32\"))\n            R.output(y)\n        return y\n",
                      batch, channels, height, width, filters, channels / groups, kernel_y, kernel_x, result);
  }

 private:
  std::string loops(const std::string& result, const std::string& to, const char* lowest) const {
    std::string y = fmt::format("vy * {} + vr * {}", stride, dilation);
    std::string x = fmt::format("vx * {} + vs * {}", stride, dilation);
    std::string value, channel = "vc", extents = result.substr(1, result.size() - 2);
    if (groups > 1) channel = fmt::format("vf // {} * {} + vc", filters / groups, channels / groups);
    if (is_depthwise || is_pool) channel = "vf";
    std::string load = fmt::format("pad[vn, {}, {}, {}]", channel, y, x);
    std::string axes = is_depthwise || is_pool ? "vn, vf, vy, vx, vr, vs" : "vn, vf, vy, vx, vc, vr, vs";
    std::string names = is_depthwise || is_pool ? "n, f, y, x, r, s" : "n, f, y, x, c, r, s";
    std::string kinds = is_depthwise || is_pool ? "SSSSRR" : "SSSSRRR";
    if (!is_depthwise && !is_pool) extents += fmt::format(", {}", channels / groups);
    const char* weight = is_depthwise ? "W[vf, 0, vr, vs]" : "W[vf, vc, vr, vs]";
    std::string body = is_pool ? fmt::format("T.max({}[vn, vf, vy, vx], {})", to, load)
                               : fmt::format("{}[vn, vf, vy, vx] + {} * {}", to, load, weight);
    return fmt::format(
        "        for {} in T.grid({}, {}, {}):\n            with T.block(\"fold\"):\n"
        "                {} = T.axis.remap(\"{}\", [{}])\n                with T.init():\n"
        "                    {}[vn, vf, vy, vx] = {}\n                {}[vn, vf, vy, vx] = {}\n",
        names, extents, kernel_y, kernel_x, axes, kinds, names, to, is_pool ? lowest : "T.float32(0)", to, body);
  }
};

}  // namespace

TEST_CASE("convolutions and pools as text are recognized", "[recognize]") {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    WindowCase one(seed);
    std::string text = one.text();
    CAPTURE(seed, text);
    Diagnostics diagnostics;
    IRModule module = parse_module(text, "module.py", op_table(), diagnostics);
    diagnostics.throw_if_errors();
    Tensor x = values({one.batch, one.channels, one.height, one.width}, kFloat32, seed + 1);
    Tensor w = values({one.filters, one.channels / one.groups, one.kernel_y, one.kernel_x}, kFloat32, seed + 2);
    Tensor expected = interpret_module(module, std::vector{x, w})[0];
    PassContext context = pass_context({});
    std::string graph = print_module(run_pass(*find_pass("recognize"), module, context));
    CHECK((graph.find("R.nn.conv2d") != std::string::npos) == !one.is_pool);
    CHECK((graph.find("R.nn.max_pool2d") != std::string::npos) == one.is_pool);
    CHECK(graph.find("R.call_tir") == std::string::npos);
    std::vector<Tensor> inputs = {x};
    if (!one.is_constant) inputs.push_back(w);
    if (one.is_constant) module = with_constants(module, {w});
    CompileSettings settings;
    settings.target = "x86-64-v3";
    Tensor got = Session(compile(module, settings).load()).run(inputs)[0];
    REQUIRE(got.shape() == expected.shape());
    for (int64_t i = 0; i < got.size(); ++i)
      REQUIRE(std::abs(got.as_double(i) - expected.as_double(i)) <= 1e-3 * (1 + std::abs(expected.as_double(i))));
  }
}

}  // namespace relaxc::test
