// Many threads run one program: as released, and with ThreadSanitizer, which stops the program where two threads access
// memory without order.
#include <filesystem>

#include "support/formatted.h"
#include "tests/embed/must_run.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

TEST_CASE("eight threads run one program with batches of all sizes", "[threads]") {
  const std::string artifact = RELAXC_BINARY_DIR "/many_threads.so";
  must_run({RELAXC_TOOL, "compile", RELAXC_SOURCE_DIR "/examples/digits/digits.onnx", "-o", artifact});
  const std::string released = must_run({RELAXC_MANY_THREADS, artifact});
  CHECK(released.starts_with("0 of 24000 results are wrong"));

  if (!std::string_view(RELAXC_CXX_FLAGS).empty()) return;
  const std::string build = RELAXC_BINARY_DIR "/thread_sanitizer";
  must_run({RELAXC_CMAKE, "-S", RELAXC_SOURCE_DIR, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            "-DRELAXC_RUNTIME_ONLY=ON", "-DRELAXC_SANITIZE=thread"});
  must_run({RELAXC_CMAKE, "--build", build, "--target", "many_threads"});
  const Outcome watched = run_program({build + "/many_threads", artifact}, 600);
  // GCC's sanitizer before 14 does not start where the kernel places memory with more random bits, as Ubuntu's does.
  if (watched.err.find("unexpected memory mapping") != std::string::npos) return;
  INFO(watched.how_it_ended() << "\n" << watched.out << watched.err);
  CHECK(watched.exit_code == 0);
  CHECK(watched.out.starts_with("0 of 24000 results are wrong"));
}

}  // namespace relaxc::test
