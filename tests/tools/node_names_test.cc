// Names of nodes in subgraphs and in functions of a model: explain, profiles, errors and the node= of kernels have one
// form of them.
#include <fmt/format.h>

#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/frontend/onnx_text.h"
#include "tests/patterns.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;

namespace {

// A loop in a loop, both branches of an If, and two calls without a name of a function that calls another.
constexpr const char* kNested = R"(
<ir_version: 10, opset_import: ["": 18, "com.me": 1, "loc": 1]>
nested (float[4, 8] x, int64 n, bool b) => (float[4, 8] y) {
  two = Constant <value = int64 {2}> ()
  true_ = Constant <value = bool {1}> ()
  outer = Loop (n, true_, x) <body = outer_body (int64 i, bool c, float[4, 8] p) => (bool c1, float[4, 8] inner) {
    odd = com.me.Odd (p)
    inner = Loop (two, true_, odd) <body = inner_body (int64 j, bool d, float[4, 8] q) => (bool d1, float[4, 8] deep) {
      deep = com.me.Odd (q)
      d1 = Identity (d)
    }>
    c1 = Identity (c)
  }>
  f = loc.Outer (outer)
  g = loc.Outer (f)
  y = If (b) <then_branch = first () => (float[4, 8] then_odd) { then_odd = com.me.Odd (g) },
              else_branch = second () => (float[4, 8] else_odd) { else_odd = com.me.Odd (g) }>
}
<opset_import: ["": 18, "com.me": 1, "loc": 1], domain: "loc">
Outer (r) => (t) {
  s = com.me.Odd (r)
  t = loc.Inner (s)
}
<opset_import: ["": 18, "com.me": 1], domain: "loc">
Inner (u) => (w) {
  v = com.me.Odd (u)
  w = Relu (v)
}
)";

struct NodeNames : test::Folder {
  NodeNames() : Folder("node_names") {}
  Outcome tool(const std::string& command, const onnx::ModelProto& model, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {RELAXC_TOOL, command, write("m.onnx", model.SerializeAsString())};
    words.insert(words.end(), more.begin(), more.end());
    return test::run_program(words, 120);
  }
};

onnx::ModelProto nested() {
  onnx::ModelProto model = test::read_onnx_text(kNested, "nested");
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    if (node.op_type() == "Outer") node.clear_name();
  }
  return model;
}

// Returns a kernel of com.me::Odd under the name, for what `implements` says.
std::string odd(const std::string& name, const std::string& implements) {
  return fmt::format(R"(@S.implements({})
@T.prim_func
def {}(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    for i, j in T.grid(n, m):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj] + T.float32(1)
)",
                     implements, name);
}

constexpr const char* kNames[] = {"outer/odd", "outer/inner/deep", "Outer_3/s",  "Outer_3/t/v",
                                  "Outer_4/s", "Outer_4/t/v",      "y/then_odd", "y/else_odd"};

}  // namespace

TEST_CASE("explain, profiles and errors name a node behind the node that holds it or calls its function", "[tools]") {
  NodeNames folder;
  const onnx::ModelProto model = nested();
  const std::string kernels = folder.write("k.py", odd("odd", "\"com.me::Odd\""));
  const std::string out = folder.tool("explain", model, {"--kernels", kernels}).out;
  INFO(out);
  for (const char* name : kNames) CHECK(contains(out, fmt::format("\n{} (com.me::Odd): kernel 'odd'\n", name)));
  CHECK(contains(out, "\nOuter_3 (loc::Outer): the nodes in it\n"));
  CHECK(contains(out, "\nouter/inner (Loop): built in, as "));
  const std::string profile = folder.tool("run", model, {"--kernels", kernels, "--input", "n=2", "--profile"}).out;
  INFO(profile);
  CHECK(contains(profile, "odd / outer/odd\n"));
  CHECK(contains(profile, "loop_of_odd / outer/inner, outer/inner/deep\n"));
  CHECK(contains(profile, "Outer_3/s, Outer_3/t/v"));
  for (const char* command : {"run", "inspect"}) {
    Outcome failed = folder.tool(command, model);
    INFO(failed.out << failed.err);
    CHECK(contains(failed.out + failed.err, "node 'outer/odd' (com.me::Odd): unsupported: operator com.me::Odd"));
  }
}

TEST_CASE("a kernel takes a node of a subgraph or function by its name", "[tools]") {
  NodeNames folder;
  const onnx::ModelProto model = nested();
  const std::string all = folder.write("all.py", odd("all", "\"com.me::Odd\""));
  for (const char* name : kNames) {
    const std::string one = folder.write("one.py", odd("one", fmt::format("node=\"{}\"", name)));
    Outcome outcome = folder.tool("explain", model, {"--kernels", one, "--kernels", all});
    INFO(name << outcome.out << outcome.err);
    CHECK(contains(outcome.out, fmt::format("\n{} (com.me::Odd): kernel 'one'\n", name)));
    CHECK(!contains(outcome.err, "used nowhere"));
  }
  // Viewers of models show the last part of the name.
  const std::string part = folder.write("one.py", odd("one", "node=\"deep\""));
  CHECK(contains(folder.tool("explain", model, {"--kernels", part, "--kernels", all}).err,
                 "kernel 'one' is used nowhere: the model has no node 'deep'; did you mean 'outer/inner/deep'?"));
}

TEST_CASE("nodes without a name in the branches of an If have different names", "[tools]") {
  NodeNames folder;
  onnx::ModelProto model = nested();
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    if (node.op_type() != "If") continue;
    for (onnx::AttributeProto& branch : *node.mutable_attribute()) branch.mutable_g()->mutable_node(0)->clear_name();
  }
  const std::string all = folder.write("all.py", odd("all", "\"com.me::Odd\"")),
                    one = folder.write("one.py", odd("one", "node=\"y/else_branch/Odd_0\""));
  const std::string out = folder.tool("explain", model, {"--kernels", one, "--kernels", all}).out;
  INFO(out);
  CHECK(contains(out, "\ny/then_branch/Odd_0 (com.me::Odd): kernel 'all'\n"));
  CHECK(contains(out, "\ny/else_branch/Odd_0 (com.me::Odd): kernel 'one'\n"));
}

TEST_CASE("a condition on an attribute holds for a node that leaves out the default", "[tools]") {
  NodeNames folder;
  std::string kernels = folder.write("k.py", odd("mine", "\"ai.onnx::Softmax\", axis=-1"));
  auto explained = [&](int opset, const char* attributes) {
    const std::string text = fmt::format(
        "<ir_version: 8, opset_import: [\"\": {}]>\ns (float[4, 8] x) => (float[4, 8] y) {{\n"
        "  y = Softmax{} (x)\n}}\n",
        opset, attributes);
    return folder.tool("explain", test::read_onnx_text(text, "softmax"), {"--kernels", kernels}).out;
  };
  const char* takes = "y (Softmax): kernel 'mine'\n";
  CHECK(contains(explained(13, ""), takes));
  CHECK(contains(explained(13, " <axis = -1>"), takes));
  CHECK(!contains(explained(13, " <axis = 0>"), takes));
  CHECK(contains(explained(11, ""), takes));  // the default was 1, which is the last axis here
  kernels = folder.write("k.py", odd("mine", "\"ai.onnx::Softmax\", other=3"));
  CHECK(contains(explained(13, ""), "kernel 'mine' does not: attribute other is absent, expected 3"));
}

TEST_CASE("a rule for an operator takes the one of a node in a branch or a loop", "[tools]") {
  NodeNames folder;
  const onnx::ModelProto model = test::read_onnx_text(R"(
<ir_version: 8, opset_import: ["": 18]>
branches (float[4, 8] x, bool b, int64 n) => (float[4, 8] y, float[4, 8] z) {
  true_ = Constant <value = bool {1}> ()
  y = If (b) <then_branch = first () => (float[4, 8] left) { left = Softmax (x) },
              else_branch = second () => (float[4, 8] right) { right = Softmax (x) }>
  z = Loop (n, true_, x) <body = body (int64 i, bool c, float[4, 8] p) => (bool c1, float[4, 8] soft) {
    soft = Softmax (p)
    c1 = Identity (c)
  }>
}
)",
                                                      "branches");
  for (const char* name : {"y/left", "y/right", "z/soft"}) {
    const std::string rule = folder.write("k.py", odd("mine", fmt::format("\"nn.softmax\", node=\"{}\"", name)));
    Outcome outcome = folder.tool("explain", model, {"--kernels", rule});
    INFO(outcome.out << outcome.err);
    CHECK(contains(outcome.out, fmt::format("{} (Softmax): kernel 'mine'\n", name)));
    CHECK(outcome.out.find("kernel 'mine'") == outcome.out.rfind("kernel 'mine'"));
  }
  const std::string rule = folder.write("k.py", odd("mine", "\"nn.softmax\", node=\"soft\""));
  CHECK(contains(folder.tool("explain", model, {"--kernels", rule}).err, "at 'soft'; did you mean 'z/soft'?"));
}

namespace {

// A call of a function whose first node nobody implements. `declared` is the type that the function states for it.
onnx::ModelProto with_function(const std::optional<std::vector<int64_t>>& declared, const char* first) {
  onnx::ModelProto model = test::read_onnx_text(fmt::format(R"(
<ir_version: 10, opset_import: ["": 18, "com.me": 1, "loc": 1]>
called (float[4, 8] x) => (float[4, 8] y) {{ y = loc.Block (x) }}
<opset_import: ["": 18, "com.me": 1], domain: "loc">
Block (r) => (t) {{
  s = {} (r)
  t = Relu (s)
}}
)",
                                                            first),
                                                "called");
  if (!declared) return model;
  onnx::ValueInfoProto info;
  info.set_name("s");
  info.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  auto& shape = *info.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int64_t dim : *declared) shape.add_dim()->set_dim_value(dim);
  // FunctionProto.value_info, which ONNX 1.12 does not have.
  onnx::FunctionProto& function = *model.mutable_functions(0);
  function.GetReflection()->MutableUnknownFields(&function)->AddLengthDelimited(12, info.SerializeAsString());
  return model;
}

}  // namespace

TEST_CASE("a function declares types of values for what nobody implements in it, and wrong ones are told", "[tools]") {
  NodeNames folder;
  const std::string open = folder.tool("explain", with_function(std::nullopt, "com.me.Odd")).out;
  INFO(open);
  CHECK(contains(open, "y/t (Relu): nothing: the type of its input 's' is not known"));
  CHECK(contains(open, "y: T.Buffer((...), ...)"));
  const std::string known = folder.tool("explain", with_function({{4, 8}}, "com.me.Odd")).out;
  INFO(known);
  CHECK(contains(known, "def my_kernel(x: T.Buffer((4, 8), \"float32\"), y: T.Buffer((4, 8), \"float32\")): ...\n"));
  CHECK(contains(known, "y/t (Relu): built in, as nn.relu\n"));
  CHECK(folder.tool("explain", with_function({{4, 8}}, "Neg")).err.empty());
  CHECK(contains(folder.tool("explain", with_function({{4, 9}}, "Neg")).err,
                 "value 'y/s': warning: dim 1 is declared as 9, but the graph computes 8"));
}

TEST_CASE("a convolution that takes in its normalization keeps its name", "[tools]") {
  NodeNames folder;
  test::OnnxModel model;
  model.input("x", kFloat32, "1,3,8,8").output("y").constant("w", test::numbers({4, 3, 3, 3}));
  for (const char* name : {"scale", "shift", "mean", "variance"}) model.constant(name, test::numbers({4}));
  model.node("Conv", "x w", "c").set_name("/block/Conv");
  model.node("BatchNormalization", "c scale shift mean variance", "n").set_name("/block/Norm");
  model.node("Relu", "n", "y").set_name("/block/Relu");
  const Outcome run = folder.tool("run", model.proto(), {"--profile"});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.out, "/block/Conv, /block/Norm, /block/Relu"));
}
