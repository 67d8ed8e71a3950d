// Random networks over images, with and without their channels in blocks.

#include <algorithm>
#include <random>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "tests/constants.h"
#include "tests/ops/harness.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

// Programs that are elementwise, as somebody would write them for the plain order.
constexpr const char* kKernels = R"(
    @T.prim_func(private=True)
    def mix(x: T.Buffer(("n", "c", "h", "w"), "float32"), b: T.Buffer(("c",), "float32"), z: T.Buffer(("n", "c", "h", "w"), "float32"), y: T.Buffer(("n", "c", "h", "w"), "float32")):
        for i, j, k, l in T.grid(n, c, h, w):
            with T.block("y"):
                vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
                y[vi, vj, vk, vl] = x[vi, vj, vk, vl] * b[vj] - z[vi, vj, vk, vl]

    @T.prim_func(private=True)
    def ramp(x: T.Buffer(("n", "c", "h", "w"), "float32"), y: T.Buffer(("n", "c", "h", "w"), "float32")):
        for i, j, k, l in T.grid(n, c, h, w):
            with T.block("y"):
                vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
                y[vi, vj, vk, vl] = T.max(x[vi, vj, vk, vl], T.float32(0)) + T.cast(vj * 2 - vl, "float32")

    @T.prim_func(private=True)
    def both(x: T.Buffer(("n", "c", "h", "w"), "float32"), s: T.Buffer(("n", "c", "h", "w"), "bool"), y: T.Buffer(("n", "c", "h", "w"), "float32")):
        t = T.alloc_buffer((n, c, h, w), "float16")
        for i, j, k, l in T.grid(n, c, h, w):
            with T.block("t"):
                vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
                t[vi, vj, vk, vl] = T.cast(x[vi, vj, vk, vl] * T.float32(0.5), "float16")
                s[vi, vj, vk, vl] = T.float32(0) < x[vi, vj, vk, vl]
        for i, j, k, l in T.grid(n, c, h, w):
            with T.block("y"):
                vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
                y[vi, vj, vk, vl] = T.Select(s[vi, vj, vk, vl], T.cast(t[vi, vj, vk, vl], "float32"), T.float32(-1))
)";

struct Image {
  std::string name;
  int64_t channels, height, width;
};

// The text of a network, statement by statement, and its weights.
class Network {
 public:
  explicit Network(uint32_t seed) : random_(seed) {
    Image image{"x", pick({3, 4, 16, 24, 33}), pick({6, 9, 16}), pick({7, 15, 28})};
    input_ = {seed % 6 == 5 ? 0 : 2, image.channels, image.height, image.width};
    image = convolution(image);
    images_.push_back(image);
    for (int step = 0; step < 9; ++step) images_.push_back(next(images_[below(images_.size())]));
  }

  std::string text() const {
    std::string params = fmt::format("x: R.Tensor((\"n\", {}, {}, {}), \"float32\")", input_[1], input_[2], input_[3]);
    for (size_t i = 0; i < weights.size(); ++i)
      params += fmt::format(", w{}: R.Tensor(({},), \"float32\")", i, joined(weights[i].shape()));
    // The last images are what the network gives: some in blocks, some not.
    std::string results;
    for (size_t i = images_.size() - 4; i < images_.size(); ++i) results += images_[i].name + ", ";
    return fmt::format(
        "@I.ir_module\nclass Module:{}\n    @R.function\n    def main({}):\n        cls = Module\n"
        "        with R.dataflow():\n{}            out = ({})\n            R.output(out)\n        return out\n",
        kKernels, params, body_, results);
  }
  Tensor input() const { return values(input_, kFloat32, 5); }
  std::vector<Tensor> weights;

 private:
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  int64_t pick(std::vector<int64_t> from) { return from[below(from.size())]; }

  Image emit(Image shape, const std::string& call) {
    shape.name = fmt::format("t{}", count_++);
    body_ += fmt::format("            {} = {}\n", shape.name, call);
    return shape;
  }
  std::string weight(Shape shape) {
    Tensor tensor = values(std::move(shape), kFloat32, static_cast<uint32_t>(weights.size() + 1));
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, tensor.as_double(i) / 16);
    weights.push_back(tensor);
    return fmt::format("w{}", weights.size() - 1);
  }

  Image convolution(const Image& in) {
    int64_t window = pick({1, 3}), stride = pick({1, 1, 2}), padding = window / 2;
    bool depthwise = below(4) == 0;
    Image out{"", depthwise ? in.channels : pick({4, 9, 16, 24, 32, 48}),
              (in.height + 2 * padding - window) / stride + 1, (in.width + 2 * padding - window) / stride + 1};
    std::string w = weight({out.channels, depthwise ? 1 : in.channels, window, window});
    return emit(out, fmt::format("R.nn.conv2d({}, {}, strides={}, padding={}, groups={})", in.name, w, stride, padding,
                                 depthwise ? in.channels : 1));
  }

  // Returns the first image of that size, which may be this one.
  const Image& same_size(const Image& in) const {
    return *std::ranges::find_if(images_, [&](const Image& other) {
      return other.channels == in.channels && other.height == in.height && other.width == in.width;
    });
  }

  Image kernel(const Image& in, const std::string& call) {
    return emit(in, fmt::format("R.call_tir(cls.{}, out_sinfo=R.Tensor((n, {}, {}, {}), \"float32\"))", call,
                                in.channels, in.height, in.width));
  }

  Image next(const Image& in) {
    switch (below(15)) {
      case 0:
        return emit(in, fmt::format("R.nn.relu({})", in.name));
      case 1:
        return emit(in, fmt::format("R.sigmoid({})", in.name));
      case 2:
        return emit(in, fmt::format("R.add({}, {})", in.name, weight({in.channels, 1, 1})));
      case 3:
        return emit(in, fmt::format("R.subtract({}, {})", same_size(in).name, in.name));
      case 4:
        return emit(in, fmt::format("R.multiply({0}, R.mean({0}, axis=[2, 3], keepdims=True))", in.name));
      case 5: {
        std::vector<Image> parts = {in};
        for (const Image& other : images_) {
          if (other.height == in.height && other.width == in.width && parts.size() < 3) parts.push_back(other);
        }
        Image out = in;
        std::string names = in.name;
        for (size_t i = 1; i < parts.size(); ++i) {
          out.channels += parts[i].channels;
          names += ", " + parts[i].name;
        }
        return emit(out, fmt::format("R.concat(({},), axis=1)", names));
      }
      case 6:
        return emit({"", in.channels, in.height, in.width},
                    fmt::format("R.nn.max_pool2d({}, pool_size=3, strides=1, padding=1)", in.name));
      case 7:
        return emit({"", in.channels, (in.height + 1) / 2, (in.width + 1) / 2},
                    fmt::format("R.nn.avg_pool2d({}, pool_size=3, strides=2, padding=1)", in.name));
      case 8:
        return emit({"", in.channels, 2 * in.height, in.width},
                    fmt::format("R.image.resize({}, R.shape([n, {}, {}, {}]), axes=[2], scales=[1.0, 1.0, 2.0, 1.0])",
                                in.name, in.channels, 2 * in.height, in.width));
      case 9:
        return emit({"", in.channels, in.height + 2, in.width + 1},
                    fmt::format("R.nn.pad({}, pad_width=[0, 0, 0, 0, 1, 1, 0, 1], pad_value=1.0)", in.name));
      case 10:
        return kernel(in, fmt::format("mix, ({}, {}, {})", in.name, weight({in.channels}), same_size(in).name));
      case 11:
        return kernel(in, fmt::format("ramp, ({},)", in.name));
      case 12: {
        const std::string shape = fmt::format("(n, {}, {}, {})", in.channels, in.height, in.width);
        const Image two = emit(in, fmt::format("R.call_tir(cls.both, ({},), out_sinfo=[R.Tensor({}, \"bool\"), "
                                               "R.Tensor({}, \"float32\")])",
                                               in.name, shape, shape));
        const Image signs = emit(in, fmt::format("R.astype({}[0], dtype=\"float32\")", two.name));
        return emit(in, fmt::format("R.add({}[1], {})", two.name, signs.name));
      }
      default:
        return convolution(in);
    }
  }

  std::mt19937 random_;
  Shape input_;
  std::vector<Image> images_;
  std::string body_ = "            n = T.int64()\n";
  int count_ = 0;
};

}  // namespace

TEST_CASE("networks give the same with their channels in blocks", "[passes]") {
  for (uint32_t seed = 0; seed < 24; ++seed) {
    Network network(seed);
    INFO("seed " << seed << "\n" << network.text());
    Diagnostics diagnostics;
    IRModule module = parse_module(network.text(), "network.py", op_table(), diagnostics);
    diagnostics.throw_if_errors();
    CompileSettings plain;
    plain.passes = "kernels,lower";
    IRModule bound = with_constants(module, network.weights);
    std::vector<Tensor> wanted = Session(compile(bound, plain).load()).run({network.input()});
    std::vector<Tensor> got = Session(compile(bound, {}).load()).run({network.input()});
    REQUIRE(got.size() == wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      REQUIRE(got[i].shape() == wanted[i].shape());
      double largest = 1, error = 0;
      for (int64_t e = 0; e < got[i].size(); ++e) {
        largest = std::max(largest, std::abs(wanted[i].as_double(e)));
        double difference = std::abs(got[i].as_double(e) - wanted[i].as_double(e));
        error = std::isnan(difference) ? INFINITY : std::max(error, difference);
      }
      CHECK(error <= 1e-5 * largest);
    }
  }
}

}  // namespace relaxc::test
