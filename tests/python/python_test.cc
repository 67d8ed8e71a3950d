// The tests of the Python package, with Debian's python3 and what it has of NumPy, onnx and torch.
#include <stdlib.h>

#include "tests/process.h"
#include "tests/python_package.h"

#include "tests/catch.h"  // last

using namespace relaxc;

TEST_CASE("the Python package", "[python]") {
  const std::string folder = RELAXC_SOURCE_DIR "/tests/python";
  if (!test::why_no_python_package().empty()) {
    WARN("test skipped: " << test::why_no_python_package());
    return;
  }
  setenv("PYTHONPATH", (RELAXC_SOURCE_DIR "/api/python:" + folder).c_str(), 1);
  setenv("RELAXC_LIBRARY", RELAXC_BINARY_DIR, 1);
  test::Outcome outcome = test::run_program({test::kPython, "-B", "-m", "unittest", "discover", "-s", folder}, 500);
  INFO(outcome.how_it_ended() << "\n" << outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
}
