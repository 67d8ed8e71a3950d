// The tests of the Python package, with Debian's python3 and what it has of NumPy, onnx and torch.
#include <stdlib.h>

#include <fmt/format.h>

#include "api/relaxc.h"
#include "tests/process.h"
#include "tests/python_package.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

// The size of each struct that the package declares, and where its last member begins.
std::string layouts() {
#define RELAXC_LAYOUT(type, member) \
  fmt::format("{}={},{} ", #type, sizeof(relaxc_##type), offsetof(relaxc_##type, member))
  return RELAXC_LAYOUT(value_info, fields) + RELAXC_LAYOUT(error_place, column) +
         RELAXC_LAYOUT(load_options, trust_contents) + RELAXC_LAYOUT(session_options, user) +
         RELAXC_LAYOUT(memory_stats, allocations) + RELAXC_LAYOUT(kernel_record, bytes) +
         RELAXC_LAYOUT(progress_info, seconds) + RELAXC_LAYOUT(compile_options, fast_int8) +
         fmt::format("api={},0", RELAXC_API_VERSION);
#undef RELAXC_LAYOUT
}

}  // namespace

TEST_CASE("the Python package", "[python]") {
  const std::string folder = RELAXC_SOURCE_DIR "/tests/python";
  if (!test::why_no_python_package().empty()) {
    WARN("test skipped: " << test::why_no_python_package());
    return;
  }
  setenv("PYTHONPATH", (RELAXC_SOURCE_DIR "/api/python:" + folder).c_str(), 1);
  setenv("RELAXC_LIBRARY", RELAXC_BINARY_DIR, 1);
  setenv("RELAXC_LAYOUTS", layouts().c_str(), 1);
  test::Outcome outcome = test::run_program({test::kPython, "-B", "-m", "unittest", "discover", "-s", folder}, 500);
  INFO(outcome.how_it_ended() << "\n" << outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
}
