// Windows, weights and scales on dims that only the run knows: the same results as with the dims written down.
#include <cmath>

#include "tests/frontend/onnx_model.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// Equal dtypes and shapes, and elements to a few roundings.
void check_close(const Tensor& actual, const Tensor& expected) {
  REQUIRE(actual.shape() == expected.shape());
  for (int64_t i = 0; i < actual.size(); ++i) {
    double a = actual.as_double(i), e = expected.as_double(i);
    if (std::abs(a - e) > 1e-6 * (1 + std::abs(e))) FAIL_CHECK("element " << i << " is " << a << ", expected " << e);
  }
}

// Every window with every SAME_* form as an output of one model on x [1, 2, width].
OnnxModel same_windows(const std::string& width) {
  OnnxModel model;
  model.input("x", kFloat32, "1,2," + width);
  int count = 0;
  auto add = [&](const std::string& op, const std::string& inputs, int64_t kernel, int64_t stride, int64_t dilation,
                 const std::string& side) -> onnx::NodeProto& {
    std::string name = fmt::format("{}_{}_k{}_s{}_d{}_{}", op, side, kernel, stride, dilation, count++);
    onnx::NodeProto& node = model.node(op, inputs, name);
    set_string(node, "auto_pad", side);
    set_ints(node, "strides", {stride});
    if (dilation > 1) set_ints(node, "dilations", {dilation});
    if (op.find("Pool") != std::string::npos) set_ints(node, "kernel_shape", {kernel});
    model.output(name);
    return node;
  };
  for (int64_t kernel : {1, 2, 3, 4}) {
    std::string weight = fmt::format("w{}", kernel);
    model.constant(weight, numbers({3, 2, kernel}));
    model.constant("t" + weight, numbers({2, 3, kernel}));
    for (int64_t stride : {1, 2, 3}) {
      for (const char* side : {"SAME_UPPER", "SAME_LOWER"}) {
        add("Conv", "x " + weight, kernel, stride, 1, side);
        add("Conv", "x " + weight, kernel, stride, 2, side);
        add("ConvTranspose", "x t" + weight, kernel, stride, 1, side);
        add("MaxPool", "x", kernel, stride, 1, side);
        onnx::NodeProto& indexed = add("MaxPool", "x", kernel, stride, 1, side);
        indexed.add_output(indexed.output(0) + "_positions");
        model.output(indexed.output(1), kInt64);
        if (stride == 2) set_int(indexed, "storage_order", 1);
        add("AveragePool", "x", kernel, stride, 1, side);
        set_int(add("AveragePool", "x", kernel, stride, 1, side), "count_include_pad", 1);
        add("LpPool", "x", kernel, stride, 1, side);
      }
    }
  }
  return model;
}

}  // namespace

TEST_CASE("SAME_* pads on a symbolic dim are those of the static one", "[frontend]") {
  OnnxModel symbolic = same_windows("w");
  Session session = symbolic.compile();
  for (int64_t width : {1, 2, 3, 5, 8, 9}) {
    OnnxModel known = same_windows(std::to_string(width));
    Tensor x = numbers({1, 2, width});
    std::vector<Tensor> actual = session.run({x}), expected = known.compile().run({x});
    REQUIRE(actual.size() == expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      INFO(known.proto().graph().output(static_cast<int>(i)).name() << ", width " << width);
      check_close(actual[i], expected[i]);
    }
  }
}

TEST_CASE("a block of strided SAME windows on symbolic images joins its shortcut", "[frontend]") {
  auto block = [](const std::string& dims) {
    OnnxModel model;
    model.input("x", kFloat32, dims).constant("w", numbers({2, 2, 3, 3})).constant("v", numbers({2, 2, 1, 1}));
    for (const char* name : {"w", "v"}) {
      onnx::NodeProto& node = model.node("Conv", fmt::format("x {}", name), fmt::format("c{}", name));
      set_string(node, "auto_pad", "SAME_UPPER");
      set_ints(node, "strides", {2, 2});
    }
    model.node("Add", "cw cv", "y");
    model.output("y");
    return model;
  };
  Session session = block("n,2,h,w").compile();
  for (auto [height, width] : {std::pair<int64_t, int64_t>{7, 8}, {1, 2}, {6, 6}}) {
    Tensor x = numbers({2, 2, height, width});
    check_close(session.run({x})[0], block(fmt::format("2,2,{},{}", height, width)).compile().run({x})[0]);
  }
}

TEST_CASE("a transposed convolution of a given output size on a symbolic dim", "[frontend]") {
  auto model_of = [](const std::string& width, int64_t size, const char* side) {
    OnnxModel model;
    model.input("x", kFloat32, "1,2," + width).constant("w", numbers({2, 3, 3})).constant("b", numbers({3}));
    onnx::NodeProto& node = model.node("ConvTranspose", "x w b", "y");
    set_ints(node, "output_shape", {size});
    set_ints(node, "strides", {2});
    set_string(node, "auto_pad", side);
    model.output("y");
    return model;
  };
  for (const char* side : {"SAME_UPPER", "SAME_LOWER", "NOTSET"}) {
    for (int64_t size : {4, 7, 10}) {
      Session session = model_of("w", size, side).compile();
      for (int64_t width : {3, 4}) {
        INFO(side << " to " << size << " from " << width);
        Tensor x = numbers({1, 2, width});
        check_close(session.run({x})[0], model_of(std::to_string(width), size, side).compile().run({x})[0]);
      }
    }
  }
}

TEST_CASE("weights whose dims or elements the run gives", "[frontend]") {
  Tensor x = numbers({2, 4, 7}), w = numbers({6, 2, 3}), t = numbers({4, 2, 3});
  auto model_of = [](const char* op, const std::string& x_dims, const std::string& w_dims, bool kernel_shape) {
    OnnxModel model;
    model.input("x", kFloat32, x_dims).input("w", kFloat32, w_dims);
    onnx::NodeProto& node = model.node(op, "x w", "y");
    set_int(node, "group", 2);
    set_ints(node, "pads", {1, 2});
    set_ints(node, "strides", {2});
    if (kernel_shape) set_ints(node, "kernel_shape", {3});
    model.output("y");
    return model;
  };
  for (const char* op : {"Conv", "ConvTranspose"}) {
    const Tensor& weight = op == std::string("Conv") ? w : t;
    Tensor expected =
        model_of(op, "2,4,7", op == std::string("Conv") ? "6,2,3" : "4,2,3", true).compile().run({x, weight})[0];
    for (const char* dims : {"o,c,k", "o,c,3", "6,2,k"}) {
      if (op == std::string("ConvTranspose") && dims[0] == '6') continue;
      for (bool kernel_shape : {false, true}) {
        INFO(op << " with weight " << dims << (kernel_shape ? " and kernel_shape" : ""));
        check_close(model_of(op, "n,4,l", dims, kernel_shape).compile().run({x, weight})[0], expected);
      }
    }
    CHECK(!model_of(op, "n,4,l", "o,c,k", true).error({x, numbers({weight.shape()[0], 2, 4})}).empty());
    CHECK(!model_of(op, "n,4,l", "o,c,k", false).error({x, numbers({weight.shape()[0] + 1, 3, 3})}).empty());
  }
}

TEST_CASE("a 3x3 convolution of an image with weights that the run gives", "[frontend]") {
  auto model_of = [](const std::string& x_dims, const std::string& w_dims) {
    OnnxModel model;
    model.input("x", kFloat32, x_dims).input("w", kFloat32, w_dims);
    set_ints(model.node("Conv", "x w", "c"), "pads", {1, 1, 1, 1});
    model.node("Relu", "c", "y");
    model.output("y");
    return model;
  };
  Tensor x = numbers({2, 8, 9, 7}), w = numbers({16, 8, 3, 3});
  Tensor expected = model_of("2,8,9,7", "16,8,3,3").compile().run({x, w})[0];
  for (const char* dims : {"o,c,k,l", "16,8,k,k", "o,8,3,3", "16,8,3,3"})
    check_close(model_of("n,8,h,w", dims).compile().run({x, w})[0], expected);
}

TEST_CASE("Resize by any scale gives floor(dim * scale) in float32", "[frontend]") {
  auto model_of = [](const std::string& width, std::optional<float> scale, const char* mode) {
    OnnxModel model;
    model.input("x", kFloat32, "2," + width);
    if (scale) model.constant("s", Tensor::of<float>({1}, kFloat32, {*scale}));
    if (!scale) model.input("s", kFloat32, "1");
    onnx::NodeProto& node = model.node("Resize", "x - s", "y");
    set_ints(node, "axes", {1});
    set_string(node, "mode", mode);
    model.output("y");
    return model;
  };
  for (const char* mode : {"nearest", "linear"}) {
    Session open = model_of("w", std::nullopt, mode).compile();
    for (float scale : {1.5f, 0.7f, 2.5f, 0.6f, 1.1f, 0.35f, 3.0f, 0.5f, 0.25f, 1.0f / 3}) {
      Session session = model_of("w", scale, mode).compile();
      for (int64_t width : {7, 10, 20, 21}) {
        INFO(mode << " by " << scale << " from " << width);
        Tensor x = numbers({2, width}), s = Tensor::of<float>({1}, kFloat32, {scale});
        Tensor expected = model_of(std::to_string(width), scale, mode).compile().run({x})[0];
        // 10 * 0.7f and 20 * 0.35f are 7 in float32 and less than that in float64: ONNX Runtime has 7, too.
        CHECK(expected.shape()[1] == static_cast<int64_t>(std::floor(static_cast<float>(width) * scale)));
        check_close(session.run({x})[0], expected);
        check_close(open.run({x, s})[0], expected);
      }
    }
  }
}

}  // namespace relaxc::test
