// relaxc-run: the program that runs artifacts without the compiler.
#include <filesystem>

#include "support/version.h"
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;
using test::run_relaxc;

namespace {

constexpr const char* kSoftmaxModule = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 5), "float32")):
        y = R.nn.softmax(x)
        return y
)";

Outcome runner(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RELAXC_RUN);
  return test::run_program(arguments, 60);
}

// An artifact.
struct Compiled {
  test::Folder folder{"runner"};
  std::string module = folder.write("module.py", kSoftmaxModule), artifact = folder.at("module.so");
  Compiled() { REQUIRE(run_relaxc({"compile", module, "-o", artifact}).exit_code == 0); }
};

}  // namespace

TEST_CASE("--dim of a run may repeat that of the compilation", "[tools]") {
  const test::Folder folder("fixed_dims");
  const std::string module = folder.write("module.py", kSoftmaxModule), artifact = folder.at("fixed.so");
  REQUIRE(run_relaxc({"compile", module, "--dim", "n=3", "-o", artifact}).exit_code == 0);
  const std::vector<std::string> same = {"run", artifact, "--dim", "n=3"}, other = {"run", artifact, "--dim", "n=4"};
  CHECK(run_relaxc(same).exit_code == 0);
  CHECK(runner(same).exit_code == 0);
  CHECK(contains(run_relaxc(other).err, "--dim n=4: the program is compiled for n=3"));
  CHECK(contains(runner(other).err, "--dim n=4: the program is compiled for n=3"));

  test::OnnxModel model;  // the names of its dims may be any text
  model.input("x", kFloat32, "a,c").node("Neg", "x", "y");
  model.output("y")
      .proto()
      .mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("a, b");
  const std::string odd = folder.write("odd.onnx", model.proto().SerializeAsString());
  REQUIRE(run_relaxc({"compile", odd, "--dim", "a, b=3", "--dim", "c=2", "-o", artifact}).exit_code == 0);
  CHECK(runner({"run", artifact, "--dim", "a, b=3", "--dim", "c=2"}).exit_code == 0);
  CHECK(contains(runner({"run", artifact, "--dim", "a, b=4"}).err, "--dim a, b=4: the program is compiled for a, b=3"));
}

TEST_CASE("relaxc-run runs and describes artifacts as relaxc does", "[tools]") {
  const Compiled it;
  const std::vector<std::vector<std::string>> commands = {
      {"run", it.artifact, "--dim", "n=3"},
      {"run", it.artifact, "--input", "x=[[1, 2, 3, 4, 5]]", "--top", "2"},
      {"run", it.artifact, "--seed", "7", "--dim", "n=2", "--threads", "1"},
      {"inspect", it.artifact},
      {"inspect", it.artifact, "--json"}};
  for (const std::vector<std::string>& command : commands) {
    const Outcome expected = run_relaxc(command), outcome = runner(command);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out == expected.out);
  }
  const std::string json = runner({"bench", it.artifact, "--runs", "5", "--dim", "n=4", "--json", "-"}).out;
  CHECK(contains(json, "\"dims\": {\"n\": 4}"));
  CHECK(contains(json, "\"p99_ms\": "));
  CHECK(contains(runner({"--version"}).out, "relaxc-run " + version_text()));
}

TEST_CASE("relaxc-run measures two artifacts in turn, as relaxc does", "[tools]") {
  const Compiled it;
  auto compiled = [&](const std::string& name, const std::string& text) {
    const std::string artifact = it.folder.at(name + ".so");
    REQUIRE(run_relaxc({"compile", it.folder.write(name + ".py", text), "-O", "0", "-o", artifact}).exit_code == 0);
    return artifact;
  };
  auto compared = [&](const std::string& other, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"bench", it.artifact, "--dim", "n=3", "--runs", "10", "--compare", other});
    return runner(more);
  };
  const std::string other = compiled("other", kSoftmaxModule);
  const Outcome same = compared(other);
  INFO(same.out << same.err);
  CHECK(same.exit_code == 0);
  CHECK(contains(same.out, " against " + other + ": "));
  CHECK(contains(same.out, "in turn (medians of 10), ratio "));
  CHECK(contains(same.out, "\ngreatest difference of the results "));
  CHECK(contains(compared(other, {"--json", "-"}).out, "\"compared\": {\"median_ms\": "));
  std::string exponential = kSoftmaxModule, sum = kSoftmaxModule;
  exponential.replace(exponential.find("R.nn.softmax(x)"), 15, "R.exp(x)");
  sum.replace(sum.find("R.nn.softmax(x)"), 15, "R.sum(x, axis=[1])");
  const Outcome wrong = compared(compiled("wrong", exponential));
  CHECK(wrong.exit_code == 1);
  CHECK(contains(wrong.err, "wrong result against "));
  const Outcome unlike = compared(compiled("unlike", sum));
  CHECK(unlike.exit_code == 1);
  CHECK(unlike.out.empty());
  CHECK(contains(unlike.err, "that is float32[3], and that of the model, "));
  CHECK(contains(compared(it.module).err, "not an artifact: it is text"));
}

TEST_CASE("relaxc-run says what it cannot do", "[tools]") {
  const Compiled it;
  const std::string array = it.folder.write("x.npy", std::string("\x93NUMPY\x01\0", 8));
  const std::string model = it.folder.write("model.onnx", "\x08\x07\x12\x07pytorch");
  const std::string page = it.folder.write("page.so", "<!DOCTYPE html>"), empty = it.folder.write("empty", "");
  for (const char* command : {"run", "bench", "inspect"}) {
    auto refusal = [&](const std::string& file) {
      const Outcome outcome = runner({command, file});
      CHECK(outcome.exit_code == 1);
      return outcome.err;
    };
    CHECK(contains(refusal(it.module), "not an artifact: it is text; 'relaxc compile' makes an artifact of"));
    CHECK(contains(refusal(model), "not an artifact: it is an ONNX model; 'relaxc compile' makes an artifact of"));
    CHECK(contains(refusal(array), "not an artifact: it is an array of NumPy (.npy); give it to a model as an input"));
    CHECK(contains(refusal(page), "not an artifact: it is an HTML page, as a failed download leaves it"));
    CHECK(contains(refusal(empty), "the file is empty"));
    CHECK(contains(refusal(it.folder.path.string()), "not a regular file"));
    CHECK(contains(refusal(it.folder.at("missing.so")), "No such file or directory"));
  }
  CHECK(contains(runner({"run", it.artifact, "--input", "x=x.pb"}).err, "is a message of ONNX"));
  CHECK(contains(runner({"rnu"}).err, "relaxc-run has no command 'rnu'; did you mean 'run'?"));
  CHECK(runner({"bench", it.artifact, "--runs", "0"}).exit_code == 2);
  const std::string plain = runner({"bench", it.artifact, "--runs", "2", "--dim", "n=4"}).out,
                    profiled = runner({"bench", it.artifact, "--runs", "2", "--dim", "n=4", "--profile"}).out;
  CHECK(std::ranges::count(profiled, '\n') > std::ranges::count(plain, '\n') + 1);
  CHECK(runner({"run", it.folder.at("missing.so")}).exit_code == 1);
}

TEST_CASE("relaxc-run is small, and needs neither LLVM nor protobuf", "[tools]") {
  const Outcome libraries = test::run_program({"/usr/bin/ldd", RELAXC_RUN}, 60);
  for (const char* foreign : {"LLVM", "protobuf", "onnx"}) CHECK_FALSE(contains(libraries.out, foreign));
  if (test::kSanitized) return;
  test::Folder folder("stripped");
  REQUIRE(test::run_program({"/usr/bin/strip", "-o", folder.at("relaxc-run"), RELAXC_RUN}, 60).exit_code == 0);
  CHECK(std::filesystem::file_size(folder.at("relaxc-run")) < 1'000'000);
}
