// relaxc debug: each kind of fault is planted and has to be found by name, and right models are left in peace.
#include <filesystem>

#include "frontend/onnx/model_parts.h"
#include "frontend/onnx/test_data.h"
#include "support/joined.h"
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"
#include "tools/compare.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::OnnxModel;
using test::Outcome;
using test::run_relaxc;

namespace {

// The plug-in tests/plugin/wrong.cc with some of its rows.
struct WrongRows {
  explicit WrongRows(const char* which) { setenv("RELAXC_WRONG_PLUGIN", which, 1); }
  ~WrongRows() { unsetenv("RELAXC_WRONG_PLUGIN"); }
};

// Five nodes, of which 'act' is the third.
std::string layers(const std::string& op = "Sigmoid", const std::string& domain = "", int steps_before = 0) {
  OnnxModel model;
  model.input("x", kFloat32, "n,8").output("y");
  model.constant("w", test::numbers({8, 16})).constant("b", test::numbers({16})).constant("v", test::numbers({16, 4}));
  model.node("MatMul", "x w", "product").set_name("first");
  model.node("Add", "product b", "sum").set_name("bias");
  std::string last = "sum";
  for (int i = 0; i < steps_before; ++i) {
    const std::string next = fmt::format("step_{}", i);
    model.node("Neg", last, next).set_name(next);
    last = next;
  }
  onnx::NodeProto& act = model.node(op, last, "active");
  act.set_name("act"), act.set_domain(domain);
  model.node("MatMul", "active v", "scores").set_name("second");
  model.node("Softmax", "scores", "y").set_name("shares");
  if (!domain.empty()) {
    auto* import = model.proto().add_opset_import();
    import->set_domain(domain), import->set_version(1);
  }
  return model.proto().SerializeAsString();
}

// Runs relaxc debug in the folder, whose `found` gets the reproducer.
Outcome debug_in(const test::Folder& folder, const std::string& model, std::vector<std::string> flags) {
  std::vector<std::string> command = {"debug", model, "-o", folder.at("found"), "--dim", "n=3", "-q"};
  command.insert(command.end(), flags.begin(), flags.end());
  return run_relaxc(command);
}

// Runs the command that a line "reproducer: relaxc ..." names.
Outcome run_reproducer(const std::string& report, const test::Folder& folder) {
  const std::string begin = "reproducer: relaxc ";
  const size_t at = report.find(begin);
  REQUIRE(at != std::string::npos);
  const size_t from = at + begin.size();
  const std::string arguments = report.substr(from, report.find('\n', from) - from);
  std::vector<std::string> words = {"-q", "-o", folder.at("again")};
  std::vector<std::string> command;
  for (std::string_view word : parts_of(arguments, ' ')) command.emplace_back(word);
  command.insert(command.end(), words.begin(), words.end());
  return run_relaxc(command);
}

}  // namespace

TEST_CASE("debug finds a wrong rule, its node and the pass", "[tools]") {
  const WrongRows rows("rule");
  test::Folder folder("debug_rule");
  const std::string model = folder.write("model.onnx", layers());
  const Outcome outcome = debug_in(folder, model, {"--plugin", RELAXC_WRONG_PLUGIN});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out, "first node whose values part: 'act' (Sigmoid)"));
  CHECK(contains(outcome.out, "pass: wrong_rule\n"));
  CHECK(contains(outcome.out, "with the pass, values part first at: 'act' (Sigmoid)"));
  CHECK(contains(outcome.out, " = Sigmoid("));  // all that is left of the model
  CHECK_FALSE(contains(outcome.out, "MatMul"));
  CHECK(folder.read("found/report.txt") == outcome.out);
  const Outcome again = run_reproducer(outcome.out, folder);
  CHECK(again.exit_code == 1);
  CHECK(contains(again.out, "pass: wrong_rule\n"));
}

TEST_CASE("debug finds a wrong lowering step and the kernel that it spoils", "[tools]") {
  const WrongRows rows("step");
  test::Folder folder("debug_step");
  const std::string model = folder.write("model.onnx", layers());
  const Outcome outcome = debug_in(folder, model, {"--plugin", RELAXC_WRONG_PLUGIN});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out, "first node whose values part: 'act' (Sigmoid)"));
  CHECK(contains(outcome.out, "pass: wrong_step\n"));
  CHECK(contains(outcome.out, "tensor program: fused_matmul_add_sigmoid\nnodes: first, bias, act\n"));
  CHECK(contains(outcome.out, "elements differ; worst at ["));
  const Outcome again = run_reproducer(outcome.out, folder);
  CHECK(again.exit_code == 1);
  CHECK(contains(again.out, "pass: wrong_step\n"));
}

TEST_CASE("debug finds a wrong operator by the values of the nodes", "[tools]") {
  const WrongRows rows("operator");
  test::Folder folder("debug_operator");
  const std::string bytes = layers("FancyGelu", "com.me"), model = folder.write("model.onnx", bytes);
  // The right values, as another runtime would write them.
  const Tensor x = test::numbers({3, 8});
  std::filesystem::create_directory(folder.at("values"));
  write_npy(folder.at("values/x.npy"), x);
  const Outcome right =
      run_relaxc({"run", folder.write("shown.onnx", with_all_results(bytes)), "--plugin", RELAXC_MY_OPERATOR, "--input",
                  "x=" + folder.at("values/x.npy"), "--output-dir", folder.at("outputs")});
  REQUIRE(right.exit_code == 0);
  const std::vector<std::string> names = outputs_of_onnx(folder.read("shown.onnx"));
  REQUIRE(names.size() == 5);
  for (size_t i = 0; i < names.size(); ++i)
    std::filesystem::copy(folder.at(fmt::format("outputs/output_{}.npy", i)), folder.at("values/" + names[i] + ".npy"));

  for (const char* flag : {"--reference", "--against"}) {
    const Outcome outcome = debug_in(folder, model, {"--plugin", RELAXC_WRONG_PLUGIN, flag, folder.at("values")});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.out, "first node whose values part: 'act' (com.me::FancyGelu)"));
    CHECK(contains(outcome.out, "level: the operator, before any pass"));
    CHECK_FALSE(contains(outcome.out, "pass: "));
    const Outcome again = run_reproducer(outcome.out, folder);
    CHECK(again.exit_code == 1);
    CHECK(contains(again.out, "machine code differs from the reference: active: "));
    CHECK(nodes_of_onnx(folder.read("found/model.onnx")).size() == 1);
  }
  // The values of nodes are enough.
  std::filesystem::rename(folder.at("values/y.npy"), folder.at("y.npy"));
  const Outcome inner = debug_in(folder, model, {"--plugin", RELAXC_WRONG_PLUGIN, "--reference", folder.at("values")});
  CHECK(inner.exit_code == 1);
  CHECK(contains(inner.out, "first node whose values part: 'act' (com.me::FancyGelu)"));
  std::filesystem::rename(folder.at("y.npy"), folder.at("values/y.npy"));
  // With the right operator nothing is found, and with the results alone the level.
  CHECK(debug_in(folder, model, {"--plugin", RELAXC_MY_OPERATOR, "--reference", folder.at("values")}).exit_code == 0);
  for (const char* name : {"product", "sum", "active", "scores"})
    std::filesystem::remove(folder.at(std::string("values/") + name + ".npy"));
  const Outcome outcome =
      debug_in(folder, model, {"--plugin", RELAXC_WRONG_PLUGIN, "--reference", folder.at("values")});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out,
                 "first node whose values part: 'first' (MatMul) or 'bias' (Add) or 'act' (com.me::FancyGelu)"));
  std::filesystem::create_directory(folder.at("data"));
  std::filesystem::copy(folder.at("values/x.npy"), folder.at("data/x.npy"));
  write_tensor_pb(folder.at("data/output_0.pb"), read_npy(folder.at("values/y.npy")), "y");
  const Outcome level = debug_in(folder, model, {"--plugin", RELAXC_WRONG_PLUGIN, "--reference", folder.at("data")});
  CHECK(level.exit_code == 1);
  CHECK(contains(level.out, "so no pass is to blame"));
}

TEST_CASE("debug compares with a reference, and says with how much of it", "[tools]") {
  test::Folder folder("debug_names");
  const std::string model = folder.write("model.onnx", layers());
  const std::vector<std::string> given = {"--reference", folder.at("values")};
  std::filesystem::create_directory(folder.at("values"));
  write_npy(folder.at("values/x.npy"), test::numbers({3, 8}));
  write_npy(folder.at("values/activ.npy"), test::numbers({3, 16}));
  const Outcome nothing = debug_in(folder, model, given);
  INFO(nothing.out << nothing.err);
  CHECK(nothing.exit_code == 1);
  CHECK(contains(nothing.err, "--reference has no value to compare with: it has 'activ', and the model's values are "));
  CHECK(contains(nothing.err, "did you mean 'active'?"));
  std::filesystem::rename(folder.at("values/activ.npy"), folder.at("values/active.npy"));
  write_npy(folder.at("values/active.npy"), test::numbers({3, 15}));
  CHECK(contains(debug_in(folder, model, given).err,
                 "--reference: 'active' is float32[3, 15], and the model computes float32[3, 16]"));
  write_npy(folder.at("values/active.npy"), test::numbers({3, 16}));
  const Outcome parted = debug_in(folder, model, given);
  CHECK(contains(parted.out, "compared with the reference: 0 of 1 result, and 1 value within the model"));
  write_npy(folder.at("x.npy"), test::numbers({4, 8}));
  const Outcome others = run_relaxc(
      {"debug", model, "-o", folder.at("found"), "--input", folder.at("x.npy"), "--reference", folder.at("values")});
  CHECK(contains(others.err, "note: --reference has another 'x' than --input, and its other values may depend on it"));
  const Outcome single =
      debug_in(folder, model, {"--input", folder.at("values/x.npy"), "--reference", folder.at("values/active.npy")});
  CHECK(contains(single.out, "compared with the reference: 0 of 1 result, and 1 value within the model"));
}

TEST_CASE("debug refuses a model that draws other random numbers in each run", "[tools]") {
  test::Folder folder("debug_random");
  test::OnnxModel model;
  model.input("x", kFloat32, "n,2").output("y");
  model.node("RandomNormalLike", "x", "noise");
  model.node("Add", "x noise", "y");
  const Outcome outcome = debug_in(folder, folder.write("random.onnx", model.proto().SerializeAsString()), {});
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.err, "node 'noise' (RandomNormalLike): error: its random numbers differ from run to run"));
}

TEST_CASE("debug compares values within the model although the results agree", "[tools]") {
  test::Folder folder("debug_within");
  OnnxModel built;
  REQUIRE(built.proto().ParseFromString(layers()));
  built.node("ArgMax", "y", "best").set_name("choice");
  auto& output = *built.proto().mutable_graph()->mutable_output(0);
  output.set_name("best"), output.clear_type();
  const std::string bytes = built.proto().SerializeAsString(), model = folder.write("model.onnx", bytes);
  const std::vector<std::string> within = {"sum", "active", "scores"};
  std::filesystem::create_directory(folder.at("values"));
  write_npy(folder.at("values/x.npy"), test::numbers({3, 8}));
  REQUIRE(run_relaxc({"run", folder.write("all.onnx", with_results(bytes, within)), "--input",
                      "x=" + folder.at("values/x.npy"), "--output-dir", folder.at("outputs")})
              .exit_code == 0);
  std::filesystem::rename(folder.at("outputs/output_0.npy"), folder.at("values/best.npy"));
  for (size_t i = 0; i < within.size(); ++i)
    std::filesystem::rename(folder.at(fmt::format("outputs/output_{}.npy", i + 1)),
                            folder.at("values/" + within[i] + ".npy"));
  auto outcome = [&](const std::vector<std::string>& more = {}) {
    std::vector<std::string> flags = {"--reference", folder.at("values")};
    flags.insert(flags.end(), more.begin(), more.end());
    return debug_in(folder, model, flags);
  };
  const Outcome right = outcome();
  INFO(right.out << right.err);
  CHECK(right.exit_code == 0);
  CHECK(contains(right.out, "compared with the reference: 1 of 1 result, and 3 values within the model"));

  // A kernel that is a little wrong changes no choice.
  const std::string rules = folder.write("rules.py", R"(@R.rewriter
class Larger:
    @R.function
    def pattern(x: R.Tensor):
        y = R.sigmoid(x)
        return y

    @R.function
    def replacement(x: R.Tensor):
        y = R.multiply(R.sigmoid(x), R.const(1.01, "float32"))
        return y
)");
  const Outcome pass = outcome({"--kernels", rules});
  INFO(pass.out << pass.err);
  CHECK(pass.exit_code == 1);
  CHECK(contains(pass.out, "the results agree, and values within the model do not"));
  CHECK(contains(pass.out, "first node whose values part: 'act' (Sigmoid)"));
  CHECK(contains(pass.out, "pass: apply_kernels"));
  const Outcome again = run_reproducer(pass.out, folder);
  CHECK(again.exit_code == 1);

  const Tensor active = read_npy(folder.at("values/active.npy"));
  active.data<float>()[5] += 0.1f;
  write_npy(folder.at("values/active.npy"), active);
  const Outcome node = outcome();
  INFO(node.out << node.err);
  CHECK(node.exit_code == 1);
  CHECK(contains(node.out, "first node whose values part: 'act' (Sigmoid)"));
  active.data<float>()[5] -= 0.1f;

  const Tensor longer = Tensor::empty(active.shape(), kFloat64);
  for (int64_t i = 0; i < active.size(); ++i) longer.set_double(i, active.as_double(i));
  write_npy(folder.at("values/active.npy"), longer);
  const Outcome converted = outcome();
  INFO(converted.out << converted.err);
  CHECK(converted.exit_code == 0);
  write_npy(folder.at("values/active.npy"), test::numbers({16, 3}));
  const Outcome refused = outcome();
  INFO(refused.out << refused.err);
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err, "--reference: 'active' is float32[16, 3], and the model computes float32[3, 16]"));
}

TEST_CASE("debug draws other integers where a run of the first ones fails", "[tools]") {
  test::Folder folder("debug_integers");
  auto outcome_of = [&](const std::string& function) {
    const std::string module = folder.write("module.py", "@R.function\ndef main" + function);
    return run_relaxc({"debug", module, "-o", folder.at("found")});
  };
  const std::string divide = R"((x: R.Tensor((4, 5), "int64"), y: R.Tensor((4, 5), "int64")):
    return R.floor_divide(x, y)
)";
  const std::string divide_and_take =
      R"((x: R.Tensor((2, 5), "int64"), y: R.Tensor((2, 5), "int64"), z: R.Tensor((3,), "int64")):
    return R.take(R.mod(x, y), z, axis=0)
)";
  const std::string take_first = R"((x: R.Tensor((1, 5), "float32"), y: R.Tensor((3,), "int64")):
    return R.take(x, y, axis=0)
)";
  for (const auto& [function, integers] :
       {std::pair(divide, "1 to 2"), std::pair(divide_and_take, "1 to 1"), std::pair(take_first, "0 to 0")}) {
    const Outcome outcome = outcome_of(function);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.err, fmt::format("with random integers of 0 and 1 the run fails; these are {}", integers)));
  }
  const Outcome none = outcome_of(R"((x: R.Tensor((1, 5), "int64"), y: R.Tensor((3,), "int64")):
    return R.floor_divide(R.take(x, y, axis=0), R.take(x, y, axis=0))
)");
  INFO(none.out << none.err);
  CHECK(none.exit_code == 1);
  CHECK(contains(none.err, "note: the integers of 'x', 'y' are random, and the run fails with 0, 1 and 2; give those"));
}

TEST_CASE("debug finds no fault in a NaN of random inputs", "[tools]") {
  test::Folder folder("debug_chance");
  OnnxModel model;
  model.input("x", kFloat32, "n,8").output("y");
  model.node("Log", "x", "y");
  const std::string file = folder.write("model.onnx", model.proto().SerializeAsString());
  const Outcome outcome = run_relaxc({"debug", file, "-o", folder.at("found"), "--dim", "n=3"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.err, "has a NaN for these random inputs, in the interpreter as well"));
  CHECK(debug_in(folder, file, {"--nan"}).exit_code == 1);
}

TEST_CASE("debug finds the operator that makes the first NaN", "[tools]") {
  test::Folder folder("debug_nan");
  const std::string model = folder.write("model.onnx", layers("Log"));
  const std::vector<std::string> negative = {
      "--input", "x=[[-1, 0, 0, 0, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6, 7, 8], [9, 8, 7, 6, 5, 4, 3, 2]]"};
  const Outcome outcome = debug_in(folder, model, negative);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out, "'act' (Log) makes a NaN at ["));
  const Outcome again = run_reproducer(outcome.out, folder);
  CHECK(again.exit_code == 1);
  CHECK(contains(again.out, "(Log) makes a NaN at ["));

  // One that no result shows is found when it is asked for.
  OnnxModel hidden;
  hidden.input("x", kFloat32, "n").output("y");
  hidden.constant("zero", test::numbers({}));
  hidden.node("Log", "x", "logarithm"), hidden.node("IsNaN", "logarithm", "is_bad");
  hidden.node("Where", "is_bad zero logarithm", "y");
  const std::string file = folder.write("hidden.onnx", hidden.proto().SerializeAsString());
  CHECK(debug_in(folder, file, {"--input", "x=[1, -1, 2]"}).exit_code == 0);
  const Outcome asked = debug_in(folder, file, {"--input", "x=[1, -1, 2]", "--nan"});
  CHECK(asked.exit_code == 1);
  CHECK(contains(asked.out, "'logarithm' (Log) makes a NaN at [1]"));
  CHECK(debug_in(folder, file, {"--input", "x=[1, 3, 2]", "--nan"}).exit_code == 0);
}

TEST_CASE("debug names the input and the initializer that hold a NaN", "[tools]") {
  test::Folder folder("debug_given_nan");
  // y = x * w; the second element of the weight of `bad` is a NaN.
  auto model_of = [&](const char* name, float second) {
    OnnxModel model;
    model.input("x", kFloat32, "2").output("y").constant("w", Tensor::of<float>({2}, kFloat32, {1, second}));
    model.node("Mul", "x w", "y");
    return folder.write(name, model.proto().SerializeAsString());
  };
  const std::string bad = model_of("bad.onnx", NAN), good = model_of("good.onnx", 2);
  auto debug = [&](std::vector<std::string> flags) {
    std::vector<std::string> command = {"debug", flags[0], "-o", folder.at("found"), "-q", "--input", "x=" + flags[1]};
    command.insert(command.end(), flags.begin() + 2, flags.end());
    return run_relaxc(command);
  };
  for (const std::vector<std::string>& flags : {std::vector<std::string>{}, {"--nan"}}) {
    std::vector<std::string> command = {bad, "[1, 2]"};
    command.insert(command.end(), flags.begin(), flags.end());
    const Outcome weight = debug(command);
    CHECK(weight.exit_code == 1);
    CHECK(contains(weight.out, "initializer 'w' has a NaN at [1]\n"));
    CHECK_FALSE(contains(weight.out, "agrees"));
    command[0] = good, command[1] = "[nan, 2]";
    const Outcome input = debug(command);
    CHECK(input.exit_code == 1);
    CHECK(input.out == "input 'x' has a NaN at [0]\n");
  }
  // Masks have infinities on purpose.
  const Outcome infinite = debug({good, "[inf, 2]", "--nan"});
  CHECK(infinite.exit_code == 0);
  CHECK(contains(infinite.out, "input 'x' has an infinity at [0]\nmachine code agrees"));
  // A reference with the results alone, which has no NaN.
  std::filesystem::create_directory(folder.at("data"));
  write_npy(folder.at("data/y.npy"), Tensor::of<float>({2}, kFloat32, {1, 4}));
  const Outcome stated = debug({bad, "[1, 2]", "--reference", folder.at("data")});
  CHECK(stated.exit_code == 1);
  CHECK(contains(stated.out, "initializer 'w' has a NaN at [1]\n"));
  const std::string log = folder.write("log.onnx", layers("Log"));
  std::filesystem::create_directory(folder.at("shares"));
  write_npy(folder.at("shares/y.npy"), Tensor::of<float>({1, 4}, kFloat32, {0.25, 0.25, 0.25, 0.25}));
  const Outcome made = run_relaxc({"debug", log, "-o", folder.at("found"), "-q", "--input",
                                   "x=[[-1, 0, 0, 0, 0, 0, 0, 0]]", "--reference", folder.at("shares")});
  INFO(made.out << made.err);
  CHECK(contains(made.out, "'shares' (Softmax) makes a NaN at [0, 0], and its inputs have none"));
  // Where the reference has that NaN too, the results agree.
  write_npy(folder.at("data/y.npy"), Tensor::of<float>({2}, kFloat32, {1, NAN}));
  CHECK(debug({bad, "[1, 2]", "--reference", folder.at("data")}).exit_code == 0);
  // Without the input that its results belong to there is no verdict.
  const Outcome open = run_relaxc({"debug", good, "-o", folder.at("found"), "--reference", folder.at("data")});
  CHECK(open.exit_code == 1);
  CHECK(contains(open.err,
                 "the reference has no value of input 'x', and its other values depend on it: add "
                 "input_0.pb or x.npy to it, or give --input x=FILE"));
}

TEST_CASE("debug writes its reproducer elsewhere where its folder cannot be made", "[tools]") {
  const WrongRows rows("rule");
  test::Folder folder("debug_readonly");
  const std::string model = folder.write("model.onnx", layers()), file = folder.write("file", "");
  const Outcome outcome =
      run_relaxc({"debug", model, "--dim", "n=3", "--plugin", RELAXC_WRONG_PLUGIN, "-o", file + "/found"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out, "pass: wrong_rule\n"));
  CHECK(contains(outcome.err, "the reproducer goes to '"));
  const size_t at = outcome.out.find("reproducer: relaxc debug ");
  REQUIRE(at != std::string::npos);
  const std::string made = outcome.out.substr(at + 25, outcome.out.find("/model.onnx", at) - at - 25);
  CHECK(std::filesystem::exists(made + "/report.txt"));
  std::filesystem::remove_all(made);
}

TEST_CASE("debug finds a wrong rewriter of --kernels, and a wrong kernel", "[tools]") {
  test::Folder folder("debug_kernels");
  const std::string model = folder.write("model.onnx", layers()), rules = folder.write("rules.py", R"(
@R.rewriter
class TwiceAsSteep:
    @R.function
    def pattern(x: R.Tensor):
        y = R.sigmoid(x)
        return y

    @R.function
    def replacement(x: R.Tensor):
        y = R.sigmoid(R.add(x, x))
        return y
)");
  const Outcome outcome = debug_in(folder, model, {"--kernels", rules});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out, "first node whose values part: 'act' (Sigmoid)"));
  CHECK(contains(outcome.out, "pass: apply_kernels\n"));
}

TEST_CASE("debug takes no machine code, and says which file is missing", "[tools]") {
  test::Folder folder("debug_machine");
  CHECK(contains(run_relaxc({"debug", folder.write("model.so", "")}).err, "is machine code"));
  const Outcome missing = run_relaxc({"debug", folder.at("missing.so")});
  CHECK(missing.exit_code == 1);
  CHECK_FALSE(contains(missing.err, "is machine code"));
  CHECK(contains(missing.err, "missing.so"));
}

TEST_CASE("debug names the first of many nodes that may be wrong", "[tools]") {
  const WrongRows rows("operator");
  test::Folder folder("debug_many");
  const std::string model = folder.write("model.onnx", layers("FancyGelu", "com.me", 12));
  std::filesystem::create_directory(folder.at("values"));
  write_npy(folder.at("values/x.npy"), test::numbers({3, 8}));
  write_npy(folder.at("values/y.npy"), Tensor::of<float>({3, 4}, kFloat32, std::vector<float>(12, 0.5F)));
  const Outcome outcome =
      debug_in(folder, model, {"--plugin", RELAXC_WRONG_PLUGIN, "--reference", folder.at("values")});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out, "'step_5' (Neg) or one of 8 others, to 'shares' (Softmax)\n"));
  CHECK(contains(outcome.out, "docs/debug.md says how to get the values of all nodes"));
  CHECK_FALSE(contains(outcome.out, "step_6"));
}

TEST_CASE("debug takes texts, too", "[tools]") {
  const WrongRows rows("step");
  test::Folder folder("debug_text");
  const std::string module = folder.write("module.py", R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        y = R.sigmoid(x)
        z = R.sum(y, axis=[1])
        return z
)");
  const Outcome right = run_relaxc({"debug", module, "-o", folder.at("found"), "--dim", "n=3", "-v"});
  CHECK(right.exit_code == 0);
  CHECK(contains(right.err, "\n2 operators run in the interpreter in "));
  const Outcome outcome = debug_in(folder, module, {"--plugin", RELAXC_WRONG_PLUGIN});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out, "pass: wrong_step\n"));
  CHECK(contains(outcome.out, "sigmoid"));
}

TEST_CASE("debug does not take rounding for a fault", "[tools]") {
  test::Folder folder("debug_rounding");
  // A convolution that goes by Winograd's algorithm, whose sums nearly cancel, and float16.
  OnnxModel model;
  model.input("x", kFloat32, "1,16,12,12").output("y").output("half", DType::float_(16));
  model.constant("w", test::numbers({32, 16, 3, 3}));
  onnx::NodeProto& conv = model.node("Conv", "x w", "c");
  test::set_ints(conv, "pads", {1, 1, 1, 1});
  model.node("Tanh", "c", "y");
  test::set_int(model.node("Cast", "c", "h"), "to", onnx::TensorProto::FLOAT16);
  model.node("Softmax", "h", "half");
  const std::string file = folder.write("model.onnx", model.proto().SerializeAsString());
  const Outcome outcome =
      run_relaxc({"debug", file, "-o", folder.at("found"), "--winograd-error", "10", "--nan", "-q"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "agrees with the operators in the interpreter"));
  CHECK_FALSE(std::filesystem::exists(folder.at("found")));
  // There is rounding.
  CHECK(run_relaxc(
            {"debug", file, "-o", folder.at("found"), "--winograd-error", "10", "--rtol", "0", "--atol", "0", "-q"})
            .exit_code == 1);
}

TEST_CASE("debug says what is wrong with its own arguments", "[tools]") {
  test::Folder folder("debug_arguments");
  const std::string model = folder.write("model.onnx", layers());
  std::filesystem::create_directory(folder.at("empty"));
  const Outcome none = debug_in(folder, model, {"--reference", folder.at("empty")});
  CHECK(none.exit_code == 1);
  CHECK(contains(none.err, "has no values: expected output_0.pb, or NAME.npy"));
  const Outcome other = debug_in(folder, model, {"--against", "ort"});
  CHECK(other.exit_code == 1);
  CHECK(contains(other.err, "'ort' is neither an archive of values (.npz) nor a folder"));
}

TEST_CASE("closeness is relative to the largest element, by dtype", "[tools]") {
  const tools::Closeness closeness;
  const Tensor large = Tensor::of<float>({3}, kFloat32, {1000, 0, -5});
  CHECK(closeness.allowed(large) > 0.9);
  CHECK(tools::compare_closely("x", Tensor::of<float>({3}, kFloat32, {1000, 0.5F, -5}), large, closeness).empty());
  CHECK_FALSE(tools::compare_closely("x", Tensor::of<float>({3}, kFloat32, {1000, 2, -5}), large, closeness).empty());
  const Tensor small = Tensor::of<float>({2}, kFloat32, {1, 2});
  CHECK_FALSE(tools::compare_closely("x", Tensor::of<float>({2}, kFloat32, {1, 2.1F}), small, closeness).empty());
  const Tensor bytes = Tensor::of<int8_t>({2}, DType::int_(8), {1, 2}), counts = Tensor::of<int64_t>({1}, kInt64, {7});
  CHECK(tools::compare_closely("x", Tensor::of<int8_t>({2}, DType::int_(8), {2, 2}), bytes, closeness).empty());
  CHECK_FALSE(tools::compare_closely("x", Tensor::of<int8_t>({2}, DType::int_(8), {3, 2}), bytes, closeness).empty());
  CHECK_FALSE(tools::compare_closely("x", Tensor::of<int64_t>({1}, kInt64, {8}), counts, closeness).empty());
  CHECK(tools::same_numbers(Tensor::of<float>({3}, kFloat32, {-5, 1000, 0}), large, closeness));
  CHECK_FALSE(tools::same_numbers(Tensor::of<float>({3}, kFloat32, {-5, 1000, 10}), large, closeness));
}
