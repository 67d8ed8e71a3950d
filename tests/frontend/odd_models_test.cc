// Models that say something odd and are right: they run, give the right results, and get at most a warning.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "codegen/compile.h"
#include "frontend/onnx/test_data.h"
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

namespace fs = std::filesystem;
const std::string kOdd = RELAXC_SOURCE_DIR "/tests/frontend/odd/";

struct OddModel {
  std::string folder;
  int strict_exit_code = 0;
  std::string warning;  // LEVEL stands for warning, error or unsupported
};

std::vector<OddModel> read_cases() {
  std::vector<OddModel> result;
  std::ifstream file(kOdd + "cases.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    OddModel model;
    std::string bar;
    words >> model.folder >> bar >> model.strict_exit_code >> bar >> std::ws;
    std::getline(words, model.warning);
    result.push_back(model);
  }
  return result;
}

std::string with_level(std::string text, const std::string& level) {
  size_t at = text.find("LEVEL");
  return at == std::string::npos ? text : text.replace(at, 5, level);
}

}  // namespace

TEST_CASE("odd models run and are right", "[frontend]") {
  std::set<std::string> listed;
  for (const OddModel& model : read_cases()) {
    listed.insert(model.folder);
    std::string folder = kOdd + model.folder;
    test::Outcome outcome = test::run_program({RELAXC_TOOL, "run", folder + "/model.onnx", "--test-data", folder}, 120);
    INFO(model.folder << ": " << outcome.how_it_ended() << "\n" << outcome.out << outcome.err);
    // folded_twins has no expected outputs: they are compared below.
    if (fs::exists(folder + "/output_0.pb")) CHECK(outcome.exit_code == 0);
    std::string warning = with_level(model.warning, "warning");
    if (warning.empty()) CHECK(outcome.err.find("warning") == std::string::npos);
    CHECK(outcome.err.find(warning) != std::string::npos);

    test::Outcome strict = test::run_program({RELAXC_TOOL, "run", folder + "/model.onnx", "--strict"}, 120);
    INFO("strict: " << strict.how_it_ended() << "\n" << strict.err);
    CHECK(strict.exit_code == model.strict_exit_code);
    CHECK(strict.err.find(with_level(model.warning, strict.exit_code == 3 ? "unsupported" : "error")) !=
          std::string::npos);
  }
  for (const auto& entry : fs::directory_iterator(kOdd)) {
    if (entry.is_directory()) CHECK(listed.contains(entry.path().filename().string()));
  }
}

TEST_CASE("an operator gives the same on a shape and on the same numbers at run time", "[frontend]") {
  std::string folder = kOdd + "folded_twins";
  CompileSettings settings;
  std::vector<std::string> warnings;
  settings.warn = [&](const Diagnostic& warning) { warnings.push_back(to_string(warning)); };
  Session session(compile_file(folder + "/model.onnx", settings).load(), {.threads = 1});
  std::vector<Tensor> results =
      session.run({read_tensor_pb(folder + "/input_0.pb"), read_tensor_pb(folder + "/input_1.pb")});
  REQUIRE(results.size() >= 40);
  for (size_t i = 0; i + 1 < results.size(); i += 2) {
    INFO(session.program().outputs()[i].name);
    CHECK(describe(results[i]) == describe(results[i + 1]));
    CHECK(same_contents(results[i], results[i + 1]));
  }
  for (const std::string& warning : warnings) UNSCOPED_INFO(warning);
  CHECK(warnings.empty());
}

TEST_CASE("a dropout that draws elements, as by default in old opsets, is a warning", "[frontend]") {
  const test::Folder folder("dropout");
  for (int is_test : {0, 1}) {
    test::OnnxModel model(6);
    model.input("x", kFloat32, "3").output("y");
    test::set_int(model.node("Dropout", "x", "y"), "is_test", is_test);
    std::string warnings;
    CompileSettings settings;
    settings.warn = [&](const Diagnostic& warning) { warnings += to_string(warning); };
    (void)compile_file(folder.write("model.onnx", model.proto().SerializeAsString()), settings);
    INFO(warnings);
    CHECK(warnings.empty() == (is_test == 1));
    if (is_test == 0) CHECK(warnings.find("it drops elements at random: is_test is 0") != std::string::npos);
  }
}

TEST_CASE("--input-pb without a file takes nothing else for one", "[frontend]") {
  std::string folder = kOdd + "unknown_dim";
  for (std::vector<std::string> order : {std::vector<std::string>{"--input-pb", "--threads", "1"},
                                         std::vector<std::string>{"--threads", "1", "--input-pb"},
                                         std::vector<std::string>{"--input-pb", "--seed", "3", "--profile"}}) {
    order.insert(order.begin(), {RELAXC_TOOL, "run", folder + "/model.onnx"});
    test::Outcome outcome = test::run_program(order, 120);
    INFO(outcome.how_it_ended() << outcome.err);
    CHECK(outcome.exit_code == 0);
  }
  test::Outcome given = test::run_program(
      {RELAXC_TOOL, "run", folder + "/model.onnx", "--input-pb", folder + "/input_0.pb", "--threads", "1"}, 120);
  INFO(given.err);
  CHECK(given.exit_code == 0);
  CHECK(given.out.find("2.5]") != std::string::npos);
}

TEST_CASE("models of every IR version run", "[frontend]") {
  for (int64_t version = 3; version <= 13; ++version) {
    INFO("IR version " << version);
    test::OnnxModel model(version < 4 ? 7 : 9);
    model.input("x", kFloat32, "n,3").constant("w", test::numbers({3})).output("y");
    if (version == 3) model.input("w", kFloat32, "3");  // where each weight is an input, too
    model.node("Add", "x w", "y");
    model.proto().set_ir_version(version);
    Tensor w = test::numbers({3}), sum = model.compile().run({w.reshaped({1, 3})})[0];
    for (int64_t i = 0; i < 3; ++i) CHECK(sum.as_double(i) == 2 * w.as_double(i));
  }
}
