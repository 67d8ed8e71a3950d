// Machine code for a CPU that this machine is not: refused with a sentence, in this process and as an artifact.
#include "vm/cpu.h"

#include <unistd.h>

#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "codegen/compile.h"
#include "codegen/target.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "tests/folder.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

namespace fs = std::filesystem;
const std::string kModel = RELAXC_SOURCE_DIR "/examples/digits/digits.onnx";

CompiledModule compiled_for(const std::string& target) {
  CompileSettings settings;
  settings.target = target;
  settings.opt_level = 0;
  return compile_file(kModel, settings);
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

// Returns the errors of a program for the target, loaded in both ways.
std::vector<std::string> load_errors(const std::string& target) {
  test::Folder folder("cpu");
  std::string path = (folder.path / "m.so").string();
  CompiledModule compiled = compiled_for(target);
  compiled.write(path);
  return {error_of([&] { compiled.load(); }), error_of([&] { Program::load(path); })};
}

}  // namespace

TEST_CASE("the runtime finds the features that LLVM finds on this machine", "[codegen]") {
  Target host = codegen::host_target();
  std::vector<std::string_view> known = vm::cpu_features(vm::host_architecture());
  REQUIRE(!known.empty());
  std::istringstream list(host.features);
  int compared = 0;
  for (std::string item; std::getline(list, item, ',');) {
    std::string name = item.substr(1);
    if (std::find(known.begin(), known.end(), name) == known.end()) continue;
    INFO(item);
    CHECK(vm::host_has_feature(name) == (item[0] == '+'));
    ++compared;
  }
  CHECK(compared >= 10);
  CHECK(codegen::architecture(host) == vm::host_architecture());
  for (const std::string& feature : codegen::loadable_features(host)) {
    INFO(feature);
    CHECK(vm::host_has_feature(feature));
  }
}

TEST_CASE("code for RISC-V names the extensions that it needs", "[codegen]") {
  auto needed = [](const char* target) { return joined(codegen::loadable_features(codegen::parse_target(target))); };
  CHECK(needed("triple=riscv64-linux-gnu") == "m, a, f, d, c");
  CHECK(needed("triple=riscv64-linux-gnu,+v,+zbb") == "m, a, f, d, c, v, zbb");
  for (const std::string& error : load_errors("triple=riscv64-linux-gnu"))
    CHECK((error.find("the machine code is for riscv64") != std::string::npos || vm::host_architecture() == "riscv64"));
}

TEST_CASE("code for this machine loads, code for another is refused with what is missing", "[codegen]") {
  CHECK(load_errors("host") == std::vector<std::string>{"no error", "no error"});
  if (vm::host_architecture() != "x86_64") return;
  CHECK(load_errors("x86-64") == std::vector<std::string>{"no error", "no error"});
  if (vm::host_has_feature("fma4")) return;  // of AMD's Bulldozer and no other
  for (const std::string& error : load_errors("cpu=bdver4")) {
    INFO(error);
    CHECK(error.find("fma4") != std::string::npos);
    CHECK(error.find("which this one lacks") != std::string::npos);
    CHECK(error.find("--target=host") != std::string::npos);
  }
  for (const std::string& error : load_errors("triple=aarch64-unknown-linux-gnu")) {
    INFO(error);
    CHECK(error.find("the machine code is for aarch64, this machine is x86_64") != std::string::npos);
  }
}

TEST_CASE("the command says which CPU the code needs", "[codegen]") {
  if (vm::host_architecture() != "x86_64" || vm::host_has_feature("fma4")) return;
  test::Outcome cpu = test::run_program({RELAXC_TOOL, "run", kModel, "--target", "cpu=bdver4"}, 300);
  INFO(cpu.how_it_ended() << cpu.err);
  CHECK(cpu.exit_code == 1);
  CHECK(cpu.err.find("error: the machine code") != std::string::npos);
  test::Outcome other =
      test::run_program({RELAXC_TOOL, "run", kModel, "--target", "triple=aarch64-unknown-linux-gnu"}, 300);
  INFO(other.how_it_ended() << other.err);
  CHECK(other.exit_code == 2);  // before anything is compiled
  CHECK(other.err.find("code for aarch64 does not run on this machine") != std::string::npos);
}

TEST_CASE("what an executable says of its CPU may be hostile", "[codegen]") {
  vm::Executable executable;
  CHECK(vm::why_host_cannot_run(executable).empty());
  executable.metadata[vm::kArchitectureKey] = vm::host_architecture();
  CHECK(vm::why_host_cannot_run(executable).empty());
  executable.metadata[vm::kCpuFeaturesKey] = ",,no\nsuch\x1b";
  std::string problem = vm::why_host_cannot_run(executable);
  CHECK(problem.find("no\\nsuch\\x1b") != std::string::npos);
  executable.metadata[vm::kArchitectureKey] = "\x1b";
  CHECK(vm::why_host_cannot_run(executable).find("\\x1b") != std::string::npos);
}
