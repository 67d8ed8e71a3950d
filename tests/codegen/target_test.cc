// Figures of targets: where each is from, files of them, and what is refused.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "codegen/target.h"
#include "support/diagnostic.h"
#include "tir/rules/lanes.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

// A file that lives as long as this.
struct TargetFile {
  std::string path;
  explicit TargetFile(const std::string& text)
      : path((std::filesystem::temp_directory_path() / ("relaxc_target_" + std::to_string(getpid()))).string()) {
    std::ofstream(path) << text;
  }
  ~TargetFile() { std::remove(path.c_str()); }
};

std::string error_of(const std::string& file) {
  TargetFile target(file);
  try {
    codegen::parse_target("@" + target.path);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

std::string source_of(const Target& target, const char* figure) {
  auto found = target.sources.find(figure);
  return found == target.sources.end() ? "default" : found->second;
}

}  // namespace

TEST_CASE("figures say where they are from", "[codegen]") {
  Target znver4 = codegen::parse_target("cpu=znver4");
  CHECK(znver4.l2.bytes == 1 << 20);
  CHECK(source_of(znver4, "l2.bytes") == "the manual of znver4");
  CHECK(source_of(znver4, "fma_latency") == "LLVM's scheduling model of znver4");
  CHECK(source_of(znver4, "vector_bits") == "LLVM's features of the cpu");
  CHECK(source_of(znver4, "wake_cycles") == "default");
  CHECK(znver4.fma_ports == 1);  // 512 bits in two halves
  Target haswell = codegen::parse_target("cpu=haswell");
  CHECK(haswell.l2.bytes == 256 << 10);
  CHECK(haswell.fma_latency == 5);
  // Named targets do not depend on the machine.
  CHECK(codegen::parse_target("x86-64-v3").l2.bytes == Target().l2.bytes);
  CHECK(codegen::parse_target("x86-64-v3").cores == Target().cores);
}

TEST_CASE("a target has the dot products that rules have in its vectors", "[codegen]") {
  for (auto [name, bytes, halves] : {std::tuple("cpu=znver5", true, true),
                                     {"cpu=sapphirerapids", true, true},
                                     {"cpu=cooperlake", true, true},
                                     {"cpu=icelake-server", true, false},
                                     {"cpu=alderlake", true, false},
                                     {"cpu=haswell", true, false},
                                     {"x86-64-v4", true, false},
                                     {"x86-64", true, false},
                                     {"triple=aarch64-linux-gnu,cpu=neoverse-n1", true, false},
                                     {"triple=aarch64-linux-gnu", false, false}}) {
    CAPTURE(name);
    Target target = codegen::parse_target(name);
    CHECK(target.has_int8_dot == bytes);
    CHECK(target.has_bfloat16_dot == halves);
  }
}

TEST_CASE("a target has matrix registers where the processor has them", "[codegen]") {
  for (auto [name, bytes, halves] : {std::tuple("cpu=sapphirerapids", true, true),
                                     {"cpu=sapphirerapids,-amx-bf16", true, false},
                                     {"cpu=sapphirerapids,-amx-int8", false, true},
                                     {"cpu=sapphirerapids,-amx-tile", false, false},
                                     {"cpu=znver5", false, false}}) {
    CAPTURE(name);
    Target target = codegen::parse_target(name);
    CHECK(target.has_int8_tiles == bytes);
    CHECK(target.has_bfloat16_tiles == halves);
  }
}

TEST_CASE("a printed target is a file of it", "[codegen]") {
  for (const char* name : {"host", "x86-64", "x86-64-v4", "cpu=sapphirerapids", "triple=aarch64-linux-gnu"}) {
    CAPTURE(name);
    Target target = codegen::parse_target(name);
    TargetFile file(print_target(target));
    Target again = codegen::parse_target("@" + file.path);
    for (const FigureRow& row : target_figures()) {
      CAPTURE(row.name);
      CHECK(get_figure(row, again) == get_figure(row, target));
    }
    CHECK(again.cpu == target.cpu);
    CHECK(again.features == target.features);
  }
}

TEST_CASE("a file changes single figures", "[codegen]") {
  TargetFile file("# our machine\ncpu = znver4\nl3.bytes = 100663296 # more\nvector_bits = 256\n");
  Target target = codegen::parse_target("@" + file.path), plain = codegen::parse_target("cpu=znver4");
  CHECK(target.l3.bytes == 100663296);
  CHECK(source_of(target, "l3.bytes") == file.path);
  CHECK(target.vector_bits == 256);
  CHECK(target.l2 == plain.l2);
  CHECK(codegen::parse_target("cpu=haswell,file=" + file.path).cpu == "znver4");
}

TEST_CASE("costs that were fitted are figures, too", "[codegen]") {
  TargetFile file("elements_per_cycle = 0.5\nload_delay = 0.1\nexposed_l2_latency = 0.25\n");
  Target target = codegen::parse_target("@" + file.path), plain = codegen::parse_target("x86-64");
  CHECK(target.load_delay == 0.1);
  CHECK(target.exposed_l2_latency == 0.25);
  CHECK(source_of(target, "load_delay") == file.path);
  CHECK(print_target(plain).find("\nexposed_l2_latency = 0.4 ") != std::string::npos);
  // A loop runs on one thread when it ends before another one wakes, which takes 8192 cycles.
  CHECK(is_small({int_imm(16383)}, plain));
  CHECK(!is_small({int_imm(16384)}, plain));
  CHECK(is_small({int_imm(4095)}, target));
  CHECK(!is_small({int_imm(4096)}, target));
}

// Finds who reads figures, by the text of the sources: `target.l2.line`, `&Target::has_fma`, or a function of Target
// whose body names it.
class Readers {
 public:
  Readers() {
    for (const char* room : {"tir", "passes", "codegen"}) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(kTree / room)) {
        std::string name = entry.path().filename(), extension = entry.path().extension();
        bool fills = name == "target.h" || name == "target.cc" || name == "processors.cc";
        if (!fills && (extension == ".h" || extension == ".cc")) sources_ += content(entry.path());
      }
    }
    std::istringstream lines(content(kTree / "tir" / "target.h"));
    for (std::string line; std::getline(lines, line);) {
      size_t body = line.find(") const {"), open = line.find('(');
      if (body == std::string::npos) continue;
      size_t space = line.rfind(' ', open);
      functions_.emplace_back(line.substr(space + 1, open - space - 1), line.substr(body));
    }
  }
  size_t num_functions() const { return functions_.size(); }
  bool has_reader(const std::string& member) const {
    for (const char* reader : {"target.", "target_.", "Target::"}) {
      if (is_in(sources_, reader + member)) return true;
    }
    return std::ranges::any_of(
        functions_, [&](const auto& function) { return is_in(function.second, member) && has_reader(function.first); });
  }

 private:
  static inline const std::filesystem::path kTree = RELAXC_SOURCE_DIR;
  static std::string content(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static bool is_in(const std::string& text, const std::string& word) {
    auto goes_on = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      size_t end = at + word.size();
      if ((at == 0 || !goes_on(text[at - 1])) && (end == text.size() || !goes_on(text[end]))) return true;
    }
    return false;
  }
  std::string sources_;
  std::vector<std::pair<std::string, std::string>> functions_;  // names and bodies
};

TEST_CASE("a figure has a reader, or says that it has none", "[codegen]") {
  Readers readers;
  CHECK(readers.num_functions() >= 5);
  for (const FigureRow& row : target_figures()) {
    CAPTURE(row.name);
    bool says_no = std::string_view(row.doc).find("no rule reads it yet") != std::string_view::npos;
    CHECK(readers.has_reader(row.name) != says_no);
  }
  CHECK(!readers.has_reader("no_such_figure"));
}

TEST_CASE("architectures that relaxc does not support are refused, whatever LLVM makes of them", "[codegen]") {
  CHECK(codegen::architectures() == std::vector<std::string>{"x86_64", "aarch64", "riscv64"});
  for (const char* triple :
       {"armv7-linux-gnueabihf", "riscv32-linux-gnu", "loongarch64-linux-gnu", "hexagon-linux-musl",
        "amdgcn-amd-amdhsa", "mips64-linux-gnuabi64", "avr", "bpf", "nvptx64-nvidia-cuda", "s390x-linux-gnu",
        "powerpc64-linux-gnu", "sparcv9-linux-gnu", "aarch64_be-linux-gnu", "aarch64-none-elf", "i686-linux-gnu",
        "x86_64-linux-gnux32", "x86_64-pc-windows-msvc", "aarch64-apple-darwin"}) {
    INFO(triple);
    try {
      codegen::parse_target(std::string("triple=") + triple);
      FAIL_CHECK("it was accepted");
    } catch (const CompileError& error) {
      const std::string message = error.what();
      CHECK(error.kind() == ErrorKind::kUnsupported);
      CHECK(message.find("there is no code for '") != std::string::npos);
      CHECK(message.find("; expected x86_64, aarch64, riscv64 on Linux") != std::string::npos);
    }
  }
  for (const char* triple : {"aarch64-linux-gnu", "riscv64-linux-musl", "x86_64-linux-gnu", "aarch64-linux-android"})
    CHECK_NOTHROW(codegen::parse_target(std::string("triple=") + triple));
}

TEST_CASE("what a target file may not say", "[codegen]") {
  auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  std::string unknown = error_of("cpu = znver4\nl9.bytes = 4\n");
  CHECK(has(unknown, ":2: there is no figure 'l9.bytes'"));
  CHECK(has(unknown, "l2_bytes_per_cycle"));
  CHECK(has(error_of("l1.bytes = many\n"), "'l1.bytes' must be a positive number up to 1e15, found 'many'"));
  CHECK(has(error_of("l1.bytes = 0\n"), "must be a positive number up to 1e15, found '0'"));
  CHECK(has(error_of("cpu = x86-64-v3\nvector_bits = 512\n"), "'vector_bits' of this cpu is 256"));
  CHECK(has(error_of("cpu = x86-64-v3\nhas_bfloat16_dot = 1\n"), "a file may only lower it"));
  CHECK(has(error_of("vector_bits = 100\n"), "'vector_bits' must be 128, 256 or 512, found 100"));
  CHECK(has(error_of("num_vector_registers = 2\n"), "'num_vector_registers' must be 8 or more, found 2"));
  CHECK(has(error_of("cores = 2\ncores = 3\n"), ":2: 'cores' stands twice"));
  CHECK(has(error_of("cores = 1e30\n"), "must be a positive number up to 1e15"));
  CHECK_THROWS_WITH(codegen::parse_target("@/dev"), Catch::Contains("cannot read '/dev'"));
  CHECK(has(error_of("nonsense\n"), ":1: expected 'figure = value', found 'nonsense'"));
  CHECK_THROWS_AS(codegen::parse_target("@/no/such/file"), CompileError);
}

TEST_CASE("a file may name an architecture, whose processors its errors list", "[codegen]") {
  auto has = [](const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; };
  for (const char* architecture : {"aarch64", "riscv64"}) {
    const std::string line = fmt::format("triple = {}-linux-gnu\n", architecture);
    INFO(line);
    TargetFile file(line);
    const Target target = codegen::parse_target("@" + file.path);
    const Target stated = codegen::parse_target(fmt::format("triple={}-linux-gnu", architecture));
    CHECK(target.cpu == "generic");
    CHECK(target.triple == stated.triple);
    CHECK(target.features == stated.features);
    const std::string unknown = error_of(line + "cpu = nosuch\n");
    CHECK(has(unknown, fmt::format("cpus of {}-unknown-linux-gnu: ", architecture)));
    CHECK_FALSE(has(unknown, "alderlake"));
    CHECK(has(error_of(line + "features = +nosuch\n"), "unknown feature '+nosuch'"));
  }
  CHECK(has(error_of("cpu = nosuch\n"), "a cpu of another architecture needs its triple, too"));
}

}  // namespace relaxc::test
