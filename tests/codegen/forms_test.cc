// The inner loops of the programs in bench/kernels/forms: no vector on the stack, no scalar multiply-add.
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "codegen/compile.h"
#include "codegen/target.h"
#include "tir/lower/lower.h"

#include "tests/catch.h"

namespace relaxc::codegen {

namespace {

// The innermost loops of an assembly text: from a label to a jump back to it, with no other such pair in between.
std::vector<std::vector<std::string>> innermost_loops(const std::string& assembly) {
  static const std::regex kLabel(R"(^(\.L\w+):.*)"), kJump(R"(^\s*j\w+\s+(\.L\w+).*)");
  std::vector<std::vector<std::string>> loops;
  std::vector<std::string> lines;
  std::map<std::string, size_t> labels;
  size_t last_loop_start = 0;
  std::istringstream text(assembly);
  for (std::string line; std::getline(text, line); lines.push_back(line)) {
    std::smatch match;
    if (std::regex_match(line, match, kLabel)) labels[match[1]] = lines.size();
    if (!std::regex_match(line, match, kJump) || !labels.contains(match[1])) continue;
    size_t start = labels[match[1]];
    if (start >= last_loop_start) loops.emplace_back(lines.begin() + static_cast<ptrdiff_t>(start), lines.end());
    last_loop_start = std::max(last_loop_start, start + 1);
  }
  return loops;
}

}  // namespace

TEST_CASE("inner loops of the kernels' forms", "[codegen]") {
  Target target = parse_target("cpu=sapphirerapids");
  static const std::regex kOnStack(R"(.*%[xyz]mm\d+, *-?\d*\(%rsp.*|.*\(%rsp[^)]*\), *%[xyz]mm.*)");
  static const std::regex kMultiply(R"(\s*v(fmadd|pdpbusd|dpbf16)\w*ps\b.*|\s*vpdpbusd\b.*)"),
      kScalar(R"(\s*vfmadd\w+ss\b.*)");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RELAXC_SOURCE_DIR "/bench/kernels/forms")) {
    INFO(entry.path().filename().string());
    ++files;
    PrimFuncRef kernel = read_module(entry.path().string()).prim_func("kernel");
    int contractions = 0;
    for (const std::vector<std::string>& loop : innermost_loops(to_assembly({{"k", lower_program(kernel)}}, target))) {
      int multiplies = 0, broadcasts = 0, on_stack = 0, scalars = 0;
      for (const std::string& line : loop) {
        multiplies += std::regex_match(line, kMultiply);
        bool is_constant = line.find("%rip") != std::string::npos;
        broadcasts += !is_constant && line.find("broadcast") != std::string::npos;
        on_stack += std::regex_match(line, kOnStack);
        scalars += std::regex_match(line, kScalar);
      }
      if (multiplies == 0 || broadcasts == 0) continue;  // a transform or a copy
      ++contractions;
      CHECK(on_stack == 0);
      CHECK(scalars == 0);
    }
    bool is_depthwise = entry.path().filename().string().starts_with("depthwise");
    CHECK((contractions > 0 || is_depthwise));
  }
  CHECK(files > 20);
}

}  // namespace relaxc::codegen
