// Installs relaxc below the build folder, builds examples/embed against it as a stranger would, and runs it.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/embed/must_run.h"
#include "tests/patterns.h"

#include "tests/catch.h"

using namespace relaxc;
using test::must_run;
namespace fs = std::filesystem;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the file of a name below a folder.
fs::path file_below(const fs::path& folder, const std::string& name) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == name) return entry.path();
  }
  FAIL("no file " << name << " below " << folder);
  return {};
}

bool is_elf_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  char start[4] = {};
  return in.read(start, 4) && std::string_view(start, 4) == "\177ELF";
}

// Returns whether each folder in which the dynamic linker looks for the file's libraries is absolute or relative to the
// file. An empty one is the current folder, whose libraries anybody may have written.
bool folders_of_libraries_are_fixed(const fs::path& file) {
  const std::string dynamic = must_run({"readelf", "--wide", "-d", file});
  const size_t found = dynamic.find("path: [");
  if (found == std::string::npos) return true;
  const size_t begin = found + std::string_view("path: [").size();
  std::stringstream list(dynamic.substr(begin, dynamic.find(']', begin) - begin) + ":");
  bool result = true;
  for (std::string folder; std::getline(list, folder, ':');)
    result = result && (folder.starts_with('/') || folder.starts_with("$ORIGIN"));
  return result;
}

}  // namespace

TEST_CASE("an installed relaxc is found, linked and runs in another project", "[embed]") {
  std::string build = RELAXC_BINARY_DIR, prefix = build + "/prefix", project = build + "/embed";
  fs::remove_all(prefix);
  fs::remove_all(project);
  must_run({RELAXC_CMAKE, "--install", build, "--prefix", prefix});
  CHECK(fs::exists(prefix + "/bin/relaxc"));
  for (const char* name : {"relaxc.h", "relaxc.hpp", "runtime.h", "schedule.h", "pass.h", "kernel_abi.h"})
    CHECK(fs::exists(prefix + "/include/relaxc/" + name));
  for (const char* name : {"doc/relaxc/LICENSE", "doc/relaxc/copyright", "doc/relaxc/docs/README.md",
                           "doc/relaxc/ARCHITECTURE.md", "doc/relaxc/bench/models/README.md",
                           "doc/relaxc/runtime/CMakeLists.txt", "doc/relaxc/examples/digits/digits.onnx",
                           "man/man1/relaxc-run.1", "bash-completion/completions/relaxc", "zsh/site-functions/_relaxc"})
    CHECK(fs::exists(prefix + "/share/" + name));
  // Commands of the documents find the files that they name.
  std::vector<fs::path> documents = {RELAXC_SOURCE_DIR "/README.md"};
  for (const auto& entry : fs::directory_iterator(RELAXC_SOURCE_DIR "/docs")) documents.push_back(entry.path());
  size_t count = 0;
  for (const fs::path& document : documents) {
    if (document.extension() != ".md") continue;
    for (const auto& found : test::matches(contents(document), "tests/(?:hostile|modules)/[\\w/]+\\.(?:onnx|py)")) {
      INFO(document << ": " << found[0]);
      CHECK(fs::exists(prefix + "/share/doc/relaxc/" + found[0]));
      ++count;
    }
  }
  CHECK(count > 5);
  // What is installed does not look for its libraries in the build folder.
  for (const char* part : {"/bin", "/lib"}) {
    for (const auto& entry : fs::recursive_directory_iterator(prefix + part)) {
      INFO(entry.path());
      if (entry.is_regular_file()) CHECK_FALSE(contains(contents(entry.path()), build));
      if (entry.is_regular_file() && is_elf_file(entry.path())) CHECK(folders_of_libraries_are_fixed(entry.path()));
    }
  }
  for (const auto& entry : fs::directory_iterator(build)) {
    INFO(entry.path());
    if (entry.is_regular_file() && is_elf_file(entry.path())) CHECK(folders_of_libraries_are_fixed(entry.path()));
  }
  must_run({RELAXC_CMAKE, "-S", RELAXC_SOURCE_DIR "/examples/embed", "-B", project, "-G", "Ninja",
            "-DCMAKE_PREFIX_PATH=" + prefix, "-DCMAKE_CXX_FLAGS=" RELAXC_CXX_FLAGS});
  must_run({RELAXC_CMAKE, "--build", project});

  std::string artifact = project + "/digits.so";
  std::string out = must_run({project + "/embed", RELAXC_SOURCE_DIR "/examples/digits/digits.onnx", artifact});
  INFO(out);
  CHECK(contains(out, "input  image: float32[batch, 1, 8, 8]"));
  CHECK(contains(out, "output probability: float32[batch, 10]"));
  for (const char* batch : {"1", "3", "16"}) {
    CHECK(contains(out,
                   fmt::format("float32[{}, 1, 8, 8] at exactly the host's memory -> float32[{}, 10]", batch, batch)));
  }
  CHECK(must_run({project + "/serve", artifact}) == "float32[2, 10]\n");
  for (const std::string& file : {artifact, std::string(RELAXC_SOURCE_DIR "/examples/digits/digits.onnx")}) {
    std::string text = must_run({project + "/embed_c", file});
    INFO(text);
    CHECK(contains(text, "input  image: float32[batch, 1, 8, 8]\nprobability: [1, 10]\n"));
    CHECK(contains(text, "probability: [16, 10]\n  "));  // and the kernels
  }
  if (fs::exists(build + "/librelaxc.a"))
    CHECK(contains(must_run({project + "/embed_c_static", artifact}), "probability: [16, 10]\n  "));
  // Each kind of error can be caught.
  auto error_of = [](const std::vector<std::string>& argv) {
    test::Outcome outcome = test::run_program(argv, 60);
    CHECK(outcome.exit_code == 1);
    return outcome.err;
  };
  std::ofstream(project + "/ints.py") << "@R.function\ndef main(x: R.Tensor((2,), 'int32')):\n    return R.add(x, x)\n";
  must_run({prefix + "/bin/relaxc", "compile", project + "/ints.py", "-o", project + "/ints.so"});
  CHECK(contains(error_of({project + "/serve", project + "/ints.so"}), "the run failed: input 'x'"));
  std::ofstream(project + "/broken.onnx") << "no model";
  CHECK(
      contains(error_of({project + "/embed", project + "/broken.onnx", artifact}), "the model cannot be compiled:\n"));

  // The runtime needs neither the compiler nor what the compiler needs.
  std::string libraries = must_run({"ldd", project + "/serve"});
  for (const char* name : {"LLVM", "protobuf", "onnx", "fmt"}) CHECK_FALSE(contains(libraries, name));
}

// The package for Debian has it run before its files go.
TEST_CASE("the package removes what Python compiled", "[embed]") {
  const fs::path root = RELAXC_BINARY_DIR "/package_root", package = root / "usr/lib/python3/dist-packages/relaxc";
  fs::remove_all(root);
  fs::create_directories(package / "__pycache__");
  std::ofstream(package / "model.py") << "";
  must_run({"env", "DPKG_ROOT=" + root.string(), RELAXC_SOURCE_DIR "/cmake/debian/prerm", "remove"});
  CHECK_FALSE(fs::exists(package / "__pycache__"));
  CHECK(fs::exists(package / "model.py"));
}

// dpkg-shlibdeps makes the package's list; it must know the package of each library that the compiler loads.
TEST_CASE("the package depends on the packages of its libraries", "[embed]") {
  if (!fs::exists("/usr/bin/dpkg-shlibdeps")) return;
  const std::string folder = RELAXC_BINARY_DIR "/package_names";
  fs::create_directories(folder + "/debian");
  std::ofstream(folder + "/debian/control") << "Source: relaxc\n\nPackage: relaxc\nArchitecture: any\n";
  const std::string names = must_run({"env", "-C", folder, "dpkg-shlibdeps", "-O", "-e" RELAXC_BINARY_DIR "/relaxc"});
  for (const char* library : {"libllvm", "libprotobuf", "libstdc++6", "libc6"}) CHECK(contains(names, library));
}

// What docs/deploy.md and README.md say.
TEST_CASE("the runtime stays small", "[embed]") {
  if (std::string_view(RELAXC_BUILD_TYPE) != "Release" || !std::string_view(RELAXC_CXX_FLAGS).empty()) return;
  const std::string build = RELAXC_BINARY_DIR, folder = build + "/sizes";
  fs::create_directories(folder);
  must_run(
      {"sh", "-c",
       fmt::format("c++ -std=c++20 -O2 -I{1}/public -I{0} {0}/examples/embed/serve.cc -o {2}/serve {1}/librelaxc_rt.a "
                   "-Wl,--gc-sections -pthread -ldl",
                   RELAXC_SOURCE_DIR, build, folder)});
  auto stripped_size = [&](const std::string& file) {
    must_run({"strip", "-o", folder + "/stripped", file});
    return fs::file_size(folder + "/stripped");
  };
  CHECK(stripped_size(folder + "/serve") <= 300'000);
  CHECK(stripped_size(build + "/librelaxc.so") <= 330'000);
  if (!fs::exists(build + "/librelaxc.a")) return;  // another compiler or type of build
  must_run({"sh", "-c",
            fmt::format("cc -O2 -I{1}/public -I{0} {0}/tests/embed/one_file.c -o {2}/one_file {1}/librelaxc.a "
                        "-lstdc++ -lm -pthread -ldl -Wl,--gc-sections",
                        RELAXC_SOURCE_DIR, build, folder)});
  CHECK(stripped_size(folder + "/one_file") <= 300 * 1024);
}

TEST_CASE("a program in C is one file with the runtime in it", "[embed]") {
  const std::string build = RELAXC_BINARY_DIR, prefix = build + "/prefix", project = build + "/one_file";
  if (!fs::exists(build + "/librelaxc.a")) return;  // another compiler or type of build
  must_run({RELAXC_CMAKE, "--install", build, "--prefix", prefix});
  fs::remove_all(project);
  fs::create_directories(project);
  const std::string artifact = project + "/digits.so";
  must_run({prefix + "/bin/relaxc", "compile", RELAXC_SOURCE_DIR "/examples/digits/digits.onnx", "-o", artifact});
  const std::string folder = file_below(prefix, "relaxc-c-static.pc").parent_path();
  for (const char* flags : {"", "-static"}) {
    must_run({"sh", "-c",
              fmt::format("cc -std=c11 -Wall -Wextra -Werror " RELAXC_CXX_FLAGS " {0} {1}/tests/embed/one_file.c "
                          "-o {2}/one_file $(PKG_CONFIG_PATH={3} pkg-config --cflags --libs relaxc-c-static)",
                          flags, RELAXC_SOURCE_DIR, project, folder)});
    CHECK(must_run({project + "/one_file", artifact}) == "1.000\n");
  }
  // The compiler lies beside the program; one that is static has a C library of its own, and refuses it.
  fs::copy_file(build + "/librelaxc_compiler.so", project + "/librelaxc_compiler.so");
  std::ofstream(project + "/compiles.c") << "#include <relaxc/relaxc.h>\n#include <stdio.h>\n"
                                            "int main(int argc, char** argv) {\n"
                                            "  relaxc_program* program = NULL;\n"
                                            "  const int status = relaxc_compile(argv[argc - 1], NULL, &program);\n"
                                            "  puts(status ? relaxc_error_message() : \"compiled\");\n"
                                            "  return 0;\n"
                                            "}\n";
  for (const auto& [flags, answer] :
       {std::pair("", "compiled"), std::pair("-static", "a static program opens no libraries); link it without")}) {
    must_run({"sh", "-c",
              fmt::format("cc " RELAXC_CXX_FLAGS " {0} {1}/compiles.c -o {1}/compiles "
                          "$(PKG_CONFIG_PATH={2} pkg-config --cflags --libs relaxc-c-static)",
                          flags, project, folder)});
    CHECK(contains(must_run({project + "/compiles", RELAXC_SOURCE_DIR "/examples/digits/digits.onnx"}), answer));
  }
  // It shows the host none of the names of its C++ code.
  const std::string names = must_run({"nm", "-g", "--defined-only", "-f", "just-symbols", build + "/librelaxc.a"});
  std::stringstream lines(names);
  size_t count = 0;
  for (std::string name; std::getline(lines, name);) {
    if (name.empty() || name.ends_with(":")) continue;
    INFO(name);
    CHECK(name.starts_with("relaxc_"));
    ++count;
  }
  CHECK(count > 50);
}

TEST_CASE("an installed relaxc is found by pkg-config", "[embed]") {
  std::string build = RELAXC_BINARY_DIR, prefix = build + "/prefix", project = build + "/pkgconfig";
  must_run({RELAXC_CMAKE, "--install", build, "--prefix", prefix});
  fs::remove_all(project);
  fs::create_directories(project);
  const std::string folder = file_below(prefix, "relaxc.pc").parent_path();
  for (const auto& [program, package] : {std::pair("serve", "relaxc-runtime"), std::pair("embed", "relaxc")}) {
    must_run({"sh", "-c",
              fmt::format("c++ -std=c++20 " RELAXC_CXX_FLAGS " {0}/examples/embed/{1}.cc -o {2}/{1} "
                          "$(PKG_CONFIG_PATH={3} pkg-config --cflags --libs {4})",
                          RELAXC_SOURCE_DIR, program, project, folder, package)});
  }
  must_run({"sh", "-c",
            fmt::format("cc -std=c11 -Wall -Wextra -pedantic -Werror " RELAXC_CXX_FLAGS
                        " {0}/examples/embed/embed.c -o {1}/embed_c "
                        "$(PKG_CONFIG_PATH={2} pkg-config --cflags --libs relaxc-c) -Wl,-rpath,{2}/..",
                        RELAXC_SOURCE_DIR, project, folder)});
  const std::string artifact = project + "/digits.so";
  must_run({project + "/embed", RELAXC_SOURCE_DIR "/examples/digits/digits.onnx", artifact});
  CHECK(must_run({project + "/serve", artifact}) == "float32[2, 10]\n");
  CHECK(contains(must_run({project + "/embed_c", artifact}), "probability: [16, 10]\n"));
}

// The host's folder has no librelaxc_builtins.so.
TEST_CASE("programs link the builtins that few programs call", "[embed]") {
  const std::string build = RELAXC_BINARY_DIR, prefix = build + "/prefix", project = build + "/builtins_project";
  must_run({RELAXC_CMAKE, "--install", build, "--prefix", prefix});
  fs::remove_all(project);
  must_run({RELAXC_CMAKE, "-S", RELAXC_SOURCE_DIR "/tests/embed/builtins_project", "-B", project, "-G", "Ninja",
            "-DCMAKE_PREFIX_PATH=" + prefix, "-DCMAKE_CXX_FLAGS=" RELAXC_CXX_FLAGS});
  must_run({RELAXC_CMAKE, "--build", project});
  const std::string find =
      "PKG_CONFIG_PATH=" + file_below(prefix, "relaxc-builtins.pc").parent_path().string() + " pkg-config ";
  must_run(
      {"sh", "-c",
       fmt::format("c++ -std=c++20 " RELAXC_CXX_FLAGS " -I{0} {0}/tests/embed/rare_host.cc -o {1}/host_by_pkg_config "
                   "$({2} --cflags --libs relaxc-builtins)",
                   RELAXC_SOURCE_DIR, project, find)});
  std::ofstream(project + "/rare.py") << "@R.function(pure=False)\n"
                                         "def main(x: R.Tensor((\"n\",), \"float32\"), c: R.Tensor((), \"bool\")):\n"
                                         "    _ = R.assert_op(c, format=\"never\")\n"
                                         "    return x\n";
  must_run({prefix + "/bin/relaxc", "compile", project + "/rare.py", "-o", project + "/rare.so"});
  for (const char* host : {"/host", "/host_by_pkg_config"})
    CHECK(contains(must_run({project + host, project + "/rare.so"}), "0 right\n4 vm.builtin.assert: "));
  std::string shared = must_run({"sh", "-c", find + "--variable=shared relaxc-builtins"});
  shared.pop_back();
  CHECK(fs::exists(shared));
}

// As docs/targets.md does for another processor, which has none of the compiler's packages.
TEST_CASE("the runtime is built without the compiler and what that needs", "[embed]") {
  const std::string project = std::string(RELAXC_BINARY_DIR) + "/runtime_alone";
  fs::remove_all(project);
  std::vector<std::string> configure = {RELAXC_CMAKE, "-S", RELAXC_SOURCE_DIR, "-B",
                                        project,      "-G", "Ninja",           "-DRELAXC_RUNTIME_ONLY=ON"};
  for (const char* package : {"LLVM", "ONNX", "Protobuf", "fmt", "ZLIB"})
    configure.push_back(fmt::format("-DCMAKE_DISABLE_FIND_PACKAGE_{}=ON", package));
  must_run(configure);
  const std::string targets = must_run({RELAXC_CMAKE, "--build", project, "--target", "help"});
  CHECK(contains(targets, "relaxc-run"));
  CHECK(contains(targets, "relaxc_c: phony"));
  CHECK_FALSE(contains(targets, "relaxc_compiler"));
  // Without the headers that it needs it says which packages of Debian have them.
  fs::remove_all(project);
  for (const char* header : {"FMT_HEADERS", "XXHASH_HEADERS", "CLI11_HEADERS"}) {
    std::vector<std::string> without = configure;
    without.push_back(fmt::format("-D{}=", header));
    INFO(header);
    CHECK(contains(test::run_program(without, 60).err, "libcli11-dev"));  // CMake wraps lines
    fs::remove_all(project);
  }
}

// A host has its own ONNX, protobuf and LLVM in the process, before relaxc's are opened.
TEST_CASE("a program with other versions of what relaxc uses runs beside it", "[embed]") {
  std::string build = RELAXC_BINARY_DIR, prefix = build + "/prefix", project = build + "/crowded";
  must_run({RELAXC_CMAKE, "--install", build, "--prefix", prefix});
  fs::remove_all(project);
  fs::create_directories(project);
  const std::string onnx = "-DONNX_ML=1 -DONNX_NAMESPACE=onnx -lonnx -lonnx_proto -lprotobuf ";
  std::string llvm = "-DOTHER_LLVM='\"LLVM-15\"' -l:libLLVM-15.so.1";
  if (!must_run({"c++", "-print-file-name=libLLVM-15.so.1"}).starts_with('/')) {
    const std::string missing = "no other LLVM is there (./dev test installs llvm-15-linker-tools)";
    if (getenv("CI")) FAIL(missing);
    WARN("tested without another LLVM: " << missing);
    llvm.clear();
  }
  const std::string host = project + "/crowded", model = RELAXC_SOURCE_DIR "/examples/digits/digits.onnx";
  const std::string fixed = "-DSTATIC_PROTOBUF -l:libprotobuf.a -lpthread ", own = " -DOWN_ALLOCATOR";
  // Each with the library whose symbols it may not have.
  const std::vector<std::pair<std::string, std::string>> hosts = {{onnx + llvm, ""},
                                                                  {"-DPOISONED=7", ""},
                                                                  {onnx + llvm + own, ""},
                                                                  {fixed + own, "libprotobuf"},
                                                                  {"-DPOISONED=1" + own, "libprotobuf"},
                                                                  {"-DPOISONED=2" + own, "libLLVM"},
                                                                  {"-DPOISONED=4" + own, "libonnx"},
                                                                  {fixed, ""}};
  for (const auto& [flags, other] : hosts) {
    must_run({"sh", "-c",
              fmt::format("lib=$(dirname $(find {2} -name librelaxc.so)); c++ -std=c++20 {0}/tests/embed/crowded.cc -o "
                          "{1}/crowded -I{2}/include -I{0} -L$lib -lrelaxc -Wl,-rpath,$lib -rdynamic -ldl {3}",
                          RELAXC_SOURCE_DIR, project, prefix, flags)});
    INFO(flags);
    const test::Outcome outcome = test::run_program({host, model}, 60);
    INFO(outcome.err);
    if (other.empty()) {
      CHECK(outcome.out == "10 classes\n");
    } else {
      CHECK(outcome.exit_code == 1);
      CHECK(contains(outcome.err, fmt::format("and {} exports another {}); link it without -rdynamic", host, other)));
    }
  }
  const test::Outcome small = test::run_program({"sh", "-c", fmt::format("ulimit -v 200000; {} {}", host, model)}, 60);
  CHECK(contains(small.err, "); allow the process more memory, or compile"));
}

TEST_CASE("plug-ins are built against an installed relaxc, and its command loads them", "[embed]") {
  std::string build = RELAXC_BINARY_DIR, prefix = build + "/prefix";
  must_run({RELAXC_CMAKE, "--install", build, "--prefix", prefix});
  for (const char* name : {"plugin", "accelerator"}) {
    std::string project = build + "/embedded_" + name;
    fs::remove_all(project);
    must_run({RELAXC_CMAKE, "-S", fmt::format("{}/examples/{}", RELAXC_SOURCE_DIR, name), "-B", project, "-G", "Ninja",
              "-DCMAKE_PREFIX_PATH=" + prefix, "-DCMAKE_CXX_FLAGS=" RELAXC_CXX_FLAGS});
    must_run({RELAXC_CMAKE, "--build", project});
  }
  std::string tool = prefix + "/bin/relaxc", example = build + "/embedded_plugin/libmy_pass.so";
  CHECK(contains(must_run({tool, "opt", "--list-passes", "--plugin", example}), "[" + example + "]"));
  std::string accelerator = build + "/embedded_accelerator";
  must_run({accelerator + "/accelerator_demo", accelerator + "/libmxu_plugin.so",
            RELAXC_SOURCE_DIR "/examples/accelerator/digits_int8.onnx",
            RELAXC_SOURCE_DIR "/examples/digits/samples.npy"});
}

// The compiler gets macros of the host, a dlpack.h as frameworks have it, and the installed headers only.
TEST_CASE("each public header compiles alone and leaves the host's macros and structs alone", "[embed]") {
  std::string include = std::string(RELAXC_BINARY_DIR) + "/headers", source = include + "/host.cc";
  fs::remove_all(include);
  must_run({RELAXC_CMAKE, "-DSOURCE_DIR=" RELAXC_SOURCE_DIR, "-DDESTINATION=" + include, "-P",
            RELAXC_SOURCE_DIR "/cmake/install_headers.cmake"});
  std::ofstream(include + "/dlpack.h") << R"(#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#include <stdint.h>
typedef enum : int32_t { kDLCPU = 1 } DLDeviceType;
typedef enum { kDLInt, kDLUInt, kDLFloat } DLDataTypeCode;
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
  void* data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t *shape, *strides; uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor { DLTensor dl_tensor; void* manager_ctx; void (*deleter)(DLManagedTensor*); } DLManagedTensor;
#endif
)";
  int count = 0;
  for (const auto& header : fs::directory_iterator(include + "/relaxc")) {
    if (header.is_directory()) continue;
    ++count;
    for (const char* first : {"", "#include \"dlpack.h\"\n"}) {
      std::ofstream(source) << first
                            << "#define CHECK(condition) hosts_check(condition)\n#define X(name) hosts_x(name)\n"
                            << "#include <relaxc/" << header.path().filename().string() << ">\n"
                            << "int hosts_check(bool), hosts_x(int), checks = CHECK(true) + X(1);\n";
      must_run({"c++", "-std=c++20", "-fsyntax-only", "-Werror", "-I" + include, source});
    }
  }
  CHECK(count >= 10);
}
