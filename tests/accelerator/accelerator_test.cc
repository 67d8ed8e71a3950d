// examples/accelerator/: networks on the simulated matrix unit have the bits of the CPU, and errors say what is wrong.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;

namespace {

namespace fs = std::filesystem;
const std::string kPlugin = RELAXC_MXU_PLUGIN, kExample = RELAXC_SOURCE_DIR "/examples/accelerator";
const std::string kNetwork = kExample + "/digits_int8.onnx";

Outcome relaxc_tool(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RELAXC_TOOL);
  return test::run_program(arguments, 300);
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

Tensor numbers(const std::vector<int64_t>& shape, DType dtype, int64_t factor) {
  Tensor result = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < result.size(); ++i) result.set_int(i, i * factor % 251 - (dtype.is_uint() ? 0 : 125));
  return result;
}

}  // namespace

TEST_CASE("the quantized network runs on the matrix unit with the bits of the CPU", "[plugin]") {
  Outcome demo =
      test::run_program({RELAXC_MXU_DEMO, kPlugin, kNetwork, RELAXC_SOURCE_DIR "/examples/digits/samples.npy"}, 300);
  INFO(demo.out << demo.err);
  CHECK(demo.exit_code == 0);
  CHECK(contains(demo.out, "the results are the same bits as the CPU's"));
  // Per scan: 8 * 8 * 16 * 9 + 8 * 8 * 32 * 144 + 4 * 4 * 32 * 288 + 10 * 128.
  CHECK(contains(demo.out, fmt::format("multiply-adds of the network  {:10}\n", 360 * 452864)));
  CHECK(contains(demo.out, fmt::format("on the matrix unit            {:10}  100.0 %\n", 360 * 452864)));
  // Nine rows of the first weight are padded to 16, ten columns of the last one to 16, and 360 rows to 368.
  int64_t padded = 360 * (64 * 16 * 16 + 64 * 32 * 144 + 16 * 32 * 288) + 368 * 128 * 16;
  CHECK(contains(demo.out, fmt::format("counted by it, with padding   {:10}  in {} tiles", padded, padded / 4096)));
}

TEST_CASE("the network between QuantizeLinear and DequantizeLinear runs on the matrix unit", "[plugin]") {
  Outcome demo = test::run_program(
      {RELAXC_MXU_DEMO, kPlugin, kExample + "/digits_qdq.onnx", RELAXC_SOURCE_DIR "/examples/digits/samples.npy"}, 300);
  INFO(demo.out << demo.err);
  CHECK(demo.exit_code == 0);
  CHECK(contains(demo.out, "the results are "));
  CHECK_FALSE(contains(demo.out, "wrong"));
  CHECK(contains(demo.out, fmt::format("multiply-adds of the network  {:10}\n", 360 * 452864)));
  CHECK(contains(demo.out, fmt::format("on the matrix unit            {:10}  100.0 %\n", 360 * 452864)));
  int64_t padded = 360 * (64 * 16 * 16 + 64 * 32 * 144 + 16 * 32 * 288) + 368 * 128 * 16;
  CHECK(contains(demo.out, fmt::format("counted by it, with padding   {:10}  in {} tiles", padded, padded / 4096)));
}

TEST_CASE("relaxc runs, compiles and interprets with the matrix unit", "[plugin]") {
  test::Folder folder("accelerator");
  std::string expected = relaxc_tool({"run", kNetwork, "--dim", "batch=5"}).out;
  REQUIRE(contains(expected, "probability: float32[5, 10]"));
  CHECK(relaxc_tool({"run", kNetwork, "--dim", "batch=5", "--plugin", kPlugin}).out == expected);
  CHECK(relaxc_tool({"run", kNetwork, "--dim", "batch=5", "--plugin", kPlugin, "--verify-each=pass"}).out == expected);
  std::vector<std::string> interpreted = {"run", kNetwork, "--interpret", "--passes=simplify,kernels"};
  std::string by_interpreter = relaxc_tool(interpreted).out;  // whose exp differs in the last place
  interpreted.insert(interpreted.end(), {"--plugin", kPlugin});
  CHECK(relaxc_tool(interpreted).out == by_interpreter);
  interpreted[3] = "--passes=default";  // calls of the runtime as well
  CHECK(relaxc_tool(interpreted).out == by_interpreter);
  REQUIRE(relaxc_tool({"compile", kNetwork, "--plugin", kPlugin, "-o", folder.at("digits.so")}).exit_code == 0);
  CHECK(relaxc_tool({"run", folder.at("digits.so"), "--dim", "batch=5"}).out == expected);
  CHECK(contains(relaxc_tool({"inspect", folder.at("digits.so")}).out, "libmxu.so\n"));
  std::string loops = relaxc_tool({"compile", kNetwork, "--plugin", kPlugin, "--emit=tir"}).out;
  CHECK(contains(loops, "annotations={\"user.mxu\": \"multiply\"}"));
  CHECK(contains(relaxc_tool({"opt", "--list-rules", "--plugin", kPlugin}).out, "on_tiles (mxu.matmul)"));
  CHECK(contains(relaxc_tool({"opt", "--list-intrins", "--plugin", kPlugin}).out, "mxu_multiply"));
}

TEST_CASE("convolutions and products with any zero points, strides and dims have the bits of the CPU", "[plugin]") {
  test::Folder folder("accelerator");
  struct Case {
    const char* op;
    DType dtype;
    std::vector<int64_t> weight, strides, pads, dilations;
    int64_t zero;
    bool is_claimed = true;
  };
  const DType kInt8 = DType::int_(8), kUInt8 = DType::uint(8);
  const Case kCases[] = {
      {"ConvInteger", kInt8, {5, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 0},
      {"ConvInteger", kInt8, {17, 3, 3, 2}, {2, 1}, {0, 1, 2, 0}, {1, 2}, -7},
      {"ConvInteger", kUInt8, {4, 3, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 0},
      {"ConvInteger", kUInt8, {33, 3, 5, 5}, {3, 2}, {2, 2, 2, 2}, {1, 1}, 255},
      {"ConvInteger", kUInt8, {3, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3, false},  // three groups
  };
  for (const Case& c : kCases) {
    test::OnnxModel model;
    model.input("x", c.dtype, "n,3,h,9").constant("w", numbers(c.weight, kInt8, 7)).output("y", kInt32);
    model.constant("z", numbers({}, c.dtype, 0));
    Tensor zero = Tensor::empty({}, c.dtype);
    zero.set_int(0, c.zero);
    model.constant("zero", zero);
    onnx::NodeProto& node = model.node(c.op, "x w zero", "y");
    test::set_ints(node, "strides", c.strides), test::set_ints(node, "pads", c.pads);
    test::set_ints(node, "dilations", c.dilations);
    if (!c.is_claimed) test::set_int(node, "group", 3);
    std::string file = folder.write("conv.onnx", model.proto().SerializeAsString());
    for (int64_t height : {7, 10}) {
      write_npy(folder.at("x.npy"), numbers({2, 3, height, 9}, c.dtype, 11));
      std::vector<std::string> run = {"run", file, "--input", "x=" + folder.at("x.npy"), "--output-dir"};
      run.push_back(folder.at("cpu"));
      REQUIRE(relaxc_tool(run).exit_code == 0);
      run.back() = folder.at("mxu"), run.insert(run.end(), {"--plugin", kPlugin, "--profile"});
      Outcome outcome = relaxc_tool(run);
      INFO(outcome.err);
      REQUIRE(outcome.exit_code == 0);
      CHECK(contains(outcome.out, "  matmul / y") == c.is_claimed);
      CHECK(text_of(folder.at("cpu/output_0.npy")) == text_of(folder.at("mxu/output_0.npy")));
    }
  }
}

TEST_CASE("a product with a zero point that depends on the data has the bits of the CPU", "[plugin]") {
  test::Folder folder("accelerator");
  test::OnnxModel model;
  model.input("x", kFloat32, "b,t,40").output("y", kInt32).constant("w", numbers({40, 21}, DType::int_(8), 3));
  model.node("DynamicQuantizeLinear", "x", "q s z");
  model.node("MatMulInteger", "q w z", "y");
  std::string file = folder.write("dynamic.onnx", model.proto().SerializeAsString());
  std::vector<std::string> run = {"run", file, "--dim", "b=3", "--dim", "t=7"};
  std::string expected = relaxc_tool(run).out;
  CHECK(contains(expected, "y: int32[3, 7, 21]"));
  run.insert(run.end(), {"--plugin", kPlugin});
  CHECK(relaxc_tool(run).out == expected);
  std::string graph = relaxc_tool({"opt", file, "--plugin", kPlugin, "--passes=simplify"}).out;
  CHECK(contains(graph, "R.mxu.matmul("));
}

TEST_CASE("a network between QuantizeLinear and DequantizeLinear runs on the matrix unit", "[plugin]") {
  test::Folder folder("accelerator");
  const DType kInt8 = DType::int_(8), kUInt8 = DType::uint(8);
  for (bool per_channel : {true, false}) {
    test::OnnxModel model;
    // All scales are powers of two, so the sums of the CPU in float32 are exact as well.
    auto constant = [&](const std::string& name, const std::vector<int64_t>& shape, DType dtype, double first,
                        double factor = 1) {
      Tensor value = Tensor::empty(shape, dtype);
      for (int64_t i = 0; i < value.size(); ++i) value.set_double(i, i % 2 == 0 ? first : first * factor);
      model.constant(name, value);
    };
    auto between = [&](const std::string& from, const std::string& to, const std::string& zero) {
      model.node("QuantizeLinear", from + " scale " + zero, to + "_8");
      model.node("DequantizeLinear", to + "_8 scale " + zero, to);
    };
    const std::vector<int64_t> scales = per_channel ? std::vector<int64_t>{20} : std::vector<int64_t>{};
    constant("scale", {}, kFloat32, 0.25), constant("zero", {}, kUInt8, 100), constant("low", {}, kInt8, -120);
    constant("w_scale", scales, kFloat32, 0.5, 4), constant("w_zero", scales, kInt8, per_channel ? 0 : 2);
    constant("bias", {20}, kFloat32, 3, -1), constant("c_bias", {9}, kFloat32, -2, 2);
    constant("c_scale", {}, kFloat32, 0.125), constant("c_zero", {}, kInt8, 0);
    model.input("x", kFloat32, "n,3,h,9").output("y");
    Tensor narrow = numbers({20, 3, 3, 3}, kInt8, 7), classes = numbers({9, 20}, kInt8, 5);
    for (int64_t i = 0; i < narrow.size(); ++i) narrow.set_int(i, narrow.as_int(i) / 2);
    model.constant("w8", narrow).constant("c8", classes);
    between("x", "a", "zero");
    onnx::NodeProto& weight = model.node("DequantizeLinear", "w8 w_scale w_zero", "w");
    if (per_channel) test::set_int(weight, "axis", 0);
    onnx::NodeProto& conv = model.node("Conv", "a w bias", "conv");
    test::set_ints(conv, "pads", {1, 1, 1, 1}), test::set_ints(conv, "strides", {2, 1});
    model.node("Relu", "conv", "relu");
    between("relu", "r", "low");
    model.node("GlobalMaxPool", "r", "pool");
    model.node("Flatten", "pool", "flat");
    between("flat", "f", "zero");
    model.node("DequantizeLinear", "c8 c_scale c_zero", "c");
    test::set_int(model.node("Gemm", "f c c_bias", "y"), "transB", 1);
    std::string file = folder.write("qdq.onnx", model.proto().SerializeAsString());
    std::string graph = relaxc_tool({"opt", file, "--plugin", kPlugin, "--passes=simplify"}).out;
    INFO(graph);
    CHECK(contains(graph, "R.mxu.matmul("));
    CHECK_FALSE(contains(graph, "R.nn.conv2d("));
    CHECK_FALSE(contains(graph, "R.matmul("));
    std::vector<std::string> run = {"run", file, "--dim", "n=3", "--dim", "h=11"};
    const std::string expected = relaxc_tool(run).out;
    CHECK(contains(expected, "y: float32[3, 9]"));
    run.insert(run.end(), {"--plugin", kPlugin});
    CHECK(relaxc_tool(run).out == expected);
  }
}

TEST_CASE("pads around a zero point that depends on the data, and pads that do, have the bits of the CPU", "[plugin]") {
  test::Folder folder("accelerator");
  const DType kInt8 = DType::int_(8);
  for (const auto& [auto_pad, is_dynamic] :
       {std::pair("NOTSET", true), std::pair("SAME_UPPER", true), std::pair("SAME_LOWER", false)}) {
    INFO(auto_pad);
    test::OnnxModel model;
    model.constant("w", numbers({5, 3, 3, 3}, kInt8, 7)).output("y", kInt32);
    if (is_dynamic) {
      model.input("x", kFloat32, "n,3,h,v").node("DynamicQuantizeLinear", "x", "q s z");
    } else {
      Tensor zero = Tensor::empty({}, kInt8);
      zero.set_int(0, -9);
      model.input("q", kInt8, "n,3,h,v").constant("z", zero);
    }
    onnx::NodeProto& conv = model.node("ConvInteger", "q w z", "y");
    test::set_ints(conv, "strides", {2, 3});
    if (std::string(auto_pad) == "NOTSET") {
      test::set_ints(conv, "pads", {1, 0, 2, 1});
    } else {
      test::set_string(conv, "auto_pad", auto_pad);
    }
    std::vector<std::string> run = {"run", folder.write("pads.onnx", model.proto().SerializeAsString())};
    run.insert(run.end(), {"--dim", "n=2", "--dim", "h=10", "--dim", "v=8"});
    const std::string expected = relaxc_tool(run).out;
    CHECK(contains(expected, "y: int32[2, 5, "));
    run.insert(run.end(), {"--plugin", kPlugin});
    CHECK(relaxc_tool(run).out == expected);
    run.push_back("--profile");
    CHECK(contains(relaxc_tool(run).out, "  matmul / "));
  }
}

TEST_CASE("explain says why the matrix unit does not take a quantized product", "[plugin]") {
  test::Folder folder("accelerator");
  auto model_of = [&](int64_t zero, const std::vector<int64_t>& scales) {
    test::OnnxModel model;
    Tensor w_zero = Tensor::empty({}, DType::int_(8));
    w_zero.set_int(0, zero);
    model.input("x", DType::int_(8), "m,20").output("y").constant("w8", numbers({20, 6}, DType::int_(8), 3));
    Tensor one = Tensor::empty({}, kFloat32), scale = Tensor::empty(scales, kFloat32);
    one.set_double(0, 1);
    for (int64_t i = 0; i < scale.size(); ++i) scale.set_double(i, 0.5);
    model.constant("one", one).constant("w_scale", scale).constant("w_zero", w_zero);
    model.node("DequantizeLinear", "x one", "a");
    onnx::NodeProto& weight = model.node("DequantizeLinear", scales.empty() ? "w8 w_scale w_zero" : "w8 w_scale", "w");
    if (!scales.empty()) test::set_int(weight, "axis", 0);
    model.node("MatMul", "a w", "y");
    return folder.write("m.onnx", model.proto().SerializeAsString());
  };
  auto explained = [&](int64_t zero, const std::vector<int64_t>& scales) {
    return relaxc_tool({"explain", model_of(zero, scales), "--plugin", kPlugin}).out;
  };
  // The scale of x is 1, so that no multiplication by it is left.
  CHECK(contains(explained(0, {}), "y (MatMul): pattern 'float_product' of mxu_claim"));
  const std::string file = model_of(0, {}), expected = relaxc_tool({"run", file, "--dim", "m=3"}).out;
  CHECK(contains(expected, "y: float32[3, 6]"));
  CHECK(relaxc_tool({"run", file, "--dim", "m=3", "--plugin", kPlugin}).out == expected);
  CHECK(contains(explained(-100, {}), "the weight has elements of more than 8 bits"));
  CHECK(contains(explained(0, {20}), "the weight's scale is not one number for each column"));
}

TEST_CASE("a rule that needs more than the scratchpad has is refused by the lowering step", "[plugin]") {
  test::Folder folder("accelerator");
  auto model_with = [&](int64_t depth) {
    test::OnnxModel model;
    model.input("x", DType::int_(8), fmt::format("m,{}", depth)).output("y", kInt32);
    model.constant("w", numbers({depth, 16}, DType::int_(8), 3)).node("MatMulInteger", "x w", "y");
    return folder.write("product.onnx", model.proto().SerializeAsString());
  };
  // The left operand is copied once for all columns.
  std::string rule = folder.write("panel.py", R"(
@S.rule("mxu.matmul")
def with_panel(sch):
    product = sch.get_block("mxu.matmul")
    t, i, j, k = sch.get_loops(product)
    a = sch.cache_read(product, 0, "global.mxu")
    sch.compute_at(a, t)
)");
  Outcome large = relaxc_tool({"run", model_with(8192), "--plugin", kPlugin, "--schedules", rule, "--dim", "m=20"});
  INFO(large.err);
  CHECK(large.exit_code == 1);
  CHECK(contains(large.err, "product.onnx"));
  CHECK(contains(large.err, "node 'y'"));
  CHECK(contains(large.err,
                 "'matmul' needs 131072 bytes of the scratchpad up to buffer 'rows_global.mxu', which has 65536"));
  Outcome small = relaxc_tool({"run", model_with(32), "--plugin", kPlugin, "--schedules", rule, "--dim", "m=20"});
  CHECK(contains(small.err, "is in the scratchpad, which only instructions of the matrix unit can access"));
  std::string wrong = test::with_matches_replaced(text_of(kExample + "/mxu.py"), "\"mxu_", "\"my_");
  wrong = test::with_matches_replaced(wrong, "\"user.mxu\": \"clear\"", "\"user.mxu\": \"wipe\"");
  Outcome unknown =
      relaxc_tool({"run", model_with(32), "--plugin", kPlugin, "--schedules", folder.write("w.py", wrong)});
  CHECK(contains(unknown.err, "the matrix unit has no instruction 'wipe'"));
  CHECK(relaxc_tool({"run", model_with(8192), "--plugin", kPlugin, "--dim", "m=20"}).out ==
        relaxc_tool({"run", model_with(8192), "--dim", "m=20"}).out);
}
