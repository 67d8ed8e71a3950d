// relaxc explain on models with nodes that nothing implements: every node has its row.
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::OnnxModel;
using test::Outcome;

namespace {

struct Explained : test::Folder {
  Explained() : Folder("explain") {}
  Outcome explain(OnnxModel& model, const std::string& kernels = "") const {
    for (const onnx::NodeProto& node : model.proto().graph().node()) {
      if (node.domain().empty() || model.proto().opset_import_size() > 1) continue;
      auto* import = model.proto().add_opset_import();
      import->set_domain(node.domain()), import->set_version(1);
    }
    std::vector<std::string> words = {RELAXC_TOOL, "explain", write("model.onnx", model.proto().SerializeAsString())};
    if (!kernels.empty()) words.insert(words.end(), {"--kernels", write("k.py", kernels)});
    return test::run_program(words, 120);
  }
};

// A product with a relu behind it, a node of a custom operator, and a softmax.
OnnxModel with_custom_node(bool is_typed) {
  OnnxModel model;
  model.input("x", kFloat32, "n,24").output("y").constant("w", test::numbers({24, 40}));
  model.node("MatMul", "x w", "h"), model.node("Relu", "h", "r");
  onnx::NodeProto& custom = model.node("FancyGelu", "r", "g");
  custom.set_domain("com.me");
  onnx::AttributeProto& alpha = *custom.add_attribute();
  alpha.set_name("alpha"), alpha.set_type(onnx::AttributeProto::FLOAT), alpha.set_f(1.5f);
  test::set_string(custom, "mode", "fast");
  model.node("Softmax", "g", "y");
  if (!is_typed) return model;
  onnx::ValueInfoProto& info = *model.proto().mutable_graph()->add_value_info();
  info.set_name("g");
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx::TensorProto::FLOAT);
  tensor.mutable_shape()->add_dim()->set_dim_param("n");
  tensor.mutable_shape()->add_dim()->set_dim_value(40);
  return model;
}

// Returns the kernel's head of a report, up to the colon.
std::string head_of(const std::string& report) {
  const std::string title = "begins like this:\n";
  size_t from = report.find(title), to = report.find(": ...\n", from);
  REQUIRE(to != std::string::npos);
  std::string head = "\n" + report.substr(from + title.size(), to + 1 - from - title.size());
  for (size_t at; (at = head.find("\n        ")) != std::string::npos;) head.erase(at + 1, 8);
  return head.substr(1);
}

onnx::TypeProto tensor_of(int dtype, const std::vector<std::string>& dims) {
  onnx::TypeProto type;
  type.mutable_tensor_type()->set_elem_type(dtype);
  auto& shape = *type.mutable_tensor_type()->mutable_shape();
  for (const std::string& dim : dims) shape.add_dim()->set_dim_param(dim);
  return type;
}

const std::string kProductPattern =
    "@S.pattern\ndef product(x, w: S.constant):\n    return R.nn.relu(R.matmul(x, w))\n";

}  // namespace

TEST_CASE("explain lists the nodes around one that nothing implements", "[tools]") {
  Explained folder;
  OnnxModel model = with_custom_node(true);
  Outcome outcome = folder.explain(model, kProductPattern);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 3);
  CHECK(outcome.out == R"(h (MatMul): part of pattern 'product' (at r)
r (Relu): pattern 'product'
g (com.me::FancyGelu): nothing: operator com.me::FancyGelu of opset 1 is not supported; give a kernel for it: --kernels FILE with @S.implements("com.me::FancyGelu")
    a kernel for it, in a file of --kernels, begins like this:
        @S.implements("com.me::FancyGelu", mode="fast")
        @T.prim_func
        def my_kernel(x: T.Buffer(("n", 40), "float32"), alpha: T.float32, y: T.Buffer(("n", 40), "float32")): ...
y (Softmax): built in, as nn.softmax
)");
  // Such a kernel takes the node.
  std::string kernel = head_of(outcome.out) + R"(
    for i, j in T.grid(n, 40):
        with T.block("gelu"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj] * alpha
)";
  outcome = folder.explain(model, kernel);
  INFO(kernel << outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "g (com.me::FancyGelu): kernel 'my_kernel'\n"));
}

TEST_CASE("the head of a kernel can be pasted whatever the names of attributes and dims are", "[tools]") {
  Explained folder;
  OnnxModel model;
  model.input("a", kFloat32, "n,T").output("b");
  *model.proto().mutable_graph()->mutable_output(0)->mutable_type() = tensor_of(onnx::TensorProto::FLOAT, {"n", "T"});
  onnx::NodeProto& node = model.node("Odd", "a", "b");
  node.set_domain("com.me");
  for (const char* name : {"x", "y", "n", "T", "S", "lambda", "where"}) test::set_int(node, name, 3);
  test::set_ints(node, "list", {1, 2});
  test::set_string(node, "mode", "a \"b\"");
  onnx::AttributeProto& names = *node.add_attribute();
  names.set_name("names"), names.set_type(onnx::AttributeProto::STRINGS);
  names.add_strings("p"), names.add_strings("q");
  onnx::AttributeProto& table = *node.add_attribute();
  table.set_name("table"), table.set_type(onnx::AttributeProto::TENSOR);
  table.mutable_t()->set_data_type(onnx::TensorProto::FLOAT), table.mutable_t()->add_dims(2);
  table.mutable_t()->add_float_data(1), table.mutable_t()->add_float_data(2);
  Outcome outcome = folder.explain(model);
  INFO(outcome.out << outcome.err);
  const std::string head = head_of(outcome.out);
  CHECK(head == R"(# a kernel cannot read or name the attribute "lambda", which is 3
@S.implements("com.me::Odd", T=3, S=3, mode="a \"b\"", names=["p", "q"])
@T.prim_func
def my_kernel(x_1: T.Buffer(("n_1", "T_2"), "float32"), x: T.int64, y: T.int64, n: T.int64, where: T.int64, list_0: T.int64, list_1: T.int64, table: T.Buffer((2,), "float32"), y_1: T.Buffer(("n_1", "T_2"), "float32")):)");
  outcome = folder.explain(model, head + R"(
    for i, j in T.grid(n_1, T_2):
        with T.block("odd"):
            vi, vj = T.axis.remap("SS", [i, j])
            y_1[vi, vj] = x_1[vi, vj] * table[1] + T.Cast("float32", x + y + n + where + list_0 + list_1)
)");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "b (com.me::Odd): kernel 'my_kernel'\n"));
}

TEST_CASE("the head of a kernel knows scalars, strings and dims that do not follow", "[tools]") {
  Explained folder;
  auto explained = [&](DType input, const onnx::TypeProto& result) {
    OnnxModel model;
    model.input("a", input, "n").output("b");
    *model.proto().mutable_graph()->mutable_output(0)->mutable_type() = result;
    model.node("Odd", "a", "b").set_domain("com.me");
    return folder.explain(model).out;
  };
  CHECK(contains(explained(kFloat32, tensor_of(onnx::TensorProto::FLOAT, {})),
                 "def my_kernel(x: T.Buffer((\"n\",), \"float32\"), y: T.Buffer((), \"float32\")): ...\n"));
  CHECK(
      contains(explained(kFloat32, tensor_of(onnx::TensorProto::FLOAT, {"m"})),
               "        # the dim \"m\" of result 0 does not follow from the inputs: @S.shape(\"my_kernel\") computes "
               "it\n        @S.implements(\"com.me::Odd\")\n"));
  const std::string strings = explained(DType::string(), tensor_of(onnx::TensorProto::FLOAT, {"n"}));
  CHECK(contains(strings, "; but input 0 is of strings, which kernels do not take\n"));
  CHECK(!contains(strings, "begins like this"));
}

TEST_CASE("explain gives the result of a function in which a node fails the type that its caller declares", "[tools]") {
  Explained folder;
  auto explained = [&](bool declares) {
    OnnxModel model;
    model.input("x", kFloat32, "n,24").output("y");
    for (const char* name : {"com.me", "loc"}) {
      auto* import = model.proto().add_opset_import();
      import->set_domain(name), import->set_version(1);
    }
    onnx::FunctionProto& function = *model.proto().add_functions();
    function.set_name("Block"), function.set_domain("loc"), function.add_input("i"), function.add_output("o");
    for (const auto& import : model.proto().opset_import()) *function.add_opset_import() = import;
    onnx::NodeProto &odd = *function.add_node(), &relu = *function.add_node();
    odd.set_op_type("Odd"), odd.set_domain("com.me"), odd.add_input("i"), odd.add_output("t"), odd.set_name("odd");
    relu.set_op_type("Relu"), relu.add_input("t"), relu.add_output("o"), relu.set_name("relu");
    model.node("Block", "x", "a").set_domain("loc"), model.node("Block", "a", "b").set_domain("loc");
    model.node("Softmax", "b", "y");
    for (const char* name : {"a", "b"}) {
      if (!declares) continue;
      onnx::ValueInfoProto& info = *model.proto().mutable_graph()->add_value_info();
      info.set_name(name), *info.mutable_type() = tensor_of(onnx::TensorProto::FLOAT, {"n", "k"});
    }
    Outcome outcome = folder.explain(model);
    CHECK(outcome.exit_code == 3);
    return outcome.out;
  };
  const std::string out = explained(true);
  INFO(out);
  CHECK(contains(out, "b (loc::Block): the nodes in it\nb/odd (com.me::Odd): nothing: operator com.me::Odd"));
  CHECK(contains(out,
                 "b/relu (Relu): nothing: the type of its input 't' is not known: nothing implements node "
                 "'b/odd', and the model does not declare it\n"));
  CHECK(contains(out, "y (Softmax): built in, as nn.softmax\n"));
  const std::string open = explained(false);
  INFO(open);
  CHECK(contains(open,
                 "b (loc::Block): nothing: the type of its input 'a' is not known: nothing implements node "
                 "'a/relu', and the model does not declare it\n"));
}

TEST_CASE("explain says which condition of a kernel leaves a node to nobody", "[tools]") {
  Explained folder;
  OnnxModel model = with_custom_node(true);
  Outcome outcome = folder.explain(model, R"(@S.implements("com.me::FancyGelu")
@S.extern("c_gelu")
def narrow(x: T.Buffer(("n", 25), "float32"), y: T.Buffer(("n", 25), "float32")): ...
)");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 3);
  CHECK(contains(outcome.out,
                 "g (com.me::FancyGelu): nothing: operator com.me::FancyGelu of opset 1 is not supported; "
                 "kernel 'narrow' does not fit: "));
  CHECK(!contains(outcome.out, "begins like this"));
  CHECK(contains(outcome.out, "y (Softmax): built in, as nn.softmax\n"));
}

TEST_CASE("explain says why the type of a value is not known", "[tools]") {
  Explained folder;
  OnnxModel model = with_custom_node(false);
  Outcome outcome = folder.explain(model);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 3);
  CHECK(contains(outcome.out, "h (MatMul): built in, as matmul\nr (Relu): built in, as nn.relu\n"));
  CHECK(contains(outcome.out, "alpha: T.float32, y: T.Buffer((...), ...)): ...\n"));
  CHECK(contains(outcome.out,
                 "y (Softmax): nothing: the type of its input 'g' is not known: nothing implements node "
                 "'g', and the model does not declare it\n"));
}

TEST_CASE("explain goes on behind a node that is wrong, and in the branches of one", "[tools]") {
  Explained folder;
  OnnxModel wrong;
  wrong.input("x", kFloat32, "n,24").output("y").output("z");
  test::set_int(wrong.node("Softmax", "x", "s"), "axis", 7);
  wrong.node("Relu", "s", "y"), wrong.node("Neg", "x", "z");
  Outcome outcome = folder.explain(wrong);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out, "s (Softmax): nothing: axis is 7, expected -2 to 1\ny (Relu): nothing: the type of "));
  CHECK(contains(outcome.out, "z (Neg): built in, as negative\n"));

  OnnxModel model;
  model.input("c", kBool, "").input("x", kFloat32, "n,24").output("y");
  onnx::NodeProto& node = model.node("If", "c", "z");
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& branch = *node.add_attribute();
    branch.set_name(name), branch.set_type(onnx::AttributeProto::GRAPH);
    onnx::NodeProto& relu = *branch.mutable_g()->add_node();
    relu.set_op_type("Relu"), relu.add_input("x"), relu.add_output("r");
    onnx::NodeProto& odd = *branch.mutable_g()->add_node();
    odd.set_op_type("Odd"), odd.set_domain("com.me"), odd.add_input("r"), odd.add_output("o");
    branch.mutable_g()->add_output()->set_name("o");
  }
  model.node("Neg", "z", "y");
  outcome = folder.explain(model);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 3);
  CHECK(contains(outcome.out, "z (If): nothing: the types of values in it are not known\n"));
  CHECK(contains(outcome.out, "z/then_branch/Odd_1 (com.me::Odd): nothing: operator com.me::Odd is not supported"));
  CHECK(contains(outcome.out, "z/then_branch/Relu_0 (Relu): not known, because nothing implements 'z' around it\n"));
  CHECK(contains(outcome.out, "y (Neg): nothing: the type of its input 'z' is not known: nothing implements node 'z'"));
}

namespace {

// A 3x3 convolution with a relu behind it.
OnnxModel convolution(int64_t channels, int64_t stride) {
  OnnxModel model;
  model.input("x", kFloat32, fmt::format("1,{},28,28", channels)).output("y");
  model.constant("w", test::numbers({channels, channels, 3, 3}));
  onnx::NodeProto& conv = model.node("Conv", "x w", "c");
  test::set_ints(conv, "pads", {1, 1, 1, 1}), test::set_ints(conv, "strides", {stride, stride});
  model.node("Relu", "c", "y");
  return model;
}

const std::string kOwnRelu = R"(@S.implements("nn.relu")
@T.prim_func
def own(x: T.Buffer(("n", "c", "h", "w"), "float32"), y: T.Buffer(("n", "c", "h", "w"), "float32")):
    for i, j, k, l in T.grid(n, c, h, w):
        with T.block("y"):
            vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
            y[vi, vj, vk, vl] = T.max(x[vi, vj, vk, vl], T.float32(0))
)";

}  // namespace

TEST_CASE("explain says why a kernel does not follow a convolution into blocks of channels", "[tools]") {
  Explained folder;
  OnnxModel model = convolution(32, 2);
  CHECK(folder.explain(model, kOwnRelu).out == "c (Conv): built in, as nn.conv2d\ny (Relu): kernel 'own'\n");
  std::string flipped = kOwnRelu;
  flipped.replace(flipped.find("T.max(x[vi, vj, vk, vl]"), 23, "T.max(x[vi, vj, vl, vk]");
  Outcome outcome = folder.explain(model, flipped);
  INFO(outcome.out << outcome.err);
  CHECK(!test::matches(outcome.out,
                       "kernel 'own': it reads the image in the plain order and is not fused with what makes "
                       "it in blocks of \\d+ channels: it reads other elements of 'x' than the one that it "
                       "stores; S.use\\(.image_layout., block=0\\)")
             .empty());
  CHECK(contains(
      folder.explain(model, kOwnRelu + "\n@S.schedule(\"own\")\ndef s(sch):\n    sch.get_loops(\"own\")\n").out,
      " channels: a schedule or rule is for it; "));
}

TEST_CASE("a kernel of several blocks and results, of any dtypes, follows a convolution into blocks of channels",
          "[tools]") {
  Explained folder;
  OnnxModel model;
  model.input("x", kFloat32, "n,32,28,28").output("y").output("s", kBool);
  model.constant("w", test::numbers({32, 32, 3, 3}));
  auto conv = [&](const char* in, const char* out) {
    test::set_ints(model.node("Conv", std::string(in) + " w", out), "strides", {2, 2});
  };
  conv("x", "c");
  model.node("Halved", "c", "s h").set_domain("com.me");
  conv("h", "y");
  const std::string kernel = R"(@S.implements("com.me::Halved")
@T.prim_func
def halved(x: T.Buffer(("n", "c", "h", "w"), "float32"), s: T.Buffer(("n", "c", "h", "w"), "bool"), y: T.Buffer(("n", "c", "h", "w"), "float32")):
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
  Outcome outcome = folder.explain(model, kernel);
  INFO(outcome.out << outcome.err);
  CHECK(contains(outcome.out, "s (com.me::Halved): kernel 'halved'\n"));
  CHECK(!contains(outcome.out, "plain order"));
  // The second convolution reads what the kernel stores, in blocks of this machine's vectors.
  const std::string graph = test::run_program({RELAXC_TOOL, "compile", folder.at("model.onnx"), "--kernels",
                                               folder.at("k.py"), "--emit=graph", "--stop-after=choose_layouts"},
                                              120)
                                .out;
  INFO(graph);
  CHECK(!test::matches(graph, "(\\w+): R.Tensor\\(\\(n, \\d+, 13, 13, \\d+\\), dtype=\"float32\"\\) = \\w+\\[1\\]")
             .empty());
  std::string flipped = kernel;
  flipped.replace(flipped.rfind("t[vi, vj, vk, vl]"), 17, "t[vi, vj, vl, vk]");
  outcome = folder.explain(model, flipped);
  INFO(outcome.out);
  CHECK(contains(outcome.out, "it reads other elements of 't' than the one that it stores"));
}

TEST_CASE("a chain of blocks is computed in a tile, and explain says of other blocks that they are not", "[tools]") {
  Explained folder;
  OnnxModel model;
  model.input("x", kFloat32, "n,24").output("y").constant("w", test::numbers({24, 40}));
  model.node("MatMul", "x w", "h"), model.node("Relu", "h", "y");
  const std::string kernel = R"(@S.implements("nn.relu")
@T.prim_func
def own(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    t = T.alloc_buffer((n, m))
    for i, j in T.grid(n, m):
        with T.block("t"):
            vi, vj = T.axis.remap("SS", [i, j])
            t[vi, vj] = x[vi, vj] * T.float32(0.5)
    for i, j in T.grid(n, m):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.max(x[vi, vj], T.float32(0)) + T.float32(0) * t[vi, vj]
)";
  const std::string chain = folder.explain(model, kernel).out;
  INFO(chain);
  CHECK(chain == "h (MatMul): built in, as matmul\ny (Relu): kernel 'own'\n");
  auto compiled = [&] {
    return test::run_program(
               {RELAXC_TOOL, "compile", folder.at("model.onnx"), "--kernels", folder.at("k.py"), "--emit=loops"}, 120)
        .out;
  };
  const std::string loops = compiled();
  INFO(loops);
  CHECK(contains(loops, "fused_matmul_own("));
  CHECK_FALSE(contains(loops, "block t "));
  const std::vector<std::string> run = {RELAXC_TOOL, "run", folder.at("model.onnx"), "--dim", "n=9"};
  std::vector<std::string> with_kernel = run;
  with_kernel.insert(with_kernel.end(), {"--kernels", folder.at("k.py")});
  CHECK(test::run_program(with_kernel, 120).out == test::run_program(run, 120).out);
  const std::string first = test::with_matches_replaced(kernel, "\\* t\\[vi, vj\\]", "* t[vi, 0]");
  const std::string outcome = folder.explain(model, first).out;
  INFO(outcome);
  CHECK(contains(outcome, "kernel 'own' is not computed in the tile of a convolution or product before it"));
  CHECK_FALSE(contains(compiled(), "fused_matmul_own("));
  CHECK(test::run_program(with_kernel, 120).out == test::run_program(run, 120).out);
}

TEST_CASE("explain says that a rule is skipped where Winograd's algorithm is chosen", "[tools]") {
  Explained folder;
  OnnxModel model = convolution(64, 1);
  const std::string rule =
      "@S.rule(\"nn.conv2d\")\ndef mine(sch):\n    sch.get_consumers(sch.get_block(\"conv2d_nchw\"))[0]\n";
  const char* skipped =
      "    rule 'mine' does not: skipped: the graph chose Winograd's algorithm for this convolution; "
      "S.use(\"convolution_algorithm\", at=\"c\", algorithm=\"direct\") or --winograd-error 0 keeps it\n";
  CHECK(contains(folder.explain(model, rule).out, skipped));
  CHECK(contains(folder.explain(model, rule).err,
                 "schedule rule 'mine' is not tried on c: the graph chose Winograd's algorithm there"));
  CHECK(!contains(folder.explain(model, rule + "\nS.use(\"convolution_algorithm\", algorithm=\"direct\")\n").out,
                  "skipped"));
}

TEST_CASE("a kernel that takes nodes with attributes of which it knows nothing gets one warning", "[tools]") {
  Explained folder;
  OnnxModel model = with_custom_node(true);
  auto kernel = [](const std::string& conditions, const std::string& param) {
    return "@S.implements(\"com.me::FancyGelu\"" + conditions +
           ")\n@T.prim_func\ndef plain(x: T.Buffer((\"n\", \"m\"), \"float32\")" + param +
           ", y: T.Buffer((\"n\", \"m\"), \"float32\")):\n    for i, j in T.grid(n, m):\n"
           "        with T.block(\"y\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
           "            y[vi, vj] = x[vi, vj]\n";
  };
  Outcome outcome = folder.explain(model, kernel("", ""));
  CHECK(contains(outcome.err,
                 "node 'g' (com.me::FancyGelu): warning: kernel 'plain' takes the node, although it neither "
                 "reads nor names: alpha=1.5, mode="));
  CHECK(contains(outcome.out, "    kernel 'plain': it neither reads nor names: alpha=1.5, mode="));
  outcome = folder.explain(model, kernel(", mode=\"fast\"", ", alpha: T.float32"));
  INFO(outcome.out << outcome.err);
  CHECK(contains(outcome.out, "g (com.me::FancyGelu): kernel 'plain'\n"));
  CHECK(outcome.err.empty());
}

TEST_CASE("explain says that no backend takes a function", "[tools]") {
  Explained folder;
  std::string text = folder.write("m.py", R"(
@I.ir_module
class Module:
    @R.function(private=True)
    def part(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Codegen": "nobody"})
        y = R.nn.relu(x)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y: R.Tensor((4,), "float32") = cls.part(x)
        z = R.exp(y)
        return z
)");
  Outcome outcome = test::run_program({RELAXC_TOOL, "explain", text}, 120);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 3);
  CHECK(contains(outcome.out,
                 "line 7 (nn.relu): nothing: a function of 'part' is for the backend 'nobody', and there "
                 "are no backends; give it with --backend FILE.so"));
  CHECK(contains(outcome.out, "(exp): built in, as exp\n"));
}

TEST_CASE("explain names all operators of a line of a text", "[tools]") {
  Explained folder;
  std::string text = folder.write("m.py", R"(
@R.function
def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4,), "float32")):
    with R.dataflow():
        y = R.nn.relu(R.add(R.multiply(x, w), w))
        R.output(y)
    return y
)");
  std::string kernels = folder.write("k.py",
                                     "@S.pattern\ndef affine(x, w, b):\n"
                                     "    return R.nn.relu(R.multiply(x, w) + b)\n");
  std::vector<std::string> words = {RELAXC_TOOL, "explain", text};
  CHECK(test::run_program(words, 120).out == "line 5 (multiply, add, nn.relu): built in, as multiply, add, nn.relu\n");
  words.insert(words.end(), {"--kernels", kernels});
  Outcome outcome = test::run_program(words, 120);
  INFO(outcome.out);
  CHECK(contains(outcome.out, "): pattern 'affine'\n"));
  for (const char* op : {"multiply", "add", "nn.relu"}) CHECK(contains(outcome.out, op));
}
