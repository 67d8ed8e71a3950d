#include "ir/visit.h"
#include "tests/ops/harness.h"

using namespace relaxc;
using namespace relaxc::test;

namespace {

const OpTable& convolution_table() {
  static const OpTable kTable(convolution_ops());
  return kTable;
}

struct Case {
  Shape data, weight;
  Shape strides, before, after, dilation;
  int64_t groups = 1;
  Shape output_padding = {};
  size_t n() const { return data.size() - 2; }
  Attrs attrs() const {
    Shape padding = before;
    padding.insert(padding.end(), after.begin(), after.end());
    Attrs result{{"strides", strides}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}};
    return output_padding.empty() ? result : result.with("output_padding", output_padding);
  }
};

void check_conv(const Case& c, DType data_dtype = kFloat32, DType weight_dtype = kFloat32, const Attrs& more = {},
                const Symbolic& symbolic = {}, double tolerance = 1e-4) {
  Tensor x = values(c.data, data_dtype, 2), w = values(c.weight, weight_dtype, 3);
  Shape result = {c.data[0], c.weight[0]};
  for (size_t d = 0; d < c.n(); ++d) {
    int64_t window = c.dilation[d] * (c.weight[d + 2] - 1) + 1;
    result.push_back((c.data[d + 2] + c.before[d] + c.after[d] - window) / c.strides[d] + 1);
  }
  Attrs attrs = c.attrs();
  for (const auto& [key, value] : more) attrs.set(key, value);
  std::string name = "nn.conv" + std::to_string(c.n()) + "d";
  Shape window(c.weight.begin() + 1, c.weight.end());
  int64_t out_per_group = c.weight[0] / c.groups;
  check_tensor(
      run_op(convolution_table(), name, {x, w}, attrs, symbolic)[0], result,
      [&](const Shape& o) {
        double sum = 0;
        for_each_index(window, [&](const Shape& k) {
          Shape at = {o[0], o[1] / out_per_group * c.weight[1] + k[0]}, w_at = {o[1], k[0]};
          for (size_t d = 0; d < c.n(); ++d) {
            at.push_back(o[d + 2] * c.strides[d] + k[d + 1] * c.dilation[d] - c.before[d]);
            w_at.push_back(k[d + 1]);
            if (at.back() < 0 || at.back() >= c.data[d + 2]) return;
          }
          sum += element(x, at) * element(w, w_at);
        });
        return sum;
      },
      tolerance);
}

// Scatters every input element through the kernel.
void check_transposed(const Case& c, const Symbolic& symbolic = {}) {
  Tensor x = values(c.data, kFloat32, 2), w = values(c.weight, kFloat32, 3);
  Shape result = {c.data[0], c.weight[1] * c.groups};
  for (size_t d = 0; d < c.n(); ++d) {
    int64_t window = c.dilation[d] * (c.weight[d + 2] - 1) + 1;
    int64_t extra = c.output_padding.empty() ? 0 : c.output_padding[d];
    result.push_back((c.data[d + 2] - 1) * c.strides[d] + window - c.before[d] - c.after[d] + extra);
  }
  Tensor expected = Tensor::empty(result, kFloat32);
  for (int64_t i = 0; i < expected.size(); ++i) expected.set_double(i, 0);
  Shape window(c.weight.begin() + 1, c.weight.end());
  int64_t in_per_group = c.data[1] / c.groups;
  for_each_index(c.data, [&](const Shape& i) {
    for_each_index(window, [&](const Shape& k) {
      Shape at = {i[0], i[1] / in_per_group * c.weight[1] + k[0]}, w_at = {i[1], k[0]};
      for (size_t d = 0; d < c.n(); ++d) {
        at.push_back(i[d + 2] * c.strides[d] + k[d + 1] * c.dilation[d] - c.before[d]);
        w_at.push_back(k[d + 1]);
        if (at.back() < 0 || at.back() >= result[d + 2]) return;
      }
      int64_t position = flat(at, result);
      expected.set_double(position, expected.as_double(position) + element(x, i) * element(w, w_at));
    });
  });
  std::string name = "nn.conv" + std::to_string(c.n()) + "d_transpose";
  check_tensor(
      run_op(convolution_table(), name, {x, w}, c.attrs(), symbolic)[0], result,
      [&](const Shape& i) { return element(expected, i); }, 1e-4);
}

}  // namespace

TEST_CASE("conv of one to three dims", "[ops][conv]") {
  check_conv({{2, 3, 9}, {4, 3, 3}, {1}, {0}, {0}, {1}});
  check_conv({{2, 3, 9}, {4, 3, 3}, {2}, {1}, {2}, {2}});
  check_conv({{1, 3, 7, 6}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  check_conv({{2, 3, 7, 6}, {4, 3, 3, 2}, {2, 1}, {0, 2}, {1, 0}, {1, 2}});
  check_conv({{1, 4, 6, 6}, {6, 2, 3, 3}, {1, 2}, {1, 0}, {1, 0}, {1, 1}, 2});
  check_conv({{1, 4, 6, 6}, {4, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 4});
  check_conv({{1, 4, 6, 6}, {8, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 4});
  check_conv({{1, 4, 5, 5}, {3, 4, 1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}});
  check_conv({{1, 2, 4, 5, 4}, {3, 2, 2, 3, 2}, {1, 2, 1}, {1, 0, 1}, {0, 1, 1}, {1, 1, 2}});
}

TEST_CASE("conv of other dtypes", "[ops][conv]") {
  DType int8 = DType::int_(8), uint8 = DType::uint(8), half = DType::float_(16);
  Case c{{1, 16, 6, 6}, {4, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  check_conv(c, uint8, int8, {{"out_dtype", kInt32}});
  check_conv(c, int8, int8, {{"out_dtype", kInt32}});
  check_conv(c, half, half, {}, {}, 2e-3);
  check_conv(c, kFloat64, kFloat64);
}

TEST_CASE("conv with symbolic dims", "[ops][conv]") {
  VarRef n = make_dim("n"), h = make_dim("h"), w = make_dim("w");
  for (int64_t stride : {1, 2}) {
    Case c{{2, 4, 7, 6}, {6, 2, 3, 3}, {stride, stride}, {1, 1}, {1, 1}, {1, 1}, 2};
    check_conv(c, kFloat32, kFloat32, {}, {{n, int_imm(4), h, w}});
    check_transposed({{2, 4, 4, 3}, {4, 3, 3, 3}, {stride, stride}, {1, 1}, {1, 1}, {1, 1}, 2},
                     {{n, int_imm(4), h, w}});
  }
  // "same" convolutions give back the dim itself.
  Expr x = make_var("x", tensor_type({n, int_imm(3), h, w}, kFloat32));
  Expr weight = make_var("w", tensor_type({int_imm(8), int_imm(3), int_imm(3), int_imm(3)}, kFloat32));
  Expr conv = call(op_ref("relax.nn.conv2d"), {x, weight}, {{"padding", 1}}, object_type());
  Type type = infer_call_type(*conv.as<Call>(), {}, convolution_table());
  CHECK(same_node((*known_shape(type))[2], h));
}

TEST_CASE("conv in other layouts", "[ops][conv]") {
  struct Layouts {
    const char *data, *kernel, *out;
    int64_t groups;
  };
  for (auto [data, kernel, out, groups] : {Layouts{"NHWC", "HWIO", "", 1}, Layouts{"NCHW4c", "OIHW4i2o", "NCHW2c", 1},
                                           Layouts{"NCHW", "OIHW4o", "NCHW4c", 1}, Layouts{"NCHW4c", "OIHW4o", "", 8},
                                           Layouts{"NHWC", "OHWI", "NCHW", 2}}) {
    CAPTURE(data, kernel, out, groups);
    Tensor x = values({2, 8, 5, 6}, kFloat32, 2), w = values({8, 8 / groups, 3, 2}, kFloat32, 3);
    Attrs attrs{{"strides", Shape{1, 2}}, {"padding", Shape{1, 0, 1, 1}}, {"groups", groups}};
    Tensor wanted = run_op(convolution_table(), "nn.conv2d", {x, w}, attrs)[0];
    attrs = attrs.with("data_layout", data).with("kernel_layout", kernel).with("out_layout", out);
    std::string result = *out == 0 ? data : out;
    VarRef n = make_dim("n");
    Tensor blocked = in_layout(x, "NCHW", data);
    std::vector<Expr> dims;
    for (int64_t dim : blocked.shape()) dims.push_back(int_imm(dim));
    dims[0] = n;
    for (const Symbolic& symbolic : {Symbolic{}, Symbolic{dims}}) {
      Tensor got =
          run_op(convolution_table(), "nn.conv2d", {blocked, in_layout(w, "OIHW", kernel)}, attrs, symbolic)[0];
      Tensor expected = in_layout(wanted, "NCHW", result);
      check_tensor(got, expected.shape(), [&](const Shape& o) { return element(expected, o); });
    }
  }
}

TEST_CASE("transposed conv", "[ops][conv]") {
  check_transposed({{2, 3, 5}, {3, 4, 3}, {1}, {0}, {0}, {1}});
  check_transposed({{2, 3, 5}, {3, 4, 3}, {3}, {1}, {2}, {1}});
  check_transposed({{1, 3, 4, 5}, {3, 2, 3, 3}, {2, 1}, {1, 0}, {0, 1}, {1, 2}});
  check_transposed({{1, 3, 4, 5}, {3, 2, 3, 3}, {3, 2}, {0, 0}, {0, 0}, {1, 1}, 1, {2, 1}});
  check_transposed({{1, 4, 4, 4}, {4, 3, 2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, 2});
  check_transposed({{1, 2, 3, 3, 3}, {2, 2, 2, 2, 3}, {2, 1, 2}, {0, 1, 0}, {1, 0, 0}, {1, 1, 1}});
  check_transposed({{1, 1, 4}, {1, 1, 3}, {1}, {3}, {0}, {1}});  // more padding than the kernel reaches
}

TEST_CASE("conv lowers to a pad block and a reduction block", "[ops][conv]") {
  auto blocks = [](int64_t padding) {
    std::vector<std::string> names;
    std::vector<Tensor> inputs = {values({1, 3, 6, 6}), values({4, 3, 3, 3})};
    Expr conv = call(op_ref("relax.nn.conv2d"), arguments(inputs), {{"padding", padding}}, object_type());
    PrimFuncRef f = convolution_table().find("relax.nn.conv2d")->legalize(OpCall{*conv.as<Call>(), conv.span()});
    walk(f->body, [&](const Block& block) { names.push_back(block.name); });
    return names;
  };
  CHECK(blocks(0) == std::vector<std::string>{"root", "conv2d_nchw"});
  CHECK(blocks(1) == std::vector<std::string>{"root", "pad_temp", "conv2d_nchw"});
}

TEST_CASE("conv errors", "[ops][conv]") {
  auto message = [](Shape data, Shape weight, Attrs attrs = {}) {
    return error_of(convolution_table(), "nn.conv2d", {values(std::move(data)), values(std::move(weight))}, attrs);
  };
  CHECK(contains(message({1, 4, 6, 6}, {8, 3, 3, 3}), "input channels of the weight and of the data: 3 and 4"));
  CHECK(contains(message({1, 4, 6, 6}, {8, 4, 3, 3}, {{"groups", 3}}),
                 "groups do not divide the input channels: 4 and 3"));
  CHECK(contains(message({1, 4, 6, 6}, {7, 2, 3, 3}, {{"groups", 2}}),
                 "groups do not divide the output channels: 7 and 2"));
  CHECK(contains(message({1, 4, 2, 6}, {8, 4, 3, 3}), "the window of 3 is larger than the padded input of 2"));
  CHECK(contains(message({1, 4, 6, 6}, {8, 4, 3, 3}, {{"strides", 0}}), "strides is 0, expected at least 1"));
  CHECK(contains(message({1, 4, 6, 6}, {8, 4, 3, 3}, {{"padding", Shape{1, 1, 1}}}), "padding has 3 values"));
  CHECK(contains(message({1, 4, 6, 6}, {8, 4, 3, 3}, {{"padding", -1}}), "padding is -1"));
  CHECK(contains(message({1, 4, 6}, {8, 4, 3, 3}), "data has rank 3, expected 4"));

  CHECK(contains(message({1, 4, 6, 6}, {6, 4, 3, 3}, {{"out_layout", "NCHW4c"}}),
                 "the layout's blocks do not divide the axis: 6 and 4"));
  CHECK(contains(message({1, 4, 6, 6}, {8, 4, 3, 3}, {{"data_layout", "NCHX"}}), "does not order the axes NCHW"));
  CHECK(contains(message({1, 4, 6, 6}, {8, 4, 3, 3}, {{"stride", 1}}), "unknown argument 'stride'"));
}
