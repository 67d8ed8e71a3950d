// Files under names of other kinds, and files of wrong kinds: the content counts, and messages name it.
#include <fmt/format.h>

#include <filesystem>

#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;
using test::run_relaxc;

namespace {

constexpr const char* kExpOfRows = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        y = R.exp(x)
        return y
)";

// y = softmax(x)
std::string softmax_model() {
  test::OnnxModel model;
  model.input("x", kFloat32, "n,4").output("y");
  model.node("Softmax", "x", "y").set_name("shares");
  return model.proto().SerializeAsString();
}

void check_refused(std::vector<std::string> words, int exit_code, const std::string& message) {
  const Outcome outcome = run_relaxc(std::move(words));
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == exit_code);
  CHECK(contains(outcome.err, message));
}

}  // namespace

TEST_CASE("models, texts and artifacts are known under any name", "[tools]") {
  test::Folder folder("names");
  const std::string artifact = folder.at("made.so");
  REQUIRE(run_relaxc({"compile", folder.write("model.onnx", softmax_model()), "-o", artifact}).exit_code == 0);
  const std::pair<std::string, const char*> files[] = {
      {folder.write("model.so", softmax_model()), "kind: ONNX model"},
      {folder.write("model.py", softmax_model()), "kind: ONNX model"},
      {folder.write("model", softmax_model()), "kind: ONNX model"},
      {folder.write("text.onnx", kExpOfRows), "kind: text"},
      {folder.write("text.so", kExpOfRows), "kind: text"},
      {folder.write("text", kExpOfRows), "kind: text"},
      {folder.write("artifact.py", folder.read("made.so")), "kind: artifact"},
      {folder.write("artifact.onnx", folder.read("made.so")), "kind: artifact"},
  };
  for (const auto& [file, kind] : files) {
    INFO(file);
    const Outcome inspected = run_relaxc({"inspect", file});
    CHECK(inspected.exit_code == 0);
    CHECK(contains(inspected.out, kind));
    CHECK(run_relaxc({"run", file, "--dim", "n=2", "--no-cache"}).exit_code == 0);
    if (std::string_view(kind) != "kind: artifact")
      CHECK(run_relaxc({"debug", file, "--dim", "n=2", "-q", "-o", folder.at("found")}).exit_code == 0);
  }
  check_refused({"debug", folder.at("artifact.onnx")}, 2, "is machine code");
  check_refused({"reduce", folder.at("text.onnx")}, 2, "for texts there is relaxc opt --bisect");
  check_refused({"inspect", folder.write("words.onnx", "hello world\n")}, 1, "not an ONNX model: it is text");
}

TEST_CASE("a file in the place of another is named by its kind", "[tools]") {
  test::Folder folder("kinds");
  const std::string model = folder.write("model.onnx", softmax_model()), array = folder.at("x.npy"),
                    json = folder.write("x.json", "{\"a\": 1}"), artifact = folder.at("model.so"),
                    weights = folder.write("w.safetensors", std::string("\x10\0\0\0\0\0\0\0{\"a\":{}}", 16));
  write_npy(array, test::numbers({2, 4}));
  REQUIRE(run_relaxc({"compile", model, "-o", artifact}).exit_code == 0);
  check_refused({"run", model, "--input-pb", model}, 1, "expected a TensorProto (.pb); it is an ONNX model");
  check_refused({"run", model, "--input-pb", array}, 1,
                "expected a TensorProto (.pb); it is an array of NumPy (.npy): --input takes it");
  check_refused({"run", model, "--input", array, "--labels", json}, 1,
                "expected a file with the name of a class on each line; it is JSON\n");
  check_refused({"run", model, "--kernels", weights}, 1, "it is a file of weights without their graph (safetensors)\n");
  check_refused({"compile", model, "-o", folder.at("b.so"), "--link", json}, 1,
                "is not an object file or an archive that can be linked; it is JSON");
  check_refused({"quantize", model, "-o", folder.at("q.onnx"), "--calibrate", artifact}, 1, "--calibrate '" + artifact);
  const Outcome runner = test::run_program({RELAXC_RUN, "run", artifact, "--input", "x=s.bin"}, 60);
  CHECK(contains(runner.err, "expected a file (.npy or an image"));
  CHECK_FALSE(contains(test::run_program({RELAXC_RUN, "run", "--help"}, 60).out, ".pb"));
}

TEST_CASE("bisection blames no pass for a reference that is missing", "[tools]") {
  test::Folder folder("bisected");
  const std::string model = folder.write("model.onnx", softmax_model());
  std::filesystem::create_directory(folder.at("empty"));
  check_refused({"opt", model, "--bisect", "--reference", folder.at("empty"), "-q"}, 1, "has no input_0.pb");
  check_refused({"opt", model, "--bisect", "--dim", "zz=3", "-q"}, 2, "no input has a dim 'zz'");
}

TEST_CASE("an artifact refuses the flags of compilations", "[tools]") {
  test::Folder folder("compiled");
  const std::string model = folder.write("model.onnx", softmax_model()), artifact = folder.at("model.so");
  REQUIRE(run_relaxc({"compile", model, "-o", artifact}).exit_code == 0);
  const std::string dump = folder.at("dump");
  const std::vector<std::pair<std::string, std::string>> flags = {
      {"--dim-range", "n=1:2"}, {"-O", "1"},          {"--jobs", "1"},          {"--type", "x=float32[n, 4]"},
      {"--print-after", "all"}, {"--dump-dir", dump}, {"--verify-each", "pass"}};
  for (const auto& [flag, value] : flags)
    check_refused({"run", artifact, flag, value}, 2, fmt::format("is compiled already; give {}", flag));
  for (const char* flag : {"--strict", "--time-passes"})
    check_refused({"bench", artifact, "--compare", artifact, flag}, 2,
                  fmt::format("is compiled already; give {}", flag));
  check_refused({"view", artifact, "-o", folder.at("v.html"), "--target", "x86-64"}, 2, "give --target when");
  check_refused({"inspect", model, "--dim", "zz=3"}, 2, "no symbolic dim 'zz'");
}

TEST_CASE("numbers of dims are whole and bounded", "[tools]") {
  test::Folder folder("foreign");
  const std::string model = folder.write("model.onnx", softmax_model());
  check_refused({"run", model, "--dim", "n=99999999999999999999"}, 2, "a dim is a whole number from 0 to 92");
  check_refused({"run", model, "--dim-range", "n=:"}, 2, "the range has no end");
  check_refused({"run", model, "--target", "triple=riscv64-linux-gnu"}, 2, "does not run on this machine");
}

TEST_CASE("outputs go to pipes", "[tools]") {
  test::Folder folder("pipes");
  const std::string model = folder.write("model.onnx", softmax_model());
  const Outcome artifact = run_relaxc({"compile", model, "-o", "-"});
  CHECK(artifact.exit_code == 0);
  CHECK(run_relaxc({"run", folder.write("piped.so", artifact.out), "--dim", "n=2"}).exit_code == 0);
  const Outcome quantized = run_relaxc({"quantize", model, "-o", "-", "--dynamic"});
  INFO(quantized.err);
  CHECK_FALSE(std::filesystem::exists("-"));
  const Outcome trace = run_relaxc({"bench", model, "--dim", "n=2", "--seconds", "0", "--trace", "-"});
  CHECK(trace.out.starts_with("{"));
  check_refused({"compile", model, "--emit", "tir=" + folder.at("a"), "--emit", "graph=" + folder.at("b"),
                 "--constants", folder.at("c")},
                2, "--constants is one file");
}

TEST_CASE("results are compared with files", "[tools]") {
  test::Folder folder("expected");
  const std::string module = folder.write("module.py", kExpOfRows), ones = folder.at("ones.npy");
  write_npy(ones, Tensor::of<float>({1, 4}, kFloat32, {1, 1, 1, 1}));
  const Outcome right = run_relaxc({"run", module, "--input", "x=[[0, 0, 0, 0]]", "--expect", ones});
  INFO(right.err);
  CHECK(right.exit_code == 0);
  CHECK(contains(right.out, "1 of 1 outputs agree with --expect"));
  const Outcome wrong = run_relaxc({"run", module, "--input", "x=[[0, 0, 1, 0]]", "--expect", ones});
  CHECK(wrong.exit_code == 1);
  CHECK(contains(wrong.err, "wrong result: "));
  check_refused({"run", module, "--dim", "n=1", "--expect", "z=" + ones}, 1, "--expect: no result is called 'z'");
}

TEST_CASE("a run keeps to the limit of memory", "[tools]") {
  test::Folder folder("limited");
  const std::string module = folder.write("module.py", kExpOfRows);
  const std::vector<std::string> command = {"run", module, "--dim", "n=100000"};
  CHECK(run_relaxc(command).exit_code == 0);
  std::vector<std::string> limited = command;
  limited.insert(limited.end(), {"--memory-limit", "100000"});
  CHECK(run_relaxc(limited).exit_code == 1);
}

TEST_CASE("a file of labels that lacks classes gets a note", "[tools]") {
  test::Folder folder("labels");
  const std::string model = folder.write("model.onnx", softmax_model()), labels = folder.write("labels.txt", "a\nb\n");
  const Outcome outcome = run_relaxc({"run", model, "--dim", "n=1", "--labels", labels});
  CHECK(contains(outcome.err, "note: result 'y' has 4 classes, and the file of --labels 2 lines\n"));
}
