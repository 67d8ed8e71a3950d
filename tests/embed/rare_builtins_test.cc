// Builtins that few programs call, from librelaxc_builtins.so: hosts with another C++ library than it, and the places
// in which it is looked for, which a program without a dynamic linker lacks.
#include <fmt/format.h>

#include "support/version.h"
#include "tests/embed/must_run.h"
#include "tests/folder.h"

#include "tests/catch.h"  // last

using namespace relaxc;
namespace fs = std::filesystem;

namespace {

constexpr bool kIsSanitized = !std::string_view(RELAXC_CXX_FLAGS).empty();
constexpr const char* kRight = "0 right\n4 vm.builtin.assert: assertion failed: 2 elements\n0 right\n";

// A host in bin/ of a folder, which runs an artifact that calls vm.builtin.assert.
class RareHost {
 public:
  explicit RareHost(const std::string& flags) : folder_(fmt::format("rare_{}", count++)) {
    for (const char* part : {"bin", "lib"}) fs::create_directories(folder_.path / part);
    const std::string text = folder_.write("rare.py", R"(
@R.function(pure=False)
def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")):
    _ = R.assert_op(c, R.prim_value(n), format="{0} elements")
    return x
)");
    test::must_run({RELAXC_TOOL, "compile", text, "-o", folder_.at("rare.so")});
    test::must_run(
        {"sh", "-c",
         fmt::format("c++ -std=c++20 {0} -I{1}/public -I{2} {2}/tests/embed/rare_host.cc -o {3}/bin/host {4}",
                     RELAXC_CXX_FLAGS, RELAXC_BINARY_DIR, RELAXC_SOURCE_DIR, folder_.path.string(), flags)});
  }
  // Returns the place of a file that is copied from the build, or written.
  std::string at(const char* place) const { return folder_.at(place); }
  void copy(const char* file, const char* place) const {
    fs::copy_file(fs::path(RELAXC_BINARY_DIR) / file, at(place), fs::copy_options::overwrite_existing);
  }
  void compile_library(const char* place, const char* text) const {
    test::must_run({"cc", "-shared", "-fPIC", "-o", at(place), folder_.write("library.c", text)});
  }
  test::Outcome run() const {
    return test::run_program({"env", "LD_LIBRARY_PATH=" + at("lib"), at("bin/host"), at("rare.so")}, 60);
  }
  // Starts the host by relative paths in `from`; it goes to the folder `to` before it loads the artifact.
  test::Outcome run_relative(const char* from, const std::string& command, const char* to) const {
    return test::run_program({"sh", "-c", fmt::format("cd {} && {} {} {}", at(from), command, at("rare.so"), at(to))},
                             60);
  }

 private:
  inline static int count = 0;  // several hosts of a test have folders of their own
  test::Folder folder_;
};

// With the runtime linked in.
const std::string kRuntime = RELAXC_BINARY_DIR "/librelaxc_rt.a -Wl,--gc-sections -pthread -ldl";
const std::string kStatic = kIsSanitized ? "" : " -static-libstdc++ -static-libgcc";

}  // namespace

TEST_CASE("errors of a rare builtin reach hosts that link their C++ library in", "[embed]") {
  for (const std::string& flags : {std::string(), kStatic}) {
    RareHost cpp(kRuntime + flags), c("-DC_INTERFACE -L" RELAXC_BINARY_DIR " -lrelaxc" + flags);
    cpp.copy("librelaxc_builtins.so", "bin/librelaxc_builtins.so");
    c.copy("librelaxc_builtins.so", "lib/librelaxc_builtins.so");
    c.copy("librelaxc.so.0", "lib/librelaxc.so.0");  // beside which the other one is found
    for (const RareHost* host : {&cpp, &c}) {
      const test::Outcome outcome = host->run();
      INFO(flags << "\n" << outcome.how_it_ended() << "\n" << outcome.err);
      CHECK(outcome.out == kRight);
      CHECK(outcome.exit_code == 0);
    }
  }
}

TEST_CASE("a host with an allocator of its own frees nothing of a rare builtin", "[embed]") {
  // Linked in statically, the host's operator new is not that of the library.
  RareHost host("-DOWN_ALLOCATOR " + kRuntime + kStatic);
  host.copy("librelaxc_builtins.so", "bin/librelaxc_builtins.so");
  const test::Outcome outcome = host.run();
  INFO(outcome.how_it_ended() << "\n" << outcome.err);
  CHECK(outcome.out == kRight);
  CHECK(outcome.exit_code == 0);
}

TEST_CASE("a library of rare builtins is not taken from a folder that the host goes to", "[embed]") {
  RareHost cpp(kRuntime), c("-DC_INTERFACE -L" RELAXC_BINARY_DIR " -lrelaxc");
  cpp.copy("librelaxc_builtins.so", "bin/librelaxc_builtins.so");
  c.copy("librelaxc_builtins.so", "lib/librelaxc_builtins.so");
  c.copy("librelaxc.so.0", "lib/librelaxc.so.0");
  for (const RareHost* host : {&cpp, &c}) {
    fs::create_directories(host->at("other/lib"));
    for (const char* place : {"other/librelaxc_builtins.so", "other/lib/librelaxc_builtins.so"})
      host->compile_library(place,
                            "#include <unistd.h>\n"
                            "__attribute__((constructor)) static void foreign(void) { _exit(77); }\n");
    const test::Outcome outcome = host == &cpp ? host->run_relative("bin", "./host", "other")
                                               : host->run_relative(".", "LD_LIBRARY_PATH=lib bin/host", "other");
    INFO(outcome.how_it_ended() << "\n" << outcome.err);
    CHECK(outcome.out == kRight);
    CHECK(outcome.exit_code == 0);
  }
}

TEST_CASE("a static program is told that it cannot open the library of rare builtins", "[embed]") {
  if (kIsSanitized) return;  // sanitizers need a dynamic linker
  RareHost host(kRuntime + " -static");
  host.copy("librelaxc_builtins.so", "bin/librelaxc_builtins.so");
  const test::Outcome outcome = host.run();
  INFO(outcome.how_it_ended() << "\n" << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.err.find("rare.so: unsupported: function 'vm.builtin.assert' is one of librelaxc_builtins.so, "
                         "which a static program cannot open; link relaxc::builtins into it") != std::string::npos);
}

TEST_CASE("a library of rare builtins that is missing or foreign is refused with its places", "[embed]") {
  RareHost host(kRuntime);
  const std::string beside = host.at("bin/librelaxc_builtins.so");
  auto problem_is = [&](const std::string& problem) {
    const test::Outcome outcome = host.run();
    INFO(problem << "\n" << outcome.how_it_ended() << "\n" << outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.err.find(problem) != std::string::npos);
    for (const char* part :
         {"rare.so: error: function 'vm.builtin.assert' is one of librelaxc_builtins.so, and no such library of this "
          "relaxc was found\n",
          "note: put librelaxc_builtins.so of this relaxc beside librelaxc.so or the program, or link "
          "relaxc::builtins (docs/deploy.md)\n"})
      CHECK(outcome.err.find(part) != std::string::npos);
    CHECK(outcome.err.find(RELAXC_BINARY_DIR) == std::string::npos);
  };
  problem_is(fmt::format("note: '{}' does not exist\n  note: '{}/../lib", beside, host.at("bin")));
  std::ofstream(beside) << "no library";
  problem_is(beside + ": file too short");
  std::ofstream(beside) << std::string(1000, 'x');
  problem_is(beside + ": invalid ELF header");
  host.compile_library("bin/librelaxc_builtins.so", "int other;");
  problem_is(beside + ": undefined symbol: relaxc_builtins_library");
  host.compile_library("bin/librelaxc_builtins.so",
                       "static const char* const library[] = {\"0.0.9\", \"older\"};\n"
                       "const void* relaxc_builtins_library(void) { return library; }\n");
  problem_is(fmt::format("note: '{}' is of relaxc 0.0.9 older, expected {} {}", beside, kVersion, kCommit));

  // A later place has the right one. The last of them is the dynamic linker's search.
  host.copy("librelaxc_builtins.so", "lib/librelaxc_builtins.so");
  const test::Outcome outcome = host.run();
  INFO(outcome.err);
  CHECK(outcome.out == kRight);
}
