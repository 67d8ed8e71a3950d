// docs/operators.md is what the tables say, and every operator in it can be imported.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "frontend/onnx/examples.h"
#include "tests/patterns.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

using namespace relaxc;

TEST_CASE("docs/operators.md is current", "[tools]") {
  const std::string path = RELAXC_SOURCE_DIR "/docs/operators.md";
  test::Outcome printed = test::run_program({RELAXC_TOOL, "opt", "--list-onnx-ops"}, 600);
  INFO(printed.err);
  REQUIRE(printed.exit_code == 0);
  if (std::getenv("RELAXC_UPDATE")) std::ofstream(path, std::ios::binary) << printed.out;
  std::ifstream file(path, std::ios::binary);
  std::istringstream expected(std::string{std::istreambuf_iterator<char>(file), {}}), found(printed.out);
  int different = 0;
  for (std::string wanted, line; std::getline(found, line);) {
    std::getline(expected, wanted);
    if (line == wanted || ++different > 10) continue;
    FAIL_CHECK("the document has\n  " << wanted << "\nand the tables say\n  " << line
                                      << "\n./dev update onnx_operators writes it anew");
  }
  CHECK(different == 0);
  CHECK(!test::contains(printed.out, "(no example)"));
  for (const OnnxForms& op : onnx_forms()) CHECK(test::contains(printed.out, op.name));
}
