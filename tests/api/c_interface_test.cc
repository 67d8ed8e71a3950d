// The C interface (api/relaxc.h): a host in C, and the symbols that its libraries show.
#include "tests/folder.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

using namespace relaxc;

TEST_CASE("a host in C compiles, loads, runs and makes mistakes", "[api]") {
  test::Folder folder("api");
  test::Outcome outcome = test::run_program({RELAXC_API_CHECKS, folder.path.string()}, 600);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == "all right\n");
}

TEST_CASE("the C++ headers say which standard they need", "[api]") {
  for (const char* header : {"codegen/compile.h", "vm/program.h"}) {
    test::Outcome outcome = test::run_program({"c++", "-std=c++17", "-fsyntax-only", "-I" RELAXC_SOURCE_DIR, "-x",
                                               "c++", RELAXC_SOURCE_DIR "/" + std::string(header)},
                                              60);
    INFO(outcome.err);
    CHECK(outcome.exit_code != 0);
    const std::string first = outcome.err.substr(0, outcome.err.find("\n", outcome.err.find("error:")));
    CHECK(first.find("C++20 is needed") != std::string::npos);
  }
}

// Names of other packages, such as those of C++ templates, would meet those of the host.
TEST_CASE("the shared libraries show functions of one prefix and need what they say", "[api]") {
  std::vector<std::string> libraries = {RELAXC_C_LIBRARY, RELAXC_COMPILER_LIBRARY,
                                        RELAXC_BINARY_DIR "/librelaxc_builtins.so"};
  const std::string images = RELAXC_BINARY_DIR "/librelaxc_images.so";  // where its packages are installed
  if (std::filesystem::exists(images)) libraries.push_back(images);
  for (const std::string& library : libraries) {
    INFO(library);
    test::Outcome symbols = test::run_program({"nm", "-D", "--defined-only", library}, 60);
    REQUIRE(symbols.exit_code == 0);
    std::istringstream lines(symbols.out);
    int count = 0;
    for (std::string address, kind, name; lines >> address >> kind >> name; ++count) CHECK(name.starts_with("relaxc_"));
    CHECK(count > 0);
  }
  test::Outcome needed = test::run_program({"ldd", RELAXC_C_LIBRARY}, 60);
  for (const char* name : {"fmt", "LLVM", "protobuf", "onnx"}) CHECK(needed.out.find(name) == std::string::npos);
}
