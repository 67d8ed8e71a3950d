// relaxc reduce: each kind of failure, and a model that does not fail.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "frontend/onnx/reduce.h"
#include "frontend/onnx/test_data.h"
#include "support/joined.h"
#include "tests/frontend/onnx_model.h"
#include "tests/frontend/onnx_text.h"
#include "tests/patterns.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::OnnxModel;
namespace fs = std::filesystem;

namespace {

// Six layers; the operator stands behind the fourth.
struct ReduceFolder {
  fs::path path = fs::temp_directory_path() / fmt::format("relaxc_reduce_test_{}", getpid());
  ReduceFolder() { fs::create_directories(path); }
  ~ReduceFolder() { fs::remove_all(path); }
  std::string at(const std::string& name) const { return (path / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name), std::ios::binary) << text;
    return at(name);
  }
  std::string write_text(const std::string& model) const {
    return write("model.onnx", test::read_onnx_text(model, "model").SerializeAsString());
  }
  // Writes a command for --reference: relaxc without the flags of the runs.
  std::string write_reference() const {
    return write("reference.sh",
                 "cd \"$1\" && set -- && for f in test_data_set_0/input_*.pb; do "
                 "set -- \"$@\" \"$f\"; done && " RELAXC_TOOL
                 " run model.onnx --input-pb \"$@\" --output-dir test_data_set_0 --format pb\n");
  }
  std::string layers(const std::string& op, const std::string& domain = "") const {
    OnnxModel model;
    model.input("x", kFloat32, "n,8").constant("w", test::numbers({8, 8}));
    std::string last = "x";
    for (int i = 0; i < 6; ++i) {
      std::string name = fmt::format("h{}", i);
      model.node("MatMul", last + " w", "m" + name), model.node("Tanh", "m" + name, name);
      last = name;
      if (i != 3) continue;
      model.node(op, last, "special").set_domain(domain);
      last = "special";
    }
    model.node("Softmax", last, "y");
    model.output("y").output("h1");
    if (!domain.empty()) {
      auto* import = model.proto().add_opset_import();
      import->set_domain(domain), import->set_version(1);
    }
    return write("model.onnx", model.proto().SerializeAsString());
  }
  test::Outcome reduce(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {RELAXC_TOOL, "reduce", at("model.onnx"), "-o", at("small")});
    return test::run_program(flags, 300);
  }
  std::string what_is_left() const { return print_onnx(read_model_case(at("small/model.onnx"))); }
};

const char* const kWrongSine = R"(
@S.implements("sin")
@T.prim_func
def my_sine(x: T.Buffer(("n", 8), "float32"), y: T.Buffer(("n", 8), "float32")):
    for i, j in T.grid(n, 8):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj] + T.float32(2)
)";

}  // namespace

TEST_CASE("reduce finds the operator that is not supported", "[tools]") {
  ReduceFolder folder;
  folder.layers("FancyOp", "com.me");
  test::Outcome outcome = folder.reduce({});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "FancyOp(h3)"));
  CHECK(contains(outcome.out, "relaxc run " + folder.at("small") + "/model.onnx repeats it"));
  CHECK(!test::matches(folder.what_is_left(),
                       "^  input h3: float32\\[1, 1\\]\n  special = FancyOp\\(h3\\)\n"
                       "  outputs special\n$")
             .empty());
}

TEST_CASE("reduce finds a wrong result by another program, by test data, and keeps symbolic dims that matter",
          "[tools]") {
  ReduceFolder folder;
  folder.layers("Sin");
  std::string flag = "--run-flag=--kernels=" + folder.write("wrong.py", kWrongSine);
  std::string tool = RELAXC_TOOL;
  // What computes the right results has other flags.
  std::string script = folder.write_reference();
  test::Outcome outcome = folder.reduce({"--reference", "sh " + script + " {}", flag});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "wrong result: special"));
  CHECK(contains(folder.what_is_left(), "  special = Sin(h3)\n  outputs special\n"));
  CHECK(contains(folder.what_is_left(), "8]\n"));  // the kernel is for rows of 8
  test::Outcome again = test::run_program(
      {tool, "run", folder.at("small/model.onnx"), "--test-data", folder.at("small/test_data_set_0"), flag.substr(11)},
      60);
  CHECK(again.exit_code == 1);
  CHECK(contains(again.err, "wrong result: special"));

  // The results of the small model as test data of the large one: the output stays.
  fs::rename(folder.at("small/model.onnx"), folder.at("model.onnx"));
  fs::rename(folder.at("small/test_data_set_0"), folder.at("data"));
  outcome = folder.reduce({"--reference", folder.at("data"), flag});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(folder.what_is_left(), "  special = Sin(h3)\n  outputs special\n"));
  CHECK(folder.reduce({"--reference", folder.at("data")}).exit_code == 1);
}

TEST_CASE("reduce asks a command, and says when a model does not fail", "[tools]") {
  ReduceFolder folder;
  folder.layers("Sin");
  test::Outcome outcome = folder.reduce({"--test", "grep -q Sin {}"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(folder.what_is_left(), "  special = Sin(h3)\n  outputs special\n"));

  outcome = folder.reduce({"--test", "grep -q Cos {}"});
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.err, "does not fail: the command of --test does not exit with 0"));
  outcome = folder.reduce({});
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.err, "does not fail: it runs, and its results agree with those of the interpreter"));
  CHECK(contains(outcome.err, "--reference and --test say what a failure is"));
  outcome = folder.reduce({"--message", "no such text"});
  CHECK(contains(outcome.err, "has no error that contains the text of --message"));
  outcome = folder.reduce({"--reference", folder.at("nowhere")});
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.err, "neither a folder with output_0.pb nor a command with {}"));
}

TEST_CASE("reduce cuts attributes, constants, branches and dims of run-time errors", "[tools]") {
  ReduceFolder folder;
  OnnxModel model;
  model.input("x", kFloat32, "n,12").input("flag", kBool, "").input("at", kInt64, "k").output("y");
  model.constant("w", test::numbers({12, 12})).constant("one", test::numbers({1}));
  model.node("MatMul", "x w", "a"), model.node("Softmax", "a", "b");
  onnx::NodeProto& node = model.node("If", "flag", "c");
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& branch = *node.add_attribute();
    branch.set_name(name), branch.set_type(onnx::AttributeProto::GRAPH);
    onnx::NodeProto& inner = *branch.mutable_g()->add_node();
    inner.set_op_type("Relu"), inner.add_input("b"), inner.add_output(std::string("r") + name);
    branch.mutable_g()->set_name(name);
    branch.mutable_g()->add_output()->set_name(inner.output(0));
  }
  test::set_int(model.node("Gather", "c at", "d"), "axis", 1);
  model.node("Mul", "d one", "y");
  folder.write("model.onnx", model.proto().SerializeAsString());
  test::Outcome outcome = folder.reduce({"--input", "at=[3, 400]", "--input", "flag=True", "--message", "indices["});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "a default for attribute axis"));
  CHECK(!test::matches(folder.what_is_left(),
                       "^  input at: int64\\[[12]\\]\n  input c: float32\\[1, 1\\]\n"
                       "  d = Gather\\(c, at\\)\n  outputs d\n$")
             .empty());
}

TEST_CASE("reduce keeps the dims open that a failure needs", "[tools]") {
  ReduceFolder folder;
  // The run compiles again for the dims of its inputs, which tell the rank.
  folder.write_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    open_dims (float[n, 8] x, int64[k] s) => (float[] y) {
      a = Tanh (x)
      b = Concat <axis = 0> (a, a)
      c = Exp (b)
      d = Reshape (c, s)
      y = Softmax (d)
    })");
  test::Outcome outcome = folder.reduce({"--dim", "n=2", "--input", "s=[8, 4]"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "error for all shapes: model.onnx: node 'd' (Reshape): unsupported"));
  CHECK(!test::matches(folder.what_is_left(),
                       "^  input s: int64\\[[a-z_0-9]+\\]\n  input c: float32\\[[a-z_0-9]+, 1\\]\n"
                       "  d = Reshape\\(c, s\\)\n  outputs d\n$")
             .empty());
}

TEST_CASE("reduce cuts the nodes of branches and bodies", "[tools]") {
  ReduceFolder folder;
  folder.write_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    bodies (float[n, 8] x, int64 trips, bool flag) => (float[n, 8] y) {
      a = Tanh (x)
      b = Loop <body = body (int64 i, bool keep, float[n, 8] s) => (bool next, float[n, 8] after) {
        next = Identity (keep)
        t = Exp (s)
        c = If (flag) <then_branch = yes () => (float[n, 8] v) {
          r = Tanh (t)
          q = Sin (r)
          v = Add (q, t)
        }, else_branch = no () => (float[n, 8] w) { w = Neg (t) }>
        after = Add (c, s)
      }> (trips, , a)
      y = Softmax (b)
    })");
  std::string flag = "--run-flag=--kernels=" + folder.write("wrong.py", kWrongSine);
  test::Outcome outcome = folder.reduce({"--reference", "sh " + folder.write_reference() + " {}", flag, "--input",
                                         "trips=2", "--input", "flag=True", "--dim", "n=3"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const ModelCase left = read_model_case(folder.at("small/model.onnx"));
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(left.model));
  REQUIRE(model.graph().node_size() == 1);
  CHECK(left.inputs.empty());
  std::vector<std::string> ops;
  std::function<void(const onnx::GraphProto&)> collect = [&](const onnx::GraphProto& graph) {
    for (const auto& node : graph.node()) {
      ops.push_back(node.op_type());
      for (const auto& attribute : node.attribute()) collect(attribute.g());
    }
  };
  collect(model.graph());
  std::erase(ops, "Identity");
  INFO(joined(ops));
  CHECK(ops.size() <= 3);
  CHECK(std::ranges::count(ops, "Sin") == 1);
  for (const char* gone : {"Tanh", "Exp", "Neg", "Softmax"}) CHECK(std::ranges::count(ops, gone) == 0);
}

TEST_CASE("reduce leaves nothing behind when it is interrupted", "[tools]") {
  ReduceFolder folder;
  folder.layers("Sin");
  fs::create_directory(folder.at("temporary"));
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    fs::remove(folder.at("started"));
    const pid_t child = fork();
    if (child == 0) {
      setenv("TMPDIR", folder.at("temporary").c_str(), 1);
      std::signal(signal, SIG_DFL);
      const std::string model = folder.at("model.onnx"), small = folder.at("small"),
                        test = "touch " + folder.at("started") + "; exec sleep 60";
      execl(RELAXC_TOOL, RELAXC_TOOL, "reduce", model.c_str(), "-q", "-o", small.c_str(), "--test", test.c_str(),
            nullptr);
      _exit(127);
    }
    for (int i = 0; i < 600 && !fs::exists(folder.at("started")); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    REQUIRE(fs::exists(folder.at("started")));
    CHECK_FALSE(fs::is_empty(folder.at("temporary")));
    kill(child, signal);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    CHECK(fs::is_empty(folder.at("temporary")));
    CHECK_FALSE(fs::exists(folder.at("small")));
  }
}
